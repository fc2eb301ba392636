//! Takes connections of other nodes.
//!
//! A flood of strangers costs little: connections are accepted at a bounded rate, and of too many
//! without a proof the oldest is closed, so that a node that hurries gets through.

use super::meet::meet;
use super::reports::Said;
use super::state::Node;
use crate::security::cookie::Role;
use ganger_net::TcpListener;
use ganger_proc_api::Instant;
use ganger_task::Cx;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

/// The most connections accepted at once.
const BURST: u32 = 64;
/// Then a single connection in this time.
///
/// A flood fills the system's queue of 1,024, and a node waits behind all of them: it must come to
/// its turn long before its handshake is over.
const PACE: Duration = Duration::from_millis(1);

/// Accepts until the listener is closed.
pub(crate) async fn accept(cx: Cx, node: Arc<Node>, listener: TcpListener) {
    let mut rate = Rate {
        left: BURST,
        at: node.now(),
    };
    while !node.is_stopping() {
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) if node.is_stopping() => {
                return tracing::debug!(target: "ganger::direct", %error, "listening ends");
            }
            Err(error) => {
                // No more descriptors, for instance.
                warn(&node, &error);
                if cx.sleep(Duration::from_millis(100)).await.is_err() {
                    return;
                }
                continue;
            }
        };
        // Fails if the connection is broken already.
        let _ = stream.set_nodelay(true);
        let number = node.enter(stream.closer());
        let spawned = node.spawn(&cx, "accepted", async move |cx: Cx, node: Arc<Node>| {
            let (_, joined) = meet(&node, &cx, Role::Acceptor, stream, address).await;
            node.leave(number);
            if let Ok(joined) = joined {
                joined.serve(&node, &cx).await;
            }
        });
        if let Err(error) = spawned {
            // The program's scheduler has as many processes as it may have.
            warn(&node, &error);
            node.leave(number);
        }
        if let Some(pause) = rate.take(node.now())
            && cx.sleep(pause).await.is_err()
        {
            return;
        }
    }
}

fn warn(node: &Node, error: &dyn Display) {
    if let Some(left_out) = node.reports.may_say(Said::NoAccept, node.now()) {
        tracing::warn!(target: "ganger::direct", %error, left_out, "can't accept a connection");
    }
}

/// A bucket of permits.
struct Rate {
    left: u32,
    at: Instant,
}

impl Rate {
    /// Takes a permit. Returns the time until the next permit, if none is left.
    fn take(&mut self, now: Instant) -> Option<Duration> {
        let paces = (now - self.at).as_nanos() / PACE.as_nanos();
        let paces = u32::try_from(paces).unwrap_or(u32::MAX);
        if paces > 0 {
            self.left = self.left.saturating_add(paces).min(BURST);
            self.at = now;
        }
        self.left = self.left.saturating_sub(1);
        (self.left == 0).then_some(PACE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_slowed_down_and_a_crowd_is_not() {
        let mut now = Instant::from_nanos(0);
        let mut rate = Rate {
            left: BURST,
            at: now,
        };
        let free = (0..BURST - 1).all(|_| rate.take(now).is_none());
        assert!(free);
        let mut accepted = 0;
        for _ in 0..10_000 {
            if let Some(pause) = rate.take(now) {
                now = now + pause;
            }
            accepted += 1;
        }
        let per_second = f64::from(accepted) / (now - Instant::from_nanos(0)).as_secs_f64();
        assert!((990.0..=1020.0).contains(&per_second), "{per_second}");
        now = now + PACE * BURST;
        assert!((0..BURST - 1).all(|_| rate.take(now).is_none()));
    }
}

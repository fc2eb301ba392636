//! Server-sent events: a snapshot once a period, for viewers that stay.
//!
//! **Problem.** Each viewer of a live page wants a new snapshot every second or more often. A slow
//! viewer must not make the program keep its snapshots.
//!
//! **Protocol.** A process of the endpoint has the open streams, and sleeps until the next stream
//! is due, or until a viewer joins. The process asks for one snapshot, and gives the same bytes to
//! all streams due now or soon. The time between two snapshots is [`SHORTEST`] or longer. A stream
//! has room for one event: a newer event takes the place of an unread event. A viewer that reads
//! nothing for the time of an answer loses its connection.

#[cfg(test)]
mod tests;

use super::maker;
use super::stream::{Join, Slot};
use bytes::Bytes;
use ganger_proc_api::BoxError;
use ganger_sched::{Address, ContextExt as _, Instant};
use ganger_task::Cx;
use std::ops::RangeInclusive;
use std::sync::Weak;
use std::time::Duration;

/// The shortest period.
pub(super) const SHORTEST: Duration = Duration::from_millis(250);

/// All periods of streams.
pub(super) const PERIODS: RangeInclusive<Duration> = SHORTEST..=Duration::from_mins(1);

/// The period without a wish.
pub(super) const PERIOD: Duration = Duration::from_secs(1);

/// An open stream, as the process knows it.
struct Open {
    slot: Weak<Slot>,
    period: Duration,
    due: Instant,
}

/// Ends all streams with the process.
#[derive(Default)]
struct Streams(Vec<Open>);

impl Drop for Streams {
    fn drop(&mut self) {
        let open = self.0.iter().filter_map(|it| it.slot.upgrade());
        open.for_each(|it| it.end());
    }
}

/// Runs the process.
pub(super) async fn run(cx: Cx<Join>, maker: Address<maker::Ask>) -> Result<(), BoxError> {
    let mut streams = Streams::default();
    let mut rest = Duration::ZERO;
    loop {
        let joined = if streams.0.is_empty() {
            Some(cx.recv().await)
        } else {
            cx.timeout(rest, cx.recv()).await.ok()
        };
        let mut joined = match joined {
            // The endpoint ends.
            Some(None) => return Ok(()),
            Some(Some(join)) => Some(join),
            None => None,
        };
        while let Some(Join { slot, period }) = joined {
            let due = cx.now();
            streams.0.push(Open { slot, period, due });
            joined = cx.try_recv();
        }
        streams.0.retain(|it| it.slot.strong_count() > 0);
        let now = cx.now();
        let soon = now + SHORTEST / 2;
        if streams.0.iter().any(|it| it.due <= now) {
            let json = cx.ask(maker.call(maker::Ask::Snapshot)).await?;
            let event = Bytes::from([b"event: snapshot\ndata: ", &json[..], b"\n\n"].concat());
            for open in streams.0.iter_mut().filter(|it| it.due <= soon) {
                open.due = now + open.period;
                if let Some(slot) = open.slot.upgrade() {
                    slot.put(event.clone());
                }
            }
            cx.sleep(SHORTEST).await?;
        }
        let next = streams.0.iter().map(|it| it.due).min();
        rest = next.map_or(Duration::ZERO, |it| it - cx.now());
    }
}

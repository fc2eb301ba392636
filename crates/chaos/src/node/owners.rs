//! The strong names and the locks of a node, which takes them, uses them, and gives them back.
//!
//! The node says when each call was made and answered, by a clock that all programs of the machine
//! share.

use super::{MARK, Shared};
use ganger_cluster::{FencingToken, NameLost, StrongError};
use ganger_proc_api::{CommandError, StepOutput, actor_fn};
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

/// The names and the locks of all nodes.
const NAMES: [&str; 2] = ["billing", "shipping"];
const LOCKS: [&str; 2] = ["till", "gate"];

/// How long a node waits for an answer before it begins again.
const WAIT: Duration = Duration::from_secs(10);

/// Returns the time of the machine, in nanoseconds.
#[cfg(unix)]
fn now() -> u64 {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::Monotonic);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec));
    seconds.unwrap_or(0) * 1_000_000_000 + nanos.unwrap_or(0)
}

#[cfg(not(unix))]
fn now() -> u64 {
    let time = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Says what was seen of a name or a lock, by a call of this time until now.
fn say(what: &str, of: &str, token: impl fmt::Display, called: u64) {
    println!("{MARK}{what} {of} {token} {called} {}", now());
}

impl Shared {
    /// Makes a thread for each name and each lock.
    pub(super) fn own(self: &Arc<Self>, random: u64, until: &Sender<()>) {
        let claims = NAMES.map(|name| (name, false)).into_iter();
        for (number, (of, is_lock)) in (0..).zip(claims.chain(LOCKS.map(|of| (of, true)))) {
            let (node, until) = (Arc::clone(self), until.clone());
            let mut random = fastrand::Rng::with_seed(random.rotate_left(8).wrapping_add(number));
            thread::spawn(move || {
                // The last round is after all faults: each node owns each once at least.
                let mut has_owned = false;
                while !node.drains() || !has_owned {
                    has_owned |= match is_lock {
                        true => node.hold_lock(of, &mut random),
                        false => node.hold_name(of, &mut random),
                    };
                    thread::sleep(Duration::from_millis(random.u64(0..100)));
                }
                drop(until);
            });
        }
    }

    /// Takes a lock and holds it for a while. True: the node has had the lock.
    fn hold_lock(&self, of: &str, random: &mut fastrand::Rng) -> bool {
        let Ok(names) = self.cluster.strong_names() else {
            return true;
        };
        let called = now();
        let Ok(lock) = names.lock(of).wait_timeout(WAIT) else {
            return false;
        };
        let Ok(token) = lock.token() else {
            return false;
        };
        say("held", of, token, called);
        use_often(of, random, || lock.token().ok());
        true
    }

    /// Registers a name and holds it for a while. True: the node has had the name.
    fn hold_name(&self, of: &str, random: &mut fastrand::Rng) -> bool {
        let Ok(names) = self.cluster.strong_names() else {
            return true;
        };
        let owner = actor_fn(|_, _: NameLost, _: &mut StepOutput| Ok(()));
        let owner = self.scheduler.spawn(owner).expect("the process starts");
        let called = now();
        let answer = names.register(of, owner.address().recipient());
        let answer = answer.wait_timeout(WAIT);
        match &answer {
            Ok(token) => {
                say("held", of, token, called);
                use_often(of, random, || names.token(of));
            }
            Err(CommandError::Failed(why)) => {
                if let Some(StrongError::Taken(by)) = why.downcast_ref() {
                    say("found", of, by.token, called);
                }
            }
            Err(_) => {}
        }
        if random.bool() {
            names.unregister(of);
        }
        // The end of the owner gives the name back, also a late name.
        let _ended = self.scheduler.terminate(owner.pid());
        let called = now();
        if let Ok(found) = names.find(of).wait_timeout(WAIT) {
            let token = found.map_or(FencingToken(0), |it| it.token);
            say("found", of, token, called);
        }
        answer.is_ok()
    }
}

/// Looks for a while whether the node is the owner.
fn use_often(of: &str, random: &mut fastrand::Rng, token: impl Fn() -> Option<FencingToken>) {
    // Often longer than a lease.
    let most = [5, 20, 100, 200][random.usize(..4)];
    for _ in 0..random.u32(1..=most) {
        thread::sleep(Duration::from_millis(20));
        let called = now();
        let Some(token) = token() else {
            return;
        };
        say("used", of, token, called);
    }
}

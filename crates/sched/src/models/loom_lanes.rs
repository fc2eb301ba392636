//! System events among others: senders of both kinds against the worker.
//!
//! The worker shows its drained events as `runtime/owned.rs` does: the system lane first. A sender
//! waking the process hands its event over without the mailbox, as `send/delivery.rs` does, unless
//! it is a system event. Checked in every interleaving:
//! - A drain with a system event knows of the event, so none is ever in the other lane.
//! - Each event is shown once, and the events of each sender in their order.
//! - The count is back at zero in the end, and a worker that parks leaves nothing.

use crate::process::state::{Begin, Leave, State, Waiting, Wake};
use ganger_sync::cell::UnsafeCell;
use ganger_sync::sync::Arc;
use ganger_sync::{model, thread};

/// From here on an item is a system event.
const SYSTEM: u32 = 100;

struct Process {
    state: State<u32>,
    core: UnsafeCell<Core>,
}

#[derive(Default)]
struct Core {
    system: Vec<u32>,
    others: Vec<u32>,
    shown: Vec<u32>,
}

// SAFETY: only the owner of the run token touches the core, as `loom_wakeup.rs` checks.
unsafe impl Sync for Process {}
// SAFETY: only the owner of the run token touches the core, as `loom_wakeup.rs` checks.
unsafe impl Send for Process {}

impl Process {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            state: State::new(),
            core: UnsafeCell::new(Core::default()),
        })
    }

    fn core<R>(&self, f: impl FnOnce(&mut Core) -> R) -> R {
        // SAFETY: called by the owner of the run token, or after all threads have been joined.
        self.core.with_mut(|core| f(unsafe { &mut *core }))
    }

    /// Runs turns of a single event each, so the next drain finds both lanes filled.
    fn run(&self) {
        loop {
            assert_eq!(self.state.begin(), Begin::Step);
            let leave = self.core(|core| {
                if self.state.has_events() {
                    self.receive(core);
                }
                if core.system.is_empty() {
                    let first = (!core.others.is_empty()).then(|| core.others.remove(0));
                    core.shown.extend(first);
                } else {
                    core.shown.push(core.system.remove(0));
                    self.state.take_system(1);
                }
                if core.system.is_empty() && core.others.is_empty() {
                    self.state.park(Waiting::Idle)
                } else {
                    self.state.requeue()
                }
            });
            match leave {
                Leave::Parked => return,
                Leave::Requeue | Leave::RequeueUrgent => {}
                Leave::Terminate => unreachable!("no thread terminates it"),
            }
        }
    }

    fn receive(&self, core: &mut Core) {
        let arrived = self.state.drain();
        let knows = self.state.may_hold_system();
        for item in arrived {
            if item >= SYSTEM {
                assert!(knows, "a system event among the others");
                core.system.push(item);
            } else {
                core.others.push(item);
            }
        }
    }

    fn send(&self, items: &[u32]) {
        for &item in items {
            let wake = if item >= SYSTEM {
                self.state.push_system(item)
            } else if self.state.unpark() {
                self.core(|core| core.others.push(item));
                Ok(Wake::Enqueue)
            } else {
                self.state.push(item)
            };
            if wake.unwrap() == Wake::Enqueue {
                self.run();
            }
        }
    }
}

/// Checks the order of the items that each sender sends while the process runs.
fn model(preemptions: usize, senders: &'static [&'static [u32]]) {
    model::check(preemptions, move || {
        let process = Process::new();
        let threads: Vec<_> = senders
            .iter()
            .map(|&items| {
                let process = Arc::clone(&process);
                thread::spawn(move || process.send(items))
            })
            .collect();
        process.run();
        for thread in threads {
            thread.join().unwrap();
        }
        let shown = process.core(|core| std::mem::take(&mut core.shown));
        let sent: usize = senders.iter().map(|items| items.len()).sum();
        assert_eq!(shown.len(), sent, "{shown:?}");
        for &items in senders {
            let of_lane = |is_system: bool| {
                let in_lane = move |item: &u32| (*item >= SYSTEM) == is_system;
                let its_own: Vec<u32> = items.iter().copied().filter(in_lane).collect();
                let seen: Vec<u32> = shown
                    .iter()
                    .copied()
                    .filter(|item| its_own.contains(item))
                    .collect();
                (its_own, seen)
            };
            for (its_own, seen) in [of_lane(false), of_lane(true)] {
                assert_eq!(its_own, seen, "out of order");
            }
        }
        assert!(
            !process.state.may_hold_system(),
            "somebody was counted wrongly"
        );
    });
}

// pins: P4, P5, P10
#[test]
fn a_sender_of_both_kinds_against_the_worker() {
    model(4, &[&[1, SYSTEM, 2, SYSTEM + 1]]);
}

// pins: P4, P5, P10
#[test]
fn two_senders_of_system_events_against_the_worker() {
    model(2, &[&[1, SYSTEM], &[SYSTEM + 1, 2]]);
}

/// Checks that a system event sent before a turn began is the first in the turn.
// pins: P4, P10
#[test]
fn what_was_sent_before_a_turn_is_shown_first() {
    model::check(3, || {
        let process = Process::new();
        process.send(&[1, 2, SYSTEM]);
        let other = {
            let process = Arc::clone(&process);
            thread::spawn(move || process.send(&[3, SYSTEM + 1]))
        };
        process.run();
        other.join().unwrap();
        let shown = process.core(|core| std::mem::take(&mut core.shown));
        assert_eq!(shown[0], SYSTEM, "{shown:?}");
    });
}

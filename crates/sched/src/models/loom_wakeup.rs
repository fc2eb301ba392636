//! The state of a process: senders, completers and terminators against the worker.
//!
//! A process counts its messages. A thread with the duty to queue the process runs the process at
//! once, in the place of a queue and some worker. Checked in every interleaving: one runner at a
//! time (the count is in a cell watched by loom), nothing sent is lost, one end.

use crate::process::state::{Begin, Leave, ProcessState, State, Waiting, Wake};
use ganger_sync::atomic::{AtomicU32, Ordering};
use ganger_sync::cell::UnsafeCell;
use ganger_sync::sync::Arc;
use ganger_sync::{model, thread};
use std::mem;

/// An empty item: see `State::terminate`.
const NUDGE: u32 = 0;

struct Process {
    state: State<u32>,
    core: UnsafeCell<Core>,
}

/// A state, and a value written before a mark is set in it.
struct Marked(State<u32>, UnsafeCell<u32>);

// SAFETY: only the thread that has found the mark reads the cell, as the models check.
unsafe impl Sync for Marked {}
// SAFETY: only the thread that has found the mark reads the cell, as the models check.
unsafe impl Send for Marked {}

#[derive(Default, Clone, Copy)]
struct Core {
    /// The item of the waking thread.
    pending: u32,
    handled: u32,
    dropped: u32,
    ends: u32,
}

// SAFETY: only the owner of the run token touches the core, as the model checks.
unsafe impl Sync for Process {}
// SAFETY: only the owner of the run token touches the core, as the model checks.
unsafe impl Send for Process {}

impl Process {
    /// Creates a process in `Ready` and in no queue: the caller owns the run token.
    fn new() -> Arc<Self> {
        let core = UnsafeCell::new(Core::default());
        Arc::new(Self {
            state: State::new(),
            core,
        })
    }

    fn core<R>(&self, f: impl FnOnce(&mut Core) -> R) -> R {
        // SAFETY: called by the owner of the run token, or after all threads have been joined.
        self.core.with_mut(|core| f(unsafe { &mut *core }))
    }

    /// Gives the process turns until it parks or ends, as a worker does.
    fn run(&self) {
        loop {
            if self.state.begin() == Begin::Terminate {
                return self.finish();
            }
            let sum: u32 = self.state.drain().into_iter().sum();
            self.core(|core| core.handled += mem::take(&mut core.pending) + sum);
            let leave = if self.state.has_events() {
                self.state.requeue()
            } else {
                self.state.park(Waiting::Idle)
            };
            match leave {
                Leave::Parked => return,
                Leave::Requeue | Leave::RequeueUrgent => {}
                Leave::Terminate => return self.finish(),
            }
        }
    }

    fn finish(&self) {
        // No worker that has given the token away writes the phase.
        assert_eq!(self.state.snapshot().state(), ProcessState::Running);
        let (_, rest) = self.state.complete();
        let sum: u32 = rest.into_iter().sum();
        self.core(|core| {
            core.dropped += mem::take(&mut core.pending) + sum;
            core.ends += 1;
        });
    }

    /// Sends an item. Returns whether it was taken.
    fn send(&self) -> bool {
        if self.state.unpark() {
            self.core(|core| core.pending += 1);
            return self.settle(Ok(Wake::Enqueue));
        }
        self.settle(self.state.push(1))
    }

    fn terminate(&self) -> bool {
        let wake = self.state.terminate(NUDGE);
        self.settle(wake.ok_or(NUDGE))
    }

    /// Checks that the process has ended once, and has handled or dropped all taken items.
    fn assert_ended_with(&self, taken: u32) {
        let Core {
            pending,
            handled,
            dropped,
            ends,
        } = self.core(|core| *core);
        assert_eq!((ends, handled + dropped), (1, taken));
        assert_eq!(pending, 0, "nobody has seen it");
        assert_eq!(self.state.snapshot().state(), ProcessState::Complete);
    }

    fn settle(&self, wake: Result<Wake, u32>) -> bool {
        if wake == Ok(Wake::Enqueue) {
            self.run();
        }
        wake.is_ok()
    }
}

fn spawn<R: Send + 'static>(
    process: &Arc<Process>,
    f: impl FnOnce(&Process) -> R + Send + 'static,
) -> thread::JoinHandle<R> {
    let process = Arc::clone(process);
    thread::spawn(move || f(&process))
}

// pins: G1, G2, P5
#[test]
fn a_sender_against_the_worker() {
    model::check(4, || {
        let process = Process::new();
        let sender = spawn(&process, |process| (process.send(), process.send()));
        process.run();
        assert_eq!(sender.join().unwrap(), (true, true));
        assert_eq!(process.core(|core| core.handled), 2);
        assert_eq!(process.state.snapshot().state(), ProcessState::Idle);
    });
}

// pins: G1, G2, P5, P6
#[test]
fn a_sender_and_a_completer_against_the_worker() {
    model::check(3, || {
        let process = Process::new();
        let sender = spawn(&process, Process::send);
        let completer = spawn(&process, Process::send);
        process.run();
        assert!(sender.join().unwrap() && completer.join().unwrap());
        assert_eq!(process.core(|core| core.handled), 2);
        assert_eq!(process.state.snapshot().state(), ProcessState::Idle);
    });
}

// pins: G1, P2, P9
#[test]
fn a_sender_and_a_terminator_against_the_worker() {
    model::check(3, || {
        let process = Process::new();
        let sender = spawn(&process, Process::send);
        let terminator = spawn(&process, Process::terminate);
        process.run();
        let taken = u32::from(sender.join().unwrap());
        assert!(terminator.join().unwrap(), "it lived");
        process.assert_ended_with(taken);
    });
}

// pins: G1, G2, P2, P6, P9
#[test]
fn a_sender_a_completer_and_a_terminator_against_the_worker() {
    model::check(2, || {
        let process = Process::new();
        let sender = spawn(&process, Process::send);
        let completer = spawn(&process, Process::send);
        let terminator = spawn(&process, Process::terminate);
        process.run();
        let taken = u32::from(sender.join().unwrap()) + u32::from(completer.join().unwrap());
        assert!(terminator.join().unwrap(), "it lived");
        process.assert_ended_with(taken);
    });
}

/// Runs `init` while others send; then the submitter hands the token over, as a queue does.
// pins: G1, P1, P5
#[test]
fn what_comes_during_init_waits_for_the_worker() {
    model::check(3, || {
        let process = Process::new();
        let sender = spawn(&process, |process| (process.send(), process.send()));
        process.core(|core| core.handled += 10);
        let worker = spawn(&process, Process::run);
        assert_eq!(sender.join().unwrap(), (true, true));
        worker.join().unwrap();
        assert_eq!(process.core(|core| core.handled), 12);
        assert_eq!(process.state.snapshot().state(), ProcessState::Idle);
    });
}

/// Lets the submitter end the process, which has never been queued.
// pins: G1, P1, P9
#[test]
fn what_comes_during_an_init_that_fails_is_dropped_or_refused() {
    model::check(3, || {
        let process = Process::new();
        let sender = spawn(&process, |process| [process.send(), process.send()]);
        let terminator = spawn(&process, Process::terminate);
        process.core(|core| core.handled += 0);
        let _begun = process.state.begin();
        process.finish();
        let taken = sender.join().unwrap().into_iter().filter(|taken| *taken);
        let taken = u32::try_from(taken.count()).unwrap();
        terminator.join().unwrap();
        process.assert_ended_with(taken);
    });
}

// pins: P9
#[test]
fn two_terminators_against_the_worker() {
    model::check(3, || {
        let process = Process::new();
        let first = spawn(&process, Process::terminate);
        let second = spawn(&process, Process::terminate);
        process.run();
        let accepted = [first.join().unwrap(), second.join().unwrap()];
        assert!(accepted.contains(&true));
        assert_eq!(process.core(|core| core.ends), 1);
    });
}

/// Suspends the first terminator after its mark, for good: the second terminator ends the process.
// pins: G2, P9
#[test]
fn a_terminator_relies_on_none_that_is_suspended() {
    model::check(4, || {
        let process = Process::new();
        let terminators = spawn(&process, |process| {
            process.state.mark_terminated();
            // The process may have ended for the first terminator.
            process.terminate();
        });
        process.run();
        terminators.join().unwrap();
        process.assert_ended_with(0);
    });
}

/// Checks that a thread that finds a process terminated or cancelled sees the earlier writes of the
/// terminator or canceller.
// pins: P9, P10
#[test]
fn who_finds_a_mark_sees_what_was_done_before_it() {
    for mark in [
        |state: &State<u32>| assert!(state.terminate(NUDGE).is_some()),
        |state: &State<u32>| assert!(!state.cancel()),
    ] {
        model::check(4, move || {
            let (state, before) = (State::new(), UnsafeCell::new(0));
            let shared = Arc::new(Marked(state, before));
            let marker = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    // SAFETY: the other thread looks when it has found the mark.
                    shared.1.with_mut(|before| unsafe { *before = 7 });
                    mark(&shared.0);
                })
            };
            if shared.0.is_terminating() || shared.0.is_unwanted() {
                // SAFETY: written before the mark, and not after it.
                shared.1.with(|before| assert_eq!(unsafe { *before }, 7));
            }
            marker.join().unwrap();
        });
    }
}

/// Checks that the worker that completes a process sees the earlier writes of both terminators,
/// also where the worker learns of the termination only then.
// pins: P9
#[test]
fn who_completes_what_was_terminated_sees_what_was_done_before_that() {
    model::check(3, || {
        let state = Arc::new(State::new());
        let before = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let terminators = [0, 1].map(|who| {
            let (state, before) = (Arc::clone(&state), Arc::clone(&before));
            thread::spawn(move || {
                // Ordering: Relaxed: the model checks that the state orders it.
                before[who].store(7, Ordering::Relaxed);
                state.terminate(NUDGE).is_some()
            })
        });
        let _begun = state.begin();
        let (_, rest) = state.complete();
        // Ordering: Relaxed: the model checks that the state orders it.
        let seen = [0, 1].map(|who| before[who].load(Ordering::Relaxed) == 7);
        drop(rest);
        let told = terminators.map(|it| it.join().unwrap());
        for (told, seen) in told.into_iter().zip(seen) {
            assert!(seen || !told);
        }
    });
}

/// Checks the same with a third terminator, which relies on the nudges of the others, also where
/// these come between the worker's look at the marks and the close.
// pins: P9
#[test]
fn who_completes_what_was_terminated_sees_what_a_third_did_before() {
    for is_late in [false, true] {
        model::check(3, move || {
            let state = Arc::new(State::new());
            let before = Arc::new(AtomicU32::new(0));
            let twice = |state: &State<u32>| {
                // Even the first of the two may come too late.
                let _told = [(); 2].map(|()| state.terminate(NUDGE));
            };
            let others = if is_late {
                let state = Arc::clone(&state);
                Some(thread::spawn(move || twice(&state)))
            } else {
                twice(&state);
                None
            };
            let third = {
                let (state, before) = (Arc::clone(&state), Arc::clone(&before));
                thread::spawn(move || {
                    // Ordering: Relaxed: the model checks that the state orders it.
                    before.store(7, Ordering::Relaxed);
                    state.terminate(NUDGE).is_some()
                })
            };
            let _begun = state.begin();
            let (_, rest) = state.complete();
            // Ordering: Relaxed: the model checks that the state orders it.
            let seen = before.load(Ordering::Relaxed) == 7;
            drop(rest);
            others.into_iter().for_each(|it| it.join().unwrap());
            assert!(seen || !third.join().unwrap());
        });
    }
}

/// Checks that a terminator that comes too late finds the mailbox closed.
// pins: P9
#[test]
fn who_is_too_late_to_terminate_finds_the_mailbox_closed() {
    model::check(3, || {
        let state = Arc::new(State::new());
        let terminator = {
            let state = Arc::clone(&state);
            thread::spawn(move || state.terminate(NUDGE).is_some() || state.is_closed())
        };
        let _begun = state.begin();
        let (_, rest) = state.complete();
        drop(rest);
        assert!(terminator.join().unwrap());
    });
}

/// Lets the process end by itself at the same time. A message in its mailbox is no nudge, and the
/// worker may have taken a nudge out before the end.
// pins: P9
#[test]
fn terminators_are_told_whether_the_process_has_ended_for_one_of_them() {
    for drains in [false, true] {
        model::check(3, move || {
            let state = Arc::new(State::new());
            let terminator = || {
                let state = Arc::clone(&state);
                thread::spawn(move || state.terminate(NUDGE).is_some())
            };
            let terminators = [terminator(), terminator()];
            assert!(state.push(1).is_ok());
            let _begun = state.begin();
            if drains {
                drop(state.drain());
            }
            let (was_terminated, rest) = state.complete();
            drop(rest);
            let told = terminators.map(|it| it.join().unwrap());
            assert_eq!(told.contains(&true), was_terminated);
        });
    }
}

/// Checks the same with a third terminator, which need not push a nudge any more.
// pins: P9
#[test]
fn a_third_terminator_is_told_what_the_others_have_seen_to() {
    model::check(2, || {
        let state = Arc::new(State::new());
        let terminators = [(); 3].map(|()| {
            let state = Arc::clone(&state);
            thread::spawn(move || state.terminate(NUDGE).is_some())
        });
        let _begun = state.begin();
        let (was_terminated, rest) = state.complete();
        drop(rest);
        let told = terminators.map(|it| it.join().unwrap());
        assert_eq!(told.contains(&true), was_terminated);
        assert!(state.terminate(NUDGE).is_none(), "it has ended");
    });
}

/// Checks that a thread that has seen a process as ended can't terminate it, and learns so.
// pins: P9
#[test]
fn what_is_seen_to_have_ended_can_not_be_terminated_any_more() {
    for terminates in [false, true] {
        model::check(4, move || {
            let state = Arc::new(State::new());
            let looker = {
                let state = Arc::clone(&state);
                thread::spawn(move || {
                    let has_ended = state.snapshot().state() == ProcessState::Complete;
                    let is_told = state.terminate(NUDGE).is_some();
                    assert!(!(has_ended && is_told));
                    let has_ended = state.snapshot().state() == ProcessState::Complete;
                    assert!(is_told || has_ended, "neither alive nor dead");
                })
            };
            if terminates {
                assert!(state.terminate(NUDGE).is_some());
            }
            let _begun = state.begin();
            drop(state.complete());
            looker.join().unwrap();
        });
    }
}

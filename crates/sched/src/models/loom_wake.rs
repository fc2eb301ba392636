//! Wakers, which push no event, against the worker.
//!
//! A waker writes a value and wakes the process. A step looks at the wakers' values. A thread with
//! the duty to queue the process runs the process at once. Checked in every interleaving:
//! - A step sees a waker's writes before its wake, however many others wake at the same time.
//! - At most one runner at a time, also with a terminator; after the end a wake does nothing.
//! - Concurrent wakers leave at most as many items as there are wakers.

use crate::process::state::{Begin, Leave, State, Waiting, Wake};
use ganger_sync::atomic::{AtomicU32, Ordering};
use ganger_sync::cell::UnsafeCell;
use ganger_sync::sync::Arc;
use ganger_sync::{model, thread};

/// An item of a waker.
const WAKE: u32 = 1;
/// An item of a terminator.
const NUDGE: u32 = 0;

struct Process {
    state: State<u32>,
    /// The values that wakers write before they wake.
    written: [AtomicU32; 2],
    core: UnsafeCell<Core>,
}

#[derive(Default, Clone, Copy)]
struct Core {
    must_step: bool,
    /// The values seen by the last step.
    seen: [u32; 2],
    steps: u32,
    items: u32,
    ends: u32,
}

// SAFETY: only the owner of the run token touches the core, as the model checks.
unsafe impl Sync for Process {}
// SAFETY: only the owner of the run token touches the core, as the model checks.
unsafe impl Send for Process {}

impl Process {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            state: State::new(),
            written: [AtomicU32::new(0), AtomicU32::new(0)],
            core: UnsafeCell::new(Core::default()),
        })
    }

    fn core<R>(&self, f: impl FnOnce(&mut Core) -> R) -> R {
        // SAFETY: called by the owner of the run token, or after all threads have been joined.
        self.core.with_mut(|core| f(unsafe { &mut *core }))
    }

    /// Gives the process turns until it parks or ends, as `runtime/owned.rs` does.
    fn run(&self) {
        loop {
            if self.state.begin() == Begin::Terminate {
                return self.finish();
            }
            for item in self.state.drain() {
                if item == WAKE {
                    self.state.take_wake();
                    self.core(|core| {
                        core.must_step = true;
                        core.items += 1;
                    });
                }
            }
            self.core(|core| {
                if std::mem::take(&mut core.must_step) {
                    // Ordering: Relaxed: the wake orders it, as the model checks.
                    core.seen = [0, 1].map(|at| self.written[at].load(Ordering::Relaxed));
                    core.steps += 1;
                }
            });
            match self.state.park(Waiting::Idle) {
                Leave::Parked => return,
                Leave::Requeue | Leave::RequeueUrgent => {}
                Leave::Terminate => return self.finish(),
            }
        }
    }

    fn finish(&self) {
        drop(self.state.complete());
        self.core(|core| core.ends += 1);
    }

    /// Wakes as `ProcessCell::wake` does, `times` times.
    fn wake(&self, waker: usize, times: u32) {
        for time in 1..=times {
            // Ordering: Relaxed: the wake orders it, as the model checks.
            self.written[waker].store(time, Ordering::Relaxed);
            if self.state.unpark() {
                self.core(|core| core.must_step = true);
                self.run();
            } else if self.state.wake_behind(|| WAKE) == Wake::Enqueue {
                self.run();
            }
        }
    }

    /// Looks at the process as `ProcessCell::outstanding` does.
    fn look(&self) {
        if self.state.begin_look() {
            let _steps = self.core(|core| core.steps);
            if self.state.end_look(Waiting::Idle) != Leave::Parked {
                self.run();
            }
        }
    }

    fn terminate(&self) {
        if self.state.terminate(NUDGE) == Some(Wake::Enqueue) {
            self.run();
        }
    }
}

fn spawn(
    process: &Arc<Process>,
    f: impl FnOnce(&Process) + Send + 'static,
) -> thread::JoinHandle<()> {
    let process = Arc::clone(process);
    thread::spawn(move || f(&process))
}

// pins: G1, G2, P5
#[test]
fn a_step_sees_what_came_before_each_wake_of_one_waker() {
    model::check(4, || {
        let process = Process::new();
        let waker = spawn(&process, |process| process.wake(0, 2));
        process.run();
        waker.join().unwrap();
        assert_eq!(process.core(|core| core.seen[0]), 2);
    });
}

// pins: G1, G2, P5
#[test]
fn a_step_sees_what_came_before_each_wake_of_two_wakers() {
    model::check(2, || {
        let process = Process::new();
        let wakers = [0, 1].map(|waker| spawn(&process, move |process| process.wake(waker, 2)));
        process.run();
        wakers.into_iter().for_each(|waker| waker.join().unwrap());
        assert_eq!(process.core(|core| core.seen), [2, 2]);
    });
}

// pins: G1, P9
#[test]
fn wakers_against_a_terminator_are_harmless() {
    model::check(2, || {
        let process = Process::new();
        let waker = spawn(&process, |process| process.wake(0, 2));
        let terminator = spawn(&process, Process::terminate);
        process.run();
        waker.join().unwrap();
        terminator.join().unwrap();
        process.wake(1, 1);
        assert_eq!(process.core(|core| core.ends), 1);
    });
}

/// Lets a reader stand in for the worker, and wake the process for events that have come meanwhile.
// pins: G1, G2, P5
#[test]
fn a_look_loses_no_wake_and_runs_beside_nobody() {
    model::check(3, || {
        let process = Process::new();
        let waker = spawn(&process, |process| process.wake(0, 2));
        let looker = spawn(&process, Process::look);
        process.run();
        waker.join().unwrap();
        looker.join().unwrap();
        assert_eq!(process.core(|core| core.seen[0]), 2);
    });
}

// pins: G1, P9
#[test]
fn a_look_loses_no_termination() {
    model::check(3, || {
        let process = Process::new();
        let terminator = spawn(&process, Process::terminate);
        let looker = spawn(&process, Process::look);
        process.run();
        terminator.join().unwrap();
        looker.join().unwrap();
        assert_eq!(process.core(|core| core.ends), 1);
    });
}

/// Wakes a process that runs all the while.
// pins: P5
#[test]
fn wakes_of_a_process_that_runs_leave_an_item_for_each_waker_at_the_most() {
    model::check(4, || {
        let process = Process::new();
        let wakers = [(); 2].map(|()| {
            spawn(&process, |process| {
                for _ in 0..3 {
                    assert_eq!(process.state.wake_behind(|| WAKE), Wake::Noted);
                }
            })
        });
        wakers.into_iter().for_each(|waker| waker.join().unwrap());
        let items = process.state.drain().into_iter().count();
        assert!((1..=2).contains(&items), "{items} items");
    });
}

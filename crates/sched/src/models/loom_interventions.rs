//! Suspenders, resumers, askers and terminators, against the worker and a sender.
//!
//! A thread with the duty to queue the process runs it at once. Checked in every interleaving:
//! - One runner at a time; a terminated process ends once, suspended or not.
//! - After a resume, and after a stop, the process takes all messages.
//! - Each question has its answer, also from a suspended process.
//! - The end of a process, and a stop, leave nothing in the table.

use crate::process::state::{Begin, Leave, State, Waiting, Wake};
use crate::runtime::interventions::{Interventions, Next, Suspended, Unsuspended};
use ganger_sync::cell::UnsafeCell;
use ganger_sync::sync::Arc;
use ganger_sync::{model, thread};

const MESSAGE: u32 = 1;
const NUDGE: u32 = 0;
const ID: u64 = 7;

struct Process {
    state: State<u32>,
    /// The unit is the token of the only process, and a number is a question.
    interventions: Interventions<(), u32>,
    core: UnsafeCell<Core>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq, Debug)]
struct Core {
    taken: u32,
    answered: u32,
    ends: u32,
}

// SAFETY: the owner of the run token alone touches the core, as the model checks.
unsafe impl Sync for Process {}
// SAFETY: the owner of the run token alone touches the core, as the model checks.
unsafe impl Send for Process {}

impl Process {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            state: State::new(),
            interventions: Interventions::default(),
            core: UnsafeCell::new(Core::default()),
        })
    }

    fn core<R>(&self, f: impl FnOnce(&mut Core) -> R) -> R {
        // SAFETY: called by the owner of the run token, or after all threads have been joined.
        self.core.with_mut(|core| f(unsafe { &mut *core }))
    }

    /// Gives the process turns until it parks, stands or ends, as `turn/run.rs` does.
    fn run(&self) {
        loop {
            let leave = match self.begin() {
                Begin::Terminate => return self.finish(),
                Begin::Stand => self.hold(),
                Begin::Step | Begin::Intervene => {
                    for item in self.state.drain() {
                        self.core(|core| core.taken += item);
                    }
                    self.state.park(Waiting::Idle)
                }
            };
            match leave {
                Leave::Parked => return,
                Leave::Requeue | Leave::RequeueUrgent => {}
                Leave::Terminate => return self.finish(),
            }
        }
    }

    /// Begins a turn as `turn/intervene.rs` does.
    fn begin(&self) -> Begin {
        match self.state.begin() {
            Begin::Intervene => loop {
                if self.state.is_terminating() {
                    return Begin::Terminate;
                }
                let clear = || self.state.end_interventions();
                match self.interventions.next(ID, clear) {
                    Next::Step => return Begin::Step,
                    Next::Stay => return Begin::Stand,
                    Next::Answer(questions) => {
                        self.core(|core| core.answered += questions.iter().sum::<u32>());
                    }
                }
            },
            begin => begin,
        }
    }

    fn hold(&self) -> Leave {
        let stays = || {
            let stays = !self.state.is_terminating();
            if stays {
                self.state.suspend();
            }
            stays
        };
        match self.interventions.hold(ID, (), stays) {
            Ok(()) => Leave::Parked,
            Err(()) => self.state.requeue(),
        }
    }

    fn finish(&self) {
        drop(self.state.complete());
        if self.state.is_attended() && self.state.is_intervened() {
            self.interventions.forget(ID);
        }
        self.core(|core| core.ends += 1);
    }

    fn release(&self, token: Option<()>) {
        if token.is_some() {
            self.state.release();
            self.run();
        }
    }

    fn push(&self, item: u32) {
        if self.state.unpark() {
            self.core(|core| core.taken += item);
            self.run();
        } else if self.state.push(item) == Ok(Wake::Enqueue) {
            self.run();
        }
    }

    fn suspend(&self) -> Result<(Suspended, bool), Unsuspended> {
        let suspended = (self.interventions).suspend(ID, || self.state.intervene());
        if let Ok((_, true)) = suspended {
            self.push(NUDGE);
        }
        suspended
    }

    fn resume(&self) {
        let (_, token) = self.interventions.resume(ID);
        self.release(token);
    }

    fn ask(&self) {
        match self.interventions.ask(ID, 1, || self.state.intervene()) {
            Ok(None) => self.push(NUDGE),
            Ok(token) => self.release(token),
            Err(_) => {}
        }
    }

    fn terminate(&self) {
        if self.state.terminate(NUDGE) == Some(Wake::Enqueue) {
            self.run();
        }
        if self.state.is_intervened() {
            self.release(self.interventions.release(ID));
        }
    }

    /// Stops the interventions as `end_waits` does.
    fn stop(&self) {
        for token in self.interventions.end() {
            self.release(Some(token));
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

fn join<const N: usize>(threads: [thread::JoinHandle<()>; N]) {
    threads.into_iter().for_each(|it| it.join().unwrap());
}

// pins: G1, V18
#[test]
fn a_resumed_process_has_taken_what_was_sent() {
    model::check(3, || {
        let process = Process::new();
        let hands = spawn(&process, |process| {
            process.suspend().unwrap();
            process.resume();
        });
        let sender = spawn(&process, |process| process.push(MESSAGE));
        process.run();
        join([hands, sender]);
        assert_eq!(process.core(|core| core.taken), 1);
    });
}

// pins: G1, V18
#[test]
fn a_resume_of_another_thread_finds_the_process_wherever_it_is() {
    model::check(2, || {
        let process = Process::new();
        let suspender = spawn(&process, |process| _ = process.suspend().unwrap());
        let resumer = spawn(&process, Process::resume);
        process.push(MESSAGE);
        process.run();
        join([suspender, resumer]);
        process.resume();
        assert_eq!(process.core(|core| core.taken), 1);
    });
}

// pins: P9, V18
#[test]
fn a_terminated_process_ends_once_wherever_it_stands() {
    model::check(3, || {
        let process = Process::new();
        let suspender = spawn(&process, |process| _ = process.suspend());
        let terminator = spawn(&process, Process::terminate);
        process.run();
        join([suspender, terminator]);
        assert_eq!(process.core(|core| core.ends), 1);
        assert!(process.interventions.is_empty());
        assert_eq!(process.suspend(), Err(Unsuspended::Ended));
        assert!(process.interventions.is_empty());
    });
}

// pins: V18
#[test]
fn a_question_is_answered_whether_the_process_stands_or_not() {
    model::check(3, || {
        let process = Process::new();
        let suspender = spawn(&process, |process| _ = process.suspend().unwrap());
        let asker = spawn(&process, Process::ask);
        process.run();
        join([suspender, asker]);
        assert_eq!(process.core(|core| core.answered), 1);
        assert_eq!(process.suspend(), Ok((Suspended::Stands, false)));
    });
}

// pins: V18
#[test]
fn a_stop_leaves_no_process_standing() {
    model::check(3, || {
        let process = Process::new();
        let suspender = spawn(&process, |process| _ = process.suspend());
        let stopper = spawn(&process, Process::stop);
        process.push(MESSAGE);
        process.run();
        join([suspender, stopper]);
        assert_eq!(process.core(|core| core.taken), 1);
        assert!(process.interventions.is_empty());
        assert_eq!(process.suspend(), Err(Unsuspended::Stops));
    });
}

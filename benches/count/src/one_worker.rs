//! A scheduler with a single worker, and its acts.

use crate::act::Act;
use crate::commands::{self, Held};
use crate::spawning::Batch;
use crate::{actors, oneself, pair, sockets, spawning, stream, tasks, timers};
use ganger_net::Net;
use ganger_proc_api::{BoxError, ExitReason, Process, process_fn};
use ganger_sched::{Builder, ProcessHandle, Scheduler};
use std::hint::black_box;

/// A running scheduler with a single worker.
#[derive(Debug)]
pub(crate) struct OneWorker {
    pub(crate) scheduler: Scheduler,
    held: Held,
    /// For processes submitted from outside. The batch lives for ever, so the processes need no
    /// counted reference.
    pub(crate) batch: &'static Batch,
}

impl OneWorker {
    /// Starts a scheduler for all acts but requests over a socket.
    pub(crate) fn new() -> Result<Self, BoxError> {
        Self::by(Scheduler::builder())
    }

    /// Starts a scheduler for this act.
    pub(crate) fn of(act: Act) -> Result<Self, BoxError> {
        match act {
            Act::Socket => Self::by(Scheduler::builder().driver(Net::new()?)),
            _ => Self::new(),
        }
    }

    fn by(builder: Builder) -> Result<Self, BoxError> {
        // Under valgrind each step is long. By a clock that stands still a worker does not find so,
        // and rotates as often as it does elsewhere; the monitor relieves it never.
        let scheduler = builder.workers(1).still_clock().build()?;
        let held = commands::register(&scheduler)?;
        scheduler.start()?;
        let batch = Box::leak(Box::default());
        Ok(Self {
            scheduler,
            held,
            batch,
        })
    }

    /// Repeats an act for this many rounds. Blocks until its last step.
    pub(crate) fn run(&self, act: Act, rounds: u64) -> Result<(), BoxError> {
        if rounds == 0 {
            return Ok(());
        }
        let ran = match act {
            Act::Step => ended(self.submit(stepper(rounds))?),
            Act::Send => pair::by_address(self, pair::Waits::Idle, rounds),
            Act::SendBlocked => pair::by_address(self, pair::Waits::Blocked, rounds),
            Act::SendPid => pair::by_pid(self, rounds),
            Act::SendReady => stream::run(self, stream::By::Address, rounds),
            Act::SendPidReady => stream::run(self, stream::By::Pid, rounds),
            Act::SendRunning => oneself::by_address(self, rounds),
            Act::SendPidRunning => oneself::by_pid(self, rounds),
            Act::Spawn => spawning::chain(self, rounds),
            Act::SpawnOutside => spawning::from_outside(self, rounds),
            Act::Command => commands::run(self, rounds),
            Act::Ask => commands::ask(self, rounds),
            Act::Call => actors::call(self, rounds),
            Act::CallTasks => tasks::call(self, rounds),
            Act::Typed => actors::send(self, rounds),
            Act::TypedTasks => tasks::send(self, rounds),
            Act::Yield => tasks::yields(self, rounds),
            Act::Channel0 => tasks::channel(self, 0, rounds),
            Act::Channel1 => tasks::channel(self, 1, rounds),
            Act::Channel1024 => tasks::channel(self, ROOM, rounds),
            Act::MutexFree => tasks::free_mutex(self, rounds),
            Act::Mutex => tasks::mutex(self, rounds),
            Act::Timer => timers::at_once(self, rounds),
            Act::TimerStep => timers::by_steps(self, rounds),
            Act::Socket => sockets::run(self, rounds),
            Act::Deque => deque(rounds),
            Act::Mailbox => mailbox(rounds),
        };
        // The processes have ended: no answer is expected any more.
        self.held.release();
        ran
    }

    pub(crate) fn submit(&self, process: impl Process) -> Result<ProcessHandle, BoxError> {
        Ok(self.scheduler.submit(process, "main", ())?)
    }
}

/// Waits until a process finishes by itself.
pub(crate) fn ended<M: Send + 'static>(process: ProcessHandle<M>) -> Result<(), BoxError> {
    match process.wait() {
        ExitReason::Done(_) => Ok(()),
        other => Err(format!("a process ended with {other:?}").into()),
    }
}

/// Continues `left` times.
fn stepper(mut left: u64) -> impl Process {
    process_fn(move |_, _, out| {
        match left.checked_sub(1) {
            Some(less) => {
                left = less;
                out.step_again();
            }
            None => out.done(()),
        }
        Ok(())
    })
}

/// The capacity of a channel whose sender is stopped seldom.
pub(crate) const ROOM: usize = 1_024;

/// How many items are pushed before as many are popped.
pub(crate) const DEPTH: u64 = 8;

fn deque(rounds: u64) -> Result<(), BoxError> {
    let worker = ganger_deque::Worker::new();
    for _ in 0..rounds / DEPTH {
        (0..DEPTH).for_each(|item| worker.push(black_box(item)));
        (0..DEPTH).for_each(|_| assert!(black_box(worker.pop()).is_some()));
    }
    Ok(())
}

fn mailbox(rounds: u64) -> Result<(), BoxError> {
    let (sender, receiver) = ganger_mpsc::channel();
    for item in 0..rounds {
        assert!(sender.send(black_box(item)).is_ok());
        assert!(black_box(receiver.try_recv()).is_ok());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ganger_sched::WorkerStats;
    use std::time::Duration;

    fn totals_of(act: Act, rounds: u64) -> WorkerStats {
        let worker = OneWorker::of(act).unwrap();
        worker.run(act, rounds).unwrap();
        worker.scheduler.stats().total
    }

    #[test]
    fn more_rounds_are_so_many_more_steps() {
        const MORE: u64 = 640;
        // Two processes may each be sent to before their first step, or after, and so with their
        // next message.
        const FIRST_STEPS: u64 = 4;
        for &act in Act::ALL {
            let [few, many] = [64, 64 + MORE].map(|rounds| totals_of(act, rounds));
            let steps = match act {
                Act::Deque | Act::Mailbox | Act::MutexFree => 0,
                Act::Timer => MORE / timers::BATCH,
                Act::Call | Act::CallTasks => 2 * MORE,
                // The order of the waits decides, and what the worker finds first.
                Act::Channel0 | Act::Channel1 | Act::Channel1024 | Act::Mutex | Act::Socket => {
                    many.steps - few.steps
                }
                // For 64 messages, a step of the sink and a step of the feeder.
                Act::SendReady | Act::SendPidReady => 2 * MORE / 64,
                Act::Ask => 2 * MORE,
                _ => MORE,
            };
            let more = many.steps - few.steps;
            assert!(more.abs_diff(steps) <= FIRST_STEPS, "{act:?}: {more}");
            let spawned = match act {
                Act::Spawn | Act::SpawnOutside => MORE,
                _ => 0,
            };
            // More at a time than are submitted at once need a second plug.
            let more = many.started - few.started;
            assert!(more.abs_diff(spawned) <= 1, "{act:?}: {more}");
            let yields = match act {
                Act::Command | Act::Ask | Act::Call | Act::CallTasks | Act::TimerStep => MORE,
                _ => 0,
            };
            assert_eq!(many.yields - few.yields, yields, "{act:?}");
        }
    }

    #[test]
    fn a_worker_does_one_act_after_the_other() {
        let worker = OneWorker::of(Act::Socket).unwrap();
        for rounds in [0, 1, 2, 65] {
            for &act in Act::ALL {
                worker.run(act, rounds).unwrap();
            }
        }
        let total = worker.scheduler.stats().total;
        assert_eq!((total.failed, total.panicked), (0, 0));
    }

    #[test]
    fn steps_that_last_long_are_rotated_as_seldom_as_others() {
        const STEPS: u64 = 300;
        let worker = OneWorker::new().unwrap();
        let slow = || {
            let mut left = STEPS;
            process_fn(move |_, _, out| {
                std::thread::sleep(Duration::from_micros(500));
                left -= 1;
                if left > 0 {
                    out.step_again();
                } else {
                    out.done(());
                }
                Ok(())
            })
        };
        let both = [(); 2].map(|()| worker.submit(slow()).unwrap());
        both.into_iter().for_each(|it| ended(it).unwrap());
        let total = worker.scheduler.stats().total;
        assert!(total.steps >= 2 * STEPS);
        assert!(total.rotations < 10, "{} rotations", total.rotations);
    }
}

//! A scheduler with a single worker, and its acts.

use crate::act::Act;
use crate::commands::{self, Held};
use crate::spawning::Batch;
use crate::{oneself, pair, spawning, stream};
use ganger_proc_api::{BoxError, Context, Events, ExitReason, Process, StepOutput, StepResult};
use ganger_sched::{ProcessHandle, Scheduler};
use std::hint::black_box;
use std::time::Duration;

/// A running scheduler with a single worker.
#[derive(Debug)]
pub struct OneWorker {
    pub(crate) scheduler: Scheduler,
    held: Held,
    /// For processes submitted from outside. The batch lives for ever, so that they need no counted
    /// reference.
    pub(crate) batch: &'static Batch,
}

impl OneWorker {
    /// Starts it.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn new() -> Result<Self, BoxError> {
        // Under valgrind each step is long. Without a limit in time, a worker does not find so, and
        // rotates as often as it does elsewhere.
        let builder = Scheduler::builder().workers(1);
        let scheduler = builder.chain_limit(Duration::MAX).build()?;
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
    ///
    /// # Errors
    /// When the scheduler refuses something.
    ///
    /// # Panics
    /// When something is lost on the way.
    pub fn run(&self, act: Act, rounds: u64) -> Result<(), BoxError> {
        if rounds == 0 {
            return Ok(());
        }
        let ran = match act {
            Act::Step => ended(self.submit(Stepper { left: rounds })?),
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
            Act::Deque => {
                deque(rounds);
                Ok(())
            }
            Act::Mailbox => {
                mailbox(rounds);
                Ok(())
            }
        };
        // The processes have ended: no answer is expected any more.
        self.held.release();
        ran
    }

    pub(crate) fn submit(&self, process: impl Process) -> Result<ProcessHandle, BoxError> {
        Ok(self.scheduler.submit(process, "main", ())?)
    }
}

/// Waits for the end of a process that finishes by itself.
pub(crate) fn ended(process: ProcessHandle) -> Result<(), BoxError> {
    match process.wait() {
        ExitReason::Done(_) => Ok(()),
        other => Err(format!("a process ended with {other:?}").into()),
    }
}

/// Continues that often.
struct Stepper {
    left: u64,
}

impl Process for Stepper {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                out.step_again();
            }
            None => out.done(()),
        }
        Ok(())
    }
}

/// How many items are pushed before as many are popped.
pub(crate) const DEPTH: u64 = 8;

fn deque(rounds: u64) {
    let worker = ganger_deque::Worker::new();
    for _ in 0..rounds / DEPTH {
        (0..DEPTH).for_each(|item| worker.push(black_box(item)));
        (0..DEPTH).for_each(|_| assert!(black_box(worker.pop()).is_some()));
    }
}

fn mailbox(rounds: u64) {
    let (sender, receiver) = ganger_mpsc::channel();
    for item in 0..rounds {
        assert!(sender.send(black_box(item)).is_ok());
        assert!(black_box(receiver.try_recv()).is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ganger_sched::WorkerStats;

    fn totals_of(act: Act, rounds: u64) -> WorkerStats {
        let worker = OneWorker::new().unwrap();
        worker.run(act, rounds).unwrap();
        worker.scheduler.stats().total
    }

    #[test]
    fn more_rounds_are_so_many_more_steps() {
        const MORE: u64 = 640;
        // A process may be sent to before its first step, or after.
        const FIRST_STEPS: u64 = 2;
        for act in Act::ALL {
            let [few, many] = [64, 64 + MORE].map(|rounds| totals_of(act, rounds));
            let steps = match act {
                Act::Deque | Act::Mailbox => 0,
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
                Act::Command | Act::Ask => MORE,
                _ => 0,
            };
            assert_eq!(many.yields - few.yields, yields, "{act:?}");
        }
    }

    #[test]
    fn a_worker_does_one_act_after_the_other() {
        let worker = OneWorker::new().unwrap();
        for rounds in [0, 1, 2, 65] {
            for act in Act::ALL {
                worker.run(act, rounds).unwrap();
            }
        }
        let total = worker.scheduler.stats().total;
        assert_eq!((total.failed, total.panicked), (0, 0));
    }
}

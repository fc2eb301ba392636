//! A worker without a thread: what it would do is done one move at a time, when it is told to.
//!
//! The moves are the worker's own: a look at the queues; what follows one that has found something; a turn;
//! the announcement that it sleeps; the look after that. Between any two of them others may move. What a
//! worker does within one is not interrupted: for that there are the models under loom.

use super::{Looked, Worker};
use crate::contain::contain;
use crate::idle::Woken;
use crate::local::{self, LocalQueue};
use crate::run::Runner;
use crate::sim::Did;
use crate::token::Token;

/// Where a worker is between two moves.
enum Phase {
    /// It looks for a process, after so many looks that found none.
    Looks(u32),
    /// It has found one, and nobody knows yet that it searches no more.
    Found(Token),
    /// It is about to run it.
    Runs(Token),
    /// It has looked often enough, and is about to announce that it sleeps.
    Tired,
    /// It has announced that it sleeps.
    Announced,
    Sleeps,
    /// The scheduler has halted.
    Gone,
}

pub(crate) struct Simulated<'a> {
    queue: &'a LocalQueue,
    worker: Worker<'a>,
    runner: Runner<'a>,
    phase: Phase,
}

impl<'a> Simulated<'a> {
    pub(crate) fn new(queue: &'a LocalQueue) -> Self {
        let mut worker = Worker::new(queue);
        worker.look_on();
        queue.shared.check.begin_pick(queue.index);
        Self {
            queue,
            worker,
            runner: Runner::new(&queue.shared, Some(queue)),
            phase: Phase::Looks(0),
        }
    }

    /// Whether it has a move: it neither sleeps without a wake-up, nor has it left.
    pub(crate) fn can_move(&self) -> bool {
        match self.phase {
            Phase::Sleeps => self.queue.shared.idle.parker(self.queue.index).has_token(),
            Phase::Gone => false,
            _ => true,
        }
    }

    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.phase, Phase::Gone)
    }

    /// Its next move.
    pub(crate) fn advance(&mut self) -> Did {
        let queue = self.queue;
        let mut did = Did::Nothing;
        local::enter(queue, || did = self.advance_inside());
        did
    }

    fn advance_inside(&mut self) -> Did {
        let (index, shared) = (self.queue.index, &self.queue.shared);
        match std::mem::replace(&mut self.phase, Phase::Gone) {
            Phase::Looks(mut empty) => match self.worker.look_once(&mut empty) {
                Looked::Found(token) => {
                    let did = Did::Found(token.cell().pid);
                    self.phase = Phase::Found(token);
                    did
                }
                Looked::Nothing(super::Rest::Spin | super::Rest::Yield) => {
                    self.phase = Phase::Looks(empty);
                    Did::Looked
                }
                Looked::Nothing(super::Rest::Sleep) => {
                    self.phase = Phase::Tired;
                    Did::Looked
                }
                Looked::Halted => {
                    self.worker.found();
                    shared.check.end_pick(index);
                    Did::Left
                }
            },
            Phase::Found(token) => {
                self.worker.take_up();
                let did = Did::TookUp(token.cell().pid);
                self.phase = Phase::Runs(token);
                did
            }
            Phase::Runs(token) => {
                let did = Did::Ran(token.cell().pid);
                if contain(|| self.runner.run(token)).is_err() {
                    self.worker.counters.panics.bump();
                    self.runner = Runner::new(&self.queue.shared, Some(self.queue));
                }
                shared.check.begin_pick(index);
                self.phase = Phase::Looks(0);
                did
            }
            Phase::Tired => {
                self.worker.counters.sleeps.bump();
                let searching = std::mem::take(&mut self.worker.searching);
                shared.idle.announce(index, searching);
                self.phase = Phase::Announced;
                Did::Announced
            }
            Phase::Announced => {
                let is_stopping = || shared.shutdown.is_halted();
                let again = shared
                    .idle
                    .look_again(index, is_stopping, || shared.has_work());
                if let Some(withdrawn) = again {
                    self.worker.wake_up(withdrawn);
                    self.phase = Phase::Looks(0);
                    return Did::Withdrew;
                }
                self.worker.fall_asleep();
                self.phase = Phase::Sleeps;
                Did::FellAsleep
            }
            Phase::Sleeps => {
                let parker = shared.idle.parker(index);
                if !parker.has_token() {
                    self.phase = Phase::Sleeps;
                    return Did::Nothing;
                }
                parker.park();
                self.worker.wake_up(Woken::Notified);
                self.phase = Phase::Looks(0);
                Did::Woke
            }
            Phase::Gone => Did::Nothing,
        }
    }

    /// Gives up what it kept for later processes.
    pub(crate) fn leave(self) {
        drop(self.runner);
        self.queue.cache.take().leave(&self.queue.shared.pool);
    }
}

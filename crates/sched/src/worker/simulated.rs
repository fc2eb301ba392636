//! A worker without a thread, which does one move at a time, on request.
//!
//! The moves are the worker's own: a look at the queues; the announcement of a found process; a
//! turn; the announcement of its sleep; the look after it. Between two moves other actors may move.
//! A move is not interrupted: this is left to the models under loom.

use super::{Looked, Worker};
use crate::base::clock::Clock;
use crate::probe::{Decide, Decider, Probe};
use crate::queues::idle::Woken;
use crate::runtime::local::{self, LocalQueue};
use crate::runtime::spares::Next;
use crate::runtime::token::Token;
use crate::runtime::turns::Running;
use crate::sim::moves::{BLOCK, Did, SetClock};
use crate::turn::run::Runner;
use ganger_deque::Worker as Deque;
use std::time::Duration;

/// Where a worker is between two moves.
enum Phase<'a> {
    /// The worker looks for a process, after this many empty looks.
    Looks(u32),
    /// The worker has found a process, and no other worker knows yet that it searches no more.
    Found(Token),
    /// The worker is about to run the process.
    Runs(Token),
    /// The step has begun, and blocks the thread until then; as the reports say.
    Blocks(Token, Duration, Running<'a>),
    /// Its place has been taken.
    Relieved,
    /// The worker waits until it is needed, or until this time.
    OffDuty(Duration),
    /// No process has needed the worker for so long that its thread is about to end.
    Retires,
    /// The worker has looked often enough, and is about to announce its sleep.
    Tired,
    /// The worker has announced its sleep.
    Announced,
    /// The worker sleeps; a timer waiter until a moment, or as a fault until an earlier time.
    Sleeps(Option<(u64, Duration)>),
    /// The scheduler has halted, or the thread has ended.
    Gone,
}

pub(crate) struct Simulated<'a> {
    queue: &'a LocalQueue,
    worker: Worker<'a>,
    runner: Runner<'a>,
    phase: Phase<'a>,
    clock: SetClock,
}

impl<'a> Simulated<'a> {
    pub(crate) fn new(queue: &'a LocalQueue, clock: SetClock) -> Self {
        let mut worker = Worker::new(queue);
        worker.mark_searching();
        queue.shared.probe.looking(queue.index);
        Self {
            queue,
            worker,
            runner: Runner::new(&queue.shared, Some(queue)),
            phase: Phase::Looks(0),
            clock,
        }
    }

    /// Returns when the worker has a move by itself: until when its step blocks, or it waits to be
    /// needed.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        match self.phase {
            Phase::Blocks(_, until, _) | Phase::OffDuty(until) => Some(until),
            Phase::Sleeps(until) => until.map(|(_, wakes)| wakes),
            _ => None,
        }
    }

    /// Returns whether the worker has a move: it neither sleeps without a wake-up, nor has it left.
    pub(crate) fn can_move(&self) -> bool {
        match self.phase {
            Phase::Sleeps(until) => {
                let parker = self.queue.shared.queues.idle.parker(self.queue.index);
                parker.has_token() || self.is_over(until)
            }
            Phase::Blocks(_, until, _) => self.clock.now() >= until,
            Phase::OffDuty(until) => {
                let shared = &self.queue.shared;
                let is_needed = shared.worker_slots.is_active(self.queue.index);
                is_needed || shared.shutdown.is_halted() || self.clock.now() >= until
            }
            Phase::Gone => false,
            _ => true,
        }
    }

    /// Returns whether the worker sleeps, is an unneeded spare, or has left.
    pub(crate) fn sleeps(&self) -> bool {
        matches!(
            self.phase,
            Phase::Sleeps(_) | Phase::OffDuty(_) | Phase::Gone
        )
    }

    /// Returns when the system wakes a timer waiter that sleeps until `until`.
    fn wakes(&self, until: u64) -> Duration {
        let until = Duration::from_nanos(until);
        let now = self.clock.now();
        if until > now && Decider::happens("timer waiter wakes early") {
            now + (until - now) / 2
        } else {
            until
        }
    }

    /// Returns whether the time has come.
    fn is_over(&self, until: Option<(u64, Duration)>) -> bool {
        until.is_some_and(|(_, wakes)| wakes <= self.clock.now())
    }

    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.phase, Phase::Gone)
    }

    /// Makes the worker's next move.
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
                    let did = Did::Found(token.cell().pid());
                    self.phase = Phase::Found(token);
                    did
                }
                Looked::Nothing(super::Backoff::Spin | super::Backoff::Yield) => {
                    self.search_again(empty);
                    Did::Looked
                }
                Looked::Nothing(super::Backoff::Sleep) => {
                    self.phase = Phase::Tired;
                    Did::Looked
                }
                Looked::Halted => {
                    self.worker.end_search();
                    shared.probe.settled(index);
                    Did::Left
                }
            },
            Phase::Found(token) => {
                self.worker.announce_found();
                let did = Did::TookUp(token.cell().pid());
                self.phase = Phase::Runs(token);
                did
            }
            Phase::Runs(token) if Decider::happens("step blocks") => {
                let micros = usize::try_from(BLOCK.as_micros()).unwrap_or(usize::MAX);
                let time =
                    Duration::from_micros(Decider::choose("user", micros).unwrap_or(0) as u64);
                let pid = token.cell().pid();
                self.worker.counters.turns.bump();
                let running = self.queue.shared.census.turns.begin(Some(index), pid);
                let until = self.clock.now().saturating_add(time);
                self.phase = Phase::Blocks(token, until, running);
                Did::Blocked(pid)
            }
            Phase::Blocks(token, until, running) if self.clock.now() < until => {
                self.phase = Phase::Blocks(token, until, running);
                Did::Nothing
            }
            Phase::Blocks(token, _, running) => {
                drop(running);
                // The turn is counted again when it continues.
                self.worker.counters.turns.take_back();
                self.run(token)
            }
            Phase::Runs(token) => self.run(token),
            Phase::Relieved => {
                shared.reporting.long_steps.end(index);
                self.worker.give_away();
                shared.worker_slots.mark_spare(index);
                let until = self.clock.now().saturating_add(shared.config.keep_spares);
                self.phase = Phase::OffDuty(until);
                Did::StoodDown
            }
            Phase::OffDuty(until) => {
                // After the halt every worker looks once more.
                let is_needed = shared.worker_slots.is_active(index)
                    || shared.shutdown.is_halted() && shared.worker_slots.take_waiting(index);
                if !is_needed {
                    let is_over =
                        self.clock.now() >= until && shared.worker_slots.take_waiting(index);
                    if is_over {
                        self.worker.come_back(Next::Leave);
                        self.phase = Phase::Retires;
                    } else {
                        self.phase = Phase::OffDuty(until);
                    }
                    return Did::Nothing;
                }
                self.worker.come_back(Next::Active);
                self.phase = Phase::Looks(0);
                Did::CameBack
            }
            Phase::Retires => {
                self.queue.cache.take().leave(&shared.census.pool);
                // The next owner of the slot continues with its own deque.
                shared.worker_slots.leave(index, Deque::new());
                Did::Retired
            }
            Phase::Tired => {
                self.worker.counters.sleeps.bump();
                let searching = std::mem::take(&mut self.worker.searching);
                shared.queues.idle.announce(index, searching);
                self.phase = Phase::Announced;
                Did::Announced
            }
            Phase::Announced => {
                let is_stopping =
                    || shared.shutdown.is_halted() || shared.worker_slots.is_replaced(index);
                if shared
                    .queues
                    .idle
                    .look_again(index, is_stopping, || shared.has_work())
                {
                    self.worker.wake_up(Woken::Withdrawn, None);
                    self.search_again(0);
                    return Did::Withdrew;
                }
                let until = self.worker.claim_timer_wait();
                let until = until.map(|until| (until, self.wakes(until)));
                self.worker.fall_asleep();
                self.phase = Phase::Sleeps(until);
                Did::FellAsleep
            }
            Phase::Sleeps(until) => {
                let parker = shared.queues.idle.parker(index);
                if parker.has_token() {
                    parker.park();
                } else if self.is_over(until) {
                    shared.queues.idle.wake_oneself(index);
                } else {
                    self.phase = Phase::Sleeps(until);
                    return Did::Nothing;
                }
                self.worker
                    .wake_up(Woken::Notified, until.map(|(until, _)| until));
                self.search_again(0);
                Did::Woke
            }
            Phase::Gone => Did::Nothing,
        }
    }

    /// Runs a turn.
    fn run(&mut self, token: Token) -> Did {
        let did = Did::Ran(token.cell().pid());
        self.runner.run(token);
        self.queue.shared.probe.looking(self.queue.index);
        self.phase = if self.has_to_stand_down() {
            Phase::Relieved
        } else {
            Phase::Looks(0)
        };
        did
    }

    /// Looks again after this many empty looks, when the worker has rested, unless it must stand
    /// down.
    fn search_again(&mut self, empty: u32) {
        if !self.has_to_stand_down() {
            self.phase = Phase::Looks(empty);
            return;
        }
        let shared = &self.queue.shared;
        if std::mem::take(&mut self.worker.searching) {
            shared.queues.idle.end_search(|| shared.owes_a_look());
        }
        self.phase = Phase::Relieved;
    }

    /// Returns whether a spare has taken the worker's place. After the halt every worker goes on
    /// until nothing is left.
    fn has_to_stand_down(&self) -> bool {
        let shared = &self.queue.shared;
        shared.worker_slots.is_replaced(self.queue.index) && !shared.shutdown.is_halted()
    }

    /// Drops the cache for later processes.
    pub(crate) fn leave(self) {
        drop(self.runner);
        self.queue
            .cache
            .take()
            .leave(&self.queue.shared.census.pool);
    }
}

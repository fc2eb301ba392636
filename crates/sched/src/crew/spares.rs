//! Spare threads: which wait, which slots are free, and who takes whose place. All of it is under one lock.

use super::{Crew, Relief};
use crate::clock::Since;
use crate::reports::Line;
use crate::token::Token;
use ganger_deque::Worker as Deque;
use ganger_sync::atomic::Ordering;
use ganger_sync::sync::lock;
use std::io;
use std::time::Duration;

#[derive(Default)]
pub(super) struct Spares {
    /// Threads that wait.
    pub(super) waiting: Vec<usize>,
    /// Slots without a thread, the next one last.
    pub(super) free: Vec<(usize, Deque<Token>)>,
    /// How many threads there are that wait or are on duty in a worker's place.
    pub(super) threads: usize,
    /// When it was said last that nobody was left when somebody was needed.
    pub(super) warned: Option<Since>,
}

/// What a spare does next.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It is needed.
    OnDuty,
    /// It ends: it has not been needed for a while, or the scheduler has halted.
    Leave,
}

/// Why nobody can take a worker's place.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoSpare {
    #[error(
        "there are as many spare threads as there may be; raise `max_spares`, or block elsewhere"
    )]
    Limit,
    #[error("the system refuses another thread: {0}")]
    System(io::Error),
}

/// What has come of starting a thread: the deque comes back with the system's refusal.
pub(crate) type Hired = Result<(), (io::Error, Deque<Token>)>;

impl Crew {
    /// How many threads there are beyond the workers that were asked for.
    pub(crate) fn spares(&self) -> usize {
        lock(&self.spares).threads
    }

    /// Gives the slots of spares their deques.
    pub(crate) fn set_free(&self, deques: impl DoubleEndedIterator<Item = (usize, Deque<Token>)>) {
        lock(&self.spares).free.extend(deques.rev());
    }

    /// Whether the worker may block for as long as it likes: somebody has taken its place, or a spare
    /// is left that can.
    pub(crate) fn has_relief(&self, index: usize) -> bool {
        let spares = lock(&self.spares);
        self.is_relieved(index) || !spares.waiting.is_empty() || !spares.free.is_empty()
    }

    /// Whether a spare is left.
    #[cfg(feature = "sim")]
    pub(crate) fn has_spare(&self) -> bool {
        let spares = lock(&self.spares);
        !spares.waiting.is_empty() || !spares.free.is_empty()
    }

    /// Puts a spare on duty in the place of a worker, which stands down after its step; the spare
    /// reports why, if somebody gives a reason that is worth a line. Returns whether the worker has been relieved by this.
    ///
    /// `hire` starts a thread, when none waits; `note` has the reason before the worker can know, and say that
    /// the step is over. Both are called under the lock.
    pub(crate) fn replace(
        &self,
        index: usize,
        relief: Option<Relief>,
        hire: impl FnOnce(usize, Deque<Token>) -> Hired,
        note: impl FnOnce(Relief),
    ) -> Result<bool, NoSpare> {
        let mut spares = lock(&self.spares);
        let slot = &self.slots[index];
        // By now it may have been relieved by somebody else, and have stood down, or be about to leave.
        if slot.calls.is_relieved() || !self.is_on_duty(index) {
            return Ok(false);
        }
        let next = self.call_spare(&mut spares, index, relief.as_ref(), hire)?;
        relief.map(note);
        slot.calls.relieve();
        // Ordering: Relaxed: the lock orders it; a thread that is there has entered before its first turn.
        let thread = slot.thread.load(Ordering::Relaxed);
        if let Some(pins) = self.pins.as_ref().filter(|_| thread != 0) {
            pins.release(thread);
        }
        // Ordering: Release pairs with the Acquire in `is_on_duty`.
        self.slots[next].on_duty.store(true, Ordering::Release);
        drop(spares);
        self.slots[next].parker.unpark();
        Ok(true)
    }

    /// Whether it is to be said that nobody was left, which it is once in each interval.
    pub(super) fn has_to_warn(&self, interval: Duration) -> bool {
        let mut spares = lock(&self.spares);
        let is_due = spares.warned.is_none_or(|at| at.elapsed() >= interval);
        if is_due {
            spares.warned = Some(Since::before(Duration::ZERO));
        }
        is_due
    }

    /// A relieved worker, whose deque is empty, waits until it is needed, for as long as `keep`.
    pub(crate) fn stand_down(
        &self,
        index: usize,
        keep: Duration,
        is_halted: impl Fn() -> bool,
    ) -> Next {
        let slot = &self.slots[index];
        self.step_back(index);
        loop {
            if self.is_on_duty(index) {
                self.pin(index);
                return Next::OnDuty;
            }
            let is_needed = is_halted() || slot.parker.park_timeout(keep);
            if is_needed && !is_halted() {
                continue;
            }
            // Whoever else has taken it out has put it on duty.
            if self.wait_no_more(index) {
                // After the halt everybody looks once more: what it has given away when it stood down
                // may have nobody else.
                return if is_halted() {
                    Next::OnDuty
                } else {
                    Next::Leave
                };
            }
        }
    }

    /// A relieved worker waits from now on.
    pub(crate) fn step_back(&self, index: usize) {
        let slot = &self.slots[index];
        let mut spares = lock(&self.spares);
        // Ordering: Relaxed: the lock orders it.
        slot.on_duty.store(false, Ordering::Relaxed);
        slot.calls.stand_down();
        spares.waiting.push(index);
    }

    /// Whether it stands for one of the workers that were asked for, or one that waited has been put on duty.
    pub(crate) fn is_on_duty(&self, index: usize) -> bool {
        // Ordering: Acquire pairs with the Release in `replace`.
        self.slots[index].on_duty.load(Ordering::Acquire)
    }

    /// Takes one out that waits; `false` when it does not.
    pub(crate) fn wait_no_more(&self, index: usize) -> bool {
        let mut spares = lock(&self.spares);
        let place = spares.waiting.iter().position(|&it| it == index);
        place.map(|place| spares.waiting.remove(place)).is_some()
    }

    /// The thread of that slot has ended: another may have it.
    pub(crate) fn leave(&self, index: usize, deque: Deque<Token>) {
        let mut spares = lock(&self.spares);
        spares.threads -= 1;
        spares.free.push((index, deque));
    }

    /// A thread that waits, or a new one, for the place of that worker, which is to report that.
    fn call_spare(
        &self,
        spares: &mut Spares,
        relieved: usize,
        relief: Option<&Relief>,
        hire: impl FnOnce(usize, Deque<Token>) -> Hired,
    ) -> Result<usize, NoSpare> {
        let place = self.place(relieved);
        let give = |next: usize| {
            // Ordering: Relaxed, as in `place`.
            self.slots[next].place.store(place, Ordering::Relaxed);
            let told = relief.filter(|relief| relief.line != Line::Suppress);
            *lock(&self.slots[next].report) = told.cloned();
        };
        if let Some(next) = spares.waiting.pop() {
            give(next);
            return Ok(next);
        }
        let (index, deque) = spares.free.pop().ok_or(NoSpare::Limit)?;
        // Before there is a thread, which looks for its report as soon as it runs.
        give(index);
        // Ordering: Relaxed, as in `used`: thieves look at its deque from now on.
        self.used.fetch_max(index + 1, Ordering::Relaxed);
        match hire(index, deque) {
            Ok(()) => {
                spares.threads += 1;
                Ok(index)
            }
            Err((error, deque)) => {
                *lock(&self.slots[index].report) = None;
                spares.free.push((index, deque));
                Err(NoSpare::System(error))
            }
        }
    }

    /// The places of all that are on duty at one moment.
    #[cfg(test)]
    pub(crate) fn places(&self) -> Vec<usize> {
        let _spares = lock(&self.spares);
        (0..self.used())
            .filter(|&index| self.is_on_duty(index) && !self.is_relieved(index))
            .map(|index| self.place(index))
            .collect()
    }

    /// Lets spares see that the scheduler has halted.
    pub(crate) fn wake_all(&self) {
        let waiting = lock(&self.spares).waiting.clone();
        for index in waiting {
            self.slots[index].parker.unpark();
        }
    }
}

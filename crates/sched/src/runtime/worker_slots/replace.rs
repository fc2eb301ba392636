//! How a spare thread takes the place of a worker, and waits when the worker has it back.

use crate::reports::queue::NoSpare;
use crate::runtime::spares::{Next, Spares, Spawned};
use crate::runtime::token::Token;
use crate::runtime::worker_slots::WorkerSlots;
use ganger_deque::Worker as Deque;
use ganger_sync::atomic::Ordering;
use ganger_sync::sync::lock;
use std::time::Duration;

impl WorkerSlots {
    /// Returns the number of threads beyond the configured workers.
    pub(crate) fn spares(&self) -> usize {
        lock(&self.spares).threads
    }

    /// Gives the slots of spares their deques.
    pub(crate) fn set_free(&self, deques: impl DoubleEndedIterator<Item = (usize, Deque<Token>)>) {
        lock(&self.spares).free.extend(deques.rev());
    }

    /// Returns whether the worker may block for as long as it likes: a spare has taken its place,
    /// or can.
    pub(crate) fn can_replace(&self, index: usize) -> bool {
        self.has_spare() || self.is_replaced(index)
    }

    /// Returns whether a spare is left.
    pub(crate) fn has_spare(&self) -> bool {
        let spares = lock(&self.spares);
        !spares.waiting.is_empty() || !spares.free.is_empty()
    }

    /// Puts a spare in the place of a worker, which retires after its step. Returns whether this
    /// call has replaced the worker.
    ///
    /// `spawn` starts a thread when none waits. `note` runs before the worker can know, and so
    /// before it can report the end of its step. Both run under the lock.
    pub(crate) fn replace(
        &self,
        index: usize,
        spawn: impl FnOnce(usize, Deque<Token>) -> Spawned,
        note: impl FnOnce(),
    ) -> Result<bool, NoSpare> {
        let mut spares = lock(&self.spares);
        let slot = &self.slots[index];
        // Another thread may have replaced the worker. The worker may have retired since, or be
        // about to leave.
        if slot.is_replaced() || !self.is_active(index) {
            return Ok(false);
        }
        let next = self.call_spare(&mut spares, index, spawn)?;
        note();
        // Ordering: Relaxed: the lock orders it; for the worker see `is_replaced`.
        slot.is_replaced.store(true, Ordering::Relaxed);
        // Ordering: Relaxed: the lock orders it; a thread has entered before its first turn.
        let thread = slot.thread.load(Ordering::Relaxed);
        if let Some(pins) = self.pins.as_ref().filter(|_| thread != 0) {
            pins.release(thread);
        }
        // Ordering: Release pairs with the Acquire in `is_active`.
        self.slots[next].is_active.store(true, Ordering::Release);
        drop(spares);
        self.slots[next].parker.unpark();
        Ok(true)
    }

    /// Waits on a replaced worker, whose deque is empty, until it is needed, for as long as `keep`.
    pub(crate) fn retire(
        &self,
        index: usize,
        keep: Duration,
        is_halted: impl Fn() -> bool,
    ) -> Next {
        let slot = &self.slots[index];
        self.mark_spare(index);
        loop {
            if self.is_active(index) {
                self.pin(index);
                return Next::Active;
            }
            let is_needed = is_halted() || slot.parker.park_timeout(keep);
            if is_needed && !is_halted() {
                continue;
            }
            // A thread that has taken this spare out has made it active.
            if self.take_waiting(index) {
                // After the halt each worker looks once more: this worker may be the last, with its
                // deque's processes in the global queue.
                return if is_halted() {
                    Next::Active
                } else {
                    Next::Leave
                };
            }
        }
    }

    /// Marks a replaced worker as waiting from now on.
    pub(crate) fn mark_spare(&self, index: usize) {
        let slot = &self.slots[index];
        let mut spares = lock(&self.spares);
        // Ordering: Relaxed: the lock orders both.
        slot.is_active.store(false, Ordering::Relaxed);
        slot.is_replaced.store(false, Ordering::Relaxed);
        spares.waiting.push(index);
    }

    /// Returns whether the slot stands for a configured worker, or did until the worker was
    /// replaced.
    pub(crate) fn is_active(&self, index: usize) -> bool {
        // Ordering: Acquire pairs with the Release in `replace`.
        self.slots[index].is_active.load(Ordering::Acquire)
    }

    /// Takes a waiting spare out; `false` when it does not wait.
    pub(crate) fn take_waiting(&self, index: usize) -> bool {
        let mut spares = lock(&self.spares);
        let place = spares.waiting.iter().position(|&it| it == index);
        place.map(|place| spares.waiting.remove(place)).is_some()
    }

    /// Frees the slot, whose thread has ended.
    pub(crate) fn leave(&self, index: usize, deque: Deque<Token>) {
        let mut spares = lock(&self.spares);
        spares.threads -= 1;
        spares.free.push((index, deque));
    }

    /// Calls a waiting thread, or starts another, for the place of the worker.
    fn call_spare(
        &self,
        spares: &mut Spares,
        replaced: usize,
        spawn: impl FnOnce(usize, Deque<Token>) -> Spawned,
    ) -> Result<usize, NoSpare> {
        let place = self.place(replaced);
        let give_place = |next: usize| {
            // Ordering: Relaxed: the thread reads it after its start, or after the Release of
            // `is_active`.
            self.slots[next].place.store(place, Ordering::Relaxed);
        };
        if let Some(next) = spares.waiting.pop() {
            give_place(next);
            return Ok(next);
        }
        let (index, deque) = spares.free.pop().ok_or(NoSpare::Limit)?;
        // Before the start of the thread, which pins itself as soon as it runs.
        give_place(index);
        // Ordering: Relaxed: see `used`; thieves look at its deque from now on.
        self.used.fetch_max(index + 1, Ordering::Relaxed);
        match spawn(index, deque) {
            Ok(()) => {
                spares.threads += 1;
                Ok(index)
            }
            Err((error, deque)) => {
                spares.free.push((index, deque));
                Err(NoSpare::System(error))
            }
        }
    }

    /// Returns the places of all workers active at this moment.
    #[cfg(test)]
    pub(crate) fn places(&self) -> Vec<usize> {
        let _spares = lock(&self.spares);
        (0..self.used())
            .filter(|&index| self.is_active(index) && !self.is_replaced(index))
            .map(|index| self.place(index))
            .collect()
    }

    /// Wakes the spares, for them to see the scheduler's halt.
    pub(crate) fn wake_all(&self) {
        let waiting = lock(&self.spares).waiting.clone();
        for index in waiting {
            self.slots[index].parker.unpark();
        }
    }
}

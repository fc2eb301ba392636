//! Where jobs for any worker come in, under a lock of its own.
//!
//! **Problem.** Callers bring jobs while workers take others. All of them share what is under the
//! lock, so it is little, and most jobs touch nothing else.
//!
//! **Protocol.** In a pool whose workers all run, and whose only rule is the order of the calls:
//!
//! 1. A caller adds a job to the inbox, and takes the worker out that has been idle for longest,
//!    in a single critical section. Afterwards it wakes that worker.
//! 2. A worker takes the first job out of the inbox, while the inbox says that this is all: no job
//!    waits in a line, no rule holds jobs back, and the pool is not stopping.
//! 3. All other acts of the queue hold both locks, first that of the lines. An act that looks at
//!    waiting jobs first moves the inbox into the common line. Each of them notes at its end
//!    whether the inbox is all again.
//!
//! No wake-up is lost: a worker finds no job and becomes idle in the same critical section.
//!
//! **A thread that finds the lock taken stays away for a moment.** Meanwhile the owner passes the
//! lock several times, with all of its memory at hand. If each thread waits for the other's next
//! release, every job moves that memory twice. With two threads and empty jobs, the median run
//! takes 0.3 to 0.9 times as long, by how far the processors are apart.
//!
//! **Both lines come at once, and the next job ahead of its turn.** The fields for callers are in
//! the line of the lock, workers fetch the second line together with it, and a worker that takes a
//! job has the next one fetched. With two threads and empty jobs, a run takes 0.87 times as long.
//!
//! With two threads and empty jobs, one lock for all state took 1.4 to 2 times as long; a lock of
//! callers beside one of workers 1.2 to 1.8 times, because the workers waited for each other.

use super::line::Line;
use crate::pool::entry::{Entry, Queued};
use ganger_sync::hint;
use ganger_sync::sync::{Mutex, MutexGuard, lock};
use std::collections::VecDeque;
use std::ptr;
use std::task::Waker;

/// A moment, in pauses of the processor: a few microseconds.
const AWAY: u32 = 128;

/// The number of bytes of a cache line.
const LINE: usize = 64;

/// Locks the inbox for a caller or a worker with a job.
#[inline]
pub(super) fn pass<J, A>(inbox: &Mutex<Inbox<J, A>>) -> MutexGuard<'_, Inbox<J, A>> {
    inbox.try_lock().unwrap_or_else(|_| pass_later(inbox))
}

/// Locks the inbox as [`pass`] does, for a worker, which uses the second cache line as well.
#[inline]
pub(super) fn pass_worker<J, A>(inbox: &Mutex<Inbox<J, A>>) -> MutexGuard<'_, Inbox<J, A>> {
    let second = ptr::from_ref(inbox).cast::<u8>().wrapping_add(LINE);
    hint::prefetch_for_write(second);
    pass(inbox)
}

#[cold]
fn pass_later<J, A>(inbox: &Mutex<Inbox<J, A>>) -> MutexGuard<'_, Inbox<J, A>> {
    (0..AWAY).for_each(|_| hint::spin_loop());
    lock(inbox)
}

/// The fields up to `has_idle` are all that callers use, and in one cache line with the lock.
#[repr(C)]
pub(super) struct Inbox<J, A> {
    /// The next job gets this number.
    pub(super) admitted: u64,
    /// Jobs that are in no line yet.
    pub(super) jobs: Line<J, A>,
    /// Whether callers add jobs. The field changes under both locks, as does the next.
    pub(super) is_open: bool,
    /// Whether workers take their jobs here, without a look at the lines.
    pub(super) is_direct: bool,
    /// Whether a worker may be idle.
    pub(super) has_idle: bool,
    /// How many jobs are in the hands of workers.
    pub(super) in_flight: usize,
    /// How many were taken here and completed.
    pub(super) served: u64,
    /// Idle workers with their wakers, from the longest wait to the shortest: at most as many as
    /// the pool has. A `WaitTable` would need a key in each slot.
    pub(super) idle: VecDeque<(usize, Waker)>,
}

impl<J, A> Inbox<J, A> {
    pub(super) fn new() -> Self {
        Self {
            admitted: 0,
            jobs: Line::new(),
            is_open: false,
            is_direct: false,
            has_idle: false,
            in_flight: 0,
            served: 0,
            idle: VecDeque::new(),
        }
    }

    /// Gives a job its number.
    #[inline]
    pub(super) fn number(&mut self, entry: &mut Entry<J, A>) {
        entry.number = self.admitted;
        self.admitted += 1;
    }

    /// Adds a job for any worker, and returns the waker of a worker that is idle. Gives the job
    /// back if the inbox is closed.
    #[inline]
    pub(super) fn add(&mut self, mut entry: Queued<J, A>) -> Result<Option<Waker>, Queued<J, A>> {
        if !self.is_open {
            return Err(entry);
        }
        self.number(&mut entry);
        self.jobs.push_back(entry);
        if !self.has_idle {
            return Ok(None);
        }
        let waker = self.first_idle();
        self.has_idle = !self.idle.is_empty();
        Ok(waker)
    }

    /// Takes the first job out.
    #[inline]
    pub(super) fn begin_first(&mut self) -> Option<Queued<J, A>> {
        let entry = self.jobs.pop_front()?;
        self.in_flight += 1;
        if let Some(next) = self.jobs.first() {
            // Mostly the same worker takes it, and finds the caller's memory here then.
            let next = ptr::from_ref(next);
            hint::prefetch_for_write(next);
            hint::prefetch_for_write(next.cast::<u8>().wrapping_add(LINE));
        }
        Some(entry)
    }

    /// Counts a job that a worker has completed.
    #[inline]
    pub(super) fn count_served(&mut self) {
        self.in_flight -= 1;
        self.served += 1;
    }

    /// Takes the waker of the worker that has been idle for longest.
    #[inline]
    pub(super) fn first_idle(&mut self) -> Option<Waker> {
        self.idle.pop_front().map(|it| it.1)
    }

    /// Takes the waker of this worker, if it is idle.
    pub(super) fn take_idle(&mut self, index: usize) -> Option<Waker> {
        let place = self.idle.iter().position(|it| it.0 == index)?;
        self.idle.remove(place).map(|it| it.1)
    }

    pub(super) fn is_idle(&self, index: usize) -> bool {
        self.idle.iter().any(|it| it.0 == index)
    }
}

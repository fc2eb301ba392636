//! What the scheduler counts.

use ganger_sync::CachePadded;
use ganger_sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// One thread's counts. Each worker has its own, and one set is for all other threads.
        pub(crate) struct Counters { $(pub(crate) $name: Counter,)+ }

        /// What one worker has done since the scheduler was built.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct WorkerStats { $($(#[$doc])* pub $name: u64,)+ }

        impl Counters {
            /// For one thread, or for all that have no own.
            pub(crate) fn new(is_shared: bool) -> Self {
                Self { $($name: Counter::new(is_shared),)+ }
            }

            pub(crate) fn read(&self) -> WorkerStats {
                WorkerStats { $($name: self.$name.get(),)+ }
            }
        }

        impl std::ops::AddAssign for WorkerStats {
            fn add_assign(&mut self, other: Self) {
                $(self.$name += other.$name;)+
            }
        }
    };
}

counters! {
    /// Turns begun: a process that a worker has taken from a queue has one.
    turns,
    /// Steps begun. A turn has one, or more where handlers answer at once.
    steps,
    /// Processes taken from the worker's own deque, at its own turn.
    local_picks,
    /// Processes taken from the global queue.
    global_picks,
    /// Processes taken from the urgent lane, before all others.
    urgent_picks,
    /// Times that the worker looked at the global queue and the oldest of its own deque first.
    rotations,
    /// Successful steals.
    steals,
    /// Processes that the successful steals moved.
    stolen,
    /// Times that the worker went to sleep.
    sleeps,
    /// Steps that blocked their thread while processes waited, so that another thread took its place.
    /// Counted in the total alone.
    blocked_steps,
    /// Steps that computed for long while processes waited, so that another thread took the place of
    /// theirs. Counted in the total alone.
    long_steps,
    /// Commands handed to handlers.
    yields,
    /// Completions that were dropped because their process had ended or been upgraded, or because
    /// the yield had completed before.
    stale_completions,
    /// Messages that had been accepted and were dropped because their process ended.
    undelivered,
    /// Panics in users' code, all of them contained.
    panics,
    /// Processes started.
    started,
    /// Processes that finished by themselves.
    done,
    /// Processes that ended with an error of a step.
    failed,
    /// Processes that ended with a panic of a step.
    panicked,
    /// Processes that were terminated.
    terminated,
    /// How many of those were terminated because a shutdown's deadline had passed.
    forced,
    /// Upgrades that succeeded.
    upgrades,
    /// Processes that ended because an upgrade failed.
    upgrades_failed,
}

/// A count that never goes back, times two; odd when more than one thread counts.
pub(crate) struct Counter(AtomicU64);

impl Counter {
    fn new(is_shared: bool) -> Self {
        Self(AtomicU64::new(is_shared.into()))
    }

    pub(crate) fn add(&self, n: u64) {
        // Ordering: Relaxed here and below: a count, on the strength of which nothing is read.
        let now = self.0.load(Ordering::Relaxed);
        if now & 1 == 0 {
            // No other thread writes it, so that nothing gets lost in between.
            self.0.store(now + 2 * n, Ordering::Relaxed);
        } else {
            self.0.fetch_add(2 * n, Ordering::Relaxed);
        }
    }

    pub(crate) fn bump(&self) {
        self.add(1);
    }

    pub(crate) fn get(&self) -> u64 {
        // Ordering: Relaxed, as in `add`.
        self.0.load(Ordering::Relaxed) / 2
    }
}

/// The counters of all workers and, last, of all other threads.
pub(crate) struct AllCounters(Box<[CachePadded<Counters>]>);

impl AllCounters {
    pub(crate) fn new(workers: usize) -> Self {
        let counters = |thread| CachePadded::new(Counters::new(thread == workers));
        Self((0..=workers).map(counters).collect())
    }

    /// Those of a worker, or of all threads that are none.
    pub(crate) fn of(&self, worker: Option<usize>) -> &Counters {
        let others = self.0.len() - 1;
        &self.0[worker.unwrap_or(others)]
    }

    /// Those of the first so many workers.
    pub(crate) fn workers(&self, count: usize) -> impl Iterator<Item = WorkerStats> + '_ {
        self.0[..count].iter().map(|counters| counters.read())
    }

    pub(crate) fn total(&self) -> WorkerStats {
        let mut total = WorkerStats::default();
        for counters in &self.0 {
            total += counters.read();
        }
        total
    }
}

/// What a scheduler has done, and what it is doing.
///
/// Counts are read one after the other while the workers go on: each is right by itself, but their
/// sum may be off by what happened meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Worker threads.
    pub workers: usize,
    /// Threads beside the workers, which take the places of those whose steps block or last long.
    pub spares: usize,
    /// Workers that are asleep.
    pub sleeping: usize,
    /// Workers that look for work.
    pub searching: usize,
    /// Processes that have been submitted and not ended.
    pub live: usize,
    /// Processes in the global queue.
    pub global_queue: usize,
    /// The counts of all threads together.
    pub total: WorkerStats,
}

impl Stats {
    /// Processes that have ended, in whatever way.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.total.ended()
    }
}

impl WorkerStats {
    /// Processes that this thread has ended, in whatever way.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.done + self.failed + self.panicked + self.terminated + self.upgrades_failed
    }
}

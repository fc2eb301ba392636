//! The counts of the scheduler.

use ganger_sync::CachePadded;
#[cfg(debug_assertions)]
use ganger_sync::atomic::AtomicUsize;
use ganger_sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// A thread's counts. Each worker has its own, and all other threads share a set.
        pub(crate) struct Counters { $(pub(crate) $name: Counter,)+ }

        /// A worker's counts since the scheduler was built.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct WorkerStats { $($(#[$doc])* pub $name: u64,)+ }

        impl Counters {
            /// Makes the counts of a thread, or of all threads without counts of their own.
            pub(crate) fn new(is_shared: bool) -> Self {
                Self { $($name: Counter::new(is_shared),)+ }
            }

            /// Hands the counts from a thread that is gone to another thread.
            pub(crate) fn hand_over(&self) {
                $(self.$name.hand_over();)+
            }

            fn read_each(&self) -> WorkerStats {
                WorkerStats { $($name: self.$name.get(),)+ }
            }
        }

        impl WorkerStats {
            /// Returns the counts since an earlier look at the same counters.
            #[must_use]
            pub fn since(&self, earlier: &Self) -> Self {
                Self { $($name: self.$name.saturating_sub(earlier.$name),)+ }
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
    /// Turns begun: a process taken from a queue by a worker has one, or more when it is far behind
    /// with its events.
    turns,
    /// Steps begun. A turn has one, or more where handlers answer at once.
    steps,
    /// Processes taken from the worker's own deque, at its own turn.
    local_picks,
    /// Processes taken from the global queue.
    global_picks,
    /// Processes taken from the urgent lane, before all others.
    urgent_picks,
    /// Processes woken by a timer, taken from the lane of arrivals.
    arrival_picks,
    /// Looks of the worker at the global queue and the oldest of its own deque first.
    rotations,
    /// Successful steals.
    steals,
    /// Processes moved by the successful steals.
    stolen,
    /// Sleeps of the worker.
    sleeps,
    /// Steps that blocked their thread while processes waited, so another thread took its place.
    /// Counted in the total alone.
    blocked_steps,
    /// Steps that computed for long while processes waited, so another thread took the place of
    /// theirs, if none had before. Counted in the total alone.
    long_steps,
    /// Commands handed to handlers.
    yields,
    /// Completions dropped because their process had ended or been upgraded, or because the yield
    /// had completed before.
    stale_completions,
    /// Accepted messages dropped because their process ended.
    undelivered,
    /// Panics in users' code, all of them contained.
    panics,
    /// Processes started.
    started,
    /// Processes finished by themselves.
    done,
    /// Processes ended by a cancellation, without a result of their own.
    cancelled,
    /// Processes ended with an error of a step.
    failed,
    /// Processes ended with a panic of a step.
    panicked,
    /// Terminated processes.
    terminated,
    /// How many of these were terminated because a shutdown's deadline had passed.
    forced,
    /// Successful upgrades.
    upgrades,
    /// Processes ended by a failed upgrade.
    upgrades_failed,
}

impl Counters {
    /// Reads the counts. A process forced to end is counted once, as forced. So no reader sees it
    /// counted as ended and not yet as forced.
    pub(crate) fn read(&self) -> WorkerStats {
        let mut stats = self.read_each();
        stats.terminated += stats.forced;
        stats
    }
}

/// A count, times two, that never goes back; odd when several threads count.
///
/// Panics with debug assertions when a second thread counts where a single thread should.
pub(crate) struct Counter {
    doubled: AtomicU64,
    /// The counting thread, or 0 as long as none has counted.
    #[cfg(debug_assertions)]
    writer: AtomicUsize,
}

impl Counter {
    fn new(is_shared: bool) -> Self {
        Self {
            doubled: AtomicU64::new(is_shared.into()),
            #[cfg(debug_assertions)]
            writer: AtomicUsize::new(0),
        }
    }

    pub(crate) fn add(&self, n: u64) {
        // Ordering: Relaxed here and below: a count, on the strength of which nothing is read.
        let now = self.doubled.load(Ordering::Relaxed);
        if now & 1 == 0 {
            #[cfg(debug_assertions)]
            self.check_writer();
            // No other thread writes it, so nothing gets lost in between.
            self.doubled.store(now + 2 * n, Ordering::Relaxed);
        } else {
            self.add_beside_others(n);
        }
    }

    #[cold]
    fn add_beside_others(&self, n: u64) {
        // Ordering: Relaxed, as in `add`.
        self.doubled.fetch_add(2 * n, Ordering::Relaxed);
    }

    pub(crate) fn bump(&self) {
        self.add(1);
    }

    /// Counts as [`bump`](Self::bump) does, on a worker's thread, for its own count: without a
    /// check for other counting threads.
    pub(crate) fn bump_own(&self) {
        #[cfg(debug_assertions)]
        self.check_writer();
        // Ordering: Relaxed, as in `add`.
        let now = self.doubled.load(Ordering::Relaxed);
        debug_assert_eq!(now & 1, 0, "others count there");
        self.doubled.store(now + 2, Ordering::Relaxed);
    }

    /// Undoes a bump, in a program with a single thread.
    #[cfg(feature = "sim")]
    pub(crate) fn take_back(&self) {
        // Ordering: Relaxed: the simulation has one thread.
        self.doubled.fetch_sub(2, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        // Ordering: Relaxed, as in `add`.
        self.doubled.load(Ordering::Relaxed) / 2
    }

    fn hand_over(&self) {
        #[cfg(debug_assertions)]
        // Ordering: Relaxed, as in `check_writer`.
        self.writer.store(0, Ordering::Relaxed);
    }

    #[cfg(debug_assertions)]
    fn check_writer(&self) {
        thread_local! {
            /// Its address is this thread's alone.
            static MARK: u8 = const { 0 };
        }
        let own = MARK.with(|mark| std::ptr::from_ref(mark).addr());
        // Ordering: Relaxed: the start of a thread for the same worker orders this load behind the
        // store of the thread before.
        let writer = self.writer.load(Ordering::Relaxed);
        assert!(
            writer == 0 || writer == own,
            "two threads count as one worker"
        );
        // Ordering: Relaxed: the start of a further thread for the same worker orders this store
        // before that thread's load.
        self.writer.store(own, Ordering::Relaxed);
    }
}

/// The counters of all workers and, last, of all other threads.
pub(crate) struct AllCounters(Box<[CachePadded<Counters>]>);

impl AllCounters {
    pub(crate) fn new(workers: usize) -> Self {
        let counters = |thread| CachePadded::new(Counters::new(thread == workers));
        Self((0..=workers).map(counters).collect())
    }

    /// Returns the counts of a worker, or of all other threads.
    pub(crate) fn of(&self, worker: Option<usize>) -> &Counters {
        let others = self.0.len() - 1;
        &self.0[worker.unwrap_or(others)]
    }

    /// Returns the counts of the first `count` workers.
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

/// The finished and the present work of a scheduler.
///
/// Counts are read one after the other while the workers continue: each is right by itself, but
/// their sum may be off by events in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Worker threads.
    pub workers: usize,
    /// Threads besides the workers, for the places of workers whose steps block or last long.
    pub spares: usize,
    /// Threads with a step that blocks or lasts long, replaced by other threads, and not back yet.
    pub relieved: usize,
    /// The time of the longest step, among finished steps that kept processes waiting until their
    /// worker was relieved. Zero without such a step.
    pub longest_step: Duration,
    /// Workers asleep.
    pub sleeping: usize,
    /// Workers looking for work.
    pub searching: usize,
    /// Processes submitted and not ended.
    pub live: usize,
    /// Processes in the global queue.
    pub global_queue: usize,
    /// Processes in all queues of ready processes: the workers' deques, the global queue, the
    /// urgent lane and the lane of arrivals. A process between two queues is missing.
    pub ready: usize,
    /// The counts of all threads together.
    pub total: WorkerStats,
}

impl Stats {
    /// Returns the number of processes ended in any way.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.total.ended()
    }
}

impl WorkerStats {
    /// Returns the number of processes ended by this thread, in any way.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.done
            + self.cancelled
            + self.failed
            + self.panicked
            + self.terminated
            + self.upgrades_failed
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use std::thread;

    /// Returns whether another thread may count there, by `bump`.
    fn may(counters: &Counters, bump: fn(&Counter)) -> bool {
        thread::scope(|scope| scope.spawn(|| bump(&counters.turns)).join().is_ok())
    }

    #[test]
    fn a_workers_counts_have_one_writer() {
        let counters = Counters::new(false);
        counters.turns.bump_own();
        counters.turns.add(2);
        assert_eq!(counters.read().turns, 3);
        for bump in [Counter::bump, Counter::bump_own] {
            assert_eq!(may(&counters, bump), !cfg!(debug_assertions));
        }
        counters.hand_over();
        assert!(may(&counters, Counter::bump_own));
    }

    #[test]
    fn who_has_no_worker_counts_together_with_others() {
        let counters = Counters::new(true);
        counters.turns.bump();
        assert!(may(&counters, Counter::bump));
        assert_eq!(counters.read().turns, 2);
        assert_eq!(may(&counters, Counter::bump_own), !cfg!(debug_assertions));
    }
}

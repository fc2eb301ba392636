//! Fork and join: threads with a deque each share a tree of tasks.
//!
//! A task may fork others. Each thread takes its own newest task first, which keeps its memory
//! accesses near, and steals the oldest half of another thread's tasks, which has the largest parts
//! of the tree. The threads end when the last task has ended, and sleep while all deques are empty.
//!
//! ```sh
//! cargo run --release -p ganger-deque --example fork_join -- 12
//! ```

use ganger_deque::{Steal, Stealer, Worker};
use std::error::Error;
use std::hint;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The most tasks that a thief takes at once.
const MOST: usize = 32;

/// The shared state of the threads.
struct Shared<T> {
    stealers: Vec<Stealer<T>>,
    /// How many forked tasks have not ended. A task counts before any thread can take it, and until
    /// all its forked tasks count. So at 0 no task is left, and no further task will come.
    unfinished: AtomicUsize,
    /// No task is left, or a task has panicked.
    is_over: AtomicBool,
    /// How many threads sleep, or are about to. Written under the lock, read without it.
    asleep: AtomicUsize,
    lock: Mutex<()>,
    wakes: Condvar,
}

/// The deque of a task's thread, through which the task forks others.
pub(crate) struct Forker<'a, T> {
    own: Worker<T>,
    shared: &'a Shared<T>,
}

/// Runs `first`, and all tasks forked from it, on `threads` threads. Returns the results of each
/// thread.
///
/// # Panics
/// If a task panics. The other threads then end after their current tasks.
pub(crate) fn fork_join<T, R>(
    threads: NonZeroUsize,
    first: T,
    run: impl Fn(T, &Forker<'_, T>, &mut R) + Sync,
) -> Vec<R>
where
    T: Send,
    R: Default + Send,
{
    let workers: Vec<Worker<T>> = (0..threads.get()).map(|_| Worker::new()).collect();
    let shared = Shared {
        stealers: workers.iter().map(Worker::stealer).collect(),
        unfinished: AtomicUsize::new(1),
        is_over: AtomicBool::new(false),
        asleep: AtomicUsize::new(0),
        lock: Mutex::new(()),
        wakes: Condvar::new(),
    };
    workers[0].push(first);
    let (shared, run) = (&shared, &run);
    thread::scope(|scope| {
        let start = |own| {
            scope.spawn(move || {
                let mut gathered = R::default();
                let forker = Forker { own, shared };
                while let Some(task) = forker.next() {
                    let ends = Ends(shared);
                    run(task, &forker, &mut gathered);
                    drop(ends);
                }
                gathered
            })
        };
        // All threads start before the function waits for the first.
        let threads: Vec<_> = workers.into_iter().map(start).collect();
        let gathered = |thread: thread::ScopedJoinHandle<'_, R>| match thread.join() {
            Ok(gathered) => gathered,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        threads.into_iter().map(gathered).collect()
    })
}

impl<T> Forker<'_, T> {
    /// Adds a task, which this thread or another will run.
    pub(crate) fn fork(&self, task: T) {
        // Ordering: Relaxed: the forking task counts as well, and ends later.
        self.shared.unfinished.fetch_add(1, Ordering::Relaxed);
        self.own.push(task);
        self.wake();
    }

    /// Wakes a sleeping thread, if any. The own deque has a task, which the woken thread may take.
    fn wake(&self) {
        // Ordering: SeqCst pairs with the fence in `sleep`: this thread sees the other thread about
        // to sleep, or the other thread sees the task.
        fence(Ordering::SeqCst);
        // Ordering: Relaxed, because the fence orders it.
        if self.shared.asleep.load(Ordering::Relaxed) > 0 {
            // The lock: a thread about to sleep holds it from its check until it sleeps.
            let _held = self.shared.lock();
            self.shared.wakes.notify_one();
        }
    }

    /// Returns how many threads sleep. The number changes only when a task forks another.
    #[allow(dead_code, reason = "the test of the example uses it")]
    pub(crate) fn asleep(&self) -> usize {
        // A woken thread holds the lock until it has checked for tasks.
        let _held = self.shared.lock();
        // Ordering: Relaxed, because `asleep` is written under the lock.
        self.shared.asleep.load(Ordering::Relaxed)
    }

    /// Returns the next task to run: the own newest, or the oldest of another thread. `None` at the
    /// end.
    fn next(&self) -> Option<T> {
        loop {
            // Ordering: Acquire pairs with the Release in `end`.
            if self.shared.is_over.load(Ordering::Acquire) {
                return None;
            }
            if let Some(task) = self.own.pop().or_else(|| self.steal()) {
                return Some(task);
            }
            self.sleep();
        }
    }

    /// Looks at each deque until it gets a task, or all deques are empty.
    fn steal(&self) -> Option<T> {
        for victim in &self.shared.stealers {
            loop {
                match victim.steal_half_and_pop(&self.own, MOST) {
                    Steal::Success(task) => {
                        // A thread about to sleep sees moving items in neither deque, so this
                        // thread wakes a sleeper.
                        if !self.own.is_empty() {
                            self.wake();
                        }
                        return Some(task);
                    }
                    Steal::Empty => break,
                    // Another thread was faster, and may have left items.
                    Steal::Retry => hint::spin_loop(),
                }
            }
        }
        None
    }

    /// Sleeps until a task may exist, or the run is over. Returns at once if a task already exists.
    fn sleep(&self) {
        let shared = self.shared;
        let mut held = shared.lock();
        // Ordering: Relaxed, because the fence orders it.
        shared.asleep.fetch_add(1, Ordering::Relaxed);
        // Ordering: SeqCst pairs with the fence in `wake`.
        fence(Ordering::SeqCst);
        // Ordering: Acquire pairs with the Release in `end`, which holds the lock.
        let is_over = || shared.is_over.load(Ordering::Acquire);
        while !is_over() && shared.stealers.iter().all(Stealer::is_empty) {
            held = match shared.wakes.wait(held) {
                Ok(held) => held,
                Err(poisoned) => poisoned.into_inner(),
            };
        }
        // Ordering: Relaxed: written under the lock. A thread that reads it late wakes in vain.
        shared.asleep.fetch_sub(1, Ordering::Relaxed);
        drop(held);
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all threads.
    fn end(&self) {
        let _held = self.lock();
        // Ordering: Release pairs with the Acquire in `next` and `sleep`.
        self.is_over.store(true, Ordering::Release);
        self.wakes.notify_all();
    }
}

/// A running task. Dropping this value ends the task, also if the task panics.
struct Ends<'a, T>(&'a Shared<T>);

impl<T> Drop for Ends<'_, T> {
    fn drop(&mut self) {
        // Ordering: AcqRel: the thread that counts the last task sees the effects of all others.
        let was_last = self.0.unfinished.fetch_sub(1, Ordering::AcqRel) == 1;
        if was_last || thread::panicking() {
            self.0.end();
        }
    }
}

/// Queens in the first rows of a board, as bits of the attacked squares in the next row.
#[derive(Clone, Copy)]
struct Board {
    left: u8,
    columns: u32,
    rising: u32,
    falling: u32,
}

/// Returns in how many ways `rows` queens stand on a board of `rows` rows without attacking each
/// other.
pub(crate) fn queens(threads: NonZeroUsize, rows: u8) -> u64 {
    let empty = Board {
        left: rows,
        columns: 0,
        rising: 0,
        falling: 0,
    };
    let all = (1_u32 << rows) - 1;
    let ways = fork_join(threads, empty, |board: Board, forker, ways: &mut u64| {
        if board.left == 0 {
            *ways += 1;
            return;
        }
        let mut free = all & !(board.columns | board.rising | board.falling);
        while free != 0 {
            let queen = free & free.wrapping_neg();
            free &= !queen;
            forker.fork(Board {
                left: board.left - 1,
                columns: board.columns | queen,
                rising: (board.rising | queen) << 1,
                falling: (board.falling | queen) >> 1,
            });
        }
    });
    ways.into_iter().sum()
}

fn main() -> Result<(), Box<dyn Error>> {
    let rows = std::env::args()
        .nth(1)
        .map_or(Ok(10), |rows| rows.parse())?;
    if rows > 20 {
        return Err("20 rows at the most".into());
    }
    let threads = thread::available_parallelism()?;
    println!("{rows} queens: {} ways", queens(threads, rows));
    Ok(())
}

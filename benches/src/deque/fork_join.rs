//! Two workers and a tree of tasks: the main use of a deque.
//!
//! A worker pops tasks from its own deque and runs them. When the deque is empty, the worker steals
//! half of the other's. When the steal fails, the worker checks whether all tasks are done, and
//! tries again. A worker counts its tasks, and reports the count to the other worker only when it
//! runs out. So while there is work, only the deque costs anything.

use super::{Deque, Workload};
use crate::contest::{Run, cpu};
use std::hint;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const WORKERS: usize = 2;

/// More room than a tree of tasks takes in a deque, for deques of a fixed size.
const ROOM: usize = 1_024;

/// How long a worker looks for work before it takes the benchmark for stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// A kind of task.
pub(super) trait Job: Copy + Send + Sync + 'static {
    /// Returns the first task.
    fn root(&self) -> u64;

    /// Returns the number of tasks in all.
    fn tasks(&self) -> u64;

    /// Returns the sum of the results of all tasks.
    fn sum(&self) -> u64;

    /// Runs a task, which may push further tasks, and returns its result. `last` is the result of
    /// this worker's task before.
    fn run(&self, task: u64, last: u64, push: impl FnMut(u64)) -> u64;
}

/// A binary tree, all of whose nodes do the same work. A task is the height of its node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tree {
    height: u32,
    work: u32,
    /// 0, unknown to the compiler.
    zero: u64,
}

/// The Fibonacci number of the task, by calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fib(
    /// Which number.
    pub(super) u32,
);

/// The time until all tasks are done.
#[derive(Clone, Copy, Debug)]
pub(super) struct ForkJoin<J>(
    /// The tasks.
    pub(super) J,
);

impl Job for Tree {
    fn root(&self) -> u64 {
        self.height.into()
    }

    fn tasks(&self) -> u64 {
        (1 << (self.height + 1)) - 1
    }

    fn sum(&self) -> u64 {
        let level = |height: u32| self.work(height) << (self.height - height);
        (0..=self.height).map(level).fold(0, u64::wrapping_add)
    }

    /// Takes the last result into account, and makes its pushes depend on its own result: otherwise
    /// the processor would do the work of several tasks at the same time.
    #[inline]
    fn run(&self, task: u64, last: u64, mut push: impl FnMut(u64)) -> u64 {
        let result = multiply(task | last & self.zero, self.work);
        if task > 0 {
            let child = (task - 1) | result & self.zero;
            push(child);
            push(child);
        }
        result
    }
}

impl Tree {
    /// Creates a tree whose leaves have the height 0. The work is a chain of multiplications, each
    /// of which needs the result of the multiplication before: 1.5 to 2 nanoseconds each.
    pub(super) fn new(height: u32, work: u32) -> Self {
        let zero = hint::black_box(0);
        Self { height, work, zero }
    }

    fn work(&self, height: u32) -> u64 {
        multiply(height.into(), self.work)
    }
}

/// Does a chain of multiplications, each of which needs the result of the last.
#[inline]
fn multiply(task: u64, times: u32) -> u64 {
    (0..times).fold(task, |x, _| {
        let x = (x + 1).wrapping_mul(6_364_136_223_846_793_005);
        // Without this the compiler makes a single multiplication of all.
        x >> 1 ^ x >> 32
    })
}

impl Job for Fib {
    fn root(&self) -> u64 {
        self.0.into()
    }

    fn tasks(&self) -> u64 {
        2 * fib(self.0 + 1) - 1
    }

    fn sum(&self) -> u64 {
        fib(self.0)
    }

    #[inline]
    fn run(&self, task: u64, _last: u64, mut push: impl FnMut(u64)) -> u64 {
        if task < 2 {
            return task;
        }
        push(task - 1);
        push(task - 2);
        0
    }
}

fn fib(n: u32) -> u64 {
    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0
}

impl<J: Job> Workload for ForkJoin<J> {
    fn metrics(&self) -> &'static [&'static str] {
        &["ms", "steals"]
    }

    fn prepare<D: Deque>(&self) -> Run {
        let job = self.0;
        Box::new(move || {
            let workers = work_together::<D, J>(job);
            let sum = workers.iter().map(|worker| worker.sum);
            assert_eq!(sum.fold(0, u64::wrapping_add), job.sum());
            let first = workers.iter().map(|worker| worker.start).min();
            let last = workers.iter().map(|worker| worker.end).max();
            let time = last.expect("workers") - first.expect("workers");
            let steals: u64 = workers.iter().map(|worker| worker.steals).sum();
            vec![time.as_secs_f64() * 1e3, steals as f64]
        })
    }
}

/// The state shared by both workers.
struct Common {
    started: AtomicUsize,
    /// How many tasks each had run when it last ran out.
    done: [Padded; WORKERS],
    tasks: u64,
}

/// On a cache line of its own, and its neighbour's, which is fetched along with it.
#[repr(align(128))]
struct Padded(AtomicU64);

/// The results of a worker.
struct Report {
    start: Instant,
    end: Instant,
    sum: u64,
    steals: u64,
}

fn work_together<D: Deque, J: Job>(job: J) -> Vec<Report> {
    let common = &Common {
        started: AtomicUsize::new(0),
        done: [const { Padded(AtomicU64::new(0)) }; WORKERS],
        tasks: job.tasks(),
    };
    let deques = [(); WORKERS].map(|()| D::with_room(ROOM));
    deques[0].push(job.root());
    let mut stealers = [(); WORKERS].map(|()| None);
    for (own, deque) in deques.iter().enumerate() {
        stealers[1 - own] = Some(deque.stealer());
    }
    thread::scope(|scope| {
        let workers = deques.into_iter().zip(stealers).enumerate();
        let workers = workers.map(|(nth, (own, other))| {
            let other = other.expect("each has another");
            scope.spawn(move || {
                let _pinned = cpu::pin(nth);
                start_together(common);
                work(job, nth, &own, &other, common)
            })
        });
        let workers: Vec<_> = workers.collect();
        let join = |worker: thread::ScopedJoinHandle<'_, _>| worker.join();
        let reports = workers.into_iter().map(join);
        reports.map(|report| report.expect("no panics")).collect()
    })
}

/// Waits for the other threads without sleeping: a sleeping thread is woken too late for this.
fn start_together(common: &Common) {
    // Ordering: Relaxed, because the deques are there before the threads are.
    common.started.fetch_add(1, Ordering::Relaxed);
    let mut turns = 0_u32;
    // Ordering: see above.
    while common.started.load(Ordering::Relaxed) < WORKERS {
        hint::spin_loop();
        turns += 1;
        if turns.is_multiple_of(1_000) {
            thread::yield_now();
        }
    }
}

#[inline(never)]
fn work<D: Deque, J: Job>(
    job: J,
    nth: usize,
    own: &D,
    other: &D::Stealer,
    common: &Common,
) -> Report {
    let start = Instant::now();
    let (mut sum, mut last, mut done) = (0_u64, 0, 0);
    let (mut steals, mut misses) = (0, 0_u16);
    'work: loop {
        while let Some(task) = own.pop() {
            last = job.run(task, last, |task| own.push(task));
            sum = sum.wrapping_add(last);
            done += 1;
        }
        // Ordering: Relaxed, because only the number matters.
        common.done[nth].0.store(done, Ordering::Relaxed);
        while !D::steal_half(other, own) {
            // Ordering: see above.
            let done = common
                .done
                .iter()
                .map(|done| done.0.load(Ordering::Relaxed));
            if done.sum::<u64>() == common.tasks {
                break 'work;
            }
            misses = misses.wrapping_add(1);
            if misses == 0 {
                assert!(start.elapsed() < PATIENCE, "tasks have been lost");
            }
            hint::spin_loop();
        }
        steals += 1;
    }
    Report {
        start,
        end: Instant::now(),
        sum,
        steals,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a job on a single thread, with a vector for a deque.
    fn walk(job: impl Job) -> (u64, u64) {
        let (mut open, mut tasks) = (vec![job.root()], 0);
        let (mut last, mut sum) = (0, 0_u64);
        while let Some(task) = open.pop() {
            last = job.run(task, last, |task| open.push(task));
            sum = sum.wrapping_add(last);
            tasks += 1;
        }
        (tasks, sum)
    }

    #[test]
    fn jobs_know_their_tasks_and_their_sum() {
        for (height, work) in [(0, 0), (1, 0), (7, 0), (7, 9)] {
            let tree = Tree::new(height, work);
            assert_eq!(walk(tree), (tree.tasks(), tree.sum()));
        }
        assert_eq!(Fib(12).sum(), 144);
        for n in 0..16 {
            assert_eq!(walk(Fib(n)), (Fib(n).tasks(), Fib(n).sum()));
        }
    }
}

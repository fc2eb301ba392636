//! Falling asleep against new due moments: a thread waits for each moment.
//!
//! Time stands still until a worker sleeps until [`DUE`] or earlier; then it is over at once. A
//! worker that sleeps without a limit, or until later, sleeps until it is woken. So a moment
//! without a waiting thread is a wait for ever, and loom reports it.

use crate::queues::idle::{Idle, Snapshot, Woken, block_on};
use crate::queues::timer_waiter::{NEVER, TimerWaiter};
use ganger_sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use ganger_sync::sync::Arc;
use ganger_sync::{Parker, model, thread};
use std::time::Duration;

const DUE: u64 = 50;
const LATER: u64 = 900;

/// The seats: of the threads outside, and of two workers.
const SEATS: usize = 3;

struct Pool {
    idle: Idle,
    timer_waiter: TimerWaiter,
    queued: AtomicUsize,
    is_delivered: AtomicBool,
    is_over: AtomicBool,
    /// The place of a worker in a step that ends when the moment has been delivered.
    step: Parker,
    /// A worker that finds a process leaves the moments to the monitor.
    is_brief: bool,
}

impl Pool {
    fn new(workers: usize) -> Arc<Self> {
        Arc::new(Self::with(workers, false))
    }

    fn with(workers: usize, is_brief: bool) -> Self {
        Self {
            idle: Idle::new(workers, workers),
            timer_waiter: TimerWaiter::new(SEATS),
            queued: AtomicUsize::new(0),
            is_delivered: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            step: Parker::new(),
            is_brief,
        }
    }

    /// Arms a timer as `Host::announce` does outside.
    fn arm_outside(&self, at: u64) {
        assert!(self.timer_waiter.dues.set(0, at));
        // Ordering: SeqCst, as the real fence.
        fence(Ordering::SeqCst);
        if self.timer_waiter.is_uncovered(at) {
            self.idle.notify_from_outside();
        }
    }

    fn push(&self) {
        // Ordering: Release, as the real queues push.
        self.queued.fetch_add(1, Ordering::Release);
        self.idle.notify_from_outside();
    }

    fn has_work(&self) -> bool {
        // Ordering: Relaxed, as the real look.
        self.queued.load(Ordering::Relaxed) > 0
    }

    /// Returns whether the worker owes a look, as `Worker::owes_a_look` does.
    fn owes_a_look(&self) -> bool {
        if self.has_work() {
            return true;
        }
        let waiter = &self.timer_waiter;
        let is_uncovered = waiter.is_used() && waiter.uncovered(SEATS).is_some();
        if is_uncovered && self.is_brief {
            self.idle.defer();
            return false;
        }
        is_uncovered
    }

    fn take(&self) -> bool {
        let take_one = |queued: usize| queued.checked_sub(1);
        // Ordering: as the real queues.
        self.queued
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, take_one)
            .is_ok()
    }

    /// Delivers the moment when it has come.
    fn deliver(&self) {
        for seat in 0..SEATS {
            self.timer_waiter.dues.set(seat, NEVER);
        }
        // Ordering: Release pairs with the Acquire in `is_done`.
        self.is_delivered.store(true, Ordering::Release);
        self.step.unpark();
        // Ordering: SeqCst, as the flag that halts the real workers.
        self.is_over.store(true, Ordering::SeqCst);
        self.idle.notify_all();
        self.idle.end_monitor_wait();
    }

    /// Dozes as the monitor does, and delivers late moments.
    fn watch(&self) {
        while !self.is_over() {
            let until = |parker: &Parker| {
                let uncovered = self.timer_waiter.uncovered(SEATS);
                block_on(parker, uncovered.map(|_| Duration::ZERO))
            };
            self.idle.monitor_sleep(|| self.is_over(), until);
            if self.timer_waiter.dues.earliest(SEATS) <= DUE {
                self.deliver();
            }
        }
    }

    fn is_over(&self) -> bool {
        // Ordering: SeqCst, as the flag that halts the real workers.
        self.is_over.load(Ordering::SeqCst)
    }

    /// Works as `worker/mod.rs` does, until the moment has been delivered.
    fn work(&self, index: usize) {
        let mut searching = false;
        while !self.is_over() {
            if self.take() {
                if std::mem::take(&mut searching) {
                    self.idle.end_search(|| self.owes_a_look());
                } else if self.owes_a_look() {
                    self.idle.notify();
                }
                self.step.park();
                continue;
            }
            if !searching && self.idle.begin_search() {
                searching = true;
                continue;
            }
            let mut kept = None;
            let woken = self.idle.sleep(
                index,
                searching,
                || self.is_over(),
                || self.has_work(),
                || {
                    kept = self.timer_waiter.claim(SEATS);
                    kept.inspect(|_| self.idle.wake_last(index));
                    kept.map(|until| Duration::from_nanos(until.saturating_sub(DUE)))
                },
            );
            let is_due = kept == Some(DUE);
            kept.inspect(|&until| self.timer_waiter.release(until));
            searching = woken == Woken::Notified || self.idle.begin_search();
            if is_due && self.timer_waiter.dues.earliest(SEATS) <= DUE {
                self.deliver();
            }
        }
        if searching {
            self.idle.end_search(|| false);
        }
    }

    fn assert_still(&self) {
        let idle = Snapshot {
            searching: 0,
            sleeping: 0,
            unwatched: false,
        };
        assert_eq!(self.idle.snapshot(), idle, "a worker was counted wrongly");
        // Ordering: Acquire pairs with the Release in `deliver`.
        assert!(self.is_delivered.load(Ordering::Acquire));
    }
}

fn start(pool: &Arc<Pool>, index: usize) -> thread::JoinHandle<()> {
    let pool = Arc::clone(pool);
    thread::spawn(move || pool.work(index))
}

// pins: T1
#[test]
fn an_arm_outside_against_falling_asleep() {
    model::check(4, || {
        let pool = Pool::new(1);
        let worker = start(&pool, 0);
        pool.arm_outside(DUE);
        worker.join().unwrap();
        pool.assert_still();
    });
}

/// Arms a second moment, earlier than the timer waiter's.
// pins: T1
#[test]
fn two_arms_outside_against_falling_asleep() {
    model::check(3, || {
        let pool = Pool::new(1);
        let worker = start(&pool, 0);
        pool.arm_outside(LATER);
        pool.arm_outside(DUE);
        worker.join().unwrap();
        pool.assert_still();
    });
}

/// Lets a worker with something due later than another's new moment take over from the timer
/// waiter, or leave the wait to it.
// pins: T1
#[test]
fn two_workers_fall_asleep_with_moments_of_their_own() {
    model::check(2, || {
        let pool = Pool::new(2);
        pool.timer_waiter.dues.set(1, LATER);
        pool.timer_waiter.dues.set(2, DUE);
        let workers = [0, 1].map(|index| start(&pool, index));
        for worker in workers {
            worker.join().unwrap();
        }
        pool.assert_still();
    });
}

/// Lets the timer waiter be woken for a process whose step lasts until the moment has been
/// delivered: then the other worker must wait for the moment.
// pins: T1
#[test]
fn a_timer_waiter_that_gets_work_hands_over() {
    model::check(2, || {
        let pool = Pool::new(2);
        pool.timer_waiter.dues.set(0, DUE);
        let workers = [0, 1].map(|index| start(&pool, index));
        pool.push();
        for worker in workers {
            worker.join().unwrap();
        }
        pool.assert_still();
    });
}

/// Lets an outside thread rely on a timer waiter that is just waking.
// pins: T1
#[test]
fn an_arm_that_relies_on_a_timer_waiter_that_wakes() {
    model::check(3, || {
        let pool = Pool::new(2);
        // A timer waiter that has been woken, and counts as searching, but has not released its
        // moment.
        assert!(pool.idle.begin_search());
        pool.timer_waiter.dues.set(1, DUE);
        assert_eq!(pool.timer_waiter.claim(SEATS), Some(DUE));
        pool.timer_waiter.dues.set(1, NEVER);
        let other = start(&pool, 1);
        let waking = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                pool.timer_waiter.release(DUE);
                // The worker has found a process, and its step lasts until the moment is delivered.
                pool.idle.end_search(|| pool.owes_a_look());
                pool.step.park();
            })
        };
        pool.arm_outside(DUE);
        for worker in [other, waking] {
            worker.join().unwrap();
        }
        pool.assert_still();
    });
}

/// Lets a worker whose step does not end bring something up while the monitor is about to sleep.
// pins: T1
#[test]
fn an_arm_in_a_step_against_a_monitor_that_dozes() {
    model::check(5, || {
        let pool = Pool::new(1);
        let monitor = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                while !pool.is_over() {
                    let until = |parker: &Parker| {
                        block_on(
                            parker,
                            pool.timer_waiter.uncovered(SEATS).map(|_| Duration::ZERO),
                        )
                    };
                    pool.idle.monitor_sleep(|| false, until);
                    if pool.timer_waiter.dues.earliest(SEATS) <= DUE {
                        pool.deliver();
                    }
                }
            })
        };
        assert!(pool.timer_waiter.dues.set(1, DUE));
        // As `Host::announce` does it on a worker.
        if pool.idle.is_unwatched_behind_write() && pool.timer_waiter.is_uncovered(DUE) {
            pool.idle.wake_monitor();
        }
        pool.step.park();
        monitor.join().unwrap();
        pool.assert_still();
    });
}

/// Checks that workers woken for a process wake no other for the moment. The step lasts until the
/// moment has been delivered.
fn left_to_the_monitor(workers: usize, preemptions: usize) {
    model::check(preemptions, move || {
        let pool = Arc::new(Pool::with(workers, true));
        pool.timer_waiter.dues.set(0, DUE);
        let mut threads: Vec<_> = (0..workers).map(|index| start(&pool, index)).collect();
        let monitor = Arc::clone(&pool);
        threads.push(thread::spawn(move || monitor.watch()));
        pool.push();
        for thread in threads {
            thread.join().unwrap();
        }
        pool.assert_still();
    });
}

// pins: T4
#[test]
fn a_timer_waiter_leaves_its_moment_to_a_monitor_that_dozes() {
    left_to_the_monitor(1, 2);
}

/// Lets the other worker fall asleep while the timer waiter wakes.
// pins: T4
#[test]
fn a_timer_waiter_leaves_its_moment_beside_a_worker_that_falls_asleep() {
    left_to_the_monitor(2, 1);
}

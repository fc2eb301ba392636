//! The driver: a thread sees each ready event, whichever thread waits, and each queued item.
//!
//! The driver here is a parker: a ready event leaves a token, and so does an interrupt. A wait
//! without an end is a deadlock, and loom reports it.

use crate::queues::idle::{Blocked, Idle, Snapshot, Woken, block_on};
use crate::queues::waiter::Waiter;
use ganger_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use ganger_sync::sync::Arc;
use ganger_sync::{Parker, model, thread};
use std::mem;

struct Pool {
    idle: Idle,
    waiter: Waiter,
    system: Arc<Parker>,
    /// Something is ready in the driver.
    is_ready: AtomicBool,
    queued: AtomicUsize,
    is_over: AtomicBool,
    /// The place of a worker in a step that ends when the ready event has been seen.
    step: Parker,
    /// The place of a thread in the driver until the queued item has been taken.
    call: Parker,
}

impl Pool {
    fn new(workers: usize) -> Arc<Self> {
        let system = Arc::new(Parker::new());
        let interrupted = Arc::clone(&system);
        Arc::new(Self {
            idle: Idle::new(workers, workers).interrupted_by(move || interrupted.unpark()),
            waiter: Waiter::default(),
            system,
            is_ready: AtomicBool::new(false),
            queued: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            step: Parker::new(),
            call: Parker::new(),
        })
    }

    /// Posts an event of the system.
    fn post(&self) {
        // Ordering: Release pairs with the Acquire in `take_ready`. A read-modify-write, because
        // loom has no order of stores otherwise.
        self.is_ready.swap(true, Ordering::AcqRel);
        self.system.unpark();
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

    fn take(&self) -> bool {
        let take_one = |queued: usize| queued.checked_sub(1);
        // Ordering: as the real queues.
        self.queued
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, take_one)
            .is_ok()
    }

    fn is_over(&self) -> bool {
        // Ordering: SeqCst, as the flag that halts the real workers.
        self.is_over.load(Ordering::SeqCst)
    }

    /// Takes the ready event, in the driver. Then all is over except for queued items.
    fn take_ready(&self) -> bool {
        // Ordering: Acquire pairs with the Release in `post`.
        self.is_ready.swap(false, Ordering::AcqRel)
    }

    fn seen(&self) {
        self.step.unpark();
        // Ordering: SeqCst, as the flag that halts the real workers.
        self.is_over.store(true, Ordering::SeqCst);
        self.idle.notify_all();
        self.idle.end_monitor_wait();
    }

    /// Blocks as `Shared::block` does. Returns whether something was ready, too.
    fn block(&self, parker: &Parker, may_wait: impl FnOnce() -> bool) -> (Blocked, bool) {
        let (mut has_token, mut was_elsewhere, mut is_ready) = (false, false, false);
        self.waiter.enter(|| {
            was_elsewhere = may_wait();
            has_token = was_elsewhere
                && parker.wait_elsewhere(|| {
                    self.system.park();
                    is_ready = self.take_ready();
                    if is_ready {
                        self.call.park();
                        self.call.unpark();
                    }
                });
            0
        });
        if !was_elsewhere {
            has_token = block_on(parker, None);
        }
        let blocked = Blocked {
            has_token,
            was_elsewhere,
        };
        (blocked, is_ready)
    }

    /// Works as `worker/mod.rs` does, until the posted event has been seen.
    fn work(&self, index: usize) {
        let mut searching = false;
        while !self.is_over() || self.has_work() {
            if self.take() {
                if mem::take(&mut searching) {
                    self.idle.end_search(|| self.has_work());
                }
                if self.waiter.is_free() {
                    self.idle.defer();
                }
                self.call.unpark();
                self.step.park();
                self.step.unpark();
                continue;
            }
            if !searching && self.idle.begin_search() {
                searching = true;
                continue;
            }
            let mut is_ready = false;
            let woken = self.idle.sleep_by(
                index,
                searching,
                || self.is_over(),
                || self.has_work(),
                |parker| {
                    let blocked;
                    let may_wait = || self.idle.wait_elsewhere(index);
                    (blocked, is_ready) = self.block(parker, may_wait);
                    blocked
                },
            );
            searching = woken == Woken::Notified || self.idle.begin_search();
            if is_ready {
                self.seen();
            }
        }
        if searching {
            self.idle.end_search(|| false);
        }
    }

    /// Dozes as the monitor does, and wakes a sleeper when it finds the driver left.
    fn watch(&self) {
        while !self.is_over() {
            let mut is_ready = false;
            self.idle.monitor_sleep(
                || self.has_work() || self.is_over(),
                |parker| {
                    let blocked;
                    (blocked, is_ready) = self.block(parker, || true);
                    blocked.has_token
                },
            );
            if is_ready {
                self.seen();
            }
            // The worker stays awake while an item is queued.
            thread::yield_now();
        }
    }

    fn assert_still(&self) {
        let Snapshot {
            searching,
            sleeping,
            ..
        } = self.idle.snapshot();
        assert_eq!(
            (searching, sleeping),
            (0, 0),
            "a worker was counted wrongly"
        );
        assert!(!self.has_work() && self.is_over() && self.waiter.is_free());
    }
}

fn start(pool: &Arc<Pool>, index: usize) -> thread::JoinHandle<()> {
    let pool = Arc::clone(pool);
    thread::spawn(move || pool.work(index))
}

/// Lets a wake-up and the end of the wait meet: no token is lost, and none is left.
// pins: I1
#[test]
fn a_push_against_the_end_of_a_wait() {
    model::check(3, || {
        let pool = Pool::new(1);
        // Steps end at once, and so do calls in the driver.
        pool.step.unpark();
        pool.call.unpark();
        let worker = start(&pool, 0);
        pool.push();
        pool.post();
        worker.join().unwrap();
        pool.assert_still();
    });
}

/// Lets the first worker to sleep wait in the driver. The push may wake this worker, and the other
/// then sleeps in vain, or waits there itself.
// pins: I1
#[test]
fn two_workers_against_a_push_and_what_is_ready() {
    model::check(2, || {
        let pool = Pool::new(2);
        pool.step.unpark();
        pool.call.unpark();
        let workers = [0, 1].map(|index| start(&pool, index));
        pool.push();
        pool.post();
        for worker in workers {
            worker.join().unwrap();
        }
        pool.assert_still();
    });
}

/// Lets the call of the ready event last until the other worker has taken the queued item: the
/// other worker does not sleep meanwhile.
// pins: G2
#[test]
fn a_long_call_in_the_driver_against_a_push() {
    model::check(2, || {
        let pool = Pool::new(2);
        pool.step.unpark();
        let workers = [0, 1].map(|index| start(&pool, index));
        pool.post();
        pool.push();
        for worker in workers {
            worker.join().unwrap();
        }
        pool.assert_still();
    });
}

/// Lets the worker leave the driver, with a step that lasts until the monitor has seen the ready
/// event.
// pins: I2
#[test]
fn a_worker_that_leaves_against_a_monitor_that_dozes() {
    model::check(2, || {
        let pool = Pool::new(1);
        pool.call.unpark();
        let worker = start(&pool, 0);
        let monitor = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || pool.watch())
        };
        pool.push();
        pool.post();
        for thread in [worker, monitor] {
            thread.join().unwrap();
        }
        pool.assert_still();
    });
}

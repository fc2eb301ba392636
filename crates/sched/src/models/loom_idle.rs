//! Falling asleep against pushing: no worker sleeps while an item is queued.
//!
//! Workers take items from a queue, search and sleep as `worker/mod.rs` does. A worker with an item
//! other than the last works on it until the last has been taken, so each item needs a worker of
//! its own. A lost wake-up, or one not passed on, leaves an item and its taker waiting for ever,
//! and loom reports it.

use crate::queues::idle::{Idle, Snapshot, Woken, block_on};
use ganger_sync::atomic::{AtomicUsize, Ordering};
use ganger_sync::sync::Arc;
use ganger_sync::{Parker, model, thread};

struct Pool {
    idle: Idle,
    queued: AtomicUsize,
    /// Items not taken yet.
    left: AtomicUsize,
    /// Where each worker waits while it works on an item.
    busy: Vec<Parker>,
}

impl Pool {
    fn new(workers: usize, items: usize) -> Arc<Self> {
        Arc::new(Self {
            idle: Idle::new(workers, workers),
            queued: AtomicUsize::new(0),
            left: AtomicUsize::new(items),
            busy: (0..workers).map(|_| Parker::new()).collect(),
        })
    }

    fn push(&self) {
        // Ordering: Release, as the real queues push; the fence in `notify` does the rest.
        self.queued.fetch_add(1, Ordering::Release);
        self.idle.notify_from_outside();
    }

    fn take(&self) -> bool {
        let take_one = |queued: usize| queued.checked_sub(1);
        // Ordering: as the real queues.
        self.queued
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, take_one)
            .is_ok()
    }

    fn has_work(&self) -> bool {
        // Ordering: Relaxed, as the real look: the fences in `look_again` and `end_search` order
        // it.
        self.queued.load(Ordering::Relaxed) > 0
    }

    fn is_done(&self) -> bool {
        // Ordering: SeqCst, as the flag that halts the real workers.
        self.left.load(Ordering::SeqCst) == 0
    }

    fn work(&self, index: usize) {
        let mut searching = false;
        loop {
            if self.take() {
                if std::mem::take(&mut searching) {
                    self.idle.end_search(|| self.has_work());
                }
                // Ordering: SeqCst, as the flag that halts the real workers.
                if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
                    self.idle.notify_all();
                    self.busy.iter().for_each(Parker::unpark);
                    return;
                }
                self.busy[index].park();
                return;
            } else if self.is_done() {
                if searching {
                    self.idle.end_search(|| self.has_work());
                }
                return;
            } else if !searching && self.idle.begin_search() {
                searching = true;
            } else {
                let (is_done, has_work) = (|| self.is_done(), || self.has_work());
                let woken = self
                    .idle
                    .sleep(index, searching, is_done, has_work, || None);
                searching = woken == Woken::Notified || self.idle.begin_search();
            }
        }
    }
}

fn model(workers: usize, items: usize, preemptions: usize) {
    model::check(preemptions, move || {
        let pool = Pool::new(workers, items);
        let threads: Vec<_> = (0..workers)
            .map(|index| {
                let pool = Arc::clone(&pool);
                thread::spawn(move || pool.work(index))
            })
            .collect();
        for _ in 0..items {
            pool.push();
        }
        for thread in threads {
            thread.join().unwrap();
        }
        let idle = Snapshot {
            searching: 0,
            sleeping: 0,
            unwatched: false,
        };
        assert_eq!(pool.idle.snapshot(), idle, "somebody was counted wrongly");
    });
}

// pins: G2
#[test]
fn a_push_against_falling_asleep() {
    model(1, 1, 5);
}

// pins: G2, G5
#[test]
fn two_workers_against_a_pusher() {
    model(2, 2, 2);
}

/// As [`Pool`], with a deque for each worker: a worker that finds the queue filled takes
/// everything, an item to work on and the rest for its own deque, and in between the rest is in
/// neither.
struct BatchPool {
    pool: Arc<Pool>,
    deques: Vec<AtomicUsize>,
}

impl BatchPool {
    fn take_from(deque: &AtomicUsize) -> bool {
        let take_one = |items: usize| items.checked_sub(1);
        // Ordering: as the real deques.
        deque
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, take_one)
            .is_ok()
    }

    fn look(&self, index: usize, searching: bool) -> bool {
        if Self::take_from(&self.deques[index]) {
            return true;
        }
        // Ordering: as the real queues.
        let batch = self.pool.queued.swap(0, Ordering::AcqRel);
        if batch > 0 {
            // Ordering: Release, as the owner of a real deque pushes.
            self.deques[index].fetch_add(batch - 1, Ordering::Release);
            return true;
        }
        searching && self.deques.iter().any(Self::take_from)
    }

    fn has_work(&self) -> bool {
        // Ordering: Relaxed, as the real look: the fence in `look_again` orders it.
        let is_filled = |items: &AtomicUsize| items.load(Ordering::Relaxed) > 0;
        is_filled(&self.pool.queued) || self.deques.iter().any(is_filled)
    }

    /// Takes an item, works on it until the last has been taken, and returns.
    fn work(&self, index: usize) {
        let Pool {
            idle, busy, left, ..
        } = &*self.pool;
        let mut searching = false;
        while !self.look(index, searching) {
            if !searching && idle.begin_search() {
                searching = true;
                continue;
            }
            let woken = idle.sleep(index, searching, || false, || self.has_work(), || None);
            searching = woken == Woken::Notified || idle.begin_search();
        }
        if searching {
            idle.end_search(|| self.has_work());
        }
        // Ordering: Relaxed: the owner looks at its own deque.
        if self.deques[index].load(Ordering::Relaxed) > 0 {
            idle.notify();
        }
        // Ordering: SeqCst, as the flag that halts the real workers.
        if left.fetch_sub(1, Ordering::SeqCst) == 1 {
            busy.iter().for_each(Parker::unpark);
        } else {
            busy[index].park();
        }
    }
}

// pins: G2
#[test]
fn a_batch_on_its_way_to_a_workers_own_deque() {
    model::check(2, || {
        let pool = Arc::new(BatchPool {
            pool: Pool::new(2, 2),
            deques: (0..2).map(|_| AtomicUsize::new(0)).collect(),
        });
        let threads: Vec<_> = (0..2)
            .map(|index| {
                let pool = Arc::clone(&pool);
                thread::spawn(move || pool.work(index))
            })
            .collect();
        // Ordering: as `Pool::push`, both at once.
        pool.pool.queued.fetch_add(2, Ordering::Release);
        pool.pool.idle.notify();
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// Lets a worker in an endless step push to its own deque while the last searcher finds something
/// else. No fence in this is a heavy one, so light fences order nothing.
// pins: G2
#[test]
fn a_push_to_an_own_deque_against_the_end_of_the_last_search() {
    let body = || {
        let idle = Arc::new(Idle::new(3, 3));
        let deque = Arc::new(AtomicUsize::new(0));
        assert!(idle.begin_search());
        let race = || {
            let (searching, stealer) = (Arc::clone(&idle), Arc::clone(&deque));
            let searcher = thread::spawn(move || {
                // Ordering: Relaxed, as the real look.
                searching.end_search(|| stealer.load(Ordering::Relaxed) > 0);
            });
            // Ordering: Release, as the owner of a real deque pushes.
            deque.store(1, Ordering::Release);
            idle.notify();
            searcher.join().unwrap();
            None
        };
        let woken = idle.sleep(2, false, || false, || false, race);
        assert_eq!(woken, Woken::Notified);
    };
    #[cfg(ganger_loom)]
    ganger_sync::fence::without_light(|| model::check(3, body));
    #[cfg(not(ganger_loom))]
    model::check(3, body);
}

/// Lets a worker in an endless step push to its own deque. The worker checks for awake workers
/// before any of them can see the push, because its light fence is a compiler fence. The last
/// searcher does not see the push either. So the push is left to the worker that falls asleep,
/// whose heavy fence brings it to light.
// pins: G2
#[cfg(ganger_loom)]
#[test]
fn a_push_that_only_a_heavy_fence_brings_to_light() {
    use ganger_sync::fence;

    /// The push waits in its processor's store buffer.
    const STORED: usize = 1;
    /// The buffer has been emptied since.
    const FLUSHED: usize = 2;

    fence::without_light(|| {
        model::check(3, || {
            let idle = Arc::new(Idle::new(3, 3));
            let deque = Arc::new(AtomicUsize::new(0));
            // Ordering: SeqCst: the fence made on the pusher's processor comes before or after its
            // store.
            let flush = |deque: &AtomicUsize| deque.fetch_or(FLUSHED, Ordering::SeqCst);
            // Ordering: Relaxed, as the real look.
            let is_seen = |deque: &AtomicUsize| deque.load(Ordering::Relaxed) == STORED | FLUSHED;
            let of_others = Arc::clone(&deque);
            let _flushing = fence::flushing(move || {
                flush(&of_others);
            });
            let (pushing, own) = (Arc::clone(&idle), Arc::clone(&deque));
            let pusher = thread::spawn(move || {
                // Ordering: SeqCst: the fence of the flush comes before or after this store, which
                // publishes nothing before it is flushed.
                own.swap(STORED, Ordering::SeqCst);
                // The first look of `notify`. Its further acts have a full fence, or take a lock.
                if pushing.snapshot().sleeping > 0 {
                    flush(&own);
                    pushing.notify();
                }
            });
            let (searching, stealer) = (Arc::clone(&idle), Arc::clone(&deque));
            let searcher = thread::spawn(move || {
                if searching.begin_search() {
                    searching.end_search(|| is_seen(&stealer));
                }
            });
            // A sleep despite the push that this worker has brought to light would last for ever,
            // and loom would report it.
            let stays_awake = || is_seen(&deque);
            let mut searching = false;
            while !is_seen(&deque) {
                let woken = idle.sleep(2, searching, || false, stays_awake, || None);
                searching = woken == Woken::Notified || idle.begin_search();
            }
            pusher.join().unwrap();
            searcher.join().unwrap();
        });
    });
}

/// Lets a worker leave its push to itself while the monitor is about to sleep.
// pins: G2
#[test]
fn a_push_that_is_deferred_against_a_monitor_that_dozes() {
    model::check(5, || {
        let pool = Pool::new(1, 1);
        let monitor = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                // A monitor that is not woken sleeps for ever, and loom reports it.
                while !pool.has_work() {
                    pool.idle
                        .monitor_sleep(|| pool.has_work(), |parker| block_on(parker, None));
                }
            })
        };
        // Ordering: Relaxed, less than a real deque: the fence in `defer` orders it.
        pool.queued.fetch_add(1, Ordering::Relaxed);
        pool.idle.defer();
        monitor.join().unwrap();
    });
}

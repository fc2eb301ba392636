//! The urgent lane: no process is left there while a worker sleeps.
//!
//! Workers look and sleep as `worker/mod.rs` does. An outside thread that pushes a process into the
//! lane notifies. A worker that pushes a process does not: it looks there next, and notifies when
//! it leaves a process there. A worker with a process other than the last works on it until the
//! last has been taken. So a lost wake-up leaves a process and its taker waiting for ever, and loom
//! reports it.

use crate::queues::idle::{Idle, Woken};
use ganger_mpsc::Injector;
use ganger_sync::atomic::{AtomicUsize, Ordering};
use ganger_sync::sync::Arc;
use ganger_sync::{Parker, model, thread};

struct Pool {
    idle: Idle,
    lane: Injector<()>,
    /// Processes not taken for the last time.
    left: AtomicUsize,
    busy: Vec<Parker>,
}

impl Pool {
    fn new(workers: usize, processes: usize) -> Arc<Self> {
        Arc::new(Self {
            idle: Idle::new(workers, workers),
            lane: Injector::new(),
            left: AtomicUsize::new(processes),
            busy: (0..workers).map(|_| Parker::new()).collect(),
        })
    }

    fn look(&self, searching: bool) -> bool {
        if self.lane.is_empty() {
            return false;
        }
        let taken = self.lane.pop().is_some();
        if !searching && !self.lane.is_empty() {
            self.idle.notify_from_outside();
        }
        taken
    }

    /// Takes a process, works on it until the last has been taken, and returns. `requeues`: this
    /// worker begins with a process that it has just run.
    fn work(&self, index: usize, requeues: bool) {
        let mut searching = false;
        if requeues {
            self.lane.push(());
        }
        while !self.look(searching) {
            if !searching && self.idle.begin_search() {
                searching = true;
                continue;
            }
            let woken = self.idle.sleep(
                index,
                searching,
                || false,
                || !self.lane.is_empty(),
                || None,
            );
            searching = woken == Woken::Notified;
        }
        if searching {
            self.idle.end_search(|| !self.lane.is_empty());
        }
        // Ordering: SeqCst, as the flag that halts the real workers.
        if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.busy.iter().for_each(Parker::unpark);
        } else {
            self.busy[index].park();
        }
    }
}

fn model(workers: usize, pushed: usize, requeued: usize, preemptions: usize) {
    model::check(preemptions, move || {
        let pool = Pool::new(workers, pushed + requeued);
        let threads: Vec<_> = (0..workers)
            .map(|index| {
                let pool = Arc::clone(&pool);
                thread::spawn(move || pool.work(index, index < requeued))
            })
            .collect();
        for _ in 0..pushed {
            pool.lane.push(());
            pool.idle.notify_from_outside();
        }
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(pool.lane.is_empty(), "somebody was counted wrongly");
    });
}

// pins: G2
#[test]
fn an_urgent_push_against_falling_asleep() {
    model(1, 1, 0, 4);
}

// pins: G2
#[test]
fn a_worker_that_leaves_something_in_the_lane_wakes_another() {
    model(2, 1, 1, 2);
}

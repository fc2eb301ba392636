//! Steps of relieved workers that somebody has to report: none is left beside workers that all sleep.
//!
//! Workers look for what is to be told, and sleep, as `worker.rs` does it; somebody has things told as the monitor
//! does. Checked: each is told once. One that everybody overlooks leaves them asleep for ever, which loom reports.

use super::loom_crew::relief;
use crate::crew::{Crew, Untold};
use crate::idle::{Idle, Woken};
use ganger_sync::atomic::{AtomicBool, Ordering};
use ganger_sync::sync::Arc;
use ganger_sync::{model, thread};
// A note of what has happened, which orders nothing.
use std::sync::Mutex;

struct Telling {
    crew: Crew,
    idle: Idle,
    is_over: AtomicBool,
    told: Mutex<Vec<u64>>,
}

impl Telling {
    fn work(&self, index: usize, things: usize) {
        let mut searching = false;
        // Ordering: SeqCst, as the flag that halts the real workers.
        let is_over = || self.is_over.load(Ordering::SeqCst);
        let is_called = || self.crew.calls(index).is_any();
        while !is_over() {
            if !searching && self.idle.begin_search() {
                searching = true;
                continue;
            }
            let asked = std::mem::take(&mut searching);
            let woken = self.idle.sleep(index, asked, is_over, is_called, || ());
            searching = woken == Woken::Notified || self.idle.begin_search();
            if is_called() {
                if std::mem::take(&mut searching) {
                    self.idle.end_search(|| false);
                }
                while let Some(Untold::Step(relief)) = self.crew.take_untold(index) {
                    let mut told = self.told.lock().unwrap();
                    told.push(relief.turn);
                    if told.len() == things {
                        drop(told);
                        // Ordering: SeqCst, as above.
                        self.is_over.store(true, Ordering::SeqCst);
                        self.idle.notify_all();
                    }
                }
            }
        }
        if searching {
            self.idle.end_search(is_called);
        }
    }
}

fn telling(workers: usize, things: usize, preemptions: usize) {
    model::check(preemptions, move || {
        let telling = Arc::new(Telling {
            crew: Crew::new(workers, workers, None),
            idle: Idle::new(workers, workers),
            is_over: AtomicBool::new(false),
            told: Mutex::default(),
        });
        let threads: Vec<_> = (0..workers)
            .map(|index| {
                let telling = Arc::clone(&telling);
                thread::spawn(move || telling.work(index, things))
            })
            .collect();
        for turn in (0..).take(things) {
            telling.crew.have_told(Untold::Step(relief(turn, 0)));
            telling.idle.notify();
        }
        for thread in threads {
            thread.join().unwrap();
        }
        let mut told = std::mem::take(&mut *telling.told.lock().unwrap());
        told.sort_unstable();
        assert!(told.into_iter().eq((0..).take(things)), "told twice");
    });
}

// pins: G6
#[test]
fn what_is_to_be_told_against_who_falls_asleep() {
    telling(1, 2, 4);
}

// pins: G6
#[test]
fn what_is_to_be_told_by_one_of_two() {
    telling(2, 2, 2);
}

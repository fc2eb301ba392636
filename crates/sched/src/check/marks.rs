//! What is noted of each process: whether it is queued or runs, and since when it waits.
//!
//! A wait is counted in picks of the workers that had the process, from when it was queued, or from
//! as far back as is known through whose deques it came (`trail.rs`); so what is counted is never
//! more than what was promised about.

use super::note::Note;
use super::trail::Wait;
use super::{Book, Check, broken};
use ganger_sync::atomic::{AtomicU32, Ordering};
use ganger_sync::sync::{Mutex, lock};
use std::sync::Arc;

/// Neither queued nor running: it is new, or waits.
const FREE: u32 = 0;
const QUEUED: u32 = 1;
const RUNNING: u32 = 2;

/// A process's part of the check.
pub(crate) struct ProcessCheck(Option<Box<Marks>>);

struct Marks {
    place: AtomicU32,
    /// Its last push.
    note: Mutex<Option<Arc<Note>>>,
}

/// The formula of the promise.
#[derive(Clone, Copy)]
pub(super) struct Bound {
    pub(super) rotation: u64,
    pub(super) batch: u64,
}

impl Bound {
    /// For a process that has so many before it.
    pub(super) fn of(self, before: u64) -> u64 {
        (self.rotation + 1) * (before + self.batch + 2)
    }
}

/// The longest wait.
#[derive(Clone, Copy, Default)]
pub(super) struct Worst {
    pub(super) waited: u64,
    pub(super) before: u64,
    /// The largest part of its bound that any has waited, in thousandths.
    pub(super) closest: u64,
}

impl ProcessCheck {
    pub(crate) fn new(check: &Check) -> Self {
        Self(check.book.as_ref().map(|_| {
            Box::new(Marks {
                place: AtomicU32::new(FREE),
                note: Mutex::new(None),
            })
        }))
    }

    /// It is about to be queued.
    pub(super) fn queue(&self, note: &Arc<Note>) {
        self.enter(FREE, QUEUED);
        self.note(note);
    }

    /// It is about to be queued, or to be moved from one queue to another.
    pub(super) fn note(&self, note: &Arc<Note>) {
        if let Some(marks) = &self.0 {
            *lock(&marks.note) = Some(Arc::clone(note));
        }
    }

    /// The worker takes it from a queue.
    pub(super) fn pick(&self, worker: usize, book: &Book) {
        let slot = &book.slots[worker];
        // Ordering: Relaxed: this thread writes it.
        let now = slot.picks.load(Ordering::Relaxed) + 1;
        // Ordering: Relaxed: a count.
        slot.picks.store(now, Ordering::Relaxed);
        let fetched = lock(&slot.fetched).take();
        let note = self.0.as_ref().and_then(|marks| lock(&marks.note).clone());
        let Some((note, queued)) = note.as_ref().and_then(|it| Some((it, it.queued()?))) else {
            return;
        };
        let Wait { picks, above } = match &fetched {
            Some(fetched) => queued.wait_of_fetched(fetched),
            None => {
                let stolen = lock(&slot.stolen).clone();
                queued.wait(worker, now, stolen.as_deref())
            }
        };
        let (waited, before) = (picks, note.before + above);
        let bound = book.bound_of(before);
        if waited > bound {
            let found = format!(
                "a process has waited for {waited} picks, the last of worker {worker}, \
                with {before} before \
                 it: the bound is {bound}"
            );
            broken("G4", &found);
        }
        let closest = 1_000 * waited / bound;
        if closest > 0 {
            let mut worst = lock(&book.worst);
            worst.closest = worst.closest.max(closest);
            if waited > worst.waited {
                (worst.waited, worst.before) = (waited, before);
            }
        }
    }

    /// Its turn begins.
    pub(crate) fn begin(&self) {
        self.enter(QUEUED, RUNNING);
    }

    /// Its turn is over, but for what becomes of it.
    pub(crate) fn end(&self) {
        self.enter(RUNNING, FREE);
    }

    fn enter(&self, from: u32, to: u32) {
        let Some(marks) = &self.0 else { return };
        // Ordering: AcqRel: one owner of the run token after the other.
        let before = marks.place.swap(to, Ordering::AcqRel);
        if before != from {
            let (was, goes) = (text(before), text(to));
            broken(
                "G1",
                &format!("a process is {was} and is about to be {goes}"),
            );
        }
    }
}

fn text(place: u32) -> &'static str {
    match place {
        FREE => "neither queued nor running",
        QUEUED => "queued",
        _ => "running",
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::base::config::Config;

    fn check() -> Check {
        let config = Config {
            is_checked: true,
            ..Config::default()
        };
        Check::new(&config, 2)
    }

    /// Queues the process at once.
    fn queue(process: &ProcessCheck, by: Option<usize>, before: usize, book: &Book) {
        let note = Note::new(by, before, book);
        note.settle(book);
        process.queue(&Arc::new(note));
    }

    // pins: G1
    #[test]
    #[should_panic(expected = "G1 is broken: a process is queued and is about to be queued")]
    fn a_process_that_is_queued_twice_is_found() {
        let check = check();
        let book = check.book.as_ref().unwrap();
        let process = ProcessCheck::new(&check);
        for _ in 0..2 {
            queue(&process, None, 0, book);
            process.begin();
            process.end();
        }
        queue(&process, None, 0, book);
        queue(&process, Some(1), 0, book);
    }

    // pins: G1
    #[test]
    #[should_panic(expected = "G1 is broken: a process is running and is about to be running")]
    fn a_process_that_runs_twice_is_found() {
        let check = check();
        let process = ProcessCheck::new(&check);
        queue(&process, Some(0), 0, check.book.as_ref().unwrap());
        process.begin();
        process.begin();
    }

    /// Puts that many other picks of worker 1 before the next.
    fn others(book: &Book, picks: u64) {
        picks_of(book, 1, picks);
    }

    /// The worker makes that many picks of other processes.
    fn picks_of(book: &Book, worker: usize, picks: u64) {
        // Ordering: Relaxed: there is one thread.
        book.slots[worker].picks.fetch_add(picks, Ordering::Relaxed);
    }

    fn steal(check: &Check, thief: usize, victim: usize) {
        check.steal(thief, check.glimpse(victim));
    }

    // pins: G4
    #[test]
    #[should_panic(expected = "waited for 2561 picks, the last of worker 1, with 2 before it")]
    fn a_process_that_waits_for_too_long_is_found() {
        let check = check();
        let book = check.book.as_ref().unwrap();
        let process = ProcessCheck::new(&check);
        for picks in [128 * 20, 128 * 20 + 1] {
            queue(&process, Some(1), 2, book);
            others(book, picks - 1);
            process.pick(1, book);
            process.begin();
            process.end();
            assert_eq!(book.summary().worst, 128 * 20);
        }
    }

    // pins: G4
    #[test]
    fn a_wait_begins_when_the_push_is_over_however_long_that_was_held_up() {
        let check = check();
        let book = check.book.as_ref().unwrap();
        let process = ProcessCheck::new(&check);
        let hold_up = || others(book, 10_000);
        book.put(
            || 0,
            |note| {
                process.queue(note);
                hold_up();
            },
        );
        others(book, 99);
        process.pick(1, book);
        assert_eq!(book.summary().worst, 100);
        process.begin();
        process.end();
        let picked_meanwhile = |note: &Arc<Note>| {
            process.queue(note);
            hold_up();
            process.pick(1, book);
        };
        book.put(|| 0, picked_meanwhile);
        assert_eq!(book.summary().worst, 100);
    }

    /// The wait of a process that worker 0 queues behind so many, and that worker 1 picks after
    /// `moves`.
    fn waited(before: usize, moves: impl FnOnce(&Check, &Book)) -> u64 {
        waited_by(Some(0), before, moves)
    }

    fn waited_by(by: Option<usize>, before: usize, moves: impl FnOnce(&Check, &Book)) -> u64 {
        let check = check();
        let book = check.book.as_ref().unwrap();
        for worker in 0..3 {
            // So that a count that begins at nothing shows.
            picks_of(book, worker, 100_000);
            steal(&check, worker, (worker + 1) % 3);
            picks_of(book, worker, 100_000);
        }
        let process = ProcessCheck::new(&check);
        queue(&process, by, before, book);
        moves(&check, book);
        process.pick(1, book);
        book.summary().worst
    }

    // pins: G4
    #[test]
    fn a_wait_goes_on_when_the_process_is_stolen() {
        let once = waited(0, |check, book| {
            picks_of(book, 0, 500);
            steal(check, 1, 0);
            picks_of(book, 0, 3_000);
            others(book, 99);
        });
        assert_eq!(once, 600);
        // From 0 to 2, back to 0, and to 1.
        let thrice = waited(0, |check, book| {
            for (thief, victim) in [(2, 0), (0, 2), (1, 0)] {
                picks_of(book, victim, 200);
                steal(check, thief, victim);
                picks_of(book, victim, 3_000);
            }
            others(book, 99);
        });
        assert_eq!(thrice, 700);
        // From 1 to 0 and back.
        let back = waited_by(Some(1), 0, |check, book| {
            for (thief, victim) in [(0, 1), (1, 0)] {
                picks_of(book, victim, 300);
                steal(check, thief, victim);
            }
            others(book, 99);
        });
        assert_eq!(back, 700);
    }

    // pins: G4
    #[test]
    #[should_panic(expected = "waited for 2305 picks, the last of worker 1, with 0 before it")]
    fn a_process_that_is_stolen_and_waits_for_too_long_is_found() {
        let moves = |picks: u64| {
            move |check: &Check, book: &Book| {
                picks_of(book, 0, 1_000);
                steal(check, 1, 0);
                others(book, picks - 1_001);
            }
        };
        assert_eq!(waited(0, moves(128 * 18)), 128 * 18);
        waited(0, moves(128 * 18 + 1));
    }

    #[test]
    fn a_wait_counts_from_the_steal_when_the_victim_may_have_stolen_meanwhile() {
        let in_between = waited(0, |check, book| {
            picks_of(book, 0, 500);
            let glimpse = check.glimpse(0);
            check.begin_pick(0);
            check.end_pick(0);
            check.steal(1, glimpse);
            others(book, 99);
        });
        assert_eq!(in_between, 100);
        let during = waited(0, |check, book| {
            picks_of(book, 0, 500);
            check.begin_pick(0);
            steal(check, 1, 0);
            others(book, 99);
        });
        assert_eq!(during, 100);
    }

    #[test]
    fn the_shorter_way_counts_where_there_are_two_from_the_global_queue() {
        let by_itself = waited_by(None, 0, |check, book| {
            picks_of(book, 0, 1_000);
            others(book, 50);
            steal(check, 1, 0);
            others(book, 49);
        });
        assert_eq!(by_itself, 100);
        let stolen = waited_by(None, 0, |check, book| {
            picks_of(book, 0, 20);
            others(book, 1_000);
            steal(check, 1, 0);
            others(book, 79);
        });
        assert_eq!(stolen, 100);
    }

    #[test]
    fn what_a_process_is_put_on_top_of_is_before_it() {
        // It would be too long without.
        let taken_over = waited(0, |check, book| {
            check.take_over(1, 10);
            others(book, 128 * 28 - 1);
        });
        assert_eq!(taken_over, 128 * 28);
    }

    // pins: G4
    #[test]
    fn the_wait_of_one_that_is_fetched_goes_on_and_that_of_the_next_is_its_own() {
        let fetched = waited(0, |check, book| {
            picks_of(book, 0, 500);
            check.balance(1, check.glimpse(0));
        });
        assert_eq!(fetched, 501);
        let in_between = waited(0, |check, book| {
            picks_of(book, 0, 500);
            let glimpse = check.glimpse(0);
            check.begin_pick(0);
            check.balance(1, glimpse);
        });
        assert_eq!(in_between, 0, "a single pick is not worth a note");
        let stolen_before = waited(0, |check, book| {
            picks_of(book, 0, 200);
            steal(check, 2, 0);
            picks_of(book, 2, 300);
            check.balance(1, check.glimpse(2));
        });
        assert_eq!(stolen_before, 501);
        let next = waited_by(Some(1), 0, |check, book| {
            others(book, 300);
            check.balance(1, check.glimpse(0));
            let other = ProcessCheck::new(check);
            queue(&other, Some(0), 0, book);
            other.pick(1, book);
        });
        assert_eq!(next, 302);
    }

    #[test]
    fn a_trail_comes_to_an_end() {
        let long = waited(0, |check, book| {
            for _ in 0..1_000 {
                for (thief, victim) in [(2, 0), (0, 2), (1, 0), (0, 1)] {
                    picks_of(book, victim, 1);
                    steal(check, thief, victim);
                }
            }
            steal(check, 1, 0);
        });
        assert!((1..=10).contains(&long), "{long}");
    }
}

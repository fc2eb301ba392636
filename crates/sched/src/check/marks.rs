//! The marks of each process: whether it is queued or runs, and since when it waits.
//!
//! A wait is counted in picks of the workers that had the process. The wait begins when the process
//! was queued, or as far back as its way through deques is known (`trail.rs`). So a count is never
//! larger than the wait.

use super::note::Note;
use super::trail::Wait;
use super::{Checker, violation};
use ganger_sync::atomic::{AtomicU32, Ordering};
use ganger_sync::sync::{Mutex, lock};
use std::sync::Arc;

/// Neither queued nor running: it is new, or waits.
const FREE: u32 = 0;
const QUEUED: u32 = 1;
const RUNNING: u32 = 2;

/// A process's part of the check.
#[derive(Default)]
pub(crate) struct Marks {
    /// `FREE`, `QUEUED` or `RUNNING`.
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
    /// Returns the bound of a process with `before` others in front.
    pub(super) fn of(self, before: u64) -> u64 {
        (self.rotation + 1) * (before + self.batch + 2)
    }
}

/// The longest wait.
#[derive(Clone, Copy, Default)]
pub(super) struct Worst {
    pub(super) waited: u64,
    pub(super) before: u64,
    /// The largest part of its bound that any process has waited, in thousandths.
    pub(super) closest: u64,
}

impl Marks {
    /// Notes the process before it is queued.
    pub(super) fn queue(&self, note: &Arc<Note>) {
        self.enter(FREE, QUEUED);
        self.note(note);
    }

    /// Notes the process before it is queued, or moved from one queue to another.
    pub(super) fn note(&self, note: &Arc<Note>) {
        *lock(&self.note) = Some(Arc::clone(note));
    }

    /// Notes a pick: the worker takes the process from a queue.
    pub(super) fn pick(&self, worker: usize, checker: &Checker) {
        let slot = &checker.slots[worker];
        // Ordering: Relaxed: this thread writes it.
        let now = slot.picks.load(Ordering::Relaxed) + 1;
        // Ordering: Relaxed: a count.
        slot.picks.store(now, Ordering::Relaxed);
        let fetched = lock(&slot.fetched).take();
        let note = lock(&self.note).clone();
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
        let bound = checker.bound_of(before);
        if waited > bound {
            let found = format!(
                "a process has waited for {waited} picks, the last of worker {worker}, \
                with {before} before \
                 it: the bound is {bound}"
            );
            violation("G4", &found);
        }
        let closest = 1_000 * waited / bound;
        if closest > 0 {
            let mut worst = lock(&checker.worst);
            worst.closest = worst.closest.max(closest);
            if waited > worst.waited {
                (worst.waited, worst.before) = (waited, before);
            }
        }
    }

    /// Notes the begin of the process's turn.
    pub(super) fn begin(&self) {
        self.enter(QUEUED, RUNNING);
    }

    /// Ends its turn. Its fate comes next.
    pub(super) fn end(&self) {
        self.enter(RUNNING, FREE);
    }

    fn enter(&self, from: u32, to: u32) {
        // Ordering: AcqRel: owners of the run token follow one another.
        let before = self.place.swap(to, Ordering::AcqRel);
        if before != from {
            let (was, goes) = (text(before), text(to));
            violation(
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

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::super::points::Guard;
    use super::super::trail::Observed;
    use super::*;
    use crate::config::Config;
    use crate::probe::Theft;

    fn checker() -> Checker {
        Checker::new(&Config::default(), 2)
    }

    /// Queues the process at once.
    fn queue(process: &Marks, by: Option<usize>, before: usize, checker: &Checker) {
        let note = Note::new(by, before, checker);
        note.settle(checker);
        process.queue(&Arc::new(note));
    }

    // pins: G1
    #[test]
    #[should_panic(expected = "G1 is broken: a process is queued and is about to be queued")]
    fn a_process_that_is_queued_twice_is_found() {
        let checker = &checker();
        let process = Marks::default();
        for _ in 0..2 {
            queue(&process, None, 0, checker);
            process.begin();
            process.end();
        }
        queue(&process, None, 0, checker);
        queue(&process, Some(1), 0, checker);
    }

    // pins: G1
    #[test]
    #[should_panic(expected = "G1 is broken: a process is running and is about to be running")]
    fn a_process_that_runs_twice_is_found() {
        let checker = &checker();
        let process = Marks::default();
        queue(&process, Some(0), 0, checker);
        process.begin();
        process.begin();
    }

    /// Adds `picks` other picks of worker 1 before the next.
    fn others(checker: &Checker, picks: u64) {
        picks_of(checker, 1, picks);
    }

    /// Adds `picks` picks of other processes by the worker.
    fn picks_of(checker: &Checker, worker: usize, picks: u64) {
        // Ordering: Relaxed: the test has one thread.
        checker.slots[worker]
            .picks
            .fetch_add(picks, Ordering::Relaxed);
    }

    fn steal(checker: &Checker, thief: usize, victim: usize) {
        checker.stole(thief, checker.observe(victim), Theft::Half);
    }

    // pins: G4
    #[test]
    #[should_panic(expected = "waited for 2561 picks, the last of worker 1, with 2 before it")]
    fn a_process_that_waits_for_too_long_is_found() {
        let checker = &checker();
        let process = Marks::default();
        for picks in [128 * 20, 128 * 20 + 1] {
            queue(&process, Some(1), 2, checker);
            others(checker, picks - 1);
            process.pick(1, checker);
            process.begin();
            process.end();
            assert_eq!(checker.summary().worst, 128 * 20);
        }
    }

    // pins: G4
    #[test]
    fn a_wait_begins_when_the_push_is_over_however_long_that_was_held_up() {
        let checker = &checker();
        let process = Marks::default();
        let hold_up = || others(checker, 10_000);
        let mark = |put: &Guard<'_>| match put {
            Guard::Put { note, .. } => process.queue(note),
            _ => unreachable!("it is a push"),
        };
        let put = checker.put(|| 0);
        mark(&put);
        hold_up();
        drop(put);
        others(checker, 99);
        process.pick(1, checker);
        assert_eq!(checker.summary().worst, 100);
        process.begin();
        process.end();
        let put = checker.put(|| 0);
        mark(&put);
        hold_up();
        process.pick(1, checker);
        drop(put);
        assert_eq!(checker.summary().worst, 100);
    }

    /// Returns the wait of a process queued by worker 0 behind `before` others, and picked by
    /// worker 1 after `moves`.
    fn waited(before: usize, moves: impl FnOnce(&Checker)) -> u64 {
        waited_by(Some(0), before, moves)
    }

    fn waited_by(by: Option<usize>, before: usize, moves: impl FnOnce(&Checker)) -> u64 {
        let checker = &checker();
        for worker in 0..3 {
            // Both have made many picks before, so a count from zero shows.
            picks_of(checker, worker, 100_000);
            steal(checker, worker, (worker + 1) % 3);
            picks_of(checker, worker, 100_000);
        }
        let process = Marks::default();
        queue(&process, by, before, checker);
        moves(checker);
        process.pick(1, checker);
        checker.summary().worst
    }

    // pins: G4
    #[test]
    fn a_wait_goes_on_when_the_process_is_stolen() {
        let once = waited(0, |checker| {
            picks_of(checker, 0, 500);
            steal(checker, 1, 0);
            picks_of(checker, 0, 3_000);
            others(checker, 99);
        });
        assert_eq!(once, 600);
        // From 0 to 2, back to 0, and to 1.
        let thrice = waited(0, |checker| {
            for (thief, victim) in [(2, 0), (0, 2), (1, 0)] {
                picks_of(checker, victim, 200);
                steal(checker, thief, victim);
                picks_of(checker, victim, 3_000);
            }
            others(checker, 99);
        });
        assert_eq!(thrice, 700);
        // From 1 to 0 and back.
        let back = waited_by(Some(1), 0, |checker| {
            for (thief, victim) in [(0, 1), (1, 0)] {
                picks_of(checker, victim, 300);
                steal(checker, thief, victim);
            }
            others(checker, 99);
        });
        assert_eq!(back, 700);
    }

    // pins: G4
    #[test]
    #[should_panic(expected = "waited for 2305 picks, the last of worker 1, with 0 before it")]
    fn a_process_that_is_stolen_and_waits_for_too_long_is_found() {
        let moves = |picks: u64| {
            move |checker: &Checker| {
                picks_of(checker, 0, 1_000);
                steal(checker, 1, 0);
                others(checker, picks - 1_001);
            }
        };
        assert_eq!(waited(0, moves(128 * 18)), 128 * 18);
        waited(0, moves(128 * 18 + 1));
    }

    #[test]
    fn a_wait_counts_from_the_steal_when_the_victim_may_have_stolen_meanwhile() {
        let in_between = waited(0, |checker| {
            picks_of(checker, 0, 500);
            let observed = checker.observe(0);
            checker.slots[0].begin();
            checker.slots[0].settle();
            checker.stole(1, observed, Theft::Half);
            others(checker, 99);
        });
        assert_eq!(in_between, 100);
        let during = waited(0, |checker| {
            picks_of(checker, 0, 500);
            checker.slots[0].begin();
            steal(checker, 1, 0);
            others(checker, 99);
        });
        assert_eq!(during, 100);
    }

    #[test]
    fn the_shorter_way_counts_where_there_are_two_from_the_global_queue() {
        let by_itself = waited_by(None, 0, |checker| {
            picks_of(checker, 0, 1_000);
            others(checker, 50);
            steal(checker, 1, 0);
            others(checker, 49);
        });
        assert_eq!(by_itself, 100);
        let stolen = waited_by(None, 0, |checker| {
            picks_of(checker, 0, 20);
            others(checker, 1_000);
            steal(checker, 1, 0);
            others(checker, 79);
        });
        assert_eq!(stolen, 100);
    }

    #[test]
    fn what_a_process_is_put_on_top_of_is_before_it() {
        // Without the ten processes below it, the wait would be too long.
        let taken_over = waited(0, |checker| {
            checker.stole(1, Observed::default(), Theft::Onto(10));
            others(checker, 128 * 28 - 1);
        });
        assert_eq!(taken_over, 128 * 28);
    }

    // pins: G4
    #[test]
    fn the_wait_of_one_that_is_fetched_goes_on_and_that_of_the_next_is_its_own() {
        let fetched = waited(0, |checker| {
            picks_of(checker, 0, 500);
            checker.stole(1, checker.observe(0), Theft::One);
        });
        assert_eq!(fetched, 501);
        let in_between = waited(0, |checker| {
            picks_of(checker, 0, 500);
            let observed = checker.observe(0);
            checker.slots[0].begin();
            checker.stole(1, observed, Theft::One);
        });
        assert_eq!(in_between, 0, "a single pick is not worth a note");
        let stolen_before = waited(0, |checker| {
            picks_of(checker, 0, 200);
            steal(checker, 2, 0);
            picks_of(checker, 2, 300);
            checker.stole(1, checker.observe(2), Theft::One);
        });
        assert_eq!(stolen_before, 501);
        let next = waited_by(Some(1), 0, |checker| {
            others(checker, 300);
            checker.stole(1, checker.observe(0), Theft::One);
            let other = Marks::default();
            queue(&other, Some(0), 0, checker);
            other.pick(1, checker);
        });
        assert_eq!(next, 302);
    }

    #[test]
    fn a_trail_comes_to_an_end() {
        let long = waited(0, |checker| {
            for _ in 0..1_000 {
                for (thief, victim) in [(2, 0), (0, 2), (1, 0), (0, 1)] {
                    picks_of(checker, victim, 1);
                    steal(checker, thief, victim);
                }
            }
            steal(checker, 1, 0);
        });
        assert!((1..=10).contains(&long), "{long}");
    }
}

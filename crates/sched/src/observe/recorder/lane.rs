//! The lane of one thread at a time: a ring, and the state for its next events.
//!
//! Only the present worker of this place writes here, and its successor in the place has been
//! started, or has been let in, after it was done: as in `base/shares.rs`. The lane of all other
//! threads is behind a lock. So all accesses are relaxed.

use super::names::Names;
use ganger_ring::event::{After, Event, Pick, WORDS};
use ganger_ring::{Reader, SharedWriter};
use ganger_sync::atomic::{AtomicU64, Ordering};

/// How many texts a thread finds without a lock. A power of two.
const REMEMBERED: usize = 64;

pub(super) struct Lane {
    ring: SharedWriter<WORDS>,
    /// The reading of the clock of the last event.
    pub(super) last: Own,
    /// The process whose turn it is, or 0.
    running: Own,
    /// The steps of the present turn, or of the last.
    steps: Own,
    /// The process whose turn is over, whose end is not written yet, or 0.
    over: Own,
    /// An [`After`] by its number: the fate of this process.
    after: Own,
    /// The process that acts on this thread, in its turn or with its end; or 0.
    acts: Own,
    /// A [`Pick`] by its number: from where the next turn comes.
    pick: Own,
    /// The lateness in nanoseconds of the timers being fired.
    pub(super) late: Own,
    remembered: Box<[Remembered]>,
}

/// A word of the thread's own; no other thread reads the word.
#[derive(Default)]
pub(super) struct Own(AtomicU64);

impl Own {
    #[inline(always)]
    pub(super) fn get(&self) -> u64 {
        // Ordering: Relaxed, here and below: see the module.
        self.0.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(super) fn set(&self, value: u64) {
        // Ordering: Relaxed: see the module.
        self.0.store(value, Ordering::Relaxed);
    }
}

/// A text by its address and its length, with its number.
#[derive(Default)]
struct Remembered {
    address: Own,
    length: Own,
    number: Own,
}

impl Lane {
    pub(super) fn new(bytes: usize) -> Self {
        let remembered = std::iter::repeat_with(Remembered::default);
        Self {
            ring: ganger_ring::ring(bytes).0.share(),
            last: Own::default(),
            running: Own::default(),
            steps: Own::default(),
            pick: Own::default(),
            over: Own::default(),
            after: Own::default(),
            acts: Own::default(),
            late: Own::default(),
            remembered: remembered.take(REMEMBERED).collect(),
        }
    }

    pub(super) fn reader(&self) -> Reader<WORDS> {
        self.ring.reader()
    }

    #[inline(always)]
    pub(super) fn push(&self, event: Event, at: u64) {
        self.ring.push(event.record(at));
    }

    /// Sets where the next turn comes from.
    pub(super) fn set_pick(&self, pick: Pick) {
        self.pick.set(pick as u64);
    }

    /// Takes the place from where this turn comes; the next turn comes from the worker's own deque,
    /// unless the worker says otherwise.
    #[inline(always)]
    pub(super) fn take_pick(&self) -> Pick {
        let number = self.pick.get();
        if number == 0 {
            return Pick::Local;
        }
        self.pick.set(0);
        let of_number = |it: &&Pick| **it as u64 == number;
        Pick::ALL
            .iter()
            .find(of_number)
            .copied()
            .unwrap_or(Pick::Local)
    }

    /// Counts another step of the turn of this process, and returns whether it is this process's
    /// turn.
    #[inline(always)]
    pub(super) fn goes_on(&self, id: u64) -> bool {
        let goes_on = self.running.get() == id;
        if goes_on {
            self.steps.set(self.steps.get() + 1);
        }
        goes_on
    }

    /// Returns whether it is the turn of this process.
    pub(super) fn is_turn_of(&self, id: u64) -> bool {
        self.running.get() == id
    }

    /// Begins a turn, with `steps` steps so far.
    #[inline(always)]
    pub(super) fn begin_turn(&self, id: u64, steps: u64) {
        self.running.set(id);
        self.acts.set(id);
        self.steps.set(steps);
    }

    /// Ends the turn.
    #[inline(always)]
    pub(super) fn end_turn(&self, id: u64, after: After) {
        self.running.set(0);
        self.over.set(id);
        self.after.set(after as u64);
    }

    /// Writes the end of a turn, if unwritten. Returns whether the end was unwritten.
    #[inline(always)]
    pub(super) fn settle(&self, at: u64) -> bool {
        let process = self.over.get();
        if process == 0 {
            return false;
        }
        self.over.set(0);
        let number = self.after.get();
        let of_number = |it: &&After| **it as u64 == number;
        let after = After::ALL.iter().find(of_number).copied();
        let ends = Event::TurnEnds {
            process,
            after: after.unwrap_or(After::Waits),
            steps: self.steps.get(),
        };
        self.push(ends, at);
        true
    }

    /// Returns whether the end of a turn is not written.
    #[inline(always)]
    pub(super) fn owes_an_end(&self) -> bool {
        self.over.get() != 0
    }

    /// Returns the process that acts on this thread, or 0.
    #[inline(always)]
    pub(super) fn acts(&self) -> u64 {
        self.acts.get()
    }

    /// Notes this thread as acting for no process.
    pub(super) fn act_alone(&self) {
        self.acts.set(0);
    }

    /// Returns the number of a text. O(1), without a lock where the thread has seen it lately.
    #[inline(always)]
    pub(super) fn name(&self, text: &'static str, names: &Names) -> u32 {
        let address = text.as_ptr().addr();
        // Texts are in rows of memory: neighbours have places of their own.
        let place = (address >> 3 ^ address >> 9) & (REMEMBERED - 1);
        let known = &self.remembered[place];
        if known.address.get() == address as u64 && known.length.get() == text.len() as u64 {
            return known.number();
        }
        known.learn(text, names)
    }
}

impl Remembered {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a number of four bytes is there"
    )]
    #[inline(always)]
    fn number(&self) -> u32 {
        self.number.get() as u32
    }

    #[cold]
    #[inline(never)]
    fn learn(&self, text: &'static str, names: &Names) -> u32 {
        let number = names.of(text);
        self.address.set(text.as_ptr().addr() as u64);
        self.length.set(text.len() as u64);
        self.number.set(number.into());
        number
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_lane_remembers_texts_by_their_places() {
        let (lane, names) = (Lane::new(64), Names::default());
        let text: &'static str = "abcabc";
        // An address with two lengths, and two addresses with the same text.
        let (first, half, other) = (&text[..3], text, &text[3..]);
        for _ in 0..2 {
            let numbers = [first, half, other, ""].map(|it| lane.name(it, &names));
            assert_eq!(numbers, [1, 2, 1, 0]);
        }
    }

    #[test]
    fn a_turn_comes_from_the_own_deque_unless_the_worker_says_otherwise() {
        let lane = Lane::new(64);
        assert_eq!(lane.take_pick(), Pick::Local);
        for pick in Pick::ALL {
            lane.set_pick(*pick);
            assert_eq!((lane.take_pick(), lane.take_pick()), (*pick, Pick::Local));
        }
    }

    #[test]
    fn an_end_is_written_once_before_the_next_event() {
        let lane = Lane::new(1 << 10);
        assert!(!lane.settle(1) && !lane.goes_on(7));
        lane.begin_turn(7, 1);
        assert!(lane.goes_on(7) && !lane.goes_on(8) && !lane.owes_an_end());
        lane.end_turn(7, After::Ready);
        assert_eq!((lane.owes_an_end(), lane.acts()), (true, 7));
        assert!(lane.settle(5) && !lane.settle(6));
        lane.act_alone();
        assert_eq!((lane.owes_an_end(), lane.acts()), (false, 0));
        let records = lane.reader().snapshot().records;
        let ends = Event::TurnEnds {
            process: 7,
            after: After::Ready,
            steps: 2,
        };
        assert_eq!(records, [ends.record(5)]);
    }
}

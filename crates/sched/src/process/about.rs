//! The facts on a process for readers outside of the process: reports, observers, errors of
//! senders, and the watch of waits.
//!
//! The owner of the run token writes, and any thread reads. No value depends on another, so all
//! accesses are relaxed: each value was right at a moment of its own. Only the two parts of a
//! turn's mark have an order.

use ganger_proc_api::EndKind;
use ganger_sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::mem;
use std::ptr;

/// Returns the name of a type.
pub(crate) type Namer = fn() -> &'static str;

/// The ways to end, by their numbers.
const ENDS: [EndKind; 8] = [
    EndKind::Unknown,
    EndKind::Done,
    EndKind::Failed,
    EndKind::Panicked,
    EndKind::Cancelled,
    EndKind::Terminated,
    EndKind::UpgradeFailed,
    EndKind::Exited,
];

/// A unit is 2 to the power of this in nanoseconds: about half a millisecond.
const UNIT: u32 = 19;

pub(crate) struct About {
    /// A `Namer`, or null.
    namer: AtomicPtr<()>,
    /// The begin of the last step, in units since the scheduler was built, modulo 2^32, made odd.
    /// Zero before the first step; after the end another even number, for the kind of end.
    ran: AtomicU32,
    /// How many events the process's steps have left, above the count of its marked turns.
    left: AtomicU32,
}

/// The bits of the count of marked turns. A mark comes back only if exactly a multiple of 4,096
/// marked turns of the process follow while the coarse time stands still.
const MARKS: u32 = 12;

impl About {
    pub(crate) fn new(namer: Namer) -> Self {
        Self {
            namer: AtomicPtr::new(namer as *mut ()),
            ran: AtomicU32::new(0),
            left: AtomicU32::new(0),
        }
    }

    /// Notes the type of another process that has come into this process's place.
    pub(crate) fn replace(&self, namer: Namer) {
        // Ordering: Relaxed: see the module.
        self.namer.store(namer as *mut (), Ordering::Relaxed);
    }

    /// Returns the name of the process's type.
    pub(crate) fn type_name(&self) -> &'static str {
        // Ordering: Relaxed: see the module.
        let namer = self.namer.load(Ordering::Relaxed);
        debug_assert!(!ptr::eq(namer, ptr::null_mut()), "it is a function");
        // SAFETY: it was made of a `Namer`, and is never null.
        unsafe { mem::transmute::<*mut (), Namer>(namer)() }
    }

    /// Notes that a step begins, `nanos` nanoseconds after the scheduler was built.
    #[inline(always)]
    pub(crate) fn run(&self, nanos: u64) {
        // Ordering: Relaxed: see the module.
        self.ran.store(units(nanos), Ordering::Relaxed);
    }

    /// Returns how many nanoseconds ago the last turn began, if any. Exact to about a millisecond,
    /// and to three milliseconds where waits are watched, up to twelve days.
    pub(crate) fn ran_before(&self, nanos: u64) -> Option<u64> {
        // Ordering: Relaxed: see the module.
        let ran = self.ran.load(Ordering::Relaxed);
        // A turn may have begun after the caller has read the clock.
        let before = units(nanos).wrapping_sub(ran);
        let before = if before > u32::MAX / 2 { 0 } else { before };
        (ran & 1 == 1).then(|| u64::from(before) << UNIT)
    }

    /// Returns the mark of the last turn with a step. Unmarked turns share a mark while the coarse
    /// time stands still: see [`mark_turn`](Self::mark_turn).
    pub(crate) fn turn_mark(&self) -> u64 {
        // Ordering: Acquire: pairs with the release in `mark_turn`: behind the time of a marked
        // turn the reader finds the count of this turn, or of a later.
        let ran = self.ran.load(Ordering::Acquire);
        // Ordering: Relaxed: see above.
        let marks = self.left.load(Ordering::Relaxed) % (1 << MARKS);
        u64::from(ran) << 32 | u64::from(marks)
    }

    /// Gives this turn a mark that no later turn has, marked or not: the turn seems to have begun
    /// two milliseconds earlier, and is counted. For the owner of the run token.
    pub(crate) fn mark_turn(&self) -> u64 {
        // Ordering: Relaxed: the owner of the run token alone writes both words.
        let (ran, left) = (
            self.ran.load(Ordering::Relaxed),
            self.left.load(Ordering::Relaxed),
        );
        let marks = left.wrapping_add(1) % (1 << MARKS);
        // Ordering: Relaxed: the release below shows the count.
        self.left
            .store(left >> MARKS << MARKS | marks, Ordering::Relaxed);
        // Ordering: Release: pairs with the acquire in `turn_mark`.
        self.ran.store(ran.wrapping_sub(4), Ordering::Release);
        self.turn_mark()
    }

    /// Notes the kind of the process's end.
    #[inline(always)]
    pub(crate) fn end(&self, kind: EndKind) {
        // Ordering: Relaxed: see the module.
        self.ran.store(2 * kind as u32, Ordering::Relaxed);
    }

    /// Returns the kind of the process's end, where known by now.
    pub(crate) fn ended(&self) -> EndKind {
        // Ordering: Relaxed: see the module.
        let ran = self.ran.load(Ordering::Relaxed);
        if ran & 1 == 1 {
            return EndKind::Unknown;
        }
        ENDS.get(ran as usize / 2).copied().unwrap_or_default()
    }

    /// Returns how many events the steps have left so far; a million or more as a million.
    #[inline(always)]
    pub(crate) fn left(&self) -> usize {
        // Ordering: Relaxed: see the module.
        (self.left.load(Ordering::Relaxed) >> MARKS) as usize
    }

    /// Notes how many events the steps have left. For the owner of the run token.
    pub(crate) fn set_left(&self, left: usize) {
        let most = u32::MAX >> MARKS;
        let left = u32::try_from(left).map_or(most, |left| left.min(most));
        // Ordering: Relaxed: see the module; the owner of the run token alone writes.
        let marks = self.left.load(Ordering::Relaxed) % (1 << MARKS);
        self.left.store(left << MARKS | marks, Ordering::Relaxed);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "it is meant modulo 2^32")]
#[inline(always)]
fn units(nanos: u64) -> u32 {
    (nanos >> UNIT) as u32 | 1
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_where_the_count_begins_again() {
        let about = About::new(|| "a type");
        assert_eq!(about.ran_before(5), None);
        let unit = 1_u64 << UNIT;
        for at in [0, 6 * unit, (1 << 32) * unit - 2 * unit, (1 << 32) * unit] {
            about.run(at);
            let ago = |nanos| about.ran_before(at + nanos);
            assert_eq!((ago(0), ago(1000 * unit)), (Some(0), Some(1000 * unit)));
        }
        // The look came before the turn.
        about.run(9 * unit);
        assert_eq!(about.ran_before(8 * unit), Some(0));
    }

    #[test]
    fn no_later_turn_has_the_mark_of_a_marked_turn() {
        let about = About::new(|| "a type");
        let unit = 1_u64 << UNIT;
        for at in [0, unit, 6 * unit, (1 << 32) * unit] {
            about.run(at);
            let mark = about.mark_turn();
            assert_eq!(about.turn_mark(), mark);
            assert_eq!(about.ran_before(at), Some(4 * unit));
            about.run(at);
            assert_ne!(about.turn_mark(), mark, "a turn at the same moment");
            assert_ne!(about.mark_turn(), mark, "a marked turn at the same moment");
        }
    }

    // pins: F4
    #[test]
    fn each_way_to_end_is_known_and_is_no_time() {
        let about = About::new(|| "a type");
        assert_eq!(about.ended(), EndKind::Unknown);
        about.run(7 << UNIT);
        assert_eq!(about.ended(), EndKind::Unknown);
        for kind in ENDS {
            about.end(kind);
            assert_eq!((about.ended(), about.ran_before(9 << UNIT)), (kind, None));
        }
    }

    #[test]
    fn a_replaced_process_has_the_name_of_its_heir() {
        let about = About::new(|| "old");
        assert_eq!(about.type_name(), "old");
        about.replace(|| "new");
        assert_eq!((about.type_name(), about.left()), ("new", 0));
        about.set_left(3);
        assert_eq!(about.left(), 3);
        about.mark_turn();
        assert_eq!(about.left(), 3);
        let mark = about.turn_mark();
        about.set_left(usize::MAX);
        assert_eq!((about.left(), about.turn_mark()), ((1 << 20) - 1, mark));
    }
}

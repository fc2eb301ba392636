//! Yielding the thread, as long as that is of use and the system gives it back.
//!
//! **Problem.** A worker that finds nothing yields its thread a few times before it sleeps: to who is about to push, if
//! that is on the same processor, and else to save him the wake-up. That can go wrong in two ways. A worker that
//! searches is relied on: who pushes meanwhile wakes nobody (G5). While it yields, the system may run whoever else
//! computes on that processor, however low his priority, and for some milliseconds; what is pushed waits for as long,
//! beside workers that sleep. And where work comes seldom, yields are in vain, and not free: Linux charges a thread for
//! them, so that it is not run before its waker has blocked, when it is woken next.
//!
//! **Rejected.** Not to count as searching while it yields: somebody who pushes one process after the other
//! would wake a sleeper for each. To sleep at once, always: the same. To pause always in place of yielding: who pushes
//! on the same processor would wait for that, each time.
//!
//! **Protocol.** A yield that has lasted long, and from which a searcher comes back to a process or a few in the
//! global queue that a sleeper would have taken, was not for somebody who pushes. (What lies in deques is not looked
//! at: most of it would have waited anyway. Of a single worker, nobody could have taken it; whoever pushes to that
//! pays for wake-ups then, if it was he who has computed for so long.) It is the last one for a while: the worker
//! pauses in place of each, about as long as a yield takes that there is nobody for, and goes on by the same
//! ladder.
//!
//! A worker that has fallen asleep some dozens of times in a row after yields that found nothing falls asleep without
//! them for some hundreds of times, or until it stays awake after all because something is there. Then it tries again a
//! few times; a yield that comes back to a process is enough for it to go on with them.

use crate::clock::Since;
use ganger_sync::{hint, thread};
use std::time::Duration;

/// So long nobody else should wait for a yield.
const LONG: Duration = Duration::from_micros(100);

/// So often it falls asleep before it yields again, when somebody has waited for it.
const SLEEPS: u32 = 1_000;

/// In place of a yield.
const PAUSES: u32 = 16;

/// So often in a row it falls asleep after yields before it leaves them out.
pub(super) const VAIN_SLEEPS: u32 = 32;

/// So often it does when it tries again.
const TRIALS: u32 = 4;

/// So often it falls asleep without them before that.
const SLEEPS_AT_ONCE: u32 = 500;

/// What has come of giving way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GaveWay {
    /// It was away for so long.
    Yielded(Duration),
    /// It has let some time pass.
    Paused,
    /// It should rather sleep.
    Declined,
}

#[derive(Default)]
pub(super) struct Courtesy {
    /// So often it falls asleep without having yielded.
    refrains: u32,
    /// It does not pause in place of yielding, but falls asleep.
    is_tired: bool,
    /// It has yielded since it fell asleep last.
    has_yielded: bool,
    /// So often in a row it has fallen asleep after yields.
    in_vain: u32,
}

impl Courtesy {
    /// Lets others go first; `is_first` for the first time since a process was found or it has slept.
    pub(super) fn give_way(&mut self, is_first: bool) -> GaveWay {
        if self.refrains > 0 {
            if self.is_tired {
                return GaveWay::Declined;
            }
            (0..PAUSES).for_each(|_| hint::spin_loop());
            return GaveWay::Paused;
        }
        if is_first && self.has_yielded {
            // The last time it came back to a process.
            self.in_vain = 0;
        }
        self.has_yielded = true;
        let start = Since::before(Duration::ZERO);
        thread::yield_now();
        GaveWay::Yielded(start.elapsed())
    }

    /// It was away for so long. `has_cost` is whether something has waited for it meanwhile.
    pub(super) fn come_back(&mut self, lasted: Duration, has_cost: impl FnOnce() -> bool) {
        if lasted >= LONG && has_cost() {
            (self.refrains, self.is_tired) = (SLEEPS, false);
            self.in_vain = 0;
        }
    }

    /// It has found nothing, and falls asleep.
    pub(super) fn fall_asleep(&mut self) {
        let has_yielded = std::mem::take(&mut self.has_yielded);
        if self.refrains > 0 {
            self.refrains -= 1;
        } else if has_yielded {
            self.in_vain += 1;
            if self.in_vain >= VAIN_SLEEPS {
                self.in_vain -= TRIALS;
                (self.refrains, self.is_tired) = (SLEEPS_AT_ONCE, true);
            }
        }
    }

    /// It was about to, but there was something to do: had it yielded, somebody might have gone on with that.
    pub(super) fn stay_awake(&mut self) {
        if self.is_tired {
            self.refrains = 0;
        }
        self.in_vain = 0;
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn refrains(&self) -> bool {
        self.refrains > 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // pins: G5
    #[test]
    fn who_was_kept_long_while_something_waited_refrains_for_a_while() {
        let mut courtesy = Courtesy::default();
        for (lasted, has_cost, refrains) in
            [(LONG / 2, true, 0), (LONG, false, 0), (LONG, true, SLEEPS)]
        {
            courtesy.come_back(lasted, || has_cost);
            assert_eq!(courtesy.refrains, refrains, "{lasted:?}, {has_cost}");
        }
        assert_eq!(courtesy.give_way(true), GaveWay::Paused);
        (1..SLEEPS).for_each(|_| courtesy.fall_asleep());
        assert_eq!(courtesy.refrains, 1);
        (0..2).for_each(|_| courtesy.fall_asleep());
        assert_eq!(courtesy.refrains, 0);
        assert!(yields(&mut courtesy));
    }

    /// Whether it yields when it has found nothing.
    fn yields(courtesy: &mut Courtesy) -> bool {
        let gave_way = courtesy.give_way(true);
        let has_yielded = matches!(gave_way, GaveWay::Yielded(_));
        assert!(has_yielded || gave_way == GaveWay::Declined);
        has_yielded && matches!(courtesy.give_way(false), GaveWay::Yielded(_))
    }

    /// How many of so many sleeps come after yields.
    fn yields_before(courtesy: &mut Courtesy, sleeps: u32) -> u32 {
        let sleep = |_| {
            let has_yielded = yields(courtesy);
            courtesy.fall_asleep();
            u32::from(has_yielded)
        };
        (0..sleeps).map(sleep).sum()
    }

    // pins: G5
    #[test]
    fn yields_that_are_in_vain_are_left_out_and_tried_again() {
        let mut courtesy = Courtesy::default();
        assert_eq!(yields_before(&mut courtesy, VAIN_SLEEPS), VAIN_SLEEPS);
        for _ in 0..3 {
            assert_eq!(yields_before(&mut courtesy, SLEEPS_AT_ONCE), 0);
            assert_eq!(yields_before(&mut courtesy, TRIALS), TRIALS);
        }
        assert_eq!(yields_before(&mut courtesy, SLEEPS_AT_ONCE), 0);
        // A single one that comes back to a process is enough: the next has not slept before.
        assert!(yields(&mut courtesy));
        assert_eq!(yields_before(&mut courtesy, VAIN_SLEEPS), VAIN_SLEEPS);
        assert!(!yields(&mut courtesy));
    }

    // pins: G5
    #[test]
    fn yields_that_now_and_then_find_a_process_go_on() {
        let mut courtesy = Courtesy::default();
        for _ in 0..10 {
            assert_eq!(
                yields_before(&mut courtesy, VAIN_SLEEPS - 1),
                VAIN_SLEEPS - 1
            );
            assert!(yields(&mut courtesy), "and finds one");
        }
    }

    // pins: G5
    #[test]
    fn a_long_yield_that_came_back_to_a_process_was_not_in_vain() {
        let mut courtesy = Courtesy::default();
        yields_before(&mut courtesy, VAIN_SLEEPS - 1);
        assert!(yields(&mut courtesy));
        courtesy.come_back(LONG, || true);
        (0..SLEEPS).for_each(|_| courtesy.fall_asleep());
        assert_eq!(yields_before(&mut courtesy, VAIN_SLEEPS), VAIN_SLEEPS);
        assert!(!yields(&mut courtesy));
    }

    // pins: G5
    #[test]
    fn who_does_not_fall_asleep_in_the_end_yields_again() {
        let mut courtesy = Courtesy::default();
        for _ in 0..2 {
            assert_eq!(yields_before(&mut courtesy, VAIN_SLEEPS), VAIN_SLEEPS);
            assert!(!yields(&mut courtesy));
            courtesy.fall_asleep();
            courtesy.stay_awake();
        }
        // But who was kept long goes on with pauses.
        courtesy.come_back(LONG, || true);
        courtesy.fall_asleep();
        courtesy.stay_awake();
        assert_eq!(courtesy.give_way(true), GaveWay::Paused);
    }

    #[test]
    fn who_was_kept_long_pauses_although_yields_are_in_vain() {
        let mut courtesy = Courtesy::default();
        yields_before(&mut courtesy, VAIN_SLEEPS);
        courtesy.come_back(LONG, || true);
        assert_eq!(courtesy.give_way(true), GaveWay::Paused);
    }
}

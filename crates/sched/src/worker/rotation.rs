//! When a worker looks at the global queue first, and at the oldest process of its own deque: see
//! `worker/ladder.rs`.
//!
//! **Problem.** So many picks are long when steps are: 127 of a millisecond keep a process that is
//! woken from outside waiting for 127 ms. A worker that rotates at every pick runs what has just
//! been woken last, behind one long step each.
//!
//! **Rejected.** The clock at each pick, or at each rotation: short steps would feel it. An
//! interval from the mean length of the last picks alone: each of a hundred short steps that a long
//! one has woken would wait for a rotation of its own. Short steps by time: they run in the order
//! of a queue then, and a tree of processes would grow in breadth.
//!
//! **Protocol.** A rotation is due
//! 1. after so many picks, or after the chain limit by the coarse time, whatever waits;
//! 2. before that, unless steps are short, after as many picks as last for [`PACE`] in the mean,
//!    which the worker works out when an eighth of the chain limit has passed;
//! 3. where the own deque may have something woken, later: the worker lets this run for a [`SLICE`]
//!    by the clock, which it reads after 1, 2, 4, and every 8 picks. Then it rotates at each pick
//!    for as long as the slice has lasted: one step may be long. Meanwhile it takes from the global
//!    queue alone, where that has more than the own deque.
//!
//! So a worker with short steps reads no clock, and one with long steps rotates at each pick.

use crate::base::clock::nanos;
use crate::base::config::Config;

/// So many nanoseconds of picks are between two rotations, where nothing has been woken.
const PACE: u64 = 20_000;

/// Steps of which so many last for that are short: the bound in picks is enough for them.
const SHORT: u32 = 10;

/// So many nanoseconds are a slice for what has been woken.
const SLICE: u64 = 100_000;

/// How many picks of a slice come between two looks at the clock, at the most.
const MOST_UNSEEN: u32 = 8;

/// So many times in the chain limit a worker works out how long its picks are, however long that
/// is.
const LOOKS: u64 = 8;

pub(super) struct Rotation {
    /// Every so many picks.
    every: u32,
    /// And after so long, in nanoseconds.
    limit: u64,
    /// When that is over, in nanoseconds of the coarse time.
    end: u64,
    /// Picks up to the next look whether one is due, or up to its second half.
    pub(super) left: u32,
    /// What that was when it was set.
    granted: u32,
    /// Picks between the last rotation and then.
    picks: u32,
    /// When the next look is due whatever was picked, in nanoseconds of the coarse time.
    due: u64,
    /// The last pick was a rotation that took one that was not in the own deque: the oldest of that
    /// is next.
    pub(super) oldest_is_next: bool,
    slice: Slice,
    pace: Pace,
}

/// What the own deque has of the time, where something woken is in it. All times are nanoseconds of
/// the clock.
#[derive(Default)]
struct Slice {
    /// For how many picks the clock is not read; 0: there is no slice.
    picks: u32,
    /// For how long the slice has lasted.
    used: u64,
    /// How much more than the global queue the own deque has had.
    owed: u64,
    /// What runs is of the own deque.
    is_own: bool,
    /// When the clock was read last.
    at: u64,
}

/// Whose turn is next.
enum Turn {
    /// The own deque's, for so many picks.
    Own(u32),
    Global,
    Both,
}

/// How many picks last for [`PACE`].
struct Pace {
    picks: u32,
    /// For how long they are counted at the least, in nanoseconds of the coarse time.
    window: u64,
    /// Since when they are counted, and how many there were.
    since: u64,
    counted: u32,
}

/// What a pick is to begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Rotation,
    /// The second half of the last one.
    Oldest,
    /// The first of the global queue, and nothing more.
    Global,
}

impl Rotation {
    pub(super) fn new(config: &Config, now: u64) -> Self {
        let every = config.rotation;
        let limit = nanos(config.chain_limit);
        Self {
            every,
            limit,
            left: every,
            granted: every,
            picks: 0,
            end: now.saturating_add(limit),
            due: now.saturating_add(limit / LOOKS),
            oldest_is_next: false,
            slice: Slice::default(),
            pace: Pace {
                picks: every,
                window: (limit / LOOKS).max(1),
                since: now,
                counted: 0,
            },
        }
    }

    /// Counts a pick, and says whether something may come before it.
    #[inline]
    pub(super) fn is_due(&mut self, now: u64) -> bool {
        self.is_counted_out() || self.is_over(now)
    }

    /// The same, without a look at the time.
    #[inline]
    pub(super) fn is_counted_out(&mut self) -> bool {
        self.left -= 1;
        self.left == 0
    }

    /// The pick that was counted last is of a lane.
    pub(super) fn take_back(&mut self) {
        self.left += 1;
    }

    /// Whether something may come before a pick at that time.
    pub(super) fn is_over(&self, now: u64) -> bool {
        now >= self.due
    }

    /// The time from which on something may come before a pick. It does not go back.
    pub(super) fn due(&self) -> u64 {
        self.due
    }

    /// What is due, which counts as done. `is_woken`: the own deque may have something woken;
    /// `is_shorter`: it has fewer than the global queue.
    pub(super) fn take(
        &mut self,
        now: u64,
        is_woken: bool,
        is_shorter: impl Fn() -> bool,
        clock: impl FnOnce() -> u64,
    ) -> Option<Due> {
        self.count();
        if is_woken && self.pace.picks < self.every {
            self.slice.read(clock());
        } else {
            self.slice = Slice::default();
        }
        if std::mem::take(&mut self.oldest_is_next) {
            self.picks = 0;
            self.slice.is_own = is_woken && is_shorter();
            self.grant(self.next_look());
            return Some(Due::Oldest);
        }
        self.pace.measure(now, self.every);
        let has_to_come = self.picks >= self.every || now >= self.end;
        if !has_to_come && self.picks < self.next_look() {
            self.look_again(now, self.next_look() - self.picks);
            return None;
        }
        if is_woken && !has_to_come {
            match self.slice.turn(is_shorter) {
                Turn::Own(picks) => {
                    self.look_again(now, picks.min(self.every - self.picks));
                    return None;
                }
                Turn::Global => {
                    self.look_again(now, 1);
                    return Some(Due::Global);
                }
                Turn::Both => {}
            }
        }
        (self.slice.picks, self.slice.used, self.slice.is_own) = (0, 0, false);
        self.begin(now);
        Some(Due::Rotation)
    }

    /// Nothing is in the global queue.
    pub(super) fn forget_the_global(&mut self) {
        (self.slice.owed, self.slice.is_own) = (0, true);
    }

    /// The oldest of the own deque is next.
    pub(super) fn go_on_with_the_oldest(&mut self) {
        self.oldest_is_next = true;
        self.grant(1);
    }

    /// Nothing is in the own deque.
    pub(super) fn forget_the_oldest(&mut self) {
        if std::mem::take(&mut self.oldest_is_next) | (self.slice.picks > 0) {
            self.count();
            self.slice = Slice::default();
            self.grant(self.pace.picks.min(self.every - self.picks));
        }
    }

    /// Begins anew, after a sleep.
    pub(super) fn restart(&mut self, now: u64) {
        self.pace.since = now;
        self.pace.counted = 0;
        self.begin(now);
        self.oldest_is_next = false;
    }

    fn begin(&mut self, now: u64) {
        self.picks = 0;
        self.end = now.saturating_add(self.limit);
        self.look_again(now, self.next_look());
    }

    fn look_again(&mut self, now: u64, picks: u32) {
        self.due = now.saturating_add(self.pace.window).min(self.end);
        self.grant(picks);
    }

    /// After how many picks a rotation may be due.
    fn next_look(&self) -> u32 {
        if self.slice.owed > 0 {
            1
        } else {
            self.pace.picks
        }
    }

    fn grant(&mut self, picks: u32) {
        self.left = picks;
        self.granted = picks;
    }

    /// Counts the picks since the last look.
    fn count(&mut self) {
        let picks = self.granted - self.left;
        self.picks += picks;
        self.pace.counted = self.pace.counted.saturating_add(picks);
    }
}

impl Slice {
    /// What has run since the last time is known to have lasted so long.
    fn read(&mut self, clock: u64) {
        let elapsed = clock.saturating_sub(std::mem::replace(&mut self.at, clock));
        if !self.is_own {
            self.owed = self.owed.saturating_sub(elapsed);
            return;
        }
        self.owed = self.owed.saturating_add(elapsed);
        if self.picks > 0 {
            self.used = self.used.saturating_add(elapsed);
        }
    }

    fn turn(&mut self, is_shorter: impl Fn() -> bool) -> Turn {
        if self.used >= SLICE {
            return Turn::Both;
        }
        if self.picks == 0 && self.owed > 0 {
            self.is_own = false;
            return if is_shorter() {
                Turn::Global
            } else {
                Turn::Both
            };
        }
        self.picks = (2 * self.picks).clamp(1, MOST_UNSEEN);
        self.is_own = true;
        Turn::Own(self.picks)
    }
}

impl Pace {
    /// Works out a new one, when so much time has passed.
    fn measure(&mut self, now: u64, most: u32) {
        let elapsed = now.saturating_sub(self.since);
        if elapsed < self.window {
            return;
        }
        let picks = PACE.saturating_mul(self.counted.into()) / elapsed;
        let picks = match u32::try_from(picks) {
            Ok(picks @ ..SHORT) => picks.clamp(1, most),
            _ => most,
        };
        (self.picks, self.since, self.counted) = (picks, now, 0);
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    /// Counts up, and says what has to come; nothing where more than one thing may.
    struct Model {
        every: u32,
        limit: u64,
        picks: u32,
        last: u64,
        oldest_is_next: bool,
        /// The coarse time has not changed since the beginning.
        is_new: bool,
    }

    impl Model {
        fn pick(&mut self, now: u64, has_oldest: bool) -> Option<Option<Due>> {
            if std::mem::take(&mut self.oldest_is_next) && has_oldest {
                return Some(Some(Due::Oldest));
            }
            self.picks += 1;
            if self.picks >= self.every || now - self.last >= self.limit {
                return Some(Some(Due::Rotation));
            }
            self.is_new.then_some(None)
        }

        fn rotated(&mut self, now: u64) {
            (self.picks, self.last) = (0, now);
        }
    }

    /// As a worker picks, whose clock shows so much.
    fn pick(rotation: &mut Rotation, now: u64, clock: u64, has: Has) -> Option<Due> {
        while rotation.is_due(now) {
            let due = rotation.take(now, has.woken, || has.fewer, || clock)?;
            if due != Due::Oldest || has.oldest {
                return Some(due);
            }
        }
        None
    }

    /// What there is.
    #[derive(Debug, Clone, Copy)]
    struct Has {
        /// Something that is not in the own deque, and something that is.
        other: bool,
        oldest: bool,
        woken: bool,
        fewer: bool,
    }

    #[derive(Debug, Clone, Copy)]
    enum Act {
        /// After so many nanoseconds of the coarse time, and of the clock.
        Pick(u64, u64, Has),
        Forget,
        Restart,
    }

    fn act() -> impl Strategy<Value = Act> {
        let has = any::<(bool, bool, bool, bool)>();
        let has = has.prop_map(|(other, oldest, woken, fewer)| Has {
            other,
            oldest,
            woken,
            fewer,
        });
        let clock = prop_oneof![0..50_u64, 0..3 * SLICE];
        let later = prop_oneof![3 => Just(0), 1 => 0..4_u64, 1 => 0..3 * PACE];
        prop_oneof![
            20 => (later, clock, has).prop_map(|(later, clock, has)| Act::Pick(later, clock, has)),
            1 => Just(Act::Forget),
            1 => Just(Act::Restart),
        ]
    }

    proptest! {
        // pins: G4
        #[test]
        fn picks_are_counted_from_the_last_rotation(
            every in 1..7_u32,
            limit in prop_oneof![0..12_u64, Just(3 * PACE), Just(u64::MAX)],
            acts in prop::collection::vec(act(), 0..200),
        ) {
            let (mut now, mut clock) = (1_000, 7_000);
            let mut rotation = rotation(every, limit, now);
            let mut model =
                Model { every, limit, picks: 0, last: now, oldest_is_next: false, is_new: true };
            for act in acts {
                match act {
                    Act::Pick(later, longer, has) => {
                        now += later;
                        clock += longer;
                        model.is_new &= later == 0;
                        let due = pick(&mut rotation, now, clock, has);
                        if let Some(expected) = model.pick(now, has.oldest) {
                            prop_assert_eq!(due, expected);
                        } else {
                            prop_assert_ne!(due, Some(Due::Oldest));
                        }
                        if due == Some(Due::Rotation) {
                            model.rotated(now);
                            if has.other {
                                rotation.go_on_with_the_oldest();
                                model.oldest_is_next = true;
                            }
                        }
                    }
                    Act::Forget => {
                        rotation.forget_the_oldest();
                        model.oldest_is_next = false;
                    }
                    Act::Restart => {
                        rotation.restart(now);
                        model.rotated(now);
                        model.oldest_is_next = false;
                    }
                }
            }
        }
    }

    fn rotation(every: u32, limit: u64, now: u64) -> Rotation {
        let config = Config {
            rotation: every,
            chain_limit: Duration::from_nanos(limit),
            ..Config::default()
        };
        Rotation::new(&config, now)
    }

    const NONE_WOKEN: Has = Has {
        other: false,
        oldest: true,
        woken: false,
        fewer: false,
    };
    const WOKEN: Has = Has {
        woken: true,
        ..NONE_WOKEN
    };

    /// One that has seen thirty picks that lasted for so long each.
    fn that_has_seen(each: u64) -> (Rotation, u64) {
        let mut rotation = rotation(30, LOOKS, 0);
        for _ in 0..29 {
            assert_eq!(pick(&mut rotation, 0, 0, NONE_WOKEN), None);
        }
        let now = 30 * each;
        assert_eq!(
            pick(&mut rotation, now, now, NONE_WOKEN),
            Some(Due::Rotation)
        );
        (rotation, now)
    }

    /// After how many picks of so long each the next rotation comes.
    fn picks_to_the_next(rotation: &mut Rotation, clock: &mut u64, each: u64, has: Has) -> u32 {
        let now = rotation.pace.since;
        (1..)
            .find(|_| {
                let due = pick(rotation, now, *clock, has);
                *clock += each;
                due == Some(Due::Rotation)
            })
            .unwrap()
    }

    // pins: G4
    #[test]
    fn rotations_are_as_far_apart_as_steps_are_long() {
        // Those of which ten make up the pace are short.
        for (each, picks) in [(PACE, 1), (5 * PACE, 1), (PACE / 4, 4), (PACE / 10, 30)] {
            let (mut rotation, mut clock) = that_has_seen(each);
            for _ in 0..3 {
                let next = picks_to_the_next(&mut rotation, &mut clock, each, NONE_WOKEN);
                assert_eq!(next, picks, "{each} ns");
            }
        }
    }

    // pins: G4
    #[test]
    fn what_is_woken_has_a_slice_and_then_the_others_as_long_a_time() {
        let (mut rotation, mut clock) = that_has_seen(PACE);
        let mut next = |each| picks_to_the_next(&mut rotation, &mut clock, each, WOKEN);
        // The fourth look at the clock, after 1, 2 and 4 picks more, is behind the slice.
        assert_eq!(next(SLICE / 4), 8);
        // Seven of these were in it, and one rotation has passed.
        for _ in 0..6 {
            assert_eq!(next(SLICE / 4), 1);
        }
        // Short ones go on up to the bound in picks.
        assert_eq!(next(10), 30);
    }

    /// A rotation and its second half are two of them, longer than an eighth of the chain limit.
    // pins: G4
    #[test]
    fn what_is_woken_has_a_slice_beside_steps_of_a_millisecond() {
        const STEP: u64 = 1_000_000;
        let (mut rotation, mut now) = (rotation(30, 10 * STEP, 0), 0);
        let mut next = |has| {
            now += STEP;
            let due = pick(&mut rotation, now, now, has);
            if due == Some(Due::Rotation) {
                rotation.go_on_with_the_oldest();
            }
            due
        };
        // The worker finds that steps are long.
        let alternate = [Some(Due::Rotation), Some(Due::Oldest)].into_iter().cycle();
        let is_known = (0..40)
            .map(|_| next(NONE_WOKEN))
            .skip(36)
            .collect::<Vec<_>>();
        assert!(
            alternate
                .skip(usize::from(is_known[0] == Some(Due::Oldest)))
                .take(4)
                .eq(is_known)
        );
        // At the most the second half of a rotation comes before what a step wakes then.
        assert!((0..2).any(|_| next(WOKEN).is_none()));
    }

    // pins: G4
    #[test]
    fn a_longer_global_queue_has_as_much_time_as_the_own_deque() {
        let (mut rotation, now) = that_has_seen(PACE);
        let has = Has {
            fewer: true,
            ..WOKEN
        };
        // One long step of what is woken; then a rotation; then the others have the rest of it.
        let clocks = [0, 3, 4, 5, 6].map(|slices| now + slices * SLICE);
        let due = clocks.map(|clock| pick(&mut rotation, now, clock, has));
        let global = Some(Due::Global);
        assert_eq!(due, [None, Some(Due::Rotation), global, global, None]);
        let (mut rotation, now) = that_has_seen(PACE);
        let clocks = [0, 3, 4].map(|slices| now + slices * SLICE);
        let due = clocks.map(|clock| pick(&mut rotation, now, clock, has));
        assert_eq!(due, [None, Some(Due::Rotation), global]);
        rotation.forget_the_global();
        assert_eq!(pick(&mut rotation, now, now + 4 * SLICE, has), None);
    }
}

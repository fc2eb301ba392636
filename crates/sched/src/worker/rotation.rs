//! When a worker looks at the global queue first, and at the oldest process of its own deque: see
//! `worker/ladder.rs`.
//!
//! **Problem.** 127 picks of a millisecond each keep a process woken from outside waiting for
//! 127 ms. A worker that rotates at every pick runs the last woken process last, behind a long step
//! for each of the others.
//!
//! **Rejected.** The clock at each pick, or at each rotation: short steps would feel it. An
//! interval from the mean length of the last picks alone: when a long step has woken a hundred
//! short steps, each of these would wait for its own rotation. Short steps by time: they run in the
//! order of a queue then, and a tree of processes would grow in breadth.
//!
//! **Protocol.** A rotation is due
//! 1. after [`ROTATION`](crate::policy::ROTATION) picks, or after the chain limit by the coarse
//!    time, in any case;
//! 2. before then, unless steps are short, after as many picks as last for [`ROTATION_SPAN`] in the
//!    mean. The worker measures them after each eighth of the chain limit;
//! 3. later, where the own deque may have a woken process: the worker lets these run for a slice by
//!    the clock, as long as steps are in the mean, and at least a [`SLICE`]. Then it rotates at
//!    each pick for as long as the slice has lasted, since its last step may have been long.
//!    Meanwhile it takes from the global queue alone, where this has more than the own deque.
//!
//! A slice may lie between the two halves of a rotation: the process from the global queue has
//! woken others, which would wait for a long step of the oldest otherwise. Both halves and the
//! picks between them count as picks up to the next rotation.
//!
//! So a worker with short steps reads no clock, and a worker with long steps rotates at each pick.

use super::pace::Pace;
use crate::base::clock::nanos;
use crate::config::Config;
use crate::policy::{ROTATION_LOOKS, ROTATION_SPAN, SHORT_STEPS, SLICE, SLICE_UNSEEN};
use std::mem;

/// Spans are nanoseconds: of the coarse time, and of the clock in a slice.
pub(super) struct Rotation {
    /// The most picks and the most time between two rotations.
    every: u32,
    limit: u64,
    /// When the limit is over.
    end: u64,
    /// Picks up to the next look whether a rotation is due, or up to its second half.
    pub(super) left: u32,
    /// The value of `left` when it was set.
    granted: u32,
    /// Picks between the last rotation and then.
    picks: u32,
    /// When the next look is due after any number of picks.
    due: u64,
    /// The last pick was a rotation to a process from elsewhere: the oldest of the own deque is
    /// next.
    pub(super) oldest_is_next: bool,
    /// Picks in [`ROTATION_SPAN`], and how many were counted since its last measure. Each measure
    /// is over a window of time.
    pace: Pace,
    counted: u32,
    window: u64,
    /// Picks of a slice between two reads of the clock.
    slice_pace: Pace,
    /// How long the slice has lasted, if the worker is in a slice.
    slice: Option<u64>,
    /// How much more time than the global queue the own deque has had.
    owed: u64,
    /// The last picks were from the own deque.
    is_own: bool,
}

/// The action before a pick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Rotation,
    /// The second half of the last rotation.
    Oldest,
    /// The first of the global queue, and nothing more.
    Global,
}

impl Rotation {
    pub(super) fn new(config: &Config, now: u64) -> Self {
        let every = config.rotation;
        let limit = nanos(config.chain_limit);
        let window = (limit / ROTATION_LOOKS).max(1);
        Self {
            every,
            limit,
            left: every,
            granted: every,
            picks: 0,
            end: now.saturating_add(limit),
            due: now.saturating_add(limit / ROTATION_LOOKS),
            oldest_is_next: false,
            pace: Pace::new(ROTATION_SPAN, every, every, now),
            counted: 0,
            window,
            slice_pace: Pace::new(ROTATION_SPAN, SLICE_UNSEEN, 1, 0),
            slice: None,
            owed: 0,
            is_own: false,
        }
    }

    /// Counts a pick, and says whether something may come before it.
    pub(super) fn is_due(&mut self, now: u64) -> bool {
        self.is_counted_out() || self.is_over(now)
    }

    /// Counts a pick as [`is_due`](Self::is_due) does, without a look at the time.
    pub(super) fn is_counted_out(&mut self) -> bool {
        self.left -= 1;
        self.left == 0
    }

    /// Takes the last pick out of the count: it was from a lane.
    pub(super) fn uncount(&mut self) {
        self.left += 1;
    }

    /// Returns whether something may come before a pick at the time `now`.
    pub(super) fn is_over(&self, now: u64) -> bool {
        now >= self.due
    }

    /// Returns from when on something may come before a pick. Never goes back.
    pub(super) fn due(&self) -> u64 {
        self.due
    }

    /// Takes the due action, and counts it as done. `woken`: the most woken processes that the own
    /// deque may have; `is_shorter`: the own deque has fewer than the global queue.
    pub(super) fn take(
        &mut self,
        now: u64,
        woken: usize,
        is_shorter: impl Fn() -> bool,
        clock: impl FnOnce() -> u64,
    ) -> Option<Due> {
        let (count, is_woken) = (self.count(), woken > 0);
        if is_woken && self.pace.picks < self.every {
            self.charge(count, clock());
        } else {
            self.end_slice();
        }
        let has_to_come = self.picks >= self.every || now >= self.end;
        let is_slice = is_woken && !has_to_come;
        if self.oldest_is_next {
            if is_slice && self.pace.picks < self.every && self.has_time_left() {
                self.go_on_with_slice(now, woken);
                return None;
            }
            self.oldest_is_next = false;
            // The second half of a rotation is not counted.
            self.picks = self.picks.saturating_sub(1);
            self.is_own = is_woken && is_shorter();
            self.grant(self.next_look().min(self.every - self.picks));
            return Some(Due::Oldest);
        }
        self.measure(now);
        if !has_to_come && self.picks < self.next_look() {
            self.look_again(now, self.next_look() - self.picks);
            return None;
        }
        if is_slice && self.has_time_left() {
            self.go_on_with_slice(now, woken);
            return None;
        }
        if is_slice && self.slice.is_none() {
            self.is_own = false;
            if is_shorter() {
                self.look_again(now, 1);
                return Some(Due::Global);
            }
        }
        (self.slice, self.is_own) = (None, false);
        self.begin(now);
        Some(Due::Rotation)
    }

    /// Notes that nothing is in the global queue.
    pub(super) fn forget_the_global(&mut self) {
        (self.owed, self.is_own) = (0, true);
    }

    /// Puts the oldest of the own deque next.
    pub(super) fn continue_with_the_oldest(&mut self) {
        self.oldest_is_next = true;
        self.grant(1);
    }

    /// Notes that nothing is in the own deque.
    pub(super) fn forget_the_oldest(&mut self) {
        if mem::take(&mut self.oldest_is_next) | self.slice.is_some() {
            self.count();
            self.end_slice();
            self.grant(self.pace.picks.min(self.every - self.picks));
        }
    }

    /// Begins anew, after a sleep.
    pub(super) fn restart(&mut self, now: u64) {
        (self.pace.at, self.counted) = (now, 0);
        self.begin(now);
        self.oldest_is_next = false;
    }

    fn begin(&mut self, now: u64) {
        self.picks = 0;
        self.end = now.saturating_add(self.limit);
        self.look_again(now, self.next_look());
    }

    fn look_again(&mut self, now: u64, picks: u32) {
        self.due = now.saturating_add(self.window).min(self.end);
        self.grant(picks);
    }

    /// Returns after how many picks a rotation may be due.
    fn next_look(&self) -> u32 {
        if self.owed > 0 { 1 } else { self.pace.picks }
    }

    fn grant(&mut self, picks: u32) {
        (self.left, self.granted) = (picks, picks);
    }

    /// Counts the picks since the last look.
    fn count(&mut self) -> u32 {
        let picks = self.granted - self.left;
        self.picks += picks;
        self.counted = self.counted.saturating_add(picks);
        picks
    }

    /// Measures how many picks last for [`ROTATION_SPAN`], once a window is over.
    fn measure(&mut self, now: u64) {
        if now.saturating_sub(self.pace.at) < self.window {
            return;
        }
        self.pace.measure(mem::take(&mut self.counted), now);
        if self.pace.picks >= SHORT_STEPS {
            // The bound in picks is enough for short steps.
            self.pace.picks = self.every;
        }
    }

    /// Charges the own deque, or the global queue, for the time of the last picks.
    fn charge(&mut self, count: u32, clock: u64) {
        let elapsed = self.slice_pace.measure(count, clock);
        if !self.is_own {
            self.owed = self.owed.saturating_sub(elapsed);
            return;
        }
        self.owed = self.owed.saturating_add(elapsed);
        self.slice = self.slice.map(|used| used.saturating_add(elapsed));
    }

    /// Returns whether a slice may begin or go on.
    fn has_time_left(&self) -> bool {
        let span = self.pace.mean.clamp(SLICE, SLICE.max(self.window));
        self.slice.map_or(self.owed == 0, |used| used < span)
    }

    /// Begins or continues the slice, up to the next read of the clock. Behind the woken processes
    /// are others, whose steps may be long.
    fn go_on_with_slice(&mut self, now: u64, woken: usize) {
        if self.slice.is_none() {
            self.slice = Some(0);
            // The length of its steps is not known yet.
            self.slice_pace.picks = 1;
        }
        self.is_own = true;
        let woken = u32::try_from(woken).unwrap_or(u32::MAX);
        let most = woken.min(self.every - self.picks);
        self.look_again(now, self.slice_pace.picks.min(most));
    }

    /// Closes the account of the slice: no woken process is in the own deque.
    fn end_slice(&mut self) {
        (self.slice, self.owed, self.is_own) = (None, 0, false);
        self.slice_pace.at = 0;
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    /// Counts up, and returns the required action; none where several actions may come.
    struct Model {
        every: u32,
        limit: u64,
        picks: u32,
        last: u64,
        oldest_is_next: bool,
        /// Whether woken processes have their slice before the oldest.
        is_slice: bool,
        /// The coarse time is still the first.
        is_new: bool,
    }

    impl Model {
        fn pick(&mut self, now: u64, has: Has) -> Option<Option<Due>> {
            let has_to_come = self.picks + 1 >= self.every || now - self.last >= self.limit;
            if std::mem::take(&mut self.oldest_is_next) && has.oldest {
                let may_wait = (has.woken || self.is_slice) && !self.is_new;
                if !may_wait || has_to_come {
                    return Some(Some(Due::Oldest));
                }
                self.picks += 1;
                (self.oldest_is_next, self.is_slice) = (true, true);
                return None;
            }
            self.picks += 1;
            if has_to_come {
                return Some(Some(Due::Rotation));
            }
            self.is_new.then_some(None)
        }

        /// Takes back a pick after which the oldest came although it did not have to.
        fn took_oldest(&mut self) {
            self.picks -= 1;
            self.oldest_is_next = false;
        }

        fn rotated(&mut self, now: u64) {
            (self.picks, self.last, self.is_slice) = (0, now, false);
        }
    }

    /// Picks as a worker does, at this time of the clock.
    fn pick(rotation: &mut Rotation, now: u64, clock: u64, has: Has) -> Option<Due> {
        while rotation.is_due(now) {
            let woken = if has.woken { usize::MAX } else { 0 };
            let due = rotation.take(now, woken, || has.fewer, || clock)?;
            if due != Due::Oldest || has.oldest {
                return Some(due);
            }
        }
        None
    }

    /// The state of the queues.
    #[derive(Debug, Clone, Copy)]
    struct Has {
        /// Processes elsewhere, and in the own deque.
        other: bool,
        oldest: bool,
        woken: bool,
        fewer: bool,
    }

    #[derive(Debug, Clone, Copy)]
    enum Act {
        /// After nanoseconds of the coarse time, and of the clock.
        Pick(u64, u64, Has),
        Forget,
        Restart,
    }

    fn act() -> impl Strategy<Value = Act> {
        let has = any::<(bool, bool, bool, bool)>();
        let has = has.prop_map(|(other, oldest, woken, fewer)| Has {
            other,
            oldest: oldest | woken,
            woken,
            fewer,
        });
        let clock = prop_oneof![0..50_u64, 0..3 * SLICE];
        let later = prop_oneof![3 => Just(0), 1 => 0..4_u64, 1 => 0..3 * ROTATION_SPAN];
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
            limit in prop_oneof![0..12_u64, Just(3 * ROTATION_SPAN), Just(u64::MAX)],
            acts in prop::collection::vec(act(), 0..200),
        ) {
            let (mut now, mut clock) = (1_000, 7_000);
            let mut rotation = rotation(every, limit, now);
            let mut model = Model {
                every,
                limit,
                picks: 0,
                last: now,
                oldest_is_next: false,
                is_slice: false,
                is_new: true,
            };
            for act in acts {
                match act {
                    Act::Pick(later, longer, has) => {
                        now += later;
                        clock += longer;
                        model.is_new &= later == 0;
                        let due = pick(&mut rotation, now, clock, has);
                        if due.is_none() && !has.oldest {
                            rotation.forget_the_oldest();
                        }
                        if let Some(expected) = model.pick(now, has) {
                            prop_assert_eq!(due, expected);
                        } else if !model.oldest_is_next {
                            prop_assert_ne!(due, Some(Due::Oldest));
                        } else if due.is_some() {
                            prop_assert_eq!(due, Some(Due::Oldest));
                            model.took_oldest();
                        }
                        if due == Some(Due::Rotation) {
                            model.rotated(now);
                            if has.other {
                                rotation.continue_with_the_oldest();
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

    /// Returns a rotation after thirty picks of this length, and the time.
    fn that_has_seen(each: u64) -> (Rotation, u64) {
        let mut rotation = rotation(30, ROTATION_LOOKS, 0);
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

    /// Counts the picks of this length up to the next rotation.
    fn picks_to_the_next(rotation: &mut Rotation, clock: &mut u64, each: u64, has: Has) -> u32 {
        let now = rotation.pace.at;
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
        // Steps of a tenth of the span are short.
        for (each, picks) in [
            (ROTATION_SPAN, 1),
            (5 * ROTATION_SPAN, 1),
            (ROTATION_SPAN / 4, 4),
            (ROTATION_SPAN / 10, 30),
        ] {
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
        let (mut rotation, mut clock) = that_has_seen(ROTATION_SPAN);
        let mut next = |each| picks_to_the_next(&mut rotation, &mut clock, each, WOKEN);
        // The worker reads the clock at each pick, since steps are long: four are in the slice.
        assert_eq!(next(SLICE / 4), 5);
        // The rotation just passed was the first for the others.
        for _ in 0..3 {
            assert_eq!(next(SLICE / 4), 1);
        }
        // Short steps go on up to the bound in picks.
        assert_eq!(next(10), 30);
    }

    /// Checks rotations of two steps, with the second half, longer than an eighth of the chain
    /// limit.
    // pins: G4
    #[test]
    fn what_is_woken_has_a_slice_beside_steps_of_a_millisecond() {
        const STEP: u64 = 1_000_000;
        let (mut rotation, mut now) = (rotation(30, 10 * STEP, 0), 0);
        let mut next = |has| {
            now += STEP;
            let due = pick(&mut rotation, now, now, has);
            if due == Some(Due::Rotation) {
                rotation.continue_with_the_oldest();
            }
            due
        };
        // The worker finds steps to be long.
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
        // The second half of a rotation does not come before a process woken by the first.
        while next(NONE_WOKEN) != Some(Due::Rotation) {}
        assert_eq!(next(WOKEN), None);
        // The slice is over: it was as long as a step.
        assert_eq!(next(WOKEN), Some(Due::Oldest));
    }

    /// Checks the next look after a woken process without any length, with long steps behind it.
    // pins: G4
    #[test]
    fn the_worker_looks_again_when_all_woken_have_run() {
        let (mut rotation, now) = that_has_seen(ROTATION_SPAN);
        // Their steps take no time, so the next look is as far away as may be.
        for _ in 0..3 {
            assert_eq!(rotation.take(now, 2, || false, || now), None);
            assert!((0..2).any(|_| rotation.is_due(now)), "both have run");
        }
        assert_eq!(rotation.take(now, 1, || false, || now), None);
        assert!(rotation.is_due(now));
    }

    /// Checks the oldest where the first half of each rotation wakes endless processes.
    // pins: G4
    #[test]
    fn the_oldest_comes_at_last_where_each_rotation_wakes_others() {
        let (mut rotation, now) = that_has_seen(ROTATION_SPAN);
        rotation.continue_with_the_oldest();
        // The steps of these take no time.
        let due = (0..32).map(|_| pick(&mut rotation, now, now, WOKEN));
        let comes = due.enumerate().filter_map(|(at, due)| Some((at, due?)));
        let (oldest, rotation) = (Some(Due::Oldest), Some(Due::Rotation));
        let expected = [(29, oldest), (30, rotation)].map(|(at, due)| (at, due.unwrap()));
        assert_eq!(comes.collect::<Vec<_>>()[..2], expected);
    }

    // pins: G4
    #[test]
    fn a_longer_global_queue_has_as_much_time_as_the_own_deque() {
        let (mut rotation, now) = that_has_seen(ROTATION_SPAN);
        let has = Has {
            fewer: true,
            ..WOKEN
        };
        // A long step of a woken process; a rotation; then the others have as much time.
        let clocks = [0, 3, 4, 5, 6].map(|slices| now + slices * SLICE);
        let due = clocks.map(|clock| pick(&mut rotation, now, clock, has));
        let global = Some(Due::Global);
        assert_eq!(due, [None, Some(Due::Rotation), global, global, None]);
        let (mut rotation, now) = that_has_seen(ROTATION_SPAN);
        let clocks = [0, 3, 4].map(|slices| now + slices * SLICE);
        let due = clocks.map(|clock| pick(&mut rotation, now, clock, has));
        assert_eq!(due, [None, Some(Due::Rotation), global]);
        rotation.forget_the_global();
        assert_eq!(pick(&mut rotation, now, now + 4 * SLICE, has), None);
    }
}

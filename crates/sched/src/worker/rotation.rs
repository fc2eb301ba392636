//! When a worker looks at the global queue first, and at the oldest process of its own deque: see
//! `worker/mod.rs`.

use crate::base::clock::nanos;
use crate::base::config::Config;

pub(super) struct Rotation {
    /// Every so many picks.
    every: u32,
    /// And after so long, in nanoseconds.
    limit: u64,
    /// Picks up to the next one, or up to its second half.
    pub(super) left: u32,
    /// When it is due whatever was picked, in nanoseconds of the coarse time.
    due: u64,
    /// The last pick was a rotation that took one that was not in the own deque: the oldest of that
    /// is next.
    pub(super) oldest_is_next: bool,
}

/// What a pick is to begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Rotation,
    /// The second half of the last one.
    Oldest,
}

impl Rotation {
    pub(super) fn new(config: &Config, now: u64) -> Self {
        let every = config.rotation;
        let limit = nanos(config.chain_limit);
        Self {
            every,
            limit,
            left: every,
            due: now.saturating_add(limit),
            oldest_is_next: false,
        }
    }

    /// Counts a pick, and says whether something comes before it.
    #[inline]
    pub(super) fn is_due(&mut self, now: u64) -> bool {
        self.left -= 1;
        self.left == 0 || now >= self.due
    }

    /// What is due, which counts as done.
    pub(super) fn take(&mut self, now: u64) -> Due {
        self.left = self.every;
        if std::mem::take(&mut self.oldest_is_next) {
            return Due::Oldest;
        }
        self.due = now.saturating_add(self.limit);
        Due::Rotation
    }

    /// The oldest of the own deque is next.
    pub(super) fn go_on_with_the_oldest(&mut self) {
        self.oldest_is_next = true;
        self.left = 1;
    }

    /// Nothing is in the own deque.
    pub(super) fn forget_the_oldest(&mut self) {
        if std::mem::take(&mut self.oldest_is_next) {
            self.left = self.every;
        }
    }

    /// Begins anew.
    pub(super) fn restart(&mut self, now: u64) {
        self.left = self.every;
        self.due = now.saturating_add(self.limit);
        self.oldest_is_next = false;
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    /// Counts up, and looks at all there is to look at.
    struct Model {
        every: u32,
        limit: u64,
        picks: u32,
        last: u64,
        oldest_is_next: bool,
    }

    impl Model {
        fn pick(&mut self, now: u64, has_oldest: bool) -> Option<Due> {
            if std::mem::take(&mut self.oldest_is_next) && has_oldest {
                return Some(Due::Oldest);
            }
            self.picks += 1;
            if self.picks < self.every && now - self.last < self.limit {
                return None;
            }
            self.picks = 0;
            self.last = now;
            Some(Due::Rotation)
        }
    }

    /// As a worker picks.
    fn pick(rotation: &mut Rotation, now: u64, has_oldest: bool) -> Option<Due> {
        while rotation.is_due(now) {
            let due = rotation.take(now);
            if due == Due::Rotation || has_oldest {
                return Some(due);
            }
        }
        None
    }

    #[derive(Debug, Clone, Copy)]
    enum Act {
        /// After so many nanoseconds; and whether there is something that is not in the own deque,
        /// and something that is.
        Pick(u64, bool, bool),
        Forget,
        Restart,
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            20 => (0..4_u64, any::<bool>(), any::<bool>())
                .prop_map(|(later, has_other, has_oldest)| Act::Pick(later, has_other, has_oldest)),
            1 => Just(Act::Forget),
            1 => Just(Act::Restart),
        ]
    }

    proptest! {
        // pins: G4
        #[test]
        fn picks_are_counted_from_the_last_rotation(
            every in 1..7_u32,
            limit in prop_oneof![0..12_u64, Just(u64::MAX)],
            acts in prop::collection::vec(act(), 0..200),
        ) {
            let mut now = 1_000;
            let config = Config {
                rotation: every,
                chain_limit: Duration::from_nanos(limit),
                ..Config::default()
            };
            let mut rotation = Rotation::new(&config, now);
            let mut model = Model { every, limit, picks: 0, last: now, oldest_is_next: false };
            for act in acts {
                match act {
                    Act::Pick(later, has_other, has_oldest) => {
                        now += later;
                        let due = pick(&mut rotation, now, has_oldest);
                        prop_assert_eq!(due, model.pick(now, has_oldest));
                        if due == Some(Due::Rotation) && has_other {
                            rotation.go_on_with_the_oldest();
                            model.oldest_is_next = true;
                        }
                    }
                    Act::Forget => {
                        rotation.forget_the_oldest();
                        model.oldest_is_next = false;
                    }
                    Act::Restart => {
                        rotation.restart(now);
                        (model.picks, model.last, model.oldest_is_next) = (0, now, false);
                    }
                }
            }
        }
    }
}

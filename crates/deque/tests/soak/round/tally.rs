//! The counts of a thread, a round or a whole soak.

use std::ops::AddAssign;
use std::time::Duration;

#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) pushed: usize,
    /// How many items threads took. Destructors of workers drop the others.
    pub(crate) taken: usize,
    /// How many attempts to steal, one or many items, succeeded.
    pub(crate) steals: u64,
}

impl ganger_soak::Tally for Tally {
    fn describe(&self, time: Duration) -> String {
        let Self { pushed, steals, .. } = self;
        let speed = *pushed as f64 / time.as_secs_f64() / 1e6;
        format!("{pushed} items, {steals} steals, {speed:.1} M items/s")
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.pushed += other.pushed;
        self.taken += other.taken;
        self.steals += other.steals;
    }
}

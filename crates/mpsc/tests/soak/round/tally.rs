//! The counts of a thread, a round or a whole soak.

use std::ops::AddAssign;
use std::time::Duration;

#[derive(Default)]
pub(crate) struct Tally {
    /// Items by their fate. All are made. Items that are neither received, returned by a close nor
    /// refused are dropped with the queue.
    pub(crate) made: usize,
    pub(crate) received: usize,
    pub(crate) closed: usize,
    pub(crate) refused: usize,
    /// Drains and closes that had items, of the consumer of a queue.
    pub(crate) chains: u64,
    /// Parks of this consumer, parks that it took back, and parks ended by its own close.
    pub(crate) parks: u64,
    pub(crate) cancelled: u64,
    pub(crate) own_tokens: u64,
}

impl ganger_soak::Tally for Tally {
    fn describe(&self, time: Duration) -> String {
        let Self {
            made,
            received,
            closed,
            refused,
            parks,
            ..
        } = self;
        let dropped = made - received - closed - refused;
        let speed = *made as f64 / time.as_secs_f64() / 1e6;
        format!(
            "{made} items ({closed} closed upon, {refused} refused, {dropped} dropped), \
             {parks} parks, {speed:.1} M items/s"
        )
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.made += other.made;
        self.received += other.received;
        self.closed += other.closed;
        self.refused += other.refused;
        self.chains += other.chains;
        self.parks += other.parks;
        self.cancelled += other.cancelled;
        self.own_tokens += other.own_tokens;
    }
}

//! A lane at its receiver, where only the next frame is taken; the owed acknowledgement; the credit
//! of the data lane.

use super::outgoing::APART;
use crate::wire::MAX_FRAME;
use ganger_proc_api::Instant;
use std::time::Duration;

/// The fate of a frame.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Taken {
    /// Its messages are the next.
    Next,
    /// Its messages were delivered before.
    Again,
    /// A frame before it is missing.
    Gap,
}

#[derive(Debug, Default)]
pub(super) struct Incoming {
    /// The number of the next frame. All before it were delivered, once and in order.
    next: u64,
    misses: bool,
    /// The last nack: its frame, and its time.
    nacked: Option<(u64, Instant)>,
}

impl Incoming {
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    pub(super) fn take(&mut self, seq: u64) -> Taken {
        if seq < self.next {
            return Taken::Again;
        }
        if seq > self.next {
            self.misses = true;
            return Taken::Gap;
        }
        self.next += 1;
        self.misses = false;
        Taken::Next
    }

    /// Returns when a nack may leave, if a frame is missing: at once for each frame, then once in a
    /// round trip.
    pub(super) fn nack_at(&self, round_trip: Duration) -> Option<Instant> {
        let at = match self.nacked {
            Some((next, at)) if next == self.next => at + round_trip,
            _ => Instant::from_nanos(0),
        };
        self.misses.then_some(at)
    }

    /// Returns whether a nack leaves with an acknowledgement now.
    pub(super) fn nack(&mut self, round_trip: Duration, now: Instant) -> bool {
        let is_due = self.nack_at(round_trip).is_some_and(|at| now >= at);
        if is_due {
            self.misses = false;
            self.nacked = Some((self.next, now));
        }
        is_due
    }
}

/// How long an acknowledgement waits for a frame of messages that takes it along. Less than half of
/// the shortest time-out.
const DELAY: Duration = Duration::from_millis(1);

/// The acknowledgement owed to the peer. An answer takes the acknowledgement of its question along:
/// so a question and its answer are two frames, not four.
///
/// No sender waits for the delay: a sender has up to [`APART`](super::outgoing::APART) small frames
/// in flight, and the last of so many is acknowledged at once, as is a long frame.
#[derive(Debug, Default)]
pub(super) struct Owed {
    at: Option<Instant>,
    frames: usize,
}

impl Owed {
    /// Lets the acknowledgement leave with the next frame, or at once if no frame follows.
    pub(super) fn now(&mut self) {
        self.at = Some(Instant::from_nanos(0));
    }

    /// Notes a received frame.
    pub(super) fn frame(&mut self, is_long: bool, now: Instant) {
        self.frames += 1;
        if is_long || self.frames >= APART {
            self.now();
        } else {
            self.at.get_or_insert(now + DELAY);
        }
    }

    /// Returns when the acknowledgement leaves by itself. Time 0: at once.
    pub(super) fn at(&self) -> Option<Instant> {
        self.at
    }

    pub(super) fn said(&mut self) {
        *self = Self::default();
    }
}

/// How many bytes of data the peer may send before some are consumed.
#[derive(Debug)]
pub(super) struct Credit {
    most: usize,
    /// Delivered, and not consumed.
    outstanding: usize,
    /// Consumed since the peer was last told.
    unsaid: usize,
}

impl Credit {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            outstanding: 0,
            unsaid: 0,
        }
    }

    /// Takes credit for a frame. False: the peer has sent more than it may.
    pub(super) fn take(&mut self, cost: usize) -> bool {
        self.outstanding += cost;
        self.outstanding <= self.most
    }

    pub(super) fn consumed(&mut self, cost: usize) {
        let cost = cost.min(self.outstanding);
        self.outstanding -= cost;
        self.unsaid += cost;
    }

    pub(super) fn left(&self) -> u32 {
        u32::try_from(self.most - self.outstanding).unwrap_or(u32::MAX)
    }

    /// Returns whether the peer must be told. A quarter is worth a frame. The rest is, too, when
    /// nothing else is outstanding and the peer may lack the credit for its next frame.
    pub(super) fn is_owed(&self) -> bool {
        let known_left = (self.most - self.outstanding).saturating_sub(self.unsaid);
        let is_empty = self.outstanding == 0 && known_left < MAX_FRAME;
        self.unsaid > 0 && (self.unsaid >= self.most / 4 || is_empty)
    }

    pub(super) fn said(&mut self) {
        self.unsaid = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nack_is_said_once_in_a_round_trip_and_at_once_for_another_frame() {
        let ms = Duration::from_millis;
        let at = |millis| Instant::from_nanos(0) + ms(millis);
        let mut lane = Incoming::default();
        assert_eq!(lane.take(0), Taken::Next);
        assert_eq!(lane.nack_at(ms(5)), None);
        assert_eq!(lane.take(2), Taken::Gap);
        assert!(lane.nack(ms(5), at(10)));
        assert_eq!(lane.take(3), Taken::Gap);
        assert_eq!(lane.nack_at(ms(5)), Some(at(15)));
        assert!(!lane.nack(ms(5), at(14)));
        assert!(lane.nack(ms(5), at(15)));
        assert_eq!(lane.take(1), Taken::Next);
        assert_eq!(lane.take(1), Taken::Again);
        assert_eq!(lane.take(4), Taken::Gap);
        assert!(lane.nack(ms(5), at(16)));
    }

    #[test]
    fn the_peer_is_told_of_a_quarter_or_of_an_empty_mailbox() {
        let mut credit = Credit::new(400_000);
        assert!(credit.take(390_000));
        assert_eq!(credit.left(), 10_000);
        credit.consumed(99_999);
        assert!(!credit.is_owed());
        credit.consumed(1);
        assert!(credit.is_owed());
        credit.said();
        credit.consumed(290_000);
        assert!(credit.is_owed());
        credit.said();
        assert_eq!(credit.left(), 400_000);
        assert!(credit.take(400_000));
        assert!(!credit.take(1), "more than the credit");
    }
}

//! A lane at its sender: messages wait in a queue of frames, then frames wait in a ring for their
//! acknowledgement.
//!
//! The ring has the frames `[acked, sent)`, and `cursor` is the next to leave. Ways forward:
//!
//! 1. A new frame leaves at the cursor's end of the ring, if window and credit allow.
//! 2. An acknowledgement takes frames from the front.
//! 3. A nack, or the time-out, puts the cursor to the front: all leave again (go-back-N). Engines
//!    are FIFO but for breaks, so a lost frame means the loss of all behind it.
//! 4. After a time-out the peer may be paused. So a single frame leaves, and each acknowledgement
//!    doubles the burst.
//!
//! A frame leaves when full, or at once if at most one other is in flight, so small messages share
//! frames without a timer.

use super::settings::Settings;
use crate::id::{Half, Lane};
use crate::session::event::{SendError, Undelivered};
use crate::wire::{Acks, Packer, Symbols, Writer};
use bytes::Bytes;
use ganger_proc_api::Instant;
use std::collections::VecDeque;
use std::time::Duration;

/// A frame with less room than this counts as full.
const CRUMB: usize = 64;

/// So many frames may be in flight, full or not.
pub(super) const APART: usize = 2;

/// A sent frame.
#[derive(Debug)]
struct Sent {
    frame: Bytes,
    messages: u32,
    cost: usize,
    at: Instant,
    again: bool,
}

#[derive(Debug)]
pub(super) struct Outgoing {
    lane: Lane,
    queue: VecDeque<Packer>,
    queued: usize,
    /// The length of the last frame.
    usual: usize,
    symbols: Symbols,
    ring: VecDeque<Sent>,
    /// The number of the ring's first frame, and the cost of all before.
    acked: u64,
    acked_cost: u64,
    /// The cost of the ring.
    unacked: usize,
    /// The place in the ring of the next frame to leave.
    cursor: usize,
    /// How many frames may be in flight.
    burst: usize,
    /// The peer takes frames up to this cost, from the begin of the session.
    limit: u64,
    /// The last acknowledgement, or when the ring began to fill.
    progress_at: Instant,
    /// From here on the time-out counts.
    timer_at: Instant,
    /// How often the time-out has passed without an acknowledgement.
    timeouts: u32,
    /// The last heeded nack: `acked`, and its time.
    rewound: Option<(u64, Instant)>,
    /// The engine takes no frames before.
    held_until: Option<Instant>,
    resent: u64,
}

impl Outgoing {
    pub(super) fn new(lane: Lane, now: Instant) -> Self {
        Self {
            lane,
            queue: VecDeque::new(),
            queued: 0,
            usual: 0,
            symbols: Symbols::default(),
            ring: VecDeque::new(),
            acked: 0,
            acked_cost: 0,
            unacked: 0,
            cursor: 0,
            burst: usize::MAX,
            limit: match lane {
                Lane::Control => u64::MAX,
                Lane::Data => 0,
            },
            progress_at: now,
            timer_at: now,
            timeouts: 0,
            rewound: None,
            held_until: None,
            resent: 0,
        }
    }

    /// Opens the lane with the peer's first credit.
    pub(super) fn open(&mut self, credit: u32, now: Instant) {
        self.raise_limit(credit);
        self.progress_at = now;
    }

    fn raise_limit(&mut self, credit: u32) {
        // Frames with the same acknowledgement may come out of order, and a limit is never taken
        // back. So the highest holds.
        self.limit = self.limit.max(self.acked_cost + u64::from(credit));
    }

    pub(super) fn push(
        &mut self,
        op: u8,
        settings: &Settings,
        write: impl FnOnce(&mut Writer<'_>),
    ) -> Result<(), SendError> {
        if self.queued >= settings.queue {
            return Err(SendError::Full);
        }
        // Outside of the queue until a message is in it: `write` may panic.
        let mut fresh = None;
        let open = match self.queue.back_mut() {
            Some(open) => open,
            None => fresh.insert(Packer::new(self.usual)),
        };
        let most = settings.frame;
        let added = open.add(op, most, &mut self.symbols, write);
        let length = added.map_err(|needs| SendError::TooLarge { needs, most })?;
        let last = (open.len() > most).then(|| open.split_last(length));
        self.queued += length;
        if let Some(fresh) = fresh {
            self.queue.push_back(fresh);
        }
        if let Some(last) = last {
            self.queue.push_back(last);
        }
        Ok(())
    }

    /// Returns whether the next new frame may leave, behind all repeated frames.
    fn may_send_new(&self, settings: &Settings) -> bool {
        let Some(front) = self.queue.front() else {
            return false;
        };
        let cost = front.cost();
        let is_full = self.queue.len() > 1 || front.len() + CRUMB > settings.frame;
        let may_follow = is_full || self.ring.len() < APART;
        let in_window =
            self.ring.is_empty() || may_follow && self.unacked + cost <= settings.window;
        in_window && self.ring.len() < self.burst && self.has_credit(cost)
    }

    fn has_credit(&self, cost: usize) -> bool {
        self.acked_cost + self.unacked as u64 + cost as u64 <= self.limit
    }

    /// Returns whether the peer's credit alone keeps a frame from leaving, and no acknowledgement
    /// under way could bring more.
    pub(super) fn is_stalled(&self) -> bool {
        let front = self.queue.front();
        self.ring.is_empty() && front.is_some_and(|front| !self.has_credit(front.cost()))
    }

    /// Returns whether a frame may leave now.
    pub(super) fn is_ready(&self, settings: &Settings) -> bool {
        let has_old = self.cursor < self.ring.len().min(self.burst);
        let may_send_new = || self.cursor == self.ring.len() && self.may_send_new(settings);
        self.held_until.is_none() && (has_old || may_send_new())
    }

    /// Returns the next frame to leave, and whether the frame has these acknowledgements.
    pub(super) fn next(
        &mut self,
        (to, from): (Half, Half),
        acks: Acks,
        settings: &Settings,
        now: Instant,
    ) -> Option<(Bytes, bool)> {
        if !self.is_ready(settings) {
            return None;
        }
        if let Some(sent) = self.ring.get_mut(self.cursor) {
            sent.again = true;
            sent.at = now;
            let frame = sent.frame.clone();
            self.leave(now);
            self.resent += 1;
            return Some((frame, false));
        }
        let packer = self.queue.pop_front()?;
        let (cost, messages) = (packer.cost(), packer.count());
        self.usual = packer.len();
        let seq = self.acked + self.ring.len() as u64;
        let frame = packer.seal(to, from, self.lane, seq, acks);
        if self.ring.is_empty() {
            self.progress_at = now;
        }
        self.queued -= cost;
        self.unacked += cost;
        self.ring.push_back(Sent {
            frame: frame.clone(),
            messages,
            cost,
            at: now,
            again: false,
        });
        self.leave(now);
        Some((frame, true))
    }

    fn leave(&mut self, now: Instant) {
        if self.cursor == 0 {
            self.timer_at = now;
        }
        self.cursor += 1;
    }

    /// Holds the lane until this time: the engine has not taken the last frame.
    pub(super) fn hold(&mut self, until: Instant) {
        self.cursor = self.cursor.saturating_sub(1);
        self.held_until = Some(until);
    }

    pub(super) fn release(&mut self) {
        self.held_until = None;
    }

    /// Takes all frames before `next` from the ring. Returns a sample of the round trip; false if
    /// no such frame was sent.
    pub(super) fn acknowledge(
        &mut self,
        next: u64,
        credit: u32,
        now: Instant,
    ) -> Result<Option<Duration>, ()> {
        if next > self.acked + self.ring.len() as u64 {
            return Err(());
        }
        let mut sample = None;
        while self.acked < next {
            let Some(sent) = self.ring.pop_front() else {
                break;
            };
            self.acked += 1;
            self.acked_cost += sent.cost as u64;
            self.unacked -= sent.cost;
            self.cursor = self.cursor.saturating_sub(1);
            self.burst = self.burst.saturating_mul(2);
            self.timeouts = 0;
            self.progress_at = now;
            self.timer_at = now;
            sample = (!sent.again).then(|| now - sent.at);
        }
        if next == self.acked && self.lane == Lane::Data {
            self.raise_limit(credit);
        }
        Ok(sample)
    }

    /// Repeats from the frame `next`, which the peer misses. Frames of an earlier round may still
    /// cause nacks, so a single nack is heeded in a round trip.
    pub(super) fn nack(&mut self, next: u64, round_trip: Duration, now: Instant) {
        let is_repeated = self
            .rewound
            .is_some_and(|(acked, at)| acked == next && now < at + round_trip);
        if next == self.acked && !self.ring.is_empty() && !is_repeated {
            self.rewound = Some((next, now));
            self.cursor = 0;
        }
    }

    /// Returns when the oldest frame in flight counts as lost.
    fn timeout_at(&self, timeout: Duration, most: Duration) -> Option<Instant> {
        let backed_off = timeout.saturating_mul(1 << self.timeouts.min(16));
        let timeout = backed_off.min(most.max(timeout));
        (self.cursor > 0).then(|| self.timer_at + timeout)
    }

    /// Returns when [`Outgoing::expire`] has something to do.
    pub(super) fn deadline(&self, timeout: Duration, settings: &Settings) -> Option<Instant> {
        let progress = (!self.ring.is_empty()).then(|| self.progress_at + settings.dead);
        let timeout = self.timeout_at(timeout, settings.heartbeat);
        let timers = [progress, timeout, self.held_until];
        timers.into_iter().flatten().min()
    }

    /// Lets the time-out pass. False: the peer has acknowledged nothing for too long.
    pub(super) fn expire(&mut self, timeout: Duration, settings: &Settings, now: Instant) -> bool {
        if !self.ring.is_empty() && now >= self.progress_at + settings.dead {
            return false;
        }
        if self.held_until.is_some_and(|until| now >= until) {
            self.held_until = None;
        }
        let timeout_at = self.timeout_at(timeout, settings.heartbeat);
        if timeout_at.is_some_and(|at| now >= at) {
            self.cursor = 0;
            self.burst = 1;
            self.timeouts = self.timeouts.saturating_add(1);
        }
        true
    }

    pub(super) fn has_messages(&self) -> bool {
        !self.queue.is_empty() || !self.ring.is_empty()
    }

    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    pub(super) fn unacked(&self) -> usize {
        self.unacked
    }

    pub(super) fn frames(&self) -> u64 {
        self.acked + self.ring.len() as u64
    }

    pub(super) fn resent(&self) -> u64 {
        self.resent
    }

    /// Adds the remaining messages to the account of the session.
    pub(super) fn give_up(self, undelivered: &mut Undelivered) {
        let counts = self.ring.iter().map(|sent| u64::from(sent.messages));
        undelivered.unacknowledged += counts.sum::<u64>();
        let unsent = self.queue.into_iter().map(Packer::into_messages);
        undelivered.unsent.extend(unsent.map(|it| (self.lane, it)));
    }
}

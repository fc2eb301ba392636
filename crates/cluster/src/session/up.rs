//! A session after the peer's answer.

use super::event::End;
use super::identity::Identity;
use super::incoming::{Credit, Incoming, Owed, Taken};
use super::outgoing::Outgoing;
use super::probe::{Gone, Probes};
use super::round_trip::RoundTrip;
use super::settings::Settings;
use crate::id::{Half, Lane};
use crate::wire::{Acks, Frame, Hello, Messages};
use bytes::Bytes;
use ganger_proc_api::Instant;
use std::time::Duration;

/// The least time between two nacks of the same frame.
const LEAST_ROUND_TRIP: Duration = Duration::from_millis(1);

/// Before the peer's answer: the own half, and waiting messages.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) half: Half,
    /// The peer's half, and its credit.
    pub(super) peer: Option<(Half, u32)>,
    pub(super) out: [Outgoing; 2],
    /// When the next Hello leaves.
    pub(super) hello_at: Instant,
    /// The time to the Hello after it.
    wait: Duration,
    /// When the first message was accepted.
    pub(super) asked_at: Option<Instant>,
}

impl Opening {
    pub(super) fn new(half: Half, peer: Option<(Half, u32)>, now: Instant) -> Self {
        Self {
            half,
            peer,
            out: Lane::ALL.map(|lane| Outgoing::new(lane, now)),
            hello_at: now,
            wait: Duration::ZERO,
            asked_at: None,
        }
    }

    /// Returns a Hello to send now. The next follows after two time-outs, and each later one after
    /// twice as long, up to a heartbeat.
    pub(super) fn hello(
        &mut self,
        identity: &Identity,
        settings: &Settings,
        now: Instant,
    ) -> Bytes {
        self.wait = (2 * self.wait).clamp(
            (2 * settings.first_timeout).min(settings.heartbeat),
            settings.heartbeat,
        );
        self.hello_at = now + self.wait;
        let hello = Hello {
            half: self.half,
            view: self.peer.map(|(half, _)| half),
            name: identity.name.clone(),
            cluster: (*identity.cluster).into(),
            credit: u32::try_from(settings.credit).unwrap_or(u32::MAX),
            said: Bytes::new(),
            proof: Bytes::new(),
        };
        hello.encode(|said| identity.proof.make(said))
    }

    /// Notes that the peer has refused this half: further Hellos come at the pace of heartbeats.
    pub(super) fn refused(&mut self, settings: &Settings, now: Instant) {
        self.wait = settings.heartbeat;
        self.hello_at = now + self.wait;
    }

    /// Returns when messages have waited for too long.
    pub(super) fn unreachable_at(&self, settings: &Settings) -> Option<Instant> {
        Some(self.asked_at? + settings.dead)
    }
}

#[derive(Debug)]
pub(super) struct Up {
    pub(super) half: Half,
    pub(super) peer: Half,
    pub(super) out: [Outgoing; 2],
    incoming: [Incoming; 2],
    credit: Credit,
    pub(super) round_trip: RoundTrip,
    /// When the peer was last heard, and when this side last spoke.
    heard_at: Instant,
    spoke_at: Instant,
    owed: Owed,
    /// The number of a probe to be answered.
    asked: Option<u64>,
    pub(super) probes: Probes,
}

impl Up {
    /// Brings the session up. Returns `None` unless the peer's half is known.
    pub(super) fn rise(opening: &mut Opening, settings: &Settings, now: Instant) -> Option<Self> {
        let (peer, credit) = opening.peer?;
        let empty = Lane::ALL.map(|lane| Outgoing::new(lane, now));
        let mut out = std::mem::replace(&mut opening.out, empty);
        for lane in &mut out {
            lane.open(credit, now);
        }
        let mut owed = Owed::default();
        owed.now();
        Some(Self {
            half: opening.half,
            peer,
            out,
            incoming: Default::default(),
            credit: Credit::new(settings.credit),
            round_trip: RoundTrip::default(),
            heard_at: now,
            spoke_at: now,
            owed,
            asked: None,
            probes: Probes::default(),
        })
    }

    fn timeout(&self, settings: &Settings) -> Duration {
        let (first, least) = (settings.first_timeout, settings.least_timeout);
        self.round_trip.timeout(first, least)
    }

    fn least_round_trip(&self) -> Duration {
        let measured = self.round_trip.smoothed();
        measured.map_or(LEAST_ROUND_TRIP, |it| it.max(LEAST_ROUND_TRIP))
    }

    pub(super) fn owe_ack(&mut self) {
        self.owed.now();
    }

    pub(super) fn acks(&self) -> Acks {
        Acks {
            next: [self.incoming[0].next(), self.incoming[1].next()],
            credit: self.credit.left(),
        }
    }

    /// Takes the acknowledgements of any frame of the session. An error: the session must end.
    pub(super) fn heard(&mut self, acks: Acks, nack: [bool; 2], now: Instant) -> Result<(), End> {
        self.heard_at = now;
        for lane in Lane::ALL {
            let (next, out) = (acks.next[lane.index()], &mut self.out[lane.index()]);
            let sample = out.acknowledge(next, acks.credit, now);
            if let Some(measured) = sample.map_err(|()| End::Violation)? {
                self.round_trip.sample(measured);
            }
        }
        let round_trip = self.least_round_trip();
        for lane in Lane::ALL.into_iter().filter(|lane| nack[lane.index()]) {
            let next = acks.next[lane.index()];
            self.out[lane.index()].nack(next, round_trip, now);
        }
        Ok(())
    }

    /// Takes messages. Returns whether they are the next of their lane. An error: the session must
    /// end.
    pub(super) fn take(
        &mut self,
        (lane, seq): (Lane, u64),
        messages: &Messages,
        settings: &Settings,
        now: Instant,
    ) -> Result<bool, End> {
        let taken = self.incoming[lane.index()].take(seq);
        match taken {
            Taken::Next => self.owed.frame(messages.cost() > settings.frame / 2, now),
            // A peer without the acknowledgement.
            Taken::Again => self.owed.now(),
            Taken::Gap => {}
        }
        let is_next = taken == Taken::Next;
        let has_credit = lane == Lane::Control || !is_next || self.credit.take(messages.cost());
        has_credit.then_some(is_next).ok_or(End::Violation)
    }

    pub(super) fn consumed(&mut self, cost: usize) {
        self.credit.consumed(cost);
    }

    pub(super) fn ask(&mut self, probe: u64) {
        self.asked = Some(probe);
    }

    /// Takes an answer to a probe. Returns the half of a rival to refuse.
    pub(super) fn answered(&mut self, number: u64, now: Instant) -> Option<Half> {
        let (rival, sample) = self.probes.answered(number, now);
        if let Some(measured) = sample {
            self.round_trip.sample(measured);
        }
        rival
    }

    /// Lets time pass. An error: the session must end. A rival takes the place of the peer.
    pub(super) fn expire(
        &mut self,
        settings: &Settings,
        now: Instant,
    ) -> Result<(), (End, Option<Half>)> {
        if now >= self.heard_at + settings.dead {
            return Err((End::Silence, None));
        }
        match self.probes.gone(now) {
            Some(Gone::Vanished) => return Err((End::Vanished, None)),
            Some(Gone::Replaced(rival)) => return Err((End::Restarted, rival)),
            None => {}
        }
        let timeout = self.timeout(settings);
        for lane in &mut self.out {
            if !lane.expire(timeout, settings, now) {
                return Err((End::NoProgress, None));
            }
        }
        Ok(())
    }

    /// Returns the next frame to leave, and the lane of a frame of messages: messages first, of the
    /// control lane before data.
    pub(super) fn next(
        &mut self,
        settings: &Settings,
        now: Instant,
    ) -> Option<(Option<Lane>, Bytes)> {
        let acks = self.acks();
        for lane in Lane::ALL {
            let out = &mut self.out[lane.index()];
            if let Some((frame, has_acks)) = out.next((self.peer, self.half), acks, settings, now) {
                if has_acks {
                    self.said_acks(now);
                }
                return Some((Some(lane), frame));
            }
        }
        let frame = self.next_ack(acks, settings, now)?;
        self.said_acks(now);
        Some((None, frame))
    }

    fn said_acks(&mut self, now: Instant) {
        self.spoke_at = now;
        self.owed.said();
        self.credit.said();
    }

    fn next_ack(&mut self, acks: Acks, settings: &Settings, now: Instant) -> Option<Bytes> {
        let (timeout, is_stalled) = (self.timeout(settings), self.is_stalled());
        let round_trip = self.least_round_trip();
        let answer = self.asked.take();
        let probe = match answer {
            None => self.probes.next(is_stalled, timeout, settings, now),
            Some(_) => None,
        };
        let nack = Lane::ALL.map(|lane| self.incoming[lane.index()].nack(round_trip, now));
        let is_due = self.owed.at().is_some_and(|at| now >= at)
            || self.credit.is_owed()
            || nack.contains(&true)
            || probe.or(answer).is_some()
            || now >= self.spoke_at + settings.heartbeat;
        let ack = Frame::Ack {
            to: self.peer,
            from: self.half,
            acks,
            nack,
            probe,
            answer,
        };
        is_due.then(|| ack.encode())
    }

    /// Returns whether a frame may leave now.
    fn is_ready(&self, settings: &Settings) -> bool {
        self.owed.at() == Some(Instant::from_nanos(0))
            || self.asked.is_some()
            || self.credit.is_owed()
            || self.out.iter().any(|lane| lane.is_ready(settings))
    }

    /// Returns whether nothing leaves now, and a further message in a queue changes no deadline.
    pub(super) fn only_waits(&self, settings: &Settings) -> bool {
        !self.is_ready(settings) && !self.is_stalled()
    }

    fn is_stalled(&self) -> bool {
        self.out[Lane::Data.index()].is_stalled()
    }

    /// Returns when [`Up::expire`] or [`Up::next`] has something to do. Time 0: at once.
    pub(super) fn deadline(&self, settings: &Settings) -> Option<Instant> {
        if self.is_ready(settings) {
            return Some(Instant::from_nanos(0));
        }
        let timeout = self.timeout(settings);
        let round_trip = self.least_round_trip();
        let [control, data] = &self.out;
        let [control_in, data_in] = &self.incoming;
        let timers = [
            Some(self.heard_at + settings.dead),
            Some(self.spoke_at + settings.heartbeat),
            self.owed.at(),
            control.deadline(timeout, settings),
            data.deadline(timeout, settings),
            control_in.nack_at(round_trip),
            data_in.nack_at(round_trip),
            self.probes.deadline(self.is_stalled()),
        ];
        timers.into_iter().flatten().min()
    }
}

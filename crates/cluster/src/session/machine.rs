//! The state machine of a node towards a peer.

mod renew;

use super::event::{End, Event, Refusal, SendError, Undelivered};
use super::identity::Identity;
use super::outgoing::Outgoing;
use super::settings::Settings;
use super::stats::{State, Stats};
use super::up::{Opening, Up};
use crate::id::{Half, Halves, Lane, NodeId};
use crate::wire::{Frame, Hello, Notice, ReadError, Writer};
use bytes::Bytes;
use ganger_proc_api::Instant;
use std::collections::VecDeque;
use std::sync::Arc;

/// The most answers in the queue. A peer that asks faster than this side polls gets fewer.
const MOST_REPLIES: usize = 16;

/// The most refusals among the events. A stranger that comes more often than this side looks is
/// told of less often.
const MOST_REFUSALS: usize = 16;

/// A frame for the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transmit {
    /// The lane for the engine.
    pub lane: Lane,
    /// The frame.
    pub frame: Bytes,
    /// The own half and the lane of messages.
    messages_of: Option<(Half, Lane)>,
}

#[derive(Debug)]
enum Inner {
    Down,
    Opening(Box<Opening>),
    Up(Box<Up>),
}

/// The sessions of this node with a peer, a single session at a time.
///
/// A session does no input or output. Its owner
///
/// 1. gives it what happens: [`handle`](Self::handle), [`send`](Self::send),
///    [`appeared`](Self::appeared), [`vanished`](Self::vanished), [`consumed`](Self::consumed);
/// 2. then sends frames until [`poll_frame`](Self::poll_frame) has no more, and looks at the events
///    until [`poll_event`](Self::poll_event) has no more;
/// 3. does so again at [`deadline`](Self::deadline), at the latest.
///
/// Time never goes back. Any origin will do.
#[derive(Debug)]
pub struct Session {
    identity: Identity,
    peer: NodeId,
    settings: Settings,
    halves: Arc<Halves>,
    /// Of ended sessions: see [`Stats::frames`].
    frames: [u64; 2],
    /// The same: see [`Stats::resent`].
    resent: [u64; 2],
    /// The newest half of the peer. Older halves are ignored.
    newest: Option<Half>,
    /// The own half and the peer's of the last session, if a side has left it.
    left: Option<(Half, Half)>,
    inner: Inner,
    replies: VecDeque<Bytes>,
    events: VecDeque<Event>,
    /// Refusals among the events.
    refusals: usize,
}

impl Session {
    /// Creates a session that is down until [`open`](Self::open), or until the peer asks.
    #[must_use]
    pub fn new(identity: Identity, halves: Arc<Halves>, peer: NodeId, settings: Settings) -> Self {
        Self {
            identity,
            peer,
            settings: settings.in_range(),
            halves,
            frames: [0; 2],
            resent: [0; 2],
            newest: None,
            left: None,
            inner: Inner::Down,
            replies: VecDeque::new(),
            events: VecDeque::new(),
            refusals: 0,
        }
    }

    /// Returns the name of the peer.
    #[must_use]
    pub fn peer(&self) -> &NodeId {
        &self.peer
    }

    /// Asks for a session, unless a session exists.
    pub fn open(&mut self, now: Instant) {
        if matches!(self.inner, Inner::Down) {
            self.inner = Inner::Opening(Box::new(self.opening(None, now)));
        }
    }

    fn opening(&self, peer: Option<(Half, u32)>, now: Instant) -> Opening {
        Opening::new(self.halves.fresh(), peer, now)
    }

    /// Accepts a message from `write`. Returns the half of its session: either the message
    /// arrives, or that half ends with [`Event::Ended`]. Also while the session opens.
    ///
    /// # Errors
    ///
    /// No session exists, the queue is full, or the message needs a larger frame. Then nothing is
    /// sent.
    pub fn send(
        &mut self,
        lane: Lane,
        op: u8,
        now: Instant,
        write: impl FnOnce(&mut Writer<'_>),
    ) -> Result<Half, SendError> {
        match &mut self.inner {
            Inner::Down => Err(SendError::NoSession),
            Inner::Opening(opening) => {
                opening.out[lane.index()].push(op, &self.settings, write)?;
                opening.asked_at.get_or_insert(now);
                Ok(opening.half)
            }
            Inner::Up(up) => {
                up.out[lane.index()].push(op, &self.settings, write)?;
                Ok(up.half)
            }
        }
    }

    /// Handles a frame of the peer.
    pub fn handle(&mut self, frame: &Bytes, now: Instant) {
        let frame = match Frame::parse(frame) {
            Ok(frame) => frame,
            Err(error) if matches!(self.inner, Inner::Up(_)) => {
                return self.end(End::Malformed(error), now);
            }
            Err(error) => return self.refuse(Refusal::Malformed(error)),
        };
        match frame {
            Frame::Hello(hello) => self.on_hello(&hello, now),
            Frame::Reset { to, notice } => self.on_reset(to, notice, now),
            Frame::Bye { to, from } => {
                if self.is_of_session(to, from, now) {
                    self.end(End::Bye, now);
                }
            }
            Frame::Data {
                to,
                from,
                lane,
                seq,
                acks,
                messages,
            } => {
                if !self.is_of_session(to, from, now) {
                    return;
                }
                let Inner::Up(up) = &mut self.inner else {
                    return;
                };
                let taken = up
                    .heard(acks, [false; 2], now)
                    .and_then(|()| up.take((lane, seq), &messages, &self.settings, now));
                let session = up.half;
                match taken {
                    Ok(true) => self.events.push_back(Event::Received {
                        session,
                        lane,
                        messages,
                    }),
                    Ok(false) => {}
                    Err(why) => self.end(why, now),
                }
            }
            Frame::Ack {
                to,
                from,
                acks,
                nack,
                probe,
                answer,
            } => {
                if !self.is_of_session(to, from, now) {
                    return;
                }
                let Inner::Up(up) = &mut self.inner else {
                    return;
                };
                if let Some(number) = probe {
                    up.ask(number);
                }
                let rival = answer.and_then(|number| up.answered(number, now));
                if let Err(why) = up.heard(acks, nack, now) {
                    self.end(why, now);
                }
                if let Some(rival) = rival {
                    self.reset(rival, Notice::NameTaken);
                }
            }
        }
    }

    /// Returns whether a frame is of the session. The first such frame brings the session up. Any
    /// other is answered with a Reset, and its sender ends its session then.
    fn is_of_session(&mut self, to: Half, from: Half, now: Instant) -> bool {
        let is_ours = match &self.inner {
            Inner::Down => false,
            Inner::Opening(opening) => {
                opening.half == to && opening.peer.is_some_and(|(half, _)| half == from)
            }
            Inner::Up(up) => up.half == to && up.peer == from,
        };
        if is_ours {
            self.rise(now);
        } else {
            let present = self.halves.incarnation();
            let notice = if to.incarnation == present {
                Notice::Unknown
            } else {
                // Two nodes may have the name: the sender asks the other before it ends a session.
                Notice::Restarted(present)
            };
            self.reset(from, notice);
        }
        is_ours
    }

    fn rise(&mut self, now: Instant) {
        let Inner::Opening(opening) = &mut self.inner else {
            return;
        };
        if let Some(up) = Up::rise(opening, &self.settings, now) {
            self.events.push_back(Event::Up {
                session: up.half,
                peer: up.peer.incarnation,
            });
            self.inner = Inner::Up(Box::new(up));
        }
    }

    fn on_hello(&mut self, hello: &Hello, now: Instant) {
        if hello.name != self.peer {
            return self.refuse(Refusal::OtherName(hello.name.as_str().into()));
        }
        if *hello.cluster != *self.identity.cluster {
            return self.refuse(Refusal::OtherCluster(hello.cluster.clone()));
        }
        if !self.identity.proof.check(&hello.said, &hello.proof) {
            return self.refuse(Refusal::WrongProof);
        }
        let half = hello.half;
        if let Some(newest) = self.newest.filter(|newest| half < *newest) {
            // An old frame, or a node that was started with a clock set back.
            if half.incarnation < newest.incarnation {
                self.reset(half, Notice::Outdated(newest.incarnation));
            }
            return;
        }
        if matches!(self.inner, Inner::Down)
            && let Some((own, _)) = self.left.filter(|(_, peer)| *peer == half)
        {
            // An old frame, or the farewell was lost.
            if hello.view == Some(own) {
                let (to, from) = (half, own);
                self.reply(&Frame::Bye { to, from });
            }
            return;
        }
        let peer = Some((half, hello.credit));
        match &mut self.inner {
            Inner::Up(up) if up.peer == half => {
                // The peer may not know yet that the session is up.
                up.owe_ack();
                return;
            }
            Inner::Up(up) if up.peer.incarnation != half.incarnation => {
                up.probes.rival(Some(half), &self.settings, now);
                return;
            }
            Inner::Up(_) => self.end(End::Newer, now),
            Inner::Opening(_) => {}
            Inner::Down => self.open(now),
        }
        self.newest = Some(half);
        let Inner::Opening(opening) = &mut self.inner else {
            return;
        };
        opening.peer = peer;
        if hello.view == Some(opening.half) {
            self.rise(now);
        } else {
            opening.hello_at = now;
        }
    }

    fn on_reset(&mut self, to: Half, notice: Notice, now: Instant) {
        match &mut self.inner {
            Inner::Up(up) if up.half == to => match notice {
                Notice::Restarted(present) if present > up.peer.incarnation => {
                    up.probes.rival(None, &self.settings, now);
                }
                Notice::Unknown => self.end(End::Reset, now),
                // Late answers to a Hello, which the peer has accepted since.
                Notice::Restarted(_) | Notice::NameTaken | Notice::Outdated(_) => {}
            },
            Inner::Opening(opening) if opening.half == to => {
                let refusal = match notice {
                    Notice::Unknown | Notice::Restarted(_) => return,
                    Notice::NameTaken => Refusal::NameTaken,
                    Notice::Outdated(newest) => Refusal::Outdated(newest),
                };
                opening.refused(&self.settings, now);
                self.refuse(refusal);
            }
            _ => {}
        }
    }

    fn refuse(&mut self, why: Refusal) {
        if self.refusals < MOST_REFUSALS {
            self.refusals += 1;
            self.events.push_back(Event::Refused(why));
        }
    }

    fn reset(&mut self, to: Half, notice: Notice) {
        self.reply(&Frame::Reset { to, notice });
    }

    fn reply(&mut self, frame: &Frame) {
        if self.replies.len() < MOST_REPLIES {
            self.replies.push_back(frame.encode());
        }
    }

    /// Ends the session in a single step: it is gone, then its end is told, and no frame of it is
    /// delivered afterwards. Another opens, with a fresh half, unless a side has left.
    fn end(&mut self, why: End, now: Instant) {
        self.end_for(why, None, now);
    }

    fn end_for(&mut self, why: End, next_peer: Option<Half>, now: Instant) {
        let (session, peer, out, was_up) = match std::mem::replace(&mut self.inner, Inner::Down) {
            Inner::Down => return,
            Inner::Opening(it) => (it.half, it.peer.map(|(half, _)| half), it.out, false),
            Inner::Up(it) => (it.half, Some(it.peer), it.out, true),
        };
        let has_messages = out.iter().any(Outgoing::has_messages);
        let mut undelivered = Undelivered::default();
        for (place, lane) in out.into_iter().enumerate() {
            self.frames[place] += lane.frames();
            self.resent[place] += lane.resent();
            lane.give_up(&mut undelivered);
        }
        if was_up || has_messages {
            self.events.push_back(Event::Ended {
                session,
                why,
                undelivered,
            });
        }
        if matches!(why, End::Bye | End::Closed) {
            self.left = peer.map(|peer| (session, peer));
        } else {
            if let Some(half) = next_peer {
                self.newest = self.newest.max(Some(half));
            }
            self.inner = Inner::Opening(Box::new(self.opening(None, now)));
        }
    }

    /// Says farewell to the peer, and ends the session. Unacknowledged messages are undelivered:
    /// an owner waits until [`is_flushed`](Self::is_flushed).
    pub fn close(&mut self, now: Instant) {
        let halves = match &self.inner {
            Inner::Down => None,
            // The session may be up at the peer.
            Inner::Opening(opening) => opening.peer.map(|(peer, _)| (peer, opening.half)),
            Inner::Up(up) => Some((up.peer, up.half)),
        };
        if let Some((to, from)) = halves {
            // Also behind many answers.
            self.replies.push_back(Frame::Bye { to, from }.encode());
        }
        self.end(End::Closed, now);
    }

    /// Ends the session because a message of it can't be read.
    pub fn fail(&mut self, session: Half, why: ReadError, now: Instant) {
        if self.session() == Some(session) {
            self.end(End::Unreadable(why), now);
        }
    }

    /// Notes a hint of the engine: the peer may be reached by now.
    pub fn appeared(&mut self, now: Instant) {
        match &mut self.inner {
            Inner::Down => self.open(now),
            Inner::Opening(opening) => opening.hello_at = now,
            Inner::Up(_) => {}
        }
    }

    /// Notes a hint of the engine: the peer may be gone. The session asks the peer, and ends
    /// without an answer within [`Settings::vanished`].
    pub fn vanished(&mut self, now: Instant) {
        if let Inner::Up(up) = &mut self.inner {
            up.probes.vanished(&self.settings, now);
        }
    }

    /// Gives credit back for consumed messages of the data lane: their
    /// [`cost`](crate::Message::cost). Of an earlier session it has no effect.
    pub fn consumed(&mut self, session: Half, cost: usize) {
        if let Inner::Up(up) = &mut self.inner
            && up.half == session
        {
            up.consumed(cost);
        }
    }

    /// Puts the last polled frame back, which the engine has not taken. Its lane waits for
    /// [`writable`](Self::writable), or for a heartbeat's time. A frame without messages counts as
    /// lost.
    pub fn put_back(&mut self, transmit: &Transmit, now: Instant) {
        if let (Inner::Up(up), Some((session, lane))) = (&mut self.inner, transmit.messages_of)
            && up.half == session
        {
            up.out[lane.index()].hold(now + self.settings.heartbeat);
        }
    }

    /// Notes that the engine takes frames again.
    pub fn writable(&mut self) {
        if let Inner::Up(up) = &mut self.inner {
            for lane in &mut up.out {
                lane.release();
            }
        }
    }

    /// Returns the next frame to send now.
    pub fn poll_frame(&mut self, now: Instant) -> Option<Transmit> {
        self.expire(now);
        let control = |frame| Transmit {
            lane: Lane::Control,
            frame,
            messages_of: None,
        };
        if let Some(frame) = self.replies.pop_front() {
            return Some(control(frame));
        }
        match &mut self.inner {
            Inner::Down => None,
            Inner::Opening(opening) if now < opening.hello_at => None,
            Inner::Opening(opening) => {
                let hello = opening.hello(&self.identity, &self.settings, now);
                Some(control(hello))
            }
            Inner::Up(up) => {
                let session = up.half;
                let (lane, frame) = up.next(&self.settings, now)?;
                Some(Transmit {
                    lane: lane.unwrap_or(Lane::Control),
                    frame,
                    messages_of: lane.map(|lane| (session, lane)),
                })
            }
        }
    }

    fn expire(&mut self, now: Instant) {
        match &mut self.inner {
            Inner::Down => {}
            Inner::Opening(opening) => {
                let at = opening.unreachable_at(&self.settings);
                if at.is_some_and(|at| now >= at) {
                    self.end(End::Unreachable, now);
                }
            }
            Inner::Up(up) => {
                if let Err((why, rival)) = up.expire(&self.settings, now) {
                    self.end_for(why, rival, now);
                }
            }
        }
    }

    /// Returns the next event, in order.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front();
        self.refusals -= usize::from(matches!(event, Some(Event::Refused(_))));
        event
    }

    /// Returns when [`poll_frame`](Self::poll_frame) has something to do next. At once, if frames
    /// have not been polled; never without a session.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        if !self.replies.is_empty() {
            return Some(Instant::from_nanos(0));
        }
        match &self.inner {
            Inner::Down => None,
            Inner::Opening(opening) => {
                let unreachable = opening.unreachable_at(&self.settings);
                Some(unreachable.map_or(opening.hello_at, |at| at.min(opening.hello_at)))
            }
            Inner::Up(up) => up.deadline(&self.settings),
        }
    }

    /// Returns whether nothing waits to be sent or told now, and a further message would change
    /// neither this nor [`deadline`](Self::deadline).
    pub(crate) fn only_waits(&self) -> bool {
        let is_told = self.replies.is_empty() && self.events.is_empty();
        match &self.inner {
            Inner::Up(up) => is_told && up.only_waits(&self.settings),
            Inner::Down | Inner::Opening(_) => false,
        }
    }

    /// Returns the own half of the session, unless the session is down.
    #[must_use]
    pub fn session(&self) -> Option<Half> {
        match &self.inner {
            Inner::Down => None,
            Inner::Opening(opening) => Some(opening.half),
            Inner::Up(up) => Some(up.half),
        }
    }

    /// Returns whether the peer has ever said Hello.
    #[must_use]
    pub fn has_heard(&self) -> bool {
        self.newest.is_some()
    }

    /// Returns whether the peer has answered.
    #[must_use]
    pub fn is_up(&self) -> bool {
        matches!(self.inner, Inner::Up(_))
    }

    /// Returns whether all accepted messages are acknowledged.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        let lanes = self.lanes();
        lanes.is_none_or(|lanes| lanes.iter().all(|lane| !lane.has_messages()))
    }

    /// Returns the number of bytes in the queue of a lane.
    #[must_use]
    pub fn queued(&self, lane: Lane) -> usize {
        (self.lanes()).map_or(0, |lanes| lanes[lane.index()].queued())
    }

    fn lanes(&self) -> Option<&[Outgoing; 2]> {
        Some(match &self.inner {
            Inner::Down => return None,
            Inner::Opening(opening) => &opening.out,
            Inner::Up(up) => &up.out,
        })
    }

    /// Returns the figures for observers.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let lanes = self.lanes();
        let (state, round_trip) = match &self.inner {
            Inner::Down => (State::Down, None),
            Inner::Opening(_) => (State::Opening, None),
            Inner::Up(up) => (State::Up, up.round_trip.smoothed()),
        };
        let of =
            |figure: fn(&Outgoing) -> usize| lanes.map_or([0; 2], |it| it.each_ref().map(figure));
        let in_all = |figure: fn(&Outgoing) -> u64, before: [u64; 2]| {
            [0, 1].map(|lane| before[lane] + lanes.map_or(0, |it| figure(&it[lane])))
        };
        Stats {
            state,
            session: self.session(),
            round_trip,
            queued: of(Outgoing::queued),
            unacknowledged: of(Outgoing::unacked),
            frames: in_all(Outgoing::frames, self.frames),
            resent: in_all(Outgoing::resent, self.resent),
        }
    }
}

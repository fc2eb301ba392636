//! A peer: its session, and all that waits for it, behind a lock.
//!
//! **Problem.** Many threads send to a peer, and each should encode its own messages and hand its
//! frame to the engine, without a hop to another thread. The session ends at any moment, and then
//! each thing that waits for the peer has to be told once.
//!
//! **Protocol.**
//! 1. A *sender* locks the peer, puts its message into the session, and hands the frames that may
//!    leave to the engine. Values of types with codecs have been encoded before, without the lock.
//! 2. The *engine* never takes this lock: its calls put frames and hints into the inbox, and wake
//!    the link (`link.rs`).
//! 3. The *link*, a process, takes the inbox, handles what has happened, and is woken by a timer
//!    for the session's deadline. A sender wakes it only when the deadline comes sooner than
//!    before.
//! 4. Whichever thread finds that the session has ended empties all tables under the same lock, and
//!    leaves them to the link, which tells. So what is in a table belongs to the session that is.
//!
//! **Proof sketch.** A request enters its table and the session under the lock, so its answer finds
//! it. After an end its entry is with the link, and nothing else has it: told once.

use super::base::Base;
use super::inbox::{Inbox, Told};
use super::past::Past;
use super::places::Places;
use super::requests::{Request, op};
use super::streams::{Next, Streams};
use super::tables::{Asking, Left, Tables};
use super::types::MAX_MESSAGE;
use super::waiting::{self, Waiting};
use crate::id::{Half, Incarnation, Lane, NodeId};
use crate::session::{End, Event, Refusal, SendError, Session};
use crate::wire::{Apart, HEADER, Messages, ReadError, Writer};
use ganger_proc_api::Instant;
use ganger_sync::sync::{Mutex, lock};
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::time::Duration;

/// Large messages put no more chunks into the queue of a lane that is longer than this.
pub(super) const FEED: usize = 128 << 10;

/// The longest chunk.
const MAX_CHUNK: usize = 32 << 10;

/// The fields of a chunk before its bytes, and the length and the kind of its message.
const CHUNK_HEAD: usize = 32;

/// The time after which the next waiting sender is woken, though the last has not sent.
const WAITING: Duration = Duration::from_millis(5);

/// Something for the link to handle, in order.
pub(crate) enum Happened {
    Up(Half, Incarnation),
    Received(Half, Lane, Messages),
    Ended(Box<Over>),
    Refused(Refusal),
}

/// An ended session, and all that waited for it.
pub(crate) struct Over {
    pub(crate) why: End,
    /// How many messages and requests were not acknowledged, or not sent.
    pub(crate) undelivered: u64,
    pub(crate) left: Left,
}

pub(crate) struct Peer {
    pub(crate) base: Arc<Base>,
    pub(crate) id: NodeId,
    pub(crate) places: Places,
    pub(crate) asking: Arc<Asking>,
    inbox: Mutex<Inbox>,
    state: Mutex<State>,
    /// Of the link.
    waker: OnceLock<Waker>,
    /// Set at the end of the link.
    gone: OnceLock<()>,
}

pub(crate) struct State {
    session: Session,
    pub(crate) tables: Tables,
    pub(super) streams: [Streams; 2],
    /// Requests that had no room in the session's queue. They are never refused, and each belongs
    /// to an entry of a table, or to a call.
    pub(super) owed: [VecDeque<Request>; 2],
    /// Bytes of the values inside.
    owed_bytes: usize,
    pub(super) waiting: Waiting,
    happened: VecDeque<Happened>,
    past: Past,
    /// When the link's timer fires.
    armed: Option<Instant>,
    pumped_at: Instant,
    /// Why messages are refused: the node leaves, or the link is gone.
    is_closed: bool,
    /// The peer has been told that this node leaves.
    has_left: bool,
    chunk: usize,
    pub(super) queue: usize,
}

/// The acts of a thread after it has released the lock.
#[must_use]
pub(crate) struct Then {
    wakes_link: bool,
    waker: Option<Waker>,
}

impl Peer {
    pub(crate) fn new(base: Arc<Base>, id: NodeId, places: Places) -> Self {
        let mut settings = base.settings.clone();
        settings.frame = settings.frame.min(base.engine.max_frame());
        let chunk = settings.frame.saturating_sub(HEADER + CHUNK_HEAD);
        let queue = settings.queue;
        let halves = Arc::clone(&base.halves);
        let session = Session::new(base.identity.clone(), halves, id.clone(), settings);
        let state = State {
            session,
            tables: Tables::default(),
            streams: Default::default(),
            owed: Default::default(),
            owed_bytes: 0,
            waiting: Waiting::default(),
            happened: VecDeque::new(),
            past: Past::default(),
            armed: None,
            pumped_at: Base::now(),
            is_closed: false,
            has_left: false,
            chunk: chunk.clamp(1, MAX_CHUNK),
            queue,
        };
        Self {
            base,
            id,
            places,
            asking: Arc::default(),
            inbox: Mutex::default(),
            state: Mutex::new(state),
            waker: OnceLock::new(),
            gone: OnceLock::new(),
        }
    }

    /// Sets the waker of the link.
    pub(crate) fn driven_by(&self, waker: Waker) {
        let _first = self.waker.set(waker);
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }

    /// Takes a call of the engine.
    pub(crate) fn told(&self, told: Told) {
        let is_kept = lock(&self.inbox).put(told);
        if is_kept {
            self.wake();
        }
    }

    /// Notes a change of the directory.
    pub(crate) fn has_listings(&self) {
        lock(&self.inbox).has_listings = true;
        self.wake();
    }

    /// Changes the state, and sends the frames that may leave then.
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut State, Instant) -> R) -> R {
        let mut state = lock(&self.state);
        let now = Base::now();
        let result = change(&mut state, now);
        let then = state.pump(self, now);
        drop(state);
        self.after(then);
        result
    }

    /// Changes the state as [`with`](Self::with) does, for a message, which may have to wait behind
    /// frames in flight: then nothing else changes.
    pub(crate) fn put<R>(&self, put: impl FnOnce(&mut State, Instant) -> R) -> R {
        let mut state = lock(&self.state);
        // An open session takes messages without a look at the clock.
        let is_up = state.session.is_up();
        let now = if is_up { state.pumped_at } else { Base::now() };
        let result = put(&mut state, now);
        if state.only_waits() {
            return result;
        }
        let then = state.pump(self, Base::now());
        drop(state);
        self.after(then);
        result
    }

    fn after(&self, then: Then) {
        if then.wakes_link {
            self.wake();
        }
        if let Some(waker) = then.waker {
            waker.wake();
        }
    }

    /// Looks at the state, and changes nothing of the session.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&mut State) -> R) -> R {
        look(&mut lock(&self.state))
    }

    /// Sends a request. False: the peer is closed.
    pub(crate) fn request(&self, request: Request) -> bool {
        self.with(|state, now| {
            let is_open = !state.is_closed;
            if is_open {
                state.request(request, self.places, now);
            }
            is_open
        })
    }

    /// Sends a request as [`request`](Self::request) does, if the session still has this half.
    pub(crate) fn answer(&self, half: Half, request: Request) {
        self.with(|state, now| {
            if state.session.session() == Some(half) {
                state.request(request, self.places, now);
            }
        });
    }

    /// Calls the waker when a message may be taken.
    pub(crate) fn room(&self, waker: Waker) {
        let wanted = waiting::wanted();
        let mut state = lock(&self.state);
        let has_room = state.has_room_beside(wanted);
        if state.is_closed || has_room && state.tables.may_ask(1) {
            drop(state);
            return waker.wake();
        }
        let same = state.waiting.push(waker, wanted);
        drop(state);
        drop(same);
        // There is room for messages, and none for questions: the link wakes the sender later.
        if has_room {
            self.wake();
        }
    }

    /// Returns whether the directory has changed since the last call.
    pub(crate) fn take_listings(&self) -> bool {
        std::mem::take(&mut lock(&self.inbox).has_listings)
    }

    /// Takes a part of the inbox, and what has happened. True: more is there.
    pub(crate) fn turn(&self, most: usize) -> (VecDeque<Happened>, bool) {
        let mut inbox = lock(&self.inbox);
        let taken = most.min(inbox.told.len());
        let told: Vec<_> = inbox.told.drain(..taken).collect();
        let frames = told.iter().filter_map(|it| match it {
            Told::Frame(frame) => Some(frame.len()),
            _ => None,
        });
        inbox.bytes -= frames.sum::<usize>();
        let has_more = !inbox.told.is_empty();
        drop(inbox);
        let mut state = lock(&self.state);
        let now = Base::now();
        for told in told {
            match told {
                Told::Frame(frame) => state.session.handle(&frame, now),
                Told::Appeared => state.session.appeared(now),
                Told::Vanished => state.session.vanished(now),
                Told::Writable => state.session.writable(),
            }
            state.collect();
        }
        (std::mem::take(&mut state.happened), has_more)
    }

    /// Gives credit back, sends, and returns when the link has to look again.
    pub(crate) fn settle(&self, consumed: &[(Half, usize)]) -> Option<Instant> {
        let mut state = lock(&self.state);
        let now = Base::now();
        for (half, cost) in consumed {
            state.session.consumed(*half, *cost);
        }
        let then = state.pump(self, now);
        let at = state.session.deadline();
        state.armed = at;
        let has_news = !state.happened.is_empty();
        let has_waiting = state.waiting.has(|wanted| state.has_room_beside(wanted));
        drop(state);
        if let Some(waker) = then.waker {
            waker.wake();
        }
        if has_news {
            return Some(now);
        }
        // A woken sender may have gone, and then wakes no other.
        let again = has_waiting.then(|| now + WAITING);
        at.into_iter().chain(again).min()
    }

    /// Ends the session, because a message of it can't be read.
    pub(crate) fn fail(&self, half: Half, why: ReadError) {
        self.with(|state, now| state.session.fail(half, why, now));
    }

    /// Renews the session, as the peer knows a later run of this node.
    pub(crate) fn renew(&self) {
        self.with(|state, now| state.session.renew(now));
    }

    /// Asks for a session.
    pub(crate) fn open(&self) {
        self.with(|state, now| state.session.open(now));
    }

    /// Refuses messages from now on.
    pub(crate) fn close_for_senders(&self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.wake_all();
    }

    /// Closes a peer without an answer so far, and without waiting messages. False: any other peer.
    pub(crate) fn retire(&self) -> bool {
        let mut state = lock(&self.state);
        let is_idle = !state.is_closed
            && !state.session.has_heard()
            && state.has_sent_all()
            && state.tables.is_empty()
            && state.waiting.is_empty();
        state.is_closed |= is_idle;
        drop(state);
        if is_idle {
            self.close();
        }
        is_idle
    }

    /// Ends the session with a farewell.
    pub(crate) fn close(&self) {
        self.close_for_senders();
        self.with(|state, now| {
            state.session.close(now);
            state.has_left = true;
        });
        self.wake();
    }

    /// Returns whether the peer is closed, and has been told.
    pub(crate) fn is_over(&self) -> bool {
        let state = lock(&self.state);
        state.has_left && state.happened.is_empty()
    }

    /// Notes the end of the link. Returns the entries that wait for the peer.
    pub(crate) fn abandon(&self) -> Left {
        let _first = self.gone.set(());
        if !self.is_over() {
            self.close();
        }
        lock(&self.state).tables.take_all()
    }

    /// Returns whether the link has ended. Another peer of the name may take its place.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.get().is_some()
    }

    /// Returns whether all accepted messages are known to have arrived.
    pub(crate) fn is_flushed(&self) -> bool {
        lock(&self.state).has_sent_all()
    }
}

impl State {
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns the number of entries of all tables, and of messages beside the session.
    pub(crate) fn open_entries(&self) -> usize {
        let large = self.streams.iter().map(Streams::len).sum::<usize>();
        let owed = self.owed.iter().map(VecDeque::len).sum::<usize>();
        self.tables.len() + large + owed
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    pub(super) fn past(&self) -> Past {
        self.past
    }

    /// Returns whether a user's message may be taken. On the control lane half of the queue is for
    /// requests.
    pub(super) fn has_room(&self, lane: Lane) -> bool {
        let most = match lane {
            Lane::Control => self.queue / 2,
            Lane::Data => self.queue,
        };
        self.session.queued(lane) < most && self.streams[lane.index()].held() < MAX_MESSAGE
    }

    fn has_sent_all(&self) -> bool {
        let is_empty =
            self.streams.iter().all(Streams::is_empty) && self.owed.iter().all(VecDeque::is_empty);
        is_empty && self.session.is_flushed()
    }

    /// Returns whether an answer, or the start of a process, of this length may wait.
    pub(crate) fn has_room_for(&self, length: usize) -> bool {
        let held = self.streams[Lane::Control.index()].held() + self.owed_bytes;
        held == 0 || held + length <= MAX_MESSAGE
    }

    /// Puts a message into the session, and opens a missing session.
    pub(super) fn put(
        &mut self,
        lane: Lane,
        op: u8,
        now: Instant,
        write: impl Fn(&mut Writer<'_>),
    ) -> Result<(), SendError> {
        self.session.open(now);
        self.session.send(lane, op, now, write).map(|_| ())
    }

    pub(crate) fn request(&mut self, request: Request, places: Places, now: Instant) {
        let lane = request.lane();
        if !self.owed[lane.index()].is_empty() {
            self.owed_bytes += request.length();
            return self.owed[lane.index()].push_back(request);
        }
        self.try_request(request, places, now);
    }

    fn try_request(&mut self, request: Request, places: Places, now: Instant) -> bool {
        let lane = request.lane();
        // A notice in order is behind all messages of its process, also behind large ones.
        let of = match &request {
            Request::Exit {
                in_order: true, of, ..
            } => *of,
            _ => None,
        };
        let streams = &self.streams[lane.index()];
        let behind = [of, None].into_iter().find(|key| streams.has(*key));
        let sent = if behind.is_some() {
            let (needs, most) = (0, 0);
            Err(SendError::TooLarge { needs, most })
        } else {
            let write = |writer: &mut Writer<'_>| request.write(writer, places);
            self.put(lane, request.op(), now, write)
        };
        match sent {
            Ok(()) => true,
            Err(SendError::TooLarge { .. }) => {
                let mut apart = Apart::default();
                request.write(&mut apart, places);
                let key = behind.unwrap_or(of);
                self.streams[lane.index()].push(key, request.op(), apart.finish());
                true
            }
            Err(_) => {
                self.owed_bytes += request.length();
                self.owed[lane.index()].push_front(request);
                false
            }
        }
    }

    /// Moves waiting requests and chunks into the queue of the session.
    fn feed(&mut self, places: Places, now: Instant) {
        // Chunks and requests of an ended session are not of the next.
        self.collect();
        for lane in Lane::ALL {
            while let Some(request) = self.owed[lane.index()].pop_front() {
                self.owed_bytes -= request.length();
                if !self.try_request(request, places, now) {
                    break;
                }
            }
            // A session whose queue is full would refuse what the stream has given.
            while self.session.queued(lane) < FEED.min(self.queue) {
                let Some(next) = self.streams[lane.index()].next(self.chunk) else {
                    break;
                };
                let sent = match &next {
                    Next::Whole(op, bytes) => self.put(lane, *op, now, |writer| writer.raw(bytes)),
                    Next::Chunk {
                        stream,
                        flags,
                        total,
                        bytes,
                    } => {
                        let (stream, flags, total) = Next::head(*stream, *flags, *total);
                        self.put(lane, op::CHUNK, now, |writer| {
                            writer.varint(stream);
                            writer.u8(flags);
                            if let Some(total) = total {
                                writer.varint(total);
                            }
                            writer.raw(bytes);
                        })
                    }
                };
                debug_assert!(sent.is_ok(), "a chunk fits a queue with room: {sent:?}");
            }
        }
    }

    /// Returns whether a new message in the session's queue only waits. The message neither leaves
    /// nor changes the deadline, for which the link has a timer; and no sender waits for its turn.
    fn only_waits(&self) -> bool {
        self.armed.is_some()
            && self.waiting.is_empty()
            && self.happened.is_empty()
            && self.owed.iter().all(VecDeque::is_empty)
            && self.streams.iter().all(Streams::is_empty)
            && self.session.only_waits()
    }

    /// Hands frames to the engine, as long as some may leave.
    fn pump(&mut self, peer: &Peer, now: Instant) -> Then {
        self.pumped_at = now;
        self.feed(peer.places, now);
        while let Some(transmit) = self.session.poll_frame(now) {
            let frame = transmit.frame.clone();
            if !peer.base.engine.send(&peer.id, transmit.lane, frame) {
                self.session.put_back(&transmit, now);
            }
            self.feed(peer.places, now);
        }
        self.collect();
        let deadline = self.session.deadline();
        let is_sooner = match (deadline, self.armed) {
            (Some(at), Some(armed)) => at < armed,
            (at, None) => at.is_some(),
            (None, _) => false,
        };
        let wakes_link = !self.happened.is_empty() || is_sooner;
        if wakes_link {
            // The link looks at the deadline anyway.
            self.armed = Some(Instant::from_nanos(0));
        }
        let waker = match self.waiting.is_empty() {
            true => None,
            false => self.next_waiting(),
        };
        Then { wakes_link, waker }
    }

    /// Takes the events of the session. Tables are of the session that is: at an end they go to the
    /// link.
    fn collect(&mut self) {
        while let Some(event) = self.session.poll_event() {
            let happened = match event {
                Event::Up { session, peer } => Happened::Up(session, peer),
                Event::Received {
                    session,
                    lane,
                    messages,
                } => Happened::Received(session, lane, messages),
                Event::Ended {
                    why, undelivered, ..
                } => {
                    let owed = self.owed.iter().map(VecDeque::len).sum::<usize>();
                    let large = self.streams.iter().map(Streams::len).sum::<usize>();
                    let unsent = undelivered.unsent.iter();
                    let unsent = unsent.map(|(_, messages)| messages.len()).sum::<usize>();
                    let unsent = (owed + large + unsent) as u64;
                    let undelivered = undelivered.unacknowledged + unsent;
                    self.past.ended += 1;
                    self.past.last_end = Some(why);
                    self.past.undelivered += undelivered;
                    self.owed = Default::default();
                    self.owed_bytes = 0;
                    self.streams = Default::default();
                    Happened::Ended(Box::new(Over {
                        why,
                        undelivered,
                        left: self.tables.take_all(),
                    }))
                }
                Event::Refused(why) => Happened::Refused(why),
            };
            self.happened.push_back(happened);
        }
    }
}

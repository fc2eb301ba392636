//! The link to a peer: a process that reads what the peer sends, and keeps the session's time.
//!
//! Senders do without it (`peer.rs`). A stop of the scheduler leaves it alone until what it carries
//! has gone: the node's own process (`warden.rs`) closes it.

mod ends;
mod groups;

use super::base::Base;
use super::calls::{self, Answering, Inside, contained};
use super::listed::Listed;
use super::multi;
use super::parked::{Cost, Parked};
use super::peer::{Happened, Over, Peer};
use super::refusals::Refusals;
use super::requests::{Request, op};
use super::served;
use super::starts;
use super::streams::Assembly;
use super::traces;
use super::types::MAX_MESSAGE;
use super::unknown::Unknown;
use super::values::Decoder;
use super::watch;
use crate::id::{Half, Lane};
use crate::session::{End, Refusal};
use crate::wire::{Known, Message, Messages, ReadError, Reader};
use bytes::Bytes;
use ends::{tell_exit, unanswered};
use ganger_link::RemoteLinks as _;
use ganger_proc_api::{
    BoxError, CommandError, Context, Envelope, Event, Events, ExitCause, Instant, Payloads, Pid,
    Process, SendError, SendErrorKind, StepOutput, StepResult, Tag,
};
use ganger_sched::crossing;
use ganger_sched::internal::{AddressInternals as _, ContextInternals as _};
use ganger_sched::{DeadLetter, DeadReason, ExitAction, Handle, RemoteLink};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

const TIMER: Tag = 1;

/// The most calls of the engine that a step handles.
const PORTION: usize = 64;

/// The most notices of a step.
const NOTICES: usize = 1024;

/// A lane's state at its receiver, for as long as the session lasts.
#[derive(Default)]
struct Incoming {
    known: Known,
    large: Assembly,
}

/// Notices to be told, a portion in a step.
enum Notice {
    Exit(Pid, Box<dyn ExitAction>),
    Link(RemoteLink),
    /// A process with entries of the peer's directory. Before the others.
    Unlisted(Pid),
    /// Behind the others.
    Down(End, u64),
}

pub(crate) struct Link {
    peer: Arc<Peer>,
    decoder: Decoder,
    incoming: [Incoming; 2],
    parked: Parked,
    /// Of the present session.
    answering: Option<Arc<Answering>>,
    /// The session that is told of entries of the directory.
    listens: Option<Half>,
    /// The peer may not have been told of all.
    has_listings: bool,
    listed: Listed,
    happened: VecDeque<Happened>,
    notices: VecDeque<Notice>,
    refusals: Refusals,
    /// When the timer fires.
    armed: Option<Instant>,
    waker: Option<Waker>,
    consumed: Vec<(Half, usize)>,
    /// The credit of chunks, while too many large messages wait.
    withheld: Vec<Cost>,
    unknown: Unknown,
    /// The session that an unreadable message has ended.
    failed: Option<Half>,
}

impl Link {
    pub(crate) fn new(peer: Arc<Peer>) -> Self {
        let decoder = Decoder::new(peer.places);
        Self {
            peer,
            decoder,
            incoming: Default::default(),
            parked: Parked::default(),
            answering: None,
            listens: None,
            has_listings: false,
            listed: Listed::default(),
            happened: VecDeque::new(),
            notices: VecDeque::new(),
            refusals: Refusals::default(),
            armed: None,
            waker: None,
            consumed: Vec::new(),
            withheld: Vec::new(),
            unknown: Unknown::default(),
            failed: None,
        }
    }

    /// Handles the engine's calls. True: more is there.
    fn run(&mut self, scheduler: &Handle) -> bool {
        self.deliver_parked(scheduler);
        let (happened, has_more) = self.peer.turn(PORTION);
        self.happened.extend(happened);
        let mut told = 0;
        loop {
            while told < NOTICES
                && let Some(notice) = self.notices.pop_front()
            {
                self.tell(scheduler, notice);
                told += 1;
            }
            // All notices of an end come before what is after it.
            if !self.notices.is_empty() {
                return true;
            }
            let Some(happened) = self.happened.pop_front() else {
                return has_more;
            };
            self.handle(scheduler, happened);
        }
    }

    fn handle(&mut self, scheduler: &Handle, happened: Happened) {
        match happened {
            Happened::Up(half, incarnation) => {
                self.incoming = Default::default();
                self.peer.base.directory.begin(half);
                self.listens = Some(half);
                self.has_listings = true;
                self.peer.base.watchers.up(&self.peer.id, incarnation);
            }
            Happened::Received(half, lane, messages) => {
                self.receive(scheduler, half, lane, messages);
            }
            Happened::Ended(over) => self.ended(scheduler, *over),
            Happened::Refused(why) => {
                if let Some(left_out) = self.refusals.due(&why, Base::now()) {
                    let (node, peer) = (self.peer.places.own, &self.peer.id);
                    tracing::warn!(target: "ganger::cluster", %node, %peer, left_out, "{why}");
                }
                if let Refusal::Outdated(newest) = why
                    && self.peer.base.halves.rise_above(newest)
                {
                    self.peer.renew();
                }
            }
        }
    }

    fn ended(&mut self, scheduler: &Handle, over: Over) {
        self.incoming = Default::default();
        watch::forget(&self.peer, scheduler, over.left.watched);
        self.unlisten();
        let listed = self.listed.processes().into_iter();
        self.notices.extend(listed.map(Notice::Unlisted));
        let exits = over.left.watches.into_iter();
        self.notices
            .extend(exits.map(|(pid, action)| Notice::Exit(pid, action)));
        self.notices
            .extend(over.left.links.into_iter().map(Notice::Link));
        unanswered(over.left.names, over.left.spawns, over.left.open);
        self.notices
            .push_back(Notice::Down(over.why, over.undelivered));
    }

    fn tell(&mut self, scheduler: &Handle, notice: Notice) {
        match notice {
            Notice::Unlisted(pid) => self.unlist(scheduler, pid),
            Notice::Exit(pid, action) => tell_exit(pid, action, &ExitCause::NoConnection),
            Notice::Link(link) => scheduler.signal_arrived(link, ExitCause::NoConnection),
            Notice::Down(why, undelivered) => {
                self.peer
                    .base
                    .watchers
                    .down(&self.peer.id, why, undelivered);
            }
        }
    }

    fn receive(&mut self, scheduler: &Handle, half: Half, lane: Lane, messages: Messages) {
        if self.failed == Some(half) {
            return;
        }
        let answering = match self.answering.take() {
            Some(answering) if answering.half() == half => answering,
            _ => Answering::new(&self.peer, half),
        };
        self.answering = Some(Arc::clone(&answering));
        for Message { op, body, cost } in messages {
            let cost = Cost::Credit(half, cost);
            // The credit of a chunk comes back before its message is whole, which needs it.
            if op == op::CHUNK && self.parked.large() > MAX_MESSAGE {
                self.withheld.push(cost);
            } else if op != op::MESSAGE {
                self.give_back(lane, cost);
            }
            if let Err(why) = self.read(scheduler, (&answering, lane), op, body, cost) {
                self.failed = Some(half);
                self.peer.fail(half, why);
                return;
            }
        }
    }

    fn give_back(&mut self, lane: Lane, cost: Cost) {
        if let (Lane::Data, Cost::Credit(half, cost)) = (lane, cost) {
            match self.consumed.last_mut() {
                Some((last, sum)) if *last == half => *sum += cost,
                _ => self.consumed.push((half, cost)),
            }
        }
    }

    fn read(
        &mut self,
        scheduler: &Handle,
        (answering, lane): (&Arc<Answering>, Lane),
        op: u8,
        body: Bytes,
        cost: Cost,
    ) -> Result<(), ReadError> {
        let half = answering.half();
        let incoming = &mut self.incoming[lane.index()];
        let mut reader = Reader::new(body);
        match op {
            op::MESSAGE => {
                let types = &self.peer.base.types;
                let (decoder, known) = (&mut self.decoder, &mut incoming.known);
                let context = || Arc::clone(answering) as _;
                let within = &|it: &dyn Fn() -> _| crossing::decode(scheduler, context(), it);
                let (envelope, said) = decoder.message(&mut reader, known, types, within)?;
                let replies = (answering, answering.settle(said));
                let message = (envelope, cost, replies);
                let Some(trace) = traces::read(&mut reader)? else {
                    self.deliver(scheduler, lane, message);
                    return Ok(());
                };
                let base = Arc::clone(&self.peer.base);
                traces::within(base.traces.as_deref(), Some(trace), || {
                    self.deliver(scheduler, lane, message);
                });
            }
            op::MULTI => {
                let (targets, message) = multi::read(&self.decoder, reader)?;
                self.deliver_all(scheduler, half, targets, &message)?;
            }
            op::CHUNK => {
                if let Some((op, whole)) = incoming.large.take(reader, 2 * MAX_MESSAGE)? {
                    if op == op::CHUNK {
                        return Err(ReadError::Short);
                    }
                    let cost = Cost::Large(whole.len());
                    // Its texts are inline, so a table of its own will do.
                    self.read(scheduler, (answering, lane), op, whole, cost)?;
                }
            }
            op::CALL => {
                let (peer, decoder) = (&self.peer, &self.decoder);
                served::serve(peer, scheduler, (half, decoder), reader)?;
            }
            _ => {
                let (known, places) = (&mut incoming.known, self.peer.places);
                let request = Request::read(op, lane, &mut reader, known, places)?;
                self.serve(scheduler, half, request)?;
            }
        }
        Ok(())
    }

    /// Passes a message to its process. A message for a full mailbox waits.
    fn deliver(
        &mut self,
        scheduler: &Handle,
        lane: Lane,
        (envelope, cost, (answering, replies)): (Envelope, Cost, (&Arc<Answering>, Vec<u64>)),
    ) {
        let inside = |replies| (Arc::clone(answering), replies);
        if lane == Lane::Control {
            let send = |envelope| scheduler.send_control(envelope);
            if let Err(refused) = offer(scheduler, envelope, send) {
                self.refuse(scheduler, refused, &inside(replies));
            }
            return;
        }
        let is_behind = self.parked.has(envelope.target);
        let sent = if is_behind {
            Err(SendError::new(SendErrorKind::Full, envelope))
        } else {
            offer(scheduler, envelope, |envelope| scheduler.send(envelope))
        };
        match sent {
            Err(refused) if refused.kind == SendErrorKind::Full => {
                if let Some(waker) = &self.waker {
                    let waiting = (refused.into_envelope(), cost, inside(replies));
                    self.parked.push(scheduler, waker, waiting);
                }
            }
            sent => {
                self.give_back(lane, cost);
                if let Err(refused) = sent {
                    self.refuse(scheduler, refused, &inside(replies));
                }
            }
        }
    }

    fn deliver_parked(&mut self, scheduler: &Handle) {
        let mut done = Vec::new();
        self.parked.poll(scheduler, |cost, replies, result| {
            done.push((cost, replies, result));
        });
        if self.parked.large() <= MAX_MESSAGE {
            for cost in std::mem::take(&mut self.withheld) {
                self.give_back(Lane::Data, cost);
            }
        }
        for (cost, replies, result) in done {
            self.give_back(Lane::Data, cost);
            if let Err(refused) = result {
                self.refuse(scheduler, refused, &replies);
            }
        }
        for (number, cause) in self.parked.exits() {
            self.exited(scheduler, number, &cause);
        }
    }

    /// Refuses a message that has come for a process that does not take it, or takes it in another
    /// type.
    fn refuse(&mut self, scheduler: &Handle, refused: SendError, (of, numbers): &Inside) {
        // Of the session of the message, which may have waited for room since.
        of.refuse(numbers, &refused.kind);
        let reason = DeadReason::of_late(&refused.kind);
        let is_of_other_type = matches!(refused.kind, SendErrorKind::WrongType { .. });
        let Envelope { target, message } = refused.into_envelope();
        if is_of_other_type {
            self.unknown.tell(self.peer.id.as_str(), &message.payloads);
        }
        let at = scheduler.now();
        let letter = DeadLetter::new(reason, message.source, target, message.topic, at);
        scheduler.tell_of_dead_letter(&letter);
        contained("the destructor of a message", || drop(message));
    }

    /// Carries out a request of the peer.
    fn serve(&mut self, scheduler: &Handle, half: Half, request: Request) -> Result<(), ReadError> {
        match request {
            Request::Monitor {
                number,
                pid,
                in_order,
            } => watch::begin(&self.peer, scheduler, half, (number, pid, in_order))?,
            Request::Demonitor { number } => watch::end(&self.peer, scheduler, number),
            Request::Exit {
                number,
                cause,
                in_order,
                ..
            } => {
                let watcher = || (self.peer).look(|state| state.tables.watches.watcher(number));
                let exit = match in_order.then(watcher).flatten() {
                    Some(watcher) => self.parked.push_exit(watcher, (number, cause)),
                    None => Some((number, cause)),
                };
                if let Some((number, cause)) = exit {
                    self.exited(scheduler, number, &cause);
                }
            }
            Request::Listed(listing) => {
                let (peer, node) = (&self.peer, self.peer.places.peer);
                self.listed.take(&peer.base, scheduler, node, listing)?;
            }
            Request::Link(link) => {
                let is_current = self.peer.look(|state| {
                    let is_current = state.session().session() == Some(half);
                    if is_current {
                        state.tables.links.insert(link);
                    }
                    is_current
                });
                if is_current {
                    scheduler.link_arrived(link);
                }
            }
            Request::Unlink(link) => {
                self.peer.look(|state| state.tables.links.remove(&link));
                scheduler.unlink_arrived(link);
            }
            Request::Signal(link, cause) => {
                self.peer.look(|state| state.tables.links.remove(&link));
                self.unlist(scheduler, link.peer);
                scheduler.signal_arrived(link, cause);
            }
            Request::ExitSignal {
                target,
                from,
                cause,
            } => {
                let _gone = scheduler.exit_arrived(target, from, cause);
            }
            Request::Cancel(pid, reason) if scheduler.is_local(pid) => {
                let _gone = scheduler.cancel(pid, reason);
            }
            Request::Terminate(pid) if scheduler.is_local(pid) => {
                let _gone = scheduler.terminate(pid);
            }
            Request::Cancel(..) | Request::Terminate(_) => {}
            Request::Whereis { number, name } => {
                let pid = scheduler
                    .whereis(&name)
                    .filter(|pid| scheduler.is_local(*pid));
                self.peer.answer(half, Request::Found { number, pid });
            }
            Request::Answer { number, body } => self.answer(scheduler, half, number, body)?,
            Request::Unwanted { number } => calls::unwanted(&self.peer, half, number),
            Request::Spawn {
                number,
                watch,
                body,
            } => {
                let answering = Answering::new(&self.peer, half);
                let (peer, decoder) = (&self.peer, &self.decoder);
                let spawn = (number, watch, body);
                let context = Arc::clone(&answering);
                let start = || starts::start(peer, scheduler, (&answering, decoder), spawn);
                crossing::decode(scheduler, context, start)?;
            }
            Request::Spawned { number, result } => {
                starts::answered(&self.peer, scheduler, number, result);
            }
            Request::Found { number, pid } => {
                let question = self.peer.look(|state| state.tables.names.remove(number));
                if let Some(question) = question {
                    contained("an asker", || question.complete(pid));
                }
            }
        }
        Ok(())
    }

    /// Hands the answer to a question on, which has come.
    fn answer(
        &mut self,
        scheduler: &Handle,
        half: Half,
        number: u64,
        body: Bytes,
    ) -> Result<(), ReadError> {
        let asked = (self.peer).look(|state| state.tables.open.asked.remove(&number));
        let context = Answering::new(&self.peer, half);
        let (decoder, types) = (&self.decoder, &self.peer.base.types);
        let read = || calls::read(decoder, types, body);
        // An answer without an asker may have replies inside as well, which are answered then.
        let read = crossing::decode(scheduler, Arc::clone(&context) as _, read);
        let (answer, trace, read) = match read {
            Ok((answer, replies, trace)) => {
                let _come = context.settle(replies);
                (answer, trace, Ok(()))
            }
            // The session ends.
            Err(why) => {
                let lost = Err(CommandError::Ended(ExitCause::NoConnection));
                (lost, None, Err(why))
            }
        };
        match asked {
            Some(asked) => {
                let traces = self.peer.base.traces.as_deref();
                traces::within(traces, trace, || {
                    contained("an asker", || asked.completer.finish(answer));
                });
            }
            None => {
                contained("an answer", || drop(answer));
                self.peer.answer(half, Request::Unwanted { number });
            }
        }
        read
    }

    fn arm(&mut self, at: Option<Instant>, out: &mut StepOutput) {
        let now = Base::now();
        match at {
            Some(at) if self.armed.is_none_or(|armed| at < armed) => {
                if self.armed.is_some() {
                    out.cancel(TIMER);
                }
                self.armed = Some(at);
                out.sleep(at.since(now), TIMER);
            }
            _ => {}
        }
    }
}

impl Process for Link {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        if let Some(own) = ctx.known_address::<ganger_proc_api::Message>() {
            own.leave_shutdown_to_caller();
        }
        self.waker = Some(ctx.waker());
        self.peer.driven_by(ctx.waker());
        Ok(())
    }

    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            match event {
                Event::Completion(_) => self.armed = None,
                // Only a stop's deadline ends it before it is closed.
                Event::Cancel(_) => out.defer_cancel(),
                _ => {}
            }
        }
        let Some(scheduler) = self.peer.base.scheduler.upgrade() else {
            out.done(());
            return Ok(());
        };
        let has_more = self.run(&scheduler) | self.publish();
        let at = self.peer.settle(&self.consumed);
        self.consumed.clear();
        // The peer counts the waiting messages as arrived.
        if self.peer.is_over() && !has_more && self.parked.is_empty() {
            out.done(());
        } else if has_more {
            out.yield_now();
        } else {
            self.arm(at, out);
        }
        Ok(())
    }
}

/// Nothing carries messages any more, whatever the reason. Waiters learn the end.
impl Drop for Link {
    fn drop(&mut self) {
        self.unlisten();
        let scheduler = self.peer.base.scheduler.upgrade();
        // Before another link for the peer may begin.
        for pid in self.listed.processes() {
            if let Some(scheduler) = &scheduler {
                self.unlist(scheduler, pid);
            }
        }
        let left = self.peer.abandon();
        let Some(scheduler) = scheduler else {
            return;
        };
        let (happened, _) = self.peer.turn(0);
        for happened in std::mem::take(&mut self.happened)
            .into_iter()
            .chain(happened)
        {
            if let Happened::Ended(over) = happened {
                self.ended(&scheduler, *over);
            }
        }
        let exits = left.watches.into_iter();
        self.notices
            .extend(exits.map(|(pid, action)| Notice::Exit(pid, action)));
        self.notices
            .extend(left.links.into_iter().map(Notice::Link));
        watch::forget(&self.peer, &scheduler, left.watched);
        while let Some(notice) = self.notices.pop_front() {
            self.tell(&scheduler, notice);
        }
        unanswered(left.names, left.spawns, left.open);
        self.peer.base.watchers.down(&self.peer.id, End::Closed, 0);
    }
}

/// Sends a message, if need be converted by a recipient's function.
fn offer(
    scheduler: &Handle,
    envelope: Envelope,
    send: impl Fn(Envelope) -> Result<(), SendError>,
) -> Result<(), SendError> {
    match send(envelope) {
        Err(refused) => calls::converted(scheduler, refused)?.map_or(Ok(()), send),
        sent => sent,
    }
}

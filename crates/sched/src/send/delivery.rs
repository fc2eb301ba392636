//! Delivery to a process: of messages, completions, and notices of the scheduler. And the duties of
//! the deliverer.

use crate::base::contain::{contain_and_report, discard};
use crate::config::MAX_LIMIT;
use crate::limits::room::{Given, Room};
use crate::probe::{Carry, Cause, Probe, Wakes};
use crate::process::state::Wake;
use crate::runtime::cell::ProcessCell;
use crate::runtime::cell::Task;
use crate::runtime::item;
use crate::runtime::item::{Item, seen};
use crate::runtime::token::Token;
use ganger_mpsc::{Batch, Single};
use ganger_proc_api::internal::StepsCall;
use ganger_proc_api::{CancelReason, Event, Message, SendErrorKind, UpgradeRequest};
use ganger_time::internal::Ticket;
use std::ptr;

/// The result for a message: the token if the sender has to queue the process, or the refused
/// message.
pub(crate) type Accepted = Result<Option<Token>, (SendErrorKind, Single<Item>)>;

impl ProcessCell {
    /// Puts an item in, behind its cause, without a look at the room. Returns the token if the
    /// caller has to queue the process, which lives until then. Short, and calls no user code.
    /// Inlined, because its result would go through memory.
    #[inline(always)]
    fn put(
        self: &Task,
        cause: Option<Cause>,
        item: Single<Item>,
    ) -> Result<Option<Token>, Single<Item>> {
        if let Some(cause) = cause {
            return self.put_caused(cause, item);
        }
        if self.state.unpark() {
            // SAFETY: this thread owns the run token, and has not queued the process.
            return Ok(Some(unsafe { self.put_first(item.into_batch(), 0) }));
        }
        let seen = item.item().seen().into_iter();
        (self.shared.probe).putting(self.id, &self.probe, seen.clone());
        let sent = self.shared.probe.sending(seen);
        let wake = self.state.push_single(item)?;
        self.shared.probe.accepted(self.pid(), sent);
        self.shared.probe.put_behind(&self.probe, 1);
        Ok(self.token_of(wake, Wakes::LastMoment))
    }

    /// Puts an item in, and its cause before it.
    #[cold]
    #[inline(never)]
    fn put_caused(
        self: &Task,
        cause: Cause,
        item: Single<Item>,
    ) -> Result<Option<Token>, Single<Item>> {
        let mut items = Batch::of(Item::Cause(cause));
        items.append(item.into_batch());
        self.put_batch(items, 1).map_err(|mut refused| {
            drop(refused.pop_front());
            let item = refused.pop_front();
            Single::of(item.unwrap_or_else(|| unreachable!("the mailbox gives back both")))
        })
    }

    /// Accepts a message: takes room, and puts the message in, behind its cause. The caller has
    /// checked the type.
    #[inline(always)]
    pub(crate) fn accept(self: &Task, cause: Option<Cause>, message: Single<Item>) -> Accepted {
        if !self.reserve(Room::take) {
            return Err((self.no_room(), message));
        }
        self.put(cause, message)
            .map_err(|message| (self.closed(), message))
    }

    /// Pushes an item that is neither a message nor a system event: takes no room, and queues the
    /// process.
    pub(crate) fn push(self: &Task, item: Item) -> Result<(), Item> {
        debug_assert!(!item.is_system(), "it has to be counted");
        // In its node from the beginning: a move of the item costs as much as all the rest.
        self.push_single(self.state.single(item))
            .map_err(Single::into_item)
    }

    /// Pushes an item in its node, as [`push`](Self::push) does without.
    #[inline(never)]
    pub(crate) fn push_single(self: &Task, item: Single<Item>) -> Result<(), Single<Item>> {
        let cause = self.shared.carrier().cause();
        self.put(cause, item).map(|token| self.schedule(token))
    }

    /// Accepts a message as [`accept`](Self::accept) does, and queues the process; or sends the
    /// message away. Never blocks.
    #[inline(never)]
    pub(crate) fn send(
        self: &Task,
        message: Single<Item>,
    ) -> Result<(), (SendErrorKind, Single<Item>)> {
        let cause = self.shared.carrier().cause();
        if !self.reserve(Room::take) {
            return Err((self.no_room(), message));
        }
        match self.put(cause, message) {
            Ok(token) => {
                self.schedule(token);
                Ok(())
            }
            // Nothing is left to do here, so that other sends pay nothing for this.
            Err(message) => self.refuse(message),
        }
    }

    fn schedule(&self, token: Option<Token>) {
        if let Some(token) = token {
            self.shared.schedule(token);
        }
    }

    /// Returns the token, if a push has woken the process.
    fn token_of(self: &Task, wake: Wake, wakes: Wakes) -> Option<Token> {
        (wake == Wake::Enqueue).then(|| {
            self.shared.probe.woken(self.id, &self.probe, wakes);
            // SAFETY: by `Enqueue` this thread owns the token. A process that can be woken has been
            // queued before, by its submitter, which has registered it before.
            unsafe { Token::new(self) }
        })
    }

    /// Returns a key of the process while it is in memory: its address.
    pub(crate) fn key(&self) -> u64 {
        ptr::from_ref(self).addr() as u64
    }

    /// Delivers a message, if the process takes its type. Never blocks.
    pub(crate) fn deliver(self: &Task, message: Message) -> Result<(), (SendErrorKind, Message)> {
        if let Some(kind) = self.accepts.refuses(&message) {
            return Err((kind, message));
        }
        let message = self.state.single(Item::Event(Event::Message(message)));
        self.send(message)
            .map_err(|(kind, message)| (kind, item::into_message(message.into_item())))
    }

    /// Delivers a message whose place is taken already.
    pub(crate) fn deliver_placed(self: &Task, message: Message) -> Result<(), Message> {
        self.push(Item::Event(Event::Message(message)))
            .map_err(item::into_message)
    }

    /// Delivers a message kept by a timer, of a type that the process takes. `false` if it is
    /// refused. Never blocks.
    pub(crate) fn deliver_held(self: &Task, ticket: Ticket) -> bool {
        self.reserve(Room::take) && self.push(Item::HeldByTimer(ticket)).is_ok()
    }

    /// Delivers a control message. Never blocks.
    pub(crate) fn deliver_control(
        self: &Task,
        message: Message,
    ) -> Result<(), (SendErrorKind, Message)> {
        if let Some(kind) = self.accepts.refuses(&message) {
            return Err((kind, message));
        }
        if !self.reserve(Room::take_control) {
            return Err((self.no_room(), message));
        }
        self.deliver_control_placed(message)
            .or_else(|message| self.refuse_control(message))
    }

    /// Delivers a control message, also beyond the limit. Returns the message when the process has
    /// ended.
    pub(crate) fn deliver_control_beyond(self: &Task, message: Message) -> Result<(), Message> {
        if self.reserve(|room, _| room.take_control(MAX_LIMIT)) {
            let placed = self.deliver_control_placed(message);
            placed.or_else(|message| self.refuse_control(message).map_err(|it| it.1))
        } else {
            Err(message)
        }
    }

    /// Delivers a control message whose place is taken already.
    fn deliver_control_placed(self: &Task, message: Message) -> Result<(), Message> {
        match self.push_system(Item::Event(Event::Control(Box::new(message)))) {
            Ok(()) => Ok(()),
            Err(Item::Event(Event::Control(message))) => Err(*message),
            Err(_) => unreachable!("the mailbox gives back what was pushed"),
        }
    }

    /// Tells why a message finds no room. An ended process gives no room back: "full" would invite
    /// its sender to try again.
    pub(crate) fn no_room(&self) -> SendErrorKind {
        if self.state.is_closed() {
            self.closed()
        } else {
            SendErrorKind::Full
        }
    }

    /// Tells why its mailbox is closed.
    #[cold]
    pub(crate) fn closed(&self) -> SendErrorKind {
        if self.shared.shutdown.is_halted() {
            SendErrorKind::Stopping
        } else {
            SendErrorKind::Ended(self.about.ended())
        }
    }

    /// Refines a refusal with the reason why the mailbox is closed.
    pub(crate) fn refined(&self, kind: SendErrorKind) -> SendErrorKind {
        match kind {
            SendErrorKind::Closed => self.closed(),
            kind => kind,
        }
    }

    /// Asks the process to finish; `false` when it has ended.
    pub(crate) fn cancel(self: &Task, reason: CancelReason) -> bool {
        // A process that looks at its context may end before the event comes.
        let is_alive = !self.state.is_closed();
        let is_watched = self.state.cancel();
        let _has_ended = self.push_system(Item::Event(Event::Cancel(reason)));
        self.call_back();
        if is_watched {
            self.wake_watchers();
        }
        is_alive
    }

    /// Wakes the watchers of a mark of the process.
    #[cold]
    fn wake_watchers(&self) {
        let counters = self.shared.own_counters();
        for waker in self.shared.cancel_signals.take(self.pid().id()) {
            contain_and_report("waker", self.pid(), counters, || waker.wake());
        }
    }

    /// Tells the process of the shutdown, unless it has been told.
    pub(crate) fn notify_of_shutdown(self: &Task) {
        if self.state.claim_shutdown_notice() {
            self.cancel(CancelReason::Shutdown);
        }
    }

    /// Asks for the process to be replaced; gives the request back when it has ended.
    pub(crate) fn upgrade(self: &Task, request: UpgradeRequest) -> Result<(), UpgradeRequest> {
        match self.push_system(Item::Upgrade(Box::new(request))) {
            Ok(()) => Ok(()),
            Err(Item::Upgrade(request)) => Err(*request),
            Err(_) => unreachable!("the mailbox gives back what was pushed"),
        }
    }

    /// Lets no further step start; `false` when the process has ended.
    #[cold]
    #[inline(never)]
    pub(crate) fn terminate(self: &Task) -> bool {
        let wake = self.state.terminate(Item::Nudge);
        let is_alive = wake.map(|wake| self.settle_urgent(wake)).is_some();
        if self.state.is_intervened() {
            self.release(self.shared.interventions.release(self.id));
        }
        self.call_back();
        is_alive
    }

    /// Has the process take a step, unless it has ended: see `State::wake_behind`.
    pub(crate) fn wake(self: &Task) {
        if self.state.unpark() {
            // SAFETY: this thread owns the run token. A process that can be woken is in the
            // registry.
            let token = unsafe {
                self.with_core(|core| {
                    core.must_step();
                    if let Some(cause) = self.shared.carrier().cause() {
                        core.causes().add(cause);
                    }
                });
                self.shared.probe.readied(&self.probe);
                (self.shared.probe).woken(self.id, &self.probe, Wakes::Waker);
                Token::new(self)
            };
            self.shared.schedule(token);
        } else if !self.state.is_closed() {
            let wake = self.state.wake_behind(|| {
                self.push_cause();
                self.shared.probe.put_behind(&self.probe, 1);
                Item::Wake
            });
            self.schedule(self.token_of(wake, Wakes::Waker));
        }
    }

    /// Pushes the cause of the next item, if it is known.
    #[inline(always)]
    fn push_cause(self: &Task) {
        if let Some(cause) = self.shared.carrier().cause() {
            // An ended process takes neither.
            let _has_ended = self
                .put_batch(Batch::of(Item::Cause(cause)), 1)
                .map(|token| {
                    self.schedule(token);
                });
        }
    }

    /// Wakes the marked process's step, if it waits for room.
    fn call_back(&self) {
        self.shared.rooms.waiting_steps.wake(self.pid().id());
    }

    /// Ends its state, as the owner of the run token, and closes its mailbox: see
    /// `State::complete`.
    pub(crate) fn complete(&self) -> (bool, Batch<Item>) {
        let (is_terminated, mut rest) = self.state.complete();
        if self.shared.carrier().traces() {
            rest = item::take_causes(rest, drop);
        }
        self.refuse_waiters();
        if self.state.is_attended() {
            self.leave_attendants();
        }
        (is_terminated, rest)
    }

    /// Tells the watchers of the end, and drops the requests.
    #[cold]
    #[inline(never)]
    fn leave_attendants(&self) {
        if self.state.is_watched() {
            self.wake_watchers();
        }
        if self.state.is_intervened() {
            self.shared.interventions.forget(self.id);
        }
    }

    /// Queues the process with its token out of the interventions.
    pub(crate) fn release(&self, token: Option<Token>) {
        if let Some(token) = token {
            self.state.release();
            self.shared.probe.readied(&self.probe);
            (self.shared.probe).woken(self.id, &self.probe, Wakes::System);
            self.shared.schedule(token);
        }
    }

    /// Counts messages out of the mailbox: `places` is the sum of their `room::MESSAGE` and
    /// `room::CONTROL`. The worker that runs the process calls it after each step; with 0, also
    /// before the process waits, or its step blocks.
    pub(crate) fn release_messages(self: &Task, places: u64) {
        let limit = self.limit();
        if limit.is_some_and(|limit| self.room.give(places, limit) == Given::Awaited) {
            self.serve_waiters();
        }
    }

    /// Takes places for messages: as many as are free, and at most `most`.
    pub(crate) fn reserve_up_to(&self, most: usize) -> usize {
        let limit = self.limit();
        limit.map_or(most, |limit| self.room.take_up_to(limit, most))
    }

    #[inline(always)]
    fn reserve(&self, take: fn(&Room, usize) -> bool) -> bool {
        let limit = self.limit();
        limit.is_none_or(|limit| take(&self.room, limit))
    }

    /// Pushes many items as [`push`](Self::push) does one.
    pub(crate) fn push_batch(self: &Task, items: Batch<Item>) -> Result<(), Batch<Item>> {
        let put = match self.shared.carrier().cause() {
            None => self.put_batch(items, 0),
            Some(cause) => {
                let mut caused = Batch::of(Item::Cause(cause));
                caused.append(items);
                self.put_batch(caused, 1).map_err(|mut refused| {
                    drop(refused.pop_front());
                    refused
                })
            }
        };
        put.map(|token| self.schedule(token))
    }

    /// Puts many items in as [`put`](Self::put) does one. `causes` of them are causes.
    fn put_batch(
        self: &Task,
        items: Batch<Item>,
        causes: usize,
    ) -> Result<Option<Token>, Batch<Item>> {
        if self.state.unpark() {
            // SAFETY: this thread owns the run token.
            return Ok(Some(unsafe { self.put_first(items, causes) }));
        }
        (self.shared.probe).putting(self.id, &self.probe, seen(&items));
        let (sent, count) = (
            self.shared.probe.sending(seen(&items)),
            items.len() - causes,
        );
        let wake = self.state.push_batch(items)?;
        self.shared.probe.accepted(self.pid(), sent);
        self.shared.probe.put_behind(&self.probe, count);
        Ok(self.token_of(wake, Wakes::LastMoment))
    }

    /// Puts items, of which `causes` are causes, into a waiting process. Returns its token.
    ///
    /// # Safety
    /// This thread owns the run token, and has not queued the process.
    #[inline(always)]
    unsafe fn put_first(self: &Task, items: Batch<Item>, causes: usize) -> Token {
        let sent = self.shared.probe.sending(seen(&items));
        self.shared.probe.accepted(self.pid(), sent);
        let (id, count) = (self.id, items.len() - causes);
        (self.shared.probe).put_first(id, &self.probe, count, seen(&items));
        // A waiting process has nothing pending, and later pushes come behind.
        // SAFETY: the contract of this function.
        unsafe {
            self.with_core(|core| {
                core.expect_causes(causes);
                core.pending.append(items);
            });
        }
        // SAFETY: by the contract of this function, this thread owns the token. A process that can
        // be woken has been queued before, by its submitter, which has registered it before.
        unsafe { Token::new(self) }
    }

    /// Puts the completion of a command in; drops and counts it if the process has ended.
    #[inline(never)]
    pub(crate) fn complete_behind(self: Task, answer: Single<Item>) {
        if let Err(answer) = self.push_single(answer) {
            let counters = self.shared.own_counters();
            counters.stale_completions.bump();
            self.shared.probe.answer_refused();
            discard(self.pid(), counters, answer);
        }
    }

    /// Has the call made between two steps, behind the arrived items. Returns the call when the
    /// process has ended.
    pub(crate) fn call_between_steps(
        self: &Task,
        call: Box<StepsCall>,
    ) -> Result<(), Box<StepsCall>> {
        self.push(Item::Call(call))
            .map_err(|refused| match refused {
                Item::Call(call) => call,
                _ => unreachable!("the refused item is the one that was pushed"),
            })
    }

    /// Puts a system event in, always by way of the mailbox: the worker sorts it out when it
    /// leaves. The event comes with its cause, which overtakes others with it.
    pub(crate) fn push_system(self: &Task, item: Item) -> Result<(), Item> {
        let item = match self.shared.carrier().cause() {
            Some(cause) => Item::Caused(cause, Box::new(item)),
            None => item,
        };
        (self.shared.probe).putting(self.id, &self.probe, item.seen().into_iter());
        let sent = self.shared.probe.sending(item.seen().into_iter());
        let wake = (self.state.push_system(item)).map_err(|refused| refused.apart().1)?;
        self.shared.probe.accepted(self.pid(), sent);
        self.shared.probe.put_behind(&self.probe, 1);
        self.settle_urgent(wake);
        Ok(())
    }

    /// Queues the process of a system event, if its push has woken the process.
    fn settle_urgent(self: &Task, wake: Wake) {
        if let Some(token) = self.token_of(wake, Wakes::System) {
            self.shared.schedule_urgent(token);
        }
    }
}

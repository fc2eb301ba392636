//! A process as the scheduler holds it: the word, the mailbox, and the part that only its runner
//! touches.

use crate::contain::discard;
use crate::core::{Core, Item};
use crate::exit_slot::ExitSlot;
use crate::shared::Shared;
use crate::state::{State, Wake};
use crate::token::Token;
use crate::{Task, dispatch, local};
use ganger_proc_api::{
    CancelReason, Completion, CompletionSink, ContextBackend, Event, Message, Package, Payloads,
    Pid, Process, SendError, SendErrorKind, SubmitError, Symbol, UpgradeRequest,
};
use ganger_sync::atomic::{AtomicU64, Ordering};
use ganger_sync::cell::UnsafeCell;
use std::sync::Arc;

/// One message in [`ProcessCell::queued_messages`].
pub(crate) const MESSAGE: u64 = 1;
/// One control message there.
pub(crate) const CONTROL: u64 = 1 << 32;

pub(crate) struct ProcessCell {
    pub(crate) pid: Pid,
    pub(crate) method: Symbol,
    /// With the mailbox.
    pub(crate) state: State<Item>,
    /// Messages accepted and not yet taken by a step, in the lower half, and control messages, in the
    /// upper; counted only when there is a limit.
    queued_messages: AtomicU64,
    pub(crate) exit: ExitSlot,
    pub(crate) shared: Arc<Shared>,
    core: OwnedCore,
}

/// The part that belongs to the owner of the run token.
struct OwnedCore(UnsafeCell<Core>);

// SAFETY: it is reached through `with_core` alone, whose contract is that the caller owns the run
// token, which one thread at a time does; the state word's transitions order one owner's accesses
// before the next one's. A core is `Send`, as is checked below.
unsafe impl Sync for OwnedCore {}
// SAFETY: a core is `Send`, as is checked below; loom's cell just does not say so.
unsafe impl Send for OwnedCore {}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Core>();
};

impl ProcessCell {
    /// A process in `Ready`; the caller owns its run token.
    pub(crate) fn new(
        shared: Arc<Shared>,
        pid: Pid,
        method: Symbol,
        process: Box<dyn Process>,
    ) -> Self {
        Self {
            pid,
            method,
            state: State::new(),
            queued_messages: AtomicU64::new(0),
            exit: ExitSlot::new(),
            shared,
            core: OwnedCore(UnsafeCell::new(Core::new(process))),
        }
    }

    /// Calls `f` with the part that belongs to the owner of the run token.
    ///
    /// # Safety
    /// The caller owns the run token: it has submitted the process and not queued it yet, or has
    /// taken it from a queue, moved it to `Running`, and not left that state. `f` does not call
    /// `with_core` of the same process.
    pub(crate) unsafe fn with_core<R>(&self, f: impl FnOnce(&mut Core) -> R) -> R {
        self.core.0.with_mut(|core| {
            // SAFETY: the caller owns the run token, so that no other reference exists.
            f(unsafe { &mut *core })
        })
    }

    /// Delivers a message. Never blocks.
    pub(crate) fn deliver(self: &Task, message: Message) -> Result<(), (SendErrorKind, Message)> {
        if !self.reserve(MESSAGE) {
            return Err((self.no_room(), message));
        }
        match self.push(Item::Event(Event::Message(message))) {
            Ok(()) => Ok(()),
            Err(Item::Event(Event::Message(message))) => Err((SendErrorKind::Closed, message)),
            Err(_) => unreachable!("the mailbox gives back what was pushed"),
        }
    }

    /// Delivers a control message. Never blocks.
    pub(crate) fn deliver_control(
        self: &Task,
        message: Message,
    ) -> Result<(), (SendErrorKind, Message)> {
        if !self.reserve(CONTROL) {
            return Err((self.no_room(), message));
        }
        match self.push_system(Item::Event(Event::Control(Box::new(message)))) {
            Ok(()) => Ok(()),
            Err(Item::Event(Event::Control(message))) => Err((SendErrorKind::Closed, *message)),
            Err(_) => unreachable!("the mailbox gives back what was pushed"),
        }
    }

    /// Why there is no room. An ended process gives none back: "full" would say that it is worth trying
    /// again.
    fn no_room(&self) -> SendErrorKind {
        if self.state.is_closed() {
            SendErrorKind::Closed
        } else {
            SendErrorKind::Full
        }
    }

    /// Asks the process to finish; `false` when it has ended.
    pub(crate) fn cancel(self: &Task, reason: CancelReason) -> bool {
        self.state.cancel();
        self.push_system(Item::Event(Event::Cancel(reason))).is_ok()
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
    pub(crate) fn terminate(self: &Task) -> bool {
        let wake = self.state.terminate(Item::Nudge);
        wake.map(|wake| self.settle_urgent(wake)).is_ok()
    }

    /// Messages have left the mailbox: so many times [`MESSAGE`], and [`CONTROL`].
    pub(crate) fn release_messages(&self, sum: u64) {
        // Ordering: Relaxed: a count; the mailbox itself orders the messages.
        self.queued_messages.fetch_sub(sum, Ordering::Relaxed);
    }

    /// Counts a [`MESSAGE`] or a [`CONTROL`], unless there are as many of its kind as there may be.
    fn reserve(&self, one: u64) -> bool {
        let Some(limit) = self.shared.config.mailbox_limit else {
            return true;
        };
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let of_its_kind = |queued: u64| queued / one % CONTROL;
        let add_one = |queued: u64| (of_its_kind(queued) < limit.into()).then_some(queued + one);
        // Ordering: Relaxed: a count; the mailbox itself orders the messages.
        self.queued_messages
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add_one)
            .is_ok()
    }

    fn push(self: &Task, item: Item) -> Result<(), Item> {
        self.state.push(item).map(|wake| self.settle(wake))
    }

    fn push_system(self: &Task, item: Item) -> Result<(), Item> {
        let wake = self.state.push_system(item);
        wake.map(|wake| self.settle_urgent(wake))
    }

    /// Does what a sender owes.
    fn settle(self: &Task, wake: Wake) {
        if wake == Wake::Enqueue {
            // SAFETY: that is to say that this thread owns the token. A process that can be woken
            // has been queued before, by its submitter, who has registered it before that.
            self.shared.schedule(unsafe { Token::new(self) });
        }
    }

    /// Does what the sender of a system event owes.
    fn settle_urgent(self: &Task, wake: Wake) {
        if wake == Wake::Enqueue {
            // SAFETY: as in `settle`.
            self.shared.schedule_urgent(unsafe { Token::new(self) });
        }
    }
}

impl ContextBackend for ProcessCell {
    fn pid(&self) -> Pid {
        self.pid
    }

    fn send(&self, package: Package) -> Result<(), SendError> {
        self.shared.route(package)
    }

    fn send_control(&self, package: Package) -> Result<(), SendError> {
        self.shared.route_control(package)
    }

    fn submit(
        &self,
        process: Box<dyn Process>,
        method: Symbol,
        input: Payloads,
    ) -> Result<Pid, SubmitError> {
        let handle = self.shared.submit(None, process, method, input)?;
        let pid = handle.pid();
        // The process may have ended already, and the handle hold a result that nobody wants.
        discard(self.shared.own_counters(), handle);
        Ok(pid)
    }

    fn is_cancelled(&self) -> bool {
        self.state.is_cancelled()
    }

    fn block(&self, f: &mut dyn FnMut()) {
        let worker = local::with(&self.shared, |queue| queue.index);
        // What is pushed from now on makes the monitor look at once.
        let _announced = worker.map(|worker| {
            let announced = self.shared.crew.announce(worker);
            self.make_way(worker);
            announced
        });
        f();
    }

    fn should_yield(&self) -> bool {
        let is_overdue = local::with(&self.shared, |queue| {
            let turns = self.shared.counters.of(Some(queue.index)).turns.get();
            self.shared.crew.is_overdue(queue.index, turns)
        });
        is_overdue.unwrap_or(false)
    }
}

impl ProcessCell {
    /// This thread is a worker and about to block: has somebody else take what waits.
    fn make_way(&self, worker: usize) {
        let Shared { idle, crew, .. } = &*self.shared;
        if !self.shared.has_work() || idle.notify() {
            return;
        }
        let now = idle.snapshot();
        if now.sleeping == 0 && now.searching == 0 {
            crew.relieve(&self.shared, worker, None);
        }
    }
}

impl CompletionSink for ProcessCell {
    fn complete(self: Arc<Self>, token: u64, completion: Completion) {
        let Err((task, completion)) = dispatch::intercept(self, token, completion) else {
            return;
        };
        if let Err(item) = task.push(Item::Completion { token, completion }) {
            let counters = task.shared.own_counters();
            counters.stale_completions.bump();
            discard(counters, item);
        }
    }

    fn pid(&self) -> Pid {
        self.pid
    }

    fn is_cancelled(&self) -> bool {
        self.state.is_cancelled()
    }
}

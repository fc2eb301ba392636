//! A process as the scheduler holds it: the word, the mailbox, and the part that only its runner
//! touches.

use crate::check::ProcessCheck;
use crate::contain::discard;
use crate::core::{Core, Item};
use crate::exit_slot::{Abandoned, ExitSlot, Left, Place};
use crate::home::Home;
use crate::room::{Given, Room};
use crate::shared::Shared;
use crate::state::{State, Wake};
use crate::token::Token;
use crate::{Task, dispatch, local, nodes};
use ganger_mpsc::Batch;
use ganger_proc_api::{
    CancelReason, Completion, CompletionSink, ContextBackend, Event, ExitReason, Message, NodeName,
    Package, Payloads, Pid, Process, SendError, SendErrorKind, SubmitError, Symbol, Tag,
    UpgradeRequest,
};
use ganger_sync::cell::UnsafeCell;
use std::mem::{self, ManuallyDrop, MaybeUninit};
use std::ptr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

pub(crate) struct ProcessCell {
    pub(crate) pid: Pid,
    pub(crate) method: Symbol,
    /// With the mailbox.
    pub(crate) state: State<Item>,
    /// For messages and control messages accepted and not yet taken by a step; used only when there is a
    /// limit.
    pub(crate) room: Room,
    pub(crate) exit: ExitSlot,
    pub(crate) shared: Arc<Shared>,
    core: OwnedCore,
    pub(crate) check: ProcessCheck,
}

/// The part that belongs to the owner of the run token, and at the end to whoever the exit slot says.
struct OwnedCore(UnsafeCell<Content>);

/// A core, unless the exit slot says that there is a reason, or nothing any more.
union Content {
    core: ManuallyDrop<Core>,
    reason: ManuallyDrop<ExitReason>,
    nothing: (),
}

// SAFETY: it is reached in two ways. By `with_core`, whose contract is that the caller owns the run
// token, which one thread at a time does; the state word's transitions order one owner's accesses
// before the next one's. And as the exit slot's place, whose word orders the worker's access before the
// handle's. Both contents are `Send`, as is checked below.
unsafe impl Sync for OwnedCore {}
// SAFETY: both contents are `Send`, as is checked below; loom's cell just does not say so.
unsafe impl Send for OwnedCore {}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Core>();
    is_send::<ExitReason>();
    assert!(size_of::<ExitReason>() <= size_of::<Core>());
};

impl OwnedCore {
    /// With nothing in it.
    fn new() -> Self {
        Self(UnsafeCell::new(Content { nothing: () }))
    }

    /// Puts a core there. What it holds is not dropped.
    #[inline]
    fn begin(&mut self, process: Home) {
        self.0.with_mut(|content| {
            // SAFETY: it is borrowed for us alone. What is around a core has its layout.
            unsafe { Core::begin((&raw mut (*content).core).cast(), process) };
        });
    }

    /// Drops what is there.
    ///
    /// # Safety
    /// It is not used again, but to be overwritten, and the exit slot says what is there.
    unsafe fn drop_content(&mut self, left: Left) {
        // SAFETY: as this function's.
        self.0.with_mut(|content| unsafe {
            match left {
                Left::Before => ManuallyDrop::drop(&mut (*content).core),
                Left::Reason => ManuallyDrop::drop(&mut (*content).reason),
                Left::Nothing => {}
            }
        });
    }
}

impl Place for OwnedCore {
    unsafe fn put(&self, reason: ExitReason) {
        // SAFETY: the caller owns the run token still, and a core is there until it has filled the slot.
        self.0.with_mut(|content| unsafe {
            ManuallyDrop::drop(&mut (*content).core);
            (*content).reason = ManuallyDrop::new(reason);
        });
    }

    unsafe fn take_back(&self) -> ExitReason {
        // SAFETY: the caller has put it there, and nobody else has seen it.
        self.0.with_mut(|content| unsafe {
            let reason = ManuallyDrop::take(&mut (*content).reason);
            (*content).core = ManuallyDrop::new(Core::default());
            reason
        })
    }

    unsafe fn take(&self) -> ExitReason {
        // SAFETY: there is a reason, which is the caller's, and is not looked at again.
        self.0
            .with_mut(|content| unsafe { ManuallyDrop::take(&mut (*content).reason) })
    }
}

impl ProcessCell {
    /// A process in `Ready`; the caller owns its run token.
    pub(crate) fn new(shared: Arc<Shared>, pid: Pid, method: Symbol, process: Home) -> Arc<Self> {
        let cell = Arc::new_uninit();
        // SAFETY: nobody else has it yet; to ask it takes an atomic operation.
        let place: &mut MaybeUninit<Self> = unsafe { &mut *Arc::as_ptr(&cell).cast_mut() };
        let place = place.write(Self {
            pid,
            method,
            state: State::new(),
            room: Room::new(),
            exit: ExitSlot::new(),
            check: ProcessCheck::new(&shared.check),
            shared,
            core: OwnedCore::new(),
        });
        place.core.begin(process);
        // SAFETY: it has been written.
        unsafe { cell.assume_init() }
    }

    /// Makes it the cell of another process of the same scheduler, in `Ready`; the caller owns its run
    /// token. What it had before is gone.
    pub(crate) fn renew(&mut self, pid: Pid, method: Symbol, process: Home) {
        // SAFETY: it is overwritten below, and nothing in between panics.
        unsafe { self.core.drop_content(self.exit.left()) };
        self.pid = pid;
        self.method = method;
        self.state = State::new();
        self.room = Room::new();
        self.exit = ExitSlot::new();
        self.core.begin(process);
    }

    /// Calls `f` with the part that belongs to the owner of the run token.
    ///
    /// # Safety
    /// The caller owns the run token: it has submitted the process and not queued it yet, or has
    /// taken it from a queue, moved it to `Running`, and not left that state. `f` does not call
    /// `with_core` of the same process.
    #[inline]
    pub(crate) unsafe fn with_core<R>(&self, f: impl FnOnce(&mut Core) -> R) -> R {
        self.core.0.with_mut(|content| {
            // SAFETY: the caller owns the run token, so that no other reference exists, and the process has
            // not ended, so that a core is there.
            f(unsafe { &mut (*content).core })
        })
    }

    /// Leaves the reason to the handle: see [`ExitSlot::fill`]. The cell may be gone before this returns, so
    /// that there must be no reference to all of it.
    ///
    /// # Safety
    /// As for that; the caller has ended the process.
    pub(crate) unsafe fn end(self: &Task, reason: ExitReason) -> Result<Option<Waker>, ExitReason> {
        // SAFETY: as this function's.
        unsafe { self.exit.fill(&self.core, reason) }
    }

    /// Takes the exit reason: see [`ExitSlot::poll`].
    ///
    /// # Safety
    /// As for that.
    pub(crate) unsafe fn poll_end(&self, context: &Context<'_>) -> Poll<ExitReason> {
        // SAFETY: as this function's.
        unsafe { self.exit.poll(&self.core, context) }
    }

    /// Waits for the exit reason: see [`ExitSlot::wait`].
    ///
    /// # Safety
    /// As for that.
    pub(crate) unsafe fn wait_for_end(&self, timeout: Option<Duration>) -> Option<ExitReason> {
        // SAFETY: as this function's.
        unsafe { self.exit.wait(&self.core, timeout) }
    }

    /// The handle goes: see [`ExitSlot::abandon`]. The cell may be gone before this returns, as in
    /// [`end`](Self::end).
    ///
    /// # Safety
    /// As for that.
    pub(crate) unsafe fn abandon(self: &Task) -> Abandoned {
        // SAFETY: as this function's.
        unsafe { self.exit.abandon(&self.core) }
    }

    /// Puts a message in, which is the only item, and leaves it where it is if it is refused. Returns the
    /// token when the caller has to queue the process, which is alive until it does. Short, and calls
    /// nothing of a user's.
    #[inline]
    pub(crate) fn put(
        self: &Task,
        message: &mut Batch<Item>,
    ) -> Result<Option<Token>, SendErrorKind> {
        if !self.reserve(Room::take) {
            return Err(self.no_room());
        }
        let noted = self.shared.accounts.note(message);
        let taken = mem::take(message);
        if self.state.unpark() {
            // SAFETY: this thread owns the run token, and has not queued the process.
            unsafe { self.with_core(|core| core.pending.append(taken)) };
            self.shared.accounts.accept(self.pid, noted);
            // SAFETY: as above. A process that can be woken is in the registry.
            return Ok(Some(unsafe { Token::new(self) }));
        }
        let pushed = self.state.push_batch(taken);
        if pushed.is_ok() {
            self.shared.accounts.accept(self.pid, noted);
        }
        match pushed {
            // SAFETY: that is to say that this thread owns the token; as above.
            Ok(Wake::Enqueue) => Ok(Some(unsafe { Token::new(self) })),
            Ok(Wake::Noted) => Ok(None),
            Err(refused) => {
                *message = refused;
                Err(SendErrorKind::Closed)
            }
        }
    }

    /// Delivers a message, which is the only item. Never blocks.
    #[inline(never)]
    pub(crate) fn deliver_in_node(self: &Task, message: Batch<Item>) -> Result<(), SendError> {
        if !self.reserve(Room::take) {
            return Err(nodes::refused(self.no_room(), message, &self.pid));
        }
        self.push_batch(message)
            .map_err(|message| nodes::refused(SendErrorKind::Closed, message, &self.pid))
    }

    /// Delivers a message. Never blocks.
    #[inline]
    pub(crate) fn deliver(self: &Task, message: Message) -> Result<(), (SendErrorKind, Message)> {
        if !self.reserve(Room::take) {
            return Err((self.no_room(), message));
        }
        self.deliver_placed(message)
    }

    /// Delivers a message that there is a place for.
    #[inline]
    pub(crate) fn deliver_placed(
        self: &Task,
        message: Message,
    ) -> Result<(), (SendErrorKind, Message)> {
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
        if !self.reserve(Room::take_control) {
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

    /// Ends its state, as the owner of the run token, and closes its mailbox; see `State::complete`.
    pub(crate) fn complete(&self) -> (bool, Batch<Item>) {
        let completed = self.state.complete();
        self.refuse_waiters();
        completed
    }

    /// Messages have left the mailbox: so many times `room::MESSAGE`, and `room::CONTROL`. Called by
    /// whoever runs the process.
    pub(crate) fn release_messages(self: &Task, places: u64) {
        if places > 0 && self.room.give(places) == Given::Awaited {
            self.serve_waiters();
        }
    }

    fn reserve(&self, take: fn(&Room, usize) -> bool) -> bool {
        let limit = self.shared.config.mailbox_limit;
        limit.is_none_or(|limit| take(&self.room, limit))
    }

    /// Puts in what is no system event.
    #[inline]
    pub(crate) fn push(self: &Task, item: Item) -> Result<(), Item> {
        debug_assert!(!item.is_system(), "it has to be counted");
        // In its node from the beginning: an item that is moved costs as much as all the rest.
        self.push_batch(Batch::of(item)).map_err(|mut refused| {
            let item = refused.pop_front();
            item.unwrap_or_else(|| unreachable!("the mailbox gives back what was pushed"))
        })
    }

    #[inline]
    fn push_batch(self: &Task, items: Batch<Item>) -> Result<(), Batch<Item>> {
        if self.state.unpark() {
            self.shared
                .accounts
                .accept(self.pid, self.shared.accounts.note(&items));
            // Nothing is pending in a process that waits, and what others push from now on comes later.
            // SAFETY: this thread owns the run token, and has not queued the process.
            unsafe { self.with_core(|core| core.pending.append(items)) };
            self.settle(Wake::Enqueue);
            return Ok(());
        }
        self.push_behind(items)
    }

    /// Puts items behind others, to a process that somebody has.
    #[inline(never)]
    pub(crate) fn push_behind(self: &Task, items: Batch<Item>) -> Result<(), Batch<Item>> {
        let noted = self.shared.accounts.note(&items);
        let wake = self.state.push_batch(items)?;
        self.shared.accounts.accept(self.pid, noted);
        if wake == Wake::Noted {
            Batch::<Item>::note_behind(self.key());
        }
        self.settle(wake);
        Ok(())
    }

    /// What the mailbox goes by where its nodes come from.
    pub(crate) fn key(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Puts the completion of a yield in; one that comes after the end is dropped and counted.
    #[inline(never)]
    pub(crate) fn complete_behind(self: &Task, completion: Completion) {
        if let Err(item) = self.push_batch(nodes::of_completion(completion)) {
            let counters = self.shared.own_counters();
            counters.stale_completions.bump();
            self.shared.accounts.refuse_answer();
            discard(self.pid, counters, item);
        }
    }

    /// Puts a system event in: always by way of the mailbox, on the way out of which it is sorted out.
    fn push_system(self: &Task, item: Item) -> Result<(), Item> {
        let noted = self.shared.accounts.note_item(&item);
        let wake = self.state.push_system(item)?;
        self.shared.accounts.accept(self.pid, noted);
        self.settle_urgent(wake);
        Ok(())
    }

    /// Does what a sender owes.
    #[inline]
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

impl Drop for ProcessCell {
    fn drop(&mut self) {
        // SAFETY: nobody has it any more.
        unsafe { self.core.drop_content(self.exit.left()) };
    }
}

impl ContextBackend for ProcessCell {
    fn pid(&self) -> Pid {
        self.pid
    }

    fn node_name(&self) -> Option<NodeName> {
        self.shared.node
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
        let process = Home::boxed(process);
        self.shared.submit_detached(process, method, input)
    }

    fn is_cancelled(&self) -> bool {
        self.state.is_cancelled()
    }

    fn block(&self, f: &mut dyn FnMut()) {
        let worker = local::with(&self.shared, |queue| queue.index);
        // For what is pushed from now on, the monitor need not wait until it sees the thread asleep.
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
        let Shared {
            idle,
            crew,
            shutdown,
            ..
        } = &*self.shared;
        // After the halt nobody's place is taken any more.
        if shutdown.is_halted() || !self.shared.has_work() || idle.notify() {
            return;
        }
        let now = idle.snapshot();
        if now.sleeping == 0 && now.searching == 0 {
            crew.relieve(&self.shared, worker, None);
        }
    }
}

impl CompletionSink for ProcessCell {
    fn complete(self: Arc<Self>, completion: Completion) {
        self.shared.accounts.answer();
        dispatch::complete(self, completion);
    }

    fn complete_dropped(self: Arc<Self>, tag: Tag, token: u64) {
        self.shared.accounts.answer();
        dispatch::complete_dropped(self, tag, token);
    }

    fn pid(&self) -> Pid {
        self.pid
    }

    fn is_cancelled(&self) -> bool {
        self.state.is_cancelled()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Scheduler;
    use crate::still::Still;
    use ganger_proc_api::Payload;

    /// The place of a cell, whose handle goes at the last moment.
    struct Raced<'a>(&'a Task);

    impl Place for Raced<'_> {
        unsafe fn put(&self, reason: ExitReason) {
            // SAFETY: as this function's.
            unsafe { self.0.core.put(reason) };
            // SAFETY: the only time.
            let abandoned = unsafe { self.0.abandon() };
            assert!(matches!(abandoned, Abandoned::Alive(None)));
        }

        unsafe fn take_back(&self) -> ExitReason {
            // SAFETY: as this function's.
            unsafe { self.0.core.take_back() }
        }

        unsafe fn take(&self) -> ExitReason {
            // SAFETY: as this function's.
            unsafe { self.0.core.take() }
        }
    }

    // pins: P12
    #[test]
    fn a_cell_whose_handle_goes_at_the_last_moment_can_be_used_again() {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        let shared = Arc::clone(&scheduler.shared);
        let pid = Pid::new(shared.host, 7);
        let home = || Home::new(Still);
        let mut cell = ProcessCell::new(shared, pid, "main".into(), home());
        let probe = Arc::new(());
        for _ in 0..2 {
            // SAFETY: nobody else has the process.
            drop(unsafe { cell.with_core(|core| core.process.take()) });
            let reason = ExitReason::Done(Payload::any(Arc::clone(&probe)));
            // SAFETY: as above, and the only time.
            let reason = unsafe { cell.exit.fill(&Raced(&cell), reason) };
            assert!(reason.unwrap_err().is_done());
            assert_eq!(Arc::strong_count(&probe), 1);
            let cell = Arc::get_mut(&mut cell).unwrap();
            cell.renew(pid, "again".into(), home());
        }
    }

    // pins: P12
    #[test]
    fn a_reason_that_nobody_takes_goes_with_its_cell() {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        let shared = Arc::clone(&scheduler.shared);
        let pid = Pid::new(shared.host, 7);
        let cell = ProcessCell::new(shared, pid, "main".into(), Home::new(Still));
        let probe = Arc::new(());
        let reason = ExitReason::Done(Payload::any(Arc::clone(&probe)));
        // SAFETY: nobody else has the process, and it is the only time.
        assert!(unsafe { cell.end(reason) }.unwrap().is_none());
        assert_eq!(Arc::strong_count(&probe), 2);
        drop(cell);
        assert_eq!(Arc::strong_count(&probe), 1);
    }
}

//! A process as the scheduler holds it: the state word, the mailbox, and the part for its runner
//! alone.

mod stand_in;
mod token;

use crate::limits::room::{Limit, Room};
use crate::probe::{Active, Carrier, Carry, Probe};
use crate::process::about::About;
use crate::process::accepts::Accepts;
use crate::process::exit_slot::{Abandoned, ExitSlot, ExitStorage, Left};
use crate::process::origin::Origin;
use crate::process::process_box::ProcessBox;
use crate::process::state::State;
use crate::runtime::item::{self, Item};
pub(crate) use crate::runtime::owned::Core;
use crate::runtime::shared::Shared;
use ganger_proc_api::{ExitReason, Pid, Symbol};
use ganger_sync::cell::UnsafeCell;
use ganger_sync::hint;
use std::mem::{self, ManuallyDrop};
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A process, shared by the registry and handles.
pub(crate) type Task = Arc<ProcessCell>;

pub(crate) struct ProcessCell {
    /// Its number: the rest of its PID is its scheduler's.
    pub(crate) id: u64,
    pub(crate) method: Symbol,
    /// With the mailbox.
    pub(crate) state: State<Item>,
    /// For messages and control messages accepted and not yet taken by a step; used with a limit
    /// only.
    pub(crate) room: Room,
    pub(crate) exit: ExitSlot,
    /// The only type of messages for the process.
    pub(crate) accepts: Accepts,
    /// For readers from outside.
    pub(crate) about: About,
    pub(crate) origin: Origin,
    pub(crate) shared: Arc<Shared>,
    core: OwnedCore,
    /// The probe's data of the process.
    pub(crate) probe: <Active as Probe>::Process,
}

// With its two counts of references a process takes 216 bytes, and the same in an allocator whose
// sizes are 16 bytes apart. The probe's data come on top.
#[cfg(all(target_pointer_width = "64", not(ganger_loom)))]
const _: () = {
    const OF_PROBE: usize = size_of::<<Active as Probe>::Process>();
    assert!(OF_PROBE != 0 || size_of::<ProcessCell>() <= 200);
};

/// The part for the owner of the run token; after the end, for the owner named by the exit slot.
struct OwnedCore(UnsafeCell<Content>);

/// A core, or the reason or nothing where the exit slot says so. A stand-in has a PID.
union Content {
    core: ManuallyDrop<Core>,
    reason: ManuallyDrop<ExitReason>,
    stands_for: Pid,
}

// SAFETY: two ways lead to the content of a process. By the contract of `with_core` the caller owns
// the run token, and only one thread at a time owns the token. The state word's transitions order
// an owner's accesses before the next owner's. The other way is the place of the exit slot, whose
// word orders the worker's access before the handle's. Both contents are `Send`, as is checked
// below. The PID of a stand-in is written before the cell is shared, and only read from then on.
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
    /// Creates the content with a core in it.
    #[inline(always)]
    fn new(process: ProcessBox) -> Self {
        let core = ManuallyDrop::new(Core::new(process));
        Self(UnsafeCell::new(Content { core }))
    }

    /// Drops the content.
    ///
    /// # Safety
    /// The content is not used again, except to be overwritten, and `left` is the exit slot's word
    /// on it.
    unsafe fn drop_content(&mut self, left: Left) {
        // SAFETY: the contract of this function.
        self.0.with_mut(|content| unsafe {
            match left {
                Left::Before => ManuallyDrop::drop(&mut (*content).core),
                Left::Reason => ManuallyDrop::drop(&mut (*content).reason),
                Left::Nothing => {}
            }
        });
    }
}

impl ExitStorage for OwnedCore {
    unsafe fn put(&self, reason: ExitReason) {
        // SAFETY: the caller owns the run token still, and a core is there until it has filled the
        // slot.
        self.0.with_mut(|content| unsafe {
            ManuallyDrop::drop(&mut (*content).core);
            (*content).reason = ManuallyDrop::new(reason);
        });
    }

    unsafe fn take_back(&self) -> ExitReason {
        // SAFETY: the caller has put it there, and no other thread has seen it.
        self.0.with_mut(|content| unsafe {
            let reason = ManuallyDrop::take(&mut (*content).reason);
            (*content).core = ManuallyDrop::new(Core::default());
            reason
        })
    }

    unsafe fn take(&self) -> ExitReason {
        // SAFETY: the content is a reason. The caller owns the reason, and nothing reads the place
        // again.
        self.0
            .with_mut(|content| unsafe { ManuallyDrop::take(&mut (*content).reason) })
    }
}

impl ProcessCell {
    /// Creates a process in `Ready`; the caller owns its run token.
    pub(crate) fn new(
        shared: Arc<Shared>,
        pid: Pid,
        method: Symbol,
        process: ProcessBox,
        origin: Origin,
    ) -> Arc<Self> {
        let probe = shared.probe.process();
        Arc::new(Self {
            id: pid.id(),
            method,
            state: State::new(),
            room: Room::new(),
            exit: ExitSlot::new(),
            accepts: Accepts::anything(),
            about: About::new(process.namer()),
            origin,
            shared,
            core: OwnedCore::new(process),
            probe,
        })
    }

    /// Turns this cell into the cell of another process of the same scheduler, in `Ready`, and
    /// drops its former content. The caller owns its run token.
    pub(crate) fn renew(&mut self, pid: Pid, method: Symbol, process: ProcessBox, origin: Origin) {
        // SAFETY: it is overwritten below, and nothing in between panics.
        unsafe { self.core.drop_content(self.exit.left()) };
        self.id = pid.id();
        self.method = method;
        self.state = State::new();
        self.room = Room::new();
        self.exit = ExitSlot::new();
        self.accepts = Accepts::anything();
        self.about = About::new(process.namer());
        self.origin = origin;
        self.core = OwnedCore::new(process);
    }

    /// Prefetches a cell last written by another processor, for use by this thread. The address
    /// need not be valid.
    pub(crate) fn prefetch(cell: *const Self) {
        const LINE: usize = 64;
        // Begins at the counts of references, which precede the cell.
        const COUNTS: usize = 2 * size_of::<usize>();
        const BYTES: usize = COUNTS + size_of::<ProcessCell>();
        let begin = cell.cast::<u8>().wrapping_sub(COUNTS);
        for place in (0..BYTES).step_by(LINE) {
            hint::prefetch_for_write(begin.wrapping_add(place));
        }
        // Wherever lines begin.
        hint::prefetch_for_write(begin.wrapping_add(BYTES - 1));
    }

    /// Returns the PID of the process. O(1), by way of its scheduler, for eight bytes less in each
    /// process.
    #[inline]
    pub(crate) fn pid(&self) -> Pid {
        Pid::new(self.shared.host, self.id)
    }

    /// Returns the process's data of the probe for causes.
    #[inline(always)]
    pub(crate) fn carried(&self) -> &<Carrier as Probe>::Process {
        &self.probe.1.0
    }

    /// Returns the limit of messages in the mailbox, if it has a limit.
    #[inline(always)]
    pub(crate) fn limit(&self) -> Option<usize> {
        if self.origin.is_limited() {
            self.own_limit().get()
        } else {
            None
        }
    }

    /// Returns the process's own limit, or the scheduler's.
    fn own_limit(&self) -> Limit {
        self.origin.limit().unwrap_or(self.shared.rooms.limit)
    }

    /// Calls `f` with the core, which belongs to the owner of the run token.
    ///
    /// # Safety
    /// The caller owns the run token: it has submitted the process and not queued it yet, or has
    /// taken it from a queue, moved it to `Running`, and not left `Running`. `f` does not call
    /// `with_core` of the same process.
    #[inline]
    pub(crate) unsafe fn with_core<R>(&self, f: impl FnOnce(&mut Core) -> R) -> R {
        self.core.0.with_mut(|content| {
            // SAFETY: the caller owns the run token, so no other reference exists. The process has
            // not ended, so the content is a core.
            f(unsafe { &mut (*content).core })
        })
    }

    /// Takes the core's own reference, if any: see [`Core::has_self_ref`].
    ///
    /// # Safety
    /// `core` is the core of this process.
    #[inline]
    pub(crate) unsafe fn take_self_ref(self: &Task, core: &mut Core) -> Option<Task> {
        // SAFETY: the mark stands for a counted reference, and is cleared with it.
        mem::take(&mut core.has_self_ref).then(|| unsafe { Arc::from_raw(Arc::as_ptr(self)) })
    }

    /// Lends the core as [`with_core`](Self::with_core) does, for a turn, whose code is compiled in
    /// one piece with its caller.
    ///
    /// # Safety
    /// The contract of [`with_core`](Self::with_core), as long as the pointer is used.
    #[inline(always)]
    pub(crate) unsafe fn core(&self) -> NonNull<Core> {
        // SAFETY: the contract of this function.
        unsafe { self.with_core(NonNull::from_mut) }
    }

    /// Moves arrived items into the core of this process.
    #[inline(always)]
    pub(crate) fn receive(&self, core: &mut Core) {
        core.receive(&self.state, |arrived| {
            let causes = if self.shared.carrier().traces() {
                item::count_causes(arrived)
            } else {
                0
            };
            let items = arrived.len() - causes;
            self.shared.probe.received(&self.probe, items);
            causes
        });
    }

    /// Leaves the reason to the handle: see [`ExitSlot::fill`]. The cell may be freed before this
    /// returns, so the caller holds no reference to the whole cell.
    ///
    /// # Safety
    /// The contract of [`ExitSlot::fill`]; the caller has ended the process.
    pub(crate) unsafe fn end(
        self: &Task,
        reason: ExitReason,
        is_unwatched: bool,
    ) -> Result<Option<Waker>, ExitReason> {
        // SAFETY: the contract of this function.
        unsafe { self.exit.fill(&self.core, reason, is_unwatched) }
    }

    /// Takes the exit reason: see [`ExitSlot::poll`].
    ///
    /// # Safety
    /// The contract of [`ExitSlot::poll`].
    pub(crate) unsafe fn poll_end(&self, context: &Context<'_>) -> Poll<ExitReason> {
        // SAFETY: the contract of this function.
        unsafe { self.exit.poll(&self.core, context) }
    }

    /// Waits for the exit reason: see [`ExitSlot::wait`].
    ///
    /// # Safety
    /// The contract of [`ExitSlot::wait`].
    pub(crate) unsafe fn wait_for_end(&self, timeout: Option<Duration>) -> Option<ExitReason> {
        // SAFETY: the contract of this function.
        unsafe { self.exit.wait(&self.core, timeout) }
    }

    /// Abandons the process as its handle goes: see [`ExitSlot::abandon`]. The cell may be gone
    /// before this returns, as in [`end`](Self::end).
    ///
    /// # Safety
    /// The contract of [`ExitSlot::abandon`].
    pub(crate) unsafe fn abandon(self: &Task) -> Abandoned {
        // SAFETY: the contract of this function.
        unsafe { self.exit.abandon(&self.core) }
    }
}

impl Drop for ProcessCell {
    fn drop(&mut self) {
        // SAFETY: no other thread has it any more.
        unsafe { self.core.drop_content(self.exit.left()) };
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use crate::Scheduler;
    use crate::noop_process::NoopProcess;
    use ganger_proc_api::{Events, Kind, Message, Payload, Process, StepOutput, StepResult};
    use ganger_sync::atomic::{AtomicUsize, Ordering};

    /// The place of a cell, whose handle goes at the last moment.
    struct Raced<'a>(&'a Task);

    impl ExitStorage for Raced<'_> {
        unsafe fn put(&self, reason: ExitReason) {
            // SAFETY: the contract of this function.
            unsafe { self.0.core.put(reason) };
            // SAFETY: the only time.
            let abandoned = unsafe { self.0.abandon() };
            assert!(matches!(abandoned, Abandoned::Alive(None)));
        }

        unsafe fn take_back(&self) -> ExitReason {
            // SAFETY: the contract of this function.
            unsafe { self.0.core.take_back() }
        }

        unsafe fn take(&self) -> ExitReason {
            // SAFETY: the contract of this function.
            unsafe { self.0.core.take() }
        }
    }

    /// Counts the drops of its kind.
    struct Counted(Arc<AtomicUsize>);

    impl Process for Counted {
        fn step(
            &mut self,
            _: &ganger_proc_api::Context,
            _: &mut Events<'_>,
            _: &mut StepOutput,
        ) -> StepResult {
            Ok(())
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            // Ordering: Relaxed: a single thread counts.
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    // pins: P12
    #[test]
    fn a_cell_whose_handle_goes_at_the_last_moment_can_be_used_again() {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        let shared = Arc::clone(&scheduler.shared);
        let pid = Pid::new(shared.host, 7);
        let dropped = Arc::new(AtomicUsize::new(0));
        let home = || ProcessBox::new(Counted(Arc::clone(&dropped)));
        let mut cell = ProcessCell::new(
            shared,
            pid,
            "main".into(),
            home(),
            Origin::new(0, None, None, false),
        );
        let probe = Arc::new(());
        for nth in 1..=2 {
            let reason = ExitReason::Done(Payload::any(Arc::clone(&probe)));
            // SAFETY: no other thread has the process, and it is the only time.
            let reason = unsafe { cell.exit.fill(&Raced(&cell), reason, false) };
            assert!(reason.unwrap_err().is_done());
            assert_eq!(Arc::strong_count(&probe), 1);
            let cell = Arc::get_mut(&mut cell).unwrap();
            cell.renew(
                pid,
                "again".into(),
                home(),
                Origin::new(0, None, None, false),
            );
            // Ordering: Relaxed: a single thread counts.
            assert_eq!(dropped.load(Ordering::Relaxed), nth);
        }
    }

    #[test]
    fn a_cell_that_is_used_again_takes_all_types() {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        let shared = Arc::clone(&scheduler.shared);
        let pid = Pid::new(shared.host, 7);
        let home = || ProcessBox::new(NoopProcess);
        let mut cell = ProcessCell::new(
            shared,
            pid,
            "main".into(),
            home(),
            Origin::new(0, None, None, false),
        );
        cell.accepts.set(Some(Kind::of::<u64>()));
        let message = Message::new("", "seven");
        assert!(cell.accepts.refuses(&message).is_some());
        let renewed = Arc::get_mut(&mut cell).unwrap();
        renewed.renew(
            pid,
            "again".into(),
            home(),
            Origin::new(0, None, None, false),
        );
        assert!(cell.accepts.refuses(&message).is_none());
    }

    // pins: P12
    #[test]
    fn a_reason_that_nobody_takes_goes_with_its_cell() {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        let shared = Arc::clone(&scheduler.shared);
        let pid = Pid::new(shared.host, 7);
        let cell = ProcessCell::new(
            shared,
            pid,
            "main".into(),
            ProcessBox::new(NoopProcess),
            Origin::new(0, None, None, false),
        );
        let probe = Arc::new(());
        let reason = ExitReason::Done(Payload::any(Arc::clone(&probe)));
        // SAFETY: no other thread has the process, and it is the only time.
        assert!(unsafe { cell.end(reason, false) }.unwrap().is_none());
        assert_eq!(Arc::strong_count(&probe), 2);
        drop(cell);
        assert_eq!(Arc::strong_count(&probe), 1);
    }
}

//! Where the state of a process lies: a small box at first, the heap later.
//!
//! **Problem.** A process is often made by one thread and dropped by another, which is the purpose
//! of a [`SmallBox`]. But a value in a small box keeps its whole slab in use: a few processes that
//! stay would keep the memory of many ended ones.
//!
//! **Rejected.** All processes on the heap: brief processes would pay for it. All in small boxes
//! for life: the memory of ended processes would not be free again (P13).
//!
//! **Protocol.** A small process begins in a small box. When it has waited [`MAX_WAITS`] times, it
//! moves to the heap before its next step: it is likely to stay, and moves once. A process that may
//! not move once it has stepped ([`Unstarted::pinned`]) moves before its first step. So the running
//! thread allocates, and most often frees. A process that begins on the heap
//! ([`ProcessBox::boxed`]) stays at its address for life.

use ganger_nodes::SmallBox;
use ganger_proc_api::internal::in_box;
use ganger_proc_api::{Context, Events, Process, StepOutput, StepResult};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::{fmt, mem};

/// A process moves to the heap when it has waited this many times.
const MAX_WAITS: u8 = 2;

/// A process able to move from a small box to the heap.
trait Movable: Process {
    /// Returns the function to move this process. The caller must call it with the box of this
    /// process.
    fn mover(&self) -> fn(SmallBox<dyn Movable>) -> Box<dyn Process>;
}

impl<P: Process> Movable for P {
    fn mover(&self) -> fn(SmallBox<dyn Movable>) -> Box<dyn Process> {
        |process| {
            // SAFETY: the caller passes the process that returned this function, and the process is
            // a `P`.
            let process = unsafe { process.cast(NonNull::cast::<P>) };
            Box::new(process.into_inner())
        }
    }
}

/// A process, with its memory.
pub(crate) struct ProcessBox(Place);

enum Place {
    /// Until the first step, for a process that may not move afterwards.
    Fresh(SmallBox<dyn Movable>),
    Small {
        process: SmallBox<dyn Movable>,
        waits: u8,
    },
    Heap(Box<dyn Process>),
}

impl ProcessBox {
    /// Holds a process on the heap, where the process stays.
    pub(crate) fn boxed(process: Box<dyn Process>) -> Self {
        Self(Place::Heap(process))
    }

    /// Holds a process that begins in a small box if it is small enough. A boxed process stays in
    /// its box.
    #[inline]
    pub(crate) fn new<P: Process>(process: P) -> Self {
        match in_box(process) {
            Ok(process) => Self::boxed(process),
            Err(process) => Self::small(process, |process| Place::Small { process, waits: 0 }),
        }
    }

    #[inline]
    fn small<P: Process>(process: P, place: fn(SmallBox<dyn Movable>) -> Place) -> Self {
        match SmallBox::new(process) {
            Ok(process) => {
                // SAFETY: the cast makes a trait object of the pointer.
                let process = unsafe { process.cast(|it| it as NonNull<dyn Movable>) };
                Self(place(process))
            }
            Err(process) => Self::boxed(Box::new(process)),
        }
    }

    /// Returns the process, for a step.
    pub(crate) fn for_step(&mut self) -> &mut dyn Process {
        if matches!(self.0, Place::Fresh(_)) {
            self.move_to_heap();
        }
        &mut **self
    }

    /// Counts a wait of the process, and moves the process to the heap if it has waited often
    /// enough.
    pub(crate) fn wait(&mut self) {
        if let Place::Small { waits, .. } = &mut self.0 {
            *waits += 1;
            if *waits == MAX_WAITS {
                self.move_to_heap();
            }
        }
    }

    #[cold]
    fn move_to_heap(&mut self) {
        let process = mem::replace(self, Self::boxed(Box::new(Moving)));
        *self = Self::boxed(process.into_box());
    }

    /// Returns the process, on the heap.
    pub(crate) fn into_box(self) -> Box<dyn Process> {
        match self.0 {
            Place::Fresh(process) | Place::Small { process, .. } => process.mover()(process),
            Place::Heap(process) => process,
        }
    }
}

/// A process that has not been started, for crates above the scheduler: it can only be started, or
/// put in a box.
#[doc(hidden)]
pub struct Unstarted(pub(crate) ProcessBox);

impl Unstarted {
    /// Holds a process that may be moved at any time.
    #[inline]
    #[must_use]
    pub fn movable<P: Process>(process: P) -> Self {
        Self(ProcessBox::new(process))
    }

    /// Holds a process that is not moved between its first step and its drop: such as a future.
    #[inline]
    #[must_use]
    pub fn pinned<P: Process>(process: P) -> Self {
        Self(ProcessBox::small(process, Place::Fresh))
    }

    /// Returns the process, on the heap.
    #[must_use]
    pub fn into_box(self) -> Box<dyn Process> {
        self.0.into_box()
    }
}

impl fmt::Debug for Unstarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Unstarted").field(&self.0).finish()
    }
}

/// Stands in for a process during its move. The type has no size, so its box needs no allocation.
struct Moving;

impl Process for Moving {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
        unreachable!("it is never run")
    }
}

impl Deref for ProcessBox {
    type Target = dyn Process;

    fn deref(&self) -> &Self::Target {
        match &self.0 {
            Place::Fresh(process) | Place::Small { process, .. } => &**process,
            Place::Heap(process) => &**process,
        }
    }
}

impl DerefMut for ProcessBox {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match &mut self.0 {
            Place::Fresh(process) | Place::Small { process, .. } => &mut **process,
            Place::Heap(process) => &mut **process,
        }
    }
}

impl fmt::Debug for ProcessBox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_on_heap = matches!(self.0, Place::Heap(_));
        f.debug_struct("ProcessBox")
            .field("is_on_heap", &is_on_heap)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    /// A process of any size and alignment. The process holds a counted value, and may panic when
    /// it is dropped.
    #[repr(C)]
    struct Sized<const N: usize, A> {
        align: [A; 0],
        bytes: [u8; N],
        held: Option<Arc<()>>,
        is_bomb: bool,
    }

    impl<const N: usize, A: Send + 'static> Process for Sized<N, A> {
        fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
            let sum: u64 = self.bytes.iter().map(|&byte| u64::from(byte)).sum();
            out.done(sum);
            Ok(())
        }
    }

    impl<const N: usize, A> Drop for Sized<N, A> {
        fn drop(&mut self) {
            assert!(!self.is_bomb, "dropped");
        }
    }

    fn sized<const N: usize, A>(held: &Arc<()>, is_bomb: bool) -> Sized<N, A> {
        Sized {
            align: [],
            bytes: [1; N],
            held: Some(Arc::clone(held)),
            is_bomb,
        }
    }

    #[repr(align(64))]
    struct Wide;

    fn sum(process: &mut dyn Process) -> Option<u64> {
        let mut out = StepOutput::new();
        let mut none = std::collections::VecDeque::new();
        let ctx = Context::detached("{test|1}".parse().unwrap());
        process
            .step(&ctx, &mut Events::new(&mut none), &mut out)
            .unwrap();
        match out.take_outcome() {
            ganger_proc_api::Outcome::Done(sum) => sum.as_u64(),
            _ => None,
        }
    }

    fn is_on_heap(home: &ProcessBox) -> bool {
        matches!(home.0, Place::Heap(_))
    }

    fn check<const N: usize, A: Send + 'static>(begins_on_heap: bool) {
        let held = Arc::new(());
        let new = |is_bomb| ProcessBox::new(sized::<N, A>(&held, is_bomb));
        let mut home = new(false);
        assert_eq!(is_on_heap(&home), begins_on_heap);
        let address = (&raw const *home).addr();
        assert_eq!(address % align_of::<Sized<N, A>>(), 0);
        assert_eq!(sum(&mut *home), Some(N as u64));
        let mut back = home.into_box();
        assert_eq!(sum(&mut *back), Some(N as u64));
        let home = ProcessBox::boxed(back);
        assert!(is_on_heap(&home));
        drop(home);
        let mut home = new(false);
        for waits in 0..3 {
            assert_eq!(is_on_heap(&home), begins_on_heap || waits >= MAX_WAITS);
            home.wait();
            assert_eq!(sum(&mut *home), Some(N as u64));
        }
        drop(home);
        drop(new(false));
        assert_eq!(Arc::strong_count(&held), 1);
        let home = new(true);
        assert!(catch_unwind(AssertUnwindSafe(|| drop(home))).is_err());
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[test]
    fn a_process_that_begins_on_the_heap_never_moves() {
        let mut home = ProcessBox::boxed(Box::new(sized::<8, u64>(&Arc::new(()), false)));
        let address = (&raw const *home).addr();
        for _ in 0..4 {
            home.wait();
            assert_eq!((&raw const *home).addr(), address);
        }
    }

    // pins: A9
    #[test]
    fn a_pinned_process_moves_before_its_first_step_and_never_again() {
        let held = Arc::new(());
        let Unstarted(mut home) = Unstarted::pinned(sized::<8, u64>(&held, false));
        home.wait();
        assert!(!is_on_heap(&home));
        assert_eq!(sum(home.for_step()), Some(8));
        assert!(is_on_heap(&home));
        let address = (&raw const *home).addr();
        for _ in 0..4 {
            home.wait();
            assert_eq!((&raw const *home.for_step()).addr(), address);
        }
        let Unstarted(large) = Unstarted::pinned(sized::<1_000, u8>(&held, false));
        assert!(is_on_heap(&large));
        drop((
            home,
            large,
            Unstarted::pinned(sized::<8, u64>(&held, false)),
        ));
        assert_eq!(Arc::strong_count(&held), 1);
    }

    // pins: P2
    #[test]
    fn processes_of_all_sizes_are_there_come_back_and_are_dropped_once() {
        check::<0, u8>(false);
        check::<3, u64>(false);
        check::<100, u128>(false);
        check::<240, u8>(false);
        check::<241, u8>(true);
        check::<1_000, u8>(true);
        check::<8, Wide>(true);
    }
}

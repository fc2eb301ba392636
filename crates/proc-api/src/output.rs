//! What a step decides: the commands that it yields, and how the process goes on.

use crate::placed::Placed;
use crate::{Command, Payload, Tag, UpgradeRequest};
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::Range;
use std::{fmt, mem, ptr};

/// A command with the tag that its completion will carry.
#[derive(Debug)]
pub struct Yield {
    /// The command.
    pub command: Command,
    /// The tag.
    pub tag: Tag,
}

/// How a process goes on after a step.
#[derive(Debug, Default)]
#[non_exhaustive]
pub enum Outcome {
    /// Step again as soon as its turn comes, whether something has happened or not.
    #[default]
    Continue,
    /// Wait for a new event: one that the step has left does not wake the process.
    Idle,
    /// Wait for a new event; says to the reader that completions are what it waits for.
    WaitForYields,
    /// The process is finished, with this result.
    Done(Payload),
    /// Put another process in its place.
    Upgrade(Box<UpgradeRequest>),
}

/// Where a step writes its commands and its outcome. The scheduler reuses the buffer: yields need no
/// allocation once it has grown.
///
/// There is one outcome, and **the last call wins** of [`go_on`](Self::go_on), [`idle`](Self::idle),
/// [`wait_for_yields`](Self::wait_for_yields), [`done`](Self::done) and [`upgrade`](Self::upgrade): a `done` for
/// one event is lost when a later event of the same step has the process wait. So a step that takes its events
/// in a loop says first how it goes on, and returns when something else is decided:
///
/// ```
/// # use ganger_proc_api::{BoxError, Event, Events, StepOutput};
/// # fn step(events: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
/// out.idle();
/// for event in events {
///     match event {
///         Event::Cancel(_) => {
///             out.done("cancelled");
///             return Ok(());
///         }
///         _ => { /* … */ }
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// A step that says nothing is called again at once ([`Outcome::Continue`]).
///
/// ```
/// use ganger_proc_api::{Command, CommandId, Outcome, StepOutput};
/// const READ: CommandId = CommandId::new(1);
///
/// let mut out = StepOutput::new();
/// out.yield_command(Command::new(READ, "/etc/hostname"), 7);
/// out.wait_for_yields();
/// assert_eq!(out.yields()[0].tag, 7);
/// assert!(matches!(out.outcome(), Outcome::WaitForYields));
/// ```
#[derive(Default)]
pub struct StepOutput {
    yields: Vec<Yield>,
    next: Next,
    /// The outcome when there is something in it; `Continue` otherwise.
    laden: Outcome,
}

/// Which outcome it is. Apart from it, so that a step and its scheduler write and read a byte.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Next {
    #[default]
    Continue,
    Idle,
    WaitForYields,
    Laden,
}

impl StepOutput {
    /// Nothing yielded; the outcome is [`Outcome::Continue`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for `command` to be carried out. Exactly one completion with `tag` will follow, unless
    /// the process ends before.
    ///
    /// Yields are dispatched in the order in which they were written, after the step has returned
    /// and before its outcome takes effect, also when the outcome is `Done` or `Upgrade` (their
    /// completions then go nowhere). A step that panics has yielded nothing.
    #[inline]
    pub fn yield_command(&mut self, command: Command, tag: Tag) {
        if self.yields.len() == self.yields.capacity() {
            grow(&mut self.yields);
        }
        // Where it belongs from the beginning: a command that is moved costs as much as a short handler.
        // SAFETY: there is room for one more, and it is written before it counts.
        unsafe {
            let yields = self.yields.len();
            let place = self.yields.as_mut_ptr().add(yields);
            place.write(Yield { command, tag });
            self.yields.set_len(yields + 1);
        }
    }

    /// Step again as soon as the process's turn comes, whether something happens or not: the default. Of several
    /// outcomes the last one counts.
    #[inline]
    pub fn go_on(&mut self) {
        self.decide(Next::Continue);
    }

    /// Wait for a new event: one that this step leaves does not wake the process, but is there at its next step. Of
    /// several outcomes the last one counts: this one takes back an earlier [`done`](Self::done).
    #[inline]
    pub fn idle(&mut self) {
        self.decide(Next::Idle);
    }

    /// Wait for a new event, as [`idle`](Self::idle); completions are what the process expects. Of several outcomes the
    /// last one counts: this one takes back an earlier [`done`](Self::done).
    #[inline]
    pub fn wait_for_yields(&mut self) {
        self.decide(Next::WaitForYields);
    }

    /// The process is finished, with this result, as soon as the step has returned. Of several outcomes the last
    /// one counts.
    ///
    /// Return after it: what this step takes goes with it. Messages that nobody has taken when a process ends are
    /// dropped, and counted as undelivered.
    #[inline]
    pub fn done(&mut self, result: impl Into<Payload>) {
        self.load(Outcome::Done(result.into()));
    }

    /// Put another process in the place of this one, as soon as the step has returned: same PID, same mailbox. Of
    /// several outcomes the last one counts.
    ///
    /// Return after it: messages, cancellations and control messages that this step does not take go to the new
    /// process, and those that it takes do not.
    pub fn upgrade(&mut self, request: UpgradeRequest) {
        self.load(Outcome::Upgrade(Box::new(request)));
    }

    #[inline]
    fn decide(&mut self, next: Next) {
        // First, here and below: what is dropped may panic.
        if mem::replace(&mut self.next, next) == Next::Laden {
            self.unload();
        }
    }

    #[inline]
    fn load(&mut self, outcome: Outcome) {
        self.next = Next::Laden;
        self.laden = outcome;
    }

    /// Drops what came with an outcome that another one has taken the place of.
    #[cold]
    #[inline(never)]
    fn unload(&mut self) {
        self.laden = Outcome::Continue;
    }

    /// The commands written so far.
    #[must_use]
    #[inline]
    pub fn yields(&self) -> &[Yield] {
        &self.yields
    }

    /// The outcome written last.
    #[must_use]
    #[inline]
    pub fn outcome(&self) -> &Outcome {
        const CONTINUE: &Outcome = &Outcome::Continue;
        const IDLE: &Outcome = &Outcome::Idle;
        const WAIT_FOR_YIELDS: &Outcome = &Outcome::WaitForYields;
        match self.next {
            Next::Continue => CONTINUE,
            Next::Idle => IDLE,
            Next::WaitForYields => WAIT_FOR_YIELDS,
            Next::Laden => &self.laden,
        }
    }

    /// If the process is to wait, says so, and leaves [`Outcome::Continue`]; for schedulers.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn take_wait(&mut self) -> bool {
        let waits = matches!(self.next, Next::Idle | Next::WaitForYields);
        if waits {
            self.next = Next::Continue;
        }
        waits
    }

    /// Whether the process is to step again; for schedulers.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn goes_on(&self) -> bool {
        self.next == Next::Continue
    }

    /// Takes the commands out, in order; for schedulers.
    #[inline]
    pub fn drain_yields(&mut self) -> DrainYields<'_> {
        let count = self.yields.len();
        // SAFETY: none is left that would have to be there.
        unsafe { self.yields.set_len(0) };
        let start = self.yields.as_mut_ptr();
        // SAFETY: so many were there. Nobody else uses their places before the iterator is dropped.
        let end = unsafe { start.add(count) };
        DrainYields {
            yields: start..end,
            out: PhantomData,
        }
    }

    /// Takes the outcome out, leaving [`Outcome::Continue`]; for schedulers.
    #[must_use]
    #[inline]
    pub fn take_outcome(&mut self) -> Outcome {
        match mem::take(&mut self.next) {
            Next::Continue => Outcome::Continue,
            Next::Idle => Outcome::Idle,
            Next::WaitForYields => Outcome::WaitForYields,
            Next::Laden => mem::take(&mut self.laden),
        }
    }

    /// Forgets commands and outcome, and keeps the buffer; for schedulers.
    pub fn clear(&mut self) {
        self.yields.clear();
        self.go_on();
    }
}

impl fmt::Debug for StepOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepOutput")
            .field("yields", &self.yields)
            .field("outcome", self.outcome())
            .finish()
    }
}

/// Makes room for one more.
///
/// Does not unwind, as its ABI says, so that nobody has to drop the command on the way out.
#[cold]
extern "C" fn grow(yields: &mut Vec<Yield>) {
    yields.reserve(1);
}

/// # Safety
/// The caller has what is there, and does not use it again.
#[cold]
unsafe fn drop_all(yields: Range<*mut Yield>) {
    let all = ptr::slice_from_raw_parts_mut(yields.start, count(&yields));
    // SAFETY: what is there is the caller's (precondition).
    unsafe { all.drop_in_place() };
}

/// How many places the range of places has.
fn count(yields: &Range<*mut Yield>) -> usize {
    (yields.end.addr() - yields.start.addr()) / size_of::<Yield>()
}

/// The commands of a step, as [`StepOutput::drain_yields`] takes them out. What is not taken is dropped
/// with it.
#[derive(Debug)]
pub struct DrainYields<'a> {
    yields: Range<*mut Yield>,
    out: PhantomData<&'a mut StepOutput>,
}

impl DrainYields<'_> {
    /// The next command, where it lies, and its tag; for schedulers.
    ///
    /// The place is the command's only until the next one is taken:
    ///
    /// ```compile_fail
    /// # let mut out = ganger_proc_api::StepOutput::new();
    /// let mut yields = out.drain_yields();
    /// let first = yields.next_placed();
    /// let second = yields.next_placed();
    /// drop(first);
    /// ```
    #[inline]
    pub fn next_placed(&mut self) -> Option<(Placed<'_, Command>, Tag)> {
        let place = self.advance()?;
        // SAFETY: a command that was taken out, and is not used again here; nobody uses its place as long as this is
        // borrowed.
        Some(unsafe { (Placed::new(&raw mut (*place).command), (*place).tag) })
    }

    #[inline]
    fn advance(&mut self) -> Option<*mut Yield> {
        if self.yields.start == self.yields.end {
            return None;
        }
        let place = self.yields.start;
        // SAFETY: one of the places in the range, which are neighbours.
        self.yields.start = unsafe { place.add(1) };
        Some(place)
    }
}

impl Iterator for DrainYields<'_> {
    type Item = Yield;

    #[inline]
    fn next(&mut self) -> Option<Yield> {
        // SAFETY: it was taken out, and is not used again here.
        self.advance().map(|place| unsafe { place.read() })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = count(&self.yields);
        (left, Some(left))
    }
}

impl ExactSizeIterator for DrainYields<'_> {}
impl FusedIterator for DrainYields<'_> {}

impl Drop for DrainYields<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.yields.start != self.yields.end {
            // SAFETY: they were taken out, and are not used again.
            unsafe { drop_all(self.yields.clone()) };
        }
    }
}

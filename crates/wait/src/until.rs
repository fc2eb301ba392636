//! A yield that waits for a future: the face that each wait has for state machines.
//!
//! **Problem.** A state machine has no place in which a future is polled, and gets completions.
//! Each kind of wait would need a face of its own for it.
//!
//! **Protocol.** The future is behind a counter of turns. A wake-up counts one up; the thread that
//! finds zero polls, and polls again as long as the others have counted. So a thread never waits
//! for another's poll. The poll that finds the future ready completes the yield. The end of the
//! process, or a yield that is taken back, sets a mark and wakes: the next poll drops the future.
//! The mark says whether the process has failed: locks that the future has are marked then.
//!
//! **First poll.** The step's own thread makes it. A future that is ready then pays for no watch.
//!
//! **A future that wakes itself**, or two that wake each other, would keep the thread for ever, and
//! with it the worker that could end the process. After [`POLLS`] polls in a row the next is made
//! between two steps of the process, as [`Rest`]. The turns that it answers stay counted: no other
//! thread polls meanwhile. A wake-up outside of all polls begins anew: a process may wait inside of
//! a step for what such a poll does.
//!
//! **Depth.** A poll may wake another future, and that one the next: all that wait for a lock, one
//! after another. A thread polls them in a row, from a list of its own, and not inside one another.

use crate::watch;
use ganger_proc_api::{
    Command, CommandError, CommandId, Completer, Delivery, EndWatch, Payload, TypedCommand,
};
use ganger_sync::atomic::{AtomicU32, Ordering};
use ganger_sync::{TryLock, failing, panic_text};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// Waits for a future: the completion brings its result, as the future's own type. It is polled by
/// the threads that wake it, so it is to be a wait, and not work. It is dropped when the process
/// ends or takes the yield back.
///
/// ```
/// use ganger_proc_api::StepOutput;
/// use ganger_wait::Until;
///
/// let mut out = StepOutput::new();
/// let asked = out.ask(Until::new(async { 42_u64 }), 1);
/// // Later: `let answer: u64 = asked.answer(completion)?`.
/// ```
#[must_use = "a command does nothing until it is asked for: `out.ask(command, tag)`"]
pub struct Until<T> {
    wait: Wait,
    answer: PhantomData<fn() -> T>,
}

type Wait = Pin<Box<dyn Future<Output = Result<Payload, CommandError>> + Send>>;

impl<T: Send + 'static> Until<T> {
    /// The command that waits for that future.
    pub fn new(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self::fallible(async { Ok(future.await) })
    }

    /// As [`new`](Self::new), for a future that may fail: the completion is its error then.
    pub fn fallible(
        future: impl Future<Output = Result<T, CommandError>> + Send + 'static,
    ) -> Self {
        Self {
            wait: Box::pin(async { future.await.map(Payload::any) }),
            answer: PhantomData,
        }
    }
}

impl<T: Send + 'static> TypedCommand for Until<T> {
    type Answer = T;

    fn into_command(self) -> Command {
        let delivery = Delivery {
            value: Payload::any(self.wait),
            run: |value, completer| {
                start(value.take::<Wait>()?, completer);
                Ok(())
            },
        };
        delivery.command(CommandId::UNTIL)
    }
}

impl<T> fmt::Debug for Until<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Until").finish_non_exhaustive()
    }
}

/// The result is wanted.
const WANTED: u32 = 0;
/// After so many polls of a future in a row, the next one is made between two steps of the process.
const POLLS: u32 = 64;

/// It is not wanted any longer.
const UNWANTED: u32 = 1;
/// Nor is it, because its process has failed.
const FAILED: u32 = 2;

/// A future that is waited for.
struct Driven {
    /// Wake-ups that no poll has answered.
    turns: AtomicU32,
    /// Whether the result is wanted.
    end: AtomicU32,
    /// How many turns a [`Rest`] answers.
    put_off: AtomicU32,
    waiting: TryLock<Option<Waiting>>,
}

struct Waiting {
    wait: Wait,
    completer: Completer,
    /// How many polls in a row there were.
    polls: u32,
    /// Tells of the end of the yield.
    watch: Option<EndWatch>,
}

/// Completes a yield with what a future gives, as [`Until`] does. For handlers.
pub fn answer(
    future: impl Future<Output = Result<Payload, CommandError>> + Send + 'static,
    completer: Completer,
) {
    start(Box::pin(future), completer);
}

fn start(wait: Wait, completer: Completer) {
    let driven = Arc::new(Driven {
        // The first turn is this thread's.
        turns: AtomicU32::new(1),
        end: AtomicU32::new(WANTED),
        put_off: AtomicU32::new(0),
        waiting: TryLock::new(None),
    });
    let mut waiting = Waiting {
        wait,
        completer,
        polls: 0,
        watch: None,
    };
    let waker = Waker::from(Arc::clone(&driven));
    if let Some(result) = failing::apart(|| waiting.poll(&waker)) {
        return waiting.finish(Some(result), false);
    }
    let weak = Arc::downgrade(&driven);
    waiting.watch = waiting.completer.on_end(move || {
        if let Some(driven) = weak.upgrade() {
            let end = if failing::is_failing() {
                FAILED
            } else {
                UNWANTED
            };
            // Ordering: Relaxed, because the count of turns orders it.
            driven.end.store(end, Ordering::Relaxed);
            driven.turn();
        }
    });
    if waiting.watch.is_none() {
        // A process that has ended wants no result.
        return waiting.finish(None, failing::is_failing());
    }
    let left = driven.waiting.try_with(|place| *place = Some(waiting));
    debug_assert!(left.is_ok(), "the turn is this thread's");
    if let Some(turns) = driven.end(1) {
        driven.run(turns);
    }
}

impl Waiting {
    /// The result, when the future is ready.
    fn poll(&mut self, waker: &Waker) -> Option<Result<Payload, CommandError>> {
        self.polls += 1;
        let (wait, process) = (self.wait.as_mut(), self.completer.asker());
        let poll = || watch::polling_for(process, || wait.poll(&mut Context::from_waker(waker)));
        match catch_unwind(AssertUnwindSafe(poll)) {
            Ok(Poll::Pending) => None,
            Ok(Poll::Ready(result)) => Some(result),
            Err(panic) => {
                let text = panic_text(&*panic).unwrap_or("a panic without a message");
                Some(Err(CommandError::Panicked(text.into())))
            }
        }
    }

    /// Without a lock: what is dropped is foreign code, which may wake.
    fn finish(self, result: Option<Result<Payload, CommandError>>, has_failed: bool) {
        let Self {
            wait, completer, ..
        } = self;
        // Its panic is no matter of the thread that has woken it.
        let _panic = catch_unwind(AssertUnwindSafe(|| {
            failing::within(has_failed, || drop(wait));
        }));
        if let Some(result) = result {
            completer.finish(result);
        }
    }
}

thread_local! {
    /// What this thread polls next, while it polls something.
    static NEXT: RefCell<Option<VecDeque<Arc<Driven>>>> = const { RefCell::new(None) };
}

/// Runs it, or leaves that to the caller that runs something on this thread.
fn in_a_row(first: &Arc<Driven>) {
    /// Runs what is left, also after a panic.
    struct Row(Option<Arc<Driven>>);
    impl Row {
        fn run(&mut self) {
            let next = || NEXT.with_borrow_mut(|next| next.as_mut()?.pop_front());
            while let Some(it) = self.0.take().or_else(next) {
                it.run(1);
            }
            NEXT.set(None);
        }
    }
    impl Drop for Row {
        fn drop(&mut self) {
            self.run();
        }
    }
    let is_begun = NEXT.try_with(|next| match &mut *next.borrow_mut() {
        // The waker is called inside of another poll.
        Some(row) => {
            row.push_back(Arc::clone(first));
            true
        }
        place => {
            *place = Some(VecDeque::new());
            false
        }
    });
    match is_begun {
        Ok(true) => {}
        Ok(false) => {
            first.begin_row();
            Row(Some(Arc::clone(first))).run();
        }
        // The thread ends.
        Err(_) => first.run(1),
    }
}

impl Driven {
    /// Polls, unless another thread does: that one polls again.
    fn turn(self: &Arc<Self>) {
        // Ordering: AcqRel pairs with itself and with the one in `end`: the poll sees what was done
        // before each wake-up that it answers, and what the poll before it did.
        if self.turns.fetch_add(1, Ordering::AcqRel) == 0 {
            in_a_row(self);
        }
    }

    /// No poll is under way on this thread, which has the turn.
    fn begin_row(&self) {
        let begun = self.waiting.try_with(|place| {
            if let Some(waiting) = place {
                waiting.polls = 0;
            }
        });
        debug_assert!(begun.is_ok(), "the turn is this thread's");
    }

    /// So many turns are over. How many have come meanwhile, if any.
    fn end(&self, turns: u32) -> Option<u32> {
        // Ordering: as in `turn`.
        let left = self.turns.fetch_sub(turns, Ordering::AcqRel) - turns;
        (left > 0).then_some(left)
    }

    /// Polls as often as there are turns, of which it has seen so many.
    fn run(self: &Arc<Self>, seen: u32) {
        failing::apart(|| self.run_apart(seen));
    }

    fn run_apart(self: &Arc<Self>, mut seen: u32) {
        let waker = Waker::from(Arc::clone(self));
        loop {
            if self.put_off(seen) {
                return;
            }
            let polled = self.waiting.try_with(|place| self.poll(place, &waker));
            if let Ok(Some((waiting, result))) = polled {
                // Ordering: Relaxed, because the count of turns orders it.
                let has_failed = self.end.load(Ordering::Relaxed) == FAILED;
                waiting.finish(result, has_failed);
            }
            match self.end(seen) {
                Some(turns) => seen = turns,
                None => return,
            }
        }
    }

    /// Leaves so many turns to the process, when it is time to. `false` otherwise, and where there
    /// is no process: the caller polls.
    fn put_off(self: &Arc<Self>, turns: u32) -> bool {
        let asker = self.waiting.try_with(|place| {
            let waiting = place.as_mut()?;
            if waiting.polls < POLLS {
                return None;
            }
            waiting.polls = 0;
            let completer = &waiting.completer;
            Some((completer.sink()?, completer.is_cancelled()))
        });
        let Ok(Some((sink, is_cancelled))) = asker else {
            return false;
        };
        // Ordering: Relaxed, because the mailbox orders it before the call, and the turns are this
        // thread's until then.
        self.put_off.store(turns, Ordering::Relaxed);
        let rest = Rest(Some(Arc::clone(self)));
        let Err(refused) = sink.between_steps(Box::new(move || rest.poll())) else {
            return true;
        };
        if !is_cancelled {
            // Ordering: Relaxed: the turns are this thread's.
            self.put_off.store(0, Ordering::Relaxed);
        }
        drop(refused);
        is_cancelled
    }

    /// Takes the future out when its wait is over, with the result if that is wanted.
    #[allow(clippy::type_complexity, reason = "it is used once")]
    fn poll(
        &self,
        place: &mut Option<Waiting>,
        waker: &Waker,
    ) -> Option<(Waiting, Option<Result<Payload, CommandError>>)> {
        // Ordering: Relaxed, because the count of turns orders it.
        if self.end.load(Ordering::Relaxed) != WANTED {
            return Some((place.take()?, None));
        }
        let result = place.as_mut()?.poll(waker)?;
        Some((place.take()?, Some(result)))
    }
}

/// A poll that is put off: the duty to answer the turns of it.
struct Rest(Option<Arc<Driven>>);

impl Rest {
    fn take(&mut self) -> Option<(Arc<Driven>, u32)> {
        let driven = self.0.take()?;
        // Ordering: Relaxed, as in `Driven::put_off`.
        let turns = driven.put_off.swap(0, Ordering::Relaxed);
        Some((driven, turns)).filter(|_| turns > 0)
    }

    fn poll(mut self) {
        if let Some((driven, turns)) = self.take() {
            driven.run(turns);
        }
    }
}

/// The process has ended, and the call at its end polls for the last time: that call knows whether
/// the process has failed.
impl Drop for Rest {
    fn drop(&mut self) {
        let Some((driven, mut turns)) = self.take() else {
            return;
        };
        // Ordering: Relaxed, because the count of turns orders it.
        while driven.end.load(Ordering::Relaxed) == WANTED {
            match driven.end(turns) {
                Some(left) => turns = left,
                None => return,
            }
        }
        driven.run(turns);
    }
}

impl Wake for Driven {
    fn wake(self: Arc<Self>) {
        self.turn();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.turn();
    }
}

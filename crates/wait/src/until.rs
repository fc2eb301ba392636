//! A yield that waits for a future: every wait has this face for state machines.
//!
//! **Problem.** A state machine has no place to poll a future, and gets completions. Each kind of
//! wait would need its own face for state machines.
//!
//! **Protocol.** The future is behind a counter of turns. Each wake-up adds a turn. The thread that
//! finds zero polls, and polls again while other threads have added turns. So a thread never waits
//! for another thread's poll. The poll with the result completes the yield. The end of the process,
//! or a yield taken back, sets a mark and wakes: the next poll drops the future. The mark says
//! whether the process has failed: the future's locks are marked then.
//!
//! **First poll.** The step's own thread makes it. A future that is then ready pays for no watch.
//!
//! **A future that wakes itself**, or two that wake each other, would keep the thread for ever, and
//! the worker of the thread could not end the process. After [`POLLS`] polls in a row a [`Rest`]
//! makes the next poll, between two steps of the process. Its turns stay counted until then, so no
//! other thread polls meanwhile. A wake-up outside of all polls starts the count of polls again: a
//! process may wait inside of a step for the effect of such a poll.
//!
//! **Depth.** A poll may wake another future, whose poll wakes the next, as along the waiters of a
//! lock. A thread polls them in a row, from its own list, and not inside of one another.

use crate::watch;
use ganger_proc_api::internal::Delivery;
use ganger_proc_api::{
    Command, CommandError, CommandId, Completer, EndWatch, Payload, TypedCommand,
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

/// Waits for a future: the completion brings its result, in the future's own type. The waking
/// threads poll the future, so it should wait, and do no work. The future is dropped if the process
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
    /// Creates a command that waits for a future.
    pub fn new(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self::fallible(async { Ok(future.await) })
    }

    /// Creates the wait as [`new`](Self::new) does, for a future that may fail: the completion is
    /// then its error.
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
/// After this many polls of a future in a row, the next is made between two steps of the process.
const POLLS: u32 = 64;

/// The result is not wanted.
const UNWANTED: u32 = 1;
/// The result is not wanted, because the process has failed.
const FAILED: u32 = 2;

/// A future, and the yield that waits for it.
struct Driven {
    /// The count of unanswered wake-ups.
    turns: AtomicU32,
    /// Whether the result is wanted.
    end: AtomicU32,
    /// The count of turns for a [`Rest`] to answer.
    put_off: AtomicU32,
    waiting: TryLock<Option<Waiting>>,
}

struct Waiting {
    wait: Wait,
    completer: Completer,
    /// The count of polls in a row.
    polls: u32,
    /// Makes the call at the end of the yield.
    watch: Option<EndWatch>,
}

/// Completes a yield with a future's result, as [`Until`] does. For handlers.
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
        // An ended process wants no result.
        return waiting.finish(None, failing::is_failing());
    }
    let left = driven.waiting.try_with(|place| *place = Some(waiting));
    debug_assert!(left.is_ok(), "the turn is this thread's");
    if let Some(turns) = driven.end(1) {
        driven.run(turns);
    }
}

impl Waiting {
    /// Polls the future. Returns its result when it is ready.
    fn poll(&mut self, waker: &Waker) -> Option<Result<Payload, CommandError>> {
        self.polls += 1;
        let (wait, process) = (self.wait.as_mut(), self.completer.asker());
        let poll = || watch::polling_for(process, || wait.poll(&mut Context::from_waker(waker)));
        match catch_unwind(AssertUnwindSafe(poll)) {
            Ok(Poll::Pending) => None,
            Ok(Poll::Ready(result)) => Some(result),
            Err(panic) => {
                let text = panic_text(&*panic).unwrap_or("non-string panic payload");
                Some(Err(CommandError::Panicked(text.into())))
            }
        }
    }

    /// Ends the wait. Must be called without a lock: the drops run foreign code, which may wake.
    fn finish(self, result: Option<Result<Payload, CommandError>>, has_failed: bool) {
        let Self {
            wait, completer, ..
        } = self;
        // A panic of the drop must not reach the waking thread.
        let _panic = catch_unwind(AssertUnwindSafe(|| {
            failing::within(has_failed, || drop(wait));
        }));
        if let Some(result) = result {
            completer.finish(result);
        }
    }
}

thread_local! {
    /// The next futures for this thread to poll; `None` while it polls none.
    static NEXT: RefCell<Option<VecDeque<Arc<Driven>>>> = const { RefCell::new(None) };
}

/// Polls the future. Inside of a poll of this thread, only adds the future to the thread's list.
fn in_a_row(first: &Arc<Driven>) {
    /// Runs the rest of the list, even after a panic.
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
        // The thread is ending.
        Err(_) => first.run(1),
    }
}

impl Driven {
    /// Adds a turn. Polls, unless another thread polls: the other thread then polls again.
    fn turn(self: &Arc<Self>) {
        // Ordering: AcqRel pairs with itself and with the AcqRel in `end`: the poll sees all writes
        // before each wake-up that it answers, and the writes of the poll before it.
        if self.turns.fetch_add(1, Ordering::AcqRel) == 0 {
            in_a_row(self);
        }
    }

    /// Starts the count of polls again. This thread has the turn, and is in no poll.
    fn begin_row(&self) {
        let begun = self.waiting.try_with(|place| {
            if let Some(waiting) = place {
                waiting.polls = 0;
            }
        });
        debug_assert!(begun.is_ok(), "the turn is this thread's");
    }

    /// Ends `turns` turns. Returns the count of turns added meanwhile, if any.
    fn end(&self, turns: u32) -> Option<u32> {
        // Ordering: AcqRel pairs with itself and with the AcqRel in `turn`: the next poll sees the
        // writes of this poll, and all writes before each wake-up that it answers.
        let left = self.turns.fetch_sub(turns, Ordering::AcqRel) - turns;
        (left > 0).then_some(left)
    }

    /// Polls until all turns are answered or put off. The caller has seen `seen` turns.
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

    /// Leaves the turns to the process after [`POLLS`] polls in a row. Returns `false` if the
    /// caller must poll: earlier, or without a process to call.
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
        // Ordering: Relaxed, because the mailbox orders the store before the call, and this thread
        // has the turns until then.
        self.put_off.store(turns, Ordering::Relaxed);
        let rest = Rest(Some(Arc::clone(self)));
        let Err(refused) = sink.between_steps(Box::new(move || rest.poll())) else {
            return true;
        };
        if !is_cancelled {
            // Ordering: Relaxed: this thread has the turns.
            self.put_off.store(0, Ordering::Relaxed);
        }
        drop(refused);
        is_cancelled
    }

    /// Takes the future out at the end of its wait, with its result if wanted.
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

/// A postponed poll. The poll must answer its turns.
struct Rest(Option<Arc<Driven>>);

impl Rest {
    fn take(&mut self) -> Option<(Arc<Driven>, u32)> {
        let driven = self.0.take()?;
        // Ordering: Relaxed: the mailbox orders the store in `put_off` before this, and this thread
        // has the turns.
        let turns = driven.put_off.swap(0, Ordering::Relaxed);
        Some((driven, turns)).filter(|_| turns > 0)
    }

    fn poll(mut self) {
        if let Some((driven, turns)) = self.take() {
            driven.run(turns);
        }
    }
}

/// The process has ended. The call at its end makes the last poll, because it knows whether the
/// process has failed. Before this call, a drop only gives up its turns; after it, a drop polls.
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

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
//! **Depth.** A poll may wake another future, and that one the next: all that wait for a lock, one
//! after another. A thread polls them in a row, from a list of its own, and not inside one another.

use crate::watch;
use ganger_proc_api::{
    Command, CommandError, CommandId, Completer, Delivery, EndWatch, Payload, TypedCommand,
};
use ganger_sync::atomic::{AtomicU32, Ordering};
use ganger_sync::{TryLock, failing};
use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// Waits for a future: the completion brings its result, as the future's own type. It is polled by
/// the threads that wake it, so it is to be a wait, and not work.
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
pub struct Until<T>(Pin<Box<dyn Future<Output = T> + Send>>);

impl<T> Until<T> {
    /// The command that waits for that future.
    pub fn new(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Box::pin(future))
    }
}

impl<T: Send + 'static> TypedCommand for Until<T> {
    type Answer = T;

    fn into_command(self) -> Command {
        let delivery = Delivery {
            value: Payload::any(self),
            run: |value, completer| {
                start(value.take::<Self>()?, completer);
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
/// It is not wanted any longer.
const UNWANTED: u32 = 1;
/// Nor is it, because its process has failed.
const FAILED: u32 = 2;

/// A future that is waited for.
pub(crate) struct Driven<T> {
    /// Wake-ups that no poll has answered.
    turns: AtomicU32,
    /// Whether the result is wanted.
    end: AtomicU32,
    waiting: TryLock<Option<Waiting<T>>>,
}

struct Waiting<T> {
    future: Until<T>,
    completer: Completer,
    /// Tells of the end of the yield.
    _watch: EndWatch,
}

fn start<T: Send + 'static>(future: Until<T>, completer: Completer) {
    let driven = Arc::new(Driven {
        // The first turn is this thread's.
        turns: AtomicU32::new(1),
        end: AtomicU32::new(WANTED),
        waiting: TryLock::new(None),
    });
    let weak = Arc::downgrade(&driven);
    let watch = completer.on_end(move || {
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
    // A process that has ended wants no result.
    let Some(watch) = watch else { return };
    let waiting = Waiting {
        future,
        completer,
        _watch: watch,
    };
    driven.run(Some(waiting));
}

thread_local! {
    /// What this thread polls next, while it polls something.
    static NEXT: RefCell<Option<VecDeque<Arc<dyn Runs>>>> = const { RefCell::new(None) };
}

trait Runs: Send + Sync {
    fn run_again(self: Arc<Self>);
}

impl<T: Send + 'static> Runs for Driven<T> {
    fn run_again(self: Arc<Self>) {
        self.run(None);
    }
}

/// Runs it, or leaves that to the caller that runs something on this thread.
fn in_a_row(first: Arc<dyn Runs>) {
    /// Runs what is left, also after a panic.
    struct Row(Option<Arc<dyn Runs>>);
    impl Row {
        fn run(&mut self) {
            let next = || NEXT.with_borrow_mut(|next| next.as_mut()?.pop_front());
            while let Some(it) = self.0.take().or_else(next) {
                it.run_again();
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
        Some(row) => {
            row.push_back(Arc::clone(&first));
            true
        }
        place => {
            *place = Some(VecDeque::new());
            false
        }
    });
    match is_begun {
        Ok(true) => {}
        Ok(false) => Row(Some(first)).run(),
        // The thread ends.
        Err(_) => first.run_again(),
    }
}

impl<T: Send + 'static> Driven<T> {
    /// Polls, unless another thread does: that one polls again.
    fn turn(self: &Arc<Self>) {
        // Ordering: AcqRel pairs with itself and with the one in `run`: the poll sees what was done
        // before each wake-up that it answers, and what the poll before it did.
        if self.turns.fetch_add(1, Ordering::AcqRel) == 0 {
            in_a_row(Arc::clone(self) as Arc<dyn Runs>);
        }
    }

    /// Polls as often as there are turns. The first one brings the future.
    fn run(self: &Arc<Self>, waiting: Option<Waiting<T>>) {
        failing::apart(|| self.run_apart(waiting));
    }

    fn run_apart(self: &Arc<Self>, mut waiting: Option<Waiting<T>>) {
        let waker = Waker::from(Arc::clone(self));
        let mut seen = 1;
        loop {
            let polled = self.waiting.try_with(|place| {
                if waiting.is_some() {
                    *place = waiting.take();
                }
                self.poll(place, &waker)
            });
            if let Ok(Some((waiting, result))) = polled {
                self.finish(waiting, result);
            }
            // Ordering: as in `turn`.
            let turns = self.turns.fetch_sub(seen, Ordering::AcqRel) - seen;
            if turns == 0 {
                return;
            }
            seen = turns;
        }
    }

    /// Takes the future out when its wait is over, with the result if that is wanted.
    #[allow(clippy::type_complexity, reason = "it is used once")]
    fn poll(
        &self,
        place: &mut Option<Waiting<T>>,
        waker: &Waker,
    ) -> Option<(Waiting<T>, Option<Result<T, CommandError>>)> {
        // Ordering: Relaxed, because the count of turns orders it.
        if self.end.load(Ordering::Relaxed) != WANTED {
            return Some((place.take()?, None));
        }
        let waiting = place.as_mut()?;
        let future = waiting.future.0.as_mut();
        let polled = catch_unwind(AssertUnwindSafe(|| {
            watch::polling_for(waiting.completer.pid(), || {
                future.poll(&mut Context::from_waker(waker))
            })
        }));
        let result = match polled {
            Ok(Poll::Pending) => return None,
            Ok(Poll::Ready(result)) => Ok(result),
            Err(panic) => Err(CommandError::Panicked(message(&*panic))),
        };
        Some((place.take()?, Some(result)))
    }

    /// Without the lock: what is dropped is foreign code, which may wake.
    fn finish(&self, waiting: Waiting<T>, result: Option<Result<T, CommandError>>) {
        let Waiting {
            future, completer, ..
        } = waiting;
        // Ordering: Relaxed, because the count of turns orders it.
        let has_failed = self.end.load(Ordering::Relaxed) == FAILED;
        // Its panic is no matter of the thread that has woken it.
        let _panic = catch_unwind(AssertUnwindSafe(|| {
            failing::within(has_failed, || drop(future));
        }));
        if let Some(result) = result {
            completer.finish(result.map(Payload::any));
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> Box<str> {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").into()
}

impl<T: Send + 'static> Wake for Driven<T> {
    fn wake(self: Arc<Self>) {
        self.turn();
    }
}

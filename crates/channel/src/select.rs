//! Waits for the first of several sends, receives and futures.
//!
//! **Problem.** A select commits to one case. A sender and a receiver without a buffer, both in
//! selects, must meet once or not at all, and each may be chosen elsewhere at the same moment.
//!
//! **Rejected.** To try all cases, be woken, and try them again: two selects without buffers that
//! are never both awake would never meet. A lock around all channels: unrelated selects would wait
//! for each other.
//!
//! **Protocol.**
//! 1. Try the cases in a random order. This takes one lock at a time, and ends at the first ready
//!    case: the select has no entry yet, so no other thread can choose it.
//! 2. Take the locks of all channels, in the order of their addresses. Try once more. If no case is
//!    ready, add an entry at each, and wait from then on (`claim.rs`).
//! 3. A thread that chooses a case serves it, and wakes the select. The select takes its other
//!    entries back.
//! 4. Futures wake a select as well. The select is busy while it polls them. If none is ready, step
//!    2 follows again, with the existing entries.
//!
//! **Why two selects meet.** The select that takes the lock of their channel second finds the other
//! waiting by its entry, or busy. A busy select checks again under this lock.
//!
//! **Why they meet once.** Only one thread changes the word of a waiting select. The other select
//! is not `WAITING` while it chooses.

use crate::block::block_on;
use crate::case::{
    Act, Acted, Case, Cases, FutureCase, Locked, NoCases, RecvCase, Said, SendCase, SendFromCase,
    Sends, What, With,
};
use crate::claim::Claim;
use crate::ends::{Receiver, Sender};
use crate::error::{RecvError, SelectError, SendError};
use crate::lock::{RawGuard, RawLock};
use ganger_wait::watch;
use smallvec::SmallVec;
use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The usual number of cases.
const FEW: usize = 8;

/// Creates a select without cases: the first ready case of those added to it decides.
///
/// Each case has its own function, which makes the outcome of the select. Of several ready cases,
/// the select chooses one at random; in a simulation by the seed. The other cases leave no trace:
/// they have received nothing, and sent nothing.
///
/// A task has `Cx::select` to wait for the first of its own waits, such as messages, answers and
/// sleeps.
///
/// ```
/// use ganger_channel::{channel, select};
///
/// let (numbers, from_numbers) = channel(1);
/// let (words, from_words) = channel::<&str>(1);
/// numbers.try_send(7)?;
/// let found = select()
///     .recv(&from_numbers, |it| format!("number {it:?}"))
///     .recv(&from_words, |it| format!("word {it:?}"))
///     .wait();
/// assert_eq!(found.as_deref(), Ok("number Ok(7)"));
/// # drop(words);
/// # Ok::<(), ganger_channel::SendError<i32>>(())
/// ```
pub fn select<R>() -> Select<R> {
    Select::of(NoCases)
}

/// A select under construction, and the future that waits for it: see [`select`].
///
/// # Panics
/// Polling it again after it was ready panics. Adding a case, or a condition, after the first poll
/// also panics: a waiting select already has its entries, and would wait at the new case for ever.
#[must_use = "a select does nothing until it is awaited: `.await`, `wait` or `try_now`"]
pub struct Select<R, L: Cases<R> = NoCases> {
    cases: L,
    phase: Phase,
    outcome: PhantomData<fn() -> R>,
}

#[derive(Debug)]
enum Phase {
    New,
    Waits(Arc<Claim>),
    Over,
}

/// The cases are moved, and never pinned.
impl<R, L: Cases<R>> Unpin for Select<R, L> {}

impl<R, L: Cases<R>> Select<R, L> {
    /// Creates a select over a list of cases, such as a `Vec` of any number of cases.
    pub fn of(cases: L) -> Self {
        Self {
            cases,
            phase: Phase::New,
            outcome: PhantomData,
        }
    }

    #[track_caller]
    fn with<C: Case<R>>(self, case: C) -> Select<R, With<C, L>> {
        let others = self.into_unpolled();
        Select::of(With { case, others })
    }

    /// Returns the cases of an unpolled select.
    #[track_caller]
    fn into_unpolled(self) -> L {
        assert!(
            matches!(self.phase, Phase::New),
            "a select that has been polled takes no more cases: add all of them before the first \
             poll"
        );
        self.cases
    }

    /// Adds a case that receives. A closed channel is ready, with the error.
    ///
    /// # Panics
    /// If the select has been polled.
    #[track_caller]
    pub fn recv<'a, T, F>(
        self,
        receiver: &'a Receiver<T>,
        then: F,
    ) -> Select<R, With<RecvCase<'a, T, F>, L>>
    where
        F: FnOnce(Result<T, RecvError>) -> R,
    {
        self.with(RecvCase::new(receiver, then))
    }

    /// Adds a case that sends a value. The value is dropped if another case is chosen.
    ///
    /// # Panics
    /// If the select has been polled.
    #[track_caller]
    pub fn send<'a, T, F>(
        self,
        sender: &'a Sender<T>,
        value: T,
        then: F,
    ) -> Select<R, With<SendCase<'a, T, F>, L>>
    where
        F: FnOnce(Result<(), SendError<T>>) -> R,
    {
        self.with(SendCase::new(sender, value, then))
    }

    /// Adds a case that sends the value in an option. The value stays there if another case is
    /// chosen. Never ready with `None`.
    ///
    /// # Panics
    /// If the select has been polled.
    #[track_caller]
    pub fn send_from<'a, T, F>(
        self,
        sender: &'a Sender<T>,
        value: &'a mut Option<T>,
        then: F,
    ) -> Select<R, With<SendFromCase<'a, T, F>, L>>
    where
        F: FnOnce(Result<(), SendError<T>>) -> R,
    {
        self.with(Sends::of(sender, value, then))
    }

    /// Adds a case that waits for a future: a sleep, a lock, anything. A future that must be pinned
    /// is given as `pin!(future)`.
    ///
    /// # Panics
    /// If the select has been polled.
    #[track_caller]
    pub fn future<U, F>(self, future: U, then: F) -> Select<R, With<FutureCase<U, F>, L>>
    where
        U: Future + Unpin,
        F: FnOnce(U::Output) -> R,
    {
        self.with(FutureCase::new(future, then))
    }

    /// Returns the outcome of a case that is ready now; `None` if none is. Never blocks.
    pub fn try_now(mut self) -> Option<R> {
        self.first().or_else(|| self.give_up())
    }

    /// Waits for the first case, and blocks the thread. Does not block a worker of a scheduler.
    ///
    /// # Errors
    /// [`SelectError::OnWorker`] if it would wait in a step.
    pub fn wait(self) -> Result<R, SelectError> {
        self.wait_within(None)
    }

    /// Waits for the first case, as [`wait`](Self::wait) does, but for at most `timeout`.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), and [`SelectError::Timeout`].
    pub fn wait_timeout(self, timeout: Duration) -> Result<R, SelectError> {
        self.wait_within(Some(timeout))
    }

    fn wait_within(mut self, timeout: Option<Duration>) -> Result<R, SelectError> {
        if let Some(outcome) = self.first() {
            return Ok(outcome);
        }
        if !ganger_sched::internal::may_block("a select", "`.await`") {
            return self.give_up().ok_or(SelectError::OnWorker);
        }
        let waited = block_on(&mut self, timeout);
        waited
            .or_else(|| self.give_up())
            .ok_or(SelectError::Timeout)
    }

    /// Returns the outcome of a ready case. A polled select may have been chosen meanwhile.
    fn first(&mut self) -> Option<R> {
        let mut context = Context::from_waker(Waker::noop());
        if matches!(self.phase, Phase::New) {
            let order = order(self.cases.count());
            return self.try_all(&order, &mut context);
        }
        match Pin::new(self).poll(&mut context) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        }
    }

    /// Tries all cases: step 1.
    fn try_all(&mut self, order: &[usize], context: &mut Context<'_>) -> Option<R> {
        for &number in order {
            if let Said::Is(outcome) = self.act(number, What::Try(context)) {
                self.phase = Phase::Over;
                return Some(outcome);
            }
        }
        None
    }

    fn act(&mut self, number: usize, what: What<'_, '_>) -> Said<R> {
        let case = self.cases.at(number);
        case.map_or(Said::Nothing, |case| {
            let Acted(said) = case.act(Act(what));
            said
        })
    }

    /// Adds entries, or returns a ready case: step 2.
    fn enlist(&mut self, order: &[usize], claim: &Arc<Claim>) -> Option<usize> {
        // SAFETY: dropped below, while the select still has its cases.
        let locks = unsafe { Locks::take(self) };
        let mut ready = None;
        for &number in order {
            // SAFETY: `locks` has the locks of all channels until it is dropped below.
            let locked = unsafe { Locked::new(claim, number) };
            if let Said::Ready = self.act(number, What::Enlist(locked)) {
                ready = Some(number);
                break;
            }
        }
        match ready {
            None => claim.wait(),
            Some(_) => claim.end(),
        }
        drop(locks);
        if ready.is_none() && watch::is_on() {
            for number in 0..self.cases.count() {
                self.act(number, What::Register);
            }
        }
        ready
    }

    /// Returns the outcome of the chosen case.
    fn finish(&mut self, chosen: usize) -> R {
        self.phase = Phase::Over;
        for number in (0..self.cases.count()).filter(|&it| it != chosen) {
            self.act(number, What::Leave);
        }
        match self.act(chosen, What::Finish) {
            Said::Is(outcome) => outcome,
            _ => unreachable!("the case that was chosen has an outcome"),
        }
    }

    /// Gives up the wait. Returns the outcome, if a case has been chosen.
    fn give_up(&mut self) -> Option<R> {
        let Phase::Waits(claim) = &self.phase else {
            return None;
        };
        match claim.give_up() {
            Ok(()) => None,
            Err(chosen) => Some(self.finish(chosen)),
        }
    }

    /// Polls a select that waits. If the code of a future panics, the select stays busy, and the
    /// next poll goes on.
    fn poll_again(&mut self, claim: &Arc<Claim>, context: &mut Context<'_>) -> Poll<R> {
        if let Some(chosen) = claim.chosen() {
            return Poll::Ready(self.finish(chosen));
        }
        claim.set_waker(context.waker());
        if let Err(chosen) = claim.begin() {
            return Poll::Ready(self.finish(chosen));
        }
        let order = order(self.cases.count());
        for &number in &order {
            if let Said::Is(outcome) = self.act(number, What::Poll(context)) {
                claim.end();
                self.phase = Phase::Over;
                for number in 0..self.cases.count() {
                    self.act(number, What::Leave);
                }
                return Poll::Ready(outcome);
            }
        }
        self.enlist(&order, claim)
            .map_or(Poll::Pending, |chosen| Poll::Ready(self.finish(chosen)))
    }
}

impl<R, C: Case<R>, L: Cases<R>> Select<R, With<C, L>> {
    /// Leaves out the last added case, and drops it at once, if the condition is false. A select
    /// without a remaining case waits for ever.
    ///
    /// # Panics
    /// If the select has been polled.
    ///
    /// ```
    /// use ganger_channel::{channel, select};
    ///
    /// let (sender, receiver) = channel(1);
    /// sender.try_send(7)?;
    /// let take_if = |is_wanted| {
    ///     select()
    ///         .recv(&receiver, |it| it.ok())
    ///         .when(is_wanted)
    ///         .try_now()
    /// };
    /// assert_eq!(take_if(false), None);
    /// assert_eq!(take_if(true), Some(Some(7)));
    /// # Ok::<(), ganger_channel::SendError<i32>>(())
    /// ```
    #[track_caller]
    pub fn when(self, condition: bool) -> Select<R, With<Option<C>, L>> {
        let With { case, others } = self.into_unpolled();
        let case = condition.then_some(case);
        Select::of(With { case, others })
    }
}

impl<R, L: Cases<R>> Future for Select<R, L> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        let this = &mut *self;
        match &this.phase {
            Phase::New => {
                let order = order(this.cases.count());
                if let Some(outcome) = this.try_all(&order, context) {
                    return Poll::Ready(outcome);
                }
                let claim = Arc::new(Claim::new(context.waker().clone()));
                if let Some(chosen) = this.enlist(&order, &claim) {
                    return Poll::Ready(this.finish(chosen));
                }
                this.phase = Phase::Waits(claim);
                Poll::Pending
            }
            Phase::Waits(claim) => {
                let claim = Arc::clone(claim);
                this.poll_again(&claim, context)
            }
            Phase::Over => {
                panic!("the outcome has been taken: a future is polled until it is ready")
            }
        }
    }
}

impl<R, L: Cases<R>> fmt::Debug for Select<R, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cases = self.cases.count();
        f.debug_struct("Select")
            .field("cases", &cases)
            .finish_non_exhaustive()
    }
}

/// Returns the numbers below `count`, in a random order. A model leaves nothing to chance.
fn order(count: usize) -> SmallVec<[usize; FEW]> {
    let mut order: SmallVec<[usize; FEW]> = (0..count).collect();
    if cfg!(ganger_loom) {
        return order;
    }
    for left in (2..=count).rev() {
        let Some(chosen) = ganger_sched::internal::choose("case", left) else {
            // Not in a simulation.
            shuffle(&mut order);
            break;
        };
        order.swap(left - 1, chosen);
    }
    order
}

fn shuffle(order: &mut [usize]) {
    SEED.with(|seed| {
        // The address of the seed distinguishes threads.
        let own = std::ptr::from_ref(seed).addr() as u64;
        let mut random = fastrand::Rng::with_seed(seed.get() ^ own);
        random.shuffle(order);
        seed.set(random.get_seed() ^ own);
    });
}

thread_local! {
    static SEED: Cell<u64> = const { Cell::new(0) };
}

/// The locks of all channels of a select, held by this thread until dropped.
struct Locks<'a>(#[expect(dead_code, reason = "it is dropped")] SmallVec<[RawGuard<'a>; FEW]>);

impl Locks<'_> {
    /// Takes the locks of all channels of a select.
    ///
    /// # Safety
    /// The locks are dropped while the cases of the select still borrow their channels.
    unsafe fn take<R, L: Cases<R>>(select: &mut Select<R, L>) -> Self {
        let mut locks: SmallVec<[*const RawLock; FEW]> = SmallVec::new();
        for number in 0..select.cases.count() {
            select.act(number, What::Lock(&mut |lock| locks.push(lock)));
        }
        // SAFETY: a case of the select has named each lock, and borrows its channel for longer than
        // `Locks` lives, by the contract of this function.
        let lock = |it: &*const RawLock| unsafe { &**it };
        locks.sort_unstable_by_key(|it| lock(it).place());
        locks.dedup();
        Self(locks.iter().map(|it| lock(it).lock()).collect())
    }
}

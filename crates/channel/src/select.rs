//! Waiting for the first of several sends, receives and futures.
//!
//! **Problem.** A select commits to one case. A sender and a receiver without a buffer, both in
//! selects, must meet once or not at all, and each may be chosen elsewhere at that moment.
//!
//! **Rejected.** To try all cases, be woken, and try them again: two selects without buffers that
//! are never both awake would never meet. A lock around all channels: those that have nothing to do
//! with each other would wait.
//!
//! **Protocol.**
//! 1. Try the cases in a random order. This takes one lock at a time, and ends at the first that is
//!    ready: the select has no place anywhere, so no other thread can choose it.
//! 2. Take the locks of all channels, in the order of their addresses. Try once more. When none is
//!    ready, take a place at each, and wait from then on (`claim.rs`).
//! 3. A thread that chooses a case serves it, and wakes the select. The select takes its other
//!    places back.
//! 4. A select with futures is woken by them as well. It is busy while it polls them. When none is
//!    ready, step 2 follows again, with the places that it has.
//!
//! **Why two selects meet.** Whichever takes the lock of their channel second finds the other in
//! its place, or it is busy. One that is busy looks again under that lock.
//!
//! **Why they meet once.** One thread changes the word of a select that waits. The other select is
//! not `WAITING` while it chooses.

use crate::block::block_on;
use crate::case::{
    Act, Acted, Case, Cases, FutureCase, Locked, NoCases, RecvCase, Said, SendCase, SendFromCase,
    Sends, What, With,
};
use crate::claim::Claim;
use crate::ends::{Receiver, Sender};
use crate::error::{RecvError, SelectError, SendError};
use crate::lock::RawLock;
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

/// How many cases there are mostly.
const FEW: usize = 8;

/// A select without cases: the first of those that are added, and is ready, counts.
///
/// Each case has a function that makes the outcome of the select of its own. When several are
/// ready, one of them is chosen at random; in a simulation by the seed. Cases that are not chosen
/// leave no trace: they have received nothing, and sent nothing.
///
/// A task that waits for the first of its own waits, such as messages, answers and sleeps, has
/// `Cx::select` for that.
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

/// A select that is being put together, and the future that waits for it: see [`select`].
///
/// # Panics
/// Polling it again after it was ready panics, and so does adding a case, or a condition, after the
/// first poll: a select that waits has its places already, and would wait at the new case for ever.
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
    /// A select over cases of one kind, as many as there are: a `Vec` of them.
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

    /// The cases of a select that has a place nowhere.
    #[track_caller]
    fn into_unpolled(self) -> L {
        assert!(
            matches!(self.phase, Phase::New),
            "a select that has been polled takes no more cases: add all of them before the first \
             poll"
        );
        self.cases
    }

    /// Or receives from there. A channel that is closed is ready, with the error.
    ///
    /// # Panics
    /// When the select has been polled.
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

    /// Or sends that value. It is dropped when another case is chosen.
    ///
    /// # Panics
    /// When the select has been polled.
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

    /// Or sends the value that is there, which is left there when another case is chosen. Never
    /// ready with `None`.
    ///
    /// # Panics
    /// When the select has been polled.
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

    /// Or waits for a future: a sleep, a lock, anything. One that has to be pinned is given as
    /// `pin!(future)`.
    ///
    /// # Panics
    /// When the select has been polled.
    #[track_caller]
    pub fn future<U, F>(self, future: U, then: F) -> Select<R, With<FutureCase<U, F>, L>>
    where
        U: Future + Unpin,
        F: FnOnce(U::Output) -> R,
    {
        self.with(FutureCase::new(future, then))
    }

    /// The outcome of a case that is ready now; `None` when none is. Never blocks.
    pub fn try_now(mut self) -> Option<R> {
        self.first().or_else(|| self.give_up())
    }

    /// Waits for the first case, and blocks the thread meanwhile. A worker of a scheduler it does
    /// not block.
    ///
    /// # Errors
    /// [`SelectError::OnWorker`] where it would wait in a step.
    pub fn wait(self) -> Result<R, SelectError> {
        self.wait_within(None)
    }

    /// As [`wait`](Self::wait), for no longer than that.
    ///
    /// # Errors
    /// As there, and [`SelectError::Timeout`].
    pub fn wait_timeout(self, timeout: Duration) -> Result<R, SelectError> {
        self.wait_within(Some(timeout))
    }

    fn wait_within(mut self, timeout: Option<Duration>) -> Result<R, SelectError> {
        if let Some(outcome) = self.first() {
            return Ok(outcome);
        }
        if !ganger_sched::may_block("a select", "`.await`") {
            return self.give_up().ok_or(SelectError::OnWorker);
        }
        let waited = block_on(&mut self, timeout);
        waited
            .or_else(|| self.give_up())
            .ok_or(SelectError::Timeout)
    }

    /// The case that is ready now. One that has been polled before may have been chosen meanwhile.
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

    /// Step 1.
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

    /// Step 2: the case that is ready, if there is one.
    fn enlist(&mut self, order: &[usize], claim: &Arc<Claim>) -> Option<usize> {
        let locks = Locks::take(self);
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

    /// That case has been chosen: its outcome.
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

    /// It waits no longer. The outcome, if a case has been chosen.
    fn give_up(&mut self) -> Option<R> {
        let Phase::Waits(claim) = &self.phase else {
            return None;
        };
        match claim.give_up() {
            Ok(()) => None,
            Err(chosen) => Some(self.finish(chosen)),
        }
    }

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
    /// The case before this is left out where the condition does not hold, and is dropped at once.
    /// A select without a case that is left waits for ever.
    ///
    /// # Panics
    /// When the select has been polled.
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
                this.phase = Phase::Waits(Arc::clone(&claim));
                let ready = this.enlist(&order, &claim);
                ready.map_or(Poll::Pending, |chosen| Poll::Ready(this.finish(chosen)))
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

/// The numbers below that, in a random order. A model leaves nothing to chance.
fn order(count: usize) -> SmallVec<[usize; FEW]> {
    let mut order: SmallVec<[usize; FEW]> = (0..count).collect();
    if cfg!(ganger_loom) {
        return order;
    }
    for left in (2..=count).rev() {
        let Some(chosen) = ganger_sched::choose("case", left) else {
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
        // Its address tells threads apart.
        let own = std::ptr::from_ref(seed).addr() as u64;
        let mut random = fastrand::Rng::with_seed(seed.get() ^ own);
        random.shuffle(order);
        seed.set(random.get_seed() ^ own);
    });
}

thread_local! {
    static SEED: Cell<u64> = const { Cell::new(0) };
}

/// The locks of all channels of a select, which this thread has until this is dropped.
struct Locks(SmallVec<[*const RawLock; FEW]>);

impl Locks {
    fn take<R, L: Cases<R>>(select: &mut Select<R, L>) -> Self {
        let mut locks: SmallVec<[*const RawLock; FEW]> = SmallVec::new();
        for number in 0..select.cases.count() {
            select.act(number, What::Lock(&mut |lock| locks.push(lock)));
        }
        locks.sort_unstable();
        locks.dedup();
        for &lock in &locks {
            // SAFETY: a case of the select has named it, and borrows its channel for longer than
            // this lives.
            unsafe { &*lock }.lock();
        }
        Self(locks)
    }
}

impl Drop for Locks {
    fn drop(&mut self) {
        for &lock in self.0.iter().rev() {
            // SAFETY: as in `take`, which has locked it.
            unsafe { &*lock }.unlock();
        }
    }
}

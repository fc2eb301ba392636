//! A rate: so many acts a second, and some at once.
//!
//! **Problem.** Many processes, tasks and threads share a rate. What is too early waits, in the
//! order of the requests, or is told how long to wait. A wait that is given up leaves no hole.
//!
//! **Rejected.** To give each request a moment at once, and let it sleep until then: the moment of
//! one that leaves is lost, or those behind it come earlier than they were told.
//!
//! **Source.** The token bucket is that of J. Turner, "New directions in communications (or which
//! way to the information age?)", 1986. It is kept as one moment, as in the virtual scheduling
//! algorithm of ITU-T I.371: the one at which the bucket is full again.
//!
//! **Protocol.** One lock has the bucket and the queue of requests.
//! 1. A request takes its tokens if no other waits and they are there. If not, it is queued.
//! 2. The thread that queues one behind none sets a timer for the moment at which the first in the
//!    queue has its tokens.
//! 3. The timer serves the queue, and runs again for the one that is first then. So does the end of
//!    a request that leaves, because those behind it may want less.
//!
//! A request is answered without the lock. The timer holds the limiter. When it goes without being
//! due, the scheduler has halted, and all requests are told.

use ganger_proc_api::{EndWatch, Instant, Reply};
use ganger_sched::{Call, Handle, Timers, WeakHandle};
use ganger_sync::sync::{Mutex, lock};
use ganger_time::internal::{NotSet, OnTime};
use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

/// Lets through so many acts a second, and some at once after a pause: a token bucket. Clones are
/// the same limiter, which processes, tasks and threads share.
///
/// In any span of `t` seconds at most `burst + t * per_second` tokens are given. Requests that wait
/// are served in their order, and none overtakes them. It is full at first.
///
/// ```
/// use ganger_proc_api::BoxError;
/// use ganger_sched::Scheduler;
/// use ganger_lock::{RateLimitError, RateLimiter};
///
/// let scheduler = Scheduler::builder().start()?;
/// let mails = RateLimiter::new(&scheduler, 100, 2); // 100 a second, and 2 at once.
/// mails.try_acquire(1)?;
/// mails.try_acquire(1)?;
/// let Err(RateLimitError::Exceeded { wait }) = mails.try_acquire(1) else { panic!() };
/// assert!(wait.as_millis() <= 10);
/// // In a task: `mails.acquire(1).await?`. In a step: `out.ask(mails.acquire(1), tag)`.
/// mails.acquire(1).wait()?;
/// # Ok::<(), BoxError>(())
/// ```
#[derive(Clone)]
pub struct RateLimiter {
    shared: Arc<Shared>,
}

/// Why there are no tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RateLimitError {
    /// There are not as many at this moment, or others wait for them.
    #[error("the rate is exceeded; try again in {wait:?}, or wait with `acquire`")]
    Exceeded {
        /// After how long there would be, if no other request came meanwhile.
        wait: Duration,
    },
    /// There are never as many at once.
    #[error("too many tokens at once: the burst is {burst}; ask for fewer")]
    AboveBurst {
        /// How many there may be at once.
        burst: u32,
    },
    /// The scheduler has stopped: no request that waits is served any more.
    #[error("the scheduler of the rate limiter has stopped")]
    Stopped,
}

impl RateLimiter {
    /// So many tokens a second, such as `100` or `0.5`, up to `burst` at once, at least one. The
    /// time is that of the scheduler.
    ///
    /// With a burst of one, a request that waits and is served a little late costs the rate that
    /// time. A larger burst makes up for it.
    ///
    /// # Panics
    /// When the rate is not a number above zero, or infinite.
    #[must_use]
    pub fn new(scheduler: &Handle, per_second: impl Into<f64>, burst: u32) -> Self {
        let state = State {
            bucket: Bucket::new(per_second.into(), burst),
            queue: BTreeMap::new(),
            queued: 0,
            next: 0,
            armed: Instant::NEVER,
            is_stopped: false,
        };
        let shared = Arc::new(Shared {
            timers: scheduler.timers().clone(),
            scheduler: scheduler.downgrade(),
            state: Mutex::new(state),
        });
        Self { shared }
    }

    /// Takes so many tokens, if they are there and no request waits. Never blocks. O(1).
    ///
    /// # Errors
    /// [`RateLimitError::Exceeded`], with the time after which it is worth trying again: that is
    /// what a server says in `Retry-After`. [`RateLimitError::AboveBurst`].
    pub fn try_acquire(&self, tokens: u32) -> Result<(), RateLimitError> {
        let now = self.shared.timers.now();
        lock(&self.shared.state).try_take(now, tokens)
    }

    /// Waits for so many tokens: a question, which a step asks by `out.ask(call, tag)`, a task by
    /// `.await`, and a thread by [`wait`](Call::wait). Requests are served in the order in which
    /// they were asked. O(log n) with n that wait.
    ///
    /// A question that is given up before its answer takes nothing: by `out.cancel(tag)`, the end
    /// of its process, or a future that is dropped.
    ///
    /// ```
    /// use ganger_proc_api::{
    ///     Actor, BoxError, Completion, Context, StepOutput, StepResult,
    /// };
    /// use ganger_lock::RateLimiter;
    /// use ganger_sched::Scheduler;
    ///
    /// /// Fetches pages, not too many a second.
    /// struct Crawler(RateLimiter, Vec<String>);
    ///
    /// impl Actor for Crawler {
    ///     type Message = String;
    ///
    ///     fn receive(&mut self, _: &Context, url: String, out: &mut StepOutput) -> StepResult {
    ///         self.1.push(url);
    ///         out.ask(self.0.acquire(1), 7);
    ///         Ok(())
    ///     }
    ///
    ///     fn completed(
    ///         &mut self,
    ///         _: &Context,
    ///         it: Completion,
    ///         out: &mut StepOutput,
    ///     ) -> StepResult {
    ///         it.result?; // A token is here, for the oldest.
    ///         println!("{}", self.1.remove(0));
    ///         if self.1.is_empty() {
    ///             out.done(());
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let scheduler = Scheduler::builder().start()?;
    /// let limiter = RateLimiter::new(&scheduler, 1_000, 1);
    /// let crawler = scheduler.spawn(Crawler(limiter, Vec::new()))?;
    /// crawler.send("http://one".into())?;
    /// assert!(crawler.wait().is_done());
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// # Errors
    /// The answer's: [`RateLimitError::AboveBurst`] and [`RateLimitError::Stopped`], as what has
    /// [failed](ganger_proc_api::CommandError::Failed).
    pub fn acquire(&self, tokens: u32) -> Call<()> {
        let ask = move |shared: Arc<Shared>, reply| {
            shared.request(tokens, reply);
            Ok(())
        };
        Call::by_inside(Arc::clone(&self.shared), |it| Some(&it.scheduler), ask)
    }

    /// How many tokens are there at this moment. Those that wait have a claim on them.
    #[must_use]
    pub fn available(&self) -> u32 {
        let now = self.shared.timers.now();
        lock(&self.shared.state).bucket.available(now)
    }
}

impl fmt::Debug for RateLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.shared.state);
        f.debug_struct("RateLimiter")
            .field("burst", &state.bucket.burst)
            .field("waiting", &state.queue.len())
            .finish_non_exhaustive()
    }
}

struct Shared {
    timers: Timers,
    scheduler: WeakHandle,
    state: Mutex<State>,
}

struct State {
    bucket: Bucket,
    /// The requests that wait, by the order in which they came.
    queue: BTreeMap<u64, Request>,
    /// How many tokens they want.
    queued: u64,
    /// The number of the next request.
    next: u64,
    /// For when a timer runs.
    armed: Instant,
    is_stopped: bool,
}

struct Request {
    tokens: u32,
    reply: Reply<()>,
    /// Tells when the answer is not wanted any longer.
    _watch: EndWatch,
}

impl Shared {
    /// Answers a request now, or queues it.
    fn request(self: &Arc<Self>, tokens: u32, reply: Reply<()>) {
        let now = self.timers.now();
        let mut state = lock(&self.state);
        let error = match state.try_take(now, tokens) {
            Ok(()) => {
                drop(state);
                return reply.complete(());
            }
            Err(RateLimitError::Exceeded { .. }) if !state.is_stopped => None,
            Err(RateLimitError::Exceeded { .. }) => Some(RateLimitError::Stopped),
            Err(error) => Some(error),
        };
        if let Some(error) = error {
            drop(state);
            return reply.fail(error);
        }
        let number = state.next;
        let weak = Arc::downgrade(self);
        // The call takes the lock, but is not made here.
        let watch = reply.on_end(move || {
            if let Some(shared) = weak.upgrade() {
                shared.left(number);
            }
        });
        let Some(watch) = watch else {
            drop(state);
            return drop(reply);
        };
        state.next += 1;
        state.queued += u64::from(tokens);
        let request = Request {
            tokens,
            reply,
            _watch: watch,
        };
        state.queue.insert(number, request);
        drop(state);
        self.serve();
    }

    /// The answer to that request is not wanted any longer.
    fn left(self: &Arc<Self>, number: u64) {
        let left = lock(&self.state).remove(number);
        if left.is_some() {
            drop(left);
            self.serve();
        }
    }

    /// Gives tokens to the first requests, as far as there are some, and sets the timer for the one
    /// that is first then.
    fn serve(self: &Arc<Self>) {
        loop {
            let now = self.timers.now();
            let mut state = lock(&self.state);
            let served = state.serve(now);
            let due = state.arm();
            drop(state);
            for request in served {
                request.reply.complete(());
            }
            let Some(due) = due else { return };
            match self.timers.call_at(due, Arc::clone(self) as _) {
                Ok(_) => return,
                Err(NotSet::Halted) => return self.stop(),
                Err(NotSet::Due) => lock(&self.state).armed = Instant::NEVER,
            }
        }
    }
}

impl State {
    fn try_take(&mut self, now: Instant, tokens: u32) -> Result<(), RateLimitError> {
        let burst = self.bucket.burst;
        if tokens > burst {
            return Err(RateLimitError::AboveBurst { burst });
        }
        let at = if self.queue.is_empty() {
            match self.bucket.take(now, tokens) {
                Ok(()) => return Ok(()),
                Err(at) => at,
            }
        } else {
            self.bucket.at(now, self.queued + u64::from(tokens))
        };
        let wait = at.since(now);
        Err(RateLimitError::Exceeded { wait })
    }

    fn remove(&mut self, number: u64) -> Option<Request> {
        let request = self.queue.remove(&number)?;
        self.queued -= u64::from(request.tokens);
        Some(request)
    }

    /// Takes out the requests for which there are tokens.
    fn serve(&mut self, now: Instant) -> Vec<Request> {
        let mut served = Vec::new();
        while let Some((&number, first)) = self.queue.first_key_value()
            && self.bucket.take(now, first.tokens).is_ok()
        {
            served.extend(self.remove(number));
        }
        served
    }

    /// For when a timer is to be set, if none runs that is as early.
    fn arm(&mut self) -> Option<Instant> {
        let (_, first) = self.queue.first_key_value()?;
        let due = self.bucket.at(START, first.tokens.into());
        if due >= self.armed {
            return None;
        }
        self.armed = due;
        Some(due)
    }
}

/// The timer.
impl OnTime for Shared {
    fn fire(self: Arc<Self>) {
        let now = self.timers.now();
        let mut state = lock(&self.state);
        // Another one may run that was set later.
        if state.armed <= now {
            state.armed = Instant::NEVER;
        }
        drop(state);
        self.serve();
    }

    fn halt(self: Arc<Self>) {
        self.stop();
    }
}

impl Shared {
    /// The scheduler has halted: no request is served any more.
    fn stop(&self) {
        let mut state = lock(&self.state);
        state.is_stopped = true;
        state.queued = 0;
        let all = mem::take(&mut state.queue);
        drop(state);
        for request in all.into_values() {
            request.reply.fail(RateLimitError::Stopped);
        }
    }
}

/// The first moment.
const START: Instant = Instant::from_nanos(0);

/// Times in the bucket are in parts of a nanosecond: so many bits are behind the point. A rate is
/// exact to about one in a billion up to a token a nanosecond.
const POINT: u32 = 32;

/// A time between two tokens that is longer is none that a clock sees the end of.
const LONGEST: f64 = u64::MAX as f64;

/// A token bucket.
struct Bucket {
    /// The time between two tokens.
    interval: u128,
    burst: u32,
    /// When it is full, or was.
    full: u128,
}

impl Bucket {
    fn new(per_second: f64, burst: u32) -> Self {
        assert!(
            per_second > 0.0 && per_second.is_finite(),
            "invalid rate {per_second}: tokens a second must be a number above zero"
        );
        let nanos = (1e9 / per_second).min(LONGEST);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is above zero, and has 96 bits before the point at the most"
        )]
        let interval = (nanos * f64::from(POINT).exp2()) as u128;
        Self {
            interval: interval.max(1),
            burst: burst.max(1),
            full: 0,
        }
    }

    /// Takes tokens, or says when they will be there.
    fn take(&mut self, now: Instant, tokens: u32) -> Result<(), Instant> {
        let at = self.at(now, tokens.into());
        if at > now {
            return Err(at);
        }
        self.full = self.full_after(now, tokens.into());
        Ok(())
    }

    /// When so many tokens are there, from `now` on; more than the burst one after the other.
    fn at(&self, now: Instant, tokens: u64) -> Instant {
        let depth = self.time_of(self.burst.into());
        let at = self.full_after(now, tokens).saturating_sub(depth);
        let nanos = at.div_ceil(1 << POINT);
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).max(now)
    }

    /// When it is full again, if so many are taken now.
    fn full_after(&self, now: Instant, tokens: u64) -> u128 {
        let from = self.full.max(u128::from(now.as_nanos()) << POINT);
        from.saturating_add(self.time_of(tokens))
    }

    fn time_of(&self, tokens: u64) -> u128 {
        self.interval.saturating_mul(tokens.into())
    }

    fn available(&self, now: Instant) -> u32 {
        let lacks = self
            .full
            .saturating_sub(u128::from(now.as_nanos()) << POINT);
        let lacking = lacks.div_ceil(self.interval);
        self.burst
            .saturating_sub(u32::try_from(lacking).unwrap_or(u32::MAX))
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn bucket(interval: u64, burst: u32) -> Bucket {
        Bucket {
            interval: u128::from(interval) << POINT,
            burst,
            full: 0,
        }
    }

    proptest! {
        // pins: T9
        #[test]
        fn a_bucket_gives_what_a_plain_count_gives(
            interval in 1_u64..50,
            burst in 1_u32..8,
            acts in vec((0_u64..100, 0_u32..9), 1..200),
        ) {
            let mut bucket = bucket(interval, burst);
            // In nanoseconds: so many for a token.
            let depth = u64::from(burst) * interval;
            let (mut now, mut plain) = (0, depth);
            for (pause, tokens) in acts {
                now += pause;
                plain = depth.min(plain + pause);
                let moment = Instant::from_nanos(now);
                let price = u64::from(tokens) * interval;
                prop_assert_eq!(u64::from(bucket.available(moment)), plain / interval);
                let expected = Instant::from_nanos(now + price.saturating_sub(plain));
                prop_assert_eq!(bucket.at(moment, tokens.into()), expected);
                if tokens <= burst {
                    let taken = bucket.take(moment, tokens);
                    prop_assert_eq!(taken.is_ok(), price <= plain);
                    prop_assert_eq!(taken.err(), Some(expected).filter(|_| price > plain));
                    plain -= if taken.is_ok() { price } else { 0 };
                }
            }
        }

        // pins: T9
        #[test]
        fn no_span_has_more_than_the_burst_and_what_comes_in_it(
            per_second in 0.001_f64..1e8,
            burst in 1_u32..8,
            acts in vec((0_u64..3_000, 0_u32..4), 1..100),
        ) {
            let mut bucket = Bucket::new(per_second, burst);
            let interval = u64::try_from(bucket.interval >> POINT).unwrap();
            let (mut now, mut taken) = (0, Vec::new());
            for (pause, tokens) in acts {
                now += pause * interval / 1_000;
                let moment = Instant::from_nanos(now);
                if bucket.take(moment, tokens).is_ok() {
                    taken.push((moment, tokens));
                }
            }
            for first in 0..taken.len() {
                let mut sum = 0.0;
                for &(moment, tokens) in &taken[first..] {
                    sum += f64::from(tokens);
                    let span = moment.since(taken[first].0).as_secs_f64();
                    prop_assert!(sum <= f64::from(burst) + span * per_second + 1e-3);
                }
            }
        }
    }

    // pins: T9
    #[test]
    fn rates_have_no_drift() {
        for (per_second, tokens) in [(3.0, 300_000), (7e6, 700_000), (0.1, 1_000)] {
            let mut bucket = Bucket::new(per_second, 2);
            let mut now = START;
            for _ in 0..tokens {
                bucket.take(now, 1).unwrap();
                now = bucket.at(now, 1);
            }
            // Two were there.
            let seconds = f64::from(tokens - 1) / per_second;
            let error = now.since(START).as_secs_f64() / seconds - 1.0;
            assert!(error.abs() < 1e-7, "{per_second}: {error}");
        }
    }

    #[test]
    fn rates_beyond_all_clocks_harm_nothing() {
        for per_second in [f64::MIN_POSITIVE, 1e-20, 1e30, f64::MAX] {
            let mut bucket = Bucket::new(per_second, u32::MAX);
            assert_eq!(bucket.available(START), u32::MAX);
            bucket.take(START, u32::MAX).unwrap();
            assert!(bucket.at(START, u64::MAX) > START);
        }
    }

    #[test]
    #[should_panic(expected = "invalid rate -1")]
    fn a_rate_is_above_zero() {
        Bucket::new(-1.0, 1);
    }
}

//! A rate limiter: a number of acts a second, and a burst at once.
//!
//! **Problem.** Many processes, tasks and threads share a rate. An early request waits, in the
//! order of the requests, or hears how long to wait. A given up wait leaves no hole.
//!
//! **Rejected.** Giving each request a moment at once, and letting the request sleep until then: a
//! leave would lose its moment, or the later requests would come earlier than announced.
//!
//! **Source.** The token bucket of J. Turner, "New directions in communications (or which way to
//! the information age?)", 1986. The bucket is kept as a single moment, as in the virtual
//! scheduling algorithm of ITU-T I.371: the moment at which the bucket is full again.
//!
//! **Protocol.** A single lock guards the bucket and the queue of requests.
//! 1. A request takes its tokens if no other request waits and the bucket has them. If not, the
//!    request is queued.
//! 2. The thread with the first request in an empty queue sets a timer for the moment at which this
//!    request has its tokens.
//! 3. The timer serves the queue, and runs again for the next first request. A leaving request
//!    serves the queue as well, because the requests behind may want less.
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

/// Lets a number of acts a second through, and a burst at once after a pause: a token bucket.
/// Processes, tasks and threads share the limiter by its clones.
///
/// In any span of `t` seconds the limiter gives at most `burst + t * per_second` tokens. Waiting
/// requests are served in their order, and no request overtakes them. The bucket is full at first.
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

/// The reason for a request without tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RateLimitError {
    /// The bucket has too few tokens at this moment, or earlier requests wait for them.
    #[error("the rate is exceeded; try again in {wait:?}, or wait with `acquire`")]
    Exceeded {
        /// The time until the tokens are free, if no other request comes meanwhile.
        wait: Duration,
    },
    /// The bucket never has as many tokens at once.
    #[error("too many tokens at once: the burst is {burst}; ask for fewer")]
    AboveBurst {
        /// The most tokens at once.
        burst: u32,
    },
    /// The scheduler has stopped: no waiting request is served any more.
    #[error("the scheduler of the rate limiter has stopped")]
    Stopped,
}

impl RateLimiter {
    /// Creates a limiter of `per_second` tokens a second, such as `100` or `0.5`, with up to
    /// `burst` at once, at least one. The limiter uses the scheduler's time.
    ///
    /// With a burst of one, the delay of a waiting request that is served a little late lowers the
    /// rate. A larger burst makes up for the delay.
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

    /// Takes the tokens, if the bucket has them and no request waits. Never blocks. O(1).
    ///
    /// # Errors
    /// [`RateLimitError::Exceeded`], with the time after which to try again, as a server says in
    /// `Retry-After`. [`RateLimitError::AboveBurst`].
    pub fn try_acquire(&self, tokens: u32) -> Result<(), RateLimitError> {
        let now = self.shared.timers.now();
        lock(&self.shared.state).try_take(now, tokens)
    }

    /// Waits for the tokens: a question, which a step asks by `out.ask(call, tag)`, a task by
    /// `.await`, and a thread by [`wait`](Call::wait). Requests are served in their order. O(log n)
    /// with n waiting requests.
    ///
    /// A question given up before its answer takes no tokens: by `out.cancel(tag)`, the end of its
    /// process, or the drop of its future.
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
    /// The answer [fails](ganger_proc_api::CommandError::Failed) with
    /// [`RateLimitError::AboveBurst`] or [`RateLimitError::Stopped`].
    pub fn acquire(&self, tokens: u32) -> Call<()> {
        let ask = move |shared: Arc<Shared>, reply| {
            shared.request(tokens, reply);
            Ok(())
        };
        Call::by_inside(Arc::clone(&self.shared), |it| Some(&it.scheduler), ask)
    }

    /// Returns the number of tokens at this moment. Waiting requests have a claim on them.
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
    /// The waiting requests, in their order.
    queue: BTreeMap<u64, Request>,
    /// The number of tokens that the waiting requests want.
    queued: u64,
    /// The number of the next request.
    next: u64,
    /// The moment for which a timer runs.
    armed: Instant,
    is_stopped: bool,
}

struct Request {
    tokens: u32,
    reply: Reply<()>,
    /// Tells when the answer is unwanted.
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

    /// Removes a request whose answer is unwanted.
    fn left(self: &Arc<Self>, number: u64) {
        let left = lock(&self.state).remove(number);
        if left.is_some() {
            drop(left);
            self.serve();
        }
    }

    /// Gives tokens to the first requests, as far as the tokens go, and sets the timer for the next
    /// request.
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

    /// Takes out the first requests, as far as the tokens go.
    fn serve(&mut self, now: Instant) -> Vec<Request> {
        let mut served = Vec::new();
        while let Some((&number, first)) = self.queue.first_key_value()
            && self.bucket.take(now, first.tokens).is_ok()
        {
            served.extend(self.remove(number));
        }
        served
    }

    /// Returns the time for a new timer, unless a timer runs that is as early.
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
        // Another timer may run, set later for an earlier moment.
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
    /// Stops the limiter after the scheduler's halt: no request is served any more.
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

/// Times in the bucket are in parts of a nanosecond: this number of bits is behind the point. A
/// rate is exact to about one in a billion up to a token a nanosecond.
const POINT: u32 = 32;

/// The longest time between two tokens: no clock sees the end of a longer time.
const LONGEST: f64 = u64::MAX as f64;

/// A token bucket.
struct Bucket {
    /// The time between two tokens.
    interval: u128,
    burst: u32,
    /// The moment at which the bucket is, or was, full.
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

    /// Returns the time, from `now` on, when the bucket has this number of tokens; more than the
    /// burst come one after the other.
    fn at(&self, now: Instant, tokens: u64) -> Instant {
        let depth = self.time_of(self.burst.into());
        let at = self.full_after(now, tokens).saturating_sub(depth);
        let nanos = at.div_ceil(1 << POINT);
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).max(now)
    }

    /// Returns the time when the bucket is full again, if `tokens` are taken now.
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
            // In nanoseconds, with `interval` for a token.
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

//! Intervals.

use ganger_proc_api::{Command, CommandId, Instant, StepOutput, Tag};
use std::time::Duration;

/// The policy of an interval for ticks that its process has missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissedTicks {
    /// Missed ticks come at once, one after the other, until the interval has caught up.
    Burst,
    /// The next tick comes a period after the late tick was taken: all later ticks move.
    Delay,
    /// Missed ticks are left out, and the next tick keeps its time.
    #[default]
    Skip,
}

/// Ticks of a process: a tick after each period, without drift.
///
/// Each tick is a yield. The process sets the next tick when it takes this tick. So a mailbox has
/// at most one tick of an interval, and the tick says how many it stands for.
///
/// ```
/// use ganger_proc_api::{BoxError, Event, process_fn};
/// use ganger_sched::{ContextExt, Scheduler};
/// use ganger_time::Interval;
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// let scheduler = Scheduler::builder().start()?;
/// let mut every = Interval::new(Duration::from_millis(2), 1);
/// let mut ticks = 0;
/// let counts = scheduler.spawn(process_fn(move |ctx, events, out| {
///     match events.next() {
///         None => every.start(ctx.now(), out),
///         Some(Event::Completion(tick)) if every.is_tick(&tick) => {
///             tick.result?;
///             ticks += every.tick(ctx.now(), out);
///         }
///         Some(_) => {}
///     }
///     if ticks >= 3 {
///         out.done(ticks);
///     }
///     Ok(())
/// }))?;
/// assert!(counts.wait().into_result()?.as_u64() >= Some(3));
/// # Ok::<(), BoxError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Interval {
    period: Duration,
    missed: MissedTicks,
    tag: Tag,
    next: Instant,
}

impl Interval {
    /// Makes an interval with this period, whose ticks have this tag. [`start`](Self::start) begins
    /// it.
    #[must_use]
    pub fn new(period: Duration, tag: Tag) -> Self {
        Self {
            period,
            missed: MissedTicks::default(),
            tag,
            next: Instant::NEVER,
        }
    }

    /// Sets the policy for missed ticks. Default: [`MissedTicks::Skip`].
    #[must_use]
    pub fn missed(self, missed: MissedTicks) -> Self {
        Self { missed, ..self }
    }

    /// Begins: the first tick comes after a period. A period of zero completes with
    /// [`ZeroPeriod`](crate::ZeroPeriod) as its error.
    pub fn start(&mut self, now: Instant, out: &mut StepOutput) {
        self.start_at(now.after(self.period), out);
    }

    /// Begins, with the first tick at this moment.
    pub fn start_at(&mut self, first: Instant, out: &mut StepOutput) {
        self.begin(first);
        self.arm(out);
    }

    /// Starts as [`start_at`](Self::start_at) does, for code that yields [`command`](Self::command)
    /// itself.
    pub fn begin(&mut self, first: Instant) {
        self.next = first;
    }

    /// Returns the command of the next tick.
    #[must_use]
    pub fn command(&self) -> Command {
        let period = u64::try_from(self.period.as_nanos()).unwrap_or(u64::MAX);
        Command::new(
            CommandId::TICKER,
            [self.next.as_nanos().into(), period.into()],
        )
    }

    /// Returns whether the completion is a tick of this interval.
    #[must_use]
    pub fn is_tick(&self, completion: &ganger_proc_api::Completion) -> bool {
        completion.tag == self.tag
    }

    /// Sets the next tick after the process has taken a tick. Returns how many ticks the taken tick
    /// stands for, from 1 up; 1 under [`MissedTicks::Burst`].
    pub fn tick(&mut self, now: Instant, out: &mut StepOutput) -> u64 {
        let count = self.take(now);
        self.arm(out);
        count
    }

    /// Takes a tick as [`tick`](Self::tick) does, for code that yields [`command`](Self::command)
    /// itself.
    #[must_use = "how many ticks it stands for"]
    pub fn take(&mut self, now: Instant) -> u64 {
        let period = u64::try_from(self.period.as_nanos()).unwrap_or(u64::MAX);
        let late = now.as_nanos().saturating_sub(self.next.as_nanos());
        let missed = late.checked_div(period).unwrap_or(0);
        let (next, count) = match self.missed {
            MissedTicks::Burst => (self.next.after(self.period), 1),
            MissedTicks::Delay => (now.after(self.period), missed + 1),
            MissedTicks::Skip => {
                let skipped = Duration::from_nanos(period.saturating_mul(missed));
                (self.next.after(skipped).after(self.period), missed + 1)
            }
        };
        self.next = next;
        count
    }

    /// Ends the interval: no later step is shown a tick of it.
    pub fn stop(&mut self, out: &mut StepOutput) {
        out.cancel(self.tag);
    }

    fn arm(&self, out: &mut StepOutput) {
        out.yield_command(self.command(), self.tag);
    }
}

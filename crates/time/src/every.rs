//! Intervals.

use ganger_proc_api::{Command, CommandId, Instant, StepOutput, Tag};
use std::time::Duration;

/// What an interval does about ticks that its process has been too late for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissedTicks {
    /// They come at once, one after the other, until the interval has caught up.
    Burst,
    /// The next one comes a period after the late one was taken: all later ones move.
    Delay,
    /// They are left out, and the next one comes when it would have come anyway.
    #[default]
    Skip,
}

/// Ticks of a process: one after each period, without drift.
///
/// Each tick is a yield, and the next one is set when the process takes this one. So a mailbox has
/// one tick of an interval at the most, and the tick says how many it stands for.
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
    /// An interval of that period, whose ticks have that tag. It begins with
    /// [`start`](Self::start).
    #[must_use]
    pub fn new(period: Duration, tag: Tag) -> Self {
        Self {
            period,
            missed: MissedTicks::default(),
            tag,
            next: Instant::NEVER,
        }
    }

    /// What happens about ticks that come too late. Default: [`MissedTicks::Skip`].
    #[must_use]
    pub fn missed(self, missed: MissedTicks) -> Self {
        Self { missed, ..self }
    }

    /// Begins: the first tick comes after a period. A period of zero completes with
    /// [`ZeroPeriod`](crate::ZeroPeriod) as its error.
    pub fn start(&mut self, now: Instant, out: &mut StepOutput) {
        self.start_at(now.after(self.period), out);
    }

    /// Begins, with the first tick at that moment.
    pub fn start_at(&mut self, first: Instant, out: &mut StepOutput) {
        self.begin(first);
        self.arm(out);
    }

    /// As [`start_at`](Self::start_at), for code that yields [`command`](Self::command) itself.
    pub fn begin(&mut self, first: Instant) {
        self.next = first;
    }

    /// The command that the next tick completes.
    #[must_use]
    pub fn command(&self) -> Command {
        let period = u64::try_from(self.period.as_nanos()).unwrap_or(u64::MAX);
        Command::new(
            CommandId::TICKER,
            [self.next.as_nanos().into(), period.into()],
        )
    }

    /// Whether the completion is a tick of this interval.
    #[must_use]
    pub fn is_tick(&self, completion: &ganger_proc_api::Completion) -> bool {
        completion.tag == self.tag
    }

    /// The process has taken a tick: sets the next one, and returns how many this one stands for,
    /// from one up. Under [`MissedTicks::Burst`] that is one.
    pub fn tick(&mut self, now: Instant, out: &mut StepOutput) -> u64 {
        let count = self.take(now);
        self.arm(out);
        count
    }

    /// As [`tick`](Self::tick), for code that yields [`command`](Self::command) itself.
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

    /// Ends: no later step is shown a tick of it.
    pub fn stop(&mut self, out: &mut StepOutput) {
        out.cancel(self.tag);
    }

    fn arm(&self, out: &mut StepOutput) {
        out.yield_command(self.command(), self.tag);
    }
}

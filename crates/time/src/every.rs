//! Intervals.

use crate::commands::TICKER;
use ganger_proc_api::{Command, StepOutput, Tag};
use ganger_sched::Moment;
use std::time::Duration;

/// What an interval does about ticks that its process has been too late for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missed {
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
/// use ganger_sched::Scheduler;
/// use ganger_time::{Every, TimerContext, Timers};
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// let scheduler = Scheduler::builder().source(Arc::new(Timers::new())).start()?;
/// let mut every = Every::new(Duration::from_millis(2), 1);
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
pub struct Every {
    period: Duration,
    missed: Missed,
    tag: Tag,
    next: Moment,
}

impl Every {
    /// An interval of that period, whose ticks have that tag. It begins with
    /// [`start`](Self::start).
    #[must_use]
    pub fn new(period: Duration, tag: Tag) -> Self {
        Self {
            period,
            missed: Missed::default(),
            tag,
            next: Moment::NEVER,
        }
    }

    /// What happens about ticks that come too late. Default: [`Missed::Skip`].
    #[must_use]
    pub fn missed(self, missed: Missed) -> Self {
        Self { missed, ..self }
    }

    /// Begins: the first tick comes after a period. A period of zero completes with
    /// [`ZeroPeriod`](crate::ZeroPeriod) as its error.
    pub fn start(&mut self, now: Moment, out: &mut StepOutput) {
        self.start_at(now.after(self.period), out);
    }

    /// Begins, with the first tick at that moment.
    pub fn start_at(&mut self, first: Moment, out: &mut StepOutput) {
        self.begin(first);
        self.arm(out);
    }

    /// As [`start_at`](Self::start_at), for code that yields [`command`](Self::command) itself.
    pub fn begin(&mut self, first: Moment) {
        self.next = first;
    }

    /// The command that the next tick completes.
    #[must_use]
    pub fn command(&self) -> Command {
        let period = u64::try_from(self.period.as_nanos()).unwrap_or(u64::MAX);
        Command::new(TICKER, [self.next.as_nanos().into(), period.into()])
    }

    /// Whether the completion is a tick of this interval.
    #[must_use]
    pub fn is_tick(&self, completion: &ganger_proc_api::Completion) -> bool {
        completion.tag == self.tag
    }

    /// The process has taken a tick: sets the next one, and returns how many this one stands for,
    /// from one up. Under [`Missed::Burst`] that is one.
    pub fn tick(&mut self, now: Moment, out: &mut StepOutput) -> u64 {
        let count = self.take(now);
        self.arm(out);
        count
    }

    /// As [`tick`](Self::tick), for code that yields [`command`](Self::command) itself.
    #[must_use = "how many ticks it stands for"]
    pub fn take(&mut self, now: Moment) -> u64 {
        let period = u64::try_from(self.period.as_nanos()).unwrap_or(u64::MAX);
        let late = now.as_nanos().saturating_sub(self.next.as_nanos());
        let missed = late.checked_div(period).unwrap_or(0);
        let (next, count) = match self.missed {
            Missed::Burst => (self.next.after(self.period), 1),
            Missed::Delay => (now.after(self.period), missed + 1),
            Missed::Skip => {
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

//! What this crate adds to the output of a step.

use crate::commands::{SLEEP, TIMER};
use ganger_proc_api::{Command, StepOutput, Tag};
use ganger_sched::Moment;
use std::time::Duration;

/// What this crate adds to [`StepOutput`]: yields that complete later.
///
/// The completion carries the tag and `Payload::UNIT`. `out.cancel(tag)` takes a timer back: no
/// later step is shown its completion, even if that lies in the mailbox. A timer ends with its
/// process. Without [`Timers`](crate::Timers) in the scheduler the completion is an error.
///
/// ```
/// use ganger_proc_api::{BoxError, Event, process_fn};
/// use ganger_sched::Scheduler;
/// use ganger_time::{TimerOutput, Timers};
/// use std::sync::Arc;
/// use std::time::{Duration, Instant};
///
/// let scheduler = Scheduler::builder().source(Arc::new(Timers::new())).build()?;
/// scheduler.start()?;
/// let begin = Instant::now();
/// let sleeper = scheduler.spawn(process_fn(|_, events, out| {
///     match events.next() {
///         None => out.sleep(Duration::from_millis(5), 1),
///         Some(Event::Completion(_)) => out.done(()),
///         Some(_) => {}
///     }
///     Ok(())
/// }))?;
/// assert!(sleeper.wait().is_done() && begin.elapsed() >= Duration::from_millis(5));
/// # Ok::<(), BoxError>(())
/// ```
pub trait TimerOutput {
    /// A yield that completes after that time, counted from the end of the step, and never before.
    /// Zero completes at once. A time that is too long for the clock is never over.
    fn sleep(&mut self, time: Duration, tag: Tag);

    /// A yield that completes at that moment, and never before. One that has passed completes at
    /// once.
    fn sleep_until(&mut self, at: Moment, tag: Tag);
}

impl TimerOutput for StepOutput {
    fn sleep(&mut self, time: Duration, tag: Tag) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.yield_command(Command::new(SLEEP, nanos), tag);
    }

    fn sleep_until(&mut self, at: Moment, tag: Tag) {
        self.yield_command(Command::new(TIMER, at.as_nanos()), tag);
    }
}

//! Timeouts of a process: for messages that do not come, and for a state that lasts too long.

use crate::commands::expect_time;
use crate::output::TimerOutput;
use ganger_proc_api::{Completion, StepOutput, Tag};
use ganger_sched::Moment;
use std::time::Duration;

/// Is over when a process has heard nothing for some time.
///
/// A message costs a store: the timer is set anew when it fires, for what is left.
///
/// ```
/// use ganger_proc_api::{BoxError, Event, process_fn};
/// use ganger_sched::Scheduler;
/// use ganger_time::{ReceiveTimeout, TimerContext, Timers};
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// let scheduler = Scheduler::builder().source(Arc::new(Timers::new())).start()?;
/// let mut silence = ReceiveTimeout::new(Duration::from_millis(5), 1);
/// let waits = scheduler.spawn(process_fn(move |ctx, events, out| {
///     if !silence.is_running() {
///         silence.start(ctx.now(), out);
///     }
///     for event in events {
///         match event {
///             Event::Message(_) => silence.heard(ctx.now()),
///             Event::Completion(it) if silence.is_over(&it, ctx.now(), out) => {
///                 out.done("nothing for 5 ms");
///                 return Ok(());
///             }
///             _ => {}
///         }
///     }
///     Ok(())
/// }))?;
/// assert_eq!(waits.wait().into_result()?.as_str(), Some("nothing for 5 ms"));
/// # Ok::<(), BoxError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ReceiveTimeout {
    time: Duration,
    tag: Tag,
    /// When it is over, if nothing is heard.
    end: Option<Moment>,
}

impl ReceiveTimeout {
    /// A timeout after that time, whose completions have that tag. It begins with
    /// [`start`](Self::start).
    #[must_use]
    pub fn new(time: Duration, tag: Tag) -> Self {
        let end = None;
        Self { time, tag, end }
    }

    /// Begins, or begins anew.
    pub fn start(&mut self, now: Moment, out: &mut StepOutput) {
        self.stop(out);
        self.end = Some(now.after(self.time));
        out.sleep(self.time, self.tag);
    }

    /// The process has heard something that counts. Without a timeout that runs it does nothing.
    pub fn heard(&mut self, now: Moment) {
        self.end = self.end.map(|end| end.max(now.after(self.time)));
    }

    /// Whether the completion says that nothing was heard for so long. Then it runs no more. If it
    /// is its own, and something was heard, it goes on.
    ///
    /// # Panics
    /// When the timer has failed, because the scheduler has no [`Timers`](crate::Timers).
    #[track_caller]
    pub fn is_over(&mut self, completion: &Completion, now: Moment, out: &mut StepOutput) -> bool {
        match self.end {
            Some(end) if completion.tag == self.tag => {
                expect_time(completion);
                if now < end {
                    out.sleep_until(end, self.tag);
                } else {
                    self.end = None;
                }
                self.end.is_none()
            }
            _ => false,
        }
    }

    /// Whether it runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.end.is_some()
    }

    /// Ends: no later step is shown a completion of it.
    pub fn stop(&mut self, out: &mut StepOutput) {
        if self.end.take().is_some() {
            out.cancel(self.tag);
        }
    }
}

/// Is over when a process has been in one of its states for some time. Messages do not change that.
///
/// ```
/// use ganger_proc_api::{Completion, Payload, StepOutput};
/// use ganger_time::StateTimeout;
/// use std::time::Duration;
///
/// # let mut out = StepOutput::new();
/// let mut timeout = StateTimeout::new(1);
/// timeout.enter(Duration::from_secs(5), &mut out);
/// // The state changes in time:
/// timeout.enter(Duration::from_secs(1), &mut out);
/// // Later, when a completion has come:
/// # let completion = Completion::new(1, Ok(Payload::UNIT));
/// assert!(timeout.is_over(&completion));
/// ```
#[derive(Debug, Clone)]
pub struct StateTimeout {
    tag: Tag,
    is_running: bool,
}

impl StateTimeout {
    /// A timeout whose completions have that tag.
    #[must_use]
    pub fn new(tag: Tag) -> Self {
        Self {
            tag,
            is_running: false,
        }
    }

    /// The process is in another state, which may last so long.
    pub fn enter(&mut self, time: Duration, out: &mut StepOutput) {
        self.leave(out);
        self.is_running = true;
        out.sleep(time, self.tag);
    }

    /// The process is in a state that may last for ever.
    pub fn leave(&mut self, out: &mut StepOutput) {
        if std::mem::take(&mut self.is_running) {
            out.cancel(self.tag);
        }
    }

    /// Whether the completion says that the state has lasted for too long.
    ///
    /// # Panics
    /// When the timer has failed, because the scheduler has no [`Timers`](crate::Timers).
    #[track_caller]
    pub fn is_over(&mut self, completion: &Completion) -> bool {
        let is_over = completion.tag == self.tag && std::mem::take(&mut self.is_running);
        if is_over {
            expect_time(completion);
        }
        is_over
    }
}

//! Timeouts of a process: for messages that do not come, and for a state that lasts too long.

use ganger_proc_api::{Completion, Instant, StepOutput, Tag};
use std::time::Duration;

/// Is over when a process has heard nothing for some time.
///
/// A message costs a store: the timer that fires sets itself anew for the remaining time.
///
/// An actor begins it in [`started`](ganger_proc_api::Actor::started), and a process in its first
/// step. So a restart by a supervisor begins it, too.
///
/// ```
/// use ganger_proc_api::{Actor, BoxError, Completion, Context, StepOutput, StepResult};
/// use ganger_sched::{ContextExt, Scheduler};
/// use ganger_time::ReceiveTimeout;
/// use std::time::Duration;
///
/// struct Session {
///     silence: ReceiveTimeout,
/// }
///
/// impl Actor for Session {
///     type Message = String;
///
///     fn started(&mut self, ctx: &Context, out: &mut StepOutput) -> StepResult {
///         Ok(self.silence.start(ctx.now(), out))
///     }
///
///     fn receive(&mut self, ctx: &Context, _: String, _: &mut StepOutput) -> StepResult {
///         Ok(self.silence.heard(ctx.now()))
///     }
///
///     fn completed(&mut self, ctx: &Context, it: Completion, out: &mut StepOutput) -> StepResult {
///         if self.silence.is_over(&it, ctx.now(), out) {
///             out.done("nothing for 5 ms");
///         }
///         Ok(())
///     }
/// }
///
/// let scheduler = Scheduler::builder().start()?;
/// let silence = ReceiveTimeout::new(Duration::from_millis(5), 1);
/// let session = scheduler.spawn(Session { silence })?;
/// session.address().send("hello".to_owned())?;
/// assert_eq!(session.wait().into_result()?.as_str(), Some("nothing for 5 ms"));
/// # Ok::<(), BoxError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ReceiveTimeout {
    time: Duration,
    tag: Tag,
    /// When it is over, if nothing is heard.
    end: Option<Instant>,
}

impl ReceiveTimeout {
    /// Makes a timeout after `time`, whose completions have this tag. [`start`](Self::start) begins
    /// it.
    #[must_use]
    pub fn new(time: Duration, tag: Tag) -> Self {
        let end = None;
        Self { time, tag, end }
    }

    /// Begins, or begins anew.
    pub fn start(&mut self, now: Instant, out: &mut StepOutput) {
        self.stop(out);
        self.end = Some(now.after(self.time));
        out.sleep(self.time, self.tag);
    }

    /// Notes that the process has heard something that counts. Does nothing if the timeout does not
    /// run.
    pub fn heard(&mut self, now: Instant) {
        self.end = self.end.map(|end| end.max(now.after(self.time)));
    }

    /// Returns whether the completion ends the timeout: nothing was heard for the whole time. The
    /// timeout then stops. If something was heard, a completion of its own sets the timer anew.
    pub fn is_over(&mut self, completion: &Completion, now: Instant, out: &mut StepOutput) -> bool {
        match self.end {
            Some(end) if completion.tag == self.tag => {
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

    /// Returns whether the timeout runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.end.is_some()
    }

    /// Ends the timeout: no later step is shown a completion of it.
    pub fn stop(&mut self, out: &mut StepOutput) {
        if self.end.take().is_some() {
            out.cancel(self.tag);
        }
    }
}

/// Is over when a process has been in the same state for some time. Messages do not change this.
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
    /// Makes a timeout whose completions have this tag.
    #[must_use]
    pub fn new(tag: Tag) -> Self {
        Self {
            tag,
            is_running: false,
        }
    }

    /// Notes that the process enters another state, which may last for `time`.
    pub fn enter(&mut self, time: Duration, out: &mut StepOutput) {
        self.leave(out);
        self.is_running = true;
        out.sleep(time, self.tag);
    }

    /// Notes that the process enters a state without a time limit.
    pub fn leave(&mut self, out: &mut StepOutput) {
        if std::mem::take(&mut self.is_running) {
            out.cancel(self.tag);
        }
    }

    /// Returns whether the completion says that the state has lasted for too long.
    pub fn is_over(&mut self, completion: &Completion) -> bool {
        completion.tag == self.tag && std::mem::take(&mut self.is_running)
    }
}

//! Spans of `tracing` for the steps of chosen processes.
//!
//! **Problem.** A trace of all steps costs too much, and shows too much to read. A trace in which
//! each step is a child of its cause has no end: a process lives for a month, and all of its steps
//! are in the trace of its first request.
//!
//! **Protocol.**
//! 1. A [`Plan`](plan::Plan) says for each step whether the step may have a span, and draws some of
//!    these steps.
//! 2. A step with a span is the cause of all its acts. The steps behind them have spans as well, at
//!    any rate, if the plan allows spans. Each span is a root, and *follows from* its causes:
//!    OpenTelemetry calls this a link.
//! 3. Causes go through steps without spans, so links are complete.
//! 4. All steps behind the same beginning share a [`Budget`](budget::Budget). Behind its end, steps
//!    have spans by the rate alone again. So a process that sends to itself is not traced for ever.
//!
//! **Open spans.** The span of a cause stays open in the subscriber while a message carries the
//! cause: no span can follow a closed span. The length of a span is the time in which the worker
//! has entered it.

mod budget;
mod plan;
mod tracer;

pub use plan::Steps;

use ganger_sched::internal::HandleInternals as _;
use ganger_sched::{Builder, Handle};
use std::fmt;
use std::sync::Arc;
use tracer::Tracer;

/// Makes a span of `tracing` for each step that `steps` chooses. [`StepSpans::of`] the scheduler
/// chooses other steps while it runs. A later call of this function, or of
/// [`Builder::trace_steps`], takes the place of this call.
///
/// The spans have the target `ganger::step`, the level `INFO`, and the name `step`. Their fields:
///
/// | field | |
/// |---|---|
/// | `pid`, `type`, `method`, `label` | of the process; `label` where it has one |
/// | `events` | how many events the step sees |
/// | `error`, `otel.status_code` | where the step fails or panics |
/// | `otel.name` | the type: the name of the span for OpenTelemetry |
///
/// A span is a root, and follows from the spans of its causes: of steps with a message, an answer,
/// a start, a wake-up, a delayed message or a job of a pool for this step. A span of the program's
/// own is a cause, too, when a message is sent inside it.
///
/// The scheduler counts, as with `Observe::Counts`. A step without a span costs a call and a look
/// at the choice more, also with [`Steps::none`].
///
/// ```
/// use ganger_observe::{StepSpans, Steps, trace_steps};
/// use ganger_sched::Scheduler;
///
/// let some = Steps::all().of_type("shop::").rate(1, 100);
/// let scheduler = trace_steps(Scheduler::builder(), some).start()?;
/// // Later:
/// if let Some(spans) = StepSpans::of(&scheduler) {
///     spans.choose(Steps::none());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn trace_steps(builder: Builder, steps: Steps) -> Builder {
    let tracer = Arc::new(Tracer::new(steps));
    let kept = Kept(Arc::clone(&tracer));
    let builder = builder.when_built(|scheduler| {
        let _kept = scheduler.extension(|_| kept);
    });
    builder.trace_steps(tracer)
}

/// Changes which steps of a scheduler have spans. Clones are of the same scheduler.
#[derive(Clone)]
pub struct StepSpans(Arc<Tracer>);

impl StepSpans {
    /// Returns the spans of a scheduler that was built with [`trace_steps`].
    #[must_use]
    pub fn of(scheduler: &Handle) -> Option<Self> {
        let kept = scheduler.find_extension::<Kept>()?;
        Some(Self(Arc::clone(&kept.0)))
    }

    /// Chooses other steps. `steps` alone chooses among the steps that begin after this call;
    /// running steps keep their spans. The rate begins anew.
    pub fn choose(&self, steps: Steps) {
        self.0.choose(steps);
    }
}

impl fmt::Debug for StepSpans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepSpans").finish_non_exhaustive()
    }
}

/// The scheduler's extension.
struct Kept(Arc<Tracer>);

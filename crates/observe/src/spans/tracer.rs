//! The tracer: makes spans, enters and closes them, and links them.

use super::budget::Budget;
use super::plan::{Plan, Steps};
use ganger_proc_api::ExitReason;
use ganger_sched::{Cause, StepTracer, TracedStep};
use ganger_sync::sync::lock;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tracing::field::{Empty, display};
use tracing::{Level, Span};

/// A number for each tracer of the program.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The last plan of this thread, behind the numbers of its tracer and of the choice.
    static LAST: RefCell<Option<(u64, u64, Arc<Plan>)>> = const { RefCell::new(None) };
}

pub(super) struct Tracer {
    number: u64,
    plan: Mutex<Arc<Plan>>,
    /// The number of choices so far.
    choices: AtomicU64,
}

/// The spans as causes of a step.
type Spans = SmallVec<[Span; 1]>;

/// The cause handed on by a step.
struct Context {
    /// The step's own span, or the spans of its causes.
    spans: Spans,
    is_own: bool,
    budget: Budget,
}

impl Tracer {
    pub(super) fn new(steps: Steps) -> Self {
        Self {
            // Ordering: Relaxed: a count alone.
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            plan: Mutex::new(Arc::new(Plan::new(steps))),
            choices: AtomicU64::new(0),
        }
    }

    pub(super) fn choose(&self, steps: Steps) {
        let next = Arc::new(Plan::new(steps));
        let mut plan = lock(&self.plan);
        *plan = next;
        // Ordering: Release pairs with the Acquire in `with_plan`: the thread takes this plan then,
        // or a later one.
        self.choices.fetch_add(1, Ordering::Release);
    }

    /// Calls `f` with the plan: without a lock, if this thread knows it.
    fn with_plan<R>(&self, f: impl FnOnce(&Plan) -> R) -> R {
        // Ordering: Acquire pairs with the Release in `choose`.
        let choice = self.choices.load(Ordering::Acquire);
        let known = |last: &RefCell<Option<(u64, u64, Arc<Plan>)>>| {
            let mut last = last.borrow_mut();
            match &*last {
                Some((number, at, plan)) if (*number, *at) == (self.number, choice) => {
                    Arc::clone(plan)
                }
                _ => {
                    let plan = Arc::clone(&lock(&self.plan));
                    *last = Some((self.number, choice, Arc::clone(&plan)));
                    plan
                }
            }
        };
        let plan = LAST.try_with(known);
        // The thread ends.
        let plan = plan.unwrap_or_else(|_| Arc::clone(&lock(&self.plan)));
        f(&plan)
    }
}

impl StepTracer for Tracer {
    fn begin(&self, step: &TracedStep<'_>, causes: &[Cause]) -> Option<Cause> {
        self.with_plan(|plan| begin(plan, step, causes))
    }

    fn fail(&self, step: &Cause, reason: &ExitReason) {
        if let Some(span) = step.get::<Context>().and_then(Context::own) {
            span.record("error", display(reason));
            span.record("otel.status_code", "ERROR");
        }
    }

    fn end(&self, step: &Cause) {
        if let Some(span) = step.get::<Context>().and_then(Context::own) {
            span.with_subscriber(|(id, subscriber)| subscriber.exit(id));
        }
    }

    fn outside(&self) -> Option<Cause> {
        self.with_plan(|plan| {
            if plan.is_none() {
                return None;
            }
            let span = Span::current();
            (!span.is_none()).then(|| {
                Cause::new(Context {
                    spans: SmallVec::from_iter([span]),
                    is_own: false,
                    budget: Budget::of(plan.whole()),
                })
            })
        })
    }
}

fn begin(plan: &Plan, step: &TracedStep<'_>, causes: &[Cause]) -> Option<Cause> {
    if plan.is_none() {
        return None;
    }
    let causes = || causes.iter().filter_map(Cause::get::<Context>);
    let given = causes().find(|it| it.budget.take());
    let is_allowed = plan.allows(step);
    let budget = match given {
        Some(context) => context.budget.clone(),
        None if is_allowed && plan.draws(step.worker()) => {
            let budget = Budget::of(plan.whole());
            budget.take().then_some(budget)?
        }
        None => return None,
    };
    let mut follows = Spans::new();
    // A cause whose budget is used up ends here.
    let causes = causes().filter(|_| given.is_some());
    for span in causes.flat_map(|it| &it.spans) {
        if follows.iter().all(|it| it.id() != span.id()) {
            follows.push(span.clone());
        }
    }
    let span = is_allowed.then(|| span_of(step));
    // A span without a subscriber counts as none.
    let span = span.filter(|span| !span.is_disabled() && plan.take());
    let Some(span) = span else {
        // Later spans follow from the causes through this step.
        return (!follows.is_empty()).then(|| {
            Cause::new(Context {
                spans: follows,
                is_own: false,
                budget,
            })
        });
    };
    for cause in &follows {
        span.follows_from(cause);
    }
    span.with_subscriber(|(id, subscriber)| subscriber.enter(id));
    Some(Cause::new(Context {
        spans: SmallVec::from_iter([span]),
        is_own: true,
        budget,
    }))
}

fn span_of(step: &TracedStep<'_>) -> Span {
    let label = step.label();
    let type_name = step.type_name();
    tracing::span!(
        target: "ganger::step",
        parent: None,
        Level::INFO,
        "step",
        pid = %step.pid(),
        r#type = type_name,
        method = %step.method(),
        label = label.as_deref(),
        events = step.events(),
        error = Empty,
        otel.name = type_name,
        otel.status_code = Empty,
    )
}

impl Context {
    /// Returns the span of the step that hands this on.
    fn own(&self) -> Option<&Span> {
        if self.is_own {
            self.spans.first()
        } else {
            None
        }
    }
}

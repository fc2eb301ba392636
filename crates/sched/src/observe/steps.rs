//! How a tracer is told of steps, and how the acts of a traced step get their cause.
//!
//! **Protocol.** The worker asks the tracer before each step. The answer is the cause of all acts
//! of the thread until the step is over: [`NOW`]. `probe/carry.rs` says how causes go on.

use super::Observation;
use super::record::Record;
use crate::base::contain::contain;
use crate::base::tracer::{Cause, StepTracer, TracedStep};
use crate::probe::{Carry, StepFacts};
use ganger_proc_api::ExitReason;
use std::any::Any;
use std::cell::RefCell;
use std::mem;
use std::sync::Arc;

thread_local! {
    static NOW: RefCell<Now> = const { RefCell::new(Now::Outside) };

    /// The last steps of processes that end in turns of this thread.
    static LAST: RefCell<Vec<Began>> = const { RefCell::new(Vec::new()) };
}

/// The cause of a thread's acts.
enum Now {
    /// The tracer says.
    Outside,
    /// This cause, or none.
    Inside(Option<Cause>),
}

impl Cause {
    /// Returns the cause of the calling thread's acts, in a traced step and in
    /// [`within`](Self::within).
    #[must_use]
    pub fn now() -> Option<Self> {
        // None where the thread ends.
        NOW.try_with(|now| match &*now.borrow() {
            Now::Inside(cause) => cause.clone(),
            Now::Outside => None,
        })
        .ok()
        .flatten()
    }

    /// Calls `f`, whose sends, starts and wake-ups have this cause.
    pub fn within<R>(self, f: impl FnOnce() -> R) -> R {
        let _outer = Outer::put(Some(self));
        f()
    }
}

/// The former cause, which is restored when this is dropped.
struct Outer(Now);

impl Outer {
    fn put(cause: Option<Cause>) -> Self {
        Self(replace(Now::Inside(cause)))
    }
}

impl Drop for Outer {
    fn drop(&mut self) {
        drop(replace(mem::replace(&mut self.0, Now::Outside)));
    }
}

/// Replaces the cause. The caller drops the former cause, which may call foreign code, and contains
/// its panics.
fn replace(next: Now) -> Now {
    // None where the thread ends.
    let before = NOW.try_with(|now| now.replace(next));
    before.unwrap_or(Now::Outside)
}

fn is_inside() -> bool {
    NOW.try_with(|now| matches!(*now.borrow(), Now::Inside(_)))
        .unwrap_or(false)
}

/// A begun step. Its drop ends it.
pub(crate) struct Began {
    /// The tracer and the cause of a traced step.
    traced: Option<(Arc<dyn StepTracer>, Cause)>,
    _outer: Outer,
}

impl Drop for Began {
    fn drop(&mut self) {
        if let Some((tracer, step)) = self.traced.take() {
            let _panic = contain(move || tracer.end(&step));
        }
    }
}

/// A turn of a scheduler that traces steps. Its drop ends the last step, if it is not over.
#[derive(Default)]
pub(crate) struct TracedTurn(Option<usize>);

impl Drop for TracedTurn {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            end_last(before);
        }
    }
}

#[cold]
#[inline(never)]
fn end_last(before: usize) {
    let last = |last: &RefCell<Vec<Began>>| last.borrow_mut().split_off(before);
    drop(LAST.try_with(last));
}

impl Observation {
    fn tracer(&self) -> Option<&Arc<dyn StepTracer>> {
        self.0.as_deref()?.tracer.as_ref()
    }
}

impl Carry for Observation {
    type Cause = Cause;
    type Step = Option<Box<Began>>;
    type Turn = TracedTurn;

    #[inline(always)]
    fn traces(&self) -> bool {
        self.tracer().is_some()
    }

    #[inline(always)]
    fn cause(&self) -> Option<Cause> {
        self.tracer().and_then(find_cause)
    }

    #[inline(always)]
    fn own_cause(&self) -> Option<Cause> {
        self.tracer().and_then(|_| find_own())
    }

    #[inline(always)]
    fn here() -> Option<Cause> {
        Cause::now()
    }

    #[inline(always)]
    fn turn(&self) -> TracedTurn {
        TracedTurn(self.tracer().and_then(|_| lasts()))
    }

    fn begin(
        &self,
        process: &Option<Box<Record>>,
        facts: StepFacts,
        causes: Vec<Cause>,
    ) -> Option<Box<Began>> {
        let tracer = self.tracer()?;
        let step = TracedStep {
            pid: facts.pid,
            method: facts.method,
            type_name: facts.type_name,
            events: facts.events,
            worker: facts.worker,
            label_number: process.as_deref().map_or(0, |record| record.label().0),
            label: &|| self.label(process),
        };
        let begun = contain(move || tracer.begin(&step, &causes)).ok().flatten();
        let Some(begun) = begun else {
            // In the simulation it may be within another step.
            return is_inside().then(|| {
                Box::new(Began {
                    traced: None,
                    _outer: Outer::put(None),
                })
            });
        };
        let traced = Some((Arc::clone(tracer), begun.clone()));
        let _outer = Outer::put(Some(begun));
        Some(Box::new(Began { traced, _outer }))
    }

    fn fail(step: &Option<Box<Began>>, reason: &ExitReason) {
        if let Some(began) = step
            && let Some((tracer, step)) = &began.traced
        {
            let _panic = contain(|| tracer.fail(step, reason));
        }
    }

    #[inline(always)]
    fn is_last(step: Option<Box<Began>>) {
        if let Some(began) = step {
            keep_last(*began);
        }
    }

    #[cfg(feature = "sim")]
    fn uncaused<R>(f: impl FnOnce() -> R) -> R {
        let _outer = Outer::put(None);
        f()
    }

    fn outwards(cause: Cause) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(cause.0)
    }

    fn within<R>(cause: Arc<dyn Any + Send + Sync>, f: impl FnOnce() -> R) -> R {
        Cause(cause).within(f)
    }
}

#[cold]
#[inline(never)]
fn find_cause(tracer: &Arc<dyn StepTracer>) -> Option<Cause> {
    if is_inside() {
        return Cause::now();
    }
    contain(|| tracer.outside()).ok().flatten()
}

#[cold]
#[inline(never)]
fn find_own() -> Option<Cause> {
    Cause::now()
}

/// Returns the number of last steps of outer turns.
#[cold]
#[inline(never)]
fn lasts() -> Option<usize> {
    LAST.try_with(|last| last.borrow().len()).ok()
}

#[cold]
#[inline(never)]
fn keep_last(began: Began) {
    let mut began = Some(began);
    // The thread ends: the step is over.
    let _ends = LAST.try_with(|last| last.borrow_mut().extend(began.take()));
    drop(mem::take(&mut began));
}

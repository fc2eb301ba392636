//! Causes of work that waits outside of mailboxes.

use crate::probe::{Carrier, Carry, Cause, StepFacts, TracedStep};
use crate::runtime::cell::ProcessCell;
use ganger_proc_api::Context;
use std::fmt;

/// The cause of a job in a queue of another crate: see `probe/carry.rs`. Of no size where no step
/// is traced.
#[derive(Clone, Default)]
pub struct Carried(Option<Cause>);

impl Carried {
    /// Returns the cause of this thread's present work, if it is known: a traced step.
    #[must_use]
    #[inline]
    pub fn here() -> Self {
        Self(Carrier::here())
    }

    /// Carries the job out, in a step of the process: as a step of its own, if it has a cause.
    #[inline]
    pub fn step<R>(self, ctx: &Context, job: impl FnOnce() -> R) -> R {
        let _traced = self.0.map_or_else(TracedStep::default, |it| begin(ctx, it));
        job()
    }
}

impl fmt::Debug for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_some = self.0.is_some();
        f.debug_tuple("Carried").field(&is_some).finish()
    }
}

#[cold]
#[inline(never)]
fn begin(ctx: &Context, cause: Cause) -> TracedStep {
    let Some(task) = ctx.backend_ref::<ProcessCell>() else {
        return TracedStep::default();
    };
    let facts = StepFacts {
        pid: task.pid(),
        method: task.method,
        type_name: task.about.type_name(),
        events: 1,
        worker: task.shared.own_index(),
    };
    let carrier = task.shared.carrier();
    carrier.begin(task.carried(), facts, vec![cause])
}

//! How a tracer sees the steps of a scheduler.

use super::contain::contain;
use ganger_proc_api::{ExitReason, Pid, Symbol};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// The source of messages, answers, starts and wake-ups, as a tracer knows it: a traced step, for
/// example. Clones are of the same source.
#[derive(Clone)]
pub struct Cause(pub(crate) Arc<dyn Any + Send + Sync>);

impl Cause {
    /// Makes a cause with the value, which a tracer finds there.
    #[must_use]
    pub fn new(value: impl Any + Send + Sync) -> Self {
        Self(Arc::new(Value(Some(value))))
    }

    /// Returns the value, if the value is a `T`.
    #[must_use]
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref::<Value<T>>()?.0.as_ref()
    }
}

/// A tracer's value. The last of its causes goes anywhere: in a step, at the end of a process, in a
/// sender. So its drop, which is foreign code, contains its panic itself.
struct Value<T>(Option<T>);

impl<T> Drop for Value<T> {
    fn drop(&mut self) {
        let value = self.0.take();
        let _panic = contain(|| drop(value));
    }
}

/// Two causes are equal when they are clones.
impl PartialEq for Cause {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Cause {}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cause").finish_non_exhaustive()
    }
}

/// Traces steps: see [`Builder::trace_steps`](crate::Builder::trace_steps).
///
/// The worker makes all calls of a step on its own thread, and contains their panics. So does each
/// thread that drops the last clone of a [`Cause`], with the drop of its value.
pub trait StepTracer: Send + Sync + 'static {
    /// Begins a step. Returns the cause of all acts of the step, or `None` for a step that is not
    /// traced and hands nothing on.
    ///
    /// `causes` are the known causes of the step's events, the earliest first. The first step of a
    /// process has the cause of the start.
    fn begin(&self, step: &TracedStep<'_>, causes: &[Cause]) -> Option<Cause>;

    /// Tells that the step has failed or panicked. [`end`](Self::end) follows.
    fn fail(&self, step: &Cause, reason: &ExitReason) {
        let _ = (step, reason);
    }

    /// Ends the step for which [`begin`](Self::begin) has returned this cause.
    fn end(&self, step: &Cause);

    /// Returns the cause of the calling thread's acts outside of traced steps: the program's own
    /// span, for example. A thread asks at each send, spawn and wake-up.
    fn outside(&self) -> Option<Cause> {
        None
    }
}

/// A step about to begin.
#[derive(Clone, Copy)]
pub struct TracedStep<'a> {
    pub(crate) pid: Pid,
    pub(crate) method: Symbol,
    pub(crate) type_name: &'static str,
    pub(crate) events: usize,
    pub(crate) worker: Option<usize>,
    pub(crate) label_number: u16,
    pub(crate) label: &'a dyn Fn() -> Option<Arc<str>>,
}

impl TracedStep<'_> {
    /// Returns the process's PID.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns the method of the process, as it was submitted.
    #[must_use]
    pub fn method(&self) -> Symbol {
        self.method
    }

    /// Returns the name of the process's type.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        self.type_name
    }

    /// Returns the number of events of the step.
    #[must_use]
    pub fn events(&self) -> usize {
        self.events
    }

    /// Returns the number of the worker; `None` on another thread.
    #[must_use]
    pub fn worker(&self) -> Option<usize> {
        self.worker
    }

    /// Returns the process's label for accounting. O(1), under a lock.
    #[must_use]
    pub fn label(&self) -> Option<Arc<str>> {
        (self.label)()
    }

    /// Returns the number of the label among the scheduler's labels; 0 without a label.
    #[must_use]
    pub fn label_number(&self) -> u16 {
        self.label_number
    }
}

impl fmt::Debug for TracedStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TracedStep")
            .field("pid", &self.pid)
            .field("type_name", &self.type_name)
            .finish_non_exhaustive()
    }
}

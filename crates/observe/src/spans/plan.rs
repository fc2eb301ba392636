//! The choice of steps.

use ganger_proc_api::Pid;
use ganger_sched::TracedStep;
use ganger_sync::CachePadded;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The default number of traced steps behind a beginning.
const WHOLE: u32 = 256;

/// The number of workers with a count of their own for the rate.
const PLACES: usize = 64;

/// The number of labels whose choice is remembered.
const LABELS: usize = 10_002;

/// Chooses steps: all steps, or the steps of some processes, and a part of these.
///
/// A step meets a kind when it has any of the names given for the kind, and must meet all given
/// kinds. So this chooses steps of carts and orders, if these have the label:
///
/// ```
/// use ganger_observe::Steps;
///
/// let steps = Steps::all()
///     .of_type("shop::Cart")
///     .of_type("shop::Order")
///     .of_label("tenant-7")
///     .rate(1, 100);
/// # let _ = steps;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "it chooses nothing until `trace_steps` or `choose` has it"]
pub struct Steps {
    types: Vec<String>,
    methods: Vec<String>,
    labels: Vec<String>,
    pids: Vec<Pid>,
    rate: (u32, u32),
    whole: u32,
    most: Option<u64>,
    is_none: bool,
}

impl Steps {
    /// Chooses all steps.
    pub fn all() -> Self {
        Self {
            types: Vec::new(),
            methods: Vec::new(),
            labels: Vec::new(),
            pids: Vec::new(),
            rate: (1, 1),
            whole: WHOLE,
            most: None,
            is_none: false,
        }
    }

    /// Chooses no step.
    pub fn none() -> Self {
        let is_none = true;
        Self {
            is_none,
            ..Self::all()
        }
    }

    /// Steps of processes whose type's name begins like this: `shop::` for the types of a crate. A
    /// task has the name of its function, with `{{closure}}`.
    pub fn of_type(mut self, begin: impl Into<String>) -> Self {
        self.types.push(begin.into());
        self
    }

    /// Steps of processes with this method.
    pub fn of_method(mut self, method: impl Into<String>) -> Self {
        self.methods.push(method.into());
        self
    }

    /// Steps of processes with this label.
    pub fn of_label(mut self, label: impl Into<String>) -> Self {
        self.labels.push(label.into());
        self
    }

    /// Steps of this process.
    pub fn of_process(mut self, pid: Pid) -> Self {
        self.pids.push(pid);
        self
    }

    /// Sets the rate: `some` of `of`, among steps without a traced cause. The rate is exact: each
    /// worker chooses `some` of any `of` steps in a row, and begins with the first. With 0, spans
    /// of the program's own are the only beginnings.
    ///
    /// # Panics
    /// When `of` is zero.
    pub fn rate(self, some: u32, of: u32) -> Self {
        assert!(of > 0, "a rate is of one step at least");
        let rate = (some.min(of), of);
        Self { rate, ..self }
    }

    /// Limits the traced steps behind a step that the [rate](Self::rate) has chosen, itself
    /// included, or behind a message from a span of the program's own. Default: 256. Later steps
    /// have spans by the rate alone, and no links.
    pub fn whole(self, steps: u32) -> Self {
        Self {
            whole: steps,
            ..self
        }
    }

    /// Limits the spans of this choice altogether. Later steps have no span, and cost as much as
    /// with [`none`](Self::none), until the next choice. Default: no limit. So a look at a busy
    /// program ends by itself:
    ///
    /// ```
    /// use ganger_observe::Steps;
    ///
    /// let steps = Steps::all().of_label("tenant-7").at_most(10_000);
    /// # let _ = steps;
    /// ```
    pub fn at_most(self, spans: u64) -> Self {
        Self {
            most: Some(spans),
            ..self
        }
    }
}

/// The choice, as a tracer uses it.
pub(super) struct Plan {
    steps: Steps,
    /// The spans left, if they are limited.
    left: Option<AtomicU64>,
    /// The number of steps that each worker has asked about.
    seen: Box<[CachePadded<AtomicU64>]>,
    /// The choice of each label, by its number; empty if labels do not matter.
    labels: Box<[AtomicU8]>,
}

/// The label was not looked up.
const UNKNOWN: u8 = 0;
const CHOSEN: u8 = 1;
const OTHER: u8 = 2;

impl Plan {
    pub(super) fn new(steps: Steps) -> Self {
        let labels = if steps.labels.is_empty() { 0 } else { LABELS };
        Self {
            seen: (0..=PLACES).map(|_| CachePadded::default()).collect(),
            labels: (0..labels).map(|_| AtomicU8::new(UNKNOWN)).collect(),
            left: steps.most.map(AtomicU64::new),
            steps,
        }
    }

    /// Returns whether no step is chosen any more.
    pub(super) fn is_none(&self) -> bool {
        // Ordering: Relaxed: a count alone.
        let is_used_up = |left: &AtomicU64| left.load(Ordering::Relaxed) == 0;
        self.steps.is_none || self.left.as_ref().is_some_and(is_used_up)
    }

    /// Takes a span; `false` when none is left.
    pub(super) fn take(&self) -> bool {
        let one_less = |left: u64| left.checked_sub(1);
        self.left.as_ref().is_none_or(|left| {
            // Ordering: Relaxed: a count alone.
            let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
            taken.is_ok()
        })
    }

    /// Returns the most traced steps behind a beginning.
    pub(super) fn whole(&self) -> u32 {
        self.steps.whole
    }

    /// Returns whether the step may have a span.
    pub(super) fn allows(&self, step: &TracedStep<'_>) -> bool {
        let Steps {
            types,
            methods,
            pids,
            ..
        } = &self.steps;
        let meets_type = || types.iter().any(|it| step.type_name().starts_with(&**it));
        let meets_method = || methods.iter().any(|it| step.method() == it.as_str());
        (pids.is_empty() || pids.contains(&step.pid()))
            && (types.is_empty() || meets_type())
            && (methods.is_empty() || meets_method())
            && (self.labels.is_empty() || self.meets_label(step))
    }

    fn meets_label(&self, step: &TracedStep<'_>) -> bool {
        let look = || {
            let label = step.label();
            label.is_some_and(|label| self.steps.labels.iter().any(|it| **it == *label))
        };
        let Some(known) = self.labels.get(usize::from(step.label_number())) else {
            return look();
        };
        // Ordering: Relaxed, here and below: the choice of a label stays, and stands alone.
        match known.load(Ordering::Relaxed) {
            CHOSEN => true,
            OTHER => false,
            _ => {
                let is_chosen = look();
                let known_now = if is_chosen { CHOSEN } else { OTHER };
                // Ordering: Relaxed: the choice of a label stays, and stands alone.
                known.store(known_now, Ordering::Relaxed);
                is_chosen
            }
        }
    }

    /// Decides whether the rate chooses the next step of the worker.
    pub(super) fn draws(&self, worker: Option<usize>) -> bool {
        let (some, of) = self.steps.rate;
        if some == of {
            return true;
        }
        let place = worker.map_or(PLACES, |worker| worker % PLACES);
        // Ordering: Relaxed: a count alone.
        let nth = self.seen[place].fetch_add(1, Ordering::Relaxed) % u64::from(of);
        // Evenly spread, as a line of this slope crosses a grid.
        nth * u64::from(some) % u64::from(of) < u64::from(some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // pins: V13
    #[test]
    fn a_limit_of_spans_is_kept_beside_others_and_is_none_behind() {
        let plan = Plan::new(Steps::all().at_most(100));
        assert!(!plan.is_none());
        let taken = std::thread::scope(|scope| {
            let takes = || (0..60).filter(|_| plan.take()).count();
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(takes)).collect();
            let each = threads.into_iter().map(|it| it.join().unwrap());
            each.sum::<usize>()
        });
        assert_eq!((taken, plan.is_none()), (100, true));
        assert!(Plan::new(Steps::all().at_most(0)).is_none());
        let unlimited = Plan::new(Steps::all());
        assert!((0..1_000).all(|_| unlimited.take()) && !unlimited.is_none());
    }

    // pins: V13
    #[test]
    fn a_rate_is_exact_for_each_worker_and_evenly_spread() {
        for (some, of) in [(1, 1), (0, 1), (1, 100), (3, 7), (99, 100), (5, 4), (0, 9)] {
            let plan = Plan::new(Steps::all().rate(some, of));
            let expected = some.min(of);
            assert!(!plan.is_none());
            for worker in [None, Some(0), Some(1), Some(PLACES - 1)] {
                let drawn: Vec<_> = (0..5 * of).map(|_| plan.draws(worker)).collect();
                for window in drawn.windows(of as usize) {
                    let count = window.iter().filter(|it| **it).count();
                    assert_eq!(count, expected as usize, "{some} of {of} at {worker:?}");
                }
                assert_eq!(drawn[0], some > 0, "the first is one of them");
            }
        }
    }
}

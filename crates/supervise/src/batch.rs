//! Batches of values.

use ganger_proc_api::{Completion, StepOutput, Tag};
use std::fmt;
use std::mem;
use std::time::Duration;

/// Collects values up to a number, or until the first value has waited for some time: for a process
/// that writes to a database once for many messages, for example.
///
/// ```
/// use ganger_proc_api::{Actor, BoxError, Completion, Context, Reply, StepOutput, StepResult};
/// # use ganger_sched::Scheduler;
/// use ganger_supervise::Batch;
/// # use std::sync::Arc;
/// use std::time::Duration;
///
/// /// Stores lines, many at a time, and tells each sender how many were stored with its own.
/// struct Store(Batch<(String, Reply<usize>)>);
///
/// impl Store {
///     fn store(lines: Vec<(String, Reply<usize>)>) {
///         let stored = lines.len();
///         lines.into_iter().for_each(|(_, reply)| reply.complete(stored));
///     }
/// }
///
/// impl Actor for Store {
///     type Message = (String, Reply<usize>);
///
///     fn receive(&mut self, _: &Context, it: Self::Message, out: &mut StepOutput) -> StepResult {
///         self.0.push(it, out).map(Self::store);
///         Ok(())
///     }
///
///     fn completed(&mut self, _: &Context, it: Completion, _: &mut StepOutput) -> StepResult {
///         self.0.completed(&it).map(Self::store);
///         Ok(())
///     }
/// }
///
/// # let scheduler = Scheduler::builder().build()?;
/// # scheduler.start()?;
/// let batch = Batch::new(100, Duration::from_millis(5), 1);
/// let store = scheduler.spawn(Store(batch))?;
/// let one = store.call(|reply| ("one".to_owned(), reply)).begin();
/// let other = store.call(|reply| ("other".to_owned(), reply)).begin();
/// assert!(one.wait()? + other.wait()? >= 2);
/// # Ok::<(), BoxError>(())
/// ```
pub struct Batch<T> {
    values: Vec<T>,
    most: usize,
    wait: Duration,
    tag: Tag,
    is_armed: bool,
}

impl<T> Batch<T> {
    /// Creates an empty batch of up to `most` values, from 1 up. No value waits longer than `wait`.
    /// The completion of the timer has the tag, which the process uses for nothing else.
    #[must_use]
    pub const fn new(most: usize, wait: Duration, tag: Tag) -> Self {
        Self {
            values: Vec::new(),
            most: if most == 0 { 1 } else { most },
            wait,
            tag,
            is_armed: false,
        }
    }

    /// Adds a value. Returns all values when the batch is full.
    pub fn push(&mut self, value: T, out: &mut StepOutput) -> Option<Vec<T>> {
        self.values.push(value);
        if self.values.len() >= self.most {
            return Some(self.take(out));
        }
        if !mem::replace(&mut self.is_armed, true) {
            out.sleep(self.wait, self.tag);
        }
        None
    }

    /// Takes a completion. Returns the values when the completion is the batch's timer.
    pub fn completed(&mut self, completion: &Completion) -> Option<Vec<T>> {
        let is_due = completion.tag == self.tag && mem::take(&mut self.is_armed);
        is_due.then(|| mem::take(&mut self.values))
    }

    /// Takes the present values, perhaps none: for a process that finishes.
    #[must_use = "the values are in no batch any more"]
    pub fn take(&mut self, out: &mut StepOutput) -> Vec<T> {
        if mem::take(&mut self.is_armed) {
            out.cancel(self.tag);
        }
        mem::take(&mut self.values)
    }

    /// Returns the number of waiting values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether no value waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

impl<T> fmt::Debug for Batch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("len", &self.len())
            .field("most", &self.most)
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}

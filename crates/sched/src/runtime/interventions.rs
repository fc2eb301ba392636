//! Suspensions of processes, and questions to processes between two steps.
//!
//! **Problem.** A process must take no step for a while, or an operator asks for its state. The
//! mailbox may have millions of events before such a request. A process without requests must not
//! pay for them.
//!
//! **Rejected.** A second word in each cell: eight bytes for all processes. An item in the mailbox:
//! the item waits behind others, and a suspended process drains nothing. A lock in each process:
//! the worker would hold it in each turn.
//!
//! **Protocol.** A table of the scheduler, under a lock, has the processes with requests. The mark
//! `intervened` sends the worker of a process to the table.
//! 1. *The asking thread* notes the request in the table, and sets the mark under the lock. Then
//!    the thread pushes a nudge, and so wakes a waiting process. If the table has the run token of
//!    the process, the thread takes the token and queues the process instead.
//! 2. *The worker* looks at the mark together with `terminate`: at the begin of a turn, and before
//!    the process parks. The worker answers questions without the lock, until none is left
//!    ([`next`](Interventions::next)). After the last request the worker clears the mark under the
//!    lock, and steps.
//! 3. *The worker of a suspended process* ends the turn without a step, and leaves the run token in
//!    the table ([`hold`](Interventions::hold)), unless a request has come meanwhile. Senders then
//!    push behind one another, and owe no wake-up.
//! 4. *A resumer* and *a terminator* take the token out, and queue the process.
//! 5. *A stop* resumes all processes, and suspensions are refused from then on.
//! 6. *The end of a process* with the mark takes its entry out.
//!
//! **Why no process stands for ever.** The worker leaves the token under the lock, after a look at
//! the request and at `terminate`. A resumer changes the request under the lock: before the
//! worker's look, which then sees the change, or later, and then finds the token. A terminator
//! marks the process before it takes the lock, so the same holds. A terminator that does not see
//! `intervened` comes before the mark: then the worker sees `terminate` with `intervened`, because
//! both are bits of the same word.

use ganger_sync::sync::{Mutex, lock};
use std::collections::BTreeMap;
use std::mem;

/// The requests to the processes of a scheduler, with run tokens of the type `T` and questions of
/// the type `Q`.
pub(crate) struct Interventions<T, Q>(Mutex<Table<T, Q>>);

struct Table<T, Q> {
    /// By the numbers of processes, so that a simulation repeats.
    entries: BTreeMap<u64, Entry<T, Q>>,
    /// Whether the scheduler stops.
    is_over: bool,
}

struct Entry<T, Q> {
    is_suspended: bool,
    /// The run token of a standing process.
    token: Option<T>,
    questions: Vec<Q>,
}

/// How far the suspension of a process has come.
#[cfg(any(test, feature = "observe"))]
#[cfg_attr(
    not(feature = "observe"),
    expect(unreachable_pub, reason = "the enum is public with the feature")
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suspended {
    /// The process takes no step until a resume.
    Stands,
    /// The process is in its turn, or in a queue, and stands at the end of the turn, or in place of
    /// it. Another call of [`Handle::suspend`](crate::Handle::suspend) tells the progress.
    Soon,
}

/// Why a suspension is refused.
#[cfg(any(test, feature = "observe"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsuspended {
    Stops,
    Ended,
}

/// The most questions that wait for a process.
#[cfg(any(test, feature = "observe"))]
const QUESTIONS: usize = 16;

/// Why a question is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg(any(test, feature = "observe"))]
pub(crate) enum Unasked {
    TooMany,
    Ended,
}

/// The worker's next act for its process.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<Q> {
    /// Answer these questions.
    Answer(Vec<Q>),
    /// End the turn without a step, and leave the token.
    Stay,
    /// Step.
    Step,
}

impl<T, Q> Default for Interventions<T, Q> {
    fn default() -> Self {
        Self(Mutex::new(Table {
            entries: BTreeMap::new(),
            is_over: false,
        }))
    }
}

impl<T, Q> Default for Entry<T, Q> {
    fn default() -> Self {
        Self {
            is_suspended: false,
            token: None,
            questions: Vec::new(),
        }
    }
}

impl<T, Q> Interventions<T, Q> {
    /// Suspends the process. `mark` marks the process, and tells whether the process lives. The
    /// flag tells whether the caller owes a nudge.
    #[cfg(any(test, feature = "observe"))]
    pub(crate) fn suspend(
        &self,
        process: u64,
        mark: impl FnOnce() -> bool,
    ) -> Result<(Suspended, bool), Unsuspended> {
        let mut table = lock(&self.0);
        if table.is_over {
            return Err(Unsuspended::Stops);
        }
        let entry = table.entries.entry(process).or_default();
        if entry.is_suspended {
            let stands = match entry.token {
                Some(_) => Suspended::Stands,
                None => Suspended::Soon,
            };
            return Ok((stands, false));
        }
        if !mark() {
            table.entries.remove(&process);
            return Err(Unsuspended::Ended);
        }
        entry.is_suspended = true;
        Ok((Suspended::Soon, true))
    }

    /// Ends a suspension. Tells whether the process was suspended, and gives its token, for the
    /// caller to queue.
    #[cfg(any(test, feature = "observe"))]
    pub(crate) fn resume(&self, process: u64) -> (bool, Option<T>) {
        let mut table = lock(&self.0);
        let Some(entry) = table.entries.get_mut(&process) else {
            return (false, None);
        };
        let was_suspended = mem::take(&mut entry.is_suspended);
        (was_suspended, entry.token.take())
    }

    /// Asks a question between two steps. `mark` is as in [`suspend`](Self::suspend). Returns the
    /// token, for the caller to queue; without a token the caller owes a nudge.
    ///
    /// # Errors
    /// Gives the question back, with the reason.
    #[cfg(any(test, feature = "observe"))]
    pub(crate) fn ask(
        &self,
        process: u64,
        question: Q,
        mark: impl FnOnce() -> bool,
    ) -> Result<Option<T>, (Q, Unasked)> {
        let mut table = lock(&self.0);
        let entry = table.entries.entry(process).or_default();
        if entry.questions.len() == QUESTIONS {
            return Err((question, Unasked::TooMany));
        }
        if !mark() {
            table.entries.remove(&process);
            return Err((question, Unasked::Ended));
        }
        entry.questions.push(question);
        Ok(entry.token.take())
    }

    /// Decides the next act of the worker of a marked process. `clear` takes the mark back.
    pub(crate) fn next(&self, process: u64, clear: impl FnOnce()) -> Next<Q> {
        let mut table = lock(&self.0);
        let Some(entry) = table.entries.get_mut(&process) else {
            clear();
            return Next::Step;
        };
        if !entry.questions.is_empty() {
            return Next::Answer(mem::take(&mut entry.questions));
        }
        if entry.is_suspended {
            return Next::Stay;
        }
        table.entries.remove(&process);
        clear();
        Next::Step
    }

    /// Leaves the token of a suspended process here. `stays` is called under the lock, where no
    /// other request has come. When `stays` returns `false`, the token comes back.
    pub(crate) fn hold(
        &self,
        process: u64,
        token: T,
        stays: impl FnOnce() -> bool,
    ) -> Result<(), T> {
        let mut table = lock(&self.0);
        match table.entries.get_mut(&process) {
            Some(entry) if entry.is_suspended && entry.questions.is_empty() && stays() => {
                entry.token = Some(token);
                Ok(())
            }
            _ => Err(token),
        }
    }

    /// Takes the token of a terminated process out, for the caller to queue.
    pub(crate) fn release(&self, process: u64) -> Option<T> {
        lock(&self.0).entries.get_mut(&process)?.token.take()
    }

    /// Drops the requests to an ended process.
    pub(crate) fn forget(&self, process: u64) {
        let forgotten = lock(&self.0).entries.remove(&process);
        // Without the lock, because the drop calls users' code.
        drop(forgotten);
    }

    /// Ends all suspensions, for a stop. Returns the tokens, for the caller to queue.
    pub(crate) fn end(&self) -> Vec<T> {
        let mut table = lock(&self.0);
        table.is_over = true;
        let entries = table.entries.values_mut();
        let tokens = entries.filter_map(|entry| {
            entry.is_suspended = false;
            entry.token.take()
        });
        tokens.collect()
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.0).entries.is_empty()
    }
}

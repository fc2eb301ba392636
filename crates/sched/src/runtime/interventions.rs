//! What is asked of processes from outside, beside their events: to stand still, or to be looked
//! into between two steps.
//!
//! **Problem.** A process is to take no step for a while, or an operator wants to see its state.
//! Neither may come in the order of its events, because a mailbox may have millions. A process of
//! which nothing is asked must not pay for it.
//!
//! **Rejected.** A second word in each cell: eight bytes for all processes. An item in the mailbox
//! that the worker looks for: an item waits behind others, and a suspended process drains nothing.
//! A lock of the process itself: a worker would hold it in each turn.
//!
//! **Protocol.** One table of a scheduler, under one lock, has the processes of which something is
//! asked. The mark `intervened` of a process sends its worker there.
//! 1. *The thread that asks* notes it in the table, and sets the mark under the lock. Then it
//!    pushes a nudge, so that a process that waits comes by. If the table has the run token of the
//!    process, the thread takes it and queues the process instead.
//! 2. *The worker* looks at the mark where it looks at `terminate`: as a turn begins, and before
//!    the process parks. It answers questions without the lock, until there are no more
//!    ([`next`](Interventions::next)). When nothing else is asked, it clears the mark under the
//!    lock, and steps.
//! 3. *The worker of a process that is to stand still* ends the turn without a step, and leaves the
//!    run token in the table ([`hold`](Interventions::hold)), unless something has come meanwhile.
//!    Nothing else has the token then: senders push behind one another, and owe no wake-up.
//! 4. *The thread that resumes the process*, or *terminates* it, takes the token out and queues the
//!    process.
//! 5. *A stop* resumes all, and nothing is suspended after that.
//! 6. *The end of a process* that has the mark takes its entry out.
//!
//! **Why the process does not stand for ever.** The token is put there under the lock, after a look
//! at what is asked and at `terminate`. A thread that resumes changes that under the lock, so it
//! comes before that look, which sees it, or finds the token. A terminator marks the process before
//! it takes the lock: the same holds. If a terminator does not see `intervened`, the worker that
//! sees it sees `terminate` as well, because both are bits of one word.

use ganger_sync::sync::{Mutex, lock};
use std::collections::BTreeMap;
use std::mem;

/// What is asked of the processes of a scheduler, whose run tokens are of the type `T`, with
/// questions of the type `Q`.
pub(crate) struct Interventions<T, Q>(Mutex<Table<T, Q>>);

struct Table<T, Q> {
    /// By the numbers of processes, so that a simulation repeats.
    entries: BTreeMap<u64, Entry<T, Q>>,
    /// The scheduler stops.
    is_over: bool,
}

struct Entry<T, Q> {
    is_suspended: bool,
    /// Of a process that stands still.
    token: Option<T>,
    questions: Vec<Q>,
}

/// Whether a process that is to stand still does so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suspended {
    /// It takes no step until it is resumed.
    Stands,
    /// It is in its turn, or in a queue, and stands when the turn ends or would begin. Another call
    /// of [`Handle::suspend`](crate::Handle::suspend) says whether it does.
    Soon,
}

/// Why a process is not to stand still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsuspended {
    Stops,
    Ended,
}

/// What a worker does next about its process.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<Q> {
    /// Answer these.
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
    /// Has the process stand still. `mark` marks it, and says whether it lives. The flag says
    /// whether the caller owes a nudge.
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

    /// Lets the process step again. Whether it was to stand still, and its token, which the caller
    /// queues.
    #[cfg(any(test, feature = "observe"))]
    pub(crate) fn resume(&self, process: u64) -> (bool, Option<T>) {
        let mut table = lock(&self.0);
        let Some(entry) = table.entries.get_mut(&process) else {
            return (false, None);
        };
        let was_suspended = mem::take(&mut entry.is_suspended);
        (was_suspended, entry.token.take())
    }

    /// Has a question answered between two steps. `mark` is as that of
    /// [`suspend`](Self::suspend). Returns the token, which the caller queues; without one it owes
    /// a nudge.
    ///
    /// # Errors
    /// Gives the question back when the process has ended.
    #[cfg(test)]
    pub(crate) fn ask(
        &self,
        process: u64,
        question: Q,
        mark: impl FnOnce() -> bool,
    ) -> Result<Option<T>, Q> {
        let mut table = lock(&self.0);
        let entry = table.entries.entry(process).or_default();
        if !mark() {
            table.entries.remove(&process);
            return Err(question);
        }
        entry.questions.push(question);
        Ok(entry.token.take())
    }

    /// What the worker of a marked process does next. `clear` takes the mark back.
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

    /// The worker leaves the token here. `stays` says that the process is to stand still, and is
    /// called under the lock, if nothing else is asked; when it returns `false` the token comes
    /// back.
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

    /// The token of a process that is to take no further step, if it stands. The caller queues it.
    pub(crate) fn release(&self, process: u64) -> Option<T> {
        lock(&self.0).entries.get_mut(&process)?.token.take()
    }

    /// The process has ended. What was asked is dropped.
    pub(crate) fn forget(&self, process: u64) {
        let forgotten = lock(&self.0).entries.remove(&process);
        // Without the lock: it calls others' code.
        drop(forgotten);
    }

    /// The scheduler stops: all processes step again. Returns their tokens, which the caller
    /// queues.
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

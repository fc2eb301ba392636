//! The processes with the most steps, events, messages or time.

use super::{Observer, Pace};
use ganger_proc_api::{Pid, Symbol};
use ganger_sched::{ProcessCounts, ProcessLook, ProcessState};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// An order of processes, the most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum By {
    /// By steps.
    Steps,
    /// By new events given to steps.
    Events,
    /// By the time that steps have taken, in nanoseconds; an estimate.
    #[default]
    Busy,
    /// By how much waits in the mailbox.
    Mailbox,
    /// By how much more waits in the mailbox than at the begin of the window. Without a window as
    /// [`Mailbox`](Self::Mailbox).
    Growth,
    /// By age, in nanoseconds.
    Age,
}

/// A process among the top processes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Top {
    /// Its PID.
    pub pid: Pid,
    /// The value for the order: of steps, events and busy time the value in the window, if any.
    pub value: u64,
    /// Where it is in its life.
    pub state: ProcessState,
    /// The name of its type.
    pub type_name: &'static str,
    /// The method of its submit.
    pub method: Symbol,
    /// The label for its accounts.
    pub label: Option<Arc<str>>,
    /// All counts since its start.
    pub counts: ProcessCounts,
}

impl By {
    /// Returns the present value of a process in this order.
    fn of(self, counts: &ProcessCounts) -> u64 {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        match self {
            Self::Steps => counts.steps,
            Self::Events => counts.events,
            Self::Busy => nanos(counts.busy),
            Self::Mailbox | Self::Growth => counts.waiting,
            Self::Age => nanos(counts.age),
        }
    }

    /// Returns whether a window changes the order.
    fn is_of_a_window(self) -> bool {
        !matches!(self, Self::Mailbox | Self::Age)
    }
}

/// The best so many, by their values and then by their PIDs.
struct Best {
    most: usize,
    heap: BinaryHeap<Reverse<(u64, Reverse<Pid>)>>,
}

impl Best {
    fn add(&mut self, value: u64, pid: Pid) {
        let new = Reverse((value, Reverse(pid)));
        if self.heap.len() < self.most {
            self.heap.push(new);
        } else if let Some(mut least) = self.heap.peek_mut()
            && new < *least
        {
            *least = new;
        }
    }
}

impl Observer {
    /// Returns the `n` processes that have the most, in a window of time that begins now, or since
    /// each was started where the window is zero. Empty where the scheduler is not observed.
    ///
    /// Blocks for the window, and for a pass over all processes, with a window for two passes:
    /// O(processes × log n), and memory for `n`. The answer leaves out processes whose end comes
    /// meanwhile. Two windows of a scheduler follow each other.
    #[must_use]
    pub fn top(&self, n: usize, by: By, window: Duration) -> Vec<Top> {
        let mut best = Best {
            most: n,
            heap: BinaryHeap::with_capacity(n.min(1 << 16)),
        };
        let value = |it: &ProcessLook<'_>| it.counts().map(|counts| by.of(&counts));
        if window.is_zero() || !by.is_of_a_window() {
            self.each(|it| {
                if let Some(value) = value(&it) {
                    best.add(value, it.pid());
                }
            });
        } else {
            let pace = RefCell::new(Pace::of(self));
            let measure = |it: ProcessLook<'_>| {
                pace.borrow_mut().step();
                value(&it).unwrap_or_default()
            };
            let wait = || thread::sleep(window);
            self.handle.over_window(measure, wait, |it, now, before| {
                best.add(now.saturating_sub(before), it.pid());
            });
        }
        let sorted = best.heap.into_sorted_vec();
        let found = sorted
            .into_iter()
            .filter_map(|Reverse((value, Reverse(pid)))| {
                let look = |it: ProcessLook<'_>| Top::of(it, value);
                self.handle.look_at(pid, look).flatten()
            });
        found.collect()
    }
}

impl Top {
    fn of(process: ProcessLook<'_>, value: u64) -> Option<Self> {
        Some(Self {
            pid: process.pid(),
            value,
            state: process.state(),
            type_name: process.type_name(),
            method: process.method(),
            label: process.label(),
            counts: process.counts()?,
        })
    }
}

//! The place of a worker.

use super::lines::Lines;
use ganger_proc_api::Pid;
use std::task::Waker;

pub(super) struct Slot<J, A> {
    /// Jobs for this worker alone.
    pub(super) own: Lines<J, A>,
    pub(super) life: Life,
    /// The process of the place, as far as the queue knows it.
    pub(super) pid: Option<Pid>,
    /// The front monitors it.
    pub(super) is_seen: bool,
    pub(super) is_busy: bool,
    pub(super) waker: Option<Waker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// No process has the place.
    Off,
    /// The front has asked for a process.
    Starts,
    Runs,
    /// The worker has ended. Its process gets another worker, or ends.
    Closed,
}

impl<J, A> Slot<J, A> {
    pub(super) fn new(priorities: usize) -> Self {
        Self {
            own: Lines::new(priorities),
            life: Life::Off,
            pid: None,
            is_seen: false,
            is_busy: false,
            waker: None,
        }
    }

    /// Clears the place, whose process has ended.
    pub(super) fn clear(&mut self) {
        (self.life, self.pid, self.is_seen) = (Life::Off, None, false);
    }
}

//! The phase of a shutdown, for all code that does not carry it out.

pub(crate) mod forced;
pub(crate) mod reaper_pool;
pub(crate) mod report;
pub(crate) mod stopped;
pub(crate) mod stopper;

use self::forced::Forced;
use ganger_sync::atomic::{AtomicU32, Ordering};
use ganger_sync::fence;

/// The stages of a shutdown, which are never taken back, and the forced processes.
///
/// | Bit | Set by a stop | What the others do |
/// |---|---|---|
/// | `STOPPING` | at its beginning | refuse submits, but those of live processes |
/// | `TERMINATING` | at the deadline, if processes are left | end each at its next step boundary |
/// | `HALTED` | at its end | workers and the monitor return when nothing is queued |
///
/// The calls of `stop` and `begin_stop` set the bits, and all other threads read them.
#[derive(Default)]
pub(crate) struct Progress {
    stages: AtomicU32,
    pub(crate) forced: Forced,
}

const STOPPING: u32 = 1;
const TERMINATING: u32 = 2;
const HALTED: u32 = 4;

impl Progress {
    /// Returns whether submits are refused, except from live processes.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_any(STOPPING)
    }

    /// Returns whether the deadline has passed.
    pub(crate) fn is_terminating(&self) -> bool {
        self.is_any(TERMINATING)
    }

    /// Returns whether workers return, or have returned.
    pub(crate) fn is_halted(&self) -> bool {
        self.is_any(HALTED)
    }

    /// Returns whether a process whose turn ends takes no further step: the thread that has just
    /// run the process ends it.
    pub(crate) fn is_over(&self) -> bool {
        self.is_any(TERMINATING | HALTED)
    }

    fn is_any(&self, stages: u32) -> bool {
        // Ordering: SeqCst pairs with the addition in `enter`, in one order with the changes of the
        // queues.
        self.stages.load(Ordering::SeqCst) & stages != 0
    }

    /// Has submits refused from now on, except from live processes.
    pub(crate) fn begin_stopping(&self) {
        self.enter(STOPPING);
        // Pairs with the light fence in `ShardedCount::enter`: a submitter counts itself, then
        // reads this stage; a stop enters the stage, then reads the count. So the submitter or the
        // stop sees the other. Pairs with the light fence in `submit` as well, as in
        // `begin_terminating`.
        fence::heavy();
    }

    /// Has each process end at its next step boundary.
    pub(crate) fn begin_terminating(&self) {
        self.enter(TERMINATING);
        // Pairs with the light fence in `submit`: a submitter makes its process visible, then reads
        // this stage; a stop enters the stage, then reads all visible processes. So the submitter
        // or the stop sees the other.
        fence::heavy();
    }

    /// Has the workers and the monitor return when nothing is queued.
    pub(crate) fn halt(&self) {
        self.enter(HALTED);
    }

    fn enter(&self, stage: u32) {
        // Ordering: SeqCst pairs with the loads in `is_any`: a process is queued, then the stage is
        // read; the stage is set, then the queues are looked at. So the reader sees the stage, or
        // the look sees the process.
        self.stages.fetch_or(stage, Ordering::SeqCst);
    }
}

/// Separates a look that has seen the halt from the last look at the queues.
pub(crate) fn fence_after_halt() {
    // Ordering: SeqCst pairs with the fence in `Idle::notify_from_outside`: a process is queued,
    // then the halt is looked at; the halt is seen here, then the queues are looked at. So the
    // first look sees the halt, or the second look sees the process.
    ganger_sync::atomic::fence(Ordering::SeqCst);
}

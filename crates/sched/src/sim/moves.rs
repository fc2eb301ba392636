//! The moves of a machine's actors, and their clock.

use crate::base::clock::Clock;
use ganger_proc_api::Pid;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// The kind of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Did {
    /// Nothing: there was no move to make.
    Nothing,
    /// A look without a result.
    Looked,
    /// A look with a found process.
    Found(Pid),
    /// The end of its search, with a wake-up of another worker for the remaining work.
    TookUp(Pid),
    /// A turn of the process.
    Ran(Pid),
    /// The announcement of its sleep.
    Announced,
    /// Its withdrawal: something is left to do after all.
    Withdrew,
    /// The step of the process blocks its thread, before any other act.
    Blocked(Pid),
    /// Its place has been taken: it leaves its processes to others, and is a spare.
    StoodDown,
    /// The actor takes the place of another worker.
    CameBack,
    /// No process has needed it for a while: its thread has ended, and its slot is free.
    Retired,
    /// The actor sleeps.
    FellAsleep,
    /// The actor has been woken.
    Woke,
    /// The actor has left, because the scheduler has halted.
    Left,
    /// The monitor has looked.
    Watched,
    /// The monitor sleeps until something waits.
    Dozed,
    /// The monitor has been woken.
    Roused,
    /// The process was terminated.
    Terminated(Pid),
    /// The process was sent a cancel event.
    Cancelled(Pid),
    /// The process was sent a request for an upgrade.
    Upgraded(Pid),
    /// An act offered before (`offer_act`) was carried out.
    Acted,
    /// A worker has been woken for nothing.
    WokeInVain,
    /// A shutdown has begun by itself.
    Stopped,
    /// Its deadline has passed.
    Forced,
}

/// The longest block of a thread by a step.
pub const BLOCK: Duration = Duration::from_millis(100);

/// A clock that shows a set time.
#[derive(Clone, Default)]
pub(crate) struct SetClock(pub(super) Rc<Cell<Duration>>);

impl Clock for SetClock {
    fn now(&self) -> Duration {
        self.0.get()
    }
}

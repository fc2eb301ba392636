//! What the actors of a machine do, and the clock by which they do it.

use crate::base::clock::Clock;
use ganger_proc_api::Pid;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// What a move was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Did {
    /// Nothing: there was no move to make.
    Nothing,
    /// A look that found nothing.
    Looked,
    /// A look that found a process.
    Found(Pid),
    /// Its search is over, and another worker is woken for what is left.
    TookUp(Pid),
    /// A turn of that process.
    Ran(Pid),
    /// It has said that it sleeps.
    Announced,
    /// There is something to do after all.
    Withdrew,
    /// The step of that process blocks its thread, before it does anything.
    Blocked(Pid),
    /// Its place has been taken: it leaves what it has to others, and is a spare.
    StoodDown,
    /// It takes the place of another worker.
    CameBack,
    /// No process has needed it for a while: its thread has ended, and its slot is free.
    Retired,
    /// It sleeps.
    FellAsleep,
    /// It has been woken.
    Woke,
    /// It has left, because the scheduler has halted.
    Left,
    /// The monitor has looked.
    Watched,
    /// The monitor sleeps until something waits.
    Dozed,
    /// The monitor has been woken.
    Roused,
    /// That process was told to end.
    Terminated(Pid),
    /// That process was sent a cancel event.
    Cancelled(Pid),
    /// That process was sent a request for an upgrade.
    Upgraded(Pid),
    /// An act that was [offered](super::offer_act) was carried out.
    Acted,
    /// A worker has been woken for nothing.
    WokeInVain,
    /// A shutdown has begun by itself.
    Stopped,
    /// Its deadline has passed.
    Forced,
}

/// For how long a step blocks its thread, at the most.
pub const BLOCK: Duration = Duration::from_millis(100);

/// A clock that shows what it is set to.
#[derive(Clone, Default)]
pub(crate) struct SetClock(pub(super) Rc<Cell<Duration>>);

impl Clock for SetClock {
    fn now(&self) -> Duration {
        self.0.get()
    }
}

//! The carrier between the schedulers of a simulation of several machines. The crates of carriers
//! have the trait from here, so they need no simulation.

use std::fmt;
use std::time::Duration;

/// Carries between the machines of a simulation (`ganger_sim::World`): frames of a cluster, for
/// instance.
///
/// The carrier holds the arrivals under way. The simulation sets its time, and carries out each due
/// arrival as a move of its own.
pub trait Carrier {
    /// Sets the time of the simulation, which never goes back.
    fn set_now(&self, now: Duration);

    /// Returns when the next arrival is due, by the time of the simulation.
    fn next_due(&self) -> Option<Duration>;

    /// Takes the next arrival, which is due.
    fn take_due(&self) -> Option<Arrival>;

    /// Takes note of a change between the machines.
    fn changed(&self, change: Change<'_>);
}

/// An arrival at a machine.
pub struct Arrival {
    /// The name of the machine. Nothing happens where it has crashed.
    pub to: Box<str>,
    /// The act at the machine, in a move of its own.
    pub act: Box<dyn FnOnce()>,
}

impl fmt::Debug for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arrival")
            .field("to", &self.to)
            .finish_non_exhaustive()
    }
}

/// A change between the machines, by the name of each machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change<'a> {
    /// The machine starts, maybe again. Its programs do not run yet.
    Started(&'a str),
    /// The machine is gone at once. Nothing that it does from now on arrives anywhere.
    Crashed(&'a str),
    /// The machine stands still.
    Paused(&'a str),
    /// The machine goes on.
    Resumed(&'a str),
    /// All from the first to the second machine is lost from now on.
    Cut(&'a str, &'a str),
    /// The way from the first to the second machine is whole again.
    Healed(&'a str, &'a str),
    /// All from the first to the second machine takes at least this time from now on.
    Delayed(&'a str, &'a str, Duration),
    /// The machine can't reach the store of its cluster from now on.
    StoreDown(&'a str),
    /// The machine reaches the store again.
    StoreUp(&'a str),
}

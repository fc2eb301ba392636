//! The one place that says which probes are compiled in.

use cfg::{Accounts, Checks, Simulation, Watcher};

/// The probe of each scheduler, of no size where no feature asks for one.
pub(crate) type Active = (Checks, (Accounts, (Simulation, Watcher)));

/// What decides in the place of chance, clock and threads.
pub(crate) type Decider = Simulation;

mod cfg {
    #[cfg(feature = "sim")]
    pub(crate) use crate::accounts::Accounts;
    #[cfg(not(feature = "sim"))]
    pub(crate) type Accounts = ();

    #[cfg(feature = "check")]
    pub(crate) use crate::check::Checks;
    #[cfg(not(feature = "check"))]
    pub(crate) type Checks = ();

    #[cfg(feature = "sim")]
    pub(crate) use crate::sim::Simulation;
    #[cfg(not(feature = "sim"))]
    pub(crate) type Simulation = ();

    /// Unit tests see the points.
    #[cfg(all(test, not(ganger_loom)))]
    pub(crate) use crate::probe::tests::Watcher;
    #[cfg(not(all(test, not(ganger_loom))))]
    pub(crate) type Watcher = ();
}

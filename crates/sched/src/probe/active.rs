//! The selection of the compiled probes, in this place alone.

use cfg::{Observation, Observers, Watcher};

/// The probe of each scheduler, of no size where no feature asks for one.
pub(crate) type Active = (Observers, (Observation, Watcher));

/// The probe's part for the causes from step to step.
pub(crate) type Carrier = Observation;

/// The cause of a step.
pub(crate) type Cause = <Carrier as super::Carry>::Cause;

/// A step that may be traced, and its turn.
pub(crate) type TracedStep = <Carrier as super::Carry>::Step;

/// Decides in the place of random numbers, clock and threads.
pub(crate) type Decider = cfg::Simulation;

mod cfg {
    #[cfg(feature = "sim")]
    type Accounts = crate::accounts::Accounts;
    #[cfg(all(feature = "check", not(feature = "sim")))]
    type Accounts = ();

    #[cfg(feature = "sim")]
    pub(crate) use crate::sim::Simulation;
    #[cfg(not(feature = "sim"))]
    pub(crate) type Simulation = ();

    /// Active in schedulers that check their promises, as simulated schedulers do.
    #[cfg(feature = "check")]
    pub(crate) type Observers =
        crate::probe::OnDemand<(crate::check::Checks, (Accounts, Simulation))>;
    #[cfg(not(feature = "check"))]
    pub(crate) type Observers = ();

    /// Active in schedulers built to be observed.
    #[cfg(feature = "observe")]
    pub(crate) use crate::observe::Observation;
    #[cfg(not(feature = "observe"))]
    pub(crate) type Observation = ();

    /// Unit tests see the points.
    #[cfg(all(test, not(ganger_loom)))]
    pub(crate) use crate::probe::tests::Watcher;
    #[cfg(not(all(test, not(ganger_loom))))]
    pub(crate) type Watcher = ();
}

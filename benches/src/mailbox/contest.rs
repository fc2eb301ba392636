//! The queues that run each workload.

use super::ganger::Ganger;
use super::payload::Payload;
use super::peers::{AsyncChannel, Concurrent, Crossbeam, Flume, Kanal, Seg, Std, Tokio};
use super::traits::Mailbox;
use crate::contest::{Contest, Run};

/// The queues of every contest; Ganger's is the first.
pub const MAILBOXES: [&str; 9] = [
    name::<Ganger<u64>>(),
    name::<Std<u64>>(),
    name::<Crossbeam<u64>>(),
    name::<Flume<u64>>(),
    name::<Kanal<u64>>(),
    name::<Tokio<u64>>(),
    name::<AsyncChannel<u64>>(),
    name::<Concurrent<u64>>(),
    name::<Seg<u64>>(),
];

/// A workload of queues.
pub trait Workload<P: Payload> {
    /// Its name in the tables, with its size, without the payload.
    fn name(&self) -> String;

    /// Returns its metrics, with units. Of every figure, less is better.
    fn metrics(&self) -> &'static [&'static str];

    /// Does the unmeasured part.
    fn prepare<M: Mailbox<P>>(&self) -> Run;
}

/// The workload with all queues.
#[must_use]
pub fn contest<P: Payload>(workload: &impl Workload<P>) -> Contest {
    let runs = [
        workload.prepare::<Ganger<P>>(),
        workload.prepare::<Std<P>>(),
        workload.prepare::<Crossbeam<P>>(),
        workload.prepare::<Flume<P>>(),
        workload.prepare::<Kanal<P>>(),
        workload.prepare::<Tokio<P>>(),
        workload.prepare::<AsyncChannel<P>>(),
        workload.prepare::<Concurrent<P>>(),
        workload.prepare::<Seg<P>>(),
    ];
    let entrants = MAILBOXES.into_iter().zip(runs).collect();
    Contest::new(title::<P>(&workload.name()), workload.metrics(), entrants)
}

/// Returns the name in the tables of a workload with such payloads.
pub(super) fn title<P: Payload>(workload: &str) -> String {
    format!("{workload}, {}", P::NAME)
}

pub(super) const fn name<M: Mailbox<u64>>() -> &'static str {
    M::NAME
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::version;

    #[test]
    fn names_are_those_of_packages() {
        for name in MAILBOXES.into_iter().filter(|&name| name != "std") {
            assert_ne!(version(name), "?", "{name}");
        }
    }
}

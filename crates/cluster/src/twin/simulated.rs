//! A twin between the machines of a simulation: their clock moves it, and their seed decides.

use super::knobs::Twin;
use crate::id::NodeId;
use ganger_proc_api::Instant;
use ganger_sched::internal::carrier::{Arrival, Carrier, Change};
use ganger_sync::sync::lock;
use std::time::Duration;

/// Frames are moves of the simulation, and faults are decisions of its seed. Acts of the test on
/// machines happen to their nodes, which have the machines' names.
///
/// ```
/// use ganger_cluster::{Cluster, Twin};
/// use ganger_proc_api::{Envelope, actor_fn};
/// use ganger_sim::Sim;
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::time::Duration;
///
/// Sim::new(0).check_worlds(5, |world| {
///     let twin = Twin::new(0);
///     world.carrier(twin.clone());
///     let sum = Arc::new(AtomicU64::new(0));
///     for name in ["alpha", "beta"] {
///         let (twin, sum) = (twin.clone(), Arc::clone(&sum));
///         world.start(name, move |machine| {
///             Cluster::builder().engine(twin.port()).join(machine).unwrap();
///             let sum = Arc::clone(&sum);
///             let adder = actor_fn(move |_, number: u64, _| {
///                 sum.fetch_add(number, Ordering::Relaxed);
///                 Ok(())
///             });
///             machine.spawner().named("adder").spawn(adder).unwrap();
///         });
///     }
///     let (alpha, beta) = (world.machine("alpha"), world.machine("beta"));
///     let adder = beta.absolute(beta.whereis("adder").unwrap());
///     world.cut("alpha", "beta");
///     alpha.send(Envelope::new(None, adder, "add", 42_u64)).unwrap();
///     world.run_for(Duration::from_secs(1));
///     assert_eq!(sum.load(Ordering::Relaxed), 0);
///     world.heal("alpha", "beta");
///     world.run_until(Duration::from_secs(10), || sum.load(Ordering::Relaxed) == 42);
/// });
/// ```
impl Carrier for Twin {
    fn set_now(&self, now: Duration) {
        lock(&self.flight).be_at(Instant::from_nanos(0) + now);
    }

    fn next_due(&self) -> Option<Duration> {
        let arrival = self.next_arrival();
        arrival.map(|at| at.since(Instant::from_nanos(0)))
    }

    fn take_due(&self) -> Option<Arrival> {
        let call = lock(&self.flight).take_due()?;
        Some(Arrival {
            to: call.at.as_str().into(),
            act: Box::new(|| call.make()),
        })
    }

    fn changed(&self, change: Change<'_>) {
        match change {
            Change::Crashed(name) => of(name, |node| self.crash(node)),
            Change::Paused(name) => of(name, |node| self.pause(node)),
            Change::Resumed(name) => of(name, |node| self.resume(node)),
            Change::Cut(from, to) => between(from, to, |from, to| self.cut(from, to)),
            Change::Healed(from, to) => between(from, to, |from, to| self.heal(from, to)),
            Change::Delayed(from, to, delay) => between(from, to, |from, to| {
                let mut faults = lock(&self.flight).faults_of(from, to);
                faults.delay = delay;
                self.faults_between(from, to, faults);
            }),
            _ => {}
        }
    }
}

/// Acts on the node of a machine. A machine without a valid name of a node has no node.
fn of(name: &str, act: impl FnOnce(&NodeId)) {
    if let Ok(node) = NodeId::new(name) {
        act(&node);
    }
}

fn between(from: &str, to: &str, act: impl FnOnce(&NodeId, &NodeId)) {
    of(from, |from| of(to, |to| act(from, to)));
}

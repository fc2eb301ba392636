//! A twin's store between the machines of a simulation: their clock moves it, and their seed
//! decides.

use super::twin::{Answers, TwinStore};
use ganger_proc_api::Instant;
use ganger_sched::internal::carrier::{Arrival, Carrier, Change};
use ganger_sync::sync::lock;
use std::time::Duration;

/// The store is beside all machines: it does not crash with them, and has a clock of its own
/// ([`TwinStore::skew`]). Its answers are moves of the simulation, and its faults are decisions of
/// the seed.
///
/// ```
/// use ganger_cluster::{Cluster, NameLost, Twin, TwinStore};
/// use ganger_proc_api::actor_fn;
/// use ganger_sim::Sim;
/// use std::time::Duration;
///
/// Sim::new(0).check_worlds(5, |world| {
///     let (twin, store) = (Twin::new(0), TwinStore::new(0));
///     world.carrier(twin.clone());
///     world.carrier(store.clone());
///     world.start("alpha", move |machine| {
///         let node = Cluster::builder().engine(twin.port()).store(store.port("alpha"));
///         let names = node.join(machine).unwrap().strong_names().unwrap();
///         let owner = actor_fn(|_, _: NameLost, out| Ok(out.done(())));
///         let owner = machine.spawner().named("owner").spawn(owner).unwrap();
///         drop(names.register("billing", owner.address().recipient()).begin());
///     });
///     world.run_for(Duration::from_secs(1));
///     world.store_down("alpha");
///     // The lease can't be renewed: the name is lost after five seconds, and its owner told.
///     let alpha = world.machine("alpha");
///     world.run_until(Duration::from_secs(6), || alpha.whereis("owner").is_none());
/// });
/// ```
impl Carrier for TwinStore {
    fn set_now(&self, now: Duration) {
        let mut state = lock(&self.state);
        state.until = Instant::from_nanos(0) + now;
        let until = state.until;
        state.pass(until);
    }

    fn next_due(&self) -> Option<Duration> {
        let next = lock(&self.state).next();
        next.map(|at| at.since(Instant::from_nanos(0)))
    }

    fn take_due(&self) -> Option<Arrival> {
        let mut answers = Answers::new();
        let mut state = lock(&self.state);
        let until = state.until;
        // A single operation, which has a single answer at most.
        let _is_over = state.step(until, &mut answers);
        drop(state);
        let answer = answers.pop()?;
        Some(Arrival {
            to: (&*answer.to).into(),
            act: Box::new(|| answer.give()),
        })
    }

    fn changed(&self, change: Change<'_>) {
        self.change(|state| match change {
            Change::StoreDown(name) => _ = state.cut_off.insert(name.into()),
            Change::StoreUp(name) => _ = state.cut_off.remove(name),
            _ => {}
        });
    }
}

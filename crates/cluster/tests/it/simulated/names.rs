//! Groups and names of nodes on machines of a simulation.

use super::play::sim;
use ganger_cluster::{Cluster, NameRevoked, Twin};
use ganger_link::{GroupNotice, Registry as _};
use ganger_proc_api::{NodeName, Pid, actor_fn};
use ganger_sim::{Rt, World};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(60);

/// Starts two machines with nodes. `boot` is a part of the program of both.
fn start(world: &World<'_>, boot: impl Fn(&Rt<'_>, Cluster) + Clone + 'static) {
    let twin = Twin::new(0);
    world.carrier(twin.clone());
    for (name, other) in [("alpha", "beta"), ("beta", "alpha")] {
        let (twin, boot) = (twin.clone(), boot.clone());
        world.start(name, move |machine| {
            let engine = twin.port();
            let builder = Cluster::builder().cookie("secret").engine(engine);
            boot(machine, builder.peers([other]).join(machine).unwrap());
        });
    }
}

fn holder(world: &World<'_>, at: &str) -> Option<Pid> {
    let machine = world.machine(at);
    machine.whereis("cart").map(|pid| machine.absolute(pid))
}

// pins: B38
#[test]
fn the_older_name_is_that_of_the_clock_of_its_machine() {
    sim().check_worlds(3, |world| {
        start(world, |machine, cluster| {
            let owner = machine.spawn(actor_fn(|_, _: NameRevoked, _| Ok(())));
            let owner = owner.unwrap();
            let namer = actor_fn(move |_, (): (), _| {
                Ok(cluster.register_name("cart", &owner, owner.address().recipient())?)
            });
            machine.spawner().named("namer").spawn(namer).unwrap();
        });
        // The clock of alpha shows a second when that of beta shows ten.
        world.clock_rate("alpha", 0.1);
        world.isolate("alpha", &["beta"]);
        for name in ["beta", "alpha"] {
            world.run_for(10 * SECOND);
            let namer = world.machine(name).lookup::<()>("namer").unwrap();
            namer.send(()).unwrap();
        }
        world.run_for(SECOND);
        let own = ["alpha", "beta"].map(|name| holder(world, name).unwrap());
        assert_ne!(own[0], own[1]);
        world.join("alpha", &["beta"]);
        let of_alpha = NodeName::new("alpha").ok();
        world.run_until(LONG, || {
            let holder = holder(world, "beta");
            holder.is_some_and(|it| it.node() == of_alpha)
        });
        assert_eq!(holder(world, "alpha"), Some(own[0]));
    });
}

/// Loses a node, whose members leave in the same order in each run.
// pins: B40
#[test]
fn a_seed_repeats_the_end_of_a_node_with_groups() {
    const MEMBERS: usize = 24;
    let run = || {
        let told = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&told);
        sim().run_world(move |world| {
            let log = Arc::clone(&log);
            start(world, move |machine, cluster| {
                let group = cluster.groups("scope").group("group");
                for _ in 0..MEMBERS {
                    let member = machine.spawn(actor_fn(|_, (): (), _| Ok(()))).unwrap();
                    group.join(&member).unwrap();
                }
                let log = Arc::clone(&log);
                let watcher = actor_fn(move |_, notice: GroupNotice, _| {
                    if let Some(change) = notice.change()
                        && !change.is_join
                    {
                        log.lock().unwrap().push(change.pid.to_string());
                    }
                    Ok(())
                });
                let watcher = machine.spawn(watcher).unwrap();
                let (_, monitor) = group.monitor(&watcher.address().recipient());
                drop(monitor);
            });
            world.run_for(SECOND);
            world.crash("alpha");
            world.run_for(20 * SECOND);
        });
        std::mem::take(&mut *told.lock().unwrap())
    };
    let first = run();
    assert_eq!(first.len(), MEMBERS);
    assert_eq!(first, run());
}

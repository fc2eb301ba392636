//! Groups and names of the cluster.

use super::ends::arrived;
use super::parts::Strings;
use super::{Ground, Harness, PATIENCE};
use crate::node::{Cluster, ClusterNameErrorKind, NameRevoked};
use ganger_link::{Delivered, Group, GroupNotice, GroupRouting, Groups, Registry as _};
use ganger_proc_api::{ExitCause, Pid, RegisterNameErrorKind, actor_fn};
use ganger_sched::{Handle, ProcessHandle};
use std::collections::HashSet;
use std::sync::mpsc::{Receiver, channel};

/// Returns the groups of both sides. A single scheduler has them without a cluster.
fn groups<H: Harness>(harness: &H, scope: &str) -> [Groups; 2] {
    match harness.clusters() {
        Some(nodes) => nodes.map(|node| node.groups(scope)),
        None => [(); 2].map(|()| Groups::of(&harness.near(), scope)),
    }
}

/// Starts a process that passes its numbers to a test.
fn listener(scheduler: &Handle) -> (ProcessHandle<u64>, Receiver<u64>) {
    let (tell, told) = channel();
    let listener = actor_fn(move |_, number: u64, _| Ok(tell.send(number)?));
    (scheduler.spawn(listener).expect("it starts"), told)
}

/// Starts a process that gives a test the changes of groups: the process, and whether it has
/// joined.
fn watcher(scheduler: &Handle) -> (ProcessHandle<GroupNotice>, Receiver<(Pid, bool)>) {
    let (tell, told) = channel();
    let watcher = actor_fn(move |_, notice: GroupNotice, _| {
        if let Some(change) = notice.change() {
            tell.send((change.pid, change.is_join))?;
        }
        Ok(())
    });
    (scheduler.spawn(watcher).expect("it starts"), told)
}

fn sorted(mut pids: Vec<Pid>) -> Vec<Pid> {
    pids.sort_unstable();
    pids
}

fn have(ground: impl Ground, group: &Group, members: &[Pid]) {
    let members = sorted(members.to_vec());
    ground.eventually("the members are known", || {
        sorted(group.members()) == members
    });
}

/// Joins processes on both sides, some several times. Joins count, a monitor has a snapshot and
/// each later change once, and a member that ends has left before its end is told.
pub fn groups_have_the_members_of_all_nodes<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let scopes = groups(&harness, "scope");
    let [near, far] = [0, 1].map(|side| scopes[side].group("g"));
    let (here, _) = listener(&harness.near());
    let (there, _) = listener(&harness.far());
    near.join(&here).expect("it lives");
    far.join(&there).expect("it lives");
    far.join(&there).expect("it lives");
    let far_pid = harness.far_pid(there.pid());
    let near_pid = harness.near_pid(here.pid());
    have(ground, &near, &[here.pid(), far_pid, far_pid]);
    have(ground, &far, &[near_pid, there.pid(), there.pid()]);
    let others = groups(&harness, "another scope");
    assert!(others.iter().all(|it| it.names().is_empty()));

    let (watching, changes) = watcher(&harness.near());
    let (members, _monitor) = near.monitor(&watching.address().recipient());
    let all = sorted(vec![here.pid(), far_pid, far_pid]);
    assert_eq!(sorted(members), all);
    assert!(far.leave(there.pid()));
    let next = || ground.next(&changes, PATIENCE).expect("it is told");
    assert_eq!(next(), (far_pid, false));
    far.join(&there).expect("it lives");
    assert_eq!(next(), (far_pid, true));
    if !harness.is_one() {
        assert!(!near.leave(far_pid), "its own node alone lets it leave");
        assert_eq!(near.local_members(), [here.pid()]);
        let address = harness.near().address(far_pid).expect("it is known");
        near.join(&address).expect_err("it is of another node");
    }

    // Has left before the end is told.
    let witness = Strings::start(harness.near());
    witness.done(move |ctx, _| Ok(ctx.monitor(far_pid, 7)?));
    arrived(&harness);
    harness.far().terminate(there.pid()).expect("it lives");
    assert_eq!(witness.exit(), (far_pid, 7, ExitCause::Terminated));
    assert_eq!(near.members(), [here.pid()]);
    assert_eq!([next(), next()], [(far_pid, false); 2]);
    have(ground, &far, &[near_pid]);
    near.leave(here.pid());
    have(ground, &far, &[]);
    ground.eventually("an empty group is not there", || {
        scopes.iter().all(|it| it.names().is_empty())
    });
    assert_eq!(next(), (here.pid(), false));
    assert!(changes.try_recv().is_err(), "each change is told once");
}

/// Sends broadcasts: each member gets each message once and in order, whatever its node. A member
/// is picked of the own node in turn, and by a key alike on all nodes.
pub fn a_broadcast_reaches_the_members_of_all_nodes<H: Harness>(ground: H::Ground) {
    const EACH: usize = 5;
    const NUMBERS: u64 = 50;
    let harness = H::start(ground);
    let scopes = groups(&harness, "scope");
    let [near, far] = [0, 1].map(|side| scopes[side].group("g"));
    let mut members = Vec::new();
    for _ in 0..EACH {
        let (here, there) = (listener(&harness.near()), listener(&harness.far()));
        near.join(&here.0).expect("it lives");
        for _ in 0..2 {
            far.join(&there.0).expect("it lives");
        }
        members.extend([here, there]);
    }
    let text = actor_fn(|_, _: String, _| Ok(()));
    let text = harness.far().spawn(text).expect("it starts");
    far.join(&text).expect("it lives");
    for group in [&near, &far] {
        ground.eventually("all members are known", || {
            group.members().len() == 3 * EACH + 1
        });
    }
    for number in 0..NUMBERS {
        let delivered = near.broadcast(&number);
        let mistaken = usize::from(harness.is_one());
        let taken = 2 * EACH + 1 - mistaken;
        let expected = Delivered {
            taken,
            mistaken,
            ..Delivered::default()
        };
        assert_eq!(delivered, expected);
    }
    for (_, told) in &members {
        for number in 0..NUMBERS {
            assert_eq!(ground.next(told, PATIENCE), Some(number));
        }
    }
    // Behind the broadcasts, on the same way: nothing else has come.
    let end = harness.far_pid(members[1].0.pid());
    ground.send_all(&harness.near(), end, [NUMBERS]);
    assert_eq!(ground.next(&members[1].1, PATIENCE), Some(NUMBERS));
    assert!(members.iter().all(|(_, told)| told.try_recv().is_err()));

    if !harness.is_one() {
        for (group, scheduler) in [(&near, harness.near()), (&far, harness.far())] {
            let picked: HashSet<_> = (0..4 * EACH)
                .filter_map(|_| group.pick(GroupRouting::RoundRobin))
                .map(|it| it.pid())
                .collect();
            let local: HashSet<_> = group.local_members().into_iter().collect();
            assert_eq!(picked, local);
            assert!(picked.iter().all(|pid| scheduler.is_local(*pid)));
        }
        let delivered = near.broadcast_local(&NUMBERS);
        assert_eq!(delivered.taken, EACH);
    }
    let by_key = |group: &Group, scheduler: &Handle, key| {
        let member = group.pick(GroupRouting::Key(key)).expect("one is there");
        scheduler.absolute(member.pid())
    };
    let mut picked = HashSet::new();
    for key in 0..100 {
        let member = by_key(&near, &harness.near(), key);
        assert_eq!(member, by_key(&far, &harness.far(), key));
        picked.insert(member);
    }
    assert!(picked.len() > EACH, "keys lead to members of all nodes");
}

/// Ends the session with a node: its members leave, and come back with the next session.
pub fn members_of_a_lost_node_leave<H: Harness>(ground: H::Ground) {
    let mut harness = H::start(ground);
    if harness.is_one() {
        return;
    }
    let near = groups(&harness, "scope")[0].group("g");
    let (here, _) = listener(&harness.near());
    near.join(&here).expect("it lives");
    let far_member = |harness: &H| {
        let (there, _) = listener(&harness.far());
        let far = groups(harness, "scope")[1].group("g");
        far.join(&there).expect("it lives");
        have(ground, &far, &[harness.near_pid(here.pid()), there.pid()]);
        let pid = harness.far_pid(there.pid());
        have(ground, &near, &[here.pid(), pid]);
        (there, pid)
    };
    let (gone, pid) = far_member(&harness);
    let witness = Strings::start(harness.near());
    witness.done(move |ctx, _| Ok(ctx.monitor(pid, 7)?));
    if !harness.restart_far() {
        return;
    }
    assert_eq!(witness.exit(), (pid, 7, ExitCause::NoConnection));
    let members = near.members();
    assert!(
        !members.contains(&pid),
        "it has left before its end is told"
    );
    drop(gone);
    let _there = far_member(&harness);
    if harness.cut() {
        have(ground, &near, &[here.pid()]);
        assert_eq!(near.broadcast(&1_u64).taken, 1);
    }
}

type Owner = (ProcessHandle<NameRevoked>, Receiver<NameRevoked>);

fn owner(scheduler: &Handle) -> Owner {
    let (tell, told) = channel();
    let owner = actor_fn(move |_, lost: NameRevoked, _| Ok(tell.send(lost)?));
    (scheduler.spawn(owner).expect("it starts"), told)
}

fn register(
    node: &Cluster,
    name: &str,
    owner: &ProcessHandle<NameRevoked>,
) -> Result<(), ClusterNameErrorKind> {
    let address = owner.address();
    let registered = node.register_name(name, address, address.recipient());
    registered.map_err(|error| error.kind)
}

/// Finds a name on all nodes. Another process of any node does not get the name. It is free when
/// its process has ended, before the end is told.
pub fn a_name_of_the_cluster_is_found_everywhere<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let Some([near, far]) = harness.clusters() else {
        return;
    };
    let (there, here) = (owner(&harness.far()), owner(&harness.near()));
    let pid = harness.far_pid(there.0.pid());
    register(far, "cart", &there.0).expect("the name is free");
    register(far, "cart", &there.0).expect("the process has it");
    ground.eventually("the name is known", || {
        harness.near().whereis("cart") == Some(pid)
    });
    assert_eq!(far.names(), [("cart".into(), there.0.pid())]);
    let taken = register(near, "cart", &here.0);
    assert_eq!(taken, Err(ClusterNameErrorKind::Taken { holder: pid }));
    let found = harness.near().lookup::<NameRevoked>("cart");
    assert_eq!(found.expect("it is there").pid(), pid);
    // No process of a scheduler takes it for itself. An earlier name of the scheduler comes first.
    let local = Strings::start(harness.near());
    let scheduler = harness.near();
    let taken = scheduler.register_name("cart", local.pid());
    let taken = taken.expect_err("the cluster has it").kind;
    assert_eq!(taken, RegisterNameErrorKind::Taken { holder: pid });
    let early = scheduler.register_name("kiosk", local.pid());
    early.expect("the name is free");
    register(far, "kiosk", &there.0).expect("no node knows names of another's scheduler");
    ground.eventually("the name is known", || {
        near.names().iter().any(|(name, _)| &**name == "kiosk")
    });
    assert_eq!(scheduler.whereis("kiosk"), Some(local.pid()));
    assert_eq!(scheduler.register_name("kiosk", local.pid()).ok(), Some(()));

    let witness = Strings::start(harness.near());
    witness.done(move |ctx, _| Ok(ctx.monitor(pid, 7)?));
    arrived(&harness);
    harness.far().terminate(there.0.pid()).expect("it lives");
    assert_eq!(witness.exit(), (pid, 7, ExitCause::Terminated));
    assert_eq!(harness.near().whereis("cart"), None);
    register(near, "cart", &here.0).expect("the name is free");
    let pid = harness.near_pid(here.0.pid());
    ground.eventually("the name is known", || {
        harness.far().whereis("cart") == Some(pid)
    });
    assert_eq!(near.unregister_name("cart"), Some(here.0.pid()));
    ground.eventually("the name is free", || {
        harness.far().whereis("cart").is_none()
    });
    assert!(here.1.try_recv().is_err(), "nothing was lost");
}

/// Gives a name to two processes at the same time: a single one keeps it, and the other is told.
pub fn a_name_of_the_cluster_has_one_holder_in_the_end<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let Some([near, far]) = harness.clusters() else {
        return;
    };
    let owners = [owner(&harness.near()), owner(&harness.far())];
    for round in 0..20 {
        let name = format!("name {round}");
        let take = |node: &Cluster, owner: &ProcessHandle<NameRevoked>| {
            register(node, &name, owner).is_ok()
        };
        let [here, there] = owners.each_ref().map(|it| &it.0);
        let taken = ground.at_once([&|| take(near, here), &|| take(far, there)]);
        assert!(taken.contains(&true));
        let mut holder = None;
        ground.eventually("both see the same holder", || {
            let at = |scheduler: &Handle| {
                let pid = scheduler.whereis(&name);
                pid.map(|pid| scheduler.absolute(pid))
            };
            holder = at(&harness.near());
            holder.is_some() && holder == at(&harness.far())
        });
        let pids = [
            harness.near().absolute(owners[0].0.pid()),
            harness.far().absolute(owners[1].0.pid()),
        ];
        let winner = pids.iter().position(|pid| Some(*pid) == holder);
        let winner = winner.expect("it is one of both");
        assert!(taken[winner]);
        if taken == [true, true] {
            let loser = 1 - winner;
            let lost = ground.next(&owners[loser].1, PATIENCE).expect("it is told");
            assert_eq!(*lost.name, *name);
            assert_eq!(lost.process, owners[loser].0.pid());
        }
    }
    assert!(owners.iter().all(|(_, told)| told.try_recv().is_err()));
}

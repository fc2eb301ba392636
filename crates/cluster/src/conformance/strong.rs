//! Cases that hold for strong names and locks over each store.

use super::{PATIENCE, eventually};
use crate::node::{
    Cluster, FencingToken, LockLost, NameLost, Owner, StrongError, StrongLock, StrongNames,
};
use ganger_proc_api::{Actor, CommandError, Context, StepOutput, StepResult};
use ganger_sched::{Address, ProcessHandle, Scheduler};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Two nodes of a cluster with a store.
pub trait StrongHarness: Sized {
    /// Starts both, with leases of this time.
    fn start(lease: Duration) -> Self;

    /// Returns a node, and its scheduler.
    fn node(&self, node: usize) -> (&Scheduler, &Cluster);

    /// Puts the store out of the second node's reach, or in reach again. False: it can't.
    fn part(&self, is_apart: bool) -> bool;
}

/// A lease that no pause of a busy machine outlasts.
const LONG: Duration = Duration::from_secs(240);

/// The time of a lease with an end within a case.
const SHORT: Duration = Duration::from_secs(3);

/// The messages of an owner.
#[derive(Debug)]
pub enum Owned {
    /// The name is lost.
    Lost(NameLost),
    /// Ends the process.
    End,
}

impl From<NameLost> for Owned {
    fn from(lost: NameLost) -> Self {
        Self::Lost(lost)
    }
}

/// A process that owns a name, and says when the name is lost.
struct Owns(Sender<NameLost>);

impl Actor for Owns {
    type Message = Owned;

    fn receive(&mut self, _: &Context, message: Owned, out: &mut StepOutput) -> StepResult {
        match message {
            Owned::Lost(lost) => drop(self.0.send(lost)),
            Owned::End => out.done(()),
        }
        Ok(())
    }
}

struct Site {
    names: StrongNames,
    owner: ProcessHandle<Owned>,
    lost: Receiver<NameLost>,
}

impl Site {
    fn of<H: StrongHarness>(harness: &H, node: usize) -> Self {
        let (scheduler, cluster) = harness.node(node);
        let (tell, lost) = channel();
        let owner = scheduler.spawn(Owns(tell)).expect("the process starts");
        let names = cluster.strong_names().expect("the node has a store");
        Self { names, owner, lost }
    }

    fn register(&self, name: &str) -> Result<FencingToken, CommandError> {
        let call = self.names.register(name, self.owner.address().recipient());
        call.wait_timeout(PATIENCE)
    }

    /// Registers as soon as the name is free.
    fn register_in_time(&self, name: &str) -> FencingToken {
        let mut token = None;
        eventually("the name is free", || {
            token = self.register(name).ok();
            token.is_some()
        });
        token.expect("it is registered")
    }

    fn find(&self, name: &str) -> Option<Owner> {
        let found = self.names.find(name).wait_timeout(PATIENCE);
        found.expect("the store answers")
    }

    fn lock(&self, name: &str) -> StrongLock {
        let lock = self.names.lock(name).wait_timeout(PATIENCE);
        lock.expect("the lock is free in time")
    }
}

fn end(owner: ProcessHandle<Owned>) {
    let address: Address<Owned> = owner.address().clone();
    address.send(Owned::End).expect("it lives");
    assert!(owner.wait_timeout(PATIENCE).expect("it ends").is_done());
}

fn sites<H: StrongHarness>(lease: Duration) -> (H, [Site; 2]) {
    let harness = H::start(lease);
    let sites = [0, 1].map(|node| Site::of(&harness, node));
    (harness, sites)
}

/// Gives a name to an owner, which both nodes find, and then to the next, with a greater token.
pub fn a_strong_name_has_one_owner<H: StrongHarness>() {
    let (harness, [near, far]) = sites::<H>(LONG);
    assert_eq!(near.find("billing"), None);
    let token = far.register("billing").expect("it is free");
    assert_eq!(far.names.token("billing"), Some(token));
    assert_eq!(near.names.token("billing"), None);
    let pid = harness.node(1).0.absolute(far.owner.pid());
    for (site, node) in [(&near, 0), (&far, 1)] {
        let owner = site.find("billing").expect("it has an owner");
        assert_eq!(owner.pid, harness.node(node).0.canonical(pid));
        assert_eq!(owner.token, token);
        let name = harness.node(1).1.name();
        assert_eq!(&*owner.node, name.as_str());
        eventually("the watch tells the owner", || {
            site.names
                .whereis("billing")
                .is_ok_and(|it| it.as_ref() == Some(&owner))
        });
        let Err(CommandError::Failed(why)) = site.register("billing") else {
            panic!("the name has two owners");
        };
        let Some(StrongError::Taken(by)) = why.downcast_ref() else {
            panic!("{why}");
        };
        assert_eq!(**by, owner);
    }
    let other = near.register("shipping").expect("it is free");
    assert!(other > token);
    end(far.owner);
    let next = near.register_in_time("billing");
    assert!(next > token && next > other);
    assert_eq!(far.names.token("billing"), None);
    assert!(near.names.unregister("billing") && !near.names.unregister("billing"));
    assert!(near.register_in_time("billing") > next);
    assert!(far.lost.try_recv().is_err() && near.lost.try_recv().is_err());
}

/// Parts a node from the store: the node gives its names up, before another has them.
pub fn a_node_apart_gives_its_names_up<H: StrongHarness>() {
    let (harness, [near, far]) = sites::<H>(SHORT);
    let token = far.register("billing").expect("it is free");
    let lock = far.lock("invoices");
    let (tell, told) = channel();
    lock.on_lost(move || _ = tell.send(()));
    if !harness.part(true) {
        return;
    }
    let refused = near.register("billing");
    assert!(refused.is_err() || far.names.token("billing").is_none());
    let next = near.register_in_time("billing");
    // The former owner has none by then, and is told.
    assert_eq!(far.names.token("billing"), None);
    let owner = far.names.whereis("billing");
    assert!(!matches!(owner, Ok(Some(owner)) if owner.token == token));
    assert_eq!(lock.token(), Err(LockLost));
    assert!(next > token);
    let lost = far.lost.recv_timeout(PATIENCE).expect("it is told");
    assert_eq!(&*lost.name, "billing");
    told.recv_timeout(PATIENCE).expect("it is told");
    let refused = far.names.register("other", far.owner.address().recipient());
    assert!(refused.wait_timeout(PATIENCE).is_err());
    harness.part(false);
    eventually("the node knows the next owner", || {
        far.names
            .whereis("billing")
            .is_ok_and(|it| it.is_some_and(|it| it.token >= next))
    });
    assert_eq!(lock.token(), Err(LockLost));
    far.register_in_time("other");
}

/// Hands a lock from one owner to the next, in the order of the calls, with greater tokens.
pub fn a_lock_has_one_owner_in_turn<H: StrongHarness>() {
    let (_harness, [near, far]) = sites::<H>(LONG);
    let first = near.lock("invoices");
    let mut last = first.token().expect("it is held");
    let mut waiting = Vec::new();
    for round in 0..6 {
        let site = [&near, &far][round % 2];
        waiting.push(site.names.lock("invoices").begin());
        // The store has one before the next: a lock of the same node comes behind.
        let other = site.lock(&format!("other {round}"));
        assert!(other.is_held());
    }
    let given_up = waiting.remove(2);
    drop(given_up);
    let free = far.lock("free");
    assert!(free.is_held());
    let mut held = first;
    for answer in waiting {
        assert!(!answer.is_ready() && held.is_held());
        drop(held);
        held = answer.wait_timeout(PATIENCE).expect("its turn has come");
        let token = held.token().expect("it is held");
        assert!(token > last);
        last = token;
    }
}

/// Makes a test of each case of strong names and locks, for a harness.
#[macro_export]
macro_rules! strong_cases {
    ($harness:ty) => {
        // pins: B33
        #[test]
        fn a_strong_name_has_one_owner() {
            $crate::conformance::a_strong_name_has_one_owner::<$harness>();
        }
        // pins: B33, B34
        #[test]
        fn a_node_apart_gives_its_names_up() {
            $crate::conformance::a_node_apart_gives_its_names_up::<$harness>();
        }
        // pins: B35
        #[test]
        fn a_lock_has_one_owner_in_turn() {
            $crate::conformance::a_lock_has_one_owner_in_turn::<$harness>();
        }
    };
}

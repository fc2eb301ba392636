//! Names with owners, leases and stores, as observers see them.

use ganger_cluster::{
    Cluster, NameLook, NameLost, NameRevoked, StoreFaults, StoreLook, Twin, TwinStore,
};
use ganger_proc_api::{Instant, actor_fn};
use ganger_sched::Scheduler;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

enum Owner {
    Lost,
}

impl From<NameLost> for Owner {
    fn from(_: NameLost) -> Self {
        Self::Lost
    }
}

impl From<NameRevoked> for Owner {
    fn from(_: NameRevoked) -> Self {
        Self::Lost
    }
}

/// Joins nodes whose lease clock stands still but for the test.
fn join(twin: &Twin, store: &TwinStore, name: &str, clock: &Clock) -> (Scheduler, Cluster) {
    let scheduler = Scheduler::builder().workers(1).node(name).start().unwrap();
    let clock = Arc::clone(&clock.0);
    let builder = Cluster::builder().engine(twin.port());
    let builder = builder.store(store.port(name));
    let now = move || Instant::from_nanos(clock.load(Ordering::SeqCst));
    let node = builder.lease_clock(now).join(&scheduler).unwrap();
    (scheduler, node)
}

struct Clock(Arc<AtomicU64>);

impl Clock {
    fn pass(&self, millis: u64) {
        self.0.fetch_add(millis * 1_000_000, Ordering::SeqCst);
    }
}

fn until(what: &str, is: impl Fn() -> bool) {
    let begin = std::time::Instant::now();
    while !is() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

fn down(is_down: bool) -> StoreFaults {
    let mut faults = StoreFaults::default();
    faults.down = is_down;
    faults
}

fn store_of(node: &Cluster) -> StoreLook {
    node.store_look().unwrap()
}

fn shown(name: &NameLook) -> (&str, &str, String, Option<u64>, bool) {
    let token = name.token.map(|it| it.0);
    let pid = name.pid.to_string();
    (&name.name, &name.node, pid, token, name.is_given_up)
}

// pins: V22
#[test]
fn names_leases_and_stores_are_seen_while_a_store_is_lost_and_comes_back() {
    let (twin, store) = (Twin::new(1), TwinStore::new(1));
    let _clock = twin.run();
    let clock = Clock(Arc::new(AtomicU64::new(1)));
    let (alpha, at_alpha) = join(&twin, &store, "alpha", &clock);
    let (beta, at_beta) = join(&twin, &store, "beta", &clock);
    until("the store tells", || store_of(&at_alpha).lost_for.is_none());
    until("the store tells", || store_of(&at_beta).lost_for.is_none());
    let what = "a store of this program alone, for tests";
    assert_eq!(store_of(&at_alpha).what, what);
    assert_eq!((at_alpha.lease(), at_alpha.name_counts()), (None, (0, 0)));

    let names = at_alpha.strong_names().unwrap();
    let billing = alpha.spawn(actor_fn(|_, _: Owner, _| Ok(()))).unwrap();
    let name = names.register("billing", billing.address().recipient());
    let token = name.wait_timeout(PATIENCE).unwrap().0;
    let held = names.lock("invoices").wait_timeout(PATIENCE).unwrap();
    let next = names.clone();
    let next = thread::spawn(move || next.lock("invoices").wait_timeout(PATIENCE).is_err());
    until("the next waits", || {
        at_alpha.lease().is_some_and(|it| it.waiting == 1)
    });
    let cart = beta.spawn(actor_fn(|_, _: Owner, _| Ok(()))).unwrap();
    let lost = cart.address().recipient();
    at_beta.register_name("cart", &cart, lost).unwrap();
    assert!(at_alpha.connect(at_beta.name()));
    until("all names are known", || at_alpha.name_counts() == (1, 1));
    until("all names are known", || at_beta.name_counts() == (1, 1));

    let own = billing.pid().to_string();
    let far = beta.absolute(cart.pid()).to_string();
    let owners = at_alpha.owners(1_000);
    let seen: Vec<_> = owners.names.iter().map(shown).collect();
    let expected = [
        ("billing", "alpha", own.clone(), Some(token), false),
        ("cart", "beta", far, None, false),
    ];
    assert_eq!(seen, expected);
    let owners = at_beta.owners(1);
    let seen: Vec<_> = owners.names.iter().map(shown).collect();
    let far = alpha.absolute(billing.pid()).to_string();
    assert_eq!(seen, [("billing", "alpha", far, Some(token), false)]);
    assert_eq!((owners.eventual, owners.strong), (1, 1));
    assert!(at_alpha.owners(0).names.is_empty());

    // Before the first renewal is due.
    clock.pass(1_999);
    let lease = at_alpha.lease().unwrap();
    let times = (lease.left.as_millis(), lease.whole.as_millis());
    assert_eq!(times, (3_001, 5_000));
    assert_eq!((lease.names, lease.locks, lease.waiting), (1, 1, 1));
    assert_eq!(at_beta.lease(), None);

    store.faults_of("alpha", down(true));
    until("the loss is seen", || {
        store_of(&at_alpha).lost_for.is_some()
    });
    clock.pass(1_000);
    let lost_for = store_of(&at_alpha).lost_for;
    assert_eq!(lost_for, Some(Duration::from_secs(1)));
    assert_eq!(store_of(&at_beta).lost_for, None);
    assert_eq!(at_alpha.lease().unwrap().left.as_millis(), 2_001);
    clock.pass(2_001);
    assert_eq!(at_alpha.lease(), None);
    assert!(next.join().unwrap() && !held.is_held());
    // The store keeps the entry, and the node says that the owner has given the name up.
    let owners = at_alpha.owners(1);
    let given_up = ("billing", "alpha", own, Some(token), true);
    assert_eq!(shown(&owners.names[0]), given_up);
    assert!(!at_beta.owners(1).names[0].is_given_up);

    store.advance(Duration::from_secs(10));
    until("the entry ends", || at_beta.name_counts() == (1, 0));
    assert_eq!(at_alpha.name_counts(), (1, 1));
    store.faults_of("alpha", down(false));
    until("the store is back", || {
        store_of(&at_alpha).lost_for.is_none()
    });
    assert_eq!(at_alpha.name_counts(), (1, 0));
}

// pins: V22
#[test]
fn a_store_that_was_never_reached_is_lost_since_the_begin() {
    let (twin, store) = (Twin::new(1), TwinStore::new(1));
    let clock = Clock(Arc::new(AtomicU64::new(1)));
    store.faults(down(true));
    let (alpha, at_alpha) = join(&twin, &store, "alpha", &clock);
    clock.pass(3_000);
    let lost_for = store_of(&at_alpha).lost_for;
    assert_eq!(lost_for, Some(Duration::from_secs(3)));
    // An operation whose answer is late waits.
    let mut slow = StoreFaults::default();
    slow.slow = Duration::from_millis(1);
    store.faults(slow);
    let names = at_alpha.strong_names().unwrap();
    let billing = alpha.spawn(actor_fn(|_, _: Owner, _| Ok(()))).unwrap();
    let owner = billing.address().recipient();
    let name = thread::spawn(move || names.register("billing", owner).wait_timeout(PATIENCE));
    until("the lease is asked for", || {
        store_of(&at_alpha).waiting == 1
    });
    assert_eq!(at_alpha.lease(), None);
    until("the name is given", || {
        store.advance(Duration::from_millis(1));
        name.is_finished()
    });
    assert!(name.join().unwrap().is_ok());
    assert_eq!(store_of(&at_alpha).waiting, 0);

    let delta = Scheduler::builder().workers(1).node("delta");
    let delta = delta.start().unwrap();
    let at_delta = Cluster::builder().engine(twin.port()).join(&delta).unwrap();
    assert_eq!((at_delta.store_look(), at_delta.lease()), (None, None));
}

//! The cases of each [`Store`].
//!
//! A [`StoreHarness`] makes a store, as two nodes have it. [`store_cases!`](crate::store_cases)
//! makes a test of each case. A case with a fault is over at once where the harness does not have
//! the fault.

use super::{PATIENCE, eventually};
use crate::store::{
    Entry, LeaseId, MAX_KEY, MAX_VALUE, Revision, RunningStore, Store, StoreAnswer, StoreChange,
    StoreError, StoreFaults, StoreOp, StoreReply, StoreWatch, TwinStore,
};
use ganger_sched::internal::here;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// A store, and its faults.
pub trait StoreHarness: Sized {
    /// Starts an empty store.
    fn start() -> Self;

    /// Returns the store, as the first or the second of two nodes has it.
    fn store(&self, node: usize) -> Arc<dyn Store>;

    /// Restarts the store. False: it can't.
    fn restart(&mut self) -> bool {
        false
    }

    /// Puts the store out of the second node's reach, or in reach again. False: it can't.
    fn part(&self, _is_apart: bool) -> bool {
        false
    }
}

/// A [`TwinStore`] with the time of the program.
pub struct TwinStores {
    store: TwinStore,
    _running: RunningStore,
}

impl StoreHarness for TwinStores {
    fn start() -> Self {
        let store = TwinStore::new(11);
        let _running = store.run();
        Self { store, _running }
    }

    fn store(&self, node: usize) -> Arc<dyn Store> {
        self.store.port(["near", "far"][node])
    }

    fn restart(&mut self) -> bool {
        self.store.restart();
        true
    }

    fn part(&self, is_apart: bool) -> bool {
        let faults = StoreFaults {
            down: is_apart,
            ..StoreFaults::default()
        };
        self.store.faults_of("far", faults);
        true
    }
}

/// The time of leases that end within a case.
pub(super) const SHORT: Duration = Duration::from_millis(400);

/// The time of a lease beyond any case.
const LONG: Duration = Duration::from_secs(600);

type Answer = Result<StoreAnswer, StoreError>;

pub(super) fn ask(store: &Arc<dyn Store>, op: StoreOp) -> Answer {
    let (tell, told) = channel();
    store.apply(op, StoreReply::new(move |answer| drop(tell.send(answer))));
    told.recv_timeout(PATIENCE).expect("the store answers")
}

fn written(answer: Answer) -> Revision {
    match answer {
        Ok(StoreAnswer::Written(revision) | StoreAnswer::Deleted(revision)) => revision,
        other => panic!("{other:?}"),
    }
}

fn create(store: &Arc<dyn Store>, key: &str, value: &str) -> Revision {
    written(ask(store, StoreOp::create(key, value)))
}

fn get(store: &Arc<dyn Store>, key: &str) -> Option<Entry> {
    match ask(store, StoreOp::get(key)) {
        Ok(StoreAnswer::Found(entry)) => entry,
        other => panic!("{other:?}"),
    }
}

fn grant(store: &Arc<dyn Store>, ttl: Duration) -> LeaseId {
    match ask(store, StoreOp::Grant { ttl }) {
        Ok(StoreAnswer::Lease(lease)) => lease,
        other => panic!("{other:?}"),
    }
}

/// A watch, and its changes.
struct Seen {
    changes: Receiver<StoreChange>,
    _watch: StoreWatch,
}

impl Seen {
    fn of(store: &Arc<dyn Store>, prefix: &str) -> Self {
        let (tell, changes) = channel();
        let _watch = store.watch(prefix, Box::new(move |change| drop(tell.send(change))));
        Self { changes, _watch }
    }

    fn next(&self) -> StoreChange {
        self.changes.recv_timeout(PATIENCE).expect("it is told")
    }

    fn snapshot(&self) -> (Vec<Entry>, Revision) {
        match self.next() {
            StoreChange::Snapshot { entries, revision } => (entries, revision),
            other => panic!("{other:?}"),
        }
    }

    /// Returns the next snapshot, behind the loss that announces it.
    fn snapshot_again(&self) -> Vec<Entry> {
        let mut has_lost = false;
        loop {
            match self.next() {
                StoreChange::Lost => has_lost = true,
                StoreChange::Snapshot { entries, .. } => {
                    assert!(has_lost);
                    return entries;
                }
                _ => assert!(!has_lost, "a loss is followed by a snapshot"),
            }
        }
    }
}

/// Returns the revision and the key of a change.
fn change(change: &StoreChange) -> (Revision, &str) {
    match change {
        StoreChange::Put(entry) => (entry.revision, &entry.key),
        StoreChange::Gone { key, revision } => (*revision, key),
        other => panic!("{other:?}"),
    }
}

/// Creates, updates and deletes with a look at the revision, at both nodes: each says what is
/// there.
pub fn a_write_says_what_it_replaces<H: StoreHarness>() {
    let harness = H::start();
    let [near, far] = [0, 1].map(|node| harness.store(node));
    assert_eq!(get(&near, "name"), None);
    let first = create(&near, "name", "one");
    let entry = get(&far, "name").expect("it is there");
    assert_eq!((&*entry.key, &*entry.value), ("name", &b"one"[..]));
    assert_eq!((entry.revision, entry.lease), (first, None));
    let taken = ask(&far, StoreOp::create("name", "two"));
    assert_eq!(taken, Err(StoreError::Exists(entry.clone())));
    let second = written(ask(&far, StoreOp::update("name", "two", first)));
    assert!(second > first);
    for op in [
        StoreOp::update("name", "three", first),
        StoreOp::delete("name", first),
    ] {
        let Err(StoreError::Conflict(Some(entry))) = ask(&near, op) else {
            panic!("the entry has another revision");
        };
        assert_eq!((&*entry.value, entry.revision), (&b"two"[..], second));
    }
    assert!(written(ask(&near, StoreOp::delete("name", second))) > second);
    assert_eq!(get(&near, "name"), None);
    for op in [
        StoreOp::update("name", "three", second),
        StoreOp::delete("name", second),
    ] {
        assert_eq!(ask(&far, op), Err(StoreError::Conflict(None)));
    }
    assert!(create(&far, "name", "four") > second);
}

/// Writes keys and values beyond the limits, which are refused, and at the limits, which are not.
pub fn a_write_beyond_the_limits_is_refused<H: StoreHarness>() {
    let harness = H::start();
    let store = harness.store(1);
    let key = "k".repeat(MAX_KEY);
    let value = vec![7; MAX_VALUE];
    written(ask(&store, StoreOp::create(&*key, value.clone())));
    assert_eq!(get(&store, &key).expect("it is there").value, value);
    for op in [
        StoreOp::create(format!("{key}k"), "v"),
        StoreOp::create("", "v"),
        StoreOp::create("other", vec![7; MAX_VALUE + 1]),
        StoreOp::Grant {
            ttl: Duration::ZERO,
        },
    ] {
        let refused = ask(&store, op);
        assert!(
            matches!(refused, Err(StoreError::Invalid(_))),
            "{refused:?}"
        );
    }
    assert_eq!(get(&store, "other"), None);
}

/// Creates the same key by many writers at once: one succeeds, and revisions are not used twice.
pub fn of_many_writers_one_succeeds<H: StoreHarness>() {
    let harness = H::start();
    let mut all = Vec::new();
    for round in 0..20 {
        let key = format!("round {round}");
        let writers = (0..8).map(|writer| {
            let (store, key) = (harness.store(writer % 2), key.clone());
            thread::spawn(move || ask(&store, StoreOp::create(key, writer.to_string())))
        });
        let writers: Vec<_> = writers.collect();
        let answers: Vec<_> = writers
            .into_iter()
            .map(|it| it.join().expect("it asks"))
            .collect();
        let mut won = Vec::new();
        let mut lost = Vec::new();
        for answer in answers {
            match answer {
                Ok(StoreAnswer::Written(revision)) => won.push(revision),
                Err(StoreError::Exists(entry)) => lost.push(entry.revision),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(won.len(), 1);
        assert!(lost.len() == 7 && lost.iter().all(|revision| *revision == won[0]));
        all.push(won[0]);
    }
    assert!(all.is_sorted_by(|one, next| one < next), "{all:?}");
}

/// Watches keys: the watch tells what is there, and then each change, in order, at both nodes.
pub fn a_watch_begins_with_a_snapshot<H: StoreHarness>() {
    let harness = H::start();
    let [near, far] = [0, 1].map(|node| harness.store(node));
    let first = create(&near, "a/1", "one");
    let other = create(&near, "b/1", "other");
    for store in [&near, &far] {
        let seen = Seen::of(store, "a/");
        let (entries, revision) = seen.snapshot();
        assert!(entries.iter().any(|entry| entry.revision == first));
        assert!(entries.iter().all(|entry| entry.key.starts_with("a/")));
        assert!(revision >= other);
    }
    let watches: Vec<_> = [&near, &far, &near, &far]
        .into_iter()
        .map(|store| Seen::of(store, "a/"))
        .collect();
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let store = harness.store(writer % 2);
            thread::spawn(move || {
                for round in 0..25 {
                    let key = format!("a/{writer}.{round}");
                    let revision = create(&store, &key, "x");
                    create(&store, &format!("c/{writer}.{round}"), "not watched");
                    if round % 2 == 0 {
                        written(ask(&store, StoreOp::delete(&*key, revision)));
                    }
                }
            })
        })
        .collect();
    writers
        .into_iter()
        .for_each(|it| it.join().expect("it writes"));
    let last = create(&near, "a/last", "x");
    for seen in watches {
        let (entries, mut before) = seen.snapshot();
        let mut known: BTreeMap<_, _> = entries
            .into_iter()
            .map(|it| (it.key, it.revision))
            .collect();
        while before != last {
            let told = seen.next();
            let (revision, key) = change(&told);
            assert!(
                revision > before && key.starts_with("a/"),
                "{told:?} after {before}"
            );
            before = revision;
            match told {
                StoreChange::Put(entry) => _ = known.insert(entry.key, entry.revision),
                StoreChange::Gone { key, .. } => {
                    known.remove(&key).expect("what is gone was there");
                }
                _ => unreachable!("it has a revision"),
            }
        }
        assert_eq!(known.len(), 4 * 12 + 2);
        assert!(known.iter().all(|(key, revision)| {
            get(&near, key).is_some_and(|entry| entry.revision == *revision)
        }));
    }
}

/// Grants a lease, which keeps its entries while it is renewed, and then takes them along; it never
/// comes back.
pub fn entries_end_with_their_lease<H: StoreHarness>() {
    let harness = H::start();
    let [near, far] = [0, 1].map(|node| harness.store(node));
    let lease = grant(&near, SHORT);
    let seen = Seen::of(&far, "");
    seen.snapshot();
    let kept = create(&near, "kept", "x");
    let first = written(ask(&near, StoreOp::create("a", "x").with_lease(lease)));
    let second = written(ask(&far, StoreOp::create("b", "x").with_lease(lease)));
    assert_eq!(get(&far, "a").expect("it is there").lease, Some(lease));
    for revision in [kept, first, second] {
        assert_eq!(change(&seen.next()).0, revision);
    }
    // Longer than the lease, if it is renewed.
    let begin = here::now();
    while here::now() - begin < 3 * SHORT {
        let renewed = ask(&near, StoreOp::Renew { lease });
        if renewed == Err(StoreError::NoLease) {
            // The machine has paused the program for longer than the lease.
            break;
        }
        assert_eq!(renewed, Ok(StoreAnswer::Lease(lease)));
        thread::sleep(SHORT / 20);
    }
    let mut gone = [seen.next(), seen.next()].map(|told| match told {
        StoreChange::Gone { key, revision } => (key, revision),
        other => panic!("{other:?}"),
    });
    assert!(gone[0].1 < gone[1].1 && gone[0].1 > second);
    gone.sort();
    assert_eq!([&*gone[0].0, &*gone[1].0], ["a", "b"]);
    assert_eq!((get(&near, "a"), get(&far, "b")), (None, None));
    assert_eq!(get(&far, "kept").expect("it has no lease").revision, kept);
    let late = ask(&near, StoreOp::Renew { lease });
    assert_eq!(late, Err(StoreError::NoLease));
    let late = ask(&far, StoreOp::create("a", "x").with_lease(lease));
    assert_eq!(late, Err(StoreError::NoLease));
    assert_eq!(get(&far, "a"), None);
    let again = create(&far, "a", "y");
    assert!(again > gone[1].1);
}

/// Renews a lease beyond its first time.
pub fn a_renewed_lease_keeps_its_entries<H: StoreHarness>() {
    let harness = H::start();
    let store = harness.store(1);
    // A busy machine may pause the program for a while.
    let ttl = Duration::from_secs(4);
    let lease = grant(&store, ttl);
    let revision = written(ask(&store, StoreOp::create("a", "x").with_lease(lease)));
    let begin = here::now();
    while here::now() - begin < ttl + ttl / 2 {
        let renewed = ask(&store, StoreOp::Renew { lease });
        assert_eq!(renewed, Ok(StoreAnswer::Lease(lease)));
        thread::sleep(ttl / 40);
    }
    assert_eq!(get(&store, "a").expect("it is kept").revision, revision);
}

/// Revokes a lease, which takes its entries along at once.
pub fn a_revoked_lease_takes_its_entries_along<H: StoreHarness>() {
    let harness = H::start();
    let [near, far] = [0, 1].map(|node| harness.store(node));
    let (lease, other) = (grant(&near, LONG), grant(&far, LONG));
    assert_ne!(lease, other);
    written(ask(&near, StoreOp::create("a", "x").with_lease(lease)));
    let moves = written(ask(&near, StoreOp::create("b", "x").with_lease(lease)));
    written(ask(
        &far,
        StoreOp::update("b", "y", moves).with_lease(other),
    ));
    for _ in 0..2 {
        let revoked = ask(&far, StoreOp::Revoke { lease });
        assert_eq!(revoked, Ok(StoreAnswer::Revoked));
    }
    assert_eq!(get(&near, "a"), None);
    assert_eq!(get(&near, "b").expect("it has moved").lease, Some(other));
    let late = ask(&near, StoreOp::Renew { lease });
    assert_eq!(late, Err(StoreError::NoLease));
}

/// Restarts the store: the entries and numbers are there, and each lease has its whole time again.
pub fn a_restart_forgets_nothing<H: StoreHarness>() {
    let mut harness = H::start();
    let store = harness.store(0);
    let lease = grant(&store, LONG);
    let lapsing = grant(&store, SHORT);
    create(&store, "gone", "x");
    let gone = get(&store, "gone").expect("it is there").revision;
    let kept = written(ask(&store, StoreOp::create("a", "x").with_lease(lease)));
    written(ask(&store, StoreOp::create("b", "x").with_lease(lapsing)));
    let last = written(ask(&store, StoreOp::delete("gone", gone)));
    let seen = Seen::of(&harness.store(1), "");
    seen.snapshot();
    if !harness.restart() {
        return;
    }
    let store = harness.store(0);
    // The store may need a while.
    eventually("the store is there again", || {
        ask(&store, StoreOp::get("a")).is_ok()
    });
    let entry = get(&store, "a").expect("it was written");
    assert_eq!((entry.revision, entry.lease), (kept, Some(lease)));
    assert_eq!(get(&store, "gone"), None);
    assert!(create(&store, "new", "x") > last);
    assert_eq!(
        ask(&store, StoreOp::Renew { lease }),
        Ok(StoreAnswer::Lease(lease))
    );
    assert!(grant(&store, LONG).0 != lease.0 && grant(&store, LONG).0 != lapsing.0);
    let entries = seen.snapshot_again();
    assert!(entries.iter().any(|entry| entry.revision == kept));
    eventually("the lease that is not renewed ends", || {
        get(&store, "b").is_none()
    });
}

/// Parts a node from the store: the node learns so, and its watch begins anew.
pub fn a_node_apart_is_told_so<H: StoreHarness>() {
    let harness = H::start();
    let [near, far] = [0, 1].map(|node| harness.store(node));
    let seen = Seen::of(&far, "");
    seen.snapshot();
    if !harness.part(true) {
        return;
    }
    let first = create(&near, "a", "x");
    let refused = ask(&far, StoreOp::create("b", "x"));
    let is_told = matches!(
        refused,
        Err(StoreError::Unavailable(_) | StoreError::Unknown)
    );
    assert!(is_told, "{refused:?}");
    let refused = ask(&far, StoreOp::get("a"));
    assert!(
        matches!(refused, Err(StoreError::Unavailable(_))),
        "{refused:?}"
    );
    harness.part(false);
    let entries = seen.snapshot_again();
    assert!(entries.iter().any(|entry| entry.revision == first));
    eventually("the store is there again", || {
        ask(&far, StoreOp::get("a")).is_ok()
    });
    let second = create(&far, "c", "x");
    while change(&seen.next()).0 != second {}
}

/// Makes a test of each case of stores, for a harness.
///
/// ```
/// mod twin {
///     ganger_cluster::store_cases!(ganger_cluster::conformance::TwinStores);
/// }
/// ```
#[macro_export]
macro_rules! store_cases {
    ($harness:ty) => {
        // pins: B27
        #[test]
        fn a_write_says_what_it_replaces() {
            $crate::conformance::a_write_says_what_it_replaces::<$harness>();
        }
        // pins: B27
        #[test]
        fn a_write_beyond_the_limits_is_refused() {
            $crate::conformance::a_write_beyond_the_limits_is_refused::<$harness>();
        }
        // pins: B27
        #[test]
        fn of_many_writers_one_succeeds() {
            $crate::conformance::of_many_writers_one_succeeds::<$harness>();
        }
        // pins: B27
        #[test]
        fn a_watch_begins_with_a_snapshot() {
            $crate::conformance::a_watch_begins_with_a_snapshot::<$harness>();
        }
        // pins: B28
        #[test]
        fn entries_end_with_their_lease() {
            $crate::conformance::entries_end_with_their_lease::<$harness>();
        }
        // pins: B28
        #[test]
        fn a_renewed_lease_keeps_its_entries() {
            $crate::conformance::a_renewed_lease_keeps_its_entries::<$harness>();
        }
        // pins: B28
        #[test]
        fn a_revoked_lease_takes_its_entries_along() {
            $crate::conformance::a_revoked_lease_takes_its_entries_along::<$harness>();
        }
        // pins: B27, B28
        #[test]
        fn a_restart_forgets_nothing() {
            $crate::conformance::a_restart_forgets_nothing::<$harness>();
        }
        // pins: B27
        #[test]
        fn histories_are_linearizable() {
            $crate::conformance::histories_are_linearizable::<$harness>();
        }
        // pins: B27
        #[test]
        fn a_node_apart_is_told_so() {
            $crate::conformance::a_node_apart_is_told_so::<$harness>();
        }
    };
}

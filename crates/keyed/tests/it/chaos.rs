//! Many senders and few keys in simulations: evictions at any moment, slow saves, faults and stops.
//! All messages are accounted for.

use crate::support::Slow;
use ganger_keyed::{Keyed, KeyedAddress, Kinds};
use ganger_proc_api::{
    Actor, BoxError, CancelReason, Completion, Context, Reply, StepOutput, StepResult,
};
use ganger_sim::{Faults, Rt, Sim, Strategy};
use ganger_sync::sync::{Mutex, lock};
use ganger_task::Cx;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const IDLE: Duration = Duration::from_millis(20);
const SENDERS: u64 = 4;
const KEYS: u64 = 3;
const MESSAGES: u64 = 25;

/// Returns the number of seeds, unless the environment sets it.
fn seeds(of: u64) -> u64 {
    let seeds = std::env::var("GANGER_SEEDS").ok();
    seeds.and_then(|it| it.parse().ok()).unwrap_or(of)
}

enum Entry {
    Note(u64, u64),
    Ask(u64, u64, Reply<u64>),
}

/// The stored state of a key.
#[derive(Default)]
struct Stored {
    /// The numbers of each sender's messages, in the order in which they were taken.
    taken: BTreeMap<u64, Vec<u64>>,
    /// How many had been taken at the last save.
    saved: u64,
    is_open: bool,
    starts: u64,
}

impl Stored {
    fn count(&self) -> u64 {
        self.taken.values().map(|it| it.len() as u64).sum()
    }
}

#[derive(Default)]
struct Store {
    keys: BTreeMap<u64, Stored>,
    /// The starts that will still fail.
    failures: u64,
    /// Whether starts fail.
    fails: bool,
    /// Whether a process may end without a save.
    is_rough: bool,
    /// Messages taken after the cancellation of an eviction.
    late: u64,
    /// The key, the sender and the number of each accepted message.
    accepted: Vec<(u64, u64, u64)>,
}

type Shared = Arc<Mutex<Store>>;

/// Has the stored state of its key in memory, and saves it at its end, which takes time.
struct Ledger {
    key: u64,
    store: Shared,
    count: u64,
    saves_late: bool,
    is_open: bool,
    is_saving: bool,
}

impl Ledger {
    fn with<R>(&self, f: impl FnOnce(&mut Stored) -> R) -> R {
        f(lock(&self.store).keys.entry(self.key).or_default())
    }

    fn take(&mut self, sender: u64, number: u64) {
        self.count += 1;
        lock(&self.store).late += u64::from(self.is_saving);
        self.with(|it| it.taken.entry(sender).or_default().push(number));
    }

    fn save(&mut self) {
        let count = self.count;
        self.with(|it| it.saved = count);
    }
}

impl Actor for Ledger {
    type Message = Entry;

    fn init(&mut self, _: &Context) -> Result<(), BoxError> {
        let mut store = lock(&self.store);
        if store.failures > 0 {
            store.failures -= 1;
            return Err("the store is not there".into());
        }
        let is_rough = store.is_rough;
        let stored = store.keys.entry(self.key).or_default();
        assert!(!stored.is_open, "two processes have the key {}", self.key);
        stored.is_open = true;
        stored.starts += 1;
        self.count = stored.count();
        assert!(is_rough || self.count == stored.saved, "it was not saved");
        drop(store);
        self.is_open = true;
        Ok(())
    }

    fn receive(&mut self, _: &Context, entry: Entry, _: &mut StepOutput) -> StepResult {
        match entry {
            Entry::Note(sender, number) => self.take(sender, number),
            Entry::Ask(sender, number, reply) => {
                self.take(sender, number);
                reply.complete(number);
            }
        }
        Ok(())
    }

    fn cancelled(&mut self, _: &Context, _: CancelReason, out: &mut StepOutput) -> StepResult {
        self.is_saving = true;
        if self.saves_late {
            out.defer_cancel();
            out.sleep(Duration::from_millis(7), 1);
        } else {
            self.save();
        }
        Ok(())
    }

    fn completed(&mut self, _: &Context, _: Completion, out: &mut StepOutput) -> StepResult {
        self.save();
        out.done(());
        Ok(())
    }

    fn close(&mut self) {
        if std::mem::take(&mut self.is_open) {
            self.with(|it| it.is_open = false);
        }
    }
}

fn ledgers(rt: &Rt<'_>, store: &Shared) -> Keyed<Entry, Slow> {
    let store = Arc::clone(store);
    let kind = rt.kind::<Entry>("ledger").keyed_by::<Slow>();
    let kind = kind.start(move |key, _| Ledger {
        key: key.id,
        store: Arc::clone(&store),
        count: 0,
        saves_late: key.id % 2 == 0,
        is_open: false,
        is_saving: false,
    });
    kind.idle_after(IDLE).build()
}

/// Sends and asks with pauses, some about as long as the processes may be idle, and has processes
/// evicted. Returns the number of accepted messages.
async fn sender(
    cx: Cx,
    own: u64,
    ledgers: Vec<KeyedAddress<Entry, Slow>>,
    registry: Keyed<Entry, Slow>,
    store: Shared,
    mut random: fastrand::Rng,
) -> Result<u64, BoxError> {
    let mut accepted = 0;
    for number in 0..MESSAGES {
        let ledger = &ledgers[random.usize(..ledgers.len())];
        let is_accepted = if random.u8(..4) == 0 {
            let question = ledger.call(move |reply| Entry::Ask(own, number, reply));
            cx.ask(question).await.is_ok()
        } else {
            ledger.send(Entry::Note(own, number)).is_ok()
        };
        if is_accepted {
            accepted += 1;
            lock(&store).accepted.push((ledger.key().id, own, number));
        }
        if random.u8(..8) == 0 {
            registry.evict(ledgers[random.usize(..ledgers.len())].key());
        }
        match random.u8(..6) {
            0 => cx.sleep(IDLE).await?,
            1 => {
                let a_bit = Duration::from_micros(random.u64(..20));
                cx.sleep(IDLE + a_bit).await?;
            }
            2 => cx.sleep(Duration::from_millis(random.u64(..50))).await?,
            _ => {}
        }
    }
    Ok(accepted)
}

/// Runs the senders, and then until all is quiet.
fn play(rt: &Rt<'_>, store: &Shared) -> (Keyed<Entry, Slow>, Option<u64>) {
    let ledgers = ledgers(rt, store);
    let senders = (0..SENDERS).map(|own| {
        let random = fastrand::Rng::with_seed(rt.choose(1 << 20) as u64);
        let (registry, store) = (ledgers.clone(), Arc::clone(store));
        let ledgers = (0..KEYS).map(|id| ledgers.of(Slow::new(id, rt)));
        let ledgers: Vec<_> = ledgers.collect();
        rt.spawn(move |cx: Cx| sender(cx, own, ledgers, registry, store, random))
            .ok()
    });
    let ends: Vec<_> = senders.collect::<Vec<_>>().into_iter().flatten().collect();
    let accepted = ends
        .into_iter()
        .map(|it| rt.wait(it).take::<u64>().ok())
        .sum();
    rt.settle();
    (ledgers, accepted)
}

/// Checks that no process is left, and that each sender's messages were taken once and in order.
/// Returns the number of messages.
fn settle(store: &Shared, ledgers: &Keyed<Entry, Slow>) -> u64 {
    assert!(ledgers.is_empty());
    let store = lock(store);
    for (key, sender, number) in &store.accepted {
        let taken = store.keys.get(key).and_then(|it| it.taken.get(sender));
        let is_taken = taken.is_some_and(|it| it.contains(number));
        assert!(is_taken || store.is_rough || store.fails);
    }
    let mut count = 0;
    for stored in store.keys.values() {
        assert!(!stored.is_open);
        count += stored.count();
        for numbers in stored.taken.values() {
            assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
        }
    }
    count
}

fn sims() -> [Sim; 2] {
    let priorities = Strategy::Priorities {
        changes: 4,
        moves: 600,
    };
    [Strategy::Random, priorities].map(|strategy| {
        let sim = Sim::new(0).workers(3).strategy(strategy);
        sim.builder(|it| it.event_batch(2))
    })
}

// pins: E2, E3
#[test]
fn whatever_is_evicted_when_no_message_is_lost_or_out_of_order() {
    let restarts = Mutex::new(0);
    for sim in sims() {
        let faults = Faults {
            others_move: 250,
            ..Faults::some()
        };
        sim.faults(faults)
            .must_free()
            .check_seeds(seeds(120), |rt| {
                let store = Shared::default();
                let (ledgers, accepted) = play(rt, &store);
                assert_eq!(accepted, Some(SENDERS * MESSAGES));
                assert_eq!(settle(&store, &ledgers), SENDERS * MESSAGES);
                assert_eq!((rt.stats().live, lock(&store).late), (0, 0));
                let starts: u64 = lock(&store).keys.values().map(|it| it.starts).sum();
                *lock(&restarts) += starts - KEYS;
            });
    }
    assert!(*lock(&restarts) > 0, "none was evicted");
}

// pins: E2
#[test]
fn with_processes_that_fail_or_are_ended_at_any_moment_no_key_has_two() {
    for sim in sims() {
        let faults = Faults {
            step_panics: 10,
            process_is_terminated: 5,
            process_is_cancelled: 5,
            ..Faults::some()
        };
        sim.faults(faults).must_free().check_seeds(seeds(60), |rt| {
            let store = Shared::default();
            lock(&store).is_rough = true;
            let (ledgers, _) = play(rt, &store);
            assert!(settle(&store, &ledgers) <= SENDERS * MESSAGES);
            assert_eq!(rt.stats().live, 0);
        });
    }
}

// pins: E4
#[test]
fn starts_that_fail_leave_nothing_and_break_no_order() {
    for sim in sims() {
        sim.faults(Faults::some())
            .must_free()
            .check_seeds(seeds(50), |rt| {
                let store = Shared::default();
                lock(&store).fails = true;
                lock(&store).failures = 1 + rt.choose(5) as u64;
                let (ledgers, accepted) = play(rt, &store);
                let taken = settle(&store, &ledgers);
                assert!(
                    accepted.is_some_and(|it| taken <= it),
                    "{accepted:?}, {taken}"
                );
                assert_eq!(rt.stats().live, 0);
            });
    }
}

/// Stops with enough time while senders go on behind a shield, for different times.
// pins: E5
#[test]
fn in_a_stop_all_that_is_accepted_is_taken_and_saved() {
    for sim in sims() {
        sim.faults(Faults {
            clock_jumps: 0,
            ..Faults::some()
        })
        .must_free()
        .check_seeds(seeds(60), |rt| {
            let store = Shared::default();
            let ledgers = ledgers(rt, &store);
            let senders = (0..SENDERS).map(|own| {
                let random = fastrand::Rng::with_seed(rt.choose(1 << 20) as u64);
                let (registry, store) = (ledgers.clone(), Arc::clone(&store));
                let ledgers = (0..KEYS).map(|id| ledgers.of(Slow::new(id, rt)));
                let ledgers: Vec<_> = ledgers.collect();
                let sends = async move |cx: Cx| {
                    let sends = sender(cx.clone(), own, ledgers, registry, store, random);
                    cx.shield(sends).await
                };
                rt.spawn(sends).unwrap()
            });
            let senders: Vec<_> = senders.collect();
            for _ in 0..rt.choose(400) {
                rt.step();
            }
            rt.begin_stop(Duration::from_secs(600));
            let taken = senders
                .into_iter()
                .map(|it| rt.wait(it).take::<u64>().unwrap());
            assert_eq!(taken.sum::<u64>(), SENDERS * MESSAGES);
            rt.settle();
            assert_eq!(settle(&store, &ledgers), SENDERS * MESSAGES);
            let store = lock(&store);
            assert!(store.late == 0 && store.keys.values().all(|it| it.saved == it.count()));
            assert_eq!((rt.stats().live, rt.stats().total.forced), (0, 0));
        });
    }
}

// pins: E5
#[test]
fn a_stop_at_any_moment_ends_all_and_closes_what_began() {
    for sim in sims() {
        let faults = Faults {
            shutdown_begins: 2,
            shutdown_is_forced: 20,
            ..Faults::some()
        };
        sim.faults(faults).must_free().check_seeds(seeds(60), |rt| {
            let store = Shared::default();
            lock(&store).is_rough = true;
            let (ledgers, _) = play(rt, &store);
            settle(&store, &ledgers);
            assert_eq!(rt.stats().live, 0);
        });
    }
}

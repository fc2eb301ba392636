//! Strong names and locks beside the cases of all stores: sleeping machines, ends, no store.

use ganger_cluster::{
    Cluster, ClusterNameErrorKind, LockLost, NameLost, NameRevoked, NoStore, Registrar, Settings,
    StoreFaults, StrongError, StrongLock, StrongNames, Twin, TwinStore,
};
use ganger_link::Registry as _;
use ganger_proc_api::{
    Actor, ActorProcess, CommandError, Context, Instant, RegisterNameErrorKind, StepOutput,
    StepResult, actor_fn,
};
use ganger_sched::Scheduler;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// Says each loss.
struct Owner(Sender<NameLost>);

impl Actor for Owner {
    type Message = NameLost;

    fn receive(&mut self, _: &Context, lost: NameLost, _: &mut StepOutput) -> StepResult {
        Ok(self.0.send(lost)?)
    }
}

fn join(
    twin: &Twin,
    store: &TwinStore,
    name: &str,
    clock: &Arc<AtomicU64>,
) -> (Scheduler, Cluster) {
    join_on(2, twin, store, name, clock)
}

fn join_on(
    workers: usize,
    twin: &Twin,
    store: &TwinStore,
    name: &str,
    clock: &Arc<AtomicU64>,
) -> (Scheduler, Cluster) {
    let builder = Scheduler::builder().workers(workers).node(name);
    let scheduler = builder.quiet_failures().start().unwrap();
    let clock = Arc::clone(clock);
    let node = Cluster::builder()
        .engine(twin.port())
        .store(store.port(name))
        // The clock stands still but for the test.
        .lease_clock(move || Instant::from_nanos(clock.load(Ordering::SeqCst)))
        .join(&scheduler);
    (scheduler, node.unwrap())
}

fn sleep(clock: &AtomicU64, time: Duration) {
    let nanos = u64::try_from(time.as_nanos()).unwrap();
    clock.fetch_add(nanos, Ordering::SeqCst);
}

// pins: B34
// case: 37
#[test]
fn after_a_sleep_of_the_machine_nothing_is_held_by_the_first_look() {
    // The store's time stands still, too: no timer and no answer tells of the sleep.
    let (twin, store) = (Twin::new(1), TwinStore::new(1));
    let _clock = twin.run();
    let clock = Arc::new(AtomicU64::new(1));
    let (scheduler, node) = join(&twin, &store, "alpha", &clock);
    let names = node.strong_names().unwrap();
    let (tell, told) = channel();
    let owner = scheduler.spawn(Owner(tell)).unwrap();
    let name = names.register("billing", owner.address().recipient());
    let token = name.wait_timeout(PATIENCE).unwrap();
    let lock = names.lock("invoices").wait_timeout(PATIENCE).unwrap();
    let (tell, lost) = channel();
    lock.on_lost(move || tell.send(()).unwrap());
    // No renewal comes through meanwhile.
    let mut down = StoreFaults::default();
    down.down = true;
    store.faults(down);
    sleep(&clock, Duration::from_millis(4_999));
    assert_eq!(names.token("billing"), Some(token));
    assert!(lock.is_held());
    sleep(&clock, Duration::from_millis(1));
    assert_eq!(lock.token(), Err(LockLost));
    assert_eq!(names.token("billing"), None);
    assert!(!matches!(names.whereis("billing"), Ok(Some(_))));
    assert_eq!(&*told.recv_timeout(PATIENCE).unwrap().name, "billing");
    lost.recv_timeout(PATIENCE).unwrap();
    // A lost lock is not held again. The names are free when the store has ended the lease.
    store.faults(StoreFaults::default());
    store.advance(Duration::from_secs(10));
    let again = names.register("billing", owner.address().recipient());
    assert!(again.wait_timeout(PATIENCE).unwrap() > token);
    assert_eq!(lock.token(), Err(LockLost));
    drop(lock);
    let again = names.lock("invoices").wait_timeout(PATIENCE).unwrap();
    assert!(again.is_held());
}

/// Sets a call for the loss of a lock, when its own is replaced.
struct Replaced(Weak<StrongLock>, Sender<()>);

impl Drop for Replaced {
    fn drop(&mut self) {
        if let Some(lock) = self.0.upgrade() {
            lock.on_lost(|| ());
        }
        self.1.send(()).unwrap();
    }
}

#[test]
fn a_call_for_the_loss_of_a_lock_may_use_the_lock_when_it_is_replaced() {
    let (twin, store) = (Twin::new(1), TwinStore::new(1));
    let _clock = twin.run();
    let clock = Arc::new(AtomicU64::new(1));
    let (_scheduler, node) = join(&twin, &store, "alpha", &clock);
    let names = node.strong_names().unwrap();
    let lock = Arc::new(names.lock("invoices").wait_timeout(PATIENCE).unwrap());
    let (tell, told) = channel();
    let replaced = Replaced(Arc::downgrade(&lock), tell);
    lock.on_lost(move || drop(replaced));
    let other = Arc::clone(&lock);
    let thread = thread::spawn(move || other.on_lost(|| ()));
    told.recv_timeout(PATIENCE).unwrap();
    thread.join().unwrap();
}

// pins: B38
#[test]
fn a_strong_name_is_looked_up_by_its_text_and_given_to_no_other_process() {
    let (twin, store) = (Twin::new(1), TwinStore::new(1));
    let _clock = twin.run();
    let clock = Arc::new(AtomicU64::new(1));
    let (scheduler, node) = join(&twin, &store, "alpha", &clock);
    let names = node.strong_names().unwrap();
    let (tell, _told) = channel();
    let owner = scheduler.spawn(Owner(tell.clone())).unwrap();
    let name = names.register("billing", owner.address().recipient());
    name.wait_timeout(PATIENCE).unwrap();
    // The node knows its own name by the answer.
    let holder = owner.pid();
    assert_eq!(scheduler.whereis("billing"), Some(holder));
    assert_eq!(
        scheduler.lookup::<NameLost>("billing").unwrap().pid(),
        holder
    );
    let taken = RegisterNameErrorKind::Taken { holder };
    let other = actor_fn(|_, _: NameRevoked, _| Ok(()));
    let other = scheduler.spawn(other).unwrap();
    let refused = scheduler.register_name("billing", other.pid()).unwrap_err();
    assert_eq!(refused.kind, taken);
    let address = other.address();
    let refused = node.register_name("billing", address, address.recipient());
    let taken = ClusterNameErrorKind::Taken { holder };
    assert_eq!(refused.unwrap_err().kind, taken);
    // The owner itself may have the name in each scope.
    scheduler.register_name("billing", owner.pid()).unwrap();
    assert_eq!(scheduler.whereis("billing"), Some(owner.pid()));
}

/// Tells the test of its events, in order.
struct Sees(Sender<&'static str>);

enum Saw {
    Message,
    Lost,
}

impl From<NameLost> for Saw {
    fn from(_: NameLost) -> Self {
        Self::Lost
    }
}

impl Actor for Sees {
    type Message = Saw;

    fn receive(&mut self, _: &Context, saw: Saw, _: &mut StepOutput) -> StepResult {
        Ok(self.0.send(match saw {
            Saw::Message => "message",
            Saw::Lost => "lost",
        })?)
    }
}

// pins: B34
// case: 37
#[test]
fn a_guarded_process_sees_its_loss_before_any_later_message() {
    let (twin, store) = (Twin::new(1), TwinStore::new(1));
    let clock = Arc::new(AtomicU64::new(1));
    // A single worker: the keeper of the names does nothing while a step goes on.
    let (scheduler, node) = join_on(1, &twin, &store, "alpha", &clock);
    let names = node.strong_names().unwrap();
    let (tell, told) = channel();
    let owner = names.guard(ActorProcess::new(Sees(tell)));
    let owner = scheduler.spawn(owner).unwrap();
    let address = owner.address().clone().typed::<Saw>().unwrap();
    let name = names.register("billing", address.recipient());
    name.wait_timeout(PATIENCE).unwrap();
    address.send(Saw::Message).unwrap();
    assert_eq!(told.recv_timeout(PATIENCE), Ok("message"));
    // Only the process itself looks at the clock behind this step.
    let (late, to) = (Arc::clone(&clock), address.clone());
    let driver = actor_fn(move |_, (): (), _| {
        sleep(&late, Duration::from_secs(5));
        Ok(to.send(Saw::Message)?)
    });
    let driver = scheduler.spawn(driver).unwrap();
    driver.address().send(()).unwrap();
    assert_eq!(told.recv_timeout(PATIENCE), Ok("lost"));
    assert_eq!(told.recv_timeout(PATIENCE), Ok("message"));
    address.send(Saw::Message).unwrap();
    assert_eq!(told.recv_timeout(PATIENCE), Ok("message"));
    assert!(told.try_recv().is_err());
}

// pins: B33
// case: 37
#[test]
fn without_a_store_there_is_no_strong_name() {
    let twin = Twin::new(1);
    let scheduler = Scheduler::builder().node("alpha").start().unwrap();
    let node = Cluster::builder()
        .engine(twin.port())
        .join(&scheduler)
        .unwrap();
    assert!(node.store().is_none());
    assert!(matches!(node.strong_names(), Err(NoStore)));
}

fn failed<T: std::fmt::Debug>(answer: Result<T, CommandError>) -> StrongError {
    match answer {
        Err(CommandError::Failed(why)) => *why.downcast().unwrap(),
        other => panic!("{other:?}"),
    }
}

// pins: B33
// case: 37
#[test]
fn a_store_that_is_down_gives_nothing_and_says_so() {
    let (twin, store) = (Twin::new(1), TwinStore::new(1));
    let clock = Arc::new(AtomicU64::new(1));
    let (scheduler, node) = join(&twin, &store, "alpha", &clock);
    let names = node.strong_names().unwrap();
    let mut down = StoreFaults::default();
    down.down = true;
    store.faults(down);
    let (tell, _told) = channel();
    let owner = scheduler.spawn(Owner(tell)).unwrap();
    let refused = names.register("billing", owner.address().recipient());
    let refused = failed(refused.wait_timeout(PATIENCE));
    assert!(matches!(refused, StrongError::Store(_)), "{refused}");
    let refused = failed(names.lock("invoices").wait_timeout(PATIENCE));
    assert!(matches!(refused, StrongError::Store(_)), "{refused}");
    let refused = failed(names.find("billing").wait_timeout(PATIENCE));
    assert!(matches!(refused, StrongError::Store(_)), "{refused}");
    assert!(matches!(
        names.whereis("billing"),
        Err(StrongError::Store(_))
    ));
    let refused = names.register("", owner.address().recipient());
    assert!(matches!(
        failed(refused.wait_timeout(PATIENCE)),
        StrongError::Name
    ));
    store.faults(StoreFaults::default());
    let token = names.register("billing", owner.address().recipient());
    token.wait_timeout(PATIENCE).unwrap();
    // Names are held on while the store is down, until half of the lease.
    store.faults(down);
    sleep(&clock, Duration::from_millis(4_990));
    assert!(names.token("billing").is_some());
    sleep(&clock, Duration::from_millis(10));
    assert!(names.token("billing").is_none());
}

fn gone(names: &StrongNames, scheduler: &Scheduler) -> StrongError {
    let (tell, _told) = channel();
    let owner = scheduler.spawn(Owner(tell)).unwrap();
    let recipient = owner.address().recipient();
    scheduler.terminate(owner.pid()).unwrap();
    drop(owner.wait_timeout(PATIENCE).unwrap());
    failed(names.register("billing", recipient).wait_timeout(PATIENCE))
}

// pins: B33, B35
// case: 37
#[test]
fn what_a_process_that_has_gone_wants_is_not_given() {
    let (twin, store) = (Twin::new(1), TwinStore::new(1));
    let clock = Arc::new(AtomicU64::new(1));
    let (scheduler, node) = join(&twin, &store, "alpha", &clock);
    let (other, _) = join(&twin, &store, "beta", &clock);
    let names = node.strong_names().unwrap();
    assert!(matches!(
        gone(&names, &scheduler),
        StrongError::NoProcess(_)
    ));
    let (tell, _told) = channel();
    let elsewhere = other.spawn(Owner(tell)).unwrap();
    let refused = names.register("billing", elsewhere.address().recipient());
    drop(refused.wait_timeout(PATIENCE).unwrap_err());
    let first = names.lock("invoices").wait_timeout(PATIENCE).unwrap();
    let given_up = names
        .lock("invoices")
        .wait_timeout(Duration::from_millis(50));
    assert!(matches!(given_up, Err(CommandError::Timeout)));
    let third = names.lock("invoices").begin();
    drop(first);
    assert!(third.wait_timeout(PATIENCE).unwrap().is_held());
}

// pins: B32
// case: 37
#[test]
fn a_stop_gives_names_back_at_once_and_a_restart_goes_on_with_the_numbers() {
    let folder = std::env::temp_dir().join(format!("ganger-strong-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut last = None;
    for round in 0..4 {
        if round == 3 {
            // A lost file takes the names along, and no number comes again.
            std::fs::remove_file(folder.join("log")).unwrap();
        }
        let twin = Twin::new(1);
        let scheduler = Scheduler::builder()
            .workers(2)
            .node("alpha")
            .start()
            .unwrap();
        let node = Cluster::builder()
            .engine(twin.port())
            .store(Registrar::file(folder.join("log")))
            .join(&scheduler)
            .unwrap();
        let names = node.strong_names().unwrap();
        let (tell, _told) = channel();
        let owner = scheduler.spawn(Owner(tell)).unwrap();
        // At once: the stop has revoked the lease of the run before.
        let name = names.register("billing", owner.address().recipient());
        let token = name.wait_timeout(PATIENCE).unwrap();
        assert!(Some(token) > last);
        last = Some(token);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

// pins: B33, B35
// case: 37
#[test]
fn a_node_that_has_left_refuses_names_and_locks() {
    let (twin, store) = (Twin::new(1), TwinStore::new(1));
    let _clock = twin.run();
    let clock = Arc::new(AtomicU64::new(1));
    let (scheduler, node) = join(&twin, &store, "alpha", &clock);
    let names = node.strong_names().unwrap();
    let (tell, told) = channel();
    let owner = scheduler.spawn(Owner(tell)).unwrap();
    let register = || names.register("billing", owner.address().recipient());
    register().wait_timeout(PATIENCE).unwrap();
    node.leave(Duration::from_secs(10));
    told.recv_timeout(PATIENCE).unwrap();
    // Until the last acts, a claim may be given and lost, or be lost with the lease.
    let over = loop {
        let answer = register().wait_timeout(PATIENCE);
        if answer.is_ok() {
            told.recv_timeout(PATIENCE).unwrap();
            continue;
        }
        match failed(answer) {
            StrongError::Lapsed => {}
            refused => break refused,
        }
    };
    assert!(matches!(over, StrongError::Store(_)), "{over}");
    let refused = failed(names.lock("invoices").wait_timeout(PATIENCE));
    assert!(matches!(refused, StrongError::Store(_)), "{refused}");
}

// pins: B32
// case: 37
#[test]
fn a_node_that_looks_for_its_registrar_does_nothing_meanwhile() {
    let twin = Twin::new(1);
    let _clock = twin.run();
    let scheduler = Scheduler::builder().workers(2).node("alpha");
    let scheduler = scheduler.start().unwrap();
    let mut settings = Settings::default();
    settings.dead = Duration::from_secs(1);
    let node = Cluster::builder()
        .engine(twin.port())
        .settings(settings)
        .store(Registrar::at("nobody"))
        .join(&scheduler);
    let _node = node.unwrap();
    let steps = || scheduler.stats().total.steps;
    // Longer than the first look, and than the next. Nothing is told.
    let (tell, told) = channel::<()>();
    let wait = |millis| _ = told.recv_timeout(Duration::from_millis(millis));
    wait(2_000);
    let before = steps();
    wait(2_000);
    let steps = steps() - before;
    drop(tell);
    assert!(steps < 2_000, "{steps} steps");
}

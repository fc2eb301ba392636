//! Two tellers of the loss of a name at a time: the keeper of the names, and a guarded owner.

use ganger_cluster::{Cluster, NameLost, StrongNames, Twin, TwinStore};
use ganger_proc_api::{Actor, ActorProcess, Context, Instant, StepOutput, StepResult};
use ganger_sched::{Address, ProcessHandle, Scheduler};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// Where the notices of a name become messages, and the first of them waits.
struct Gate {
    enter: Sender<()>,
    go: Option<Receiver<()>>,
}

/// By the name. Each test has names of its own.
static GATES: Mutex<BTreeMap<Box<str>, Gate>> = Mutex::new(BTreeMap::new());

/// The test's side of a gate.
struct Way {
    entered: Receiver<()>,
    go: Sender<()>,
}

impl Way {
    fn of(name: &str) -> Self {
        let (enter, entered) = channel();
        let (go, may_go) = channel();
        let go_on = Some(may_go);
        let gate = Gate { enter, go: go_on };
        GATES.lock().unwrap().insert(name.into(), gate);
        Self { entered, go }
    }

    fn wait(&self) {
        self.entered.recv_timeout(PATIENCE).expect("it is told");
    }
}

#[derive(Debug, PartialEq)]
enum Saw {
    Lost,
    Message,
}

impl From<NameLost> for Saw {
    fn from(lost: NameLost) -> Self {
        let mut gates = GATES.lock().unwrap();
        let Some(gate) = gates.get_mut(&lost.name) else {
            return Self::Lost;
        };
        let (enter, go) = (gate.enter.clone(), gate.go.take());
        drop(gates);
        // The test may have failed.
        let _failed = enter.send(());
        if let Some(go) = go {
            let _failed = go.recv_timeout(PATIENCE);
        }
        Self::Lost
    }
}

/// Tells the test of its events, in order.
struct Sees(Sender<Saw>);

impl Actor for Sees {
    type Message = Saw;

    fn receive(&mut self, _: &Context, saw: Saw, _: &mut StepOutput) -> StepResult {
        Ok(self.0.send(saw)?)
    }
}

struct Node {
    scheduler: Scheduler,
    cluster: Cluster,
    names: StrongNames,
    /// The lease's time, and how often it was asked for.
    clock: Arc<[AtomicU64; 2]>,
    _twin: ganger_cluster::Running,
}

impl Node {
    fn start() -> Self {
        let (twin, store) = (Twin::new(1), TwinStore::new(1));
        let running = twin.run();
        let scheduler = Scheduler::builder().workers(3).node("alpha");
        let scheduler = scheduler.quiet_failures().start().unwrap();
        let clock = Arc::new([AtomicU64::new(1), AtomicU64::new(0)]);
        let of_lease = Arc::clone(&clock);
        let cluster = Cluster::builder()
            .engine(twin.port())
            .store(store.port("alpha"))
            .lease_clock(move || {
                of_lease[1].fetch_add(1, Ordering::SeqCst);
                Instant::from_nanos(of_lease[0].load(Ordering::SeqCst))
            })
            .join(&scheduler)
            .unwrap();
        let names = cluster.strong_names().unwrap();
        Self {
            scheduler,
            cluster,
            names,
            clock,
            _twin: running,
        }
    }

    fn owner(&self) -> (ProcessHandle<Saw>, Receiver<Saw>) {
        let (tell, told) = channel();
        (self.scheduler.spawn(Sees(tell)).unwrap(), told)
    }

    fn guarded(&self) -> (Address<Saw>, Receiver<Saw>) {
        let (tell, told) = channel();
        let owner = self.names.guard(ActorProcess::new(Sees(tell)));
        let owner = self.scheduler.spawn(owner).unwrap();
        (owner.address().clone().typed().unwrap(), told)
    }

    fn register(&self, name: &str, owner: &Address<Saw>) {
        let name = self.names.register(name, owner.recipient());
        name.wait_timeout(PATIENCE).unwrap();
    }

    /// Lets half of the lease pass, and wakes the keeper of the names.
    fn lose(&self, name: &str) {
        self.clock[0].fetch_add(5_000_000_000, Ordering::SeqCst);
        assert_eq!(self.names.token(name), None);
    }
}

// pins: B34
#[test]
fn while_the_keeper_tells_a_guarded_owner_shows_nothing_and_tells_nothing_again() {
    let node = Node::start();
    let (owner, told) = node.guarded();
    node.register("told by the keeper", &owner);
    let way = Way::of("told by the keeper");
    node.lose("told by the keeper");
    way.wait();
    owner.send(Saw::Message).unwrap();
    // The owner looks at the clock before each of its steps; the keeper waits.
    let begun = node.clock[1].load(Ordering::SeqCst);
    let end = std::time::Instant::now() + PATIENCE;
    while node.clock[1].load(Ordering::SeqCst) < begun + 5 {
        assert!(std::time::Instant::now() < end, "the owner waits");
        thread::yield_now();
    }
    assert!(told.try_recv().is_err(), "a message before the notice");
    way.go.send(()).unwrap();
    for saw in [Saw::Lost, Saw::Message] {
        assert_eq!(told.recv_timeout(PATIENCE), Ok(saw));
    }
    assert!(way.entered.try_recv().is_err(), "told twice");
}

// pins: B34
#[test]
fn while_a_guarded_owner_tells_itself_the_keeper_goes_on_and_ends() {
    let node = Node::start();
    let (first, first_told) = node.owner();
    let (owner, told) = node.guarded();
    node.register("keeps the keeper", first.address());
    node.register("told by itself", &owner);
    let (busy, way) = (Way::of("keeps the keeper"), Way::of("told by itself"));
    node.lose("told by itself");
    // The keeper is at the first loss, so the owner tells itself.
    busy.wait();
    owner.send(Saw::Message).unwrap();
    way.wait();
    busy.go.send(()).unwrap();
    assert_eq!(first_told.recv_timeout(PATIENCE), Ok(Saw::Lost));
    // The keeper is behind the second loss, and gives names.
    node.register("another", first.address());
    node.cluster.leave(Duration::from_secs(10));
    assert_eq!(first_told.recv_timeout(PATIENCE), Ok(Saw::Lost));
    assert!(told.try_recv().is_err(), "a message before the notice");
    way.go.send(()).unwrap();
    for saw in [Saw::Lost, Saw::Message] {
        assert_eq!(told.recv_timeout(PATIENCE), Ok(saw));
    }
    assert!(way.entered.try_recv().is_err(), "told twice");
}

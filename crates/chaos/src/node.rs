//! A node as a program of its own, which sends, receives, watches, and says so.

mod owners;

use ganger_cluster::{Cluster, Engine, NodeChange, Registrar, Settings, StoreSource};
use ganger_proc_api::{
    Context, Envelope, Event, NodeName, Payload, Payloads, Pid, SendErrorKind, StepOutput,
    StepResult, actor_fn, process_fn,
};
use ganger_sched::{ProcessHandle, Scheduler};
use std::collections::HashMap;
use std::env;
use std::io::BufRead as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The variables of a node's environment.
pub(crate) const NAME: &str = "GANGER_CHAOS_NODE";
pub(crate) const PEERS: &str = "GANGER_CHAOS_PEERS";
pub(crate) const SEEDS: &str = "GANGER_CHAOS_SEEDS";
pub(crate) const OWN: &str = "GANGER_CHAOS_OWN";
pub(crate) const DEAD: &str = "GANGER_CHAOS_DEAD";
pub(crate) const EXTRA: &str = "GANGER_CHAOS_EXTRA";
pub(crate) const RANDOM: &str = "GANGER_CHAOS_RANDOM";
pub(crate) const REGISTRAR: &str = "GANGER_CHAOS_REGISTRAR";

/// Begins a line for the program that has started this.
pub(crate) const MARK: &str = "@chaos ";

/// The processes of a node that end again and again.
const TARGETS: usize = 4;

/// The most open monitors.
const MONITORS: u64 = 5_000;

/// How long a node waits for its monitors at the end.
const PATIENCE: Duration = Duration::from_secs(120);

/// The place of a node among the others, as its program gets it from its environment.
#[derive(Debug, Clone)]
pub struct Place {
    /// The name of the node.
    pub name: String,
    /// The addresses of the proxies of other nodes, or of the broker's.
    pub seeds: Vec<SocketAddr>,
    /// The proxy in front of this node, for its peers.
    pub own: SocketAddr,
    /// A text of the test's own.
    pub extra: String,
    peers: Vec<NodeName>,
    dead: Duration,
    random: u64,
    /// The first node, and a file for its registrar.
    registrar: (String, PathBuf),
}

fn var<T: std::str::FromStr>(name: &str) -> Option<T> {
    env::var(name).ok()?.parse().ok()
}

impl Place {
    /// Reads the node's part from the environment. `None`: this program was not started by
    /// [`run`](crate::run()).
    fn of_environment() -> Option<Self> {
        let peers = env::var(PEERS).ok()?;
        let seeds = env::var(SEEDS).ok()?;
        Some(Self {
            name: env::var(NAME).ok()?,
            seeds: seeds.split(',').filter_map(|it| it.parse().ok()).collect(),
            own: var(OWN)?,
            extra: env::var(EXTRA).unwrap_or_default(),
            peers: (peers.split(','))
                .filter_map(|it| NodeName::new(it).ok())
                .collect(),
            dead: Duration::from_millis(var(DEAD)?),
            random: var(RANDOM)?,
            registrar: {
                let place = env::var(REGISTRAR).ok()?;
                let (node, file) = place.split_once(':')?;
                (node.to_owned(), file.into())
            },
        })
    }

    /// Returns the registrar of the run, at the first node.
    #[must_use]
    pub fn registrar(&self) -> Registrar {
        match &self.registrar {
            (node, file) if *node == self.name => Registrar::file(file),
            (node, _) => Registrar::at(node),
        }
    }
}

macro_rules! say {
    ($($text:tt)*) => { println!("{MARK}{}", format_args!($($text)*)) };
}

/// The state that the threads of a node share.
struct Shared {
    scheduler: Scheduler,
    cluster: Cluster,
    run: u64,
    /// Grows with each change of a node.
    changes: AtomicU64,
    /// No more monitors are set up, and senders ask for a last answer.
    drains: AtomicBool,
    /// By the PID of the receiver: its run, and the last number that it has answered.
    answers: Mutex<HashMap<u64, (u64, u64)>>,
    monitors: Mutex<Monitors>,
}

#[derive(Default)]
struct Monitors {
    set: u64,
    told: u64,
    is_told: Vec<bool>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a node until the program that has started this program ends it, and then exits. Returns at
/// once in a program that [`run`](crate::run()) has not started. `listens` says where the engine is
/// reached, `store` where the strong names and the locks are.
///
/// # Panics
/// If the node can't start.
pub fn node<E: Engine + Clone + 'static>(
    engine: impl FnOnce(&Place) -> E,
    listens: impl FnOnce(&E) -> Option<SocketAddr>,
    store: impl FnOnce(&Place) -> StoreSource,
) {
    let Some(place) = Place::of_environment() else {
        return;
    };
    let engine = engine(&place);
    let builder = Scheduler::builder().workers(2).quiet_failures();
    let builder = builder.mailbox_limit(1000).node(&place.name);
    let scheduler = builder.start().expect("the scheduler starts");
    let mut settings = Settings::default();
    settings.dead = place.dead;
    let cluster = Cluster::builder()
        .cluster("chaos")
        .cookie("chaos")
        .engine(engine.clone())
        .settings(settings)
        .peers(place.peers.iter().map(|it| it.as_str().to_owned()))
        .store(store(&place))
        // Many pauses and cuts are longer.
        .lease(place.dead / 2);
    let cluster = cluster.join(&scheduler).expect("the node joins");
    let run = cluster.incarnation().to_bits();
    let shared = Arc::new(Shared {
        scheduler,
        cluster,
        run,
        changes: AtomicU64::new(0),
        drains: AtomicBool::new(false),
        answers: Mutex::default(),
        monitors: Mutex::default(),
    });
    let taker = shared.taker();
    let collector = shared.collector();
    shared.watch_nodes();
    let watcher = shared.watcher();
    let listens = listens(&engine).map_or("-".to_owned(), |it| it.to_string());
    say!("up {run} {} {listens}", taker.pid().id());
    let (done, drained) = channel();
    for (number, peer) in (1..).zip(place.peers.iter().copied()) {
        let (sender, done) = (Arc::clone(&shared), done.clone());
        let random = fastrand::Rng::with_seed(place.random.wrapping_add(number));
        let to = collector.pid();
        let name = place.name.clone();
        thread::spawn(move || {
            sender.send_to(peer, (&name, to), random);
            drop(done);
        });
    }
    shared.own(place.random, &done);
    drop(done);
    let asking = Arc::clone(&shared);
    let (peers, random) = (place.peers.clone(), place.random);
    let watcher_pid = watcher.pid();
    thread::spawn(move || asking.set_up_monitors(&peers, watcher_pid, random));
    let (end_targets, ends) = channel();
    let (say_ended, ended) = channel();
    let changing = Arc::clone(&shared);
    thread::spawn(move || {
        changing.change_targets(&ends, random);
        drop(say_ended);
    });
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match &*line {
            "drain" => {
                // Ordering: Relaxed: nothing else is read with it.
                shared.drains.store(true, Ordering::Relaxed);
                let _closed: Result<(), _> = drained.recv();
                say!("drained");
            }
            "targets" => {
                let _gone = end_targets.send(());
                let _closed: Result<(), _> = ended.recv();
                say!("ended");
            }
            "watchers" => shared.say_monitors(),
            _ => break,
        }
    }
    std::process::exit(0);
}

impl Shared {
    /// Receives numbers, and says them.
    fn taker(&self) -> ProcessHandle {
        let run = self.run;
        let taker = process_fn(move |ctx, events, _| {
            let mut ranges: Vec<(String, u64, u64, u64)> = Vec::new();
            for event in events {
                let Event::Message(message) = event else {
                    continue;
                };
                take(ctx, run, message.payloads, &mut ranges)?;
            }
            let receiver = ctx.pid().id();
            for (sender, of, first, last) in ranges {
                say!("got {receiver} {sender} {of} {first} {last}");
            }
            Ok(())
        });
        let named = self.scheduler.spawner().named("taker");
        named.spawn(taker).expect("the process starts")
    }

    /// Gets the last answers.
    fn collector(self: &Arc<Self>) -> ProcessHandle {
        let shared = Arc::clone(self);
        let collector = process_fn(move |_, events, _| {
            for event in events {
                let Event::Message(message) = event else {
                    continue;
                };
                let numbers: Vec<_> = message
                    .payloads
                    .iter()
                    .filter_map(Payload::as_u64)
                    .collect();
                let [receiver, run, number] = numbers[..] else {
                    say!("fault an answer of {} parts", numbers.len());
                    continue;
                };
                lock(&shared.answers).insert(receiver, (run, number));
            }
            Ok(())
        });
        let started = self.scheduler.spawn(collector);
        started.expect("the process starts")
    }

    fn watch_nodes(self: &Arc<Self>) {
        let shared = Arc::clone(self);
        let watcher = actor_fn(move |_, change: NodeChange, _: &mut StepOutput| {
            // Ordering: Relaxed: the senders look again.
            shared.changes.fetch_add(1, Ordering::Relaxed);
            match change {
                NodeChange::Down {
                    node,
                    incarnation,
                    undelivered,
                    why,
                } => {
                    let other = incarnation.to_bits();
                    say!(
                        "down {run} {node} {other} {undelivered} {why}",
                        run = shared.run
                    );
                }
                NodeChange::Unreachable {
                    node,
                    undelivered,
                    why,
                } => say!("down {run} {node} 0 {undelivered} {why}", run = shared.run),
                _ => {}
            }
            Ok(())
        });
        let watcher = self.scheduler.spawn(watcher).expect("the process starts");
        (self.cluster).watch_nodes(watcher.address().recipient());
    }

    /// Monitors each process whose PID comes.
    fn watcher(self: &Arc<Self>) -> ProcessHandle {
        let shared = Arc::clone(self);
        let watcher = process_fn(move |ctx, events, _| {
            for event in events {
                let mut monitors = lock(&shared.monitors);
                match event {
                    Event::Message(message) => {
                        let pid = message.payloads.into_first();
                        let pid = pid.as_pid().ok_or("no PID")?;
                        let tag = monitors.set;
                        monitors.set += 1;
                        monitors.is_told.push(false);
                        drop(monitors);
                        if let Err(error) = ctx.monitor(pid, tag) {
                            say!("fault a monitor of {pid} is refused: {error}");
                        }
                    }
                    Event::Exit(notice) => {
                        let place = usize::try_from(notice.tag)?;
                        let is_told = std::mem::replace(&mut monitors.is_told[place], true);
                        monitors.told += 1;
                        if is_told {
                            say!("fault monitor {} is told twice: {}", place, notice.cause);
                        }
                    }
                    _ => {}
                }
            }
            Ok(())
        });
        let started = self.scheduler.spawn(watcher);
        started.expect("the process starts")
    }

    fn find(&self, peer: NodeName, process: &str) -> Option<Pid> {
        let question = self.cluster.whereis(peer, process);
        question.wait_timeout(Duration::from_millis(500)).ok()?
    }

    fn drains(&self) -> bool {
        // Ordering: Relaxed: nothing else is read with it.
        self.drains.load(Ordering::Relaxed)
    }

    /// Sends numbers to the taker of a peer, whichever run the peer has, until the last is
    /// answered.
    fn send_to(&self, peer: NodeName, (name, to): (&str, Pid), mut random: fastrand::Rng) {
        let mut counts: HashMap<u64, u64> = HashMap::new();
        loop {
            // Ordering: Relaxed: a change that is seen late is seen at the next message.
            let changes = self.changes.load(Ordering::Relaxed);
            let Some(taker) = self.find(peer, "taker") else {
                thread::sleep(Duration::from_millis(10));
                continue;
            };
            let receiver = taker.id();
            // Ordering: Relaxed: a change that is seen late ends this round later.
            while self.changes.load(Ordering::Relaxed) == changes {
                let count = counts.entry(receiver).or_default();
                let is_last = self.drains();
                let answer = lock(&self.answers).get(&receiver).copied();
                if let Some((run, number)) = answer
                    && is_last
                    && number + 1 == *count
                {
                    say!("sent {own} {peer} {run} {receiver} {count}", own = self.run);
                    return;
                }
                let bytes = match random.u32(0..500) {
                    0 => random.usize(0..200_000),
                    1..=50 => random.usize(0..5_000),
                    _ => random.usize(0..100),
                };
                let payloads: Payloads = [
                    Payload::from(name),
                    self.run.into(),
                    (*count).into(),
                    is_last.into(),
                    to.into(),
                    Payload::from(vec![7_u8; bytes]),
                ]
                .into_iter()
                .collect();
                let envelope = Envelope::new(None, taker, "number", payloads);
                let wait = Duration::from_millis(100);
                match self.scheduler.send_timeout(envelope, wait) {
                    Ok(()) => *count += 1,
                    Err(refused) => match refused.kind {
                        SendErrorKind::Full | SendErrorKind::NoConnection => {
                            thread::sleep(Duration::from_millis(5));
                        }
                        SendErrorKind::Timeout => {}
                        other => say!("fault a message is refused: {other:?}"),
                    },
                }
                if is_last {
                    // The answer comes, or the next message asks again.
                    thread::sleep(Duration::from_millis(50));
                } else if random.u8(0..32) == 0 {
                    thread::sleep(Duration::from_micros(random.u64(0..10_000)));
                }
            }
        }
    }

    fn set_up_monitors(&self, peers: &[NodeName], watcher: Pid, random: u64) {
        let mut random = fastrand::Rng::with_seed(random);
        while !self.drains() {
            thread::sleep(Duration::from_millis(random.u64(1..10)));
            let open = {
                let monitors = lock(&self.monitors);
                monitors.set - monitors.told
            };
            let peer = peers[random.usize(0..peers.len())];
            let target = format!("target-{}", random.usize(0..TARGETS));
            if open < MONITORS
                && let Some(target) = self.find(peer, &target)
            {
                let envelope = Envelope::new(None, watcher, "watch", target);
                let sent = self.scheduler.send_blocking(envelope);
                if let Err(error) = sent {
                    say!("fault the watcher is gone: {error}");
                }
            }
        }
    }

    /// Ends processes and starts others of their names, until told.
    fn change_targets(&self, ends: &Receiver<()>, random: u64) {
        let mut random = fastrand::Rng::with_seed(!random);
        let start = |number: usize| {
            let idle = process_fn(|_, _, _| Ok(()));
            let named = self.scheduler.spawner().named(format!("target-{number}"));
            named.spawn(idle).expect("the process starts")
        };
        let mut targets: Vec<_> = (0..TARGETS).map(start).collect();
        let end = |target: &ProcessHandle| {
            let ended = self.scheduler.terminate(target.pid());
            ended.expect("the process lives");
        };
        loop {
            let pause = Duration::from_millis(random.u64(5..150));
            if ends.recv_timeout(pause) != Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                break;
            }
            let number = random.usize(0..TARGETS);
            let target = targets.swap_remove(number);
            end(&target);
            drop(target.wait());
            targets.push(start(number));
            let last = targets.len() - 1;
            targets.swap(number, last);
        }
        for target in targets {
            end(&target);
            drop(target.wait());
        }
    }

    fn say_monitors(&self) {
        let mut left = PATIENCE;
        let pause = Duration::from_millis(5);
        let (set, told) = loop {
            let monitors = lock(&self.monitors);
            let (set, told) = (monitors.set, monitors.told);
            drop(monitors);
            if set == told || left.is_zero() {
                break (set, told);
            }
            left = left.saturating_sub(pause);
            thread::sleep(pause);
        };
        say!("monitors {set} {told}");
    }
}

/// Adds a number to the ranges, and answers it if that is asked for.
fn take(
    ctx: &Context,
    run: u64,
    payloads: Payloads,
    ranges: &mut Vec<(String, u64, u64, u64)>,
) -> StepResult {
    let parts: Vec<_> = payloads.iter().collect();
    let [sender, of, number, is_last, to, bytes] = parts[..] else {
        say!("fault a message of {} parts", parts.len());
        return Ok(());
    };
    let sender = sender.as_str().ok_or("no name")?;
    let of = of.as_u64().ok_or("no run")?;
    let number = number.as_u64().ok_or("no number")?;
    if bytes
        .as_bytes()
        .is_none_or(|it| it.iter().any(|it| *it != 7))
    {
        say!("fault message {number} of {sender} has other bytes");
    }
    match ranges.last_mut() {
        Some(range) if range.0 == sender && range.1 == of && range.3 + 1 == number => {
            range.3 = number;
        }
        _ => ranges.push((sender.to_owned(), of, number, number)),
    }
    if is_last.as_bool() == Some(true) {
        let to = to.as_pid().ok_or("no PID")?;
        let answer: Payloads = [ctx.pid().id().into(), run.into(), number.into()]
            .into_iter()
            .collect();
        // The sender asks again if the answer is refused.
        _ = ctx.send(to, "answer", answer);
    }
    Ok(())
}

//! The table of failures in `docs/CLUSTER.md`, row by row. A row without a check, a check without a
//! row, and a reason that the row does not name, fail.

use crate::support::{From, Pair, at, ends, name, refusals, session};
use bytes::Bytes;
use ganger_cluster::conformance::{PATIENCE, scheduler};
use ganger_cluster::{
    Cluster, End, Engine, Faults, Identity, Lane, NodeChange, Refusal, Running, Session, Settings,
    Twin,
};
use ganger_proc_api::{Envelope, Pid, SendErrorKind, actor_fn};
use ganger_sched::Scheduler;
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// A session whose peer is not heard ends after this time.
const DEAD: Duration = Duration::from_secs(3);

/// How sessions have ended at both sides, if they have.
#[derive(Debug, Default)]
struct Seen {
    sender: Option<End>,
    receiver: Option<End>,
}

/// Makes a test of each row, and a list of all.
macro_rules! rows {
    ($($row:literal => $check:ident)*) => {
        const ROWS: &[&str] = &[$($row),*];

        mod rows {
            $(
                // pins: B3, B24
                #[test]
                fn $check() {
                    super::row($row, super::$check());
                }
            )*
        }
    };
}

rows! {
    "crash of a node" => crash
    "quick restart, same name" => restart
    "pause shorter than `dead`" => short_pause
    "pause longer than `dead`" => long_pause
    "cut of one direction" => one_way
    "one lane loses all" => one_lane
    "engine down for less than `dead`" => flap
    "engine loses, repeats, reorders" => bad_engine
    "receiver takes nothing" => slow_receiver
    "malformed frame" => malformed
    "other cluster, other name, wrong proof" => strangers
    "same name twice" => same_name
}

/// Reads the rows of the table: the event, and what each side sees.
fn table() -> Vec<[String; 3]> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/CLUSTER.md");
    let document = std::fs::read_to_string(path).unwrap();
    let (_, section) = document.split_once("\n## Failures\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    let cells = |row: &str| {
        let mut cells = row
            .trim_matches('|')
            .split('|')
            .map(|it| it.trim().to_owned());
        [(); 3].map(|()| cells.next().expect("the row has three cells"))
    };
    rows.map(cells).collect()
}

// case: 24, 25, 26, 27, 28, 29, 31, 32, 33, 35
#[test]
fn each_row_has_a_check_and_each_check_a_row() {
    let table = table();
    let rows: BTreeSet<_> = table.iter().map(|it| &*it[0]).collect();
    assert_eq!(rows.len(), table.len(), "two rows have the same name");
    let checks: BTreeSet<_> = ROWS.iter().copied().collect();
    assert_eq!(rows, checks, "rows of docs/CLUSTER.md, and checks");
}

/// Compares the observations with the row.
fn row(event: &str, seen: Seen) {
    let table = table();
    let row = table.iter().find(|row| row[0] == event);
    let [_, sender, receiver] = row.expect("docs/CLUSTER.md has the row");
    for (cell, end) in [(sender, seen.sender), (receiver, seen.receiver)] {
        match end {
            Some(end) => {
                let end = format!("{end:?}");
                let kind = end.split('(').next().unwrap();
                assert!(
                    cell.contains(&format!("`{kind}`")),
                    "{end} is not in {cell:?}"
                );
            }
            None => assert!(!cell.contains("ends: "), "no session has ended: {cell:?}"),
        }
    }
}

struct Node {
    scheduler: Scheduler,
    cluster: Cluster,
    changes: Receiver<NodeChange>,
}

/// Two nodes over a twin.
struct Two {
    near: Node,
    far: Node,
    twin: Twin,
    _running: Running,
}

impl Node {
    fn join(twin: &Twin, name: &str) -> Self {
        let scheduler = scheduler(name).start().unwrap();
        let mut settings = Settings::default();
        settings.dead = DEAD;
        let builder = Cluster::builder().engine(twin.port()).settings(settings);
        let cluster = builder.join(&scheduler).unwrap();
        let (tell, changes) = channel();
        let watcher = actor_fn(move |_, change: NodeChange, _| Ok(tell.send(change)?));
        let watcher = scheduler.spawn(watcher).unwrap();
        cluster.watch_nodes(watcher.address().recipient());
        Self {
            scheduler,
            cluster,
            changes,
        }
    }

    fn up(&self) {
        let change = self.changes.recv_timeout(PATIENCE).unwrap();
        assert!(matches!(change, NodeChange::Up { .. }), "{change:?}");
    }

    /// Waits for the next end, and returns how many messages it counts, too.
    fn down(&self) -> (End, u64) {
        match self.changes.recv_timeout(PATIENCE).unwrap() {
            NodeChange::Down {
                why, undelivered, ..
            } => (why, undelivered),
            other => panic!("{other:?}"),
        }
    }

    /// Starts a process that passes numbers to the test. Its mailbox has room for 100.
    fn receiver(&self) -> (Pid, Receiver<u64>) {
        let (tell, told) = channel();
        let process = actor_fn(move |_, number: u64, _| Ok(tell.send(number)?));
        let process = self.scheduler.spawn(process).unwrap();
        (self.scheduler.absolute(process.pid()), told)
    }

    fn send(&self, to: Pid, numbers: std::ops::Range<u64>) {
        for number in numbers {
            let envelope = Envelope::new(None, to, "number", number);
            self.scheduler.send(envelope).unwrap();
        }
    }
}

fn in_order(told: &Receiver<u64>, numbers: std::ops::Range<u64>) {
    for number in numbers {
        assert_eq!(told.recv_timeout(PATIENCE), Ok(number));
    }
}

impl Two {
    fn new(tells_hints: bool) -> Self {
        let twin = Twin::new(9);
        twin.hints(tells_hints);
        let _running = twin.run();
        let [near, far] = ["near", "far"].map(|name| Node::join(&twin, name));
        near.cluster.connect(far.cluster.name());
        near.up();
        far.up();
        Self {
            near,
            far,
            twin,
            _running,
        }
    }

    fn both(&self, change: impl Fn(&ganger_cluster::NodeId, &ganger_cluster::NodeId)) {
        let [near, far] = ["near", "far"].map(name);
        change(&near, &far);
        change(&far, &near);
    }

    /// Checks that no session has ended.
    fn is_calm(&self) -> Seen {
        let changes = [&self.near, &self.far].map(|it| it.changes.try_recv().ok());
        assert_eq!(changes, [None, None]);
        Seen::default()
    }

    /// Waits until both have ended, and the sender has counted messages that were not acknowledged.
    fn ended(&self) -> Seen {
        let (sender, undelivered) = self.near.down();
        assert!(undelivered > 0, "{sender:?} has counted nothing");
        Seen {
            sender: Some(sender),
            receiver: Some(self.far.down().0),
        }
    }
}

fn crash() -> Seen {
    for tells_hints in [true, false] {
        let two = Two::new(tells_hints);
        let (pid, _told) = two.far.receiver();
        two.twin.crash(&name("far"));
        two.near.send(pid, 0..10);
        let (why, undelivered) = two.near.down();
        assert_eq!(undelivered, 10);
        let may = match tells_hints {
            true => [End::Vanished; 2],
            false => [End::Silence, End::NoProgress],
        };
        assert!(may.contains(&why), "{why:?}");
        row(
            "crash of a node",
            Seen {
                sender: Some(why),
                receiver: None,
            },
        );
    }
    Seen {
        sender: Some(End::Vanished),
        receiver: None,
    }
}

fn restart() -> Seen {
    let two = Two::new(false);
    let (pid, _told) = two.far.receiver();
    two.twin.crash(&name("far"));
    two.near.send(pid, 0..10);
    let heir = Node::join(&two.twin, "far");
    let (_, told) = heir.receiver();
    heir.cluster.connect(two.near.cluster.name());
    let (sender, undelivered) = two.near.down();
    assert_eq!(undelivered, 10);
    two.near.up();
    heir.up();
    // Messages to the first reach no process of the second.
    two.near.send(pid, 10..20);
    let (witness, witnessed) = heir.receiver();
    two.near.send(witness, 0..1);
    in_order(&witnessed, 0..1);
    assert!(told.try_recv().is_err());
    Seen {
        sender: Some(sender),
        receiver: None,
    }
}

/// Waits for this time, in which nothing happens for certain.
fn rest(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        thread::sleep(Duration::from_millis(5));
    }
}

fn short_pause() -> Seen {
    let two = Two::new(true);
    let (pid, told) = two.far.receiver();
    two.twin.pause(&name("far"));
    two.twin.cut(&name("far"), &name("near"));
    // 4 MiB wait, and a window.
    let bytes = [7_u8; 8_000];
    let mut sent = 0;
    let refused = loop {
        let payloads = [sent.into(), ganger_proc_api::Payload::from(bytes.to_vec())];
        let payloads: ganger_proc_api::Payloads = payloads.into_iter().collect();
        let dummy: Pid = "{far@main|1}".parse().unwrap();
        match two
            .near
            .scheduler
            .send(Envelope::new(None, dummy, "fill", payloads))
        {
            Ok(()) => sent += 1_u64,
            Err(refused) => break refused.kind,
        }
        assert!(sent < 10_000, "nothing bounds what waits");
    };
    assert_eq!(refused, SendErrorKind::Full);
    two.twin.heal(&name("far"), &name("near"));
    two.twin.resume(&name("far"));
    for number in 0..10 {
        let envelope = Envelope::new(None, pid, "number", number);
        two.near.scheduler.send_blocking(envelope).unwrap();
    }
    in_order(&told, 0..10);
    two.is_calm()
}

fn long_pause() -> Seen {
    let two = Two::new(true);
    let (pid, _told) = two.far.receiver();
    two.twin.pause(&name("far"));
    two.twin.cut(&name("far"), &name("near"));
    two.near.send(pid, 0..10);
    rest(2 * DEAD);
    two.twin.heal(&name("far"), &name("near"));
    two.twin.resume(&name("far"));
    let seen = two.ended();
    two.near.up();
    two.far.up();
    seen
}

fn one_way() -> Seen {
    let two = Two::new(true);
    let (pid, _told) = two.far.receiver();
    two.twin.cut(&name("near"), &name("far"));
    two.near.send(pid, 0..10);
    two.ended()
}

fn one_lane() -> Seen {
    let two = Two::new(true);
    let (pid, _told) = two.far.receiver();
    let mut faults = Faults::default();
    faults.drop[Lane::Data.index()] = 1000;
    two.twin.faults_between(&name("near"), &name("far"), faults);
    two.near.send(pid, 0..10);
    two.ended()
}

fn flap() -> Seen {
    let two = Two::new(true);
    let (pid, told) = two.far.receiver();
    for round in 0..3 {
        two.both(|from, to| two.twin.cut(from, to));
        two.near.send(pid, 10 * round..10 * round + 10);
        rest(DEAD / 8);
        two.both(|from, to| two.twin.heal(from, to));
        in_order(&told, 10 * round..10 * round + 10);
    }
    two.is_calm()
}

fn bad_engine() -> Seen {
    let two = Two::new(true);
    let (pid, told) = two.far.receiver();
    let mut faults = Faults::default();
    faults.drop = [200; 2];
    (faults.repeat, faults.reorder) = (100, 100);
    faults.late = Duration::from_millis(5);
    two.twin.faults(faults);
    // Few frames carry many messages, so that some rounds have no fault.
    let mut sent = 0;
    while two.twin.counts().lost < 10 || two.twin.counts().repeated < 10 {
        two.near.send(pid, sent..sent + 10);
        in_order(&told, sent..sent + 10);
        sent += 10;
    }
    two.is_calm()
}

fn slow_receiver() -> Seen {
    let two = Two::new(true);
    let (go, gone) = channel::<()>();
    let (tell, told) = channel();
    let slow = actor_fn(move |ctx: &ganger_proc_api::Context, bytes: Bytes, _| {
        ctx.blocking(|| _ = gone.recv_timeout(PATIENCE));
        Ok(tell.send(bytes)?)
    });
    let slow = two.far.scheduler.spawn(slow).unwrap();
    let pid = two.far.scheduler.absolute(slow.pid());
    let bytes = Bytes::from(vec![7; 10_000]);
    // Until no room comes any more, however long the sender waits.
    let mut sent = 0;
    let patience = Duration::from_millis(300);
    while let Ok(()) = {
        let envelope = Envelope::new(None, pid, "bytes", bytes.clone());
        two.near.scheduler.send_timeout(envelope, patience)
    } {
        sent += 1;
        assert!(sent < 10_000, "nothing bounds what waits");
    }
    let question = two.near.cluster.whereis(two.far.cluster.name(), "nothing");
    assert_eq!(question.wait_timeout(PATIENCE).unwrap(), None);
    drop(go);
    for _ in 0..sent {
        assert!(told.recv_timeout(PATIENCE).unwrap() == bytes);
    }
    two.is_calm()
}

fn malformed() -> Seen {
    let two = Two::new(true);
    // Bytes in the name of the near node that the near node has not sent.
    let engine = two.twin.engine(&name("near"));
    let bytes = Bytes::from_static(b"no frame at all");
    assert!(engine.send(&name("far"), Lane::Control, bytes));
    let (receiver, _) = two.far.down();
    let (sender, _) = two.near.down();
    // The row names the peer's end in the cell of the receiver.
    row(
        "malformed frame",
        Seen {
            sender: None,
            receiver: Some(sender),
        },
    );
    Seen {
        sender: None,
        receiver: Some(receiver),
    }
}

/// Sends without a session: the messages come back. At the level of sessions, since a node keeps a
/// stranger's reason to itself.
fn strangers() -> Seen {
    let settings = Settings::default();
    for identity in [
        Identity::new(name("b"), "other"),
        Identity::new(name("c"), "cluster"),
    ] {
        let mut pair = Pair::new(&settings);
        let halves = ganger_cluster::Halves::new(ganger_cluster::Incarnation::from_bits(1));
        pair.b = Session::new(identity, halves, name("a"), settings.clone());
        pair.a.open(at(0));
        pair.say(From::A, Lane::Data, 7, 0).unwrap();
        pair.b.open(at(0));
        pair.run(8_000);
        let refused = refusals(&pair.at_a);
        let is_named =
            |it: &Refusal| matches!(it, Refusal::OtherCluster(_) | Refusal::OtherName(_));
        assert!(refused.iter().any(is_named), "{refused:?}");
        assert_eq!(ends(&pair.at_a), [End::Unreachable]);
    }
    // A wrong proof, at the level of nodes.
    let twin = Twin::new(9);
    let _running = twin.run();
    let join = |name: &str, secret: &str| {
        let scheduler = scheduler(name).start().unwrap();
        let mut settings = Settings::default();
        settings.dead = DEAD;
        let builder = Cluster::builder().engine(twin.port()).settings(settings);
        let cluster = builder.cookie(secret).join(&scheduler).unwrap();
        (scheduler, cluster)
    };
    let (near, cluster) = join("near", "ours");
    let (_far, other) = join("far", "theirs");
    let (tell, changes) = channel();
    let watcher = actor_fn(move |_, change: NodeChange, _| Ok(tell.send(change)?));
    let watcher = near.spawn(watcher).unwrap();
    cluster.watch_nodes(watcher.address().recipient());
    let to = "{far@main|1}".parse().unwrap();
    near.send(Envelope::new(None, to, "number", 1_u64)).unwrap();
    let change = changes.recv_timeout(PATIENCE).unwrap();
    let NodeChange::Unreachable {
        undelivered: 1,
        why: End::Unreachable,
        ..
    } = change
    else {
        panic!("{change:?}");
    };
    assert!(other.nodes().is_empty());
    Seen::default()
}

/// Lets another node take the name. At the level of sessions: a twin has a single node of a name.
fn same_name() -> Seen {
    let settings = Settings::default();
    let mut pair = Pair::up(&settings);
    let mut newcomer = session("b", 2, "a", &settings);
    newcomer.open(pair.now());
    pair.say(From::A, Lane::Data, 7, 0).unwrap();
    let mut events = Vec::new();
    for _ in 0..3_000 {
        let now = pair.now();
        let mut frames = Vec::new();
        pair.run_with(1, |from, frame| {
            if from == From::A {
                frames.push(frame.clone());
            }
            true
        });
        for frame in frames {
            newcomer.handle(&frame, now);
        }
        while let Some(sent) = newcomer.poll_frame(now) {
            pair.a.handle(&sent.frame, now);
        }
        events.extend(std::iter::from_fn(|| newcomer.poll_event()));
    }
    assert!(
        refusals(&events).contains(&Refusal::NameTaken),
        "{events:?}"
    );
    assert_eq!(crate::support::heard(&pair.at_b), [7]);
    assert_eq!((ends(&pair.at_a), ends(&pair.at_b)), (vec![], vec![]));
    Seen::default()
}

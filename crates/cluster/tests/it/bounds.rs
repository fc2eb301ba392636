//! Bounds of questions, answers and peers, and panics of askers.

use bytes::Bytes;
use ganger_cluster::{Builder, Cluster, NodeId, Running, Settings, Twin, Types};
use ganger_proc_api::{
    CommandError, Completer, Completion, Context, Envelope, ExitCause, Message, NodeName, Payload,
    Payloads, Reply, SendErrorKind, actor_fn,
};
use ganger_sched::{Address, CallRefused, Scheduler};
use serde::{Deserialize, Serialize, Serializer};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Serialize, Deserialize)]
enum Ask {
    One(Reply<u64>),
    /// The reply is kept, and the test is told.
    Keep(Reply<u64>),
    /// Waits for the gate, and then answers with so many bytes.
    Bytes(usize, Reply<Vec<u8>>),
}

/// Counts how often it is encoded.
#[derive(Deserialize)]
struct Counted(Vec<u8>);

static ENCODED: AtomicUsize = AtomicUsize::new(0);

impl Serialize for Counted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ENCODED.fetch_add(1, Ordering::SeqCst);
        serializer.serialize_newtype_struct("Counted", &self.0)
    }
}

type Node = (Scheduler, Cluster);

struct Two {
    near: Node,
    far: Node,
    twin: Twin,
    _running: Running,
}

fn node(twin: &Twin, name: &str, set: fn(Builder) -> Builder) -> Node {
    let builder = Scheduler::builder().workers(2).node(name).quiet_failures();
    let scheduler = builder.start().unwrap();
    let mut settings = Settings::default();
    settings.dead = PATIENCE;
    let types = |types: &mut Types| _ = types.add::<Ask>("ask").add::<Counted>("counted");
    let builder = Cluster::builder().engine(twin.port());
    let builder = set(builder.settings(settings).types(types));
    let cluster = builder.join(&scheduler).unwrap();
    (scheduler, cluster)
}

fn two(set: fn(Builder) -> Builder) -> Two {
    let twin = Twin::new(7);
    twin.hints(true);
    let running = twin.run();
    let (near, far) = (node(&twin, "near", set), node(&twin, "far", set));
    while near.1.nodes().is_empty() || far.1.nodes().is_empty() {
        thread::yield_now();
    }
    Two {
        near,
        far,
        twin,
        _running: running,
    }
}

impl Two {
    /// Answers, and tells of each kept question. A drop of the gate opens the gate.
    fn answers(&self) -> (Address<Ask>, Receiver<()>, Sender<()>) {
        let (tell, told) = channel();
        let (open, gate) = channel::<()>();
        let mut kept = Vec::new();
        let answers = actor_fn(move |ctx: &Context, ask, _| {
            match ask {
                Ask::One(reply) => reply.complete(1),
                Ask::Keep(reply) => {
                    kept.push(reply);
                    tell.send(())?;
                }
                Ask::Bytes(count, reply) => {
                    ctx.blocking(|| _ = gate.recv_timeout(PATIENCE));
                    reply.complete(vec![7; count]);
                    tell.send(())?;
                }
            }
            Ok(())
        });
        let pid = self.far.0.spawn(answers).unwrap().pid();
        let pid = self.near.0.canonical(self.far.0.absolute(pid));
        let address = self.near.0.address(pid).unwrap().typed().unwrap();
        (address, told, open)
    }
}

/// Returns an asker whose code panics.
fn nasty() -> Reply<u64> {
    let panics = |_: Completion| panic!("on purpose");
    Reply::new(Completer::from_fn("{main|7}".parse().unwrap(), 0, panics))
}

// pins: B18
#[test]
fn an_asker_that_panics_ends_no_link() {
    let two = two(|node| node);
    let (address, kept, _gate) = two.answers();
    address.send(Ask::One(nasty())).unwrap();
    let answer = address.call(Ask::One).wait_timeout(PATIENCE);
    assert_eq!(answer.unwrap(), 1);
    // The end of the session tells all other askers as well.
    let mut open = Vec::new();
    for _ in 0..10 {
        address.send(Ask::Keep(nasty())).unwrap();
        open.push(address.call(Ask::Keep).begin());
    }
    (0..20).for_each(|_| kept.recv_timeout(PATIENCE).unwrap());
    two.twin.crash(&NodeId::new("far").unwrap());
    for answer in open {
        let lost = answer.wait_timeout(PATIENCE);
        let is_told = matches!(lost, Err(CommandError::Ended(ExitCause::NoConnection)));
        assert!(is_told, "{lost:?}");
    }
}

// pins: B8, B18
#[test]
fn the_questions_whose_answers_are_out_are_bounded() {
    let two = two(|node| node);
    let (address, kept, _gate) = two.answers();
    let mut open = Vec::new();
    let refused = loop {
        // The queue may be full for a moment.
        let answer = address.call(Ask::Keep).begin();
        if !answer.is_ready() {
            open.push(answer);
            continue;
        }
        let refused = answer.wait().unwrap_err();
        if open.len() == 1 << 16 {
            break refused;
        }
        assert!(open.len() < 1 << 16, "{refused}");
        thread::yield_now();
    };
    let CommandError::Failed(refused) = refused else {
        panic!("{refused:?}");
    };
    assert!(refused.downcast::<CallRefused>().unwrap().kind.is_full());
    let name = NodeName::new("far").unwrap();
    let refused = two.near.1.whereis(name, "x").wait().unwrap_err();
    assert!(refused.to_string().contains("can't ask"), "{refused}");
    // Messages without a question pass, and a dropped question makes room.
    let (tell, told) = channel();
    let plain = actor_fn(move |_, number: u64, _| Ok(tell.send(number)?));
    let plain = two.far.0.spawn(plain).unwrap();
    let plain = two.far.0.absolute(plain.pid());
    let envelope = Envelope::new(None, plain, "plain", 5_u64);
    two.near.0.send_blocking(envelope).unwrap();
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), 5);
    for _ in 0..open.len() {
        kept.recv_timeout(PATIENCE).unwrap();
    }
    drop(open.pop());
    let answer = address.call(Ask::One).wait_timeout(PATIENCE);
    assert_eq!(answer.unwrap(), 1);
}

// pins: B22
#[test]
fn large_answers_that_wait_are_bounded() {
    let two = two(|node| node);
    let (address, answered, gate) = two.answers();
    let ask = |count| address.call(move |reply| Ask::Bytes(count, reply)).begin();
    let asked = [ask(40 << 20), ask(40 << 20), ask(10), ask(40 << 20)];
    // Four are there, and none of the answers leaves.
    let (tell, told) = channel();
    let witness = actor_fn(move |_, (): (), _| Ok(tell.send(())?));
    let witness = two.far.0.spawn(witness).unwrap();
    let pid = two.far.0.absolute(witness.pid());
    two.near.0.send(Message::of(()).to(pid)).unwrap();
    told.recv_timeout(PATIENCE).unwrap();
    let near = NodeId::new("near").unwrap();
    two.twin.pause(&near);
    drop(gate);
    (0..4).for_each(|_| answered.recv_timeout(PATIENCE).unwrap());
    two.twin.resume(&near);
    let answers = asked.map(|it| it.wait_timeout(PATIENCE));
    let lengths = answers.map(|it| it.map(|it| it.len()).map_err(|it| it.to_string()));
    let lost = "the answer is lost: too many large answers wait for the connection";
    assert_eq!(lengths[0], Ok(40 << 20));
    assert_eq!(lengths[1], Err(lost.into()));
    assert_eq!(lengths[2], Ok(10));
    assert_eq!(lengths[3], Err(lost.into()));
}

// pins: B20
#[test]
fn names_of_nodes_that_never_answer_take_no_place_for_ever() {
    let two = two(|node| node);
    let name = |text: &str| NodeName::new(text).unwrap();
    for number in 0..1023 {
        assert!(two.near.1.connect(name(&format!("silent-{number}"))));
    }
    // The table is full, and the next nodes take the places of silent nodes.
    for number in 0..3 {
        assert!(two.near.1.connect(name(&format!("late-{number}"))));
    }
    let third = node(&two.twin, "third", |node| node);
    assert!(two.near.1.connect(name("third")));
    while third.1.nodes().len() < 2 {
        thread::yield_now();
    }
    let (address, ..) = two.answers();
    let answer = address.call(Ask::One).wait_timeout(PATIENCE);
    assert_eq!(answer.unwrap(), 1, "a node that answers keeps its place");
}

// pins: B16, B22
#[test]
fn a_large_message_that_waits_for_room_is_not_encoded_again_and_again() {
    let two = two(|node| node);
    let (tell, told) = channel();
    let telling = tell.clone();
    let takes = actor_fn(move |_, Counted(bytes), _| Ok(tell.send(bytes.len())?));
    let takes = two.far.0.spawn(takes).unwrap();
    let to = two.far.0.absolute(takes.pid());
    let message = || Message::of(Counted(vec![7; 200 << 10])).to(to);
    let first = actor_fn(move |_, bytes: Bytes, _| Ok(telling.send(bytes.len())?));
    let first = two.far.0.absolute(two.far.0.spawn(first).unwrap().pid());
    let far = NodeId::new("far").unwrap();
    two.twin.pause(&far);
    let most = 67_000_000;
    let large = Envelope::new(None, first, "bytes", Bytes::from(vec![7; most]));
    two.near.0.send(large).unwrap();
    // It waits for a while in vain, and is tried a few times: at the begin, and at the end.
    let refused = two.near.0.send_timeout(message(), Duration::from_secs(2));
    assert!(refused.unwrap_err().kind == SendErrorKind::Timeout);
    let encoded = ENCODED.load(Ordering::SeqCst);
    assert!(encoded <= 4, "encoded {encoded} times");
    // A small message is not behind it.
    let (tell, seen) = channel();
    let plain = actor_fn(move |_, number: u64, _| Ok(tell.send(number)?));
    let plain = two.far.0.absolute(two.far.0.spawn(plain).unwrap().pid());
    thread::scope(|scope| {
        let sent = scope.spawn(|| two.near.0.send_blocking(message()));
        while two.near.1.peers()[0].waiting == 0 {
            thread::yield_now();
        }
        two.near
            .0
            .send_blocking(Message::of(5_u64).to(plain))
            .unwrap();
        two.twin.resume(&far);
        assert_eq!(seen.recv_timeout(PATIENCE).unwrap(), 5);
        sent.join().unwrap().unwrap();
    });
    for length in [most, 200 << 10] {
        assert_eq!(told.recv_timeout(PATIENCE).unwrap(), length);
    }
}

// pins: B21
#[test]
fn what_the_peer_would_not_read_is_refused() {
    let two = two(|node| node);
    let (address, ..) = two.answers();
    let topic = |length| &*"x".repeat(length).leak();
    let units = |count| (0..count).map(|_| Payload::UNIT).collect::<Payloads>();
    for (message, is_taken) in [
        (Message::new(topic(255), 1_u64), true),
        (Message::new(topic(256), 1_u64), false),
        (Message::new("units", units(1 << 16)), true),
        (Message::new("units", units((1 << 16) + 1)), false),
    ] {
        let sent = two.near.0.send_blocking(message.to(address.pid()));
        let refused = sent.err().map(|it| it.kind);
        let expected = (!is_taken).then_some(SendErrorKind::TooLarge);
        assert_eq!(refused, expected);
    }
    let answer = address.call(Ask::One).wait_timeout(PATIENCE);
    assert_eq!(answer.unwrap(), 1);
    assert_eq!(two.near.1.peers()[0].ended, 0, "the session lasts");
}

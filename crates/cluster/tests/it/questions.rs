//! Questions across nodes have one answer, also where a type can't be read, code of users panics,
//! or a mailbox is full.

use ganger_cluster::{Cluster, NodeId, Running, Settings, Twin, Types};
use ganger_proc_api::{
    Actor, CommandError, Context, Message, Pid, Reply, StepOutput, StepResult, actor_fn,
};
use ganger_sched::{Address, ContextExt as _, Handle, ProcessHandle, Recipient, Scheduler};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// The room of a mailbox, in messages.
const ROOM: usize = 20;

/// A value whose codec panics.
struct Bad;

impl Serialize for Bad {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("on purpose")
    }
}

impl<'de> Deserialize<'de> for Bad {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Ok(Self)
    }
}

#[derive(Serialize, Deserialize)]
enum Ask {
    Number(u64),
    /// Waits at the gate.
    Wait,
    Bad(Reply<Bad>),
    One(Reply<u64>),
    /// The reply is kept until the end of the process.
    Keep(Reply<u64>, Vec<u8>),
    /// Sends to the recipient, and then answers how many were taken.
    Flood(Recipient<Vec<u8>>, Reply<u64>),
    Lend(Reply<Lent>),
}

#[derive(Serialize, Deserialize)]
struct Lent(Recipient<u64>);

impl From<u64> for Ask {
    fn from(number: u64) -> Self {
        assert!(number != 13, "on purpose");
        Self::Number(number)
    }
}

struct Answers {
    told: Sender<String>,
    gate: Receiver<()>,
    kept: Vec<Reply<u64>>,
}

impl Answers {
    fn tell(&self, text: impl Into<String>) {
        let _gone = self.told.send(text.into());
    }
}

impl Actor for Answers {
    type Message = Ask;

    fn receive(&mut self, ctx: &Context, ask: Ask, _: &mut StepOutput) -> StepResult {
        match ask {
            Ask::Number(number) => self.tell(format!("number {number}")),
            Ask::Wait => {
                self.tell("waits");
                ctx.blocking(|| _ = self.gate.recv_timeout(PATIENCE));
            }
            Ask::Bad(reply) => reply.complete(Bad),
            Ask::One(reply) => reply.complete(1),
            Ask::Keep(reply, _) => {
                self.tell("kept");
                let told = self.told.clone();
                let guard = reply.on_end(move || drop(told.send("unwanted".into())));
                if guard.is_none() {
                    self.tell("unwanted");
                }
                std::mem::forget(guard);
                self.kept.push(reply);
            }
            Ask::Flood(to, reply) => {
                let sent = (0..300).filter(|_| to.send(vec![7; 10_000]).is_ok());
                reply.complete(sent.count() as u64);
            }
            Ask::Lend(reply) => {
                let own: Address<Ask> = ctx.address()?;
                reply.complete(Lent(own.recipient()));
            }
        }
        Ok(())
    }
}

/// A process, its words to the test, and its gate, which a drop opens.
struct Far {
    handle: ProcessHandle<Ask>,
    told: Receiver<String>,
    gate: Sender<()>,
}

impl Far {
    fn start(scheduler: &Handle) -> Self {
        let (tell, told) = channel();
        let (open, gate) = channel();
        let kept = Vec::new();
        let told_by = Answers {
            told: tell,
            gate,
            kept,
        };
        let handle = scheduler.spawn(told_by).unwrap();
        let gate = open;
        Self { handle, told, gate }
    }

    fn tells(&self) -> String {
        self.told.recv_timeout(PATIENCE).unwrap()
    }

    /// Has the process wait at its gate.
    fn wait(&self) {
        self.handle.send(Ask::Wait).unwrap();
        assert_eq!(self.tells(), "waits");
    }
}

type Node = (Scheduler, Cluster);

fn node(twin: &Twin, name: &str, types: fn(&mut Types)) -> Node {
    let builder = Scheduler::builder().workers(2).node(name);
    let builder = builder.mailbox_limit(ROOM).quiet_failures();
    let scheduler = builder.start().unwrap();
    let mut settings = Settings::default();
    settings.dead = Duration::from_secs(60);
    let builder = Cluster::builder().engine(twin.port()).settings(settings);
    let cluster = builder.types(types).join(&scheduler).unwrap();
    (scheduler, cluster)
}

struct Two {
    near: Node,
    far: Node,
    twin: Twin,
    _running: Running,
}

impl Two {
    fn start(near: fn(&mut Types), far: fn(&mut Types)) -> Self {
        let twin = Twin::new(7);
        twin.hints(true);
        let running = twin.run();
        let near = node(&twin, "near", near);
        let far = node(&twin, "far", far);
        let two = Self {
            near,
            far,
            twin,
            _running: running,
        };
        two.meet();
        two
    }

    /// Waits until both are connected, in their present runs.
    fn meet(&self) {
        let knows = |one: &Node, other: &Node| {
            let present = other.1.incarnation();
            one.1.nodes().iter().any(|(_, it)| *it == present)
        };
        while !knows(&self.near, &self.far) || !knows(&self.far, &self.near) {
            thread::yield_now();
        }
    }

    fn address(&self, far: &Far) -> Address<Ask> {
        let pid = self.near.0.canonical(self.far.0.absolute(far.handle.pid()));
        self.near.0.address(pid).unwrap().typed().unwrap()
    }

    /// Waits until the far link has had all that was sent before, without a source.
    fn arrived(&self) {
        let (tell, told) = channel();
        let witness = actor_fn(move |_, (): (), _| Ok(tell.send(())?));
        let witness = self.far.0.spawn(witness).unwrap();
        let pid = self.far.0.absolute(witness.pid());
        let envelope = Message::of(()).to(pid);
        self.near.0.send(envelope).unwrap();
        told.recv_timeout(PATIENCE).unwrap();
    }
}

fn all(types: &mut Types) {
    types.add::<Ask>("ask").add::<Bad>("bad");
    types.add::<Lent>("lent");
}

fn none(_: &mut Types) {}

// pins: B18
#[test]
fn a_question_whose_answer_has_a_codec_that_panics_is_answered() {
    let two = Two::start(all, all);
    let far = Far::start(&two.far.0);
    let answer = two.address(&far).call(Ask::Bad).wait_timeout(PATIENCE);
    assert!(matches!(answer, Err(CommandError::Dropped)));
}

// pins: B18, B21
// case: 34
#[test]
fn a_question_in_a_type_that_is_unknown_there_is_answered() {
    let two = Two::start(all, none);
    let far = Far::start(&two.far.0);
    let answer = two.address(&far).call(Ask::One).wait_timeout(PATIENCE);
    assert!(matches!(answer, Err(CommandError::Failed(_))), "{answer:?}");
}

// pins: B18
#[test]
fn a_question_taken_back_at_once_is_unwanted_there() {
    let two = Two::start(all, all);
    let far = Far::start(&two.far.0);
    let address = two.address(&far);
    // The word that no answer is wanted overtakes the chunks.
    let content = vec![1; 8 << 20];
    drop(address.call(|reply| Ask::Keep(reply, content)).begin());
    assert_eq!([far.tells(), far.tells()], ["kept", "unwanted"]);
}

// pins: B23
#[test]
fn messages_of_a_recipient_wait_for_room() {
    let two = Two::start(all, all);
    let far = Far::start(&two.far.0);
    let lent = two.address(&far).call(Ask::Lend).wait_timeout(PATIENCE);
    let recipient = lent.unwrap().0;
    far.wait();
    for number in 100..200 {
        recipient.send(number).unwrap();
    }
    two.arrived();
    drop(far.gate);
    for number in 100..200 {
        let told = far.told.recv_timeout(PATIENCE);
        assert_eq!(told.unwrap(), format!("number {number}"));
    }
}

#[test]
fn a_recipient_whose_function_panics_ends_no_link() {
    let two = Two::start(all, all);
    let far = Far::start(&two.far.0);
    let address = two.address(&far);
    let lent = address.call(Ask::Lend).wait_timeout(PATIENCE);
    lent.unwrap().0.send(13).unwrap();
    let answer = address.call(Ask::One).wait_timeout(PATIENCE);
    assert_eq!(answer.unwrap(), 1);
}

struct Asker {
    far: Address<Ask>,
    told: Sender<Result<u64, CommandError>>,
}

impl Actor for Asker {
    type Message = Vec<u8>;

    fn started(&mut self, ctx: &Context, _: &mut StepOutput) -> StepResult {
        let own: Address<Vec<u8>> = ctx.address()?;
        let call = self
            .far
            .call(move |reply| Ask::Flood(own.recipient(), reply));
        let answer = ctx.blocking(|| call.wait_timeout(PATIENCE));
        Ok(self.told.send(answer)?)
    }

    fn receive(&mut self, _: &Context, _: Vec<u8>, _: &mut StepOutput) -> StepResult {
        Ok(())
    }
}

// pins: B18
#[test]
fn an_answer_needs_no_room_in_the_mailbox_of_its_asker() {
    let two = Two::start(all, all);
    let far = Far::start(&two.far.0);
    let (told, answers) = channel();
    let asker = Asker {
        far: two.address(&far),
        told,
    };
    let _asker = two.near.0.spawn(asker).unwrap();
    let answer = answers.recv_timeout(2 * PATIENCE).unwrap();
    assert!(answer.is_ok(), "{answer:?}");
}

// pins: B18
#[test]
fn a_message_that_waits_for_room_answers_no_question_of_a_later_session() {
    let mut two = Two::start(all, all);
    let (full, far) = (Far::start(&two.far.0), Far::start(&two.far.0));
    full.wait();
    let address = two.address(&full);
    for number in 0..60 {
        address.send(Ask::Number(number)).unwrap();
    }
    let first = address.call(|reply| Ask::Keep(reply, Vec::new())).begin();
    two.arrived();
    two.twin.crash(&NodeId::new("near").unwrap());
    let heir = node(&two.twin, "near", all);
    let before = std::mem::replace(&mut two.near, heir);
    two.meet();
    let ask = |reply| Ask::Keep(reply, Vec::new());
    let second = two.address(&far).call(ask).begin();
    assert_eq!(far.tells(), "kept");
    // The process with the full mailbox ends, and all of its messages are refused.
    two.far.0.terminate(full.handle.pid()).unwrap();
    drop(full.gate);
    full.handle.wait();
    two.arrived();
    two.arrived();
    assert!(!second.is_ready(), "nobody has answered");
    drop((first, before));
}

#[test]
fn a_refused_batch_names_its_target() {
    let two = Two::start(all, all);
    let pid: Pid = "{nowhere@main|5}".parse().unwrap();
    let address = two.near.0.address(pid).unwrap();
    let message = Message::of(std::time::Instant::now());
    let refused = address.send_all([message]).unwrap_err();
    assert_eq!(refused.target, pid);
}

//! Order: notices behind waiting messages, and no message behind an unreadable one.

use crate::support::{Told, name, session};
use ganger_cluster::{
    Cluster, End, Engine, Event, Half, Lane, NodeChange, Session, Settings, SymbolKind, Twin,
    Writer,
};
use ganger_link::{Lane as Notices, LinkContext as _};
use ganger_proc_api::{
    Context, Envelope, Event as Seen, Instant, Message, NodeName, Pid, SendErrorKind, actor_fn,
    process_fn,
};
use ganger_sched::{DeadLetter, DeadLetters, Scheduler};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn node(twin: &Twin, name: &str) -> (Scheduler, Cluster) {
    node_with(twin, name, |_| {})
}

fn node_with(twin: &Twin, name: &str, set: impl FnOnce(&mut Settings)) -> (Scheduler, Cluster) {
    let scheduler = Scheduler::builder().workers(2).node(name).quiet_failures();
    let scheduler = scheduler.start().unwrap();
    let cluster = join(twin, &scheduler, set);
    (scheduler, cluster)
}

fn join(twin: &Twin, scheduler: &Scheduler, set: impl FnOnce(&mut Settings)) -> Cluster {
    let mut settings = Settings::default();
    set(&mut settings);
    let builder = Cluster::builder().cluster("cluster").engine(twin.port());
    builder.settings(settings).join(scheduler).unwrap()
}

/// Starts a process that shows numbers to the test, and returns its PID as other nodes know it.
fn numbers(scheduler: &Scheduler) -> (Pid, Receiver<u64>) {
    let (tell, told) = channel();
    let process = actor_fn(move |_, number: u64, _| Ok(tell.send(number)?));
    let process = scheduler.spawn(process).unwrap();
    (scheduler.absolute(process.pid()), told)
}

const EXIT: u64 = u64::MAX;

// pins: B13, B23
#[test]
fn a_notice_in_order_waits_behind_messages_for_a_full_mailbox() {
    const COUNT: u64 = 20;
    let twin = Twin::new(7);
    let _running = twin.run();
    let (near, at_near) = node(&twin, "near");
    let (far, _far) = node(&twin, "far");
    let (open, gate) = channel::<()>();
    let (tell, told) = channel();
    let (begin, begun) = channel();
    let watcher = process_fn(move |ctx: &Context, events, _| {
        for event in events {
            match event {
                Seen::Message(message) if message.topic == "watch" => {
                    let pid = message.payloads.into_first().as_pid().unwrap();
                    ctx.watch(pid, 1, Notices::InOrder)?;
                    begin.send(())?;
                    ctx.blocking(|| _ = gate.recv_timeout(PATIENCE));
                }
                Seen::Message(message) => tell.send(message.take::<u64>()?)?,
                Seen::Exit(_) => tell.send(EXIT)?,
                _ => {}
            }
        }
        Ok(())
    });
    let watcher = near.spawner().mailbox_limit(4).spawn(watcher).unwrap();
    let to = near.absolute(watcher.pid());
    let sender = actor_fn(move |ctx: &Context, (): (), out| {
        for number in 0..COUNT {
            ctx.send(to, "number", number)?;
        }
        out.done(());
        Ok(())
    });
    let sender = far.spawn(sender).unwrap();
    let of = near.canonical(far.absolute(sender.pid()));
    watcher.send(Message::new("watch", of)).unwrap();
    begun.recv_timeout(PATIENCE).unwrap();
    // The monitor is there before later requests of its lane.
    let nobody = at_near.whereis(NodeName::new("far").unwrap(), "nobody");
    assert_eq!(nobody.wait_timeout(PATIENCE).unwrap(), None);
    sender.address().send(()).unwrap();
    drop(sender.wait_timeout(PATIENCE).unwrap());
    // The notice is there as well.
    let (here, seen) = numbers(&near);
    far.send(Envelope::new(None, here, "", 1_u64)).unwrap();
    seen.recv_timeout(PATIENCE).unwrap();
    drop(open);
    let all: Vec<_> = (0..=COUNT)
        .map(|_| told.recv_timeout(PATIENCE).unwrap())
        .collect();
    let expected: Vec<_> = (0..COUNT).chain([EXIT]).collect();
    assert_eq!(all, expected);
}

// pins: B3, B25
#[test]
fn messages_for_a_full_mailbox_outlive_the_leave_of_their_node() {
    const COUNT: u64 = 20;
    let twin = Twin::new(7);
    let _running = twin.run();
    let (near, at_near) = node(&twin, "near");
    let (far, at_far) = node(&twin, "far");
    let (open, gate) = channel::<()>();
    let (tell, told) = channel();
    let slow = actor_fn(move |ctx: &Context, number: u64, _| {
        ctx.blocking(|| _ = gate.recv_timeout(PATIENCE));
        Ok(tell.send(number)?)
    });
    let slow = near.spawner().mailbox_limit(4).spawn(slow).unwrap();
    let to = near.absolute(slow.pid());
    for number in 0..COUNT {
        far.send_blocking(Envelope::new(None, to, "", number))
            .unwrap();
    }
    // The node has all of them.
    let (here, seen) = numbers(&near);
    far.send(Envelope::new(None, here, "", 1_u64)).unwrap();
    seen.recv_timeout(PATIENCE).unwrap();
    at_near.leave(PATIENCE);
    while !at_far.nodes().is_empty() {
        thread::yield_now();
    }
    drop(open);
    let all: Vec<_> = (0..COUNT)
        .map(|_| told.recv_timeout(PATIENCE).unwrap())
        .collect();
    assert_eq!(all, (0..COUNT).collect::<Vec<_>>());
}

// pins: B9, B23
#[test]
fn messages_that_have_waited_for_room_give_their_credit_back() {
    const ROUNDS: usize = 8;
    const EACH: usize = 30;
    let twin = Twin::new(7);
    let _running = twin.run();
    let (near, _near) = node(&twin, "near");
    let (far, _far) = node(&twin, "far");
    let (open, gate) = channel::<()>();
    let (begin, begun) = channel();
    let (tell, told) = channel();
    let slow = process_fn(move |ctx: &Context, events, _| {
        for event in events {
            match event {
                Seen::Message(message) if message.topic == "wait" => {
                    begin.send(())?;
                    ctx.blocking(|| _ = gate.recv_timeout(PATIENCE));
                }
                Seen::Message(_) => tell.send(())?,
                _ => {}
            }
        }
        Ok(())
    });
    let slow = near.spawner().mailbox_limit(4).spawn(slow).unwrap();
    let to = near.absolute(slow.pid());
    let (here, seen) = numbers(&near);
    // All rounds together are twice the credit.
    for _ in 0..ROUNDS {
        // The messages of the step of before have their places until its end.
        let wait = Envelope::new(None, slow.pid(), "wait", ());
        near.send_blocking(wait).unwrap();
        begun.recv_timeout(PATIENCE).unwrap();
        for _ in 0..EACH {
            let bytes = Envelope::new(None, to, "bytes", vec![7_u8; 10_000]);
            far.send_blocking(bytes).unwrap();
        }
        // All of them wait at the node.
        far.send(Envelope::new(None, here, "", 1_u64)).unwrap();
        seen.recv_timeout(PATIENCE).expect("there is credit");
        open.send(()).unwrap();
        for _ in 0..EACH {
            told.recv_timeout(PATIENCE).unwrap();
        }
    }
}

// pins: B25
#[test]
fn a_node_that_leaves_waits_until_its_messages_have_arrived() {
    let twin = Twin::new(7);
    let _running = twin.run();
    let set = |settings: &mut Settings| {
        settings.dead = PATIENCE;
        settings.window = 16 << 10;
    };
    let (near, _near) = node_with(&twin, "near", set);
    let (far, at_far) = node_with(&twin, "far", set);
    let (to, seen) = numbers(&near);
    let send = |number: u64| far.send(Envelope::new(None, to, "", number));
    send(0).unwrap();
    assert_eq!(seen.recv_timeout(PATIENCE).unwrap(), 0);
    // More than may be in flight.
    twin.pause(&name("near"));
    let mut count = 5_000;
    for number in 1..count {
        send(number).unwrap();
    }
    at_far.leave(PATIENCE);
    // Senders are refused when the node would say farewell.
    let (_tell, nothing) = channel::<()>();
    loop {
        match send(count) {
            Ok(()) => count += 1,
            Err(refused) if refused.kind == SendErrorKind::Full => {}
            Err(_) => break,
        }
        let _pause = nothing.recv_timeout(Duration::from_millis(1));
    }
    twin.resume(&name("near"));
    for number in 1..count {
        assert_eq!(seen.recv_timeout(PATIENCE), Ok(number));
    }
}

/// A session of a node played by the test.
struct Played {
    session: Session,
    engine: ganger_cluster::TwinEngine,
    inbox: std::sync::Arc<crate::support::Inbox>,
    twin: Twin,
    events: Vec<Event>,
}

impl Played {
    fn new(twin: &Twin, me: &str, incarnation: u64) -> Self {
        let engine = twin.engine(&name(me));
        let inbox = crate::support::Inbox::start(&engine, &name(me));
        Self {
            session: session(me, incarnation, "near", &Settings::default()),
            engine,
            inbox,
            twin: twin.clone(),
            events: Vec::new(),
        }
    }

    fn now(&self) -> Instant {
        self.twin.now()
    }

    /// Carries the frames of both sides.
    fn carry(&mut self) {
        let now = self.now();
        for told in self.inbox.take() {
            if let Told::Frame(_, frame) = told {
                self.session.handle(&frame, now);
            }
        }
        while let Some(sent) = self.session.poll_frame(now) {
            self.engine.send(&name("near"), sent.lane, sent.frame);
        }
        self.events
            .extend(std::iter::from_fn(|| self.session.poll_event()));
    }

    fn carry_until(&mut self, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            self.carry();
            thread::yield_now();
        }
    }

    fn send(&mut self, op: u8, write: impl FnOnce(&mut Writer<'_>)) -> Half {
        let now = self.now();
        self.session.send(Lane::Data, op, now, write).unwrap()
    }
}

/// Writes a message of a user, with a number and zeros. Two fill a frame.
fn message(writer: &mut Writer<'_>, to: Pid, number: u64) {
    const TO_RECEIVER: u8 = 1;
    const ROUTE_FOLLOWS: u64 = 0;
    writer.varint(ROUTE_FOLLOWS);
    writer.u8(TO_RECEIVER);
    writer.symbol(SymbolKind::Host, to.host().as_str());
    writer.varint(to.id());
    writer.u8(0);
    writer.symbol(SymbolKind::Topic, "number");
    for (kind, value) in [(3, number), (8, 40 << 10)] {
        if kind == 3 {
            writer.varint(2);
        }
        writer.u8(kind);
        writer.varint(value);
    }
    writer.raw(&[0; 40 << 10]);
    writer.varint(0);
}

// pins: B1, B8
#[test]
fn nothing_of_a_session_comes_behind_an_unreadable_message() {
    const MESSAGE: u8 = 1;
    const UNKNOWN: u8 = 250;
    let twin = Twin::new(7);
    let _running = twin.run();
    let (near, _near) = node(&twin, "near");
    let (tell, told) = channel();
    let process = process_fn(move |_, events, _| {
        for event in events {
            if let Seen::Message(message) = event {
                let first = message.payloads.into_iter().next().unwrap();
                tell.send(first.as_u64().unwrap())?;
            }
        }
        Ok(())
    });
    let to = near.spawn(process).unwrap().pid();
    let mut far = Played::new(&twin, "far", 1 << 40);
    far.session.open(far.now());
    far.carry_until(|it| it.session.is_up());
    let half = far.send(MESSAGE, |writer| message(writer, to, 1));
    far.carry_until(|it| it.session.is_flushed());
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), 1);
    // All frames are there when the link looks.
    twin.pause(&name("near"));
    far.send(UNKNOWN, |writer| writer.raw(&[0; 40 << 10]));
    for number in 2..10 {
        far.send(MESSAGE, |writer| message(writer, to, number));
    }
    far.carry();
    twin.resume(&name("near"));
    let has_ended = |it: &Played| {
        let of = |event: &Event| matches!(event, Event::Ended { session, .. } if *session == half);
        it.events.iter().any(of)
    };
    far.carry_until(has_ended);
    // The next session goes on, and nothing was delivered between.
    far.carry_until(|it| it.session.is_up());
    far.send(MESSAGE, |writer| message(writer, to, 10));
    far.carry_until(|it| it.session.is_flushed());
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), 10);
}

// pins: B7
// case: 25
#[test]
fn a_node_whose_clock_was_set_back_goes_on_above_its_run_before() {
    let twin = Twin::new(7);
    let _running = twin.run();
    let (near, at_near) = node(&twin, "near");
    let (tell, told) = channel();
    let watcher = actor_fn(move |_, change: NodeChange, _| Ok(tell.send(change)?));
    let watcher = near.spawn(watcher).unwrap();
    at_near.watch_nodes(watcher.address().recipient());
    // Its clock is an hour ahead of the next run's.
    let ahead = at_near.incarnation().to_bits() + (3_600_000 << 16);
    let mut before = Played::new(&twin, "far", ahead);
    before.session.open(before.now());
    before.carry_until(|it| it.session.is_up());
    let up = told.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(up, NodeChange::Up { incarnation, .. } if incarnation.to_bits() == ahead));
    before.engine.stop(Duration::ZERO);
    let (far, at_far) = node(&twin, "far");
    assert!(at_far.incarnation().to_bits() < ahead);
    let (to, seen) = numbers(&near);
    at_far.connect(near.node_name().unwrap());
    let restarted = told.recv_timeout(PATIENCE).unwrap();
    let is_right = matches!(
        restarted,
        NodeChange::Down {
            why: End::Restarted,
            ..
        }
    );
    assert!(is_right, "{restarted:?}");
    let up = told.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(up, NodeChange::Up { incarnation, .. } if incarnation.to_bits() > ahead));
    far.send(Envelope::new(None, to, "", 7_u64)).unwrap();
    assert_eq!(seen.recv_timeout(PATIENCE).unwrap(), 7);
}

/// Writes a small message of a user.
fn small(writer: &mut Writer<'_>, to: Pid, number: u64) {
    const TO_RECEIVER: u8 = 1;
    const ROUTE_FOLLOWS: u64 = 0;
    writer.varint(ROUTE_FOLLOWS);
    writer.u8(TO_RECEIVER);
    writer.symbol(SymbolKind::Host, to.host().as_str());
    writer.varint(to.id());
    writer.u8(0);
    writer.symbol(SymbolKind::Topic, "number");
    writer.varint(1);
    writer.u8(3);
    writer.varint(number);
    writer.varint(0);
}

/// Has the link wait at a dead letter until a mailbox has room.
struct HasRoom {
    open: Mutex<Option<Sender<()>>>,
    taken: Mutex<Receiver<()>>,
}

impl DeadLetters for HasRoom {
    fn dead_letter(&self, _: &DeadLetter) {
        drop(self.open.lock().unwrap().take());
        let taken = self.taken.lock().unwrap();
        for _ in 0..ROOM {
            taken.recv_timeout(PATIENCE).unwrap();
        }
    }
}

const ROOM: usize = 4;

// pins: B1, B23
#[test]
fn a_message_for_a_mailbox_that_has_room_again_waits_behind_those_that_wait() {
    const MESSAGE: u8 = 1;
    const COUNT: u64 = 20;
    let twin = Twin::new(7);
    let _running = twin.run();
    let (open, gate) = channel::<()>();
    let (take, taken) = channel();
    let letters = HasRoom {
        open: Mutex::new(Some(open)),
        taken: Mutex::new(taken),
    };
    let near = Scheduler::builder().workers(2).node("near");
    let near = near.dead_letters(Arc::new(letters)).start().unwrap();
    let _near = join(&twin, &near, |_| {});
    let (begin, begun) = channel();
    let (tell, told) = channel();
    let slow = process_fn(move |ctx: &Context, events, _| {
        for event in events {
            match event {
                Seen::Message(message) if message.topic == "wait" => {
                    begin.send(())?;
                    ctx.blocking(|| _ = gate.recv_timeout(PATIENCE));
                }
                Seen::Message(message) => {
                    tell.send(message.take::<u64>()?)?;
                    let _over = take.send(());
                }
                _ => {}
            }
        }
        Ok(())
    });
    let slow = near.spawner().mailbox_limit(ROOM).spawn(slow).unwrap();
    let gone = near.spawn(actor_fn(|_, (): (), out| {
        out.done(());
        Ok(())
    }));
    let gone = gone.unwrap();
    let dead = gone.pid();
    gone.address().send(()).unwrap();
    drop(gone.wait_timeout(PATIENCE).unwrap());
    let mut far = Played::new(&twin, "far", 1 << 40);
    far.session.open(far.now());
    far.carry_until(|it| it.session.is_up());
    slow.send(Message::new("wait", ())).unwrap();
    begun.recv_timeout(PATIENCE).unwrap();
    for number in 0..COUNT {
        far.send(MESSAGE, |writer| small(writer, slow.pid(), number));
    }
    far.carry_until(|it| it.session.is_flushed());
    // In a frame. The mailbox has room when the link comes to the second message.
    far.send(MESSAGE, |writer| small(writer, dead, 0));
    far.send(MESSAGE, |writer| small(writer, slow.pid(), COUNT));
    far.carry_until(|it| it.session.is_flushed());
    let all = (0..=COUNT).map(|_| told.recv_timeout(PATIENCE).unwrap());
    assert_eq!(all.collect::<Vec<_>>(), (0..=COUNT).collect::<Vec<_>>());
}

// pins: B13
#[test]
fn a_number_of_a_monitor_that_is_used_ends_the_session_of_the_peer() {
    const MONITOR: u8 = 3;
    const TO_RECEIVER: u8 = 1;
    const IN_ORDER: u8 = 1;
    let twin = Twin::new(7);
    let _running = twin.run();
    let (near, _near) = node(&twin, "near");
    let (to, seen) = numbers(&near);
    let mut far = Played::new(&twin, "far", 1 << 40);
    far.session.open(far.now());
    far.carry_until(|it| it.session.is_up());
    let monitor = |far: &mut Played, number| {
        far.send(MONITOR, |writer| {
            writer.varint(number);
            writer.u8(TO_RECEIVER);
            writer.symbol(SymbolKind::Host, to.host().as_str());
            writer.varint(to.id());
            writer.u8(IN_ORDER);
        });
    };
    monitor(&mut far, 1);
    monitor(&mut far, 2);
    far.send(1, |writer| small(writer, to, 7));
    far.carry_until(|it| it.session.is_flushed());
    assert_eq!(seen.recv_timeout(PATIENCE), Ok(7));
    assert!(far.session.is_up(), "each number is another");
    monitor(&mut far, 2);
    far.carry_until(|it| !it.session.is_up());
}

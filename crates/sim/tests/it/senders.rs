//! Several senders to the same process, between its moves and in the middle of them. The messages
//! of each sender arrive in its order, once.

use ganger_proc_api::{
    Context, Event, Events, Message, Payload, Payloads, Process, SendErrorKind, StepOutput,
    StepResult,
};
use ganger_sched::{Address, SendAsync};
use ganger_sim::{Faults, Rt, Sim};
use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{self, Poll, Waker};

/// How many messages each sender sends.
const EACH: u64 = 30;

/// The messages in the order of their arrival: their sender, and their number.
type Arrived = Arc<Mutex<Vec<(u64, u64)>>>;

/// Notes its messages. Every third step takes all of them, and each other step takes a single
/// message.
struct Sink {
    arrived: Arrived,
    steps: usize,
}

impl Process for Sink {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        self.steps += 1;
        let takes_all = self.steps.is_multiple_of(3);
        let mut left = if takes_all { usize::MAX } else { 1 };
        while left > 0
            && let Some(event) = events.next()
        {
            left -= 1;
            match event {
                Event::Message(message) => {
                    let numbers: Vec<_> = message
                        .payloads
                        .iter()
                        .filter_map(Payload::as_u64)
                        .collect();
                    let [sender, nth] = numbers[..] else {
                        return Err("something else".into());
                    };
                    self.arrived.lock().unwrap().push((sender, nth));
                }
                _ => {
                    out.done(());
                    return Ok(());
                }
            }
        }
        if !events.is_empty() {
            out.step_again();
        }
        Ok(())
    }
}

/// A sender to the sink.
struct Sender {
    name: u64,
    to: Address,
    accepted: u64,
    /// A send that waits for room; the later messages wait behind it.
    waiting: Option<SendAsync>,
}

impl Sender {
    fn message(&self) -> Message {
        let payloads: Payloads = [self.name, self.accepted]
            .into_iter()
            .map(Payload::from)
            .collect();
        Message::new("number", payloads)
    }

    /// Sends the next message: by turns with a send that waits for room, and with a send that is
    /// tried again.
    fn act(&mut self) {
        if self.waiting.is_none() && self.accepted < EACH {
            if self.accepted.is_multiple_of(2) {
                match self.to.send(self.message()) {
                    Ok(()) => self.accepted += 1,
                    Err(error) => assert_eq!(error.kind, SendErrorKind::Full),
                }
                return;
            }
            self.waiting = Some(self.to.send_async(self.message()));
        }
        let Some(send) = &mut self.waiting else {
            return;
        };
        if let Poll::Ready(sent) =
            Pin::new(send).poll(&mut task::Context::from_waker(Waker::noop()))
        {
            assert!(sent.is_ok());
            self.accepted += 1;
            self.waiting = None;
        }
    }
}

/// Sends from three senders to the same process; returns how many messages were accepted in the
/// middle of moves.
fn send_to_one(rt: &Rt<'_>) -> u64 {
    let arrived = Arrived::default();
    let sink = Sink {
        arrived: Arc::clone(&arrived),
        steps: 0,
    };
    let sink = rt.submit(sink, "main", ()).unwrap();
    let senders: Vec<_> = (0..3)
        .map(|name| {
            let sender = Sender {
                name,
                to: sink.address().clone(),
                accepted: 0,
                waiting: None,
            };
            let sender = Rc::new(RefCell::new(sender));
            let theirs = Rc::clone(&sender);
            rt.meanwhile(move || theirs.borrow_mut().act());
            sender
        })
        .collect();
    let is_over = || {
        senders
            .iter()
            .all(|sender| sender.borrow().accepted == EACH)
    };
    let mut outside = 0;
    while !is_over() {
        if !rt.step() {
            // Without a move a sender has no moment to act by itself.
            outside += 1;
            assert!(outside < 10_000, "everybody sleeps beside a full mailbox");
            senders[rt.choose(3)].borrow_mut().act();
        }
    }
    rt.settle();
    let mut next = [0; 3];
    for &(sender, nth) in arrived.lock().unwrap().iter() {
        let next = &mut next[usize::try_from(sender).unwrap()];
        assert_eq!(*next, nth, "the next of sender {sender}");
        *next += 1;
    }
    assert_eq!(next, [EACH; 3], "something is lost");
    rt.cancel(sink.pid(), "enough").unwrap();
    assert!(rt.wait(sink).is_done());
    (3 * EACH).saturating_sub(outside)
}

// pins: P4, P13, R4
#[test]
fn what_each_of_several_sends_arrives_in_its_order() {
    let faults = Faults {
        others_act: 200,
        step_blocks: 20,
        ..Faults::some()
    };
    let inside = RefCell::new(0);
    for workers in 1..=3 {
        for limit in [1, 3, 1_000] {
            let sim = Sim::new(0).workers(workers).spares(1).faults(faults);
            let sim = sim.builder(move |builder| builder.mailbox_limit(limit).event_batch(4));
            sim.must_free()
                .check_seeds(20, |rt| *inside.borrow_mut() += send_to_one(rt));
        }
    }
    let inside = inside.into_inner();
    assert!(inside > 1_000, "{inside} beside moves");
}

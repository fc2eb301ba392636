//! Typed addresses of processes of another node, with replies and addresses inside of messages.

use super::references::Home;
use super::wire::Wire;
use super::{far, nodes, told};
use crate::support::{PATIENCE, exit, failed, puppet};
use ganger_link::{Groups, Lane, LinkContext as _, Registry as _};
use ganger_proc_api::{
    Actor, CommandError, Completer, Context, Event, ExitCause, ExitReason, Message, Pid, Reply,
    SendErrorKind, StepOutput, StepResult, process_fn,
};
use ganger_sched::{
    Address, Call, CallRefused, ContextExt as _, ProcessHandle, Recipient, Scheduler,
};
use serde::ser::{Error as _, SerializeTuple as _};
use serde::{Deserialize, Serialize};
use std::future::IntoFuture as _;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Poll, Wake, Waker};
use std::thread;

#[derive(Serialize, Deserialize)]
pub(super) enum Count {
    Add(u64),
    Get(Reply<u64>),
    Fail(Reply<u64>),
    Forget(Reply<u64>),
    /// Answers never. Tells the test the asking process, and when the answer is unwanted.
    Keep(Reply<u64>),
    Panic,
    End,
}

/// The news of a question that a counter keeps.
#[derive(Debug, PartialEq)]
pub(super) enum Kept {
    By(Option<Pid>),
    Unwanted,
}

struct Counter {
    count: u64,
    kept: Vec<Reply<u64>>,
    tell: Sender<Kept>,
}

impl Actor for Counter {
    type Message = Count;

    fn receive(&mut self, _: &Context, message: Count, out: &mut StepOutput) -> StepResult {
        match message {
            Count::Add(number) => self.count += number,
            Count::Get(reply) => reply.complete(self.count),
            Count::Fail(reply) => reply.fail("no luck"),
            Count::Forget(reply) => drop(reply),
            Count::Keep(reply) => {
                let tell = self.tell.clone();
                let watch = reply.on_end(move || tell.send(Kept::Unwanted).unwrap());
                assert!(!reply.is_cancelled());
                self.tell.send(Kept::By(reply.pid()))?;
                std::mem::forget(watch);
                self.kept.push(reply);
            }
            Count::Panic => panic!("on purpose"),
            Count::End => out.done(()),
        }
        Ok(())
    }
}

/// Starts a counter, and gives its address in another scheduler.
pub(super) fn counter(
    at: &Scheduler,
    from: &Scheduler,
) -> (ProcessHandle<Count>, Address<Count>, Receiver<Kept>) {
    let (tell, kept) = channel();
    let counter = at.spawn(Counter {
        count: 0,
        kept: Vec::new(),
        tell,
    });
    let counter = counter.unwrap();
    let address = from.address(at.absolute(counter.pid()));
    (counter, address.unwrap().typed().unwrap(), kept)
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn in_a_future<T: Send + 'static>(call: Call<T>) -> Result<T, CommandError> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = std::task::Context::from_waker(&waker);
    let mut answer = pin!(call.into_future());
    loop {
        match answer.as_mut().poll(&mut context) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => thread::park_timeout(PATIENCE),
        }
    }
}

/// Asks in a step. Returns the asking process, too.
fn in_a_step(
    scheduler: &Scheduler,
    call: Call<u64>,
) -> (ProcessHandle, Receiver<Result<u64, CommandError>>) {
    let (tell, told) = channel();
    let mut call = Some(call);
    let asks = process_fn(move |_, events, out| {
        if let Some(call) = call.take() {
            out.ask(call, 1);
        }
        for event in events {
            if let Event::Completion(completion) = event {
                tell.send(completion.take::<u64>())?;
            }
        }
        Ok(())
    });
    (scheduler.spawn(asks).unwrap(), told)
}

fn is_cause(answer: &Result<u64, CommandError>, expected: &ExitCause) -> bool {
    matches!(answer, Err(CommandError::Ended(cause)) if cause == expected)
}

/// Checks that no question is left on either side.
fn all_answered(wire: &Wire) {
    assert_eq!(wire.questions(), [(0, 0); 2]);
}

// pins: B17, B18
#[test]
fn the_same_counter_serves_its_own_node_and_the_other() {
    let (wire, [here, there]) = nodes();
    for at in [&here, &there] {
        let (counter, address, _kept) = counter(at, &here);
        assert_eq!(address.pid() == counter.pid(), here.is_local(address.pid()));
        address.send(Count::Add(20)).unwrap();
        address.send_blocking(Count::Add(20)).unwrap();
        let add: Recipient<Count> = address.recipient();
        add.send(Count::Add(2)).unwrap();
        let answer = address.call(Count::Get).wait_timeout(PATIENCE);
        assert_eq!(answer.unwrap(), 42);
        assert_eq!(in_a_future(address.call(Count::Get)).unwrap(), 42);
        let (asks, answer) = in_a_step(&here, address.call(Count::Get));
        assert_eq!(answer.recv_timeout(PATIENCE).unwrap().unwrap(), 42);
        here.terminate(asks.pid()).unwrap();
        exit(asks);
    }
    wire.settle();
    all_answered(&wire);
}

// pins: B18, C1, C2
#[test]
fn a_question_to_another_node_has_one_answer_whatever_becomes_of_it() {
    let (wire, [here, there]) = nodes();
    let begin = |address: &Address<Count>, ask: fn(Reply<u64>) -> Count| address.call(ask).begin();
    let (_counter, address, _kept) = counter(&there, &here);
    let forgotten = begin(&address, Count::Forget).wait_timeout(PATIENCE);
    assert!(
        matches!(forgotten, Err(CommandError::Dropped)),
        "{forgotten:?}"
    );
    let answer = begin(&address, Count::Fail).wait_timeout(PATIENCE);
    let Err(CommandError::Failed(error)) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(error.to_string(), "no luck");
    // The end of the process, with the question kept, and never taken.
    type End = fn(&Scheduler, &Address<Count>);
    let panicked = ExitCause::Panicked("on purpose".into());
    let ends: [(End, ExitCause); 3] = [
        (|_, it| it.send(Count::End).unwrap(), ExitCause::Done),
        (|_, it| it.send(Count::Panic).unwrap(), panicked),
        (
            |there, it| there.terminate(it.pid()).unwrap(),
            ExitCause::Terminated,
        ),
    ];
    for (end, cause) in ends {
        let (counter, address, kept) = counter(&there, &here);
        let (asks, told) = in_a_step(&here, address.call(Count::Keep));
        let far_asker = here.absolute(asks.pid());
        let asker = kept.recv_timeout(PATIENCE).unwrap();
        assert_eq!(asker, Kept::By(Some(far_asker)));
        let outside = begin(&address, Count::Keep);
        assert_eq!(kept.recv_timeout(PATIENCE).unwrap(), Kept::By(None));
        end(&there, &address);
        exit(counter);
        let answer = outside.wait_timeout(PATIENCE);
        assert!(is_cause(&answer, &cause), "{answer:?}");
        let answer = told.recv_timeout(PATIENCE).unwrap();
        assert!(is_cause(&answer, &cause), "{answer:?}");
        // It is gone.
        let answer = begin(&address, Count::Get).wait_timeout(PATIENCE);
        assert!(is_cause(&answer, &ExitCause::NotFound), "{answer:?}");
        // An answered question is not unwanted.
        assert!(kept.try_recv().is_err());
    }
    wire.settle();
    all_answered(&wire);
}

// pins: B18
#[test]
fn the_end_of_the_session_answers_all_questions_and_tells_their_holders() {
    let (wire, [here, there]) = nodes();
    let (_counter, address, kept) = counter(&there, &here);
    let outside = address.call(Count::Keep).begin();
    let (_asks, told) = in_a_step(&here, address.call(Count::Keep));
    for _ in 0..2 {
        assert!(matches!(kept.recv_timeout(PATIENCE).unwrap(), Kept::By(_)));
    }
    // A question is under way.
    wire.hold();
    let under_way = address.call(Count::Get).begin();
    wire.cut();
    wire.release();
    for answer in [
        outside.wait_timeout(PATIENCE),
        under_way.wait_timeout(PATIENCE),
        told.recv_timeout(PATIENCE).unwrap(),
    ] {
        assert!(is_cause(&answer, &ExitCause::NoConnection), "{answer:?}");
    }
    for _ in 0..2 {
        assert_eq!(kept.recv_timeout(PATIENCE).unwrap(), Kept::Unwanted);
    }
    all_answered(&wire);
    // An answer after the cut belongs to no session.
    there.terminate(address.pid()).unwrap();
    wire.mend();
    wire.settle();
    assert!(told.try_recv().is_err());
}

// pins: B18
#[test]
fn a_question_that_is_taken_back_is_told_to_its_holder() {
    let (wire, [here, there]) = nodes();
    let (counter, address, kept) = counter(&there, &here);
    let next = |expected: Kept| assert_eq!(kept.recv_timeout(PATIENCE).unwrap(), expected);
    // By code outside of processes.
    let answer = address.call(Count::Keep).begin();
    next(Kept::By(None));
    drop(answer);
    next(Kept::Unwanted);
    // By the end of the asker.
    let (asks, told) = in_a_step(&here, address.call(Count::Keep));
    next(Kept::By(Some(here.absolute(asks.pid()))));
    here.terminate(asks.pid()).unwrap();
    exit(asks);
    next(Kept::Unwanted);
    assert!(told.recv_timeout(PATIENCE).is_err());
    // By the asker.
    let mut turn = 0;
    let asked = address.clone();
    let asks = process_fn(move |_, _, out| {
        if turn == 0 {
            out.ask(asked.call(Count::Keep), 1);
        } else {
            out.cancel(1);
        }
        turn += 1;
        Ok(())
    });
    let asks = here.spawn(asks).unwrap();
    next(Kept::By(Some(here.absolute(asks.pid()))));
    here.send(Message::new("", ()).to(asks.pid())).unwrap();
    next(Kept::Unwanted);
    wire.settle();
    all_answered(&wire);
    // The process still serves.
    counter.send(Count::Add(1)).unwrap();
    let answer = address.call(Count::Get).wait_timeout(PATIENCE);
    assert_eq!(answer.unwrap(), 1);
}

/// Can't be serialized, and has a question inside.
#[derive(Deserialize)]
pub(super) struct Secret(#[allow(dead_code, reason = "its type counts")] Reply<u64>);

impl Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_tuple(2)?;
        fields.serialize_element(&self.0)?;
        Err(S::Error::custom("it is not for others"))
    }
}

fn reply() -> (Reply<u64>, Receiver<u64>) {
    let (tell, told) = channel();
    let pid = "{main|7}".parse().unwrap();
    let completer = Completer::from_fn(pid, 0, move |it| {
        tell.send(it.take::<u64>().unwrap()).unwrap();
    });
    (Reply::new(completer), told)
}

// pins: B18, B12
#[test]
fn a_message_that_is_refused_comes_back_with_its_question() {
    let (wire, [here, there]) = nodes();
    let (_counter, address, _kept) = counter(&there, &here);
    let (question, told) = reply();
    let secret = here
        .address(address.pid())
        .unwrap()
        .typed::<Secret>()
        .unwrap();
    let refused = secret.send(Secret(question)).unwrap_err();
    let SendErrorKind::NoCodec(name) = refused.kind else {
        panic!("{refused}");
    };
    assert!(name.get().ends_with("Secret"), "{name}");
    let Secret(question) = refused.into_message().unwrap();
    wire.cut();
    let refused = address.send(Count::Get(question)).unwrap_err();
    assert_eq!(refused.kind, SendErrorKind::NoConnection);
    let Ok(Count::Get(question)) = refused.into_message() else {
        panic!("another message");
    };
    question.complete(7);
    assert_eq!(told.recv().unwrap(), 7);
    assert!(told.recv().is_err());
    let answer = address.call(Count::Get).wait();
    let Err(CommandError::Failed(error)) = answer else {
        panic!("{answer:?}");
    };
    let refused = error.downcast::<CallRefused>().unwrap();
    assert_eq!(refused.kind, SendErrorKind::NoConnection);
    all_answered(&wire);
}

// pins: B17, B18
#[test]
fn a_far_process_that_takes_other_messages_refuses_the_question() {
    let (wire, [here, there]) = nodes();
    let other = there.spawn(Home(channel().0)).unwrap();
    let pid = there.absolute(other.pid());
    let address: Address<Count> = here.address(pid).unwrap().typed().unwrap();
    let answer = address.call(Count::Get).wait_timeout(PATIENCE);
    let Err(CommandError::Failed(error)) = answer else {
        panic!("{answer:?}");
    };
    assert!(error.to_string().contains("type mismatch"), "{error}");
    all_answered(&wire);
}

// pins: B17, B13, B14
#[test]
fn monitors_watches_links_and_groups_take_far_addresses() {
    let (wire, [here, there]) = nodes();
    let (target, watcher, linked) = (puppet(&there), puppet(&here), puppet(&here));
    let pid = far(&there, &target);
    let address = here.address(pid).unwrap();
    let (watched, peer) = (address.clone(), address.clone());
    watcher.have(move |ctx, _| {
        ctx.monitor(watched.pid(), 1)?;
        ctx.watch(&watched, 2, Lane::Overtaking)?;
        Ok(())
    });
    linked.have(move |ctx, _| {
        assert!(ctx.scheduler().is_some());
        Ok(ctx.link(&peer)?)
    });
    let group = Groups::of(&here, "far").group("all");
    group.join(&address).unwrap();
    assert_eq!(group.members(), [pid]);
    let end = here.end_of(&address).unwrap();
    assert!(target.tell(|_, _| Err("oh".into())));
    exit(target.handle);
    assert_eq!(end.wait_timeout(PATIENCE), Some(failed("oh")));
    let causes = vec![(pid, 1, failed("oh")), (pid, 2, failed("oh"))];
    assert_eq!(told(&wire, &watcher), causes);
    let reason = exit(linked.handle);
    assert!(matches!(reason, ExitReason::Exited(cause) if cause == failed("oh")));
    assert_eq!(group.members(), []);
    // The end of a process that is gone already.
    let gone = here.end_of(&address).unwrap();
    wire.settle();
    assert_eq!(gone.wait_timeout(PATIENCE), Some(ExitCause::NotFound));
}

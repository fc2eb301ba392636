//! Questions to processes: asked by steps, by threads and by tasks.

use crate::support::*;
use ganger_proc_api::{
    Actor, ActorProcess, BoxError, CommandError, Completion, Context, Event, ExitCause, ExitReason,
    Pid, Reply, StepOutput, StepResult, actor_fn, process_fn,
};
use ganger_sched::{Address, CallRefused, ContextExt, Scheduler};
use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

enum Ask {
    /// The number, doubled.
    Double(u64, Reply<u64>),
    /// The reply is kept until the next question.
    Keep(Reply<u64>),
    Fail(Reply<u64>),
    /// A question to itself, awaited by its step.
    Own(Reply<String>),
    End,
}

#[derive(Default)]
struct Oracle {
    kept: Option<Reply<u64>>,
}

impl Actor for Oracle {
    type Message = Ask;

    fn receive(&mut self, ctx: &Context, message: Ask, out: &mut StepOutput) -> StepResult {
        match message {
            Ask::Double(number, reply) => reply.complete(2 * number),
            Ask::Keep(reply) => drop(self.kept.replace(reply)),
            Ask::Fail(reply) => reply.fail("not today"),
            Ask::Own(reply) => {
                let own = ctx.address::<Ask>()?;
                let error = own.call(|it| Ask::Double(1, it)).wait().unwrap_err();
                reply.complete(error.to_string());
            }
            Ask::End => out.done(()),
        }
        Ok(())
    }
}

/// Asks for as many numbers as it is told to, and ends with the sum of the answers.
struct Asker {
    oracle: Address<Ask>,
    left: u64,
    sum: u64,
}

impl Actor for Asker {
    type Message = u64;

    fn receive(&mut self, _: &Context, questions: u64, out: &mut StepOutput) -> StepResult {
        self.left = questions;
        for number in 0..questions {
            out.ask(self.oracle.call(move |it| Ask::Double(number, it)), number);
        }
        Ok(())
    }

    fn completed(&mut self, _: &Context, answer: Completion, out: &mut StepOutput) -> StepResult {
        let number = answer.tag;
        let doubled: u64 = answer.take()?;
        assert_eq!(doubled, 2 * number);
        self.sum += doubled;
        self.left -= 1;
        if self.left == 0 {
            out.done(self.sum);
        }
        Ok(())
    }
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

// pins: P6
#[test]
fn a_step_gets_each_answer_with_its_tag() {
    let scheduler = Scheduler::builder().workers(2).build().unwrap();
    let oracle = scheduler.spawn(Oracle::default()).unwrap();
    let asker = Asker {
        oracle: oracle.address().clone(),
        left: 0,
        sum: 0,
    };
    let asker = scheduler.spawn(asker).unwrap();
    asker.send(100).unwrap();
    scheduler.start().unwrap();
    assert_eq!(asker.wait().take::<u64>().unwrap(), 9900);
}

#[test]
fn a_thread_waits_for_the_answer_and_an_error_is_one() {
    let scheduler = Scheduler::start_default().unwrap();
    let oracle = scheduler.spawn(Oracle::default()).unwrap();
    assert_eq!(oracle.call(|it| Ask::Double(21, it)).wait().unwrap(), 42);
    let error = oracle.call(Ask::Fail).wait_timeout(PATIENCE).unwrap_err();
    assert_eq!(error.to_string(), "not today");
}

// pins: P6
#[test]
fn a_reply_that_is_dropped_is_an_answer() {
    let scheduler = Scheduler::start_default().unwrap();
    let oracle = scheduler.spawn(Oracle::default()).unwrap();
    let (first, second) = (
        oracle.call(Ask::Keep).begin(),
        oracle.call(Ask::Keep).begin(),
    );
    // The second takes the place of the first.
    assert!(matches!(first.wait(), Err(CommandError::Dropped)));
    assert!(!second.is_ready());
    // A question waiting in the mailbox when the process ends.
    oracle.send(Ask::End).unwrap();
    let third = oracle.call(Ask::Keep).begin();
    let has_ended = |error: &CommandError| matches!(error, CommandError::Ended(ExitCause::Done));
    assert!(has_ended(&second.wait().unwrap_err()));
    let error = third.wait().unwrap_err();
    let is_refused = matches!(&error, CommandError::Failed(it)
        if it.is::<CallRefused>());
    assert!(is_refused || has_ended(&error));
}

#[derive(Debug, thiserror::Error)]
#[error("no")]
struct Refusal(ganger_proc_api::Exclusive<Reply<u64>>);

// pins: C2
#[test]
fn a_reply_in_a_result_that_is_not_wanted_says_how_its_process_has_ended() {
    let scheduler = start(2);
    let ends = |fails: bool| {
        let process = actor_fn(move |_, reply: Reply<u64>, out: &mut StepOutput| {
            if fails {
                return Err(Refusal(ganger_proc_api::Exclusive::new(reply)).into());
            }
            out.done(reply);
            Ok(())
        });
        scheduler.spawn(process).unwrap().address().clone()
    };
    let ask = |fails| {
        let call = ends(fails).call(|it| it);
        call.wait_timeout(PATIENCE).unwrap_err()
    };
    assert!(matches!(ask(false), CommandError::Ended(ExitCause::Done)));
    assert!(matches!(ask(true), CommandError::Ended(ExitCause::Failed(it)) if &*it == "no"));
}

// pins: C2
#[test]
fn a_reply_that_is_dropped_where_the_step_blocks_is_an_answer_at_once() {
    let scheduler = start(2);
    let (sender, goes_on) = channel();
    let goes_on = std::sync::Mutex::new(goes_on);
    let asked = scheduler.spawn(actor_fn(
        move |ctx: &Context, reply: Reply<u64>, out: &mut StepOutput| {
            // The asking process has it continue.
            let goes_on = goes_on.lock().unwrap();
            let went_on = ctx.blocking(|| {
                drop(reply);
                goes_on.recv_timeout(PATIENCE).is_ok()
            });
            out.done(went_on);
            Ok(())
        },
    ));
    let asked = asked.unwrap();
    let error = asked.call(|it| it).wait_timeout(PATIENCE).unwrap_err();
    assert!(matches!(error, CommandError::Dropped), "{error}");
    sender.send(()).unwrap();
    assert!(asked.wait().take::<bool>().unwrap());
}

/// The ways to end without an answer.
#[derive(Clone, Copy)]
enum Way {
    Error,
    Panic,
    Done,
    Later,
}

/// Creates a process that ends with the first question, or is terminated once it has announced the
/// question.
fn fails(way: Way, has_it: &Sender<Pid>) -> impl Actor<Message = Reply<u64>> {
    let (mut kept, has_it) = (Vec::new(), has_it.clone());
    actor_fn(
        move |ctx: &Context, reply: Reply<u64>, out: &mut StepOutput| {
            match way {
                Way::Error => return Err("no answer today".into()),
                Way::Panic => panic!("on purpose: no answer"),
                Way::Done => out.done(()),
                Way::Later => {
                    kept.push(reply);
                    has_it.send(ctx.pid())?;
                }
            }
            Ok(())
        },
    )
}

// pins: C1, C2
#[test]
fn the_end_of_the_process_that_is_asked_is_the_answer_with_its_cause() {
    let scheduler = Scheduler::start_default().unwrap();
    let (sender, has_it) = channel();
    let ways = [
        (Way::Error, "failed: no answer today"),
        (Way::Panic, "panicked: on purpose: no answer"),
        (Way::Done, "done"),
        (Way::Later, "terminated"),
    ];
    for (way, cause) in ways {
        let [first, second] = [(); 2].map(|()| scheduler.spawn(fails(way, &sender)).unwrap());
        let answer = first.call(|reply| reply).begin();
        let second = second.address().clone();
        let asker = process_fn(move |_, events, out| {
            match events.next() {
                None => {
                    out.ask(second.call(|reply| reply), 1);
                }
                Some(Event::Completion(it)) => out.done(it.result.unwrap_err().to_string()),
                Some(_) => {}
            }
            Ok(())
        });
        let asker = scheduler.spawn(asker).unwrap();
        if let Way::Later = way {
            for pid in has_it.iter().take(2) {
                scheduler.terminate(pid).unwrap();
            }
        }
        let expected = format!("no answer: the called process has ended: {cause}");
        assert_eq!(answer.wait().unwrap_err().to_string(), expected);
        assert_eq!(asker.wait().take::<String>().unwrap(), expected);
    }
}

/// Has a question during its failing `init`.
struct AskedTooSoon {
    address: Sender<Address<Reply<u64>>>,
    is_asked: Receiver<()>,
}

impl Actor for AskedTooSoon {
    type Message = Reply<u64>;

    fn init(&mut self, ctx: &Context) -> Result<(), BoxError> {
        self.address.send(ctx.address()?)?;
        self.is_asked.recv()?;
        Err("not today".into())
    }

    fn receive(&mut self, _: &Context, _: Reply<u64>, _: &mut StepOutput) -> StepResult {
        Ok(())
    }
}

// pins: C2
#[test]
fn what_a_process_is_asked_that_is_not_started_is_not_answered_by_the_end_of_its_starter() {
    let scheduler = Scheduler::start_default().unwrap();
    let (address, found) = channel();
    let (asks, is_asked) = channel();
    let mut child = Some(AskedTooSoon { address, is_asked });
    let starter = process_fn(move |ctx, _, _| {
        if let Some(child) = child.take() {
            ctx.spawn(child)?;
        }
        Ok(())
    });
    let starter = scheduler.spawn(starter).unwrap();
    let answer = found.recv().unwrap().call(|reply| reply).begin();
    asks.send(()).unwrap();
    let error = answer.wait().unwrap_err();
    let cause = ExitCause::Failed("not today".into());
    assert!(
        matches!(&error, CommandError::Ended(it) if *it == cause),
        "{error}"
    );
    assert!(starter.wait().to_string().contains("not today"));
}

/// Answers a number with it, and asks itself the first time.
struct AsksItself;

impl Actor for AsksItself {
    type Message = Reply<u64>;

    fn receive(&mut self, ctx: &Context, _: Reply<u64>, out: &mut StepOutput) -> StepResult {
        let own = ctx.address::<Reply<u64>>()?;
        out.ask(own.call(|reply| reply), 1);
        Ok(())
    }

    fn completed(&mut self, _: &Context, answer: Completion, out: &mut StepOutput) -> StepResult {
        out.done(answer.result.unwrap_err().to_string());
        Ok(())
    }
}

// pins: C3
#[test]
fn a_process_that_asks_itself_is_told_at_once() {
    let scheduler = Scheduler::start_default().unwrap();
    let asks_itself = scheduler.spawn(AsksItself).unwrap();
    let dropped = asks_itself.call(|reply| reply).wait().unwrap_err();
    assert!(matches!(dropped, CommandError::Dropped));
    let error: String = asks_itself.wait().take().unwrap();
    assert!(error.starts_with("a process can't call itself"), "{error}");
}

// pins: R2
#[test]
fn a_question_to_a_process_that_has_ended_fails() {
    let scheduler = Scheduler::start_default().unwrap();
    let oracle = scheduler.spawn(Oracle::default()).unwrap();
    let address = oracle.address().clone();
    let pid = oracle.pid();
    oracle.send(Ask::End).unwrap();
    assert!(exit(oracle).is_done());
    let is_closed = |error: &CommandError| {
        matches!(error, CommandError::Failed(it)
            if it.to_string() == format!("can't ask {pid}: the process has ended: it was done"))
    };
    assert!(is_closed(&address.call(Ask::Keep).wait().unwrap_err()));
    let asker = Asker {
        oracle: address,
        left: 0,
        sum: 0,
    };
    let asker = scheduler.spawn(asker).unwrap();
    asker.send(1).unwrap();
    let ExitReason::Failed(error) = exit(asker) else {
        panic!("it got an answer");
    };
    assert!(is_closed(error.downcast_ref().unwrap()), "{error}");
}

#[test]
fn a_thread_stops_to_wait_and_the_process_hears_of_it() {
    let scheduler = Scheduler::start_default().unwrap();
    let oracle = scheduler.spawn(Oracle::default()).unwrap();
    let late = oracle.call(Ask::Keep).wait_timeout(Duration::ZERO);
    assert!(matches!(late, Err(CommandError::Timeout)));

    let (sender, replies) = channel();
    let reply_of = || {
        let sender = sender.clone();
        let call = oracle.call(move |reply: Reply<u64>| {
            sender.send(reply).unwrap();
            Ask::End
        });
        (call.begin(), replies.recv().unwrap())
    };
    let (answer, reply) = reply_of();
    assert_eq!((reply.pid(), reply.is_cancelled()), (None, false));
    let (ended, ends) = channel();
    let reply = reply.untyped();
    let on_end = |number: u32| {
        let ended = ended.clone();
        reply.on_end(move || ended.send(number).unwrap())
    };
    let (_first, second) = (on_end(1).unwrap(), on_end(2).unwrap());
    drop(second);
    drop(answer);
    assert_eq!(ends.try_iter().collect::<Vec<_>>(), [1]);
    assert!(reply.is_cancelled() && on_end(3).is_none());
    // Nothing waits for it.
    reply.complete(7_u64);
}

// pins: P8
#[test]
fn a_task_is_woken_by_the_answer() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let oracle = scheduler.spawn(Oracle::default()).unwrap();
    let call = oracle.call(|it| Ask::Double(4, it));
    let mut answer = pin!(call.into_future());
    let woken = Arc::new(Woken(AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut poll = || {
        answer
            .as_mut()
            .poll(&mut std::task::Context::from_waker(&waker))
    };
    assert!(poll().is_pending() && poll().is_pending());
    assert!(!woken.0.load(Ordering::SeqCst));
    scheduler.start().unwrap();
    until("it is woken", || woken.0.load(Ordering::SeqCst));
    assert!(matches!(poll(), Poll::Ready(Ok(8))));
}

/// Checks the advice to a step whose wait would never end.
#[test]
fn a_step_that_would_wait_for_its_own_process_is_told_what_to_do() {
    let scheduler = Scheduler::start_default().unwrap();
    let oracle = scheduler.spawn(Oracle::default()).unwrap();
    let text = oracle.call(Ask::Own).wait_timeout(PATIENCE).unwrap();
    assert!(text.contains("`out.ask(call, tag)`"), "{text}");
}

// pins: C1, P17
#[test]
fn a_process_of_another_scheduler_with_the_same_pid_answers() {
    let (one, other) = (start(1), start(1));
    let pid: Pid = "{main|7}".parse().unwrap();
    let oracle = ActorProcess::new(Oracle::default());
    let _oracle = other.submit_as(pid, oracle, "main", ()).unwrap();
    let oracle = other.address(pid).unwrap().typed::<Ask>().unwrap();
    let asker = process_fn(move |_, events, out| {
        match events.next() {
            Some(Event::Completion(answer)) => out.done(answer.result?),
            _ => _ = out.ask(oracle.call(|it| Ask::Double(21, it)), 1),
        }
        Ok(())
    });
    let answer = exit(one.submit_as(pid, asker, "main", ()).unwrap());
    assert_eq!(answer.take::<u64>().unwrap(), 42);
}

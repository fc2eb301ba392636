//! Async processes as users write them: a `Cx` has all the tools of a line, and a type of message
//! is named only if nothing else names it.

use ganger::prelude::*;
use ganger::{SendErrorKind, WrongType};
use std::time::Duration;

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

enum Bank {
    Pay(u64),
    Balance(Reply<u64>),
}

async fn bank(cx: Cx<Bank>) -> Result<u64, BoxError> {
    let mut balance = 0;
    while let Some(message) = cx.recv().await {
        match message {
            Bank::Pay(amount) => balance += amount,
            Bank::Balance(reply) => reply.complete(balance),
        }
    }
    Ok(balance)
}

// pins: A10
#[test]
fn a_send_says_what_an_address_takes() -> Result<(), BoxError> {
    let scheduler = Scheduler::start_default()?;
    let sum = scheduler.spawn(async |cx: Cx<u64>| {
        let first = cx.recv().await.ok_or("cancelled")?;
        let second = cx.recv().await.ok_or("cancelled")?;
        Ok(first + second)
    })?;
    sum.send(40)?;
    sum.send(2)?;
    assert_eq!(sum.wait().take::<u64>()?, 42);

    let waits = scheduler.spawn(async |cx: Cx<Duration>| {
        cx.recv().await.ok_or("cancelled")?;
        Ok("got it")
    })?;
    waits.send(Duration::ZERO)?;
    assert_eq!(waits.wait().take::<String>()?, "got it");
    Ok(())
}

// pins: A10
#[test]
fn names_are_given_and_found_from_a_task() -> Result<(), BoxError> {
    let scheduler = Scheduler::start_default()?;
    let main = scheduler.spawn(async |cx: Cx| {
        let bank = cx.named("bank").spawn(bank)?;
        cx.lookup("bank")?.send(Bank::Pay(42))?;
        let balance = cx.ask(cx.lookup("bank")?.call(Bank::Balance)).await?;
        assert_eq!(cx.whereis("bank"), Some(bank.pid()));
        cx.cancel(bank.pid(), "enough")?;
        Ok(balance)
    })?;
    assert_eq!(main.wait().take::<u64>()?, 42);
    Ok(())
}

// pins: A10
#[test]
fn a_task_gives_its_own_address_away() -> Result<(), BoxError> {
    let scheduler = Scheduler::start_default()?;
    let main = scheduler.spawn(async |cx: Cx<u64>| {
        let parent = cx.address();
        for number in 0..3_u64 {
            let parent = parent.clone();
            cx.spawn(async move |cx: Cx| {
                cx.sleep(ms(1)).await?;
                Ok(parent.send(number)?)
            })?;
        }
        let mut sum = 0;
        for _ in 0..3 {
            sum += cx.recv().await.ok_or("cancelled")?;
        }
        Ok(sum)
    })?;
    assert_eq!(main.wait().take::<u64>()?, 3);
    Ok(())
}

// pins: A10
#[test]
fn any_message_may_be_taken_and_sent() -> Result<(), BoxError> {
    let scheduler = Scheduler::start_default()?;
    let main = scheduler.spawn(async |cx: Cx| {
        let echo = cx.spawn(async |cx: Cx| {
            let message = cx.recv().await.ok_or("cancelled")?;
            let to = message.source.ok_or("from nobody")?;
            Ok(cx.send(to, message.take::<u64>()? + 1)?)
        })?;
        cx.send(echo.pid(), 41_u64)?;
        Ok(cx.recv().await.ok_or("cancelled")?.take::<u64>()?)
    })?;
    assert_eq!(main.wait().take::<u64>()?, 42);
    Ok(())
}

// pins: A10
#[test]
fn a_plain_address_takes_messages_and_a_send_of_a_value_is_looked_at() -> Result<(), BoxError> {
    let scheduler = Scheduler::start_default()?;
    let bank = scheduler.spawn(bank)?;
    let plain: Address = bank.address().untyped().clone();
    plain.send(Message::of(Bank::Pay(7)))?;
    let refused = plain.send(Message::of("seven")).unwrap_err();
    assert!(
        matches!(refused.kind, SendErrorKind::WrongType(_)),
        "{refused}"
    );
    assert_eq!(
        plain.clone().typed::<Bank>()?.call(Bank::Balance).wait()?,
        7
    );
    // A plain address is of any process.
    plain.typed::<Message>()?.send(Message::of(Bank::Pay(1)))?;
    assert_eq!(bank.call(Bank::Balance).wait()?, 8);

    // An actor of messages takes them as they are.
    let any = scheduler.spawn(actor_fn(|_, message: Message, out| {
        let topic = message.topic;
        out.done(format!("{topic} {}", message.take::<u64>()?));
        Ok(())
    }))?;
    any.send(Message::new("topic", 7_u64))?;
    assert_eq!(any.wait().take::<String>()?, "topic 7");
    Ok(())
}

// pins: A10
#[test]
fn children_and_helpers_need_no_type_of_messages() -> Result<(), BoxError> {
    let scheduler = Scheduler::start_default()?;
    let main = scheduler.spawn(async |cx: Cx| {
        let (child, end) = cx.monitored(|it| {
            it.named("child").spawn(async |cx: Cx| {
                cx.recv().await;
                Err::<(), _>("no luck".into())
            })
        })?;
        child.send(Message::of(1))?;
        assert_eq!(end.await?.to_string(), "failed: no luck");

        let sum = cx
            .scope(async |scope| {
                let one = scope.spawn(async |_| Ok(1))?;
                let two = scope.spawn(async |cx| {
                    cx.sleep(ms(1)).await?;
                    Ok(2)
                })?;
                Ok(one.await? + two.await?)
            })
            .await?;
        let lines = cx.blocking(|| "a\nb".lines().count()).await?;
        Ok(sum + lines as u64)
    })?;
    assert_eq!(main.wait().take::<u64>()?, 5);

    let answer = scheduler.call_task(async |cx| {
        cx.sleep(ms(1)).await?;
        Ok(cx.pid())
    });
    answer.wait()?;
    Ok(())
}

#[derive(Debug, PartialEq)]
struct Report {
    lines: Vec<String>,
    took: Duration,
}

fn report(line: &str) -> Report {
    let lines = vec![line.to_owned()];
    Report { lines, took: ms(1) }
}

// pins: P12
#[test]
fn a_process_ends_with_a_value_of_its_own_type() -> Result<(), BoxError> {
    let scheduler = Scheduler::start_default()?;
    let task = scheduler.spawn(async |_: Cx| Ok(report("a task")))?;
    assert_eq!(task.wait().take::<Report>()?, report("a task"));

    let actor = scheduler.spawn(actor_fn(|_, line: String, out| {
        out.done(report(&line));
        Ok(())
    }))?;
    actor.send("an actor".to_owned())?;
    assert_eq!(actor.wait().take::<Report>()?, report("an actor"));

    // A wrong type is an error, and nothing is lost.
    let task = scheduler.spawn(async |_: Cx| Ok(report("a task")))?;
    let error = task.wait().take::<u64>().unwrap_err();
    let error = error.downcast::<WrongType>()?;
    assert_eq!(error.payloads.take::<Report>()?, report("a task"));

    let task = scheduler.spawn(async |_: Cx| Ok(vec![Some(1_u64), None]))?;
    assert_eq!(task.wait().take::<Vec<Option<u64>>>()?, [Some(1), None]);
    Ok(())
}

struct Trace(u64);

// pins: A10
#[test]
fn what_a_process_may_ask_a_task_asks_as_well() -> Result<(), BoxError> {
    let scheduler = Scheduler::start_default()?;
    let main = scheduler.spawn(async |cx: Cx| {
        cx.register_name("main")?;
        cx.set_inherited(Trace(7));
        let began = cx.now();
        let child = cx.spawn(actor_fn(|ctx, reply: Reply<u64>, _| {
            reply.complete(ctx.inherited::<Trace>().map_or(0, |it| it.0));
            Ok(())
        }))?;
        let seven = cx.ask(child.call(|reply| reply)).await?;
        let plain = cx.spawn(process_fn(|_, _, out| {
            out.done(());
            Ok(())
        }))?;
        cx.monitor(plain.pid()).await?;
        assert!(began.since(cx.now()) == Duration::ZERO && cx.scheduler().is_some());
        cx.terminate(child.pid())?;
        Ok(seven)
    })?;
    assert_eq!(main.wait().take::<u64>()?, 7);
    Ok(())
}

/// Adds numbers up, and tells the sum.
struct Total(u64);

impl Actor for Total {
    type Message = Reply<u64>;

    fn receive(&mut self, _: &Context, reply: Reply<u64>, _: &mut StepOutput) -> StepResult {
        self.0 += 1;
        reply.complete(self.0);
        Ok(())
    }
}

async fn total(cx: Cx<Reply<u64>>) -> Result<(), BoxError> {
    let mut sum = 0;
    while let Some(reply) = cx.recv().await {
        sum += 1;
        reply.complete(sum);
    }
    Ok(())
}

fn done() -> Box<dyn Process> {
    Box::new(process_fn(|_, _, out| {
        out.done(());
        Ok(())
    }))
}

// pins: A10, P1
#[test]
fn spawn_takes_whatever_can_be_a_process_wherever_it_is_called() -> Result<(), BoxError> {
    let scheduler = Scheduler::start_default()?;
    let answers = |to: Address<Reply<u64>>| to.call(|reply| reply).wait();
    assert_eq!(answers(scheduler.spawn(Total(41))?.address().clone())?, 42);
    assert_eq!(answers(scheduler.spawn(total)?.address().clone())?, 1);
    assert!(scheduler.spawn(done())?.wait().is_done());
    let named = scheduler.named("total").spawn(total)?;
    assert_eq!(answers(named.address().clone())?, 1);
    assert_eq!(scheduler.whereis("total"), Some(named.pid()));

    let parent = scheduler.spawn(async |cx: Cx| {
        let (actor, task) = (cx.spawn(Total(1))?, cx.spawn(total)?);
        let named = cx.named("actor").spawn(Total(2))?;
        let ctx = cx.context();
        let (of_cx, of_context): (Address, Address) = (cx.address(), ctx.address()?);
        assert!(of_cx.is_same(&of_context));
        let (process, end) = cx.monitored(|spawner| spawner.spawn(done()))?;
        assert!(end.await?.is_done() && process.is_closed());
        let mut sum = 0;
        for address in [actor, task, named] {
            sum += cx.ask(address.call(|reply| reply)).await?;
        }
        Ok(sum)
    })?;
    assert_eq!(parent.wait().take::<u64>()?, 2 + 1 + 3);

    let start = || total;
    assert_eq!(
        scheduler
            .spawn_or_call("one", start, |reply| reply)
            .wait()?,
        1
    );
    assert_eq!(
        scheduler
            .spawn_or_call("one", || Total(7), |reply| reply)
            .wait()?,
        2
    );
    let tree = ganger::supervise::Supervisor::one_for_one()
        .with(ChildSpec::new("task", || total).named("task"))
        .with(ChildSpec::new("actor", || Total(0)).named("other"))
        .with(ChildSpec::new("process", done).temporary())
        .start(&scheduler)?;
    for name in ["task", "other"] {
        assert_eq!(answers(scheduler.lookup(name)?)?, 1);
    }
    drop(tree);
    Ok(())
}

//! Commands, sleeps and monitors.

use crate::support::{ByHand, exit, number, until};
use ganger_proc_api::{
    BoxError, Command, CommandError, CommandId, Completer, ExitCause, ExitReason, Outcome,
    TypedCommand,
};
use ganger_sched::{ContextExt, Scheduler};
use ganger_task::{Cx, Either, TaskExt, WaitError, process};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LATER: CommandId = CommandId::new(300);
const TIME: Duration = Duration::from_millis(20);
const HOUR: Duration = Duration::from_secs(3_600);

struct Double(u64);

impl TypedCommand for Double {
    type Answer = u64;
}

/// Starts a scheduler with commands whose completers the test has.
fn world() -> (Scheduler, Arc<Mutex<Vec<Completer>>>) {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let kept = Arc::new(Mutex::new(Vec::new()));
    let its_kept = Arc::clone(&kept);
    let keep = move |_: Command, completer| {
        its_kept.lock().unwrap().push(completer);
        Ok(())
    };
    scheduler.register(LATER, "later", keep).unwrap();
    scheduler
        .register_task(async |_: Cx, Double(number)| Ok(2 * number))
        .unwrap();
    scheduler.start().unwrap();
    (scheduler, kept)
}

// pins: A3
#[test]
fn answers_come_to_the_waits_that_asked_whatever_their_order() {
    let mut task = ByHand::new(process(async |cx: Cx| {
        let call = || cx.call(Command::new(LATER, ()));
        let (a, b) = cx.join((call(), call())).await;
        Ok(a?.as_u64().unwrap_or(0) * 10 + b?.as_u64().unwrap_or(0))
    }));
    let tags = task.step().unwrap().yields;
    assert_eq!(tags.len(), 2);
    task.answer(tags[1], 2_u64);
    assert!(matches!(task.step().unwrap().outcome, Outcome::Wait));
    task.send(5_u64);
    task.answer(tags[0], 1_u64);
    let outcome = task.step().unwrap().outcome;
    assert!(matches!(outcome, Outcome::Done(it) if it.as_u64() == Some(12)));
    assert_eq!(task.events.len(), 1);
}

// pins: A3
#[test]
fn an_async_function_is_a_handler_and_its_error_is_the_answer() {
    struct Fail;
    impl TypedCommand for Fail {
        type Answer = ();
    }
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    scheduler
        .register_task(async |_: Cx, Double(number)| Ok(2 * number))
        .unwrap();
    scheduler
        .register_task(async |_: Cx, _: Fail| Err("no luck".into()))
        .unwrap();
    scheduler.start().unwrap();
    let task = scheduler.spawn(async |cx: Cx| {
        let error = cx.command(Fail).await.unwrap_err();
        assert_eq!(error.to_string(), "no luck");
        let unknown = cx.call(Command::new(LATER, ())).await;
        assert!(matches!(
            unknown,
            Err(WaitError::Command(CommandError::Unknown(LATER)))
        ));
        Ok(cx.command(Double(21)).await?)
    });
    assert_eq!(number(task.unwrap()), 42);
}

// pins: A3
#[test]
fn a_handler_s_task_is_cancelled_when_its_answer_is_not_wanted() {
    struct Forever;
    impl TypedCommand for Forever {
        type Answer = ();
    }
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let ended = Arc::new(Mutex::new(Vec::new()));
    let its_ended = Arc::clone(&ended);
    let forever = move |cx: Cx, _: Forever| {
        let ended = Arc::clone(&its_ended);
        async move {
            let reason = cx.cancelled().await.to_string();
            ended.lock().unwrap().push(reason);
            Ok(())
        }
    };
    scheduler.register_task(forever).unwrap();
    scheduler.start().unwrap();
    let task = scheduler.spawn(async |cx: Cx<u64>| {
        match cx.select((cx.command(Forever), cx.recv())).await {
            Either::A(_) => Err("answered".into()),
            Either::B(message) => Ok(message.unwrap_or(0)),
        }
    });
    let task = task.unwrap();
    until("the handler's task runs", || scheduler.stats().live == 2);
    task.send(7).unwrap();
    assert_eq!(number(task), 7);
    until("it is cancelled", || ended.lock().unwrap().len() == 1);
    assert_eq!(
        *ended.lock().unwrap(),
        ["the answer is not wanted any longer"]
    );
}

// pins: A3, C1
#[test]
fn a_task_answers_a_call_and_is_cancelled_when_its_answer_is_not_wanted() {
    let scheduler = Scheduler::start_default().unwrap();
    let sum = scheduler.call_task(async |_: Cx| Ok(40_u64 + 2));
    assert_eq!(sum.wait().unwrap(), 42);
    let fails = scheduler.call_task(async |_: Cx| Err::<u64, _>("no luck".into()));
    let error = fails.wait().unwrap_err().to_string();
    assert!(error.contains("no luck"), "{error}");
    let panics = scheduler.call_task(async |_: Cx| -> Result<u64, BoxError> { panic!("boom") });
    let end = ExitCause::Panicked("boom".into());
    assert!(matches!(panics.wait(), Err(CommandError::Ended(cause)) if cause == end));
    let ended = Arc::new(Mutex::new(Vec::new()));
    let its_ended = Arc::clone(&ended);
    let (begins, has_begun) = std::sync::mpsc::channel();
    let forever = scheduler.call_task(async move |cx: Cx| {
        begins.send(())?;
        let reason = cx.cancelled().await.to_string();
        its_ended.lock().unwrap().push(reason);
        Ok(())
    });
    let answer = forever.begin();
    has_begun.recv().unwrap();
    drop(answer);
    until("it is cancelled", || ended.lock().unwrap().len() == 1);
    assert_eq!(
        *ended.lock().unwrap(),
        ["the answer is not wanted any longer"]
    );
}

// pins: A4
#[test]
fn a_wait_that_is_dropped_takes_its_command_back() {
    let (scheduler, kept) = world();
    let task = scheduler.spawn(async |cx: Cx<u64>| {
        let call = cx.call(Command::new(LATER, ()));
        let Either::B(first) = cx.select((call, cx.recv())).await else {
            return Err("answered".into());
        };
        // The next wait has the place of the dropped wait.
        let answer = cx.call(Command::new(LATER, ())).await?;
        Ok(first.unwrap_or(0) + answer.as_u64().unwrap_or(0))
    });
    let task = task.unwrap();
    until("it has asked", || kept.lock().unwrap().len() == 1);
    task.send(1).unwrap();
    until("it has asked again", || kept.lock().unwrap().len() == 2);
    let mut both = std::mem::take(&mut *kept.lock().unwrap()).into_iter();
    let (dropped, asked) = (both.next().unwrap(), both.next().unwrap());
    assert!(dropped.is_cancelled() && !asked.is_cancelled());
    dropped.complete(100_u64);
    asked.complete(20_u64);
    assert_eq!(number(task), 21);
}

// pins: A4
#[test]
fn a_command_that_was_never_polled_is_not_yielded() {
    let mut task = ByHand::new(process(async |cx: Cx| {
        drop(cx.call(Command::new(LATER, ())));
        let mut call = cx.call(Command::new(LATER, ()));
        assert!(futures_util::poll!(&mut call).is_pending());
        drop(call);
        cx.recv().await;
        Ok(())
    }));
    let stepped = task.step().unwrap();
    assert_eq!(stepped.yields.len(), 0);
    assert_eq!(stepped.cancelled.len(), 1);
}

// pins: A4
#[test]
fn an_answer_to_a_wait_that_is_over_is_not_another_s() {
    for has_other in [false, true] {
        let mut task = ByHand::new(process(async move |cx: Cx| {
            let mut other = cx.call(Command::new(LATER, ()));
            if has_other {
                assert!(futures_util::poll!(&mut other).is_pending());
            }
            let mut first = cx.call(Command::new(LATER, ()));
            assert!(futures_util::poll!(&mut first).is_pending());
            cx.recv().await;
            drop(first);
            let second = cx.call(Command::new(LATER, ())).await?;
            Ok(second)
        }));
        let first = *task.step().unwrap().yields.last().unwrap();
        task.send(());
        let second = task.step().unwrap().yields[0];
        task.answer(first, 1_u64);
        assert!(matches!(task.step().unwrap().outcome, Outcome::Wait));
        task.answer(second, 2_u64);
        let outcome = task.step().unwrap().outcome;
        assert!(matches!(outcome, Outcome::Done(it) if it.as_u64() == Some(2)));
    }
}

// pins: A3
#[test]
fn a_sleep_ends_with_its_time_and_a_timeout_before_its_future() {
    let (scheduler, kept) = world();
    let task = scheduler.spawn(async |cx: Cx| {
        let begin = cx.context().now();
        cx.sleep(TIME).await?;
        let late = cx.timeout(TIME, cx.call(Command::new(LATER, ()))).await;
        assert!(matches!(late, Err(WaitError::TimedOut)), "{late:?}");
        assert!(cx.context().now() - begin >= 2 * TIME);
        let double = cx.timeout(HOUR, cx.command(Double(21))).await??;
        Ok(double)
    });
    let task = task.unwrap();
    assert_eq!(number(task), 42);
    assert!(kept.lock().unwrap()[0].is_cancelled());
    assert_eq!(scheduler.timers().stats().pending, 0);
}

// pins: A3
#[test]
fn a_monitor_tells_how_a_process_ended() {
    let (scheduler, ..) = world();
    let task = scheduler.spawn(async |cx: Cx<u64>| {
        let other = cx.context();
        let fails = ganger_proc_api::process_fn(|_, _, _| Err("no luck".into()));
        let pid = other.submit(fails, "main", ())?;
        let cause = cx.monitor(pid).await?;
        assert!(
            matches!(&cause, ExitCause::Failed(_) | ExitCause::NotFound),
            "{cause}"
        );
        assert_eq!(cx.monitor(pid).await?, ExitCause::NotFound);
        let far = cx.monitor("{elsewhere|1}".parse()?).await;
        assert!(matches!(far, Err(WaitError::Monitor(_))), "{far:?}");
        Ok(1_u64)
    });
    assert_eq!(number(task.unwrap()), 1);
}

/// Waits twice at once for the end of a process. The task drops the first wait.
// pins: A3, A4
#[test]
fn a_monitor_that_is_dropped_leaves_the_others() {
    let (scheduler, ..) = world();
    let waits = scheduler.spawn(async |cx: Cx| -> Result<(), BoxError> {
        cx.recv().await;
        Ok(())
    });
    let waits = waits.unwrap();
    let pid = waits.pid();
    let task = scheduler.spawn(async move |cx: Cx| {
        let (first, second) = (cx.monitor(pid), cx.monitor(pid));
        drop(first);
        cx.cancel(pid, "enough")?;
        let cause = second.await?;
        assert!(cause.is_done(), "{cause}");
        Ok(3_u64)
    });
    assert_eq!(number(task.unwrap()), 3);
    assert!(matches!(exit(waits), ExitReason::Done(_)));
}

// pins: A3, A4, L1
#[test]
fn a_task_that_starts_a_process_hears_how_it_ended_however_soon() {
    let (scheduler, ..) = world();
    let holder = scheduler.named("taken").spawn(async |cx: Cx<u64>| {
        let _never = cx.recv().await;
        Ok(())
    });
    let holder = holder.unwrap();
    let task = scheduler.spawn(async |cx: Cx| {
        for round in 0..100_u64 {
            let fails = async |_: Cx<u64>| Err::<(), _>("no luck".into());
            let (child, end) = cx.monitored(|spawner| spawner.spawn(fails))?;
            let dropped = cx.monitored(|spawner| spawner.spawn(fails))?;
            drop(dropped);
            let refused = cx.monitored(|spawner| spawner.named("taken").spawn(fails));
            assert!(refused.unwrap_err().into_process().is_some());
            let plain = ganger_proc_api::process_fn(|_, _, _| Err("plain".into()));
            let (_, plain) = cx.monitored(|spawner| spawner.spawn(plain))?;
            if round % 2 == 0 {
                assert_eq!(plain.await?.to_string(), "failed: plain");
                assert_eq!(end.await?.to_string(), "failed: no luck");
            } else {
                assert_eq!(end.await?.to_string(), "failed: no luck");
            }
            assert!(child.pid() != cx.pid());
        }
        Ok(7_u64)
    });
    assert_eq!(number(task.unwrap()), 7);
    scheduler.terminate(holder.pid()).unwrap();
    exit(holder);
}

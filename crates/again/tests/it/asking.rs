//! Asking again: steps, tasks and threads, and the simulation's clock.

use ganger_again::{Numbers, Once, Retry, RetryExt as _, Seen};
use ganger_proc_api::{
    Actor, CommandError, Completion, Context, ExitCause, Reply, StepOutput, StepResult, actor_fn,
};
use ganger_sched::{Address, Call, ContextExt as _, ProcessHandle, Scheduler};
use ganger_sim::{Faults, Rt, Sim};
use ganger_sync::sync::{Mutex, lock};
use ganger_task::Cx;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Creates a simulation in which time passes evenly.
fn steady() -> Sim {
    Sim::new(0).faults(Faults {
        clock_jumps: 0,
        delivery_stalls: 0,
        ..Faults::some()
    })
}

/// When something was asked.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Duration>>>);

impl Log {
    fn times(&self) -> Vec<Duration> {
        lock(&self.0).clone()
    }
}

fn lost() -> CommandError {
    CommandError::Ended(ExitCause::NoConnection)
}

/// Answers after `failures` attempts without a connection.
fn answers_after(rt: &Rt<'_>, failures: usize, log: &Log) -> impl FnMut() -> Call<u64> + use<> {
    let (clock, log) = (rt.clock(), log.clone());
    move || {
        let (clock, log) = (clock.clone(), log.clone());
        Call::by(move |reply: Reply<u64>| {
            let mut times = lock(&log.0);
            times.push(clock.now());
            if times.len() > failures {
                reply.complete(42);
            } else {
                reply.untyped().finish(Err(lost()));
            }
            Ok(())
        })
    }
}

// pins: C6
// case: 44
#[test]
fn a_question_is_asked_until_it_has_an_answer_with_growing_pauses() {
    let gaps = |seed: u64| {
        let log = Log::default();
        steady().seed(seed).run(|rt| {
            let retry = Retry::times(6).pauses(secs(1), secs(4));
            let call = rt.at_least_once(retry, answers_after(rt, 5, &log));
            assert_eq!(rt.answer(call).unwrap(), 42);
        });
        let times = log.times();
        let gaps = times.windows(2).map(|it| it[1] - it[0]);
        gaps.collect::<Vec<_>>()
    };
    let mut all = Vec::new();
    for seed in 0..20 {
        let first = gaps(seed);
        for (gap, most) in first.iter().zip([1, 2, 4, 4, 4]) {
            assert!(*gap >= secs(most) / 2, "{first:?}");
        }
        assert_eq!(first.len(), 5);
        assert_eq!(first, gaps(seed), "a seed repeats it");
        all.push(first);
    }
    all.dedup();
    assert!(all.len() > 15, "chance is in the pauses");
}

// pins: C6
#[test]
fn after_the_last_attempt_the_last_error_is_the_answer() {
    steady().check_seeds(20, |rt| {
        let log = Log::default();
        let call = rt.at_least_once(Retry::times(3), answers_after(rt, 9, &log));
        let error = rt.answer(call).unwrap_err();
        assert!(matches!(
            error,
            CommandError::Ended(ExitCause::NoConnection)
        ));
        assert_eq!(log.times().len(), 3);
        // A lasting error is final.
        let asked = Arc::new(Mutex::new(0));
        let counts = Arc::clone(&asked);
        let fails = move || {
            *lock(&counts) += 1;
            Call::by(|reply: Reply<u64>| {
                reply.fail("no");
                Ok(())
            })
        };
        let error = rt.answer(rt.at_least_once(Retry::times(3), fails));
        assert_eq!(error.unwrap_err().to_string(), "no");
        assert_eq!(*lock(&asked), 1);
        assert_eq!(rt.stats().live, 0, "the task has ended");
    });
}

// pins: C6
#[test]
fn an_attempt_without_an_answer_gives_up_its_share_of_the_time() {
    steady().check_seeds(20, |rt| {
        let (mut kept, mut asked) = (Vec::new(), 0);
        let silent = actor_fn(move |_, reply: Reply<u64>, _| {
            asked += 1;
            if asked == 3 {
                assert!(kept.iter().all(Reply::is_cancelled), "given up");
                reply.complete(3);
            } else {
                kept.push(reply);
            }
            Ok(())
        });
        let silent = rt.spawn(silent).unwrap().address().clone();
        let asks = silent.clone();
        let retry = Retry::times(5).within(secs(10));
        let call = rt.at_least_once(retry, move || asks.call(|reply| reply));
        assert_eq!(rt.answer(call).unwrap(), 3);
        let began = rt.now();
        let call = rt.at_least_once(retry, move || silent.call(|reply| reply));
        let error = rt.answer(call).unwrap_err();
        assert!(matches!(error, CommandError::Timeout));
        // The last attempt begins before the time is over, and ends with it.
        let took = rt.now() - began;
        assert!(took >= secs(8) && took < secs(11), "{took:?}");
    });
}

// pins: C6
#[test]
fn no_pause_outlasts_the_time_of_the_question() {
    steady().check_seeds(20, |rt| {
        let (log, began) = (Log::default(), rt.now());
        let retry = Retry::times(3).within(secs(5)).pauses(secs(20), secs(20));
        let error = rt.answer(rt.at_least_once(retry, answers_after(rt, 9, &log)));
        assert!(matches!(
            error,
            Err(CommandError::Ended(ExitCause::NoConnection))
        ));
        assert_eq!(log.times().len(), 1);
        assert!(rt.now() - began < secs(5));
    });
}

// pins: C6
#[test]
fn an_asker_that_goes_away_ends_the_asking() {
    steady().check_seeds(20, |rt| {
        let log = Log::default();
        let question = answers_after(rt, 1000, &log);
        let asker = rt.spawn(async move |cx: Cx| {
            let scheduler = cx.context().scheduler().ok_or("no scheduler")?;
            let retry = Retry::times(1000).pauses(secs(1), secs(1));
            let call = scheduler.at_least_once(retry, question);
            let _timed_out = cx.ask_within(call, secs(5)).await;
            Ok(())
        });
        assert!(rt.wait(asker.unwrap()).is_done());
        rt.settle();
        let asked = log.times().len();
        assert!((3..=12).contains(&asked), "{asked}");
        rt.run_for(secs(60));
        assert_eq!(log.times().len(), asked);
        assert_eq!(rt.stats().live, 0);
    });
}

/// Lets a process ask itself, which would wait for its own step.
// pins: C3, C6
#[test]
fn a_process_that_asks_itself_is_told_at_once() {
    struct Own(std::sync::mpsc::Sender<String>);

    impl Actor for Own {
        type Message = Reply<u64>;

        fn started(&mut self, ctx: &Context, out: &mut StepOutput) -> StepResult {
            let own: Address<Reply<u64>> = ctx.address()?;
            let scheduler = ctx.scheduler().ok_or("no scheduler")?;
            out.ask(
                scheduler.at_least_once(Retry::times(3), move || own.call(|it| it)),
                1,
            );
            Ok(())
        }

        fn receive(&mut self, _: &Context, _: Reply<u64>, _: &mut StepOutput) -> StepResult {
            Err("it was asked".into())
        }

        fn completed(&mut self, _: &Context, it: Completion, out: &mut StepOutput) -> StepResult {
            let _gone = self.0.send(it.take::<u64>().unwrap_err().to_string());
            out.done(());
            Ok(())
        }
    }

    let scheduler = Scheduler::builder().quiet_failures().start().unwrap();
    let (tell, told) = channel();
    let own = scheduler.spawn(Own(tell)).unwrap();
    assert!(own.wait().is_done());
    assert_eq!(told.recv().unwrap(), "a process can't call itself");
}

// pins: C6
#[test]
fn a_full_mailbox_is_asked_again() {
    let scheduler = Scheduler::builder().mailbox_limit(1).start().unwrap();
    let (go, gone) = channel::<()>();
    let mut gone = Some(gone);
    let busy = scheduler.spawn(actor_fn(move |ctx: &Context, reply: Reply<u64>, _| {
        if let Some(gone) = gone.take() {
            ctx.blocking(|| gone.recv())?;
        }
        reply.complete(1);
        Ok(())
    }));
    let busy: ProcessHandle<Reply<u64>> = busy.unwrap();
    // A message in the step, perhaps a message in the mailbox, and then no room.
    let mut asked = Vec::new();
    let refused = loop {
        let answer = busy.call(|reply| reply).begin();
        if answer.is_ready() {
            break answer.wait().unwrap_err();
        }
        asked.push(answer);
    };
    assert!(refused.to_string().contains("full"), "{refused}");
    let address = busy.address().clone();
    let mut go = Some(go);
    let mut attempts = 0;
    let retry = Retry::times(100).pauses(Duration::from_millis(1), Duration::from_millis(20));
    let call = scheduler.at_least_once(retry.within(PATIENCE).each(PATIENCE), move || {
        attempts += 1;
        if attempts == 3 {
            let _gone = go.take().map(|go| go.send(()));
        }
        address.call(|reply| reply)
    });
    assert_eq!(call.wait_timeout(PATIENCE).unwrap(), 1);
    for answer in asked {
        assert_eq!(answer.wait_timeout(PATIENCE).unwrap(), 1);
    }
}

// pins: C6
#[test]
fn a_panic_of_the_question_is_the_end_of_it() {
    let scheduler = Scheduler::builder().quiet_failures().start().unwrap();
    let panics = || -> Call<u64> { panic!("on purpose") };
    let answer = scheduler.at_least_once(Retry::times(3), panics).wait();
    let Err(CommandError::Ended(ExitCause::Panicked(text))) = answer else {
        panic!("{answer:?}");
    };
    assert!(text.contains("on purpose"), "{text}");
}

type Pay = (Once<u64>, Reply<u64>);

/// Pays each once, and loses every other answer.
fn account(rt: &Rt<'_>) -> Address<Pay> {
    let (mut seen, mut sum, mut asked) = (Seen::default(), 0, 0);
    let account = rt.spawn(actor_fn(move |_, (pay, reply): Pay, _| {
        asked += 1;
        // The asker is told that the connection is lost, and the work goes on.
        let reply = match asked % 2 {
            1 => {
                reply.untyped().finish(Err(lost()));
                let nobody = ganger_proc_api::Completer::from_fn("{test|1}".parse()?, 0, drop);
                Reply::new(nobody)
            }
            _ => reply,
        };
        if let Some((amount, reply)) = seen.fresh(pay, reply) {
            sum += amount;
            reply.complete(sum);
        }
        Ok(())
    }));
    account.unwrap().address().clone()
}

// pins: C6, C7
// case: 44
#[test]
fn what_is_asked_again_is_done_once() {
    Sim::check(50, |rt| {
        let account = account(rt);
        let mut numbers = Numbers::new();
        for round in 1..=5 {
            let (pay, account) = (numbers.once(10), account.clone());
            let call = rt.at_least_once(Retry::times(5), move || {
                let pay = pay.clone();
                account.call(|reply| (pay, reply))
            });
            assert_eq!(rt.answer(call).unwrap(), 10 * round);
        }
    });
}

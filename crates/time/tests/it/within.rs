//! Commands with a deadline.

use crate::support::{ms, sim};
use ganger_proc_api::{
    Actor, CommandError, Completion, Context, Reply, StepOutput, StepResult, TypedCommand, actor_fn,
};
use ganger_sched::{Address, ProcessHandle};
use ganger_sim::Rt;
use ganger_time::TimerStats;
use std::sync::{Arc, Mutex};

struct Unhandled;

impl TypedCommand for Unhandled {
    type Answer = ();
}

/// The report of a process on the answer to its question.
type Heard = Result<u64, String>;

/// Asks once, for at most 10 ms. A message takes the question back.
struct Asks(Option<Address<Reply<u64>>>);

impl Actor for Asks {
    type Message = ();

    fn started(&mut self, _: &Context, out: &mut StepOutput) -> StepResult {
        match &self.0 {
            Some(target) => drop(out.ask_within(target.call(|reply| reply), ms(10), 7)),
            None => drop(out.ask_within(Unhandled, ms(10), 7)),
        }
        Ok(())
    }

    fn receive(&mut self, _: &Context, (): (), out: &mut StepOutput) -> StepResult {
        out.cancel(7);
        Ok(())
    }

    fn completed(&mut self, _: &Context, it: Completion, out: &mut StepOutput) -> StepResult {
        assert_eq!(it.tag, 7);
        let heard: Heard = it.take::<u64>().map_err(|error| match error {
            CommandError::Timeout => "timeout".to_owned(),
            CommandError::Dropped => "dropped".to_owned(),
            CommandError::Unknown(_) => "unknown".to_owned(),
            other => format!("other: {other}"),
        });
        out.done(ganger_proc_api::Payload::any(heard));
        Ok(())
    }
}

type Kept = Arc<Mutex<Vec<Reply<u64>>>>;

/// Starts a process that keeps the questions, and a process that asks it.
fn pair(rt: &Rt<'_>) -> (Kept, ProcessHandle<Reply<u64>>, ProcessHandle<()>) {
    let kept = Kept::default();
    let keeps = Arc::clone(&kept);
    let silent = actor_fn(move |_, reply, _: &mut StepOutput| {
        keeps.lock().unwrap().push(reply);
        Ok(())
    });
    let silent = rt.spawn(silent).unwrap();
    let asks = rt.spawn(Asks(Some(silent.address().clone())));
    rt.run_for(ms(5));
    (kept, silent, asks.unwrap())
}

fn heard(rt: &Rt<'_>, asks: ProcessHandle<()>) -> Heard {
    rt.wait(asks).take().unwrap()
}

fn stats(rt: &Rt<'_>) -> TimerStats {
    rt.timers().clone().stats()
}

// pins: T2
#[test]
fn an_answer_in_time_takes_the_timer_away() {
    sim(1).run(|rt| {
        let (kept, _silent, asks) = pair(rt);
        assert_eq!(stats(rt).pending, 1);
        let reply = kept.lock().unwrap().pop().unwrap();
        assert!(!reply.is_cancelled() && reply.pid() == Some(asks.pid()));
        reply.complete(42);
        assert_eq!((stats(rt).pending, stats(rt).cancelled), (0, 1));
        assert_eq!(heard(rt, asks), Ok(42));
        assert!(rt.now() < ms(6));
    });
}

// pins: T1, T2, P7
#[test]
fn without_an_answer_it_times_out_and_the_other_side_is_told() {
    sim(2).run(|rt| {
        let (kept, _silent, asks) = pair(rt);
        let reply = kept.lock().unwrap().pop().unwrap().untyped();
        let told = Arc::new(Mutex::new(0));
        let tells = Arc::clone(&told);
        let _watch = reply.on_end(move || *tells.lock().unwrap() += 1).unwrap();
        assert_eq!(heard(rt, asks), Err("timeout".to_owned()));
        assert!((ms(10)..ms(11)).contains(&rt.now()));
        assert!(reply.is_cancelled() && *told.lock().unwrap() == 1);
        assert!(reply.on_end(|| unreachable!("it is over")).is_none());
        reply.complete(42);
        rt.settle();
        assert_eq!((stats(rt).fired, stats(rt).pending), (1, 0));
    });
}

// pins: T2, P12
#[test]
fn a_question_that_is_taken_back_or_whose_process_ends_leaves_no_timer() {
    for ends in [false, true] {
        sim(3).run(|rt| {
            let (kept, _silent, asks) = pair(rt);
            if ends {
                rt.terminate(asks.pid()).unwrap();
            } else {
                asks.send(()).unwrap();
            }
            rt.run_for(ms(1));
            assert_eq!((stats(rt).pending, stats(rt).cancelled), (0, 1));
            assert!(kept.lock().unwrap()[0].is_cancelled());
            rt.run_for(ms(20));
            assert!(ends || !asks.is_finished(), "no completion has come");
            kept.lock().unwrap().clear();
        });
    }
}

// pins: P6
#[test]
fn a_question_that_fails_says_why_and_leaves_no_timer() {
    sim(4).run(|rt| {
        let (kept, silent, asks) = pair(rt);
        kept.lock().unwrap().clear();
        assert_eq!(heard(rt, asks), Err("dropped".to_owned()));
        let target = silent.address().clone();
        rt.terminate(silent.pid()).unwrap();
        rt.settle();
        let asks = rt.spawn(Asks(Some(target))).unwrap();
        let refused = heard(rt, asks).unwrap_err();
        assert!(refused.starts_with("other: "), "{refused}");
        let asks = rt.spawn(Asks(None)).unwrap();
        assert_eq!(heard(rt, asks), Err("unknown".to_owned()));
        assert_eq!((stats(rt).armed, stats(rt).cancelled), (1, 1));
    });
}

// pins: P6, T1
#[test]
fn an_answer_races_with_the_deadline_and_one_of_them_counts() {
    use ganger_sim::Faults;
    let (mut answers, mut timeouts) = (0, 0);
    for seed in 0..100 {
        sim(seed).faults(Faults::some()).run(|rt| {
            let answers_late = actor_fn({
                let clock = rt.clock();
                move |_, reply: Reply<u64>, _: &mut StepOutput| {
                    clock.after(ms(10), move || reply.complete(1));
                    Ok(())
                }
            });
            let late = rt.spawn(answers_late).unwrap();
            let asks = (0..4).map(|_| rt.spawn(Asks(Some(late.address().clone()))).unwrap());
            for asks in asks.collect::<Vec<_>>() {
                match heard(rt, asks) {
                    Ok(_) => answers += 1,
                    Err(why) => {
                        assert_eq!(why, "timeout");
                        timeouts += 1;
                    }
                }
            }
            let stats = stats(rt);
            assert_eq!(stats.pending, 0);
            assert_eq!(stats.armed, stats.fired + stats.cancelled);
        });
    }
    assert!(answers > 0 && timeouts > 0, "{answers} {timeouts}");
}

// pins: C2
#[test]
fn the_end_of_the_process_that_is_asked_is_the_answer_also_within_a_time() {
    sim(5).run(|rt| {
        let mut kept = Vec::new();
        let keeps = rt.spawn(actor_fn(move |_, reply: Reply<u64>, _| {
            kept.push(reply);
            Ok(())
        }));
        let keeps = keeps.unwrap();
        let asks = rt.spawn(Asks(Some(keeps.address().clone()))).unwrap();
        rt.run_for(ms(5));
        rt.terminate(keeps.pid()).unwrap();
        let ended = "other: no answer: the called process has ended: terminated";
        assert_eq!(heard(rt, asks), Err(ended.to_owned()));
        assert_eq!((stats(rt).pending, stats(rt).cancelled), (0, 1));
    });
}

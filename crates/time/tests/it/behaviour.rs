//! Single timers, in virtual time.

use crate::support::{LATE, assert_in_time, ms, sim, stats, timers};
use ganger_proc_api::{
    Actor, Command, CommandError, CommandId, Completion, Context, Envelope, Event, ExitReason,
    StepOutput, StepResult, UpgradeRequest, process_fn,
};
use ganger_sched::ContextExt;
use ganger_time::{
    Instant, Interval, KeyedTimers, MissedTicks, ReceiveTimeout, StateTimeout, ZeroPeriod,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;

// pins: T1
#[test]
fn a_sleep_completes_when_it_is_over_and_not_before() {
    for time in [Duration::from_nanos(1), ms(1), ms(20), ms(3_600_000)] {
        sim(1).run(|rt| {
            let sleeper = rt.spawn(process_fn(move |_, events, out| {
                match events.next() {
                    None => out.sleep(time, 7),
                    Some(Event::Completion(it)) => {
                        assert!(it.tag == 7 && it.result?.as_u64().is_none());
                        out.done(());
                    }
                    Some(_) => unreachable!("no other event"),
                }
                Ok(())
            }));
            assert!(rt.wait(sleeper.unwrap()).is_done());
            assert_in_time(time, rt.now());
        });
    }
}

// pins: T1
#[test]
fn what_is_over_completes_at_once_and_what_is_too_long_never() {
    sim(2).run(|rt| {
        let mut due = Vec::new();
        let sleeper = rt.spawn(process_fn(move |ctx, events, out| {
            if due.is_empty() {
                out.sleep(Duration::MAX, 1);
                out.sleep_until(Instant::NEVER, 2);
                out.sleep(Duration::ZERO, 3);
                out.sleep_until(ctx.now(), 4);
                out.sleep_until(Instant::from_nanos(0), 5);
                due.push(0);
            }
            for event in events {
                if let Event::Completion(it) = event {
                    it.result?;
                    due.push(it.tag);
                }
            }
            if due.len() == 4 {
                assert_eq!(due, [0, 3, 4, 5]);
                out.done(());
            }
            Ok(())
        }));
        assert!(rt.wait(sleeper.unwrap()).is_done());
        assert!(rt.now() < LATE, "{:?}", rt.now());
        assert_eq!(stats(rt).pending, 0);
    });
}

/// Takes a completion back that is in the mailbox.
// pins: T2
#[test]
fn a_completion_that_was_taken_back_is_never_seen() {
    sim(3).run(|rt| {
        let is_seen = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&is_seen);
        let process = rt.spawn(process_fn(move |_, events, out| {
            match events.next() {
                None => {
                    out.sleep(ms(5), 1);
                    out.sleep(ms(5), 2);
                    out.sleep(ms(7), 3);
                }
                Some(Event::Completion(it)) => {
                    seen.lock().unwrap().push(it.tag);
                    out.cancel(3 - it.tag);
                    out.cancel(3);
                    out.sleep(ms(5), 3);
                    if it.tag == 3 {
                        out.done(());
                    }
                }
                Some(_) => {}
            }
            Ok(())
        }));
        assert!(rt.wait(process.unwrap()).is_done());
        let seen = is_seen.lock().unwrap();
        assert!(*seen == [1, 3] || *seen == [2, 3], "{seen:?}");
        assert_in_time(ms(10), rt.now());
    });
}

// pins: T2, T3
#[test]
fn a_timer_that_is_taken_back_is_gone_at_once_and_so_are_those_of_a_process_that_ends() {
    sim(4).run(|rt| {
        let process = rt.spawn(process_fn(|_, events, out| {
            match events.next() {
                None => {
                    for tag in 0..10 {
                        out.sleep(ms(1_000_000), tag);
                    }
                    out.sleep(ms(1), 10);
                    out.sleep(ms(2), 11);
                }
                Some(Event::Completion(it)) if it.tag == 10 => (0..9).for_each(|it| out.cancel(it)),
                Some(_) => out.done(()),
            }
            Ok(())
        }));
        let process = process.unwrap();
        rt.run_for(Duration::from_micros(1_500));
        assert_eq!((stats(rt).pending, stats(rt).cancelled), (2, 9));
        assert!(rt.wait(process).is_done());
        assert_eq!((stats(rt).pending, stats(rt).cancelled), (0, 10));
        rt.settle();
        assert!(rt.now() < ms(3), "nothing was left to wait for");
    });
}

// pins: T3
#[test]
fn the_timers_of_a_process_that_is_terminated_or_fails_end_with_it() {
    sim(5).run(|rt| {
        let sleep = || {
            process_fn(|_, _, out| {
                out.sleep(ms(1_000_000), 1);
                Ok(())
            })
        };
        let terminated = rt.spawn(sleep()).unwrap();
        let failed = rt.spawn(process_fn(|_, events, out| {
            out.sleep(ms(1_000_000), 1);
            match events.next() {
                None => Ok(()),
                Some(_) => Err("on purpose".into()),
            }
        }));
        let failed = failed.unwrap();
        rt.run_for(ms(1));
        assert_eq!(stats(rt).pending, 2);
        rt.terminate(terminated.pid()).unwrap();
        rt.send(Envelope::new(None, failed.pid(), "fail", ()))
            .unwrap();
        assert!(matches!(rt.wait(terminated), ExitReason::Terminated));
        assert!(matches!(rt.wait(failed), ExitReason::Failed(_)));
        assert_eq!(stats(rt).pending, 0);
    });
}

// pins: T2
#[test]
fn a_timer_that_is_taken_back_costs_no_event() {
    sim(20).run(|rt| {
        let count = Arc::new(Mutex::new(0));
        let steps = Arc::clone(&count);
        let process = rt.spawn(process_fn(move |_, _, out| {
            *steps.lock().unwrap() += 1;
            out.cancel(1);
            out.sleep(ms(1_000_000), 1);
            Ok(())
        }));
        let process = process.unwrap();
        rt.run_for(ms(1));
        for _ in 0..10 {
            rt.send(Envelope::new(None, process.pid(), "again", ()))
                .unwrap();
            rt.run_for(ms(1));
        }
        assert_eq!(*count.lock().unwrap(), 11);
        assert_eq!((stats(rt).pending, stats(rt).cancelled), (1, 10));
        assert_eq!(rt.stats().total.stale_completions, 0);
    });
}

// pins: T3, P11
#[test]
fn the_timers_of_a_process_that_is_upgraded_are_gone() {
    sim(21).run(|rt| {
        let process = rt.spawn(process_fn(|_, events, out| {
            (0..40).for_each(|tag| out.sleep(ms(1_000_000), tag));
            if events.next().is_some() {
                let next = process_fn(|_, events, out| {
                    assert!(events.next().is_none(), "a sleep of the one before");
                    out.done(());
                    Ok(())
                });
                out.upgrade(UpgradeRequest::process(next, "main", ()));
            }
            Ok(())
        }));
        let process = process.unwrap();
        rt.run_for(ms(1));
        assert_eq!(stats(rt).pending, 40);
        rt.send(Envelope::new(None, process.pid(), "upgrade", ()))
            .unwrap();
        assert!(rt.wait(process).is_done());
        assert_eq!((stats(rt).pending, stats(rt).cancelled), (0, 80));
    });
}

/// Runs a process that is late for its interval's ticks by 3.5 periods once.
fn late_ticks(missed: MissedTicks) -> Vec<(u64, Duration)> {
    let ticks = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&ticks);
    sim(8).run(move |rt| {
        let mut every = Interval::new(ms(10), 1).missed(missed);
        let mut is_late = false;
        let process = rt.spawn(process_fn(move |ctx, events, out| {
            let mut ticks = ticks.lock().unwrap();
            match events.next() {
                None => every.start_at(Instant::from_nanos(10_000_000), out),
                Some(Event::Completion(it)) if every.is_tick(&it) => {
                    it.result?;
                    if ticks.len() == 1 && !is_late {
                        // The process takes the tick later.
                        is_late = true;
                        out.sleep(ms(35), 2);
                    } else {
                        let now = Duration::from_nanos(ctx.now().as_nanos());
                        ticks.push((every.tick(ctx.now(), out), now));
                    }
                }
                Some(Event::Completion(_)) => {
                    let now = Duration::from_nanos(ctx.now().as_nanos());
                    ticks.push((every.tick(ctx.now(), out), now));
                }
                Some(_) => {}
            }
            if ticks.len() == 6 {
                out.done(());
            }
            Ok(())
        }));
        assert!(rt.wait(process.unwrap()).is_done());
    });
    std::mem::take(&mut *all.lock().unwrap())
}

// pins: T7
#[test]
fn ticks_that_were_missed_burst_are_skipped_or_move_the_others() {
    // The second tick is due at 20 ms, and taken at 55 ms.
    for (missed, expected) in [
        (
            MissedTicks::Burst,
            [(1, 10), (1, 55), (1, 55), (1, 55), (1, 55), (1, 60)],
        ),
        (
            MissedTicks::Skip,
            [(1, 10), (4, 55), (1, 60), (1, 70), (1, 80), (1, 90)],
        ),
        (
            MissedTicks::Delay,
            [(1, 10), (4, 55), (1, 65), (1, 75), (1, 85), (1, 95)],
        ),
    ] {
        let ticks = late_ticks(missed);
        assert_eq!(ticks.len(), expected.len());
        for ((count, now), (expected, millis)) in ticks.into_iter().zip(expected) {
            assert_eq!(count, expected, "{missed:?} at {now:?}");
            assert_in_time(ms(millis), now);
        }
    }
}

// pins: T7
#[test]
fn a_period_of_zero_is_an_error() {
    sim(9).run(|rt| {
        let process = rt.spawn(process_fn(|ctx, events, out| {
            match events.next() {
                None => Interval::new(Duration::ZERO, 1).start(ctx.now(), out),
                Some(Event::Completion(it)) => {
                    let Err(CommandError::Failed(error)) = it.result else {
                        return Err("it has ticked".into());
                    };
                    assert!(error.downcast_ref::<ZeroPeriod>().is_some());
                    out.done(());
                }
                Some(_) => {}
            }
            Ok(())
        }));
        assert!(rt.wait(process.unwrap()).is_done());
    });
}

// pins: T1
#[test]
fn a_command_without_its_number_is_an_error() {
    sim(10).run(|rt| {
        let process = rt.spawn(process_fn(|_, events, out| {
            let mut errors = 0;
            for event in events {
                if let Event::Completion(it) = event {
                    errors += u64::from(matches!(it.result, Err(CommandError::Failed(_))));
                }
            }
            if errors == 0 {
                out.yield_command(Command::new(CommandId::SLEEP, "soon"), 1);
                out.yield_command(Command::new(CommandId::TICKER, 5_u64), 2);
            } else {
                out.done(errors);
            }
            Ok(())
        }));
        let errors = rt.wait(process.unwrap()).into_result().unwrap();
        assert_eq!(errors.as_u64(), Some(2));
    });
}

// pins: T8
#[test]
fn a_timer_under_a_key_takes_the_place_of_the_one_before() {
    sim(11).run(|rt| {
        let mut timers = KeyedTimers::new(100);
        let mut fired = Vec::new();
        let process = rt.spawn(process_fn(move |_, events, out| {
            match events.next() {
                None => {
                    timers.start("a", ms(10), out);
                    timers.start("b", ms(20), out);
                    timers.start("c", ms(30), out);
                    timers.start("a", ms(25), out);
                    assert!(timers.cancel(&"c", out) && !timers.cancel(&"c", out));
                    assert!(timers.is_running(&"a") && timers.len() == 2);
                }
                Some(Event::Completion(it)) => fired.extend(timers.fired(&it)),
                Some(_) => {}
            }
            if timers.is_empty() {
                assert_eq!(fired, ["b", "a"]);
                out.done(());
            }
            Ok(())
        }));
        assert!(rt.wait(process.unwrap()).is_done());
        assert_in_time(ms(25), rt.now());
    });
}

// pins: T8
#[test]
fn silence_counts_from_the_last_message() {
    sim(12).run(|rt| {
        let mut silence = ReceiveTimeout::new(ms(10), 1);
        let process = rt.spawn(process_fn(move |ctx, events, out| {
            if !silence.is_running() {
                silence.start(ctx.now(), out);
            }
            for event in events {
                match event {
                    Event::Message(_) => silence.heard(ctx.now()),
                    Event::Completion(it) if silence.is_over(&it, ctx.now(), out) => out.done(()),
                    _ => {}
                }
            }
            Ok(())
        }));
        let process = process.unwrap();
        for millis in [4, 8, 15] {
            let envelope = Envelope::new(None, process.pid(), "n", ());
            let _ = timers(rt).send_after(ms(millis), envelope);
        }
        assert!(rt.wait(process).is_done());
        assert_in_time(ms(25), rt.now());
    });
}

/// Ends when it has heard nothing for some time.
struct Idle(ReceiveTimeout);

impl Actor for Idle {
    type Message = bool;

    fn started(&mut self, ctx: &Context, out: &mut StepOutput) -> StepResult {
        self.0.start(ctx.now(), out);
        out.sleep(ms(1), 2);
        Ok(())
    }

    fn receive(&mut self, ctx: &Context, counts: bool, _: &mut StepOutput) -> StepResult {
        if counts {
            self.0.heard(ctx.now());
        }
        Ok(())
    }

    fn completed(&mut self, ctx: &Context, it: Completion, out: &mut StepOutput) -> StepResult {
        if self.0.is_over(&it, ctx.now(), out) {
            out.done(());
        }
        Ok(())
    }
}

// pins: T8
#[test]
fn an_actor_begins_its_idle_time_when_it_has_started() {
    // A message before the first step, and a later message, which counts or does not.
    for (counts, end) in [(true, 14), (false, 10)] {
        sim(16).check_seeds(20, |rt| {
            let idle = rt.spawn(Idle(ReceiveTimeout::new(ms(10), 1))).unwrap();
            idle.address().send(false).unwrap();
            let later = Envelope::new(None, idle.pid(), "", counts);
            let _ = timers(rt).send_after(ms(4), later);
            assert!(rt.wait(idle).is_done());
            assert_in_time(ms(end), rt.now());
        });
    }
}

// pins: T8
#[test]
fn a_state_that_is_left_in_time_has_no_timeout() {
    sim(13).run(|rt| {
        let mut timeout = StateTimeout::new(1);
        let process = rt.spawn(process_fn(move |_, events, out| {
            match events.next() {
                None => {
                    timeout.enter(ms(10), out);
                    out.sleep(ms(9), 2);
                }
                Some(Event::Completion(it)) if timeout.is_over(&it) => out.done(()),
                Some(Event::Completion(_)) => timeout.enter(ms(10), out),
                Some(_) => {}
            }
            Ok(())
        }));
        assert!(rt.wait(process.unwrap()).is_done());
        assert_in_time(ms(19), rt.now());
    });
}

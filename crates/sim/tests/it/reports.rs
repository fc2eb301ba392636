//! The report of a failed run.

use ganger_proc_api::{
    Command, CommandId, Completer, Context, Event, Events, Message, Process, StepOutput, StepResult,
};
use ganger_sched::ProcessHandle;
use ganger_sim::{Faults, Rt, Sim};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Ends when it is cancelled.
struct Waits;

impl Process for Waits {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if events.any(|event| matches!(event, Event::Cancel(_))) {
            out.done(());
        }
        Ok(())
    }
}

fn panic_of(f: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).unwrap_err();
    let text = panic.downcast_ref::<String>().cloned();
    text.unwrap_or_else(|| panic.downcast_ref::<&str>().unwrap().to_string())
}

#[test]
fn what_the_seed_does_not_decide_is_said_not_to_repeat() {
    let runs = AtomicU64::new(0);
    let check = |wrong: &dyn Fn(u64) -> bool| {
        runs.store(0, Ordering::SeqCst);
        panic_of(|| {
            Sim::check(10, |rt| {
                let waits = rt.submit(Waits, "main", ()).unwrap();
                rt.settle();
                rt.cancel(waits.pid(), "enough").unwrap();
                rt.wait(waits);
                let nth = runs.fetch_add(1, Ordering::SeqCst);
                assert!(!wrong(nth), "on purpose");
            });
        })
    };
    let report = check(&|nth| nth == 3);
    assert!(report.starts_with("seed 3 fails: on purpose"), "{report}");
    let plainly = "It did not fail again when the same decisions were made once more: something \
                   in the test is not decided by the seed (threads,";
    assert!(report.contains(plainly), "{report}");
    assert!(!report.contains("GANGER_SIM"), "{report}");
    assert!(report.contains("Its last moves:\n"), "{report}");
    assert_eq!(runs.load(Ordering::SeqCst), 5, "it is tried once more");
    let report = check(&|nth| nth >= 3);
    assert!(report.contains("Repeat it: GANGER_SIM_SEED=3 "), "{report}");
}

const ASK: CommandId = CommandId::new(264);

/// Asks once, and ends with the answer; fails when told so.
struct Asks(bool);

impl Process for Asks {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if !self.0 {
            self.0 = true;
            out.yield_command(Command::new(ASK, ()), 5);
        }
        for event in events {
            match event {
                Event::Message(_) => return Err("it was told to".into()),
                _ => out.done(()),
            }
        }
        Ok(())
    }
}

/// Returns the trace of an asking process and of a failing process.
fn asked(faults: Faults) -> String {
    let report = Sim::new(1).faults(faults).run(|rt| {
        let answer = |_: Command, completer: Completer| {
            completer.complete(());
            Ok(())
        };
        rt.register(ASK, "oracle", answer).unwrap();
        let asks = rt.submit(Asks(false), "ask", ()).unwrap();
        rt.wait(asks);
        let fails = rt.submit(Asks(true), "fail", ()).unwrap();
        for topic in ["get", "put"] {
            let _gone = fails.send(Message::new(topic, ()));
        }
        rt.wait(fails);
    });
    report.trace.to_string()
}

#[test]
fn a_trace_shows_what_steps_see_and_yield_and_how_processes_end() {
    let trace = asked(Faults::default());
    for line in [
        "runs {sim|4294967296} (ask, Asks)\n  yields oracle (tag 5)\n",
        "1 answer: 5\n  {sim|4294967296} (ask, Asks) ended: done\n",
        "runs {sim|4294967297} (fail, Asks), 2 messages: get, put\n  \
         {sim|4294967297} (fail, Asks) ended: failed: it was told to\n",
    ] {
        assert!(trace.contains(line), "{line}\nis not in\n{trace}");
    }
}

#[test]
fn a_trace_shows_the_faults_that_happen() {
    let cases = [
        (
            Faults {
                handler_drops: 1_000,
                ..Faults::default()
            },
            "(tag 5)\n  fault: oracle of {sim|4294967296} (ask, Asks), tag 5: its completer is \
             dropped\n",
        ),
        (
            Faults {
                handler_fails: 1_000,
                ..Faults::default()
            },
            "fault: oracle of {sim|4294967296} (ask, Asks), tag 5: it fails\n",
        ),
        (
            Faults {
                handler_answers_twice: 1_000,
                ..Faults::default()
            },
            "(ask, Asks), tag 5: it fails, and is answered as well\n",
        ),
        (
            Faults {
                handler_is_late: 1_000,
                ..Faults::default()
            },
            "ms late\n",
        ),
        (
            Faults {
                handler_is_late: 1_000,
                ..Faults::default()
            },
            "timer\n  the late answer of oracle to {sim|4294967296} (ask, Asks), tag 5\n",
        ),
        (
            Faults {
                step_panics: 1_000,
                ..Faults::default()
            },
            "  fault: the step of {sim|4294967296} (ask, Asks) panics\n  \
             {sim|4294967296} (ask, Asks) ended: panicked: a fault of the simulation",
        ),
        (
            Faults {
                clock_jumps: 500,
                ..Faults::default()
            },
            "fault: the clock jumps by ",
        ),
        (
            Faults {
                worker_stalls: 500,
                ..Faults::default()
            },
            "fault: worker 0 stands still until move ",
        ),
        (
            Faults {
                steal_fails: 500,
                ..Faults::default()
            },
            "fault: the steal fails\n",
        ),
        (
            Faults {
                process_is_terminated: 1_000,
                ..Faults::default()
            },
            "{sim|4294967296} (ask) ended: terminated\n",
        ),
    ];
    for (faults, line) in cases {
        let trace = asked(faults);
        assert!(trace.contains(line), "{line}\nis not in\n{trace}");
        assert_eq!(trace, asked(faults), "byte for byte");
    }
}

#[test]
fn a_report_shows_what_is_left_when_nothing_moves() {
    let report = panic_of(|| {
        Sim::new(1).check_seeds(1, |rt| {
            let waits = rt.submit(Waits, "main", ()).unwrap();
            rt.wait(waits);
        });
    });
    let left = "\nWhat is left:\nscheduler sim: 2 workers";
    assert!(report.contains(left), "{report}");
    let of = "{sim|4294967296} (main of ";
    assert!(report.contains(of), "{report}");
    assert!(report.contains("::Waits): Idle, ran "), "{report}");
    assert!(report.contains("use `rt.clock().after`"), "{report}");
}

/// Goes on for ever.
struct Goes;

impl Process for Goes {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        out.defer_cancel();
        out.step_again();
        Ok(())
    }
}

fn submit(rt: &Rt<'_>, process: impl Process) -> ProcessHandle {
    rt.submit(process, "main", ()).unwrap()
}

fn fails_at(line: u32, call: fn(&Rt<'_>)) {
    let place = format!("({}:{line}:", file!());
    let sim = Sim::new(1).max_moves(500);
    let report = panic_of(|| drop(sim.run(call)));
    assert!(report.contains(&place), "{place} is not in {report}");
    let report = panic_of(|| sim.check_seeds(1, call));
    assert!(report.contains(&place), "{place} is not in {report}");
}

#[test]
fn what_cannot_go_on_fails_where_the_test_has_called_it() {
    const LONG: Duration = Duration::from_secs(3_600);
    fails_at(line!(), |rt| _ = rt.wait(submit(rt, Waits)));
    fails_at(line!(), |rt| _ = rt.wait(submit(rt, Goes)));
    fails_at(line!(), |rt| drop((submit(rt, Goes), rt.settle())));
    fails_at(line!(), |rt| drop((submit(rt, Goes), rt.run_for(LONG))));
    fails_at(line!(), |rt| drop((submit(rt, Goes), rt.stop(LONG))));
    fails_at(line!(), |rt| drop((submit(rt, Goes), while rt.step() {})));
}

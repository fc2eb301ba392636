//! A run is decided by its seed, it is checked, and it is over when nothing is left.

use ganger_proc_api::{
    BoxError, CancelReason, Command, CommandId, Completer, Context, Event, Events, ExitReason,
    Lifecycle, Message, Pid, Process, StepOutput, StepResult,
};
use ganger_sched::{Builder, Handle};
use ganger_sim::{Faults, Rt, Sim, Strategy};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// Passes a number on until it is zero.
struct Ring {
    next: Option<Pid>,
    handled: Arc<AtomicU64>,
}

impl Process for Ring {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            let Event::Message(message) = event else {
                out.done(());
                continue;
            };
            let payload = message.payloads.into_first();
            if let Some(next) = payload.as_pid() {
                self.next = Some(next);
            } else if let Some(left) = payload.as_u64() {
                self.handled.fetch_add(1, Ordering::SeqCst);
                if let (Some(left), Some(next)) = (left.checked_sub(1), self.next) {
                    ctx.send(next, "token", left)?;
                }
            }
        }
        Ok(())
    }
}

/// Tokens go round in a ring; returns the number of hops.
fn ring(rt: &Rt<'_>, members: usize, tokens: usize, hops: u64) -> u64 {
    let handled = Arc::new(AtomicU64::new(0));
    let member = |_| {
        let member = Ring {
            next: None,
            handled: Arc::clone(&handled),
        };
        rt.submit(member, "main", ()).unwrap()
    };
    let ring: Vec<_> = (0..members).map(member).collect();
    for (nth, member) in ring.iter().enumerate() {
        let next = ring[(nth + 1) % members].pid();
        member.send(Message::new("next", next)).unwrap();
    }
    for token in 0..tokens {
        ring[token % members]
            .send(Message::new("token", hops))
            .unwrap();
    }
    rt.settle();
    handled.load(Ordering::SeqCst)
}

/// Returns the message of a panic.
fn panic_of(f: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).unwrap_err();
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_owned()))
        .unwrap()
}

#[test]
fn the_same_seed_does_the_same_byte_for_byte() {
    for strategy in [
        Strategy::Random,
        Strategy::Priorities {
            changes: 3,
            moves: 200,
        },
    ] {
        let mut traces = Vec::new();
        for seed in 0..50 {
            let sim = Sim::new(seed)
                .workers(3)
                .strategy(strategy)
                .faults(Faults::some());
            let run = || sim.run(|rt| assert_eq!(ring(rt, 5, 3, 10), 33));
            let (first, again) = (run(), run());
            assert_eq!(first.trace.to_string(), again.trace.to_string());
            let replayed = sim.replay(&first.decisions, |rt| assert_eq!(ring(rt, 5, 3, 10), 33));
            assert_eq!(replayed.trace, first.trace);
            traces.push(first.trace.to_string());
        }
        traces.sort();
        traces.dedup();
        assert!(traces.len() > 40, "{} of 50 seeds differ", traces.len());
    }
}

#[test]
fn a_run_is_what_it_has_always_been() {
    let report = Sim::new(42).run(|rt| assert_eq!(ring(rt, 2, 1, 1), 2));
    let golden = include_str!("golden.txt");
    assert_eq!(
        report.trace.to_string(),
        golden,
        "the moves of seed 42 have changed"
    );
}

#[test]
fn all_messages_arrive_whoever_moves_when() {
    for workers in 1..=4 {
        let faults = Faults {
            worker_stalls: 50,
            steal_fails: 300,
            ..Faults::some()
        };
        let sim = Sim::new(1_000).workers(workers).faults(faults);
        sim.check_seeds(60, |rt| assert_eq!(ring(rt, 7, 5, 20), 105));
    }
}

#[test]
fn every_way_of_a_small_case_is_tried() {
    let explored = Sim::new(0).workers(1).explore(100_000, |rt| {
        assert_eq!(ring(rt, 1, 1, 1), 2);
    });
    assert!(explored.is_complete && explored.runs > 1, "{explored:?}");
    let some = Sim::new(0)
        .workers(2)
        .explore(2_000, |rt| assert_eq!(ring(rt, 2, 1, 2), 3));
    assert_eq!((some.runs, some.is_complete), (2_000, false));
}

/// Ends when it is cancelled, unless `self.0` says otherwise.
struct Waits(bool);

impl Process for Waits {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if self.0 {
            events.for_each(drop);
        } else {
            out.defer_cancel();
        }
        Ok(())
    }
}

// pins: D1, D2
#[test]
fn a_stop_asks_waits_and_forces_by_the_clock_of_the_simulation() {
    for seed in 0..100 {
        let sim = Sim::new(seed).workers(3).faults(Faults::some());
        sim.run(|rt| {
            let polite = (0..5).map(|_| rt.submit(Waits(true), "main", ()).unwrap());
            let polite: Vec<_> = polite.collect();
            let stubborn = rt.submit(Waits(false), "main", ()).unwrap();
            for _ in 0..rt.choose(30) {
                rt.step();
            }
            let hour = Duration::from_secs(3_600);
            let report = rt.stop(hour);
            assert_eq!((report.completed, report.forced), (5, 1));
            assert_eq!((report.closing, report.stuck), (0, vec![]));
            assert!(rt.now() >= hour);
            assert!(matches!(stubborn.wait(), ExitReason::Terminated));
            assert!(
                polite
                    .into_iter()
                    .all(|it| matches!(it.wait(), ExitReason::Cancelled(CancelReason::Shutdown)))
            );
            assert!(rt.submit(Waits(true), "main", ()).is_err());
        });
    }
}

const SLEEP: CommandId = CommandId::new(256);

/// Sleeps `self.0` times, and ends.
struct Sleeper(u64);

impl Process for Sleeper {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        out.defer_cancel();
        if self.0 == 0 {
            out.done(());
        } else {
            self.0 -= 1;
            out.yield_command(Command::new(SLEEP, ()), self.0);
        }
        Ok(())
    }
}

fn register_sleep(rt: &Rt<'_>, time: Duration) {
    let clock = rt.clock();
    let sleep = move |_: Command, completer: Completer| {
        clock.after(time, move || completer.complete(()));
        Ok(())
    };
    rt.register(SLEEP, "sleep", sleep).unwrap();
}

#[test]
fn time_passes_when_nobody_can_move() {
    let hour = Duration::from_secs(3_600);
    let report = Sim::new(3).run(|rt| {
        register_sleep(rt, hour);
        let sleeper = rt.submit(Sleeper(10), "main", ()).unwrap();
        // Each turn takes a moment as well.
        let is_about = |time| (time..time + Duration::from_millis(1)).contains(&rt.now());
        rt.run_for(hour / 2);
        assert!(is_about(hour / 2), "{:?}", rt.now());
        let other = rt.submit(Sleeper(1), "main", ()).unwrap();
        rt.wait(other);
        assert!(is_about(hour / 2 + hour), "{:?}", rt.now());
        rt.wait(sleeper);
        assert!(is_about(10 * hour), "{:?}", rt.now());
    });
    assert!(report.moves < 10_000, "{}", report.moves);
}

#[test]
fn what_can_go_wrong_does() {
    let per_mille = 300;
    let run = |faults| {
        let ends = [(); 4].map(|()| AtomicU64::new(0));
        for seed in 0..50 {
            Sim::new(seed).faults(faults).run(|rt| {
                register_sleep(rt, Duration::from_millis(1));
                let sleeper = rt.submit(Sleeper(5), "main", ()).unwrap();
                let end = match rt.wait(sleeper) {
                    ExitReason::Done(_) => 0,
                    ExitReason::Panicked(_) => 1,
                    ExitReason::Terminated => 2,
                    _ => 3,
                };
                ends[end].fetch_add(1, Ordering::SeqCst);
                if rt.now() > Duration::from_secs(1) {
                    ends[3].fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        ends.map(AtomicU64::into_inner)
    };
    assert_eq!(run(Faults::default()), [50, 0, 0, 0]);
    let faults = Faults {
        step_panics: per_mille,
        ..Faults::default()
    };
    assert!(run(faults)[1] > 25);
    let faults = Faults {
        process_is_terminated: per_mille,
        ..Faults::default()
    };
    assert!(run(faults)[2] > 25);
    let faults = Faults {
        clock_jumps: per_mille,
        ..Faults::default()
    };
    assert!(run(faults)[3] > 25);
    for set in [
        |faults: &mut Faults| faults.handler_is_late = 1_000,
        |faults: &mut Faults| faults.handler_drops = 1_000,
        |faults: &mut Faults| faults.handler_fails = 1_000,
        |faults: &mut Faults| faults.process_is_cancelled = 100,
    ] {
        let mut faults = Faults::default();
        set(&mut faults);
        assert_eq!(run(faults)[0], 50, "it goes on after any completion");
    }
}

#[test]
fn a_run_that_does_not_end_is_found() {
    struct Goes;
    impl Process for Goes {
        fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
            out.step_again();
            Ok(())
        }
    }
    let sim = Sim::new(0).max_moves(1_000);
    let report = panic_of(|| {
        sim.run(|rt| {
            let goes = rt.submit(Goes, "main", ()).unwrap();
            rt.wait(goes);
        });
    });
    assert!(report.contains("no end after 1000 moves"), "{report}");
    assert!(report.contains("runs {sim|"), "{report}");
    let report = panic_of(|| {
        sim.run(|rt| {
            let waits = rt.submit(Waits(true), "main", ()).unwrap();
            rt.wait(waits);
        });
    });
    assert!(report.contains("nothing moves any more"), "{report}");
}

// pins: D3
#[test]
fn a_process_that_never_waits_is_forced_to_end_at_the_deadline() {
    struct Goes;
    impl Process for Goes {
        fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
            out.defer_cancel();
            out.step_again();
            Ok(())
        }
    }
    for seed in 0..20 {
        Sim::new(seed).faults(Faults::some()).run(|rt| {
            let goes = rt.submit(Goes, "main", ()).unwrap();
            rt.run_for(Duration::from_micros(100));
            let report = rt.stop(Duration::from_millis(1));
            assert_eq!((report.completed, report.forced), (0, 1));
            assert!(matches!(goes.wait(), ExitReason::Terminated));
            // No actor can move any more, not even the monitor.
            rt.settle();
        });
    }
}

/// Its step begins to stop the scheduler, with each of these deadlines.
struct Begins(ganger_sched::Handle, [Duration; 2]);

impl Process for Begins {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        self.1.iter().for_each(|after| self.0.begin_stop(*after));
        out.done(());
        Ok(())
    }
}

// pins: D1, D3
#[test]
fn a_stop_that_a_step_begins_goes_by_the_clock_of_the_simulation() {
    for seed in 0..100 {
        Sim::new(seed).workers(2).run(|rt| {
            let hour = Duration::from_secs(3_600);
            let polite = rt.submit(Waits(true), "main", ()).unwrap();
            let stubborn = rt.submit(Waits(false), "main", ()).unwrap();
            let begins = Begins((**rt).clone(), [2 * hour, hour]);
            drop(rt.submit(begins, "main", ()).unwrap());
            assert!(matches!(rt.wait(stubborn), ExitReason::Terminated));
            assert!((hour..2 * hour).contains(&rt.now()));
            let report = rt.stop(hour);
            assert_eq!((report.completed, report.forced), (2, 1));
            assert!(matches!(rt.wait(polite), ExitReason::Cancelled(_)));
        });
    }
}

#[test]
fn what_would_block_for_ever_is_refused() {
    let report = panic_of(|| {
        Sim::new(0).run(|rt| {
            let waits = rt.submit(Waits(true), "main", ()).unwrap();
            let _end = waits.wait();
        });
    });
    assert!(report.contains("use `Rt::wait`"), "{report}");
    let report = panic_of(|| {
        Sim::new(0).run(|rt| _ = (**rt).stop(Duration::ZERO));
    });
    assert!(report.contains("use `Rt::stop`"), "{report}");
}

#[test]
fn a_late_answer_is_what_it_would_have_been() {
    let faults = Faults {
        handler_is_late: 1_000,
        ..Faults::default()
    };
    struct Asks;
    impl Process for Asks {
        fn step(
            &mut self,
            _: &Context,
            events: &mut Events<'_>,
            out: &mut StepOutput,
        ) -> StepResult {
            match events.next() {
                Some(Event::Completion(completion)) => {
                    let text = completion.result.err().map(|error| error.to_string());
                    out.done(text.unwrap_or_default());
                }
                _ => out.yield_command(Command::new(SLEEP, ()), 1),
            }
            Ok(())
        }
    }
    type Handler = fn(Command, Completer) -> Result<(), BoxError>;
    let ways: [(Handler, &str); 3] = [
        (|_, _| Err("broken".into()), "broken"),
        (
            |_, _| panic!("on purpose"),
            "the handler panicked: on purpose",
        ),
        (
            |_, completer| {
                completer.fail("no luck");
                Ok(())
            },
            "no luck",
        ),
    ];
    for (handler, expected) in ways {
        Sim::new(7).faults(faults).run(|rt| {
            rt.register(SLEEP, "ask", handler).unwrap();
            let asks = rt.submit(Asks, "main", ()).unwrap();
            let ExitReason::Done(text) = rt.wait(asks) else {
                panic!("it does not end like this");
            };
            assert_eq!(text.as_str(), Some(expected));
        });
    }
}

// pins: G6
#[test]
fn spares_run_what_waits_behind_steps_that_block() {
    struct Quick;
    impl Process for Quick {
        fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
            out.done(());
            Ok(())
        }
    }
    let faults = Faults {
        step_blocks: 500,
        ..Faults::some()
    };
    // How long 20 processes take until the last has ended, and how many workers were relieved.
    let time = |spares| {
        let sim = Sim::new(0).workers(1).spares(spares).faults(faults);
        let (last, relieved) = (AtomicU64::new(0), AtomicU64::new(0));
        sim.must_free().check_seeds(50, |rt| {
            let handles: Vec<_> = (0..20)
                .map(|_| rt.submit(Quick, "main", ()).unwrap())
                .collect();
            handles.into_iter().for_each(|it| _ = rt.wait(it));
            let millis = u64::try_from(rt.now().as_millis()).unwrap();
            last.fetch_add(millis, Ordering::SeqCst);
            let stats = rt.stats();
            let long = stats.total.long_steps + stats.total.blocked_steps;
            relieved.fetch_add(long, Ordering::SeqCst);
            assert!(stats.spares <= spares);
            rt.settle();
            assert_eq!(rt.stats().relieved, 0, "all have stood down");
        });
        (last.into_inner(), relieved.into_inner())
    };
    let (alone, none) = time(0);
    let (together, relieved) = time(8);
    assert_eq!(none, 0);
    assert!(relieved > 50, "{relieved} were relieved");
    assert!(
        2 * together < alone,
        "{together} ms with spares, {alone} ms without"
    );
}

#[test]
fn what_keeps_the_schedulers_memory_is_found() {
    let kept = std::cell::RefCell::new(None);
    let sim = Sim::new(1).must_free();
    sim.run(|rt| drop(rt.submit(Waits(true), "main", ()).unwrap()));
    let report = panic_of(|| {
        sim.run(|rt| _ = kept.replace(Some(rt.submit(Waits(true), "main", ()).unwrap())));
    });
    assert!(report.contains("memory is not freed"), "{report}");
}

#[test]
fn a_test_that_fails_leaves_the_next_one_alone() {
    for seed in 0..20 {
        let report = panic_of(|| {
            Sim::new(seed).run(|rt| {
                let handles: Vec<_> = (0..10)
                    .map(|_| rt.submit(Waits(false), "main", ()))
                    .collect();
                (0..rt.choose(40)).for_each(|_| _ = rt.step());
                drop(handles);
                panic!("on purpose");
            });
        });
        assert!(report.contains("on purpose"), "{report}");
    }
    Sim::new(1).run(|rt| assert_eq!(ring(rt, 3, 1, 3), 4));
}

/// Ends in its first step.
struct Quick;

impl Process for Quick {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        out.done(());
        Ok(())
    }
}

/// Starts a process under the PID of an ended process, `SUCCESSORS` times.
#[derive(Clone, Default)]
struct Successors {
    handle: Arc<OnceLock<Handle>>,
    started: Arc<AtomicU64>,
}

const SUCCESSORS: u64 = 3;

impl Lifecycle for Successors {
    fn on_complete(&self, pid: Pid, _: &ExitReason) {
        let is_wanted = self.started.fetch_add(1, Ordering::SeqCst) < SUCCESSORS;
        if let Some(handle) = self.handle.get().filter(|_| is_wanted) {
            drop(handle.submit_as(pid, Quick, "main", ()).unwrap());
        }
    }
}

/// Gives the PID of an ended process to another process in a hook. The accounts keep the two
/// processes apart: the PID is free when the hook is called.
// pins: P12
#[test]
fn a_hook_may_give_the_pid_of_one_that_has_ended_to_another() {
    for seed in 0..20 {
        let successors = Successors::default();
        let hook = successors.clone();
        let sim = Sim::new(seed).builder(move |builder| builder.lifecycle(hook.clone()));
        sim.run(|rt| {
            drop(successors.handle.set(Handle::clone(rt)));
            let first = rt.submit(Quick, "main", ()).unwrap();
            let pid = Pid::new(first.pid().host(), 7);
            drop(rt.submit_as(pid, Quick, "main", ()).unwrap());
            drop(first);
            rt.settle();
        });
        let ended = successors.started.load(Ordering::SeqCst);
        assert!(ended > SUCCESSORS, "{ended} have ended");
    }
}

/// Fails at its first step.
struct Fails;

impl Process for Fails {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
        Err("no disk".into())
    }
}

// pins: F2
#[test]
fn failures_are_told_in_the_order_of_the_run() {
    let reports = |seed| {
        let reports = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&reports);
        let noting = move |builder: Builder| {
            let noted = Arc::clone(&noted);
            builder.on_failure(move |it| noted.lock().unwrap().push(it.to_string()))
        };
        Sim::new(seed).workers(3).builder(noting).run(|rt| {
            for _ in 0..20 {
                drop(rt.submit(Fails, "main", ()).unwrap());
            }
            rt.settle();
        });
        let reports = reports.lock().unwrap().clone();
        assert_eq!(reports.len(), 20);
        reports
    };
    assert_eq!(reports(7), reports(7));
    assert!((8..100).any(|seed| reports(seed) != reports(7)));
}

//! Yields, handlers and completions.

use crate::support::*;
use ganger_proc_api::{
    BoxError, Command, CommandError, CommandId, Completer, Completion, Context, Event, Payload,
    UpgradeRequest,
};
use ganger_sched::{ProcessState, RegisterErrorKind, Scheduler};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

const DO: CommandId = CommandId::new(256);
const HIGH: CommandId = CommandId::new(20_000);

fn with_handler<H>(workers: usize, handler: H) -> Scheduler
where
    H: Fn(Command, Completer) -> Result<(), BoxError> + Send + Sync + 'static,
{
    let scheduler = Scheduler::builder().workers(workers).build().unwrap();
    let handler = Arc::new(handler);
    for (id, name) in [(DO, "do"), (HIGH, "high")] {
        let handler = Arc::clone(&handler);
        scheduler
            .register(id, name, move |c: Command, a: Completer| handler(c, a))
            .unwrap();
    }
    scheduler.start().unwrap();
    scheduler
}

/// Creates a process that yields a command and finishes with a description of its completion.
fn asker(id: CommandId) -> impl ganger_proc_api::Process {
    process(move |_, events, out| {
        match events.next() {
            None => out.yield_command(Command::new(id, 7_u64), 42),
            Some(Event::Completion(Completion { tag, result, .. })) => {
                assert_eq!(tag, 42);
                assert!(events.next().is_none(), "one completion a yield");
                out.done(match result {
                    Ok(payload) => format!("{payload:?}"),
                    Err(error) => error.to_string(),
                });
            }
            Some(other) => panic!("{other:?}"),
        }
        Ok(())
    })
}

fn ask(scheduler: &Scheduler, id: CommandId) -> String {
    let handle = scheduler.submit(asker(id), "main", ()).unwrap();
    exit(handle).into_result().unwrap().into_string().unwrap()
}

// pins: P6
#[test]
fn every_way_for_a_handler_to_end_gives_one_completion() {
    quiet_panics();
    type Handler = fn(Command, Completer) -> Result<(), BoxError>;
    let ways: [(Handler, &str); 13] = [
        (
            |c, a| {
                a.complete(c.payloads.into_first());
                Ok(())
            },
            "7",
        ),
        (
            |_, a| {
                a.fail("no luck");
                Ok(())
            },
            "no luck",
        ),
        (
            |_, _| Ok(()),
            "no answer: the handler or the called process dropped the completer",
        ),
        (|_, _| Err("broken".into()), "broken"),
        // The handler's error counts more than the drop of the completer.
        (
            |_, a| {
                a.finish(Err(CommandError::Dropped));
                Err("broken".into())
            },
            "broken",
        ),
        (
            |_, a| {
                let (pid, tag) = (a.pid().unwrap(), a.tag());
                drop(Completer::from_fn(pid, tag, |c| a.finish(c.result)));
                panic!("on purpose")
            },
            "the handler panicked: on purpose",
        ),
        (
            |_, a| {
                a.fail("no luck");
                Err("late error".into())
            },
            "no luck",
        ),
        (
            |_, _| panic!("on purpose"),
            "the handler panicked: on purpose",
        ),
        (
            |_, a| {
                a.complete(1);
                Err("late error".into())
            },
            "1",
        ),
        (
            |_, a| {
                a.complete(2);
                panic!("on purpose")
            },
            "2",
        ),
        (
            |_, a| {
                thread::spawn(move || a.complete(3));
                Ok(())
            },
            "3",
        ),
        (
            |_, a| {
                thread::spawn(move || a.fail("elsewhere"));
                Ok(())
            },
            "elsewhere",
        ),
        (
            |_, a| {
                thread::spawn(move || drop(a));
                Ok(())
            },
            "no answer: the handler or the called process dropped the completer",
        ),
    ];
    for (way, expected) in ways {
        let scheduler = with_handler(2, way);
        for id in [DO, HIGH] {
            assert_eq!(ask(&scheduler, id), expected);
        }
    }
}

// pins: P6
#[test]
fn an_unknown_command_completes_with_an_error() {
    let scheduler = with_handler(1, |_, _| Ok(()));
    for id in [60_u16, 255, 257, 512, u16::MAX] {
        let expected = format!(
            "no handler is registered for command {id}; register one before the scheduler starts"
        );
        assert_eq!(ask(&scheduler, id.into()), expected);
    }
}

// pins: P6, P7
#[test]
fn an_error_of_a_handler_that_gave_its_completer_away_comes_once() {
    let (give, given) = mpsc::channel();
    let give = Mutex::new(give);
    let scheduler = with_handler(1, move |_, completer| {
        give.lock().unwrap().send(completer).unwrap();
        Err("gave up".into())
    });
    let mut completions = Vec::new();
    let process = process(move |_, events, out| {
        if events.is_empty() {
            out.yield_command(Command::new(DO, ()), 1);
        }
        for event in events {
            match event {
                Event::Completion(completion) => completions.push(completion),
                _ => out.done(completions.len()),
            }
        }
        Ok(())
    });
    let handle = scheduler.submit(process, "main", ()).unwrap();
    given.recv().unwrap().complete(5);
    until("the second completion was dropped", || {
        scheduler.stats().total.stale_completions == 1
    });
    scheduler.cancel(handle.pid(), "count").unwrap();
    assert_eq!(exit_number(handle), 1);
}

// pins: P6
#[test]
fn out_of_order_completions_correlate_by_tag() {
    const YIELDS: u64 = 200;
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&kept);
    let scheduler = with_handler(2, move |command, completer| {
        keep.lock()
            .unwrap()
            .push((command.payloads.into_first().as_u64().unwrap(), completer));
        Ok(())
    });
    let mut seen = Vec::new();
    let process = process(move |_, events, out| {
        if events.is_empty() {
            for n in 0..YIELDS {
                out.yield_command(Command::new(DO, n), n);
            }
        }
        for event in events {
            let Event::Completion(completion) = event else {
                panic!()
            };
            let doubled = completion.result?.as_u64().unwrap();
            assert_eq!(doubled, 2 * completion.tag);
            seen.push(completion.tag);
        }
        if seen.len() as u64 == YIELDS {
            seen.sort_unstable();
            assert!(seen.iter().copied().eq(0..YIELDS));
            out.done(YIELDS);
        }
        Ok(())
    });
    let handle = scheduler.submit(process, "main", ()).unwrap();
    until("all were yielded", || {
        kept.lock().unwrap().len() as u64 == YIELDS
    });
    let completers = std::mem::take(&mut *kept.lock().unwrap());
    let (even, odd): (Vec<_>, Vec<_>) = completers.into_iter().partition(|(n, _)| n % 2 == 0);
    let complete = |list: Vec<(u64, Completer)>| {
        thread::spawn(move || list.into_iter().rev().for_each(|(n, c)| c.complete(2 * n)))
    };
    let threads = [complete(even), complete(odd)];
    assert_eq!(exit_number(handle), YIELDS);
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(scheduler.stats().total.stale_completions, 0);
}

// pins: P3
#[test]
fn yields_are_dispatched_in_order_before_the_outcome() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&order);
    let scheduler = with_handler(1, move |command, completer| {
        seen.lock()
            .unwrap()
            .push(command.payloads.into_first().as_u64().unwrap());
        completer.complete(());
        Ok(())
    });
    let closed = Arc::clone(&order);
    struct Yielder(Arc<Mutex<Vec<u64>>>, &'static str);
    impl ganger_proc_api::Process for Yielder {
        fn step(
            &mut self,
            _: &Context,
            _: &mut ganger_proc_api::Events<'_>,
            out: &mut ganger_proc_api::StepOutput,
        ) -> Result<(), BoxError> {
            for n in 0..5_u64 {
                out.yield_command(Command::new(DO, n), n);
            }
            match self.1 {
                "done" => out.done(()),
                "upgrade" => out.upgrade(UpgradeRequest::process(waiter(), "main", ())),
                _ => return Err("failed".into()),
            }
            Ok(())
        }

        fn close(&mut self) {
            self.0.lock().unwrap().push(99);
        }
    }
    for outcome in ["done", "upgrade", "error"] {
        let yielder = Yielder(Arc::clone(&closed), outcome);
        let handle = scheduler.submit(yielder, "main", ()).unwrap();
        if outcome == "upgrade" {
            until_state(&scheduler, handle.pid(), ProcessState::Idle);
            scheduler.cancel(handle.pid(), "end").unwrap();
        }
        exit(handle);
        assert_eq!(
            std::mem::take(&mut *order.lock().unwrap()),
            [0, 1, 2, 3, 4, 99],
            "{outcome}"
        );
    }
    // P7: the completions went nowhere, and were counted.
    assert_eq!(scheduler.stats().total.stale_completions, 15);
}

// pins: P8
#[test]
fn a_step_that_panics_has_yielded_nothing() {
    quiet_panics();
    let called = Arc::new(AtomicUsize::new(0));
    let calls = Arc::clone(&called);
    let scheduler = with_handler(1, move |_, completer| {
        calls.fetch_add(1, Ordering::SeqCst);
        completer.complete(());
        Ok(())
    });
    let process = process(|_, _, out| {
        out.yield_command(Command::new(DO, ()), 1);
        panic!("on purpose")
    });
    exit(scheduler.submit(process, "main", ()).unwrap());
    // The next process does not inherit them either.
    assert_eq!(ask(&scheduler, DO), "()");
    assert_eq!(called.load(Ordering::SeqCst), 1);
}

// pins: P6
#[test]
fn a_completion_may_arrive_before_the_step_is_left() {
    let (give, given) = mpsc::channel();
    let give = Mutex::new(give);
    let (completed, is_completed) = mpsc::channel::<()>();
    let is_completed = Mutex::new(is_completed);
    let completer_thread = thread::spawn(move || {
        let completer: Completer = given.recv().unwrap();
        completer.complete(1);
        completed.send(()).unwrap();
    });
    let scheduler = with_handler(1, move |_, completer| {
        give.lock().unwrap().send(completer)?;
        is_completed.lock().unwrap().recv()?;
        Ok(())
    });
    assert_eq!(ask(&scheduler, DO), "1");
    completer_thread.join().unwrap();
}

// pins: P7
#[test]
fn completions_for_ended_processes_are_dropped_and_counted() {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&kept);
    let scheduler = with_handler(1, move |_, completer| {
        keep.lock().unwrap().push(completer);
        Ok(())
    });
    let ends: [fn(&Scheduler, ganger_proc_api::Pid); 2] = [
        |scheduler, pid| scheduler.terminate(pid).unwrap(),
        |scheduler, pid| scheduler.cancel(pid, "end").unwrap(),
    ];
    for (n, end) in ends.into_iter().enumerate() {
        let process = process(|_, events, out| {
            match events.next() {
                None => out.yield_command(Command::new(DO, ()), 1),
                Some(_) => out.done(()),
            }
            Ok(())
        });
        let handle = scheduler.submit(process, "main", ()).unwrap();
        let pid = handle.pid();
        until_state(&scheduler, pid, ProcessState::Blocked);
        end(&scheduler, pid);
        exit(handle);
        let completer = kept.lock().unwrap().pop().unwrap();
        assert_eq!(completer.pid(), Some(pid));
        completer.complete("too late");
        assert_eq!(scheduler.stats().total.stale_completions, n as u64 + 1);
    }
}

// pins: P6
#[test]
fn a_payload_with_a_panicking_destructor_for_an_unknown_command() {
    quiet_panics();
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("on purpose: payload");
        }
    }
    let scheduler = start(1);
    let process = process(|_, events, out| {
        match events.next() {
            None => {
                let bomb = Payload::any(Bomb);
                out.yield_command(Command::new(CommandId::new(999), bomb), 1);
            }
            Some(Event::Completion(Completion {
                result: Err(error), ..
            })) => {
                assert!(matches!(error, CommandError::Unknown(_)), "{error}");
                out.done(1);
            }
            other => panic!("{other:?}"),
        }
        Ok(())
    });
    assert_eq!(
        exit_number(scheduler.submit(process, "main", ()).unwrap()),
        1
    );
}

// pins: P4
#[test]
fn what_arrived_before_a_completion_comes_before_it() {
    let scheduler = with_handler(1, |_, completer| {
        completer.complete(());
        Ok(())
    });
    let process = process(|ctx, events, out| {
        if events.is_empty() {
            ctx.send(ctx.pid(), "first", ())?;
            out.yield_command(Command::new(DO, ()), 1);
        } else {
            assert!(matches!(events.next(), Some(Event::Message(_))));
            assert!(matches!(events.next(), Some(Event::Completion(_))));
            out.done(1);
        }
        Ok(())
    });
    let process = scheduler.submit(process, "main", ()).unwrap();
    assert_eq!(exit_number(process), 1);
}

#[test]
fn registering_after_start_gives_the_handler_back() {
    let scheduler = start(1);
    let noop = |_: Command, _: Completer| Ok(());
    let error = scheduler.register(DO, "late", noop).unwrap_err();
    assert_eq!(error.kind, RegisterErrorKind::Frozen);
    assert!(error.to_string().contains("late"), "{error}");
    assert!(Arc::strong_count(&error.handler) == 1);
}

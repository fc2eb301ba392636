//! The ways in which a process ends.

use crate::support::*;
use ganger_proc_api::{
    BoxError, CancelReason, Command, CommandId, Completer, Context, Event, Events, ExitReason,
    Handler, Message, Pid, Process, StepOutput, StepResult,
};
use ganger_sched::{ProcessState, Scheduler};
use std::sync::{Arc, mpsc};

// pins: P2
#[test]
fn close_is_called_exactly_once_whatever_ends_the_process() {
    quiet_panics();
    type Step = fn(&Context, &mut Events<'_>, &mut StepOutput) -> StepResult;
    let endings: [(Step, &str); 5] = [
        (
            |_, _, out| {
                out.done(7);
                Ok(())
            },
            "done",
        ),
        (|_, _, _| Err("broken".into()), "failed: broken"),
        (
            |_, _, _| panic!("on purpose: step"),
            "panicked: on purpose: step",
        ),
        (|_, _, _| Ok(()), "terminated"),
        (
            |_, _, out| {
                out.upgrade(ganger_proc_api::UpgradeRequest::factory(
                    "nobody",
                    "main",
                    (),
                ));
                Ok(())
            },
            "upgrade failed: no factory named \"nobody\" is registered",
        ),
    ];
    let scheduler = start(2);
    for (step, expected) in endings {
        let calls = Calls::new();
        let handle = scheduler.submit(counted(&calls, step), "main", ()).unwrap();
        if expected == "terminated" {
            until_state(&scheduler, handle.pid(), ProcessState::Idle);
            scheduler.terminate(handle.pid()).unwrap();
        }
        assert_eq!(exit(handle).to_string(), expected);
        assert_eq!(
            (calls.steps(), calls.closes(), calls.drops()),
            (1, 1, 1),
            "{expected}"
        );
    }
}

// pins: P8
#[test]
fn panics_end_their_process_and_nothing_else() {
    quiet_panics();
    struct Bomb(&'static str);
    impl Process for Bomb {
        fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
            out.done(());
            assert!(self.0 != "step", "on purpose: step");
            Ok(())
        }

        fn close(&mut self) {
            assert!(self.0 != "close", "on purpose: close");
        }
    }
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(self.0 != "drop", "on purpose: drop");
        }
    }
    let scheduler = start(1);
    let bystander = scheduler.submit(waiter(), "main", ()).unwrap();
    for (place, expected) in [
        ("step", "panicked: on purpose: step"),
        ("close", "done"),
        ("drop", "done"),
    ] {
        let bomb = scheduler.submit(Bomb(place), "main", ()).unwrap();
        assert_eq!(exit(bomb).to_string(), expected);
    }
    assert_eq!(scheduler.stats().total.panics, 3);
    scheduler.cancel(bystander.pid(), "enough").unwrap();
    assert!(exit(bystander).is_done());
}

// pins: P9
#[test]
fn terminate_lets_a_running_step_finish_and_starts_no_other() {
    let scheduler = start(1);
    let (entered, has_entered) = mpsc::channel();
    let (leave, may_leave) = mpsc::channel::<()>();
    let calls = Calls::new();
    let handle = scheduler
        .submit(
            counted(&calls, move |_, _, out| {
                entered.send(()).unwrap();
                may_leave.recv().unwrap();
                out.step_again();
                Ok(())
            }),
            "main",
            (),
        )
        .unwrap();
    has_entered.recv().unwrap();
    scheduler.terminate(handle.pid()).unwrap();
    assert_eq!(calls.closes(), 0, "the step still runs");
    assert!(scheduler.process(handle.pid()).unwrap().is_terminating);
    let handle = handle.wait_timeout(std::time::Duration::ZERO).unwrap_err();
    leave.send(()).unwrap();
    let pid = handle.pid();
    assert!(matches!(exit(handle), ExitReason::Terminated));
    assert_eq!((calls.steps(), calls.closes()), (1, 1));

    assert_eq!(scheduler.terminate(pid).unwrap_err().pid, pid);
    let unknown: Pid = "{main|12345}".parse().unwrap();
    let message = scheduler.terminate(unknown).unwrap_err().to_string();
    assert_eq!(message, "no process has the PID {main|12345}");
}

// pins: P9
#[test]
fn terminate_wins_over_a_result_but_not_over_a_panic() {
    quiet_panics();
    let scheduler = start(1);
    for (panics, expected) in [(false, "terminated"), (true, "panicked: on purpose")] {
        let handle = scheduler.handle();
        let process = process(move |ctx, _, out| {
            handle.terminate(ctx.pid())?;
            assert!(!panics, "on purpose");
            out.done(7);
            Ok(())
        });
        let process = scheduler.submit(process, "main", ()).unwrap();
        assert_eq!(exit(process).to_string(), expected);
    }
}

// pins: P9
#[test]
fn what_is_called_between_two_steps_may_end_its_process() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let handle = scheduler.handle();
    let handler = move |_: Command, completer: Completer| {
        let (pid, handle) = (completer.pid().unwrap(), handle.clone());
        let call = Box::new(move || handle.terminate(pid).unwrap());
        assert!(completer.sink().unwrap().between_steps(call).is_ok());
        // The completion is in the mailbox behind the call.
        completer.complete(());
        Ok(())
    };
    let id = CommandId::new(256);
    scheduler.register(id, "end", handler).unwrap();
    scheduler.start().unwrap();
    let calls = Calls::new();
    let asker = counted(&calls, move |_, events, out| {
        if events.next().is_none() {
            out.yield_command(Command::new(id, ()), 0);
        }
        Ok(())
    });
    let handle = scheduler.submit(asker, "main", ()).unwrap();
    assert!(matches!(exit(handle), ExitReason::Terminated));
    assert_eq!((calls.steps(), calls.closes()), (1, 1));
}

// pins: P10
#[test]
fn cancel_delivers_an_event_and_cancels_the_token() {
    let scheduler = start(1);
    let (send_token, token) = mpsc::channel();
    let process = process(move |ctx, events, out| {
        match events.next() {
            None => send_token.send(ctx.cancel_token())?,
            Some(Event::Cancel(CancelReason::Requested(reason))) => {
                assert!(ctx.is_cancelled());
                out.done(reason.to_string());
            }
            other => panic!("{other:?}"),
        }
        Ok(())
    });
    let handle = scheduler.submit(process, "main", ()).unwrap();
    let token = token.recv().unwrap();
    assert!(!token.is_cancelled());
    let pid = handle.pid();
    scheduler.cancel(pid, "lunch").unwrap();
    assert!(token.is_cancelled());
    let ExitReason::Done(reason) = exit(handle) else {
        panic!()
    };
    assert_eq!(reason.as_str(), Some("lunch"));
    assert!(token.is_cancelled(), "a token outlives its process");
    assert!(scheduler.cancel(pid, "again").is_err());
}

// pins: P7, P9
#[test]
fn who_works_for_a_process_that_is_terminated_or_has_ended_can_see_it() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let (send, sent) = mpsc::channel::<Completer>();
    let keep = move |_: Command, completer: Completer| -> Result<(), BoxError> {
        Ok(send.send(completer)?)
    };
    // A handler out of an error is a handler, too.
    let keep: Arc<dyn Handler> = Arc::new(keep);
    scheduler.register(256, "keep", Arc::clone(&keep)).unwrap();
    let refused = scheduler.register(256, "keep", keep).unwrap_err();
    scheduler.register(257, "other", refused.handler).unwrap();
    scheduler.start().unwrap();
    let asks = |id: u16| {
        let mut is_first = true;
        process(move |ctx, _, out| {
            if std::mem::take(&mut is_first) {
                out.yield_command(Command::new(CommandId::new(id), ()), 0);
            } else {
                out.done(ctx.is_cancelled());
            }
            Ok(())
        })
    };
    let terminated = scheduler.submit(asks(256), "main", ()).unwrap();
    let completer = sent.recv().unwrap();
    assert!(!completer.is_cancelled());
    scheduler.terminate(terminated.pid()).unwrap();
    assert!(completer.is_cancelled());
    exit(terminated);
    assert!(completer.is_cancelled());
    drop(completer);

    let done = scheduler.submit(asks(257), "main", ()).unwrap();
    let completer = sent.recv().unwrap();
    done.send(Message::new("wake up", ())).unwrap();
    let result = exit(done).into_result().unwrap();
    assert_eq!(result.as_bool(), Some(false));
    assert!(
        completer.is_cancelled(),
        "nobody waits for its answer any more"
    );
}

/// Counts how often it is shown.
#[derive(Debug)]
struct Shown(std::sync::Arc<std::sync::atomic::AtomicUsize>);

impl std::fmt::Display for Shown {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Ok(())
    }
}

impl std::error::Error for Shown {}

// pins: P8
#[test]
fn an_error_is_not_shown_when_nobody_listens() {
    let shown = std::sync::Arc::default();
    let scheduler = start(1);
    let failing = {
        let shown = std::sync::Arc::clone(&shown);
        process(move |_, _, _| Err(Box::new(Shown(std::sync::Arc::clone(&shown)))))
    };
    let failed = exit(scheduler.submit(failing, "main", ()).unwrap());
    assert_eq!(shown.load(std::sync::atomic::Ordering::SeqCst), 0);
    assert_eq!(failed.to_string(), "failed: ");
}

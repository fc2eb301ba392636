//! The effects of a cancellation on a process with its own reaction, and on others.

use crate::support::puppet::puppet;
use crate::support::*;
use ganger_proc_api::{
    CancelReason, Context, Event, Events, ExitCause, ExitReason, Message, Process, SendErrorKind,
    StepOutput, StepResult, UpgradeRequest,
};
use ganger_sched::{Handle, ProcessState, Scheduler};
use std::sync::Arc;
use std::sync::mpsc::channel;

fn is_cancel(event: &Event) -> bool {
    matches!(event, Event::Cancel(_))
}

/// Returns the reason of a process ended by a cancellation.
#[track_caller]
fn reason(end: ExitReason) -> String {
    match end {
        ExitReason::Cancelled(reason) => reason.to_string(),
        other => panic!("{other}"),
    }
}

/// Submits the process, cancels it for these reasons in one batch, and returns its end.
fn cancelled(process: impl Process, reasons: &[&str]) -> ExitReason {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let process = scheduler.submit(process, "main", ()).unwrap();
    for &reason in reasons {
        scheduler.cancel(process.pid(), reason).unwrap();
    }
    scheduler.start().unwrap();
    exit(process)
}

// pins: P10
#[test]
fn one_that_says_nothing_ends_whether_it_takes_the_event_or_not() {
    type Step = fn(&Context, &mut Events<'_>, &mut StepOutput) -> StepResult;
    let steps: [Step; 5] = [
        |_, _, _| Ok(()),
        |_, events, _| {
            events.for_each(drop);
            Ok(())
        },
        |_, events, out| {
            let other = events.take_where(|event| !is_cancel(event));
            assert!(other.is_none());
            out.step_again();
            Ok(())
        },
        |_, events, out| {
            out.step_again();
            assert!(events.take_where(is_cancel).is_some());
            out.wait();
            Ok(())
        },
        |_, _, out| {
            out.step_again();
            out.wait();
            out.step_again();
            Ok(())
        },
    ];
    for step in steps {
        let calls = Calls::new();
        // The first step is shown both cancellations.
        let end = cancelled(counted(&calls, step), &["enough", "again"]);
        assert_eq!(reason(end), "enough");
        assert_eq!((calls.steps(), calls.closes()), (1, 1));
    }
}

// pins: P10, P12
#[test]
fn its_end_is_told_and_counted_with_the_reason() {
    let scheduler = start(1);
    let watcher = puppet(&scheduler);
    let waits = scheduler.submit(process(|_, _, _| Ok(())), "main", ());
    let waits = waits.unwrap();
    let pid = waits.pid();
    until_state(&scheduler, pid, ProcessState::Idle);
    watcher.monitor(pid, 1);
    scheduler.cancel(pid, "lunch").unwrap();
    assert_eq!(
        watcher.next(),
        (pid, 1, ExitCause::Cancelled("lunch".into()))
    );
    let end = exit(waits);
    assert_eq!(end.to_string(), "cancelled: lunch");
    assert!(!end.is_done());
    let total = scheduler.stats().total;
    assert_eq!((total.cancelled, total.done), (1, 0));
    let report = scheduler.stop(PATIENCE).unwrap();
    assert_eq!((report.completed, report.forced), (1, 0));
}

// pins: P10
#[test]
fn a_stop_is_a_cancellation() {
    let scheduler = start(2);
    let waits = scheduler.submit(process(|_, _, _| Ok(())), "main", ());
    let report = scheduler.stop(PATIENCE).unwrap();
    assert_eq!((report.completed, report.forced), (1, 0));
    let end = exit(waits.unwrap());
    assert!(matches!(end, ExitReason::Cancelled(CancelReason::Shutdown)));
}

// pins: P10, P9
#[test]
fn a_step_that_decides_otherwise_is_obeyed() {
    quiet_panics();
    let done = process(|_, _, out| {
        out.done("my way");
        Ok(())
    });
    let result = cancelled(done, &["enough"]).into_result().unwrap();
    assert_eq!(result.as_str(), Some("my way"));
    let fails = process(|_, _, _| Err("no luck".into()));
    assert!(matches!(
        cancelled(fails, &["enough"]),
        ExitReason::Failed(_)
    ));
    let panics = process(|_, _, _| panic!("on purpose"));
    let end = cancelled(panics, &["enough"]);
    assert!(matches!(end, ExitReason::Panicked(_)));

    let scheduler = start(1);
    let handle: Handle = scheduler.handle();
    let terminates = process(move |ctx, _, _| Ok(handle.terminate(ctx.pid())?));
    let terminates = scheduler.submit(terminates, "main", ()).unwrap();
    assert!(matches!(exit(terminates), ExitReason::Terminated));
}

// pins: P10
#[test]
fn one_that_defers_it_goes_on_and_defers_each() {
    let scheduler = start(1);
    let (tell, told) = channel();
    let mut defers = true;
    let careful = process(move |ctx, events, out| {
        let (mut cancels, mut left) = (0, 0);
        while events
            .take_where(|event| matches!(event, Event::Message(_)))
            .is_some()
        {
            defers = false;
        }
        let none = events.take_where(|event| {
            left += usize::from(is_cancel(event));
            false
        });
        assert!(none.is_none());
        // The first stays where it is.
        while left > 1 && events.take_where(is_cancel).is_some() {
            left -= 1;
            cancels += 1;
        }
        if defers {
            out.defer_cancel();
        }
        Ok(tell.send((ctx.is_cancelled(), left, cancels))?)
    });
    let careful = scheduler.submit(careful, "main", ()).unwrap();
    assert_eq!(told.recv().unwrap(), (false, 0, 0));
    scheduler.cancel(careful.pid(), "first").unwrap();
    assert_eq!(told.recv().unwrap(), (true, 1, 0));
    scheduler.cancel(careful.pid(), "second").unwrap();
    assert_eq!(told.recv().unwrap(), (true, 1, 1));
    // A step that does not defer is shown the left cancellation, and not for the first time.
    careful.send(Message::new("go on", ())).unwrap();
    assert_eq!(told.recv().unwrap(), (true, 1, 0));
    until_state(&scheduler, careful.pid(), ProcessState::Idle);
    scheduler.cancel(careful.pid(), "third").unwrap();
    assert_eq!(reason(exit(careful)), "third");
}

// pins: P10, P11
#[test]
fn a_new_process_is_shown_what_the_old_one_has_left() {
    for takes in [false, true] {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        let calls = Calls::new();
        let mut heir = Some(counted(&calls, |_, _, _| Ok(())));
        let old = process(move |_, events, out| {
            if takes {
                events.for_each(drop);
            }
            let heir = heir.take().ok_or("a second step")?;
            out.upgrade(UpgradeRequest::process(heir, "main", ()));
            Ok(())
        });
        let handle = scheduler.submit(old, "main", ()).unwrap();
        let pid = handle.pid();
        scheduler.cancel(pid, "enough").unwrap();
        scheduler.start().unwrap();
        if takes {
            until("the heir has had its step", || calls.steps() == 1);
            until_state(&scheduler, pid, ProcessState::Idle);
            scheduler.cancel(pid, "now").unwrap();
            assert_eq!(reason(exit(handle)), "now");
            assert_eq!(calls.steps(), 2);
        } else {
            assert_eq!(reason(exit(handle)), "enough");
            assert_eq!(calls.steps(), 1);
        }
        assert_eq!(calls.closes(), 1);
    }
}

// pins: P10, P11
#[test]
fn an_upgrade_that_comes_before_it_changes_who_is_shown_it() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let (old, new) = (Calls::new(), Calls::new());
    let handle = scheduler.submit(counted(&old, |_, _, _| Ok(())), "main", ());
    let handle = handle.unwrap();
    let heir = counted(&new, |_, _, _| Ok(()));
    let request = UpgradeRequest::process(heir, "main", ());
    scheduler.upgrade(handle.pid(), request).unwrap();
    scheduler.cancel(handle.pid(), "enough").unwrap();
    scheduler.start().unwrap();
    assert_eq!(reason(exit(handle)), "enough");
    assert_eq!((old.steps(), new.steps()), (0, 1));
}

// pins: P10, P13
#[test]
fn a_wait_that_it_ends_leaves_the_end_to_the_next_step_unless_this_one_fails() {
    for fails in [false, true] {
        let there = Scheduler::builder().mailbox_limit(1).build().unwrap();
        let full = there.submit(waiter(), "main", ()).unwrap();
        full.send(Message::new("fills", ())).unwrap();
        let to = full.address().clone();
        let calls = Calls::new();
        let mut is_first = true;
        let sender = counted(&calls, move |_, _, _| {
            if !std::mem::take(&mut is_first) {
                return Ok(());
            }
            let refused = to.send_blocking(Message::new("waits", ())).unwrap_err();
            assert_eq!(refused.kind, SendErrorKind::Cancelled);
            if fails { Err(refused.into()) } else { Ok(()) }
        });
        let here = Scheduler::builder().workers(1).build().unwrap();
        here.start().unwrap();
        let sender = here.submit(sender, "main", ()).unwrap();
        until_state(&here, sender.pid(), ProcessState::Running);
        here.cancel(sender.pid(), "enough").unwrap();
        let end = exit(sender);
        if fails {
            assert!(matches!(end, ExitReason::Failed(_)), "{end}");
        } else {
            assert_eq!(reason(end), "enough");
        }
        assert_eq!(calls.steps(), if fails { 1 } else { 2 });
        assert_eq!(Arc::strong_count(&calls), 1);
    }
}

//! Traces, formatted in full by the subscriber.
#![cfg(not(ganger_loom))]

#[path = "it/support/mod.rs"]
mod support;

use ganger_proc_api::{BoxError, Command, CommandId, Completer};
use ganger_sched::Scheduler;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use support::on_event::{on_event, text_of};
use support::*;
use tracing::{Event, Level};

static EVENTS: AtomicUsize = AtomicUsize::new(0);
/// Whether the subscriber panics at every event.
static PANIC: AtomicBool = AtomicBool::new(false);

fn format_all(event: &Event<'_>) {
    EVENTS.fetch_add(1, Ordering::SeqCst);
    assert!(!text_of(event).contains('\0'));
    assert!(!PANIC.load(Ordering::SeqCst), "on purpose: subscriber");
}

/// An error whose display fails.
#[derive(Debug)]
struct Unshowable;

impl fmt::Display for Unshowable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("on purpose: display")
    }
}

impl std::error::Error for Unshowable {}

// pins: P8, P2, D4
#[test]
fn users_code_in_events_ends_nothing_but_its_process() {
    const DO: CommandId = CommandId::new(256);
    quiet_panics();
    tracing::subscriber::set_global_default(on_event(Level::TRACE, format_all)).unwrap();
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let handler = |_: Command, completer: Completer| -> Result<(), BoxError> {
        completer.complete(());
        Err(Box::new(Unshowable))
    };
    scheduler.register(DO, "do", handler).unwrap();
    scheduler.start().unwrap();
    let failing = process(|_, events, out| {
        match events.next() {
            None => out.yield_command(Command::new(DO, ()), 1),
            Some(_) => return Err(Box::new(Unshowable)),
        }
        Ok(())
    });
    let failing = scheduler.submit(failing, "main", ()).unwrap();
    assert!(matches!(
        exit(failing),
        ganger_proc_api::ExitReason::Failed(_)
    ));
    let quick = process(|_, _, out| {
        out.done(1);
        Ok(())
    });
    assert_eq!(exit_number(scheduler.submit(quick, "main", ()).unwrap()), 1);
    assert!(EVENTS.load(Ordering::SeqCst) > 3);

    // A subscriber that panics at every event: nothing is lost.
    PANIC.store(true, Ordering::SeqCst);
    let calls = Calls::new();
    for _ in 0..10 {
        let quick = counted(&calls, |ctx, _, out| {
            let child = process(|_, _, out| {
                out.done(());
                Ok(())
            });
            ctx.submit(child, "main", ())?;
            out.upgrade(ganger_proc_api::UpgradeRequest::process(
                waiter(),
                "main",
                (),
            ));
            Ok(())
        });
        let quick = scheduler.submit(quick, "main", ()).unwrap();
        scheduler.cancel(quick.pid(), "end").unwrap();
        assert!(exit(quick).is_done());
        until("its child has ended", || scheduler.stats().live == 0);
        calls.closes.store(0, Ordering::SeqCst);
    }
    let stubborn = scheduler.submit(stubborn(&calls), "main", ()).unwrap();
    let report = scheduler.stop(std::time::Duration::ZERO).unwrap();
    assert_eq!((report.forced, report.stuck.len()), (1, 0));
    assert!(matches!(
        exit(stubborn),
        ganger_proc_api::ExitReason::Terminated
    ));
}

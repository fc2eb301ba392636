//! Users' code in the middle of a submission or of a handler.
#![cfg(not(ganger_loom))]

#[path = "it/support/mod.rs"]
mod support;

use ganger_proc_api::{
    BoxError, Command, CommandId, Completer, Context, Envelope, Event, Events, Message, Payload,
    Payloads, Process, StepOutput, StepResult, SubmitErrorKind,
};
use ganger_sched::{Handle, Scheduler, StopError, WeakHandle};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, Once};
use std::time::{Duration, Instant};
use support::on_event::on_event;
use support::*;
use tracing::Level;

const DO: CommandId = CommandId::new(256);

/// Sets a subscriber for all threads without their own. The subscriber must precede all events:
/// where the first event of a kind meets the first subscriber, `tracing` may assume that no
/// subscriber listens to this kind.
fn listen() {
    static LISTENS: Once = Once::new();
    LISTENS.call_once(|| {
        let idle = stops(Level::TRACE, Mutex::default(), Arc::default());
        tracing::subscriber::set_global_default(idle).unwrap();
    });
}

/// Checks an error after an answer. The mailbox is not empty when the handler answers, so the
/// answer goes there. The later error goes nowhere.
// pins: P6
#[test]
fn an_error_after_an_answer_is_no_stale_completion() {
    listen();
    for sends_first in [false, true] {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        let weak: WeakHandle = scheduler.downgrade();
        let handler = move |_: Command, completer: Completer| -> Result<(), BoxError> {
            let handle = weak.upgrade().ok_or("gone")?;
            if sends_first {
                let pid = completer.pid().ok_or("no sink")?;
                handle.send(Envelope::new(pid, pid, "first", ()))?;
            }
            completer.complete(7_u64);
            Err("too late".into())
        };
        scheduler.register(DO, "do", handler).unwrap();
        scheduler.start().unwrap();
        let mut yielded = false;
        let asker = process(move |_, events, out| {
            if !yielded {
                yielded = true;
                out.yield_command(Command::new(DO, ()), 1);
                return Ok(());
            }
            for event in events {
                if let Event::Completion(completion) = event {
                    assert!(completion.result.is_ok());
                    out.done(7);
                }
            }
            Ok(())
        });
        let asker = scheduler.submit(asker, "main", ()).unwrap();
        assert_eq!(exit_number(asker), 7);
        let total = scheduler.stats().total;
        assert_eq!(total.stale_completions, 0, "sends first: {sends_first}");
    }
}

/// Makes every call forbidden in an `init`.
struct Wild {
    handle: Handle,
    kept: Arc<Mutex<Option<Context>>>,
    stops: bool,
    panics: bool,
}

impl Process for Wild {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        *self.kept.lock().unwrap() = Some(ctx.clone());
        ctx.send(ctx.pid(), "self", ())?;
        self.handle.terminate(ctx.pid())?;
        ctx.submit(waiter(), "child", ())?;
        if self.stops {
            let deadline = Duration::from_secs(5);
            assert_eq!(self.handle.stop(deadline), Err(StopError::Inside));
            self.handle.begin_stop(deadline);
        }
        assert!(!self.panics, "on purpose: init");
        Err("no".into())
    }

    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        out.done(());
        Ok(())
    }
}

// pins: P1, P2, P8
#[test]
fn an_init_that_does_everything_leaves_nothing_behind() {
    listen();
    quiet_panics();
    for (stops, panics) in [(false, false), (false, true), (true, false), (true, true)] {
        let scheduler = start(1);
        let kept = Arc::new(Mutex::new(None));
        let rounds = if stops { 1 } else { 200 };
        for round in 0..rounds {
            // For cells and slots to be used again.
            let quick = process(|_, _, out| {
                out.done(());
                Ok(())
            });
            drop(scheduler.submit(quick, "main", ()).unwrap());
            until("it has ended", || scheduler.stats().total.done == round + 1);
            let wild = Wild {
                handle: scheduler.handle(),
                kept: kept.clone(),
                stops,
                panics,
            };
            let error = scheduler.submit(wild, "main", ()).map(drop).unwrap_err();
            assert_eq!(
                matches!(error.kind, SubmitErrorKind::InitPanicked(_)),
                panics,
                "{round}"
            );
            let ctx = kept.lock().unwrap().take().unwrap();
            assert!(scheduler.process(ctx.pid()).is_none());
            assert!(ctx.send(ctx.pid(), "self", ()).is_err());
        }
        let weak = scheduler.downgrade();
        drop(scheduler);
        until("the scheduler's memory is gone", || {
            weak.upgrade().is_none()
        });
    }
}

/// Checks that nothing is lost or dropped twice, when the predicate and the step panic with events
/// half taken.
// pins: P4, P8
#[test]
fn a_predicate_that_panics_takes_nothing() {
    listen();
    quiet_panics();
    let value = Arc::new(());
    let scheduler = Scheduler::builder()
        .workers(1)
        .mailbox_limit(10)
        .build()
        .unwrap();
    let mut seen = Vec::new();
    let taker = process(move |_, events, _| {
        let mut looks = 0;
        let taken = catch_unwind(AssertUnwindSafe(|| {
            events.take_where(|_| {
                looks += 1;
                assert!(looks < 3, "on purpose: predicate");
                false
            })
        }));
        assert!(taken.is_err() || looks < 3);
        // From the middle, so some events are left and some are new.
        if let Some(Event::Message(message)) =
            events.take_where(|event| matches!(event, Event::Message(m) if m.topic == "even"))
        {
            seen.push(message.payloads.len());
        }
        if seen.len() == 4 {
            events.next();
            panic!("on purpose: step");
        }
        Ok(())
    });
    let taker = scheduler.submit(taker, "main", ()).unwrap();
    let send =
        |topic: &'static str| taker.send(Message::new(topic, Payload::any(Arc::clone(&value))));
    for _ in 0..2 {
        send("odd").unwrap();
        send("even").unwrap();
    }
    scheduler.start().unwrap();
    for taken in 1.. {
        if taker.is_finished() {
            break;
        }
        let _full_or_closed = send(if taken % 2 == 0 { "odd" } else { "even" });
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(exit(taker).to_string().contains("on purpose: step"));
    drop(scheduler);
    until("all payloads are gone", || Arc::strong_count(&value) == 1);
}

/// Creates a subscriber that tries to stop the scheduler at the first event of the level, where a
/// stop is refused, and then begins to stop it. The subscriber notes the duration.
fn stops(
    level: Level,
    handle: Mutex<Option<Handle>>,
    lasted: Arc<Mutex<Option<Duration>>>,
) -> impl tracing::Subscriber + Send + Sync {
    on_event(Level::TRACE, move |event| {
        if *event.metadata().level() == level
            && let Some(handle) = handle.lock().unwrap().take()
        {
            let start = Instant::now();
            assert_eq!(handle.stop(Duration::from_secs(2)), Err(StopError::Inside));
            handle.begin_stop(Duration::from_millis(20));
            *lasted.lock().unwrap() = Some(start.elapsed());
        }
    })
}

// pins: D2, D3, D4
#[test]
fn a_subscriber_may_begin_to_stop_the_scheduler_inside_of_a_submission() {
    listen();
    let scheduler = start(1);
    let lasted = Arc::new(Mutex::new(None));
    let handle = Mutex::new(Some(scheduler.handle()));
    let stops = stops(Level::DEBUG, handle, lasted.clone());
    let calls = Calls::new();
    let process = tracing::subscriber::with_default(stops, || {
        scheduler.submit(stubborn(&calls), "main", ()).unwrap()
    });
    exit(process);
    assert_eq!(calls.closes(), 1);
    let lasted = lasted.lock().unwrap().unwrap();
    assert!(
        lasted < Duration::from_secs(2),
        "it has waited until the deadline"
    );
}

// pins: D3, D4
#[test]
fn a_subscriber_may_begin_to_stop_the_scheduler_while_it_is_stopped() {
    listen();
    let scheduler = start(1);
    let lasted = Arc::new(Mutex::new(None));
    let handle = Mutex::new(Some(scheduler.handle()));
    let stops = stops(Level::INFO, handle, lasted.clone());
    let idler = scheduler.submit(waiter(), "main", ()).unwrap();
    let report = tracing::subscriber::with_default(stops, || scheduler.stop(PATIENCE).unwrap());
    assert_eq!((report.completed, report.forced), (1, 0));
    exit(idler);
    assert!(lasted.lock().unwrap().is_some(), "it has returned");
}

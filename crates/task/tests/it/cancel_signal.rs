//! Signals of cancellation: other code waits until a task is asked to finish.

use crate::support::{exit, number, start, until};
use ganger_proc_api::{
    BoxError, CancelSignal, Context as ProcessContext, Events, ExitReason, Payloads, Process,
    StepOutput, StepResult,
};
use ganger_task::Cx;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender, channel};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Wakes a thread that waits for a signal.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits on this thread.
fn wait_for(signal: CancelSignal) {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut signal = pin!(signal);
    while signal
        .as_mut()
        .poll(&mut Context::from_waker(&waker))
        .is_pending()
    {
        thread::park();
    }
}

/// Waits on threads of their own. Each thread says when it begins.
fn watchers(signal: &CancelSignal, count: usize) -> Vec<thread::JoinHandle<()>> {
    let begins = mpsc::channel();
    let watchers = (0..count).map(|_| {
        let (signal, begin) = (signal.clone(), begins.0.clone());
        thread::spawn(move || {
            begin.send(()).unwrap();
            wait_for(signal);
        })
    });
    let watchers = watchers.collect();
    begins.1.iter().take(count).for_each(drop);
    watchers
}

fn all_end(watchers: Vec<thread::JoinHandle<()>>) {
    until("each has heard", || {
        watchers.iter().all(|it| it.is_finished())
    });
    watchers.into_iter().for_each(|it| it.join().unwrap());
}

/// Keeps the step of the task going all the while, so no later step could tell.
// pins: P10, A5
#[test]
fn a_signal_is_there_at_the_request_on_any_thread_while_a_step_goes_on() {
    let scheduler = start(1);
    let (send, signals) = channel();
    let (go_on, waits) = channel::<()>();
    let task = scheduler.spawn(async move |cx: Cx| {
        send.send(cx.cancel_signal())?;
        waits.recv()?;
        cx.shield(async { Ok(7) }).await
    });
    let task = task.unwrap();
    let signal = signals.recv().unwrap();
    let watchers = watchers(&signal, 5);
    let dropped = signal.clone();
    assert!(poll(&mut pin!(dropped), Waker::noop()).is_pending());
    scheduler.cancel(task.pid(), "enough").unwrap();
    all_end(watchers);
    // The signal stays ready, also for later waits.
    let mut late = pin!(signal);
    assert!(poll(&mut late, Waker::noop()).is_ready());
    assert!(poll(&mut late, Waker::noop()).is_ready());
    go_on.send(()).unwrap();
    assert_eq!(number(task), 7);
}

fn poll(signal: &mut std::pin::Pin<&mut CancelSignal>, waker: &Waker) -> Poll<()> {
    signal.as_mut().poll(&mut Context::from_waker(waker))
}

// pins: P10
#[test]
fn a_signal_is_there_at_the_end_of_a_process_that_was_asked_nothing() {
    let scheduler = start(2);
    let (send, signals) = channel();
    let task = scheduler.spawn(async move |cx: Cx<u64>| {
        send.send(cx.cancel_signal())?;
        let failed = cx.recv().await == Some(1);
        match failed {
            true => Err("it fails".into()),
            false => Ok(()),
        }
    });
    let task = task.unwrap();
    let watched = watchers(&signals.recv().unwrap(), 2);
    task.send(1).unwrap();
    assert!(matches!(exit(task), ExitReason::Failed(_)));
    all_end(watched);
}

/// A process: gives its signal away, and goes on until its cancellation.
struct Gives(Sender<CancelSignal>);

impl Process for Gives {
    fn init(&mut self, ctx: &ProcessContext, _: &str, _: Payloads) -> Result<(), BoxError> {
        Ok(self.0.send(ctx.cancel_signal())?)
    }

    fn step(
        &mut self,
        ctx: &ProcessContext,
        _: &mut Events<'_>,
        out: &mut StepOutput,
    ) -> StepResult {
        if ctx.is_cancelled() {
            out.done(());
        }
        Ok(())
    }
}

// pins: P10
#[test]
fn a_stop_is_a_request_and_a_termination_an_end() {
    for stops in [true, false] {
        let scheduler = start(1);
        let (send, signals) = channel();
        let process = scheduler.spawn(Gives(send)).unwrap();
        let watched = watchers(&signals.recv().unwrap(), 3);
        if stops {
            let _report = scheduler.stop(Duration::from_secs(60));
        } else {
            scheduler.terminate(process.pid()).unwrap();
        }
        all_end(watched);
    }
}

struct Counted;

impl Wake for Counted {
    fn wake(self: Arc<Self>) {}
}

// pins: P10
#[test]
fn a_signal_that_is_dropped_leaves_no_waker_behind() {
    let scheduler = start(1);
    let (send, signals) = channel();
    let process = scheduler.spawn(Gives(send)).unwrap();
    let signal = signals.recv().unwrap();
    let counted = Arc::new(Counted);
    let waker = Waker::from(Arc::clone(&counted));
    let before = Arc::strong_count(&counted);
    {
        let (mut one, mut other) = (pin!(signal.clone()), pin!(signal.clone()));
        for _ in 0..3 {
            assert!(poll(&mut one, &waker).is_pending());
            assert!(poll(&mut other, &waker).is_pending());
        }
        assert_eq!(Arc::strong_count(&counted), before + 2);
    }
    assert_eq!(Arc::strong_count(&counted), before);
    let mut last = pin!(signal);
    assert!(poll(&mut last, &waker).is_pending());
    scheduler.cancel(process.pid(), "enough").unwrap();
    assert!(exit(process).is_done());
    assert_eq!(Arc::strong_count(&counted), before);
}

/// Sends the text of each error.
struct Errors(Sender<String>);

impl Subscriber for Errors {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "ganger::task"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        struct Text(String);
        impl tracing::field::Visit for Text {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    self.0 = format!("{value:?}");
                }
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.send(text.0).unwrap();
    }

    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Catches the panic as a task of tokio does, which keeps the panic for a dropped handle.
// pins: A1
#[test]
fn a_wait_that_is_polled_elsewhere_is_reported_although_its_panic_is_caught() {
    let scheduler = start(1);
    let (send, contexts) = channel();
    let task = scheduler.spawn(async move |cx: Cx| {
        send.send(cx.clone())?;
        cx.cancelled().await;
        Ok(())
    });
    let cx = contexts.recv().unwrap();
    let (errors, reported) = channel();
    let caught = tracing::subscriber::with_default(Errors(errors), || {
        catch_unwind(AssertUnwindSafe(|| {
            let mut elsewhere = pin!(cx.cancelled());
            let mut context = Context::from_waker(Waker::noop());
            elsewhere.as_mut().poll(&mut context).is_ready()
        }))
    });
    assert!(caught.is_err());
    let text = reported.try_recv().expect("a report");
    assert!(text.contains("used outside of that task"), "{text}");
    assert!(text.contains("cx.cancel_signal()"), "{text}");
    drop(task);
}

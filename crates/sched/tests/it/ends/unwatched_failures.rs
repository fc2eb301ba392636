//! The scheduler reports failures without a watcher, and no other failures.

use crate::support::*;
use ganger_proc_api::{
    Actor, BoxError, Completion, Context, ExitCause, Reply, StepOutput, StepResult, actor_fn,
};
use ganger_sched::{Address, Builder, Failure, FailureReport, Scheduler};
use std::sync::mpsc::{Receiver, channel};

type Reports = Receiver<FailureReport>;

fn started(set: impl FnOnce(Builder) -> Builder) -> (Scheduler, Reports) {
    quiet_panics();
    let (tell, told) = channel();
    let builder = Scheduler::builder().workers(1);
    let builder = builder.on_failure(move |report| tell.send(report.clone()).unwrap());
    (set(builder).start().unwrap(), told)
}

fn failing() -> impl ganger_proc_api::Process {
    process(|_, _, _| Err("no disk".into()))
}

fn failed() -> Failure {
    Failure::Ended(ExitCause::Failed("no disk".into()))
}

/// Returns the only report.
#[track_caller]
fn only(reports: &Reports) -> FailureReport {
    let report = reports.recv_timeout(PATIENCE).expect("it is reported");
    assert!(reports.try_recv().is_err(), "it is reported once");
    report
}

/// Checks that all started processes have ended, without a report.
#[track_caller]
fn assert_none(scheduler: &Scheduler, reports: &Reports) {
    until("all have ended", || scheduler.stats().live == 0);
    scheduler.stop(PATIENCE).unwrap();
    assert_eq!(reports.try_iter().collect::<Vec<_>>(), []);
}

// pins: F2
#[test]
fn a_process_that_fails_without_a_handle_is_reported_with_its_names() {
    let (scheduler, reports) = started(|builder| builder);
    let parent = process(|ctx: &Context, _, out| {
        let child = process(|ctx: &Context, _, _| {
            ctx.register_name("the child")?;
            Err("no disk".into())
        });
        let child = ctx.submit(child, "run", ())?;
        out.done(child.to_string());
        Ok(())
    });
    let child: String = exit_done(scheduler.submit(parent, "main", ()).unwrap());
    let report = only(&reports);
    assert_eq!(
        (report.pid.to_string(), report.failure.clone()),
        (child, failed())
    );
    assert_eq!(
        (&*report.names, report.method.as_str()),
        (&["the child".into()][..], "run")
    );
    assert!(
        report.type_name.contains("FnProcess"),
        "{}",
        report.type_name
    );
    let text = report.to_string();
    assert!(
        text.ends_with("failed, and no process monitors it: no disk"),
        "{text}"
    );
}

fn exit_done(handle: ganger_sched::ProcessHandle) -> String {
    handle.wait().take().unwrap()
}

// pins: F2
#[test]
fn a_handle_that_is_dropped_is_no_watch_whenever_that_is() {
    let (scheduler, reports) = started(|builder| builder);
    let handle = scheduler.submit(failing(), "main", ()).unwrap();
    until("it has ended", || handle.is_finished());
    assert!(reports.try_recv().is_err(), "the handle may be looked at");
    let pid = handle.pid();
    drop(handle);
    let report = only(&reports);
    assert_eq!((report.pid, report.failure), (pid, failed()));
    let (go, gone) = channel::<()>();
    let later = process(move |_, _, _| {
        gone.recv()?;
        panic!("on purpose: step")
    });
    drop(scheduler.submit(later, "main", ()).unwrap());
    go.send(()).unwrap();
    let cause = ExitCause::Panicked("on purpose: step".into());
    assert_eq!(only(&reports).failure, Failure::Ended(cause));
}

// pins: F2
#[test]
fn a_reason_that_is_taken_or_told_to_a_monitor_is_not_reported() {
    let (scheduler, reports) = started(|builder| builder);
    assert!(
        !scheduler
            .submit(failing(), "main", ())
            .unwrap()
            .wait()
            .is_done()
    );
    let watcher = process(|ctx: &Context, events, out| {
        match events.next() {
            None => {
                let child = ctx.submit(failing(), "main", ())?;
                ctx.monitor(child, 1)?;
            }
            Some(_) => out.done(()),
        }
        Ok(())
    });
    assert!(
        scheduler
            .submit(watcher, "main", ())
            .unwrap()
            .wait()
            .is_done()
    );
    // Ends other than failures.
    drop(scheduler.submit(waiter(), "main", ()).unwrap());
    let waiting = scheduler.submit(waiter(), "main", ()).unwrap();
    scheduler.terminate(waiting.pid()).unwrap();
    drop(waiting);
    scheduler.stop(PATIENCE).unwrap();
    assert_none(&scheduler, &reports);
}

// pins: F2
#[test]
fn a_monitor_that_has_ended_itself_watches_nothing() {
    let (scheduler, reports) = started(|builder| builder);
    let (go, gone) = channel::<()>();
    let target = process(move |_, _, _| {
        gone.recv()?;
        Err("no disk".into())
    });
    let target = scheduler.submit(target, "main", ()).unwrap();
    let pid = target.pid();
    // On another worker: this worker is in the step of the target.
    let watcher = process(move |ctx: &Context, _, out| {
        ctx.monitor(pid, 1)?;
        out.done(());
        Ok(())
    });
    assert!(
        scheduler
            .submit(watcher, "main", ())
            .unwrap()
            .wait()
            .is_done()
    );
    drop(target);
    go.send(()).unwrap();
    assert_eq!(only(&reports).failure, failed());
}

// pins: F2
#[test]
fn a_quiet_scheduler_reports_nothing() {
    let (scheduler, reports) = started(Builder::quiet_failures);
    drop(scheduler.submit(failing(), "main", ()).unwrap());
    assert_none(&scheduler, &reports);
}

/// Creates an actor that answers with an error.
fn refuses() -> impl Actor<Message = Reply<u64>> {
    actor_fn(|_, reply: Reply<u64>, _| {
        reply.fail("no luck");
        Ok(())
    })
}

/// Asks, and ends at the next message.
struct Asks(Address<Reply<u64>>);

impl Actor for Asks {
    type Message = ();

    fn started(&mut self, _: &Context, out: &mut StepOutput) -> StepResult {
        out.ask(self.0.call(|reply| reply), 7);
        Ok(())
    }

    fn receive(&mut self, _: &Context, (): (), out: &mut StepOutput) -> StepResult {
        out.done(());
        Ok(())
    }
}

/// As `Asks`, and takes its answers.
struct Takes(Asks);

impl Actor for Takes {
    type Message = ();

    fn started(&mut self, ctx: &Context, out: &mut StepOutput) -> StepResult {
        self.0.started(ctx, out)
    }

    fn receive(&mut self, _: &Context, (): (), _: &mut StepOutput) -> StepResult {
        Ok(())
    }

    fn completed(&mut self, _: &Context, it: Completion, out: &mut StepOutput) -> StepResult {
        let error = it.take::<u64>().unwrap_err();
        out.done(error.to_string());
        Ok(())
    }
}

// pins: F2
#[test]
fn an_error_that_an_actor_has_asked_for_and_does_not_take_is_reported() -> Result<(), BoxError> {
    let (scheduler, reports) = started(|builder| builder);
    let refuses = scheduler.spawn(refuses())?;
    let takes = scheduler.spawn(Takes(Asks(refuses.address().clone())))?;
    assert_eq!(takes.wait().take::<String>()?, "no luck");
    let asks = scheduler.spawn(Asks(refuses.address().clone()))?;
    let report = only(&reports);
    let error = "no luck".into();
    assert_eq!(report.failure, Failure::Answer { tag: 7, error });
    assert_eq!(report.pid, asks.pid());
    assert!(report.type_name.ends_with("Asks"), "{}", report.type_name);
    let text = report.to_string();
    assert!(
        text.ends_with("and its actor does not implement `completed`: no luck"),
        "{text}"
    );
    asks.send(())?;
    assert!(asks.wait().is_done());
    Ok(())
}

// pins: F2
#[test]
fn an_answer_that_is_an_error_and_is_dropped_unseen_is_reported() -> Result<(), BoxError> {
    let (scheduler, reports) = started(|builder| builder);
    let refuses = scheduler.spawn(refuses())?;
    refuses.call(|reply| reply).wait().unwrap_err();
    let answer = refuses.call(|reply| reply).begin();
    until("it is answered", || answer.is_ready());
    assert!(reports.try_recv().is_err());
    drop(answer);
    let report = only(&reports);
    assert_eq!(
        (report.pid, &report.failure),
        (refuses.pid(), &Failure::Dropped("no luck".into()))
    );
    let well = scheduler.spawn(actor_fn(|_, reply: Reply<u64>, _| {
        reply.complete(7);
        Ok(())
    }))?;
    let answer = well.call(|reply| reply).begin();
    until("it is answered", || answer.is_ready());
    drop(answer);
    assert!(reports.try_recv().is_err());
    Ok(())
}

// pins: F2, P8
#[test]
fn a_report_that_panics_is_contained() {
    quiet_panics();
    let builder = Scheduler::builder().workers(1);
    let builder = builder.on_failure(|_| panic!("on purpose: on_failure"));
    let scheduler = builder.start().unwrap();
    drop(scheduler.submit(failing(), "main", ()).unwrap());
    until("it was called", || scheduler.stats().total.panics == 1);
    let quick = process(|_, _, out| {
        out.done(7);
        Ok(())
    });
    assert_eq!(exit_number(scheduler.submit(quick, "main", ()).unwrap()), 7);
}

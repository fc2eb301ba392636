//! Events for a process while its `init` runs.

use crate::support::*;
use ganger_proc_api::{
    BoxError, Context, Event, Events, ExitCause, Message, Payloads, Pid, Process, StepOutput,
    StepResult, SubmitErrorKind,
};
use ganger_sched::{ProcessState, Scheduler};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Makes this call in its `init`, and passes on the number of events in its first step.
struct Talks<I>(Option<I>, std::sync::mpsc::Sender<usize>);

impl<I: FnOnce(&Context) -> Result<(), BoxError> + Send + 'static> Process for Talks<I> {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        self.0.take().ok_or("a second init")?(ctx)
    }

    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        self.1.send(events.count())?;
        out.done(());
        Ok(())
    }
}

// pins: P1, P5
#[test]
fn what_comes_during_init_waits_for_the_first_step() {
    let scheduler = start(2);
    let handle = scheduler.handle();
    let (seen, counts) = channel();
    let talks = move |ctx: &Context| {
        let pid = ctx.pid();
        // Another thread, while this thread is inside of `init`.
        let other = thread::spawn(move || {
            let address = handle.address(pid).unwrap();
            address.send(Message::new("n", 1_u64)).unwrap();
            address.send_control(Message::new("n", 2_u64)).unwrap();
            address.waker().wake();
            handle.register_name("talks", pid).unwrap();
            handle.cancel(pid, "later").unwrap();
            assert_eq!(handle.process(pid).unwrap().state, ProcessState::Ready);
        });
        joined(other);
        assert_eq!(ctx.whereis("talks"), Some(pid));
        assert!(ctx.is_cancelled());
        Ok(())
    };
    let process = Talks(Some(talks), seen);
    let handle = scheduler.submit(process, "main", ()).unwrap();
    assert!(exit(handle).is_done());
    assert_eq!(counts.recv_timeout(PATIENCE).unwrap(), 3);
}

// pins: P1, P12, P13
#[test]
fn when_init_fails_what_has_come_is_undelivered_and_monitors_are_told() {
    quiet_panics();
    let builder = Scheduler::builder().workers(2).mailbox_limit(1);
    let scheduler = builder.build().unwrap();
    scheduler.start().unwrap();
    for panics in [false, true] {
        let watcher = puppet::puppet(&scheduler);
        let (tell, told) = channel::<Pid>();
        let (done, is_done) = channel();
        let other = {
            let handle = scheduler.handle();
            thread::spawn(move || {
                let pid = told.recv_timeout(PATIENCE).unwrap();
                watcher.monitor(pid, 7);
                let address = handle.address(pid).unwrap();
                address.send(Message::new("n", 1_u64)).unwrap();
                let blocked = thread::spawn({
                    let address = address.clone();
                    move || address.send_timeout(Message::new("n", 2_u64), PATIENCE)
                });
                done.send(()).unwrap();
                let refused = joined(blocked).unwrap_err();
                assert_eq!(rough(refused.kind), ENDED);
                assert_eq!(watcher.next(), (pid, 7, ExitCause::NotFound));
                assert!(handle.address(pid).is_none());
                drop(watcher);
            })
        };
        let before = scheduler.stats().total.undelivered;
        let (seen, _counts) = channel();
        let talks = move |ctx: &Context| {
            tell.send(ctx.pid())?;
            is_done.recv_timeout(PATIENCE)?;
            if panics {
                panic!("on purpose: init");
            }
            Err("on purpose".into())
        };
        let error = scheduler.submit(Talks(Some(talks), seen), "main", ());
        let error = error.unwrap_err();
        match &error.kind {
            SubmitErrorKind::InitFailed(_) => assert!(error.into_process().is_some()),
            SubmitErrorKind::InitPanicked(_) => assert!(error.into_process().is_none()),
            other => panic!("{other}"),
        }
        joined(other);
        assert_eq!(scheduler.stats().total.undelivered - before, 1);
    }
}

// pins: P1, P9
#[test]
fn a_process_that_is_terminated_during_its_init_takes_no_step() {
    let scheduler = start(1);
    let handle = scheduler.handle();
    let (seen, counts) = channel();
    let talks = move |ctx: &Context| Ok(handle.terminate(ctx.pid())?);
    let process = scheduler.submit(Talks(Some(talks), seen), "main", ());
    let reason = exit(process.unwrap());
    assert!(matches!(reason, ganger_proc_api::ExitReason::Terminated));
    assert!(counts.recv().is_err(), "it has taken a step");
}

// pins: P1, D1
#[test]
fn a_process_whose_init_runs_while_a_stop_begins_is_told_of_it() {
    let scheduler = start(1);
    let handle = scheduler.handle();
    let (seen, counts) = channel();
    let talks = move |ctx: &Context| {
        handle.begin_stop(Duration::from_secs(60));
        until("the stop has reached it", || ctx.is_cancelled());
        Ok(())
    };
    let process = scheduler.submit(Talks(Some(talks), seen), "main", ());
    assert!(exit(process.unwrap()).is_done());
    assert_eq!(
        counts.recv_timeout(PATIENCE).unwrap(),
        1,
        "one cancel event"
    );
}

/// Answers at once.
struct Echo;

impl Process for Echo {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            match event {
                Event::Message(message) => {
                    let from = message.source.ok_or("no source")?;
                    ctx.send(from, "answer", ())?;
                }
                Event::Cancel(_) => out.done(()),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Asks in its `init`, and waits for the answer.
struct Asks(Pid);

impl Process for Asks {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        ctx.send(self.0, "question", ())?;
        // Answers come at any time of the `init`.
        for _ in 0..ctx.pid().id() % 64 * 50 {
            std::hint::spin_loop();
        }
        Ok(())
    }

    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if events.next().is_some() {
            out.done(());
        }
        Ok(())
    }
}

// pins: P1, G2
#[test]
fn each_question_of_an_init_has_its_answer_seen() {
    let scheduler = start(2);
    let echo = scheduler.submit(Echo, "main", ()).unwrap();
    let asks = |_| scheduler.submit(Asks(echo.pid()), "main", ()).unwrap();
    let askers: Vec<_> = (0..500).map(asks).collect();
    assert!(askers.into_iter().all(|asker| exit(asker).is_done()));
    scheduler.cancel(echo.pid(), "enough").unwrap();
    assert!(exit(echo).is_done());
}

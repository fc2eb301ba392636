//! Replacing a process under its PID.

use crate::support::*;
use ganger_proc_api::{
    BoxError, Command, CommandId, Completer, Context, Event, Events, ExitReason, Message, Payloads,
    Process, StepOutput, StepResult, UpgradeError, UpgradeRequest,
};
use ganger_sched::{ProcessState, Scheduler, UpgradeRefusedKind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc};

type Log = Arc<Mutex<Vec<String>>>;

/// A process that writes its calls down, under its name.
struct Logger {
    name: &'static str,
    log: Log,
    fail: Option<&'static str>,
}

impl Logger {
    fn log(&self, what: impl std::fmt::Display) {
        self.log
            .lock()
            .unwrap()
            .push(format!("{} {what}", self.name));
    }
}

impl Process for Logger {
    fn init(&mut self, _: &Context, method: &str, input: Payloads) -> Result<(), BoxError> {
        self.log(format_args!("init {method} {input:?}"));
        match self.fail {
            Some("error") => Err("bad input".into()),
            Some("panic") => panic!("on purpose: init"),
            _ => Ok(()),
        }
    }

    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        self.log("step");
        for event in events {
            match event {
                Event::Message(m) if m.topic == "upgrade" => {
                    out.upgrade(UpgradeRequest::factory("next", "again", "from inside"));
                }
                Event::Message(m) => self.log(m.topic),
                Event::Control(m) => self.log(m.topic),
                Event::Completion(_) => self.log("completion"),
                Event::Cancel(_) => out.done(self.name),
                _ => {}
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        self.log("close");
        assert!(self.fail != Some("close"), "on purpose: close");
    }
}

const LATER: CommandId = CommandId::new(256);
const AT_ONCE: CommandId = CommandId::new(257);

struct Setup {
    scheduler: Scheduler,
    log: Log,
    kept: Arc<Mutex<Vec<Completer>>>,
}

fn setup(next_fails: Option<&'static str>) -> Setup {
    let log = Log::default();
    let kept = Arc::new(Mutex::new(Vec::new()));
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let factory_log = Arc::clone(&log);
    scheduler
        .register_factory("next", move || {
            assert!(next_fails != Some("factory"), "on purpose: factory");
            let log = Arc::clone(&factory_log);
            Box::new(Logger {
                name: "new",
                log,
                fail: next_fails,
            })
        })
        .unwrap();
    let keep = Arc::clone(&kept);
    scheduler
        .register(LATER, "later", move |_: Command, completer: Completer| {
            keep.lock().unwrap().push(completer);
            Ok(())
        })
        .unwrap();
    scheduler
        .register(AT_ONCE, "at once", |_: Command, completer: Completer| {
            completer.complete(());
            Ok(())
        })
        .unwrap();
    scheduler.start().unwrap();
    Setup {
        scheduler,
        log,
        kept,
    }
}

impl Setup {
    fn submit(&self) -> ganger_sched::ProcessHandle {
        let old = Logger {
            name: "old",
            log: Arc::clone(&self.log),
            fail: None,
        };
        let handle = self.scheduler.submit(old, "main", ()).unwrap();
        until_state(&self.scheduler, handle.pid(), ProcessState::Idle);
        handle
    }

    fn taken_log(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }
}

// pins: P11
#[test]
fn new_is_initialised_then_old_closed_then_new_steps() {
    for inside in [false, true] {
        let setup = setup(None);
        let handle = setup.submit();
        let pid = handle.pid();
        if inside {
            handle.send(Message::new("upgrade", ())).unwrap();
        } else {
            let request = UpgradeRequest::factory("next", "again", "from outside");
            setup.scheduler.upgrade(pid, request).unwrap();
        }
        let counted = || {
            setup
                .scheduler
                .process(pid)
                .is_some_and(|p| p.incarnation == 1)
        };
        until("it is upgraded", counted);
        handle.send(Message::new("hello", ())).unwrap();
        setup.scheduler.cancel(pid, "end").unwrap();
        assert_eq!(exit(handle).into_result().unwrap().as_str(), Some("new"));

        let mut log = setup.taken_log();
        log.dedup();
        let step = if inside { vec!["old step"] } else { vec![] };
        let from = if inside { "inside" } else { "outside" };
        let mut expected = vec!["old init main [()]".to_owned(), "old step".to_owned()];
        expected.extend(step.into_iter().map(str::to_owned));
        expected.dedup();
        expected.extend([
            format!("new init again [\"from {from}\"]"),
            "old close".to_owned(),
            "new step".to_owned(),
        ]);
        assert_eq!(log[..expected.len()], expected);
        assert_eq!(log.iter().filter(|line| *line == "new hello").count(), 1);
        assert_eq!(log.last().unwrap(), "new close");
        assert_eq!(log.iter().filter(|line| line.ends_with("close")).count(), 2);
        assert_eq!(setup.scheduler.stats().total.upgrades, 1);
    }
}

// pins: P11, P4
#[test]
fn an_upgrade_overtakes_messages_and_stays_behind_system_events() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let log = Log::default();
    let logger = |name| Logger {
        name,
        log: Arc::clone(&log),
        fail: None,
    };
    let handle = scheduler.submit(logger("old"), "main", ()).unwrap();
    handle.send(Message::new("before", ())).unwrap();
    handle.send_control(Message::new("control", ())).unwrap();
    let request = UpgradeRequest::process(logger("new"), "main", ());
    scheduler.upgrade(handle.pid(), request).unwrap();
    handle.send(Message::new("after", ())).unwrap();
    scheduler.cancel(handle.pid(), "end").unwrap();
    scheduler.start().unwrap();
    exit(handle);
    let expected = [
        "old init main [()]",
        "old step",
        "old control",
        "new init main [()]",
        "old close",
        "new step",
        "new before",
        "new after",
        "new close",
    ];
    assert_eq!(*log.lock().unwrap(), expected);
}

// pins: P11
#[test]
fn what_the_old_one_left_goes_to_the_new_one() {
    let scheduler = start(1);
    let leaver = process(|_, _, _| Ok(()));
    let handle = scheduler.submit(leaver, "main", ()).unwrap();
    for n in 0..3_u64 {
        handle.send(Message::new("n", n)).unwrap();
    }
    until_state(&scheduler, handle.pid(), ProcessState::Idle);
    let taker = process(|_, events, out| {
        let numbers: Vec<_> = events
            .map(|event| match event {
                Event::Message(m) => m.payloads.into_first().as_u64().unwrap(),
                other => panic!("{other:?}"),
            })
            .collect();
        out.done(numbers);
        Ok(())
    });
    scheduler
        .upgrade(handle.pid(), UpgradeRequest::process(taker, "main", ()))
        .unwrap();
    let numbers = exit(handle)
        .into_result()
        .unwrap()
        .downcast::<Vec<u64>>()
        .unwrap();
    assert_eq!(numbers, [0, 1, 2]);
}

// pins: P7, P11
#[test]
fn completions_of_the_old_one_are_stale() {
    let setup = setup(None);
    let mut first = true;
    let asker = process(move |_, _, out| {
        if std::mem::take(&mut first) {
            for tag in 0..3 {
                out.yield_command(Command::new(LATER, ()), tag);
            }
        }
        Ok(())
    });
    let handle = setup.scheduler.submit(asker, "main", ()).unwrap();
    until_state(&setup.scheduler, handle.pid(), ProcessState::Blocked);
    let mut completers = std::mem::take(&mut *setup.kept.lock().unwrap());
    // The old process has seen a message and left it. Another waits in its mailbox, and a third
    // comes later.
    let pid = handle.pid();
    let steps = setup.scheduler.stats().total.steps;
    completers.pop().unwrap().complete(());
    until("the old one has seen it", || {
        setup.scheduler.stats().total.steps > steps
    });
    until_state(&setup.scheduler, pid, ProcessState::Blocked);
    // While the only worker is held, another message arrives and stays in the mailbox, behind the
    // upgrade.
    let ((entered, has_entered), (leave, may_leave)) = (mpsc::channel(), mpsc::channel());
    let holder = process(move |_, _, out| {
        entered.send(())?;
        out.done(());
        Ok(may_leave.recv()?)
    });
    let holder = setup.scheduler.submit(holder, "main", ()).unwrap();
    has_entered.recv().unwrap();
    setup
        .scheduler
        .upgrade(pid, UpgradeRequest::factory("next", "main", ()))
        .unwrap();
    completers.pop().unwrap().complete(());
    leave.send(()).unwrap();
    assert!(exit(holder).is_done());
    until("it is upgraded", || {
        setup.scheduler.process(pid).unwrap().incarnation == 1
    });
    until_state(&setup.scheduler, pid, ProcessState::Idle);
    for completer in completers {
        completer.complete(());
    }
    until("they are counted", || {
        setup.scheduler.stats().total.stale_completions == 3
    });
    setup.scheduler.cancel(pid, "end").unwrap();
    assert!(exit(handle).is_done());
    assert!(
        setup
            .taken_log()
            .iter()
            .all(|line| line != "new completion")
    );
}

// pins: P7, P11
#[test]
fn an_answer_that_came_at_once_is_not_for_the_new_one() {
    let setup = setup(None);
    let asker = process(|_, _, out| {
        out.yield_command(Command::new(AT_ONCE, ()), 7);
        out.upgrade(UpgradeRequest::factory("next", "main", ()));
        Ok(())
    });
    let handle = setup.scheduler.submit(asker, "main", ()).unwrap();
    until_state(&setup.scheduler, handle.pid(), ProcessState::Idle);
    assert_eq!(setup.scheduler.stats().total.stale_completions, 1);
    assert!(!setup.taken_log().contains(&"new completion".to_owned()));
    setup.scheduler.cancel(handle.pid(), "end").unwrap();
    assert!(exit(handle).is_done());
}

// pins: P11, P8
#[test]
fn a_failure_ends_the_process_with_its_source() {
    quiet_panics();
    let failures = [
        ("error", "the new process's init failed: bad input"),
        ("panic", "the new process's init panicked: on purpose: init"),
        ("factory", "the factory panicked: on purpose: factory"),
    ];
    for (failure, expected) in failures {
        let setup = setup(Some(failure));
        let handle = setup.submit();
        let request = UpgradeRequest::factory("next", "main", ());
        setup.scheduler.upgrade(handle.pid(), request).unwrap();
        let ExitReason::UpgradeFailed(error) = exit(handle) else {
            panic!("{failure}")
        };
        assert_eq!(error.to_string(), expected);
        let log = setup.taken_log();
        assert_eq!(log.iter().filter(|line| *line == "old close").count(), 1);
        assert!(
            !log.contains(&"new close".to_owned()),
            "its init did not succeed"
        );
        assert_eq!(setup.scheduler.stats().total.upgrades_failed, 1);
    }
}

// pins: P2, P8, P11
#[test]
fn a_panicking_close_of_the_old_one_does_not_stop_the_new_one() {
    quiet_panics();
    let setup = setup(None);
    let old = Logger {
        name: "old",
        log: Arc::clone(&setup.log),
        fail: Some("close"),
    };
    let handle = setup.scheduler.submit(old, "main", ()).unwrap();
    setup
        .scheduler
        .upgrade(handle.pid(), UpgradeRequest::factory("next", "main", ()))
        .unwrap();
    setup.scheduler.cancel(handle.pid(), "end").unwrap();
    assert_eq!(exit(handle).into_result().unwrap().as_str(), Some("new"));
    assert_eq!(setup.scheduler.stats().total.panics, 1);
}

#[test]
fn refused_upgrades_give_the_request_back_and_leave_the_process_alone() {
    let setup = setup(None);
    let handle = setup.submit();
    let request = UpgradeRequest::factory("missing", "main", ());
    let error = setup.scheduler.upgrade(handle.pid(), request).unwrap_err();
    assert_eq!(
        error.kind,
        UpgradeRefusedKind::UnknownFactory("missing".into())
    );
    assert!(
        error.to_string().contains("no factory named \"missing\""),
        "{error}"
    );
    assert_eq!(error.request.method, "main");

    let pid = handle.pid();
    setup.scheduler.cancel(pid, "end").unwrap();
    assert_eq!(exit(handle).into_result().unwrap().as_str(), Some("old"));
    let request = UpgradeRequest::process(waiter(), "main", 7_u64);
    let error = setup.scheduler.upgrade(pid, request).unwrap_err();
    assert_eq!(error.kind, UpgradeRefusedKind::NotFound);
    assert_eq!(error.request.input.into_first().as_u64(), Some(7));

    let twice = setup
        .scheduler
        .register_factory("next", || Box::new(waiter()))
        .unwrap_err();
    assert!(twice.to_string().contains("\"next\""), "{twice}");
}

#[test]
fn an_unknown_factory_from_inside_a_step_ends_the_process() {
    let setup = setup(None);
    let process = process(|_, _, out| {
        out.upgrade(UpgradeRequest::factory("missing", "main", ()));
        Ok(())
    });
    let handle = setup.scheduler.submit(process, "main", ()).unwrap();
    let ExitReason::UpgradeFailed(error) = exit(handle) else {
        panic!()
    };
    assert!(matches!(error, UpgradeError::UnknownFactory(name) if name == "missing"));
}

// pins: P11
#[test]
fn the_source_of_a_failure_can_be_reached() {
    let setup = setup(Some("error"));
    let handle = setup.submit();
    let request = UpgradeRequest::factory("next", "main", ());
    setup.scheduler.upgrade(handle.pid(), request).unwrap();
    let ExitReason::UpgradeFailed(UpgradeError::InitFailed(source)) = exit(handle) else {
        panic!()
    };
    assert_eq!(source.to_string(), "bad input");
}

// pins: P9, P11
#[test]
fn no_step_follows_a_termination_during_the_new_ones_init() {
    struct Slow(mpsc::Sender<()>, mpsc::Receiver<()>, Arc<Calls>);
    impl Process for Slow {
        fn init(&mut self, _: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
            self.0.send(())?;
            Ok(self.1.recv()?)
        }

        fn step(&mut self, _: &Context, _: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
            self.2.steps.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
    }
    let scheduler = start(1);
    let old = scheduler.submit(waiter(), "main", ()).unwrap();
    let ((entered, has_entered), (leave, may_leave)) = (mpsc::channel(), mpsc::channel());
    let calls = Calls::new();
    let slow = Slow(entered, may_leave, Arc::clone(&calls));
    scheduler
        .upgrade(old.pid(), UpgradeRequest::process(slow, "main", ()))
        .unwrap();
    has_entered.recv().unwrap();
    scheduler.terminate(old.pid()).unwrap();
    leave.send(()).unwrap();
    assert!(matches!(exit(old), ExitReason::Terminated));
    assert_eq!(calls.steps(), 0);
}

//! Registrations with the end of a process.

use crate::support::*;
use ganger_proc_api::{
    BoxError, Context, EndKind, Event, Events, ExitCause, Lifecycle, Message, Payloads, Pid,
    Process, SendErrorKind, StepOutput, StepResult, SubmitErrorKind, Symbol, UpgradeRequest,
};
use ganger_sched::{ContextExt, ExitAction, ExitKey, Handle, ProcessState, Scheduler, WeakHandle};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The calls made, in their order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Notes its calls, and whether its process can be found then. The number 13 panics in each.
struct Noting {
    number: u64,
    log: Log,
    handle: WeakHandle,
}

impl Noting {
    fn note(&self, call: &str, process: Pid) {
        let handle = self.handle.upgrade();
        let is_found = handle.is_some_and(|it| it.address(process).is_some());
        let place = if is_found { "there" } else { "gone" };
        self.log.note(format!("{call} {} {place}", self.number));
        assert_ne!(self.number, 13, "on purpose");
    }
}

impl ExitAction for Noting {
    fn release(&mut self, process: Pid) {
        self.note("release", process);
    }

    fn tell(self: Box<Self>, process: Pid, cause: &ExitCause) {
        self.log.note(format!("{cause:?}"));
        self.note("tell", process);
    }

    fn key(&self) -> Option<ExitKey> {
        Some(key(self.number))
    }
}

fn key(number: u64) -> ExitKey {
    static OWNER: u8 = 0;
    ExitKey::new((&raw const OWNER).addr() as u64, number)
}

fn noting(log: &Log, handle: &Handle, number: u64) -> Box<dyn ExitAction> {
    let (log, handle) = (log.clone(), handle.downgrade());
    Box::new(Noting {
        number,
        log,
        handle,
    })
}

/// Registers an action in its `init`, in each step with a message, and in its `close`.
struct Registers {
    log: Log,
    handle: WeakHandle,
    ctx: Option<Context>,
    fails: bool,
}

impl Registers {
    fn new(log: &Log, handle: &Handle, fails: bool) -> Self {
        let (log, handle) = (log.clone(), handle.downgrade());
        let ctx = None;
        Self {
            log,
            handle,
            ctx,
            fails,
        }
    }

    fn add(&self, ctx: &Context, number: u64) -> Result<(), BoxError> {
        let handle = self.handle.upgrade().ok_or("no scheduler")?;
        Ok(ctx.add_exit_action(noting(&self.log, &handle, number))?)
    }
}

impl Process for Registers {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        self.add(ctx, 1)?;
        self.ctx = Some(ctx.clone());
        if self.fails {
            return Err("on purpose".into());
        }
        Ok(())
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            let Event::Message(message) = event else {
                continue;
            };
            self.add(ctx, 3)?;
            match &*message.topic {
                "fail" => return Err("as asked".into()),
                "panic" => panic!("as asked"),
                "upgrade" => out.upgrade(UpgradeRequest::factory("none", "main", ())),
                "done" => out.done(()),
                _ => {}
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        self.log.note("close");
        if let Some(ctx) = &self.ctx {
            self.add(ctx, 9).unwrap();
        }
    }
}

/// Returns the expected log when these actions were registered in time, and 9 in `close`.
fn expected(cause: &str, in_time: &[u64]) -> Vec<String> {
    let mut expected = vec!["close".to_owned()];
    expected.extend(in_time.iter().map(|it| format!("release {it} there")));
    expected.push("release 9 gone".into());
    for number in in_time.iter().chain(&[9]) {
        expected.extend([cause.to_owned(), format!("tell {number} gone")]);
    }
    expected
}

// pins: P12
#[test]
fn every_end_runs_the_actions_once_in_order_after_close() {
    quiet_panics();
    let log = Log::default();
    let scheduler = start(2);
    let ends = [
        ("done", "Done", true),
        ("fail", r#"Failed("as asked")"#, true),
        ("panic", r#"Panicked("as asked")"#, true),
        ("upgrade", "UpgradeFailed", true),
        ("terminate", "Terminated", false),
        ("cancel", "Cancelled", false),
    ];
    for (how, cause, is_message) in ends {
        let process = Registers::new(&log, &scheduler, false);
        let process = scheduler.submit(process, "main", ()).unwrap();
        let pid = process.pid();
        let action = noting(&log, &scheduler, 2);
        scheduler.add_exit_action(pid, action).unwrap();
        match how {
            "terminate" => scheduler.terminate(pid).unwrap(),
            "cancel" => scheduler.cancel(pid, "enough").unwrap(),
            _ => process.send(Message::new(how, ())).unwrap(),
        }
        drop(exit(process));
        let mut done = log.take();
        for it in &mut done {
            if it.starts_with(cause) {
                cause.clone_into(it);
            }
        }
        let in_time: &[u64] = if is_message { &[1, 2, 3] } else { &[1, 2] };
        assert_eq!(done, expected(cause, in_time), "{how}");
    }
}

// pins: F4
#[test]
fn an_end_with_actions_for_several_turns_is_known_by_its_kind() {
    let log = Log::default();
    let scheduler = start(1);
    let process = process(|_, events, out| {
        if events.next().is_some() {
            out.done(());
        }
        Ok(())
    });
    let process = scheduler.submit(process, "main", ()).unwrap();
    let address = process.address().clone();
    for number in 1_000..1_600 {
        let action = noting(&log, &scheduler, number);
        address.add_exit_action(action).unwrap();
    }
    address.send(Message::new("done", ())).unwrap();
    drop(exit(process));
    // Each is told the cause, and notes two calls.
    until("all are told", || log.0.lock().unwrap().len() == 3 * 600);
    let error = address.send(Message::new("late", ())).unwrap_err();
    assert_eq!(error.kind, SendErrorKind::Ended(EndKind::Done));
}

// pins: P12
#[test]
fn a_stop_runs_the_actions_of_those_that_it_ends() {
    for is_started in [true, false] {
        let log = Log::default();
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        if is_started {
            scheduler.start().unwrap();
        }
        let process = Registers::new(&log, &scheduler, false);
        let process = scheduler.submit(process, "main", ()).unwrap();
        let action = noting(&log, &scheduler, 2);
        process.address().add_exit_action(action).unwrap();
        if is_started {
            scheduler.stop(Duration::from_secs(60)).unwrap();
        } else {
            drop(scheduler);
        }
        let cause = if is_started {
            "Cancelled(Shutdown)"
        } else {
            "Terminated"
        };
        drop(exit(process));
        assert_eq!(log.take(), expected(cause, &[1, 2]), "{is_started}");
    }
}

/// Refuses every start.
struct Refuses;

impl Lifecycle for Refuses {
    fn on_start(&self, _: Pid, _: Symbol) -> Result<(), BoxError> {
        Err("on purpose".into())
    }
}

// pins: P1
#[test]
fn one_that_was_not_started_after_all_has_its_actions_run() {
    let log = Log::default();
    let scheduler = start(1);
    let failing = Registers::new(&log, &scheduler, true);
    let refused = scheduler.submit(failing, "main", ()).unwrap_err();
    assert!(matches!(refused.kind, SubmitErrorKind::InitFailed(_)));
    let not_found = ["release 1 there", "NotFound", "tell 1 gone"];
    assert_eq!(log.take(), not_found);

    let builder = Scheduler::builder().workers(1).lifecycle(Refuses);
    let scheduler = builder.build().unwrap();
    let process = Registers::new(&log, &scheduler, false);
    let refused = scheduler.submit(process, "main", ()).unwrap_err();
    assert!(matches!(refused.kind, SubmitErrorKind::StartRefused(_)));
    assert_eq!(log.take(), expected("NotFound", &[1]));
}

// pins: P8
#[test]
fn an_action_that_panics_does_not_keep_the_others_from_being_run() {
    quiet_panics();
    let log = Log::default();
    let scheduler = start(1);
    let process = scheduler.submit(waiter(), "main", ()).unwrap();
    for number in [12, 13, 14] {
        let action = noting(&log, &scheduler, number);
        scheduler.add_exit_action(process.pid(), action).unwrap();
    }
    scheduler.terminate(process.pid()).unwrap();
    drop(exit(process));
    let done: Vec<_> = log.take();
    let done: Vec<_> = done.iter().filter(|it| *it != "Terminated").collect();
    let calls = ["release", "tell"].iter().zip(["there", "gone"]);
    let expected = calls
        .flat_map(|(call, place)| [12, 13, 14].map(|number| format!("{call} {number} {place}")));
    assert!(done.into_iter().eq(&expected.collect::<Vec<_>>()));
    assert_eq!(scheduler.stats().total.panics, 2);
}

// pins: P12
#[test]
fn who_has_ended_gives_the_action_back() {
    let log = Log::default();
    let scheduler = start(1);
    let pid = Pid::new(scheduler.host_name(), 7);
    let old = context_of_the_dead(&scheduler, pid);
    let process = scheduler.submit_as(pid, waiter(), "main", ()).unwrap();
    let detached = Context::detached(pid);
    for ctx in [old, detached] {
        let refused = ctx.add_exit_action(noting(&log, &scheduler, 5));
        let refused = refused.unwrap_err();
        assert_eq!(refused.pid, pid);
        assert!(refused.to_string().contains("{main|7}"), "{refused}");
        assert_eq!(refused.into_action().key(), Some(key(5)));
    }
    let address = process.address().clone();
    scheduler.terminate(pid).unwrap();
    drop(exit(process));
    let by_address = address.add_exit_action(noting(&log, &scheduler, 5));
    assert!(by_address.is_err());
    let by_pid = scheduler.add_exit_action(pid, noting(&log, &scheduler, 5));
    assert!(by_pid.is_err());
    assert!(log.take().is_empty(), "neither of its calls is made");
}

// pins: P11, P12
#[test]
fn actions_stay_when_their_process_is_upgraded_and_are_taken_back_by_their_keys() {
    let log = Log::default();
    let scheduler = start(1);
    let process = scheduler.submit(waiter(), "main", ()).unwrap();
    let pid = process.pid();
    for number in [1, 2, 2, 3, 4] {
        let action = noting(&log, &scheduler, number);
        scheduler.add_exit_action(pid, action).unwrap();
    }
    scheduler.remove_exit_actions(pid, key(2));
    process.address().remove_exit_actions(key(4));
    let another = UpgradeRequest::process(waiter(), "main", ());
    scheduler.upgrade(pid, another).unwrap();
    until("it is upgraded", || scheduler.stats().total.upgrades == 1);
    assert!(log.take().is_empty(), "an upgrade is no end");
    until_state(&scheduler, pid, ProcessState::Idle);
    let steps = scheduler.stats().total.steps;
    scheduler.remove_exit_actions(pid, key(3));
    until_state(&scheduler, pid, ProcessState::Idle);
    assert_eq!(scheduler.stats().total.steps, steps, "no step is taken");
    scheduler.terminate(pid).unwrap();
    drop(exit(process));
    let done = ["release 1 there", "Terminated", "tell 1 gone"];
    assert_eq!(log.take(), done);
}

/// Registers an action with a name in the way: monitors find the name free, and resources released.
// pins: P12
#[test]
fn all_is_released_before_anybody_is_told() {
    struct Sees(Log, Arc<AtomicBool>, WeakHandle);
    impl ExitAction for Sees {
        fn release(&mut self, _: Pid) {
            // Ordering: Relaxed: a single thread ends the process.
            self.1.store(true, Ordering::Relaxed);
        }

        fn tell(self: Box<Self>, _: Pid, _: &ExitCause) {
            let handle = self.2.upgrade().unwrap();
            let is_named = handle.names().len();
            self.0.note(format!("{is_named} names"));
        }
    }
    let log = Log::default();
    let scheduler = start(1);
    let process = scheduler.submit(waiter(), "main", ()).unwrap();
    let is_released = Arc::<AtomicBool>::default();
    let sees = Sees(log.clone(), Arc::clone(&is_released), scheduler.downgrade());
    // Before the process has its name.
    scheduler
        .add_exit_action(process.pid(), Box::new(sees))
        .unwrap();
    scheduler.register_name("a", process.pid()).unwrap();
    scheduler.terminate(process.pid()).unwrap();
    drop(exit(process));
    assert_eq!(log.take(), ["0 names"]);
    assert!(is_released.load(Ordering::Relaxed));
}

/// Counts, and checks that all releases come before the first `tell`.
struct Counting {
    is_telling: Arc<AtomicBool>,
    released: Arc<AtomicUsize>,
    told: Arc<AtomicUsize>,
}

impl ExitAction for Counting {
    fn release(&mut self, _: Pid) {
        // Ordering: Relaxed: counts, of a single thread; read when the process has ended.
        assert!(!self.is_telling.load(Ordering::Relaxed));
        self.released.fetch_add(1, Ordering::Relaxed);
    }

    fn tell(self: Box<Self>, _: Pid, _: &ExitCause) {
        // Ordering: Relaxed: counts, of a single thread; read when the process has ended.
        self.is_telling.store(true, Ordering::Relaxed);
        self.told.fetch_add(1, Ordering::Relaxed);
    }
}

/// Registers actions by threads while the process ends: each action is run once, or comes back.
// pins: P12
#[test]
fn an_action_that_comes_while_the_process_ends_is_run_or_comes_back() {
    const THREADS: usize = 3;
    let scheduler = start(2);
    let mut refused = 0;
    for _ in 0..200 {
        let process = scheduler.submit(waiter(), "main", ()).unwrap();
        let address = process.address().clone();
        let [released, told] = [(); 2].map(|()| Arc::<AtomicUsize>::default());
        let (is_telling, begun) = (Arc::<AtomicBool>::default(), AtomicUsize::new(0));
        let (taken, back) = thread::scope(|scope| {
            let threads = [(); THREADS].map(|()| {
                scope.spawn(|| {
                    let mut taken = 0;
                    // Bounded: without an end they would keep the process from its termination.
                    for _ in 0..200 {
                        let action = Counting {
                            is_telling: Arc::clone(&is_telling),
                            released: Arc::clone(&released),
                            told: Arc::clone(&told),
                        };
                        if address.add_exit_action(Box::new(action)).is_err() {
                            return (taken, 1);
                        }
                        taken += 1;
                        begun.fetch_add(1, Ordering::Relaxed);
                    }
                    (taken, 0)
                })
            });
            until("they register", || begun.load(Ordering::Relaxed) > 0);
            scheduler.terminate(process.pid()).unwrap();
            let results = threads.map(|it| it.join().unwrap()).into_iter();
            results.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1))
        });
        drop(exit(process));
        let run = [released, told].map(|it| it.load(Ordering::Relaxed));
        assert_eq!(run, [taken; 2]);
        refused += back;
    }
    assert_eq!(scheduler.stats().total.panics, 0);
    assert_ne!(refused, 0, "no end was met");
}

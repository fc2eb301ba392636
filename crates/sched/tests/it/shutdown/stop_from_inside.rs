//! `stop` from inside the calls of a scheduler, where it is refused, and `begin_stop`, which is
//! accepted.

use crate::support::*;
use ganger_proc_api::{
    BoxError, Command, CommandId, Completer, Context, Event, Events, ExitReason, Lifecycle,
    Message, Payload, Payloads, Pid, Process, StepOutput, StepResult, Symbol,
};
use ganger_sched::{
    Handle, ProcessHandle, ProcessState, Scheduler, StopError, StopReport, WeakHandle,
};
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::task::{self, Wake};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);

const SHORT: Duration = Duration::from_millis(20);

/// A call around users' code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Init,
    InitOnAWorker,
    Step,
    Close,
    OnStart,
    OnComplete,
    Handler,
    Completion,
    Waker,
    DropOfProcess,
    DropOfPayload,
}

const PLACES: [Place; 11] = [
    Place::Init,
    Place::InitOnAWorker,
    Place::Step,
    Place::Close,
    Place::OnStart,
    Place::OnComplete,
    Place::Handler,
    Place::Completion,
    Place::Waker,
    Place::DropOfProcess,
    Place::DropOfPayload,
];

/// An act in a place, done once; with the result of an earlier `stop` there.
struct Acts {
    at: Place,
    scheduler: OnceLock<WeakHandle>,
    act: fn(&Handle),
    refused: Mutex<mpsc::Sender<Result<StopReport, StopError>>>,
    once: OnceLock<()>,
}

impl Acts {
    fn new(at: Place, act: fn(&Handle)) -> (Arc<Self>, Refused) {
        let (refused, results) = mpsc::channel();
        let acts = Self {
            at,
            scheduler: OnceLock::new(),
            act,
            refused: Mutex::new(refused),
            once: OnceLock::new(),
        };
        (Arc::new(acts), results)
    }

    fn reach(&self, place: Place) {
        if self.at != place || self.once.set(()).is_err() {
            return;
        }
        let handle = self.scheduler.get().and_then(WeakHandle::upgrade).unwrap();
        let begun = Instant::now();
        let refused = handle.stop(LONG);
        (self.act)(&handle);
        assert!(begun.elapsed() < LONG / 2, "{place:?} has waited");
        self.refused.lock().unwrap().send(refused).unwrap();
    }
}

type Refused = mpsc::Receiver<Result<StopReport, StopError>>;

impl Wake for Acts {
    fn wake(self: Arc<Self>) {
        self.reach(Place::Waker);
    }
}

/// A value whose destructor reaches the place.
struct OnDrop(Arc<Acts>, Place);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.reach(self.1);
    }
}

/// Goes through all places, and ends.
struct Subject {
    acts: Arc<Acts>,
    on_drop: Option<OnDrop>,
    is_child: bool,
}

const DO: CommandId = CommandId::new(256);

impl Subject {
    fn new(acts: &Arc<Acts>) -> Self {
        Self {
            acts: Arc::clone(acts),
            on_drop: Some(OnDrop(Arc::clone(acts), Place::DropOfProcess)),
            is_child: false,
        }
    }
}

impl Process for Subject {
    fn init(&mut self, _: &Context, method: &str, _: Payloads) -> Result<(), BoxError> {
        self.is_child = method == "child";
        self.acts.reach(if self.is_child {
            Place::InitOnAWorker
        } else {
            Place::Init
        });
        Ok(())
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if self.is_child {
            out.done(());
        }
        for event in events {
            match event {
                Event::Message(go) => {
                    self.acts.reach(Place::Step);
                    drop(go);
                    // Also after a stop has begun.
                    let _child = ctx.submit(Self::new(&self.acts), "child", ());
                    out.yield_command(Command::new(DO, ()), 1);
                }
                Event::Completion(_) => out.done(()),
                Event::Cancel(_) => out.defer_cancel(),
                _ => {}
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        self.acts.reach(Place::Close);
        drop(self.on_drop.take());
    }
}

/// Starts a scheduler with a subject that reaches all places once it gets a message.
fn with_subject(acts: &Arc<Acts>) -> (Scheduler, ProcessHandle) {
    struct Hooks(Arc<Acts>);
    impl Lifecycle for Hooks {
        fn on_start(&self, _: Pid, method: Symbol) -> Result<(), BoxError> {
            if method == "subject" {
                self.0.reach(Place::OnStart);
            }
            Ok(())
        }

        fn on_complete(&self, _: Pid, _: &ExitReason) {
            self.0.reach(Place::OnComplete);
        }
    }
    let hooks = Hooks(Arc::clone(acts));
    let builder = Scheduler::builder().workers(1).lifecycle(hooks);
    let scheduler = builder.build().unwrap();
    acts.scheduler.set(scheduler.downgrade()).unwrap();
    let theirs = Arc::clone(acts);
    let handler = move |_: Command, completer: Completer| {
        theirs.reach(Place::Handler);
        let (acts, pid) = (Arc::clone(&theirs), completer.pid().unwrap());
        Completer::from_fn(pid, 1, move |_| acts.reach(Place::Completion)).complete(());
        completer.complete(());
        Ok(())
    };
    scheduler.register(DO, "do", handler).unwrap();
    scheduler.start().unwrap();
    let subject = Subject::new(acts);
    let subject = scheduler.submit(subject, "subject", ()).unwrap();
    (scheduler, subject)
}

// pins: D3, D4
#[test]
fn a_stop_is_refused_wherever_it_would_wait_for_itself_and_may_begin_there() {
    let _alone = alone();
    for place in PLACES {
        let (acts, refused) = Acts::new(place, |handle| handle.begin_stop(LONG));
        let (scheduler, mut subject) = with_subject(&acts);
        let waker = Arc::clone(&acts).into();
        let mut context = task::Context::from_waker(&waker);
        assert!(Pin::new(&mut subject).poll(&mut context).is_pending());
        let payload = Payload::any(OnDrop(Arc::clone(&acts), Place::DropOfPayload));
        subject.send(Message::new("go", [payload])).unwrap();
        let refused = refused.recv_timeout(PATIENCE).expect("it is reached");
        assert_eq!(refused, Err(StopError::Inside), "{place:?}");
        assert!(scheduler.is_stopping());
        let begun = Instant::now();
        let report = scheduler.stop(LONG).unwrap();
        assert!(begun.elapsed() < LONG / 2, "{place:?}");
        assert_eq!((report.forced, report.stuck.len()), (0, 0), "{place:?}");
        assert!(exit(subject).is_done(), "{place:?}");
        assert_eq!(scheduler.stats().live, 0);
    }
}

/// Starts a process that begins to stop its scheduler in its step, and ends when it is told to.
fn begins_to_stop(scheduler: &Scheduler, deadlines: &[Duration]) -> (ProcessHandle, Go) {
    let handle = scheduler.handle();
    let deadlines = deadlines.to_vec();
    let ((tell, told), (go, goes)) = (mpsc::channel(), mpsc::channel::<()>());
    let stopper = process(move |_, events, out| {
        events.for_each(drop);
        out.defer_cancel();
        for deadline in &deadlines {
            handle.begin_stop(*deadline);
        }
        let _ = tell.send(());
        let _gone = goes.recv();
        Ok(())
    });
    let stopper = scheduler.submit(stopper, "main", ()).unwrap();
    told.recv_timeout(PATIENCE).expect("it returns at once");
    (stopper, go)
}

type Go = mpsc::Sender<()>;

// pins: D2, D3, D4
#[test]
fn a_stop_that_has_begun_forces_what_is_left_at_its_deadline() {
    let _alone = alone();
    let scheduler = start(2);
    let calls = Calls::new();
    let stubborn = scheduler.submit(stubborn(&calls), "main", ()).unwrap();
    let obeys = scheduler.submit(waiter(), "main", ()).unwrap();
    for pid in [stubborn.pid(), obeys.pid()] {
        until_state(&scheduler, pid, ProcessState::Idle);
    }
    let (stopper, go) = begins_to_stop(&scheduler, &[SHORT]);
    // No call waits for it.
    assert!(matches!(exit(stubborn), ExitReason::Terminated));
    assert!(exit(obeys).is_done());
    let begun = Instant::now();
    let report = scheduler.stop(LONG).unwrap();
    assert!(begun.elapsed() < LONG / 2);
    assert_eq!((report.completed, report.forced), (1, 1), "{report:?}");
    assert!(report.stuck.iter().map(|it| it.pid).eq([stopper.pid()]));
    assert_eq!(scheduler.stop(LONG), Ok(report));
    // The step is the subject's last.
    drop(go);
    assert!(matches!(exit(stopper), ExitReason::Terminated));
}

// pins: D3, D4
#[test]
fn of_several_stops_that_have_begun_the_earliest_deadline_counts() {
    let _alone = alone();
    let scheduler = start(2);
    let calls = Calls::new();
    let stubborn = scheduler.submit(stubborn(&calls), "main", ()).unwrap();
    until_state(&scheduler, stubborn.pid(), ProcessState::Idle);
    let (stopper, go) = begins_to_stop(&scheduler, &[LONG, LONG]);
    drop(go);
    until_state(&scheduler, stopper.pid(), ProcessState::Idle);
    assert!(!stubborn.is_finished());
    scheduler.begin_stop(Duration::ZERO);
    scheduler.begin_stop(LONG);
    assert!(matches!(exit(stubborn), ExitReason::Terminated));
    assert!(matches!(exit(stopper), ExitReason::Terminated));
    assert_eq!(calls.closes(), 1);
    let report = scheduler.stop(LONG).unwrap();
    // A busy machine may not have returned from the last call of a process.
    let ended = report.forced + report.stuck.len() as u64;
    assert_eq!((report.completed, ended), (0, 2), "{report:?}");
    // To begin a stop after the stop is harmless.
    scheduler.begin_stop(Duration::ZERO);
}

// pins: D3, D4
#[test]
fn a_stop_that_begins_while_another_waits_for_the_step_does_not_block_it() {
    let _alone = alone();
    let scheduler = start(2);
    let stoppers = [(); 2].map(|()| {
        let handle = scheduler.handle();
        let stopper = process(move |_, events, out| {
            if events.any(|event| matches!(event, Event::Cancel(_))) {
                assert_eq!(handle.stop(LONG), Err(StopError::Inside));
                handle.begin_stop(LONG);
                out.done(1);
            }
            Ok(())
        });
        scheduler.submit(stopper, "main", ()).unwrap()
    });
    for stopper in &stoppers {
        until_state(&scheduler, stopper.pid(), ProcessState::Idle);
    }
    let report = scheduler.stop(LONG).unwrap();
    assert_eq!((report.completed, report.forced), (2, 0));
    assert!(
        stoppers
            .into_iter()
            .all(|stopper| exit_number(stopper) == 1)
    );
}

// pins: D4
#[test]
fn a_stop_begins_before_the_scheduler_is_started_as_well() {
    let _alone = alone();
    let calls = Calls::new();
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let stubborn = scheduler.submit(stubborn(&calls), "main", ()).unwrap();
    scheduler.begin_stop(LONG);
    assert!(matches!(exit(stubborn), ExitReason::Terminated));
    assert_eq!((calls.steps(), calls.closes()), (0, 1));
    assert_eq!(stop_unstarted(&scheduler, LONG).forced, 1);
}

// pins: D3
#[test]
fn a_step_may_stop_another_scheduler() {
    let _alone = alone();
    let [here, there] = [(); 2].map(|()| start(1));
    let waits = there.submit(waiter(), "main", ()).unwrap();
    let (tell, told) = mpsc::channel();
    let stopper = process(move |_, _, out| {
        tell.send(there.stop(LONG))?;
        out.done(1);
        Ok(())
    });
    let stopper = here.submit(stopper, "main", ()).unwrap();
    let report = told.recv_timeout(PATIENCE).unwrap().unwrap();
    assert_eq!((report.completed, report.forced), (1, 0));
    assert!(exit(waits).is_done());
    assert_eq!(exit_number(stopper), 1);
    assert!(!here.is_stopping());
}

/// Submits to a scheduler inside of a submission to another, and stops the other.
// pins: D3
#[test]
fn a_stop_is_refused_however_deep_inside_of_a_submission_it_is() {
    struct Nests(Scheduler, Arc<Scheduler>);
    struct Stops(Arc<Scheduler>);
    impl Process for Nests {
        fn init(&mut self, _: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
            let stops = Stops(Arc::clone(&self.1));
            drop(self.0.submit(stops, "main", ())?);
            Ok(())
        }

        fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
            out.done(());
            Ok(())
        }
    }
    impl Process for Stops {
        fn init(&mut self, _: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
            assert_eq!(self.0.stop(LONG), Err(StopError::Inside));
            Ok(())
        }

        fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
            out.done(());
            Ok(())
        }
    }
    let outer = Arc::new(start(1));
    let nests = Nests(start(1), Arc::clone(&outer));
    assert!(exit(outer.submit(nests, "main", ()).unwrap()).is_done());
    assert!(!outer.is_stopping());
}

// pins: D3, D4
#[test]
fn a_scheduler_that_is_dropped_inside_of_a_step_is_stopped_without_waiting() {
    let _alone = alone();
    let builder = Scheduler::builder().workers(1).shutdown_deadline(LONG);
    let scheduler = builder.build().unwrap();
    scheduler.start().unwrap();
    let handle = scheduler.handle();
    let waits = handle.submit(waiter(), "main", ()).unwrap();
    let mut owned = Some(scheduler);
    let owner = process(move |_, _, out| {
        drop(owned.take());
        out.done(1);
        Ok(())
    });
    let begun = Instant::now();
    assert_eq!(exit_number(handle.submit(owner, "main", ()).unwrap()), 1);
    assert!(begun.elapsed() < LONG / 2);
    assert!(exit(waits).is_done());
    assert_eq!(handle.stop(LONG).unwrap().forced, 0);
}

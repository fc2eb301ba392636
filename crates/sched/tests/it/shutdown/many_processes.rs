//! Stopping many processes, with an exact account of their ends.

use crate::support::*;
use ganger_proc_api::{
    Command, CommandId, Completer, Context, Event, Events, ExitReason, Lifecycle, Message, Pid,
    Process, StepOutput, StepResult, SubmitErrorKind,
};
use ganger_sched::{ProcessHandle, Scheduler, StopError, StopReport};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// A million in longer runs, as at night.
static CROWD: LazyLock<usize> = LazyLock::new(|| {
    let factor = std::env::var("GANGER_STRESS").map_or(1, |text| text.parse().unwrap());
    (SMALL_CROWD * factor).min(1_000_000)
});

/// Longer than anything but a hang.
const LONG: Duration = Duration::from_secs(120);

const SHORT: Duration = Duration::from_millis(20);

/// The promise is 50 ms; a loaded machine may take a while to run this thread again.
const SLACK: Duration = Duration::from_millis(50 + 5_000);

/// For a test that differs from another in the caller of `stop` only.
const SMALL_CROWD: usize = 100_000;

/// The fate of each member of the crowd, by its place.
struct Account {
    closes: Vec<AtomicU8>,
    exits: Vec<AtomicU8>,
    /// The id of the first.
    first: OnceLock<u64>,
    done: AtomicU64,
    terminated: AtomicU64,
}

impl Account {
    fn new(crowd: usize) -> Arc<Self> {
        let counts = || (0..crowd).map(|_| AtomicU8::new(0)).collect();
        Arc::new(Self {
            closes: counts(),
            exits: counts(),
            first: OnceLock::new(),
            done: AtomicU64::new(0),
            terminated: AtomicU64::new(0),
        })
    }

    fn ended(&self) -> u64 {
        self.done.load(Ordering::SeqCst) + self.terminated.load(Ordering::SeqCst)
    }

    /// Checks the numbers of members that ended by themselves and were forced: this is all, and
    /// each was closed once.
    #[track_caller]
    fn settle(&self, done: usize, terminated: usize) {
        until("all have ended", || self.ended() == self.exits.len() as u64);
        let ones = |counts: &[AtomicU8]| counts.iter().all(|n| n.load(Ordering::SeqCst) == 1);
        assert!(ones(&self.closes), "every process is closed once");
        assert!(ones(&self.exits), "every process ends once");
        let ways = [&self.done, &self.terminated].map(|n| n.load(Ordering::SeqCst));
        assert_eq!(ways, [done as u64, terminated as u64]);
    }
}

struct Exits(Arc<Account>);

impl Lifecycle for Exits {
    fn on_complete(&self, pid: Pid, reason: &ExitReason) {
        let account = &self.0;
        // A single thread submits the crowd, so ids follow each other.
        let place = usize::try_from(pid.id() - account.first.get().unwrap()).unwrap();
        account.exits[place].fetch_add(1, Ordering::SeqCst);
        let way = match reason {
            ExitReason::Done(_) => &account.done,
            _ => &account.terminated,
        };
        way.fetch_add(1, Ordering::SeqCst);
    }
}

/// Waits idle, and calls its closure at its first step and for each event.
struct Member<S> {
    account: Arc<Account>,
    place: usize,
    step: S,
}

impl<S> Process for Member<S>
where
    S: FnMut(Option<Event>, &mut StepOutput) + Send + 'static,
{
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if events.is_empty() {
            (self.step)(None, out);
        }
        for event in events {
            (self.step)(Some(event), out);
        }
        Ok(())
    }

    fn close(&mut self) {
        self.account.closes[self.place].fetch_add(1, Ordering::SeqCst);
    }
}

/// Ends when it is cancelled.
fn obey(event: Option<Event>, out: &mut StepOutput) {
    if let Some(Event::Cancel(_)) = event {
        out.done(());
    }
}

/// Takes no notice of any event.
fn ignore(_: Option<Event>, out: &mut StepOutput) {
    out.defer_cancel();
}

const SAVE: CommandId = CommandId::new(256);

/// Has its data saved when it is cancelled, and ends after that.
fn save(event: Option<Event>, out: &mut StepOutput) {
    match event {
        Some(Event::Cancel(_)) => {
            out.defer_cancel();
            out.yield_command(Command::new(SAVE, ()), 7);
        }
        Some(Event::Completion(completion)) => {
            assert_eq!((completion.tag, completion.result.is_ok()), (7, true));
            out.done(());
        }
        _ => {}
    }
}

/// A scheduler without spares, whose crowd is accounted for.
struct Crowd {
    account: Arc<Account>,
    scheduler: Scheduler,
    added: usize,
    size: usize,
}

impl Crowd {
    fn new(size: usize) -> Self {
        let account = Account::new(size);
        let builder = Scheduler::builder().workers(2).max_spares(0);
        let builder = builder.lifecycle(Exits(Arc::clone(&account)));
        Self {
            scheduler: builder.shutdown_deadline(LONG).build().unwrap(),
            account,
            added: 0,
            size,
        }
    }

    fn add<S>(&mut self, step: S) -> ProcessHandle
    where
        S: FnMut(Option<Event>, &mut StepOutput) + Send + 'static,
    {
        let member = Member {
            account: Arc::clone(&self.account),
            place: self.added,
            step,
        };
        self.added += 1;
        let handle = self.scheduler.submit(member, "main", ()).unwrap();
        self.account.first.get_or_init(|| handle.pid().id());
        handle
    }

    /// Adds the rest of the crowd, and waits until each has had its first step.
    fn start(&mut self, step: impl FnMut(Option<Event>, &mut StepOutput) + Copy + Send + 'static) {
        while self.added < self.size {
            drop(self.add(step));
        }
        self.scheduler.start().unwrap();
        let stats = || self.scheduler.stats();
        until("all have begun", || stats().total.steps >= self.size as u64);
    }
}

fn counts(report: &StopReport) -> (u64, u64, u64, usize) {
    let StopReport {
        completed,
        forced,
        closing,
        ref stuck,
        ..
    } = *report;
    (completed, forced, closing, stuck.len())
}

// pins: D1, D4, P2, P12
#[test]
fn a_crowd_of_idle_processes_ends_when_it_is_asked_to() {
    let _alone = alone();
    let mut crowd = Crowd::new(*CROWD);
    crowd.start(obey);
    let report = crowd.scheduler.stop(LONG).unwrap();
    assert_eq!(counts(&report), (*CROWD as u64, 0, 0, 0));
    crowd.account.settle(*CROWD, 0);
    assert_eq!(crowd.scheduler.stop(LONG).unwrap(), report, "a second stop");
    let refused = crowd.scheduler.submit(waiter(), "main", ()).unwrap_err();
    assert!(matches!(refused.kind, SubmitErrorKind::Stopping));
    drop(crowd.scheduler);
    crowd.account.settle(*CROWD, 0);
}

// pins: D4, P2, P12
#[test]
fn dropping_the_scheduler_ends_a_crowd() {
    let _alone = alone();
    let mut crowd = Crowd::new(SMALL_CROWD);
    crowd.start(obey);
    drop(crowd.scheduler);
    assert_eq!(crowd.account.ended(), SMALL_CROWD as u64);
    crowd.account.settle(SMALL_CROWD, 0);
}

// pins: D3, D4, P2, P12
#[test]
fn among_many_processes_those_whose_steps_do_not_return_are_stuck() {
    let _alone = alone();
    let mut crowd = Crowd::new(*CROWD);
    let (entered, has_entered) = mpsc::channel();
    let (stuck, leave): (Vec<_>, Vec<_>) = (0..2)
        .map(|_| {
            let (leave, may_leave) = mpsc::channel::<()>();
            let entered = entered.clone();
            let stuck = crowd.add(move |event, _| {
                // The first step has no message, and is as short as the steps of the others.
                if let Some(Event::Message(_)) = event {
                    entered.send(()).unwrap();
                    may_leave.recv().unwrap_err();
                }
            });
            (stuck, leave)
        })
        .unzip();
    crowd.start(ignore);
    for stuck in &stuck {
        stuck.send(Message::new("stay", ())).unwrap();
        has_entered.recv().unwrap();
    }
    let begun = Instant::now();
    let report = crowd.scheduler.stop(SHORT).unwrap();
    let took = begun.elapsed();
    println!("stopped after {took:?}: {report:?}");
    assert!(took < SHORT + SLACK, "{took:?}");
    // The shutdown may be in the middle of another member's end.
    assert!(stuck.iter().all(|stuck| report.is_stuck(stuck.pid())));
    assert!(report.stuck.len() <= 3, "{report:?}");
    let all = report.completed + report.forced + report.stuck.len() as u64;
    assert!(all.abs_diff(*CROWD as u64) <= 1, "{report:?}");
    assert!(report.completed == 0 && report.closing <= report.forced);
    until("all others have ended", || {
        crowd.account.ended() == *CROWD as u64 - 2
    });
    for (place, stuck) in stuck.iter().enumerate() {
        let closes = crowd.account.closes[place].load(Ordering::SeqCst);
        assert_eq!((closes, stuck.is_finished()), (0, false));
    }
    assert_eq!(crowd.scheduler.stop(LONG).unwrap(), report, "a second stop");
    drop(leave);
    crowd.account.settle(0, *CROWD);
}

// pins: D2, D4, P2, P12
#[test]
fn many_processes_are_served_until_they_have_cleaned_up() {
    let _alone = alone();
    let mut crowd = Crowd::new(*CROWD);
    let (keep, kept) = mpsc::channel();
    let keep = Mutex::new(keep);
    let handler = move |_: Command, completer: Completer| {
        keep.lock().unwrap().send(completer).unwrap();
        Ok(())
    };
    crowd.scheduler.register(SAVE, "save", handler).unwrap();
    crowd.start(save);
    let saver = thread::spawn(move || {
        // Answers come only after all have been cancelled.
        let completers: Vec<_> = kept.iter().take(*CROWD).collect();
        completers
            .into_iter()
            .for_each(|completer| completer.complete(()));
    });
    let report = crowd.scheduler.stop(LONG).unwrap();
    assert_eq!(counts(&report), (*CROWD as u64, 0, 0, 0));
    saver.join().unwrap();
    crowd.account.settle(*CROWD, 0);
    assert_eq!(crowd.scheduler.stats().total.stale_completions, 0);
}

// pins: D3, D4, P2, P12
#[test]
fn one_of_many_may_stop_them() {
    let _alone = alone();
    let mut crowd = Crowd::new(*CROWD);
    let handle = crowd.scheduler.handle();
    let (tell, told) = mpsc::channel();
    let stopper = crowd.add(move |event, out| {
        if let Some(Event::Message(_)) = event {
            assert_eq!(handle.stop(LONG), Err(StopError::Inside));
            handle.begin_stop(LONG);
            tell.send(()).unwrap();
            out.done(());
        }
    });
    crowd.start(obey);
    stopper.send(Message::new("stop", ())).unwrap();
    told.recv().unwrap();
    let report = crowd.scheduler.stop(LONG).unwrap();
    assert_eq!(counts(&report), (*CROWD as u64, 0, 0, 0));
    crowd.account.settle(*CROWD, 0);
}

//! The causes from a tracer of steps, which change neither counts nor ends.

use crate::support::*;
use ganger_proc_api::{Command, CommandId, Completer, Event, ExitCause, ExitNotice, Message, Pid};
use ganger_sched::{
    Arrived, Builder, Cause, ExitSignal, Observe, Scheduler, StepTracer, SystemEvent, TracedStep,
};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const KEPT: CommandId = CommandId::new(256);

fn built(tracer: Arc<impl StepTracer>) -> Builder {
    Scheduler::builder()
        .workers(1)
        .max_spares(0)
        .trace_steps(tracer)
}

/// Traces no step, and gives each act outside of steps a cause of its own.
struct Outside;

impl StepTracer for Outside {
    fn begin(&self, _: &TracedStep<'_>, _: &[Cause]) -> Option<Cause> {
        None
    }

    fn end(&self, _: &Cause) {}

    fn outside(&self) -> Option<Cause> {
        Some(Cause::new(()))
    }
}

// pins: V5
#[test]
fn causes_do_not_wait_for_a_step() {
    const BATCH: u8 = 8;
    let builder = built(Arc::new(Outside)).observe(Observe::Counts);
    let scheduler = builder.event_batch(BATCH.into()).build().unwrap();
    let waiting = |pid: Pid| {
        let counts = scheduler.look_at(pid, |it| it.counts().unwrap());
        counts.unwrap().waiting
    };
    let (go, gate) = channel::<()>();
    let (inside, is_inside) = channel();
    let slow = process(move |_, events, _| {
        if events.count() > 0 {
            inside.send(())?;
            gate.recv()?;
        }
        Ok(())
    });
    let slow = scheduler.submit(slow, "main", ()).unwrap();
    let other = scheduler.submit(waiter(), "main", ()).unwrap();
    scheduler.start().unwrap();
    until_state(&scheduler, other.pid(), ganger_sched::ProcessState::Idle);
    until_state(&scheduler, slow.pid(), ganger_sched::ProcessState::Idle);
    let send = |pid| {
        let message = Message::new("n", ());
        scheduler.send(message.to(pid)).unwrap();
    };

    // Behind a step.
    send(slow.pid());
    is_inside.recv_timeout(PATIENCE).unwrap();
    assert_eq!(waiting(slow.pid()), 0);
    for number in 1..=100 {
        send(slow.pid());
        assert_eq!(waiting(slow.pid()), number);
    }
    let lot = (0..50).map(|_| Message::new("n", ()));
    assert!(slow.address().send_all(lot).is_ok());
    assert_eq!(waiting(slow.pid()), 150);
    // In a waiting process, while the worker is elsewhere.
    for number in 1..=10 {
        send(other.pid());
        assert_eq!(waiting(other.pid()), number);
    }
    // Among the items out of the mailbox.
    go.send(()).unwrap();
    is_inside.recv_timeout(PATIENCE).unwrap();
    assert_eq!(waiting(slow.pid()), 150 - u64::from(BATCH));
    drop(go);
    assert!(!exit(slow).is_done());
    until("all are taken", || waiting(other.pid()) == 0);
}

/// Panics when it is dropped.
struct Bomb(Arc<AtomicUsize>);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("on purpose: a cause");
    }
}

/// All causes are bombs.
#[derive(Default)]
struct Bombs {
    dropped: Arc<AtomicUsize>,
    made: AtomicUsize,
    /// Whether steps have causes; otherwise code outside of steps has.
    of_steps: AtomicBool,
}

impl Bombs {
    fn of_steps() -> Arc<Self> {
        let bombs = Arc::<Self>::default();
        bombs.of_steps.store(true, Ordering::SeqCst);
        bombs
    }

    fn make(&self) -> Option<Cause> {
        self.made.fetch_add(1, Ordering::SeqCst);
        Some(Cause::new(Bomb(Arc::clone(&self.dropped))))
    }

    fn are_gone(&self) -> bool {
        self.dropped.load(Ordering::SeqCst) == self.made.load(Ordering::SeqCst)
    }
}

impl StepTracer for Bombs {
    fn begin(&self, _: &TracedStep<'_>, _: &[Cause]) -> Option<Cause> {
        let is_made = self.of_steps.load(Ordering::SeqCst);
        is_made.then(|| self.make()).flatten()
    }

    fn end(&self, _: &Cause) {}

    fn outside(&self) -> Option<Cause> {
        let is_made = !self.of_steps.load(Ordering::SeqCst);
        is_made.then(|| self.make()).flatten()
    }
}

// pins: P8, V13
#[test]
fn a_cause_that_panics_when_it_is_dropped_ends_nothing() {
    quiet_panics();
    for bombs in [Arc::default(), Bombs::of_steps()] {
        // The causes of several steps.
        const ALL: usize = 1_000;
        let scheduler = built(Arc::clone(&bombs)).build().unwrap();
        let got = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&got);
        let counts = process(move |_, events, _| {
            counter.fetch_add(events.count(), Ordering::SeqCst);
            Ok(())
        });
        let counts = scheduler.submit(counts, "main", ()).unwrap();
        let ends = process(|_, events, out| {
            if events.next().is_some() {
                out.done(7);
            }
            Ok(())
        });
        let ends = scheduler.submit(ends, "main", ()).unwrap();
        let send = |pid| scheduler.send(Message::new("n", ()).to(pid));
        for _ in 0..ALL {
            send(counts.pid()).unwrap();
            send(ends.pid()).unwrap();
            scheduler.cancel(ends.pid(), "enough").unwrap();
        }
        scheduler.start().unwrap();
        until("all have come", || got.load(Ordering::SeqCst) == ALL);
        let dead = ends.pid();
        assert_eq!(exit_number(ends), 7);
        assert!(send(dead).is_err());
        assert!(scheduler.cancel(dead, "again").is_err());
        send(counts.pid()).unwrap();
        until("the last has come", || {
            got.load(Ordering::SeqCst) == ALL + 1
        });
        drop(counts);
        let report = scheduler.stop(Duration::from_secs(5)).unwrap();
        assert_eq!(report.stuck.len(), 0);
        drop(scheduler);
        until("no cause is left", || bombs.are_gone());
    }
}

// pins: P8, V13
#[test]
fn the_cause_of_a_yield_that_never_completes_ends_nothing() {
    quiet_panics();
    let bombs = Bombs::of_steps();
    let scheduler = built(Arc::clone(&bombs)).build().unwrap();
    let (keep, kept) = channel();
    let handler = move |_: Command, completer: Completer| Ok(keep.send(completer)?);
    scheduler.register(KEPT, "keep", handler).unwrap();
    scheduler.start().unwrap();
    for number in 0..3 {
        let asks = process(move |_, events, out| {
            if events.any(|event| matches!(event, Event::Message(_))) {
                out.done(number);
            } else {
                out.yield_command(Command::new(KEPT, ()), 1);
            }
            Ok(())
        });
        let asks = scheduler.submit(asks, "main", ()).unwrap();
        let _completer = kept.recv_timeout(PATIENCE).unwrap();
        let message = Message::new("n", ());
        scheduler.send(message.to(asks.pid())).unwrap();
        assert_eq!(exit_number(asks), number);
    }
    scheduler.stop(Duration::from_secs(5)).unwrap();
    drop(scheduler);
    until("no cause is left", || bombs.are_gone());
}

/// Writes down the numbers of the causes of each step.
#[derive(Default)]
struct Written(Mutex<Vec<Vec<u64>>>);

impl StepTracer for Written {
    fn begin(&self, _: &TracedStep<'_>, causes: &[Cause]) -> Option<Cause> {
        let number = |cause: &Cause| *cause.get::<u64>().unwrap();
        let numbers = causes.iter().map(number).collect();
        self.0.lock().unwrap().push(numbers);
        None
    }

    fn end(&self, _: &Cause) {}
}

#[derive(Debug)]
struct Does(Arrived);

impl ExitSignal for Does {
    fn arrive(self: Box<Self>) -> Arrived {
        self.0
    }
}

// pins: V13
#[test]
fn the_step_that_sees_a_system_event_has_its_cause_and_no_other_step() {
    const BATCH: usize = 16;
    let written = Arc::new(Written::default());
    let builder = built(Arc::clone(&written)).event_batch(BATCH);
    let scheduler = builder.build().unwrap();
    let (tell, told) = channel();
    let sees = process(move |_, events, out| {
        out.defer_cancel();
        let number = |event: Event| match event {
            Event::Control(message) => message.payloads.into_first().as_u64(),
            Event::Exit(exit) => Some(exit.tag),
            Event::Cancel(_) => Some(0),
            _ => None,
        };
        let mut all = 0;
        let numbers: Vec<u64> = events.inspect(|_| all += 1).filter_map(number).collect();
        tell.send((all, numbers))?;
        Ok(())
    });
    let sees = scheduler.submit(sees, "main", ()).unwrap();
    let pid = sees.pid();
    let message = |number: u64| Message::new("n", number);
    for number in 0..1_500 {
        scheduler.send(message(number).to(pid)).unwrap();
    }
    let within = |number: u64, f: &dyn Fn()| Cause::new(number).within(f);
    within(0, &|| scheduler.cancel(pid, "enough").unwrap());
    let signal = |arrived| {
        let signal = SystemEvent::Signal(Box::new(Does(arrived)));
        sees.address().send_system(signal).unwrap();
    };
    for number in 1..=100 {
        within(number, &|| match number % 5 {
            0 => signal(Arrived::Notice(ExitNotice::new(
                pid,
                number,
                ExitCause::Done,
            ))),
            1 => signal(Arrived::Nothing),
            _ => (scheduler.send_control(message(number).to(pid))).unwrap(),
        });
    }
    scheduler.start().unwrap();
    let mut steps = Vec::new();
    let mut seen = 0;
    while seen < 1_500 + 1 + 80 {
        let (all, numbers) = told.recv_timeout(PATIENCE).unwrap();
        seen += all;
        steps.push(numbers);
    }
    let written = written.0.lock().unwrap();
    assert_eq!(*written, steps);
    let in_order: Vec<u64> = steps.concat();
    let expected = (0..=100).filter(|it| it % 5 != 1);
    assert!(in_order.iter().copied().eq(expected), "{in_order:?}");
}

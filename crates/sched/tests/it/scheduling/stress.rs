//! Many processes, many threads, exact accounts.

use crate::support::*;
use ganger_proc_api::{
    BoxError, Command, CommandId, Completer, Context, Event, Events, ExitReason, Lifecycle,
    Message, Payloads, Pid, Process, StepOutput, StepResult, Symbol, UpgradeRequest,
};
use ganger_sched::{Scheduler, Stats};
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Runs once, counts itself, and ends.
struct Once {
    steps: Arc<AtomicUsize>,
    closes: Arc<AtomicUsize>,
}

impl Process for Once {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        self.steps.fetch_add(1, Ordering::Relaxed);
        out.done(());
        Ok(())
    }

    fn close(&mut self) {
        self.closes.fetch_add(1, Ordering::Relaxed);
    }
}

// pins: G8, G1, P2
#[test]
fn a_million_processes_through_any_number_of_workers() {
    const PROCESSES: usize = 1_000_000;
    for workers in [1, 2, 4, 8] {
        let scheduler = start(workers);
        let (steps, closes) = (Arc::default(), Arc::default());
        for _ in 0..PROCESSES {
            let once = Once {
                steps: Arc::clone(&steps),
                closes: Arc::clone(&closes),
            };
            drop(scheduler.submit(once, "main", ()).unwrap());
        }
        until("all have ended", || scheduler.stats().live == 0);
        assert_eq!(steps.load(Ordering::Relaxed), PROCESSES);
        assert_eq!(closes.load(Ordering::Relaxed), PROCESSES);
        let Stats { total, .. } = scheduler.stats();
        assert_eq!(
            (total.started, total.done),
            (PROCESSES as u64, PROCESSES as u64)
        );
        assert_eq!(total.steps, PROCESSES as u64);
        assert!(scheduler.processes().is_empty());
    }
}

/// A tree of processes: each spawns two children, which report up by PID.
struct Node {
    depth: u64,
    parent: Option<Pid>,
    sum: u64,
    reports: u32,
}

impl Process for Node {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if self.reports == 0 && events.is_empty() && self.depth > 0 {
            for _ in 0..2 {
                ctx.submit(Self::new(self.depth - 1, Some(ctx.pid())), "main", ())?;
            }
        }
        for event in events {
            if let Event::Message(message) = event {
                self.sum += message
                    .payloads
                    .into_first()
                    .as_u64()
                    .ok_or("not a number")?;
                self.reports += 1;
            }
        }
        if self.depth == 0 || self.reports == 2 {
            let sum = self.sum + 1;
            if let Some(parent) = self.parent {
                ctx.send(parent, "sum", sum)?;
            }
            out.done(sum);
        }
        Ok(())
    }
}

impl Node {
    fn new(depth: u64, parent: Option<Pid>) -> Self {
        Self {
            depth,
            parent,
            sum: 0,
            reports: 0,
        }
    }
}

// pins: G8, R4
#[test]
fn a_tree_of_processes_adds_up_on_any_number_of_workers() {
    for workers in [1, 2, 4, 8] {
        let scheduler = start(workers);
        let root = scheduler.submit(Node::new(15, None), "main", ()).unwrap();
        assert_eq!(exit_number(root), (1 << 16) - 1);
        until("all have ended", || scheduler.stats().live == 0);
        assert_eq!(scheduler.stats().total.done, (1 << 16) - 1);
    }
}

// pins: P4, R4
#[test]
fn a_hundred_senders_to_one_process_stay_in_order() {
    const SENDERS: u64 = 100;
    const EACH: u64 = 2_000;
    let scheduler = start(4);
    let mut next = std::collections::HashMap::new();
    let mut left = 2 * SENDERS * EACH;
    let collector = process(move |_, events, out| {
        for event in events {
            let Event::Message(message) = event else {
                continue;
            };
            let mut values = message.payloads.into_iter().map(|p| p.as_u64().unwrap());
            let (sender, number) = (values.next().unwrap(), values.next().unwrap());
            let expected = next.entry(sender).or_insert(0);
            assert_eq!(number, *expected, "out of order from {sender}");
            *expected += 1;
            left -= 1;
        }
        if left == 0 {
            out.done(1);
        }
        Ok(())
    });
    let collector = scheduler.submit(collector, "main", ()).unwrap();
    let pid = collector.pid();
    let numbers = |sender: u64, number: u64| -> Payloads {
        [sender.into(), number.into()].into_iter().collect()
    };
    // A hundred processes send by PID, a few messages a step. Threads send as much by address.
    for sender in 0..SENDERS {
        let mut sent = 0;
        let sender = process(move |ctx, _, out| {
            for _ in 0..10 {
                ctx.send(pid, "n", numbers(sender, sent))?;
                sent += 1;
            }
            if sent == EACH {
                out.done(());
            } else {
                out.step_again();
            }
            Ok(())
        });
        drop(scheduler.submit(sender, "main", ()).unwrap());
    }
    thread::scope(|scope| {
        for thread in 0..4 {
            let address = collector.address();
            scope.spawn(move || {
                for number in 0..EACH {
                    for sender in (SENDERS..2 * SENDERS).filter(|sender| sender % 4 == thread) {
                        address
                            .send(Message::new("n", numbers(sender, number)))
                            .unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(exit_number(collector), 1);
}

const LATER: CommandId = CommandId::new(256);

/// A process that counts its closes in a slot of its own, and ends when it sees a completion.
struct Target(Arc<Vec<AtomicU8>>, usize);

impl Process for Target {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if events.is_empty() {
            out.yield_command(Command::new(LATER, self.1), self.1 as u64);
        }
        for event in events {
            match event {
                Event::Completion(completion) => {
                    assert_eq!(completion.tag, self.1 as u64, "somebody else's completion");
                    out.done("completed");
                }
                Event::Cancel(_) => out.done("cancelled"),
                _ => {}
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        self.0[self.1].fetch_add(1, Ordering::SeqCst);
    }
}

#[derive(Default)]
struct Exits(Mutex<std::collections::HashMap<Pid, u32>>);

struct CountExits(Arc<Exits>);

impl Lifecycle for CountExits {
    fn on_start(&self, pid: Pid, _: Symbol) -> Result<(), BoxError> {
        self.0.0.lock().unwrap().insert(pid, 0);
        Ok(())
    }

    fn on_complete(&self, pid: Pid, _: &ExitReason) {
        *self.0.0.lock().unwrap().get_mut(&pid).unwrap() += 1;
    }
}

// pins: P2, P6, P7, P9, P10, P11, P12
#[test]
fn terminate_cancel_complete_and_upgrade_race() {
    const ROUNDS: usize = 100;
    const EACH: usize = 1_000;
    let exits = Arc::new(Exits::default());
    let scheduler = Scheduler::builder()
        .workers(2)
        .lifecycle(CountExits(Arc::clone(&exits)))
        .build()
        .unwrap();
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&kept);
    scheduler
        .register(LATER, "later", move |_: Command, completer: Completer| {
            keep.lock().unwrap().push(completer);
            Ok(())
        })
        .unwrap();
    scheduler.start().unwrap();
    let (mut upgrades, mut reasons) = (0, std::collections::BTreeMap::<String, u32>::new());
    for round in 0..ROUNDS {
        let counts = || Arc::new((0..EACH).map(|_| AtomicU8::new(0)).collect::<Vec<_>>());
        let (old, new) = (counts(), counts());
        let handles: Vec<_> = (0..EACH)
            .map(|n| {
                scheduler
                    .submit(Target(Arc::clone(&old), n), "main", ())
                    .unwrap()
            })
            .collect();
        until("all have yielded", || kept.lock().unwrap().len() == EACH);
        let completers = std::mem::take(&mut *kept.lock().unwrap());
        let pids: Vec<Pid> = handles.iter().map(|handle| handle.pid()).collect();

        let mut random = fastrand::Rng::with_seed(round as u64);
        let mut shuffled = || {
            let mut order: Vec<usize> = (0..EACH).collect();
            random.shuffle(&mut order);
            order
        };
        let (first, second, third) = (shuffled(), shuffled(), shuffled());
        let accepted = AtomicUsize::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                for completer in completers {
                    completer.complete(());
                }
            });
            scope.spawn(|| {
                for &n in &first {
                    drop(scheduler.terminate(pids[n]));
                }
            });
            scope.spawn(|| {
                for &n in &second {
                    drop(scheduler.cancel(pids[n], "race"));
                }
            });
            scope.spawn(|| {
                for &n in &third {
                    let target = Target(Arc::clone(&new), n);
                    let request = UpgradeRequest::process(target, "main", ());
                    if scheduler.upgrade(pids[n], request).is_ok() {
                        accepted.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        });
        for handle in handles {
            // Each process has been terminated, unless it had ended before.
            let reason = exit(handle).to_string();
            *reasons.entry(reason).or_default() += 1;
        }
        assert!(old.iter().all(|closes| closes.load(Ordering::SeqCst) == 1));
        let replaced = new
            .iter()
            .filter(|closes| closes.load(Ordering::SeqCst) == 1)
            .count();
        assert!(new.iter().all(|closes| closes.load(Ordering::SeqCst) <= 1));
        assert!(replaced <= accepted.load(Ordering::Relaxed));
        upgrades += replaced as u64;
        // The new processes may have yielded before they ended.
        kept.lock().unwrap().clear();
    }
    until("all have ended", || scheduler.stats().live == 0);
    let exits = exits.0.lock().unwrap();
    assert_eq!(exits.len(), ROUNDS * EACH);
    assert!(
        exits.values().all(|&count| count == 1),
        "every exit is reported once"
    );
    assert_eq!(reasons.values().sum::<u32>() as usize, ROUNDS * EACH);
    let total = scheduler.stats().total;
    assert_eq!(total.upgrades, upgrades);
    assert_eq!(total.done + total.terminated, (ROUNDS * EACH) as u64);
    assert_eq!(u64::from(reasons["terminated"]), total.terminated);
}

/// Panics in the chosen call.
struct Fragile {
    place: &'static str,
    closes: Arc<AtomicUsize>,
    inits: Arc<AtomicUsize>,
}

impl Process for Fragile {
    fn init(&mut self, _: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        assert!(self.place != "init", "on purpose: init");
        self.inits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        assert!(self.place != "step", "on purpose: step");
        match events.next() {
            None if self.place == "handler" => out.yield_command(Command::new(LATER, ()), 0),
            _ => out.done(()),
        }
        Ok(())
    }

    fn close(&mut self) {
        self.closes.fetch_add(1, Ordering::Relaxed);
        assert!(self.place != "close", "on purpose: close");
    }
}

// pins: P8, P2
#[test]
fn panicking_processes_among_healthy_ones() {
    const EACH: usize = 2_000;
    const PLACES: [&str; 6] = ["nowhere", "init", "step", "handler", "close", "nowhere"];
    quiet_panics();
    let scheduler = Scheduler::builder().workers(4).build().unwrap();
    let handler = |_: Command, _: Completer| panic!("on purpose: handler");
    scheduler.register(LATER, "panics", handler).unwrap();
    scheduler.start().unwrap();
    let (closes, inits) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut handles = Vec::new();
    for _ in 0..EACH {
        for place in PLACES {
            let (closes, inits) = (Arc::clone(&closes), Arc::clone(&inits));
            match scheduler.submit(
                Fragile {
                    place,
                    closes,
                    inits,
                },
                "main",
                (),
            ) {
                Ok(handle) => handles.push((place, handle)),
                Err(error) => assert_eq!(place, "init", "{error}"),
            }
        }
    }
    for (place, handle) in handles {
        let reason = exit(handle);
        assert_eq!(
            matches!(reason, ExitReason::Panicked(_)),
            place == "step",
            "{place}: {reason}"
        );
    }
    assert_eq!(inits.load(Ordering::Relaxed), 5 * EACH);
    assert_eq!(closes.load(Ordering::Relaxed), 5 * EACH);
    let total = scheduler.stats().total;
    assert_eq!((total.panicked, total.done), (EACH as u64, 4 * EACH as u64));
    assert_eq!(total.panics, 4 * EACH as u64, "init, step, handler, close");
}

// pins: D2, D4, P4
#[test]
fn every_message_is_handled_returned_or_counted() {
    let scheduler = start(4);
    let handled = Arc::new(AtomicU64::new(0));
    let mut sent = 0_u64;
    let mut returned = 0_u64;
    for round in 0..200_u64 {
        let count = Arc::clone(&handled);
        let mut left = round % 50;
        let target = process(move |_, events, out| {
            for event in events.take(7) {
                if let Event::Message(_) = event {
                    count.fetch_add(1, Ordering::Relaxed);
                    left = left.saturating_sub(1);
                }
            }
            if left == 0 {
                out.done(());
            } else {
                out.step_again();
            }
            Ok(())
        });
        let target = scheduler.submit(target, "main", ()).unwrap();
        let results: Vec<_> = thread::scope(|scope| {
            let send = || {
                let address = target.address();
                (0..100)
                    .map(|_| address.send(Message::new("m", ())).is_ok())
                    .collect::<Vec<_>>()
            };
            let senders: Vec<_> = (0..3).map(|_| scope.spawn(send)).collect();
            senders
                .into_iter()
                .flat_map(|sender| sender.join().unwrap())
                .collect()
        });
        sent += results.len() as u64;
        returned += results.iter().filter(|taken| !**taken).count() as u64;
        exit(target);
    }
    let report = scheduler.stop(Duration::from_secs(60)).unwrap();
    assert!(report.stuck.is_empty());
    let undelivered = scheduler.stats().total.undelivered;
    assert_eq!(
        handled.load(Ordering::Relaxed) + returned + undelivered,
        sent
    );
}

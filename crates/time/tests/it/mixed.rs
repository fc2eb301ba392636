//! Processes sleep, take sleeps back and send messages later, at random, in simulations with
//! faults. A plain model runs along: a map of the coming events.

use ganger_proc_api::{BoxError, Context, Event, Pid, StepOutput, Tag, process_fn};
use ganger_sched::ContextExt;
use ganger_sim::{Faults, Sim};
use ganger_time::{Instant, Timer};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PROCESSES: u64 = 4;
const STEPS: u32 = 40;

/// The messages with a later time, by their numbers.
#[derive(Default)]
struct Ledger {
    made: u64,
    /// The due times of messages neither cancelled nor received.
    due: BTreeMap<u64, Instant>,
    received: u64,
    cancelled: u64,
}

struct Citizen {
    ledger: Arc<Mutex<Ledger>>,
    others: Arc<Mutex<Vec<Pid>>>,
    random: fastrand::Rng,
    steps: u32,
    next: Tag,
    /// When each running sleep is over.
    sleeps: BTreeMap<Tag, Instant>,
    taken_back: HashSet<Tag>,
    timers: Vec<(u64, Timer)>,
}

impl Citizen {
    fn time(&mut self) -> Duration {
        match self.random.u8(..8) {
            0 => Duration::ZERO,
            1 => Duration::from_nanos(self.random.u64(1..3_000)),
            2 => Duration::from_secs(self.random.u64(1..10_000)),
            _ => Duration::from_micros(self.random.u64(1..5_000)),
        }
    }

    fn step(
        &mut self,
        ctx: &Context,
        events: &mut ganger_proc_api::Events<'_>,
        out: &mut StepOutput,
    ) -> Result<(), BoxError> {
        let now = ctx.now();
        for event in events {
            match event {
                Event::Completion(it) => {
                    it.result?;
                    assert!(!self.taken_back.contains(&it.tag), "T2: it was taken back");
                    let due = self.sleeps.remove(&it.tag).expect("T1: it completes once");
                    assert!(now >= due, "T1: it is early");
                }
                Event::Message(it) => {
                    let number = it.payloads.into_first().as_u64().unwrap();
                    let mut ledger = self.ledger.lock().unwrap();
                    let due = ledger.due.remove(&number);
                    let due = due.expect("T2: cancelled, or received twice");
                    assert!(now >= due, "T1: it is early");
                    ledger.received += 1;
                }
                _ => {}
            }
        }
        self.steps += 1;
        if self.steps < STEPS {
            for _ in 0..self.random.u8(..4) {
                self.act(ctx, now, out);
            }
            // This sleep causes another step.
            self.sleep(ctx, Duration::from_micros(700), out);
        } else if self.steps == STEPS {
            // The test does not wait for long sleeps.
            let long: Vec<_> = self.sleeps.keys().copied().collect();
            for tag in long {
                self.take_back(tag, out);
            }
            self.sleeps.clear();
            for (number, timer) in std::mem::take(&mut self.timers) {
                self.cancel(number, &timer);
            }
        }
        Ok(())
    }

    fn sleep(&mut self, ctx: &Context, time: Duration, out: &mut StepOutput) {
        let tag = self.next;
        self.next += 1;
        self.sleeps.insert(tag, ctx.now().after(time));
        out.sleep(time, tag);
    }

    fn take_back(&mut self, tag: Tag, out: &mut StepOutput) {
        out.cancel(tag);
        self.taken_back.insert(tag);
    }

    fn cancel(&mut self, number: u64, timer: &Timer) {
        // With the lock: the process receives a message under way only after the cancel.
        let mut ledger = self.ledger.lock().unwrap();
        if timer.cancel().is_some() {
            ledger
                .due
                .remove(&number)
                .expect("T2: it had been received");
            ledger.cancelled += 1;
        }
    }

    fn act(&mut self, ctx: &Context, now: Instant, out: &mut StepOutput) {
        match self.random.u8(..6) {
            0 | 1 => {
                let time = self.time();
                self.sleep(ctx, time, out);
            }
            2 => {
                let nth = self.random.usize(..=self.sleeps.len());
                if let Some(&tag) = self.sleeps.keys().nth(nth) {
                    self.sleeps.remove(&tag);
                    self.take_back(tag, out);
                }
            }
            3 => {
                let (time, others) = (self.time(), self.others.lock().unwrap().clone());
                let to = others[self.random.usize(..others.len())];
                let mut ledger = self.ledger.lock().unwrap();
                ledger.made += 1;
                let number = ledger.made;
                ledger.due.insert(number, now.after(time));
                drop(ledger);
                let timer = ctx.send_after(time, to, "n", number);
                self.timers.push((number, timer));
            }
            _ if self.timers.is_empty() => {}
            4 => {
                let nth = self.random.usize(..self.timers.len());
                let (number, timer) = self.timers.swap_remove(nth);
                self.cancel(number, &timer);
            }
            _ => {
                let (nth, time) = (self.random.usize(..self.timers.len()), self.time());
                let (number, timer) = &mut self.timers[nth];
                let later = time.max(Duration::from_nanos(1));
                let mut ledger = self.ledger.lock().unwrap();
                if let Some(left) = timer.read() {
                    let due = ledger.due[number];
                    assert_eq!(left, due.since(now), "it has another deadline");
                    // A delay of zero sends the message here.
                    ledger.due.insert(*number, now.after(time));
                    drop(ledger);
                    assert!(timer.reset(time));
                } else if timer.reset(later) {
                    // The message lay in a mailbox.
                    let due = ledger.due.insert(*number, now.after(later));
                    due.expect("T2: it had been received");
                }
            }
        }
    }
}

fn run(seed: u64, faults: Faults, workers: usize) {
    let sim = Sim::new(seed).workers(workers);
    sim.faults(faults).must_free().run(|rt| {
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let others = Arc::new(Mutex::new(Vec::new()));
        for nth in 0..PROCESSES {
            let mut citizen = Citizen {
                ledger: Arc::clone(&ledger),
                others: Arc::clone(&others),
                random: fastrand::Rng::with_seed(seed * PROCESSES + nth),
                steps: 0,
                next: 1,
                sleeps: BTreeMap::new(),
                taken_back: HashSet::new(),
                timers: Vec::new(),
            };
            let process = process_fn(move |ctx, events, out| citizen.step(ctx, events, out));
            others
                .lock()
                .unwrap()
                .push(rt.spawn(process).unwrap().pid());
        }
        rt.settle();
        let ledger = ledger.lock().unwrap();
        assert!(ledger.due.is_empty(), "never sent: {:?}", ledger.due);
        assert_eq!(ledger.received + ledger.cancelled, ledger.made);
        let stats = rt.timers().clone().stats();
        assert_eq!((stats.pending, stats.refused), (0, 0));
        assert_eq!(stats.armed, stats.fired + stats.cancelled);
    });
}

fn seeds(of: u64) -> std::ops::Range<u64> {
    let seeds = std::env::var("GANGER_SEEDS").ok();
    0..seeds.and_then(|it| it.parse().ok()).unwrap_or(of)
}

// pins: T1, T2
#[test]
fn each_timer_fires_once_or_is_cancelled_and_none_is_early() {
    for seed in seeds(60) {
        run(seed, Faults::default(), 1 + (seed % 3) as usize);
    }
}

// pins: T1, T2
#[test]
fn each_timer_fires_once_or_is_cancelled_with_faults() {
    for seed in seeds(60) {
        let faults = Faults {
            clock_jumps: 20,
            step_blocks: 20,
            worker_wakes_in_vain: 50,
            timer_waiter_wakes_early: 100,
            delivery_stalls: 100,
            ..Faults::some()
        };
        run(1_000 + seed, faults, 1 + (seed % 3) as usize);
    }
}

//! What a worker knows of those that it sends to by PID says what the registry says.

use super::*;
use crate::Scheduler;
use crate::pid_cache::PLACES;
use crate::run::Runner;
use ganger_proc_api::{
    BoxError, Event, Events, Message, Payloads, Process, ProcessContext, StepOutput,
};
use ganger_sync::atomic::{AtomicU64, Ordering};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// What numbers come to. A lock of `std` would do, but ThreadSanitizer does not see it.
#[derive(Clone, Default)]
struct Sum(Arc<AtomicU64>);

impl Sum {
    fn add(&self, number: u64) {
        // Ordering: a number of its own.
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        // Ordering: as above.
        self.0.load(Ordering::Relaxed)
    }
}

/// Adds up the numbers that it gets, and ends with the first 0.
struct Adder(Sum);

impl Process for Adder {
    fn step(&mut self, events: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
        out.idle();
        for event in events {
            let Event::Message(message) = event else {
                return Err("a message was expected".into());
            };
            match message.payloads.first().and_then(|number| number.as_u64()) {
                Some(0) => {
                    out.done(());
                    break;
                }
                Some(number) => self.0.add(number),
                None => return Err("a number was expected".into()),
            }
        }
        Ok(())
    }
}

/// The only worker of a scheduler, whose turns come when the test says so.
struct ByHand {
    scheduler: Scheduler,
    queue: LocalQueue,
}

impl ByHand {
    fn new(limit: Option<usize>) -> Self {
        let builder = Scheduler::builder().workers(1);
        let builder = builder.shutdown_deadline(Duration::ZERO);
        let scheduler = match limit {
            Some(limit) => builder.mailbox_limit(limit).build().unwrap(),
            None => builder.build().unwrap(),
        };
        let queue = LocalQueue::of_first(&scheduler.shared);
        Self { scheduler, queue }
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.queue.shared
    }

    fn pid(&self, id: u64) -> Pid {
        Pid::new(self.shared().host, id)
    }

    /// Starts one with that id, whose sum this is.
    fn start(&self, id: u64) -> Sum {
        let sum = Sum::default();
        let adder = Adder(sum.clone());
        let handle = self.scheduler.submit_as(self.pid(id), adder, "main", ());
        drop(handle.unwrap());
        self.run();
        sum
    }

    /// Sends from the worker.
    fn send(&self, id: u64, number: u64) -> Result<(), SendErrorKind> {
        let mut sent = Ok(());
        local::enter(&self.queue, || {
            let package = Message::new("number", number).to(self.pid(id));
            sent = self.scheduler.send(package).map_err(|error| {
                let returned = error.package.message.payloads.first();
                assert_eq!(
                    returned.and_then(|returned| returned.as_u64()),
                    Some(number)
                );
                error.kind
            });
        });
        sent
    }

    /// Runs whoever is ready, until nobody is.
    fn run(&self) {
        local::enter(&self.queue, || {
            let mut runner = Runner::new(self.shared(), Some(&self.queue));
            let next = || {
                self.queue
                    .deque
                    .pop()
                    .or_else(|| self.shared().global.pop())
            };
            while let Some(token) = next() {
                runner.run(token);
            }
        });
    }

    fn task(&self, id: u64) -> Task {
        self.shared().registry.get(id).unwrap()
    }
}

// pins: R2, P7
#[test]
fn who_is_sent_to_again_is_known_until_the_end() {
    let by_hand = ByHand::new(None);
    let sum = by_hand.start(1);
    let task = by_hand.task(1);
    let references = || Arc::strong_count(&task);
    let seen = [5, 7, 9].map(|number| {
        by_hand.send(1, number).unwrap();
        references()
    });
    // In the registry and here; after the second message the worker has one, too.
    assert_eq!(seen, [2, 3, 3]);
    by_hand.run();
    assert_eq!(sum.get(), 21);
    by_hand.send(1, 0).unwrap();
    by_hand.run();
    assert_eq!(references(), 2, "the worker knows it still");
    assert_eq!(by_hand.send(1, 11), Err(SendErrorKind::NotFound));
    assert_eq!(references(), 1, "who is closed is forgotten");
    // Another one, by the same name.
    let next = by_hand.start(1);
    (1..=4).for_each(|number| by_hand.send(1, number).unwrap());
    by_hand.run();
    assert_eq!((sum.get(), next.get()), (21, 10));
}

// pins: P12
#[test]
fn the_cell_of_one_that_is_forgotten_is_used_again() {
    let by_hand = ByHand::new(None);
    drop(by_hand.start(1));
    let first = Arc::as_ptr(&by_hand.task(1));
    (0..3)
        .rev()
        .for_each(|number| by_hand.send(1, number).unwrap());
    by_hand.run();
    // The worker keeps it from being used again until another process drives it out.
    drop(by_hand.start(2));
    assert_ne!(first, Arc::as_ptr(&by_hand.task(2)));
    let other = 1 + PLACES as u64;
    drop(by_hand.start(other));
    (0..2).for_each(|_| by_hand.send(other, 1).unwrap());
    let cell = by_hand
        .queue
        .cache
        .borrow_mut()
        .take_cell(&by_hand.shared().pool);
    assert_eq!(cell.as_ref().map(Arc::as_ptr), Some(first));
}

#[test]
fn two_that_share_a_place_do_not_drive_each_other_out_in_turns() {
    let by_hand = ByHand::new(None);
    let ids = [1, 1 + PLACES as u64];
    let tasks = ids.map(|id| {
        drop(by_hand.start(id));
        by_hand.task(id)
    });
    let send = |which: usize, times| (0..times).for_each(|_| by_hand.send(ids[which], 1).unwrap());
    let known = || tasks.each_ref().map(|task| Arc::strong_count(task) == 3);
    send(0, 2);
    assert_eq!(known(), [true, false]);
    for _ in 0..3 {
        send(1, 1);
        send(0, 1);
        assert_eq!(known(), [true, false]);
    }
    send(1, 2);
    assert_eq!(known(), [false, true]);
}

// pins: P13
#[test]
fn one_that_is_full_stays_known() {
    let by_hand = ByHand::new(Some(2));
    let sum = by_hand.start(1);
    let task = by_hand.task(1);
    let sent = [(); 4].map(|()| by_hand.send(1, 1));
    let full = Err(SendErrorKind::Full);
    assert_eq!(sent, [Ok(()), Ok(()), full, full]);
    assert_eq!(Arc::strong_count(&task), 3);
    by_hand.run();
    assert_eq!(by_hand.send(1, 1), Ok(()));
    by_hand.run();
    assert_eq!(sum.get(), 3);
}

/// Sends each of them a few numbers, and ends.
struct Sender(Vec<Pid>, Option<ProcessContext>);

impl Process for Sender {
    fn init(&mut self, ctx: &ProcessContext, _: &str, _: Payloads) -> Result<(), BoxError> {
        self.1 = Some(ctx.clone());
        Ok(())
    }

    fn step(&mut self, _: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
        let ctx = self.1.take().ok_or("it has begun")?;
        for &pid in &self.0 {
            (0..4).try_for_each(|_| ctx.send(pid, "number", 1_u64))?;
        }
        out.done(());
        Ok(())
    }
}

// pins: P12
#[test]
fn a_worker_that_sleeps_knows_nobody() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    scheduler.start().unwrap();
    let shared = &scheduler.shared;
    let pids = [1, 2, 3].map(|id| Pid::new(shared.host, id));
    for pid in pids {
        let adder = Adder(Sum::default());
        drop(scheduler.submit_as(pid, adder, "main", ()).unwrap());
    }
    let sleeps = scheduler.stats().total.sleeps;
    let sender = scheduler
        .submit(Sender(pids.into(), None), "main", ())
        .unwrap();
    assert!(sender.wait().is_done());
    while scheduler.stats().total.sleeps == sleeps || scheduler.stats().sleeping == 0 {
        thread::yield_now();
    }
    for pid in pids {
        let task = shared.registry.get(pid.id()).unwrap();
        assert_eq!(Arc::strong_count(&task), 2, "in the registry and here");
    }
}

/// The same, and then blocks its thread until it is released.
struct Blocker(Sender, mpsc::Receiver<()>);

impl Process for Blocker {
    fn init(
        &mut self,
        ctx: &ProcessContext,
        method: &str,
        input: Payloads,
    ) -> Result<(), BoxError> {
        self.0.init(ctx, method, input)
    }

    fn step(&mut self, events: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
        self.0.step(events, out)?;
        self.1.recv()?;
        Ok(())
    }
}

// pins: P12, G6
#[test]
fn a_worker_that_stands_down_knows_nobody() {
    let hour = Duration::from_secs(3_600);
    let builder = Scheduler::builder().workers(1).max_spares(1);
    let scheduler = builder.keep_spares(hour).build().unwrap();
    scheduler.start().unwrap();
    let shared = &scheduler.shared;
    let pids = [1, 2, 3].map(|id| Pid::new(shared.host, id));
    let sums = pids.map(|pid| {
        let sum = Sum::default();
        let adder = Adder(sum.clone());
        drop(scheduler.submit_as(pid, adder, "main", ()).unwrap());
        sum
    });
    let (release, released) = mpsc::channel();
    let blocker = Blocker(Sender(pids.into(), None), released);
    let blocker = scheduler.submit(blocker, "main", ()).unwrap();
    // Whom it has woken the spare runs.
    while sums.iter().any(|sum| sum.get() < 4) {
        thread::yield_now();
    }
    release.send(()).unwrap();
    assert!(blocker.wait().is_done());
    while shared.worker_slots.replaced() > 0 {
        thread::yield_now();
    }
    for pid in pids {
        let task = shared.registry.get(pid.id()).unwrap();
        assert_eq!(Arc::strong_count(&task), 2, "in the registry and here");
    }
}

// pins: R2
#[test]
fn a_process_with_the_id_0_is_one_like_others() {
    let by_hand = ByHand::new(None);
    let sum = by_hand.start(0);
    let task = by_hand.task(0);
    let seen = [(); 3].map(|()| {
        by_hand.send(0, 1).unwrap();
        Arc::strong_count(&task)
    });
    assert_eq!(seen, [2, 3, 3]);
    by_hand.run();
    assert_eq!(sum.get(), 3);
}

#[derive(Debug, Clone)]
enum Act {
    Start(u64),
    Send(u64, u64),
    End(u64),
    Run,
}

fn act() -> impl Strategy<Value = Act> {
    // Some of them share places.
    let id = || {
        prop_oneof![
            Just(1),
            Just(2),
            Just(1 + PLACES as u64),
            Just(2 * PLACES as u64 + 1)
        ]
    };
    prop_oneof![
        2 => id().prop_map(Act::Start),
        8 => (id(), 1..100_u64).prop_map(|(id, number)| Act::Send(id, number)),
        1 => id().prop_map(Act::End),
        2 => Just(Act::Run),
    ]
}

/// What a process that lives by an id is to have got.
#[derive(Default)]
struct Living {
    sum: Sum,
    due: u64,
    is_ending: bool,
}

proptest! {
    // pins: R2, P7
    #[test]
    fn what_is_sent_goes_to_who_lives_by_that_id(
        acts in proptest::collection::vec(act(), 1..120),
    ) {
        let by_hand = ByHand::new(None);
        let mut living: HashMap<u64, Living> = HashMap::new();
        let mut over = Vec::new();
        for act in acts {
            match act {
                Act::Start(id) if !living.contains_key(&id) => {
                    let sum = by_hand.start(id);
                    living.insert(id, Living { sum, ..Living::default() });
                }
                Act::Send(id, number) => {
                    let sent = by_hand.send(id, number);
                    prop_assert_eq!(sent, living.get(&id).map(drop).ok_or(SendErrorKind::NotFound));
                    if let Some(living) = living.get_mut(&id) {
                        living.due += if living.is_ending { 0 } else { number };
                    }
                }
                Act::End(id) => {
                    if let Some(living) = living.get_mut(&id) {
                        prop_assert!(by_hand.send(id, 0).is_ok());
                        living.is_ending = true;
                    }
                }
                Act::Start(_) | Act::Run => by_hand.run(),
            }
            if matches!(act, Act::Start(_) | Act::Run) {
                let ended: Vec<u64> = living.iter().filter(|it| it.1.is_ending).map(|it| *it.0).collect();
                over.extend(ended.iter().filter_map(|id| living.remove(id)));
            }
        }
        by_hand.run();
        for one in over.iter().chain(living.values()) {
            prop_assert_eq!(one.sum.get(), one.due);
        }
    }
}

//! An envelope goes to the process that lives by its PID.

use super::*;
use crate::Scheduler;
use crate::runtime::local::LocalQueue;
use crate::turn::run::Runner;
use ganger_proc_api::{Context, Event, Events, Message, Process, StepOutput, StepResult};
use ganger_sync::atomic::{AtomicU64, Ordering};
use proptest::prelude::*;
use std::collections::HashMap;
use std::time::Duration;

/// The sum of numbers. A lock of `std` would do, but ThreadSanitizer does not see it.
#[derive(Clone, Default)]
struct Sum(Arc<AtomicU64>);

impl Sum {
    fn add(&self, number: u64) {
        // Ordering: a number of its own.
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        // Ordering: Relaxed: a number of its own.
        self.0.load(Ordering::Relaxed)
    }
}

/// Adds its numbers up, and ends with the first 0.
struct Adder(Sum);

impl Process for Adder {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
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

    /// Starts a process with this id, and returns its sum.
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
            let envelope = Message::new("number", number).to(self.pid(id));
            sent = self.scheduler.send(envelope).map_err(|error| {
                let returned = error.envelope.message.payloads.first();
                assert_eq!(
                    returned.and_then(|returned| returned.as_u64()),
                    Some(number)
                );
                error.kind
            });
        });
        sent
    }

    /// Runs the ready processes, until none is ready.
    fn run(&self) {
        local::enter(&self.queue, || {
            let mut runner = Runner::new(self.shared(), Some(&self.queue));
            let next = || {
                self.queue
                    .deque
                    .pop()
                    .or_else(|| self.shared().queues.global.pop())
            };
            while let Some(token) = next() {
                runner.run(token);
            }
        });
    }
}

// pins: R2, P7
#[test]
fn an_envelope_for_an_ended_process_comes_back_until_another_has_its_id() {
    let by_hand = ByHand::new(None);
    let sum = by_hand.start(1);
    [5, 7, 9]
        .into_iter()
        .for_each(|number| by_hand.send(1, number).unwrap());
    by_hand.run();
    assert_eq!(sum.get(), 21);
    by_hand.send(1, 0).unwrap();
    by_hand.run();
    assert_eq!(by_hand.send(1, 11), Err(SendErrorKind::NotFound));
    let next = by_hand.start(1);
    (1..=4).for_each(|number| by_hand.send(1, number).unwrap());
    by_hand.run();
    assert_eq!((sum.get(), next.get()), (21, 10));
}

// pins: P13
#[test]
fn a_full_mailbox_takes_envelopes_again_when_there_is_room() {
    let by_hand = ByHand::new(Some(2));
    let sum = by_hand.start(1);
    let sent = [(); 4].map(|()| by_hand.send(1, 1));
    let full = Err(SendErrorKind::Full);
    assert_eq!(sent, [Ok(()), Ok(()), full, full]);
    by_hand.run();
    assert_eq!(by_hand.send(1, 1), Ok(()));
    by_hand.run();
    assert_eq!(sum.get(), 3);
}

// pins: R2
#[test]
fn a_process_with_the_id_0_is_one_like_others() {
    let by_hand = ByHand::new(None);
    let sum = by_hand.start(0);
    (0..3).for_each(|_| by_hand.send(0, 1).unwrap());
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
    let id = || 0..4_u64;
    prop_oneof![
        2 => id().prop_map(Act::Start),
        8 => (id(), 1..100_u64).prop_map(|(id, number)| Act::Send(id, number)),
        1 => id().prop_map(Act::End),
        2 => Just(Act::Run),
    ]
}

/// The expected messages of a process with an id.
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
                let ended: Vec<u64> = living
                    .iter()
                    .filter(|it| it.1.is_ending)
                    .map(|it| *it.0)
                    .collect();
                over.extend(ended.iter().filter_map(|id| living.remove(id)));
            }
        }
        by_hand.run();
        for one in over.iter().chain(living.values()) {
            prop_assert_eq!(one.sum.get(), one.due);
        }
    }
}

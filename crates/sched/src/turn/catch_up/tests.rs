use super::*;
use crate::Scheduler;
use crate::runtime::token::Token;
use crate::runtime::turn_place::OnWorker;
use crate::turn::run::Runner;
use ganger_proc_api::{Context, Events, Message, Process, StepOutput, StepResult};
use std::time::Duration;

const BATCH: usize = 256;

/// Returns the queue of the first of two workers of a scheduler that is not started.
fn queue() -> (Scheduler, LocalQueue) {
    let builder = Scheduler::builder().workers(2).max_spares(0);
    let scheduler = builder.shutdown_deadline(Duration::ZERO).build().unwrap();
    let queue = LocalQueue::of_first(&scheduler.shared);
    (scheduler, queue)
}

/// Begins a pick without a limit of time.
fn pick(queue: &LocalQueue) -> CatchUp<'_> {
    CatchUp {
        until: Deadline::after(Duration::MAX),
        ..CatchUp::begin(OnWorker::new(queue)).unwrap()
    }
}

/// Returns whether a process with many events has another turn in a pick that has just begun.
fn would_go_on(queue: &LocalQueue) -> bool {
    pick(queue).goes_on(usize::MAX)
}

// pins: G4
#[test]
fn a_process_goes_on_as_long_as_a_batch_is_left() {
    let (_scheduler, queue) = queue();
    for (left, expected) in [(BATCH - 1, false), (BATCH, true)] {
        assert_eq!(pick(&queue).goes_on(left), expected, "{left} events");
    }
}

// pins: G4
#[test]
fn a_process_has_sixty_four_turns_at_the_most() {
    let (_scheduler, queue) = queue();
    let mut pick = pick(&queue);
    let further = (1..1_000).take_while(|_| pick.goes_on(usize::MAX));
    assert_eq!(further.count(), 63);
}

// pins: G4
#[test]
fn a_process_has_no_further_turn_after_a_hundred_microseconds() {
    let (_scheduler, queue) = queue();
    let mut pick = CatchUp::begin(OnWorker::new(&queue)).unwrap();
    assert!(pick.until.remaining() <= Duration::from_micros(100));
    pick.until = Deadline::after(Duration::ZERO);
    assert!(!pick.goes_on(usize::MAX));
}

// pins: G6
#[test]
fn a_process_does_not_go_on_when_its_worker_is_called() {
    let (_scheduler, queue) = queue();
    assert!(would_go_on(&queue));
    queue.shared.worker_slots.mark_spare(1);
    assert!(queue.shared.replace_worker(0, None));
    assert!(!would_go_on(&queue));
}

// pins: D3
#[test]
fn a_process_does_not_go_on_after_the_halt() {
    let (_scheduler, queue) = queue();
    queue.shared.shutdown.halt();
    assert!(!would_go_on(&queue));
}

/// Waits, and leaves its events.
struct Waits;

impl Process for Waits {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
        Ok(())
    }
}

/// Submits a process with `messages` messages, and takes it out of its queue.
fn ready(scheduler: &Scheduler, messages: usize) -> Token {
    let process = scheduler.submit(Waits, "main", ()).unwrap();
    for n in 0..messages {
        process.send(Message::new("n", n as u64)).unwrap();
    }
    scheduler.shared.queues.global.pop().unwrap()
}

// pins: P10
#[test]
fn a_process_with_a_system_event_goes_before_one_that_is_far_behind() {
    let (scheduler, queue) = queue();
    queue.shared.queues.urgent.push(ready(&scheduler, 0));
    assert!(!would_go_on(&queue));
    assert!(queue.shared.queues.urgent.pop().is_some());
    assert!(would_go_on(&queue));
}

/// Checks that a process that has queued another ends its pick: else the other is sent more and
/// more before it has a turn.
// pins: G4
#[test]
fn a_process_does_not_go_on_when_it_has_queued_another() {
    let (scheduler, queue) = queue();
    let mut pick = pick(&queue);
    queue.deque.push(ready(&scheduler, 0));
    assert!(!pick.goes_on(usize::MAX));
    assert!(would_go_on(&queue), "it was there before");
}

/// Counts the turns of each pick, in order, over the processes in the deque.
fn turns_of_picks(queue: &LocalQueue) -> Vec<u64> {
    let turns = || queue.shared.counters.of(Some(0)).turns.get();
    let mut runner = Runner::new(&queue.shared, Some(queue));
    let mut picks = Vec::new();
    while let Some(token) = queue.deque.pop() {
        let before = turns();
        runner.run(token);
        picks.push(turns() - before);
    }
    picks
}

/// Checks the turns of each pick. The first step has the messages sent to a running process. A pick
/// interrupted by the machine is shorter.
// pins: G4
#[test]
fn a_process_has_further_turns_when_a_pick_begins_with_three_batches() {
    const ATTEMPTS: usize = 100;
    for (messages, expected) in [
        (4 * BATCH - 1, &[1, 1, 1, 1][..]),
        (4 * BATCH, &[1, 3]),
        (4 * BATCH + 1, &[1, 3, 1]),
    ] {
        let is_as_expected = |_| {
            let (scheduler, queue) = queue();
            queue.deque.push(ready(&scheduler, messages));
            turns_of_picks(&queue) == expected
        };
        assert!((0..ATTEMPTS).any(is_as_expected), "{messages}");
    }
}

/// Checks that a queued process wakes a sleeper: else it waits until the last turn is over, while a
/// worker sleeps.
// pins: G2
#[test]
fn a_sleeper_is_woken_for_what_is_left_to_the_worker_of_a_process_that_goes_on() {
    let (scheduler, queue) = queue();
    // Its submit wakes a sleeper, too.
    let token = ready(&scheduler, 0);
    let idle = &queue.shared.queues.idle;
    idle.announce(1, false);
    assert!(!idle.look_again(1, || false, || false));
    let mut pick = pick(&queue);
    assert!(pick.goes_on(BATCH));
    assert_eq!(idle.snapshot().sleeping, 1, "nothing waits");
    queue.deque.push(token);
    pick.queued = 1;
    assert!(pick.goes_on(BATCH));
    assert_eq!(idle.snapshot().sleeping, 0);
}

//! Several turns in one pick, for processes that are far behind.
//!
//! **Problem.** Who sends thousands of messages in a step has a pick for all of them, and their receiver one for
//! every 256. At each rotation (G4) a sender or two have another such step, so that a receiver which is younger than they
//! are, and faster, falls behind: what waits grows by megabytes, which the system has to provide page by page, and which
//! fit into no cache when their turn comes.
//!
//! **Rejected.** Larger batches: how many events a step is shown is what its process relies on (P4). Fewer rotations, or
//! none while somebody is behind: their number is promised, in picks. To have senders wait: that is what limits of
//! mailboxes are for.
//!
//! **Protocol.** A process is far behind when a turn (a batch, and a step that would wait then) leaves three batches or more.
//! That is noted, and the process queued. If it is behind after the worker's next turn as well, it has another one at
//! once, and so on, until
//! - less than a batch is left of what has left the mailbox, or the step does not wait but asks for another one;
//! - it has had [`TURNS`] turns, or [`LONG`] has passed since it was noted, which was before the pick: so much longer
//!   others wait;
//! - a process waits in the urgent lane, this one for instance, or the worker is called to something, or the scheduler
//!   halts;
//! - it has queued others on its worker.
//!
//! It is as if the worker had picked it each time, but that there is no rotation: somebody is woken for what is left in
//! the deque (G2), a termination comes before the next step (P9), and whoever watches the worker sees a turn begin (G6).
//! All others pay nothing: that events are left is known when a turn ends, and what is more is looked at then.

use super::Runner;
use crate::clock::Since;
use crate::local::LocalQueue;
use crate::token::Token;
use crate::turns::Seat;
use std::time::Duration;

/// How many batches a turn leaves to a process that is far behind.
const FAR: usize = 3;

/// How many turns it has in one pick at the most.
const TURNS: u32 = 64;

/// After how long there is no further turn.
const LONG: Duration = Duration::from_micros(100);

/// What a runner knows of processes that are far behind.
pub(super) struct CatchUp {
    /// [`LONG`]; tests, for which the system may have other things to do, have all the time.
    long: Duration,
    /// One was, after the last turn, or some time before.
    noted: Option<Noted>,
    /// One has further turns.
    is_on: bool,
    /// It is to have another one.
    again: Option<Token>,
}

impl Default for CatchUp {
    fn default() -> Self {
        Self {
            long: LONG,
            noted: None,
            is_on: false,
            again: None,
        }
    }
}

/// When a turn was over that left much.
struct Noted {
    /// How many turns its worker had begun.
    turns: u64,
    since: Since,
    /// How many processes were in the worker's deque.
    queued: usize,
}

impl CatchUp {
    /// Whether it is long ago. In a simulation no time passes in a turn.
    fn has_lasted(&self, noted: &Noted) -> bool {
        #[cfg(feature = "sim")]
        if crate::sim::is_driven() {
            return false;
        }
        noted.since.elapsed() >= self.long
    }
}

impl Runner<'_> {
    /// Goes on with a process whose turn has just ended, which is ready, and for which events are left, or queues it.
    #[cold]
    #[inline(never)]
    pub(super) fn catch_up(&mut self, token: Token) {
        let Some(Seat { queue, .. }) = self.seat else {
            return self.shared_arc.requeue(None, token);
        };
        if self.catch_up.is_on {
            self.catch_up.again = Some(token);
            return;
        }
        let turns = self.counters.turns.get();
        let noted = self.catch_up.noted.take();
        if let Some(noted) = noted.filter(|noted| noted.turns + 1 == turns) {
            self.catch_up.is_on = true;
            let token = self.go_on(queue, token, &noted);
            self.catch_up.is_on = false;
            if let Some(token) = token {
                self.queue(queue, token);
            }
        } else {
            self.queue(queue, token);
        }
    }

    /// Queues it, and notes whether it is far behind.
    fn queue(&mut self, queue: &LocalQueue, token: Token) {
        let (token, events) = events_of(token);
        if events / FAR >= self.shared.config.event_batch {
            self.catch_up.noted = Some(Noted {
                turns: self.counters.turns.get(),
                since: Since::before(Duration::ZERO),
                queued: queue.deque.len(),
            });
        }
        self.shared_arc.requeue(Some(queue), token);
    }

    /// Gives the process as many turns as are due. Returns it unless it has been queued since, or waits, or has ended.
    fn go_on(&mut self, queue: &LocalQueue, mut token: Token, noted: &Noted) -> Option<Token> {
        let mut turns = 1;
        loop {
            let events;
            (token, events) = events_of(token);
            let goes_on = goes_on(queue, noted, events, turns);
            if !goes_on || self.catch_up.has_lasted(noted) {
                return Some(token);
            }
            token = self.keep(queue, token);
            turns += 1;
            self.run(token);
            token = self.catch_up.again.take()?;
        }
    }

    /// It is as if it had been queued, and picked again.
    fn keep(&self, queue: &LocalQueue, token: Token) -> Token {
        let check = &self.shared.check;
        check.begin_pick(queue.index);
        queue.offer();
        check.end_pick(queue.index);
        let task = token.into_task();
        task.check.keep();
        // SAFETY: the token is still this thread's.
        unsafe { Token::new(&task) }
    }
}

/// For how many events a process has had no turn that have left its mailbox; and its token again.
fn events_of(token: Token) -> (Token, usize) {
    let task = token.into_task();
    // SAFETY: this thread owns the run token, and nobody runs the process.
    let events = unsafe { task.with_core(|core| core.pending.len()) };
    // SAFETY: as above.
    (unsafe { Token::new(&task) }, events)
}

/// Whether a process has another turn in a pick that has had so many, and for which so many events are left.
fn goes_on(queue: &LocalQueue, noted: &Noted, events: usize, turns: u32) -> bool {
    let shared = &queue.shared;
    let has_to_look = !shared.urgent.is_empty()
        || shared.crew.is_relieved(queue.index)
        || shared.shutdown.is_halted();
    events >= shared.config.event_batch
        && turns < TURNS
        && queue.deque.len() <= noted.queued
        && !has_to_look
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Scheduler;
    use ganger_proc_api::{BoxError, Events, Process, StepOutput};

    const BATCH: usize = 256;

    /// The queue of one of two workers of a scheduler that is not started.
    fn queue() -> (Scheduler, LocalQueue) {
        let builder = Scheduler::builder().workers(2).max_spares(0);
        let scheduler = builder.shutdown_deadline(Duration::ZERO).build().unwrap();
        let queue = LocalQueue::of_first(&scheduler.shared);
        (scheduler, queue)
    }

    /// It is noted, after no turn.
    fn noted(queue: &LocalQueue) -> Noted {
        Noted {
            turns: 0,
            since: Since::before(Duration::ZERO),
            queued: queue.deque.len(),
        }
    }

    /// Whether a process goes on that has much to do, and was noted just now.
    fn would_go_on(queue: &LocalQueue) -> bool {
        goes_on(queue, &noted(queue), usize::MAX, 1)
    }

    // pins: G4
    #[test]
    fn a_process_goes_on_as_long_as_a_batch_is_left() {
        let (_scheduler, queue) = queue();
        for (left, expected) in [(BATCH - 1, false), (BATCH, true)] {
            let goes_on = goes_on(&queue, &noted(&queue), left, 1);
            assert_eq!(goes_on, expected, "{left} events");
        }
    }

    // pins: G4
    #[test]
    fn a_process_has_sixty_four_turns_at_the_most() {
        let (_scheduler, queue) = queue();
        let has_another = |&turns: &u32| goes_on(&queue, &noted(&queue), usize::MAX, turns);
        assert_eq!((1..1_000).take_while(has_another).count(), 63);
    }

    // pins: G4
    #[test]
    fn a_process_has_no_further_turn_after_a_hundred_microseconds() {
        let (_scheduler, queue) = queue();
        let since = Since::before(LONG);
        let noted = Noted {
            since,
            ..noted(&queue)
        };
        assert!(CatchUp::default().has_lasted(&noted));
    }

    // pins: G6
    #[test]
    fn a_process_does_not_go_on_when_its_worker_is_called() {
        let (_scheduler, queue) = queue();
        assert!(would_go_on(&queue));
        queue.shared.crew.step_back(1);
        assert!(queue.shared.crew.relieve(&queue.shared, 0, None));
        assert!(!would_go_on(&queue));
    }

    // pins: D3
    #[test]
    fn a_process_does_not_go_on_after_the_halt() {
        let (_scheduler, queue) = queue();
        queue.shared.shutdown.halt();
        assert!(!would_go_on(&queue));
    }

    /// Waits, and lets its events be.
    struct Waits;

    impl Process for Waits {
        fn step(&mut self, _: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
            out.idle();
            Ok(())
        }
    }

    /// One that is ready, and in no queue, with so many messages.
    fn ready(scheduler: &Scheduler, messages: usize) -> Token {
        let process = scheduler.submit(Waits, "main", ()).unwrap();
        for n in 0..messages {
            let message = ganger_proc_api::Message::new("n", n as u64);
            process.send(message).unwrap();
        }
        scheduler.shared.global.pop().unwrap()
    }

    // pins: P10
    #[test]
    fn who_has_a_system_event_goes_before_who_is_far_behind() {
        let (scheduler, queue) = queue();
        queue.shared.urgent.push(ready(&scheduler, 0));
        assert!(!would_go_on(&queue));
        assert!(queue.shared.urgent.pop().is_some());
        assert!(would_go_on(&queue));
    }

    /// Else it is sent more and more before it has a turn.
    // pins: G4
    #[test]
    fn a_process_does_not_go_on_when_it_has_queued_another() {
        let (scheduler, queue) = queue();
        let noted = noted(&queue);
        queue.deque.push(ready(&scheduler, 0));
        assert!(!goes_on(&queue, &noted, usize::MAX, 1));
        assert!(would_go_on(&queue), "it was there before");
    }

    /// A runner of the queue's worker, whose turns take no time.
    fn runner(queue: &LocalQueue) -> Runner<'_> {
        let mut runner = Runner::new(&queue.shared, Some(queue));
        runner.catch_up.long = Duration::MAX;
        runner
    }

    /// Runs what is in the deque, one pick after the other; how many turns each pick was.
    fn turns_of_picks(queue: &LocalQueue, runner: &mut Runner<'_>) -> Vec<u64> {
        let turns = || queue.shared.counters.of(Some(0)).turns.get();
        let mut picks = Vec::new();
        while let Some(token) = queue.deque.pop() {
            let before = turns();
            runner.run(token);
            picks.push(turns() - before);
        }
        picks
    }

    /// What its step leaves does not count.
    // pins: G4
    #[test]
    fn a_process_has_further_turns_when_the_one_before_left_three_batches() {
        for (messages, expected) in [
            (4 * BATCH - 1, &[1, 1, 1, 1][..]),
            (4 * BATCH, &[1, 3]),
            (4 * BATCH + 1, &[1, 3, 1]),
        ] {
            let (scheduler, queue) = queue();
            queue.deque.push(ready(&scheduler, messages));
            let mut runner = runner(&queue);
            assert_eq!(turns_of_picks(&queue, &mut runner), expected, "{messages}");
        }
    }

    /// That a turn before was short says nothing, when another process had the worker since.
    // pins: G4
    #[test]
    fn a_process_has_to_show_that_its_turns_are_short() {
        let (scheduler, queue) = queue();
        let turns = &queue.shared.counters.of(Some(0)).turns;
        let mut runner = runner(&queue);
        queue.deque.push(ready(&scheduler, 8 * BATCH));
        for (of_another, expected) in [(0, 1), (1, 1), (0, 6)] {
            turns.add(of_another);
            let before = turns.get();
            runner.run(queue.deque.pop().unwrap());
            assert_eq!(turns.get() - before, expected);
        }
    }

    /// Else it waits until the last turn is over, beside a worker that sleeps.
    // pins: G2
    #[test]
    fn somebody_is_woken_for_what_is_left_to_the_worker_of_one_who_goes_on() {
        let (scheduler, queue) = queue();
        let idle = &queue.shared.idle;
        let [first, second] = [(); 2].map(|()| ready(&scheduler, 5 * BATCH));
        let other = ready(&scheduler, 0);
        idle.announce(1, false);
        assert!(!idle.look_again(1, || false, || false));
        let mut runner = runner(&queue);
        queue.deque.push(first);
        assert_eq!(turns_of_picks(&queue, &mut runner), [1, 4]);
        assert_eq!(idle.snapshot().sleeping, 1, "nobody waits");
        queue.deque.push(other);
        queue.deque.push(second);
        for _ in 0..2 {
            runner.run(queue.deque.pop().unwrap());
        }
        assert_eq!(idle.snapshot().sleeping, 0);
    }
}

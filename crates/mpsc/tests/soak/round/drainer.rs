//! The consumer of a queue. The drainer drains, and sleeps on its own parker, with an account of
//! every park.

use super::intake::Intake;
use super::outlet::Mailbox;
use super::plan::{Ending, Take};
use super::tally::Tally;
use super::{Ends, Round};
use fastrand::Rng;
use ganger_mpsc::Park;
use ganger_soak::chance::{one_in, pick};
use ganger_soak::{Doing, Load};
use std::thread;
use std::time::Duration;

pub(super) const DOES: &[&str] = &[
    "waiting for the start",
    "in drain",
    "in park",
    "asleep until a token comes",
    "asleep for a short time",
    "in cancel_park",
    "in close",
    "with what it keeps",
    "yielding or sleeping",
    "changing the cache of nodes",
    "done",
];

/// How long a sleep with a deadline takes.
const SHORT: Duration = Duration::from_micros(30);

pub(super) struct Drainer<'r, 'a, L> {
    round: &'r Round<'a>,
    mailbox: &'r Mailbox<L>,
    intake: Intake<'r, 'a, L>,
    random: Rng,
    doing: &'r Doing,
}

impl<'r, 'a, L: Load<'a>> Drainer<'r, 'a, L> {
    pub(super) fn new(round: &'r Round<'a>, mailbox: &'r Mailbox<L>, doing: &'r Doing) -> Self {
        Self {
            round,
            mailbox,
            intake: Intake::new(round),
            random: Rng::with_seed(round.plan.consumer.seed),
            doing,
        }
    }

    pub(super) fn run(mut self) -> Tally {
        let _ends = Ends(self.round);
        self.round.start.wait();
        self = super::in_legs(self, Self::leg);
        self.intake.finish();
        self.doing.begins(10);
        self.intake.tally
    }

    /// Drains for a while, in a single thread. Returns whether the consumer has more to do.
    fn leg(&mut self) -> bool {
        let plan = &self.round.plan.consumer;
        for _ in 0..plan.leg {
            match plan.ending {
                _ if self.round.is_over() => return self.close(),
                Ending::Close(after) if self.intake.received() >= after => return self.close(),
                Ending::Drop(after) if self.intake.received() >= after => return self.leave(),
                Ending::Last | Ending::Close(_) | Ending::Drop(_) => {}
            }
            if !self.drain() {
                if self.mailbox.queue.is_finished() {
                    return self.check_end();
                }
                self.rest();
            }
            self.doing.begins(7);
            self.intake.tend(&mut self.random);
            self.doing.begins(8);
            self.round.pause(&mut self.random);
            self.doing.begins(9);
            self.round.disturb(&mut self.random);
        }
        true
    }

    /// Drains, and returns whether the queue had items.
    fn drain(&mut self) -> bool {
        self.doing.begins(1);
        let batch = self.mailbox.queue.drain();
        let any = !batch.is_empty();
        self.intake.tally.chains += u64::from(any);
        self.intake.take_batch(batch);
        any
    }

    /// Waits or yields while the queue is empty.
    fn rest(&mut self) {
        let take = *pick(&mut self.random, &self.round.plan.consumer.ops);
        if !matches!(take, Take::Recv | Take::RecvTimeout | Take::TryRecv) {
            thread::yield_now();
        } else if self.park() {
            match take {
                Take::Recv => self.sleep(),
                Take::RecvTimeout => {
                    self.doing.begins(4);
                    if self.mailbox.parker.park_timeout(SHORT) {
                        self.check_awake();
                    } else {
                        self.cancel();
                    }
                }
                _ => self.cancel(),
            }
        }
    }

    /// Parks, and returns whether the queue is parked.
    fn park(&mut self) -> bool {
        self.doing.begins(2);
        let queue = &self.mailbox.queue;
        match queue.park() {
            Park::Parked => {}
            // Only this thread drains.
            Park::NotEmpty => {
                if queue.is_empty() {
                    self.round
                        .fault("not parked because of items, and there are none");
                }
                return false;
            }
            Park::Closed => {
                if !queue.is_finished() {
                    self.round
                        .fault("not parked because of an end, and it is not the end");
                }
                return false;
            }
        }
        self.intake.tally.parks += 1;
        if one_in(&mut self.random, 8) {
            // Parking again is the same park. A drain finds nothing, or items that came with the
            // token.
            let _again = queue.park();
            self.drain();
        }
        true
    }

    /// Sleeps until the token comes.
    fn sleep(&mut self) {
        self.doing.begins(3);
        self.mailbox.parker.park();
        self.check_awake();
    }

    /// Takes the park back, or waits for its token, which another thread has.
    fn cancel(&mut self) {
        self.doing.begins(5);
        if self.mailbox.queue.cancel_park() {
            self.intake.tally.cancelled += 1;
        } else {
            self.sleep();
        }
    }

    fn check_awake(&self) {
        if self.mailbox.queue.cancel_park() {
            self.round
                .fault("a token came, and the queue is still parked");
        }
    }

    /// Closes the queue, sometimes while it is parked.
    fn close(&mut self) -> bool {
        let is_parked = self.random.bool() && self.park();
        self.doing.begins(6);
        let closing = self.mailbox.queue.close();
        self.intake.tally.chains += u64::from(!closing.batch.is_empty());
        self.intake.take_closed(closing.batch);
        match (is_parked, closing.parked) {
            (true, true) => self.intake.tally.own_tokens += 1,
            (true, false) => self.sleep(),
            (false, true) => self
                .round
                .fault("closed with a token, and the queue was not parked"),
            (false, false) => {}
        }
        self.check_end()
    }

    /// Leaves later items to the queue's destructor, and the last park to other threads.
    fn leave(&mut self) -> bool {
        if self.random.bool() && self.park() && self.random.bool() {
            self.cancel();
        }
        false
    }

    fn check_end(&mut self) -> bool {
        let queue = &self.mailbox.queue;
        let again = queue.close();
        if !queue.is_finished() || !again.batch.is_empty() || again.parked {
            self.round.fault(format!("closed, and still: {queue:?}"));
        }
        if queue.park() != Park::Closed {
            self.round.fault("parked at the end");
        }
        false
    }
}

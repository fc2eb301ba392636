//! The consumer of a channel: all ways of receiving, until the end or its own end.

use super::intake::Intake;
use super::plan::{Ending, Link, Take};
use super::tally::Tally;
use super::{Ends, Round};
use fastrand::Rng;
use ganger_mpsc::{Batch, Receiver, RecvTimeoutError, TryRecvError};
use ganger_soak::chance::{one_in, pick};
use ganger_soak::{Doing, Load};
use std::thread;
use std::time::{Duration, Instant};

pub(super) const DOES: &[&str] = &[
    "waiting for the start",
    "in try_recv",
    "in recv",
    "in recv_timeout",
    "in drain",
    "in len",
    "in close",
    "dropping the receiver",
    "with what it keeps",
    "yielding or sleeping",
    "changing the cache of nodes",
    "done",
];

const TIMEOUTS: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_micros(5),
    Duration::from_micros(60),
    Duration::from_millis(1),
];

pub(super) struct Consumer<'r, 'a, L> {
    round: &'r Round<'a>,
    /// `None` when the receiver is gone.
    receiver: Option<Receiver<L>>,
    intake: Intake<'r, 'a, L>,
    random: Rng,
    doing: &'r Doing,
}

/// The result of a receive.
#[derive(PartialEq)]
enum Found {
    Some,
    Nothing,
    End,
}

impl<'r, 'a, L: Load<'a>> Consumer<'r, 'a, L> {
    pub(super) fn new(round: &'r Round<'a>, receiver: Receiver<L>, doing: &'r Doing) -> Self {
        Self {
            round,
            receiver: Some(receiver),
            intake: Intake::new(round),
            random: Rng::with_seed(round.plan.consumer.seed),
            doing,
        }
    }

    /// Returns the receiver, too, if a sender is left.
    pub(super) fn run(mut self) -> (Tally, Option<Receiver<L>>) {
        let _ends = Ends(self.round);
        self.round.start.wait();
        self = super::in_legs(self, Self::leg);
        self.intake.finish();
        self.doing.begins(11);
        (self.intake.tally, self.receiver)
    }

    /// Receives for a while, in a single thread. Returns whether the consumer has more to do.
    fn leg(&mut self) -> bool {
        let plan = &self.round.plan.consumer;
        for _ in 0..plan.leg {
            match plan.ending {
                _ if self.round.is_over() => return self.close(),
                Ending::Close(after) if self.intake.received() >= after => return self.close(),
                Ending::Drop(after) if self.intake.received() >= after => return self.drop(),
                Ending::Last | Ending::Close(_) | Ending::Drop(_) => {}
            }
            let all_sent = self.round.all_sent();
            let mut found = self.receive();
            if found == Found::Nothing && all_sent {
                // Some ways of receiving do not tell the end from an empty channel.
                found = self.try_recv(1);
            }
            match found {
                Found::End => return self.check_end(),
                // The remaining sender sends nothing.
                Found::Nothing if all_sent && self.round.plan.keeps_sender => return false,
                Found::Nothing => thread::yield_now(),
                Found::Some => {}
            }
            self.doing.begins(8);
            self.intake.tend(&mut self.random);
            self.doing.begins(9);
            self.round.pause(&mut self.random);
            self.doing.begins(10);
            self.round.disturb(&mut self.random);
        }
        true
    }

    fn receiver(&self) -> &Receiver<L> {
        self.receiver.as_ref().expect("it is not gone yet")
    }

    fn receive(&mut self) -> Found {
        let burst = self.random.usize(1..=self.round.plan.consumer.burst);
        match *pick(&mut self.random, &self.round.plan.consumer.ops) {
            Take::TryRecv => self.try_recv(burst),
            // With a sender left, no end would wake the consumer.
            Take::Recv if !self.round.plan.keeps_sender => self.recv(),
            Take::Recv | Take::RecvTimeout => self.recv_timeout(),
            Take::Drain => self.drain(),
            Take::TryIter => self.try_iter(burst),
            // `len` walks over all items, so it is rare.
            Take::Len if one_in(&mut self.random, 50) => self.len(),
            Take::Len => self.try_recv(burst),
        }
    }

    fn try_recv(&mut self, burst: usize) -> Found {
        self.doing.begins(1);
        for received in 0..burst {
            match self.receiver().try_recv() {
                Ok(item) => self.intake.take(item),
                Err(TryRecvError::Disconnected) => return Found::End,
                Err(TryRecvError::Empty) if received == 0 => return Found::Nothing,
                Err(TryRecvError::Empty) => break,
            }
        }
        Found::Some
    }

    fn recv(&mut self) -> Found {
        self.doing.begins(2);
        match self.receiver().recv() {
            Ok(item) => self.intake.take(item),
            Err(_) => return Found::End,
        }
        Found::Some
    }

    fn recv_timeout(&mut self) -> Found {
        self.doing.begins(3);
        let timeout = *pick(&mut self.random, &TIMEOUTS);
        let start = Instant::now();
        match self.receiver().recv_timeout(timeout) {
            Ok(item) => self.intake.take(item),
            Err(RecvTimeoutError::Disconnected) => return Found::End,
            Err(RecvTimeoutError::Timeout) => {
                let passed = start.elapsed();
                if passed < timeout {
                    let what = format!("timed out after {passed:?} instead of {timeout:?}");
                    self.round.fault(what);
                }
                return Found::Nothing;
            }
        }
        Found::Some
    }

    fn drain(&mut self) -> Found {
        self.doing.begins(4);
        let least = if self.random.bool() {
            self.receiver().len()
        } else {
            0
        };
        let batch = self.receiver().drain();
        if batch.len() < least {
            let what = format!("{} items drained of at least {least}", batch.len());
            self.round.fault(what);
        }
        self.check_room(batch.len());
        let found = if batch.is_empty() {
            Found::Nothing
        } else {
            Found::Some
        };
        self.intake.take_batch(batch);
        found
    }

    fn try_iter(&mut self, burst: usize) -> Found {
        self.doing.begins(1);
        let before = self.intake.received();
        let receiver = self.receiver.as_ref().expect("it is not gone yet");
        for item in receiver.try_iter().take(burst) {
            self.intake.take(item);
        }
        if self.intake.received() > before {
            Found::Some
        } else {
            Found::Nothing
        }
    }

    /// Counts twice: only this thread takes items, so the second count is no lower.
    fn len(&mut self) -> Found {
        self.doing.begins(5);
        let receiver = self.receiver();
        let (first, is_empty, second) = (receiver.len(), receiver.is_empty(), receiver.len());
        if second < first || is_empty && first > 0 {
            let what = format!("{first} items, then {second}; empty in between: {is_empty}");
            self.round.fault(what);
        }
        self.check_room(second);
        // Only a receive sees the end.
        if second == 0 {
            self.try_recv(1)
        } else {
            Found::Some
        }
    }

    fn check_room(&self, items: usize) {
        if let Link::Bounded(capacity) = self.round.plan.link
            && items > capacity
        {
            let what = format!("{items} items at a time with a bound of {capacity}");
            self.round.fault(what);
        }
    }

    fn close(&mut self) -> bool {
        self.doing.begins(6);
        let batch = self.receiver().close();
        self.check_room(batch.len());
        self.intake.take_closed(batch);
        self.check_closed();
        drop(self.receiver.take());
        false
    }

    fn drop(&mut self) -> bool {
        if !L::ENTERS_ITSELF {
            // Items without a destructor would be lost.
            return self.close();
        }
        self.doing.begins(7);
        drop(self.receiver.take());
        false
    }

    /// Checks that the end comes after all producers have sent everything.
    fn check_end(&mut self) -> bool {
        if !self.round.all_sent() && !self.round.is_over() {
            self.round.fault("an end before all was sent");
        }
        self.check_closed();
        drop(self.receiver.take());
        false
    }

    fn check_closed(&self) {
        let receiver = self.receiver();
        let (is_empty, len) = (receiver.is_empty(), receiver.len());
        let again: Batch<L> = receiver.close();
        if !receiver.is_closed() || !is_empty || len > 0 || !again.is_empty() {
            self.round.fault(format!("closed, and still: {receiver:?}"));
        }
        let received = receiver.try_recv();
        if !matches!(received, Err(TryRecvError::Disconnected)) {
            self.round.fault("received from what is closed");
        }
    }
}

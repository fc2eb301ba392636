//! Random calls on two channels, compared with a plain model.
//!
//! In the model a send or a receive is a select with a single case. If several cases are ready, the
//! model follows the choice of the real select.

use crate::support::now;
use ganger_channel::{Receiver, Sender, channel, select};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Send,
    Recv,
}

/// A case: at the channel with this index.
type Case = (usize, What);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Got {
    Sent,
    Refused(u32),
    Value(u32),
    Closed,
}

/// The chosen case, and its result.
type Outcome = (usize, Got);

#[derive(Debug, Clone)]
enum Op {
    /// A call with these cases, without waiting.
    Try(Vec<Case>),
    /// A call, which may wait.
    Begin(Vec<Case>),
    /// Polls a waiter, counted from the oldest.
    Poll(usize),
    /// Drops a waiter, counted from the oldest.
    Drop(usize),
    Close(usize),
}

/// The id of a waiter, and the number of its case.
type Place = (usize, usize);

#[derive(Default)]
struct Channel {
    capacity: usize,
    /// Returned values, by their numbers.
    returned: BTreeMap<u64, u32>,
    buffer: VecDeque<u32>,
    senders: Vec<Place>,
    receivers: Vec<Place>,
    is_closed: bool,
    /// How many waiters have been handed a value, and have not taken it.
    claims: usize,
    number: u64,
}

#[derive(Default)]
struct Plain {
    channels: [Channel; 2],
    /// For each waiter, the value for its send, and its outcome, if any.
    waits: BTreeMap<usize, (u32, Option<(Outcome, u64)>)>,
}

impl Plain {
    fn is_ready(&self, (at, what): Case) -> bool {
        let it = &self.channels[at];
        let len = it.returned.len() + it.buffer.len();
        match what {
            What::Send => it.is_closed || len < it.capacity || !it.receivers.is_empty(),
            What::Recv if it.is_closed => len > 0 || it.claims == 0,
            What::Recv => len > 0 || !it.senders.is_empty(),
        }
    }

    /// Ends the wait of a waiter.
    fn serve(&mut self, id: usize, outcome: Outcome, number: u64) -> u32 {
        self.leave(id);
        let Some(wait) = self.waits.get_mut(&id) else {
            unreachable!()
        };
        wait.1 = Some((outcome, number));
        wait.0
    }

    fn leave(&mut self, id: usize) {
        for it in &mut self.channels {
            it.senders.retain(|place| place.0 != id);
            it.receivers.retain(|place| place.0 != id);
        }
    }

    fn next(&mut self, at: usize) -> u64 {
        self.channels[at].number += 1;
        self.channels[at].number
    }

    fn put(&mut self, at: usize, number: Option<u64>, value: u32) {
        if let Some(&(id, case)) = self.channels[at].receivers.first() {
            let number = number.unwrap_or_else(|| self.next(at));
            self.channels[at].claims += 1;
            self.serve(id, (case, Got::Value(value)), number);
        } else if let Some(number) = number {
            self.channels[at].returned.insert(number, value);
        } else {
            self.channels[at].buffer.push_back(value);
        }
    }

    fn take_from_sender(&mut self, at: usize) -> Option<u32> {
        let &(id, case) = self.channels[at].senders.first()?;
        Some(self.serve(id, (case, Got::Sent), 0))
    }

    /// Carries out a ready case.
    fn act(&mut self, (at, what): Case, value: u32) -> (Got, u64) {
        let is_closed = self.channels[at].is_closed;
        if what == What::Send {
            if is_closed {
                return (Got::Refused(value), 0);
            }
            self.put(at, None, value);
            return (Got::Sent, 0);
        }
        if let Some((number, value)) = self.channels[at].returned.pop_first() {
            self.refill(at);
            return (Got::Value(value), number);
        }
        if let Some(value) = self.channels[at].buffer.pop_front() {
            let number = self.next(at);
            self.refill(at);
            return (Got::Value(value), number);
        }
        match self.take_from_sender(at) {
            Some(value) => (Got::Value(value), self.next(at)),
            None => (Got::Closed, 0),
        }
    }

    fn refill(&mut self, at: usize) {
        let it = &self.channels[at];
        if it.returned.len() + it.buffer.len() < it.capacity
            && let Some(value) = self.take_from_sender(at)
        {
            self.channels[at].buffer.push_back(value);
        }
    }

    fn close(&mut self, at: usize) {
        self.channels[at].is_closed = true;
        while let Some(&(id, case)) = self.channels[at].senders.first() {
            let value = self.waits[&id].0;
            self.serve(id, (case, Got::Refused(value)), 0);
        }
        self.end_receivers(at);
    }

    /// Ends the receivers of a closed channel, unless a value may come back.
    fn end_receivers(&mut self, at: usize) {
        if self.channels[at].claims > 0 {
            return;
        }
        while let Some(&(id, case)) = self.channels[at].receivers.first() {
            self.serve(id, (case, Got::Closed), 0);
        }
    }

    fn enlist(&mut self, id: usize, cases: &[Case], value: u32) {
        self.waits.insert(id, (value, None));
        for (number, &(at, what)) in cases.iter().enumerate() {
            let it = &mut self.channels[at];
            match what {
                What::Send => it.senders.push((id, number)),
                What::Recv => it.receivers.push((id, number)),
            }
        }
    }

    /// Takes the outcome of a served waiter.
    fn take(&mut self, id: usize, cases: &[Case]) {
        if let Some((_, Some(((case, Got::Value(_)), _)))) = self.waits.remove(&id) {
            let at = cases[case].0;
            self.channels[at].claims -= 1;
            if self.channels[at].is_closed {
                self.end_receivers(at);
            }
        }
    }

    /// Drops a waiter; a received value goes back.
    fn drop(&mut self, id: usize, cases: &[Case]) {
        self.leave(id);
        if let Some((_, Some(((case, Got::Value(value)), number)))) = self.waits.remove(&id) {
            let at = cases[case].0;
            self.channels[at].claims -= 1;
            self.put(at, Some(number), value);
        }
    }
}

type Ends = [(Sender<u32>, Receiver<u32>); 2];
type Wait<'a> = Pin<Box<dyn Future<Output = Outcome> + 'a>>;

fn sent(case: usize) -> impl FnOnce(Result<(), ganger_channel::SendError<u32>>) -> Outcome {
    move |sent| {
        (
            case,
            sent.map_or_else(|it| Got::Refused(it.into_inner()), |()| Got::Sent),
        )
    }
}

fn received(case: usize) -> impl FnOnce(Result<u32, ganger_channel::RecvError>) -> Outcome {
    move |it| (case, it.map_or(Got::Closed, Got::Value))
}

fn begin<'a>(ends: &'a Ends, cases: &[Case], value: u32) -> Wait<'a> {
    let cases = cases.to_vec();
    let end = |at: usize| &ends[at];
    match cases[..] {
        [(at, What::Send)] => Box::pin(async move { sent(0)(end(at).0.send(value).await) }),
        [(at, What::Recv)] => Box::pin(async move { received(0)(end(at).1.recv().await) }),
        [(a, What::Send), (b, What::Send)] => Box::pin(
            select()
                .send(&end(a).0, value, sent(0))
                .send(&end(b).0, value, sent(1)),
        ),
        [(a, What::Send), (b, What::Recv)] => Box::pin(
            select()
                .send(&end(a).0, value, sent(0))
                .recv(&end(b).1, received(1)),
        ),
        [(a, What::Recv), (b, What::Send)] => Box::pin(select().recv(&end(a).1, received(0)).send(
            &end(b).0,
            value,
            sent(1),
        )),
        [(a, What::Recv), (b, What::Recv)] => Box::pin(
            select()
                .recv(&end(a).1, received(0))
                .recv(&end(b).1, received(1)),
        ),
        _ => unreachable!("one case or two"),
    }
}

fn cases() -> impl Strategy<Value = Vec<Case>> {
    let case = (0..2_usize, prop_oneof![Just(What::Send), Just(What::Recv)]);
    prop::collection::vec(case, 1..=2)
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => cases().prop_map(Op::Try),
        5 => cases().prop_map(Op::Begin),
        4 => (0..8_usize).prop_map(Op::Poll),
        3 => (0..8_usize).prop_map(Op::Drop),
        1 => (0..20_usize).prop_map(Op::Close),
    ]
}

fn check(capacities: [usize; 2], ops: &[Op]) -> Result<(), TestCaseError> {
    let ends: Ends = capacities.map(channel);
    let mut plain = Plain::default();
    for (it, capacity) in plain.channels.iter_mut().zip(capacities) {
        it.capacity = capacity;
    }
    let mut live: Vec<(usize, Vec<Case>, Wait<'_>)> = Vec::new();
    for (id, op) in ops.iter().enumerate() {
        let value = u32::try_from(id).unwrap();
        match op {
            Op::Try(cases) | Op::Begin(cases) => {
                let mut wait = begin(&ends, cases, value);
                let is_ready = cases.iter().any(|&case| plain.is_ready(case));
                match now(&mut wait) {
                    Poll::Ready((case, got)) => {
                        prop_assert!(plain.is_ready(cases[case]), "{op:?} was not ready");
                        prop_assert_eq!(got, plain.act(cases[case], value).0);
                    }
                    Poll::Pending => {
                        prop_assert!(!is_ready, "{op:?} was ready");
                        if matches!(op, Op::Begin(_)) {
                            plain.enlist(id, cases, value);
                            live.push((id, cases.clone(), wait));
                        }
                    }
                }
            }
            Op::Poll(at) | Op::Drop(at) if *at < live.len() => {
                let (id, cases, mut wait) = live.remove(*at);
                let expected = plain.waits[&id].1;
                if matches!(op, Op::Drop(_)) {
                    drop(wait);
                    plain.drop(id, &cases);
                } else if let Some((expected, _)) = expected {
                    // Two cases may be the same, and take their places in any order.
                    let got = now(&mut wait).map(|(case, got)| (cases[case], got));
                    prop_assert_eq!(got, Poll::Ready((cases[expected.0], expected.1)));
                    plain.take(id, &cases);
                } else {
                    prop_assert!(now(&mut wait).is_pending());
                    live.insert(*at, (id, cases, wait));
                }
            }
            Op::Close(at) if *at < 2 => {
                prop_assert_eq!(ends[*at].0.close(), !plain.channels[*at].is_closed);
                plain.close(*at);
            }
            Op::Poll(_) | Op::Drop(_) | Op::Close(_) => {}
        }
        for ((sender, _), it) in ends.iter().zip(&plain.channels) {
            prop_assert_eq!(sender.len(), it.returned.len() + it.buffer.len());
            prop_assert_eq!(sender.is_closed(), it.is_closed);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    // pins: Q1, Q2, Q3, Q4, Q6
    #[test]
    fn channels_and_selects_do_what_the_plain_model_does(
        capacities in [0..3_usize, 0..3_usize],
        ops in prop::collection::vec(op(), 1..60),
    ) {
        check(capacities, &ops)?;
    }
}

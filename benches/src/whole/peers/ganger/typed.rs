//! Pairs, rings and fans whose messages are values of a single type, sent by typed address.

use super::Ganger;
use crate::whole::contestant::{Timed, failed};
use crate::whole::gate::Gate;
use crate::whole::job::Error;
use ganger_proc_api::{Actor, Context, Events, Process, StepOutput, StepResult};
use ganger_sched::Address;

/// A message.
enum Load {
    /// A number, and padding that makes the message large.
    Number([u64; 4]),
    /// The next process, to which the numbers go.
    Next(Address<Load>),
    /// The last one.
    End,
}

const _: () = assert!(size_of::<Load>() == 40);

/// Returns a message with a number.
fn load(number: u64) -> Load {
    Load::Number([number, 1, 2, 3])
}

fn spawn_all<A: Actor<Message = Load>>(
    ganger: &Ganger,
    actors: u64,
    make: impl Fn() -> A,
) -> Result<Vec<Address<Load>>, Error> {
    let spawn = |_| {
        let actor = ganger.scheduler.spawn(make()).map_err(failed)?;
        Ok(actor.address().clone())
    };
    (0..actors).map(spawn).collect()
}

pub(super) fn ping_pong(ganger: &Ganger, pairs: u64, round_trips: u64) -> Timed {
    let gate = ganger.gate;
    let half = || Half {
        partner: None,
        gate,
    };
    let white = spawn_all(ganger, pairs, half)?;
    let black = spawn_all(ganger, pairs, half)?;
    for (white, black) in white.iter().zip(&black) {
        white.send(Load::Next(black.clone())).map_err(failed)?;
        black.send(Load::Next(white.clone())).map_err(failed)?;
    }
    gate.time(2 * pairs, || {
        // The first message, and the last, which is a zero, are half a round trip each.
        let mut white = white.iter();
        white.try_for_each(|white| white.send(load(2 * round_trips)).map_err(failed))
    })
}

/// Sends to its partner, whose address it is sent first.
struct Half {
    partner: Option<Address<Load>>,
    gate: &'static Gate,
}

impl Actor for Half {
    type Message = Load;

    fn receive(&mut self, _: &Context, load: Load, out: &mut StepOutput) -> StepResult {
        match load {
            Load::Number([left, rest @ ..]) => {
                if left > 0 {
                    let partner = self.partner.as_ref().expect("a partner");
                    let [a, b, c] = rest;
                    partner.send(Load::Number([left - 1, a, b, c]))?;
                }
                // A half sees `1`, the other `0`.
                if left <= 1 {
                    self.gate.hit();
                    out.done(());
                }
            }
            Load::Next(partner) => self.partner = Some(partner),
            Load::End => {}
        }
        Ok(())
    }
}

pub(super) fn ring(ganger: &Ganger, members: u64, tokens: u64, hops: u64) -> Timed {
    let gate = ganger.gate;
    let ring = spawn_all(ganger, members, || Member { next: None, gate })?;
    for (member, next) in ring.iter().zip(ring.iter().cycle().skip(1)) {
        member.send(Load::Next(next.clone())).map_err(failed)?;
    }
    let apart = (ring.len() / usize::try_from(tokens).map_err(failed)?).max(1);
    let starts = || ring.iter().step_by(apart);
    let time = gate.time(starts().count() as u64, || {
        starts().try_for_each(|member| member.send(load(hops)).map_err(failed))
    })?;
    gate.time(members, || {
        let mut ring = ring.iter();
        ring.try_for_each(|member| member.send(Load::End).map_err(failed))
    })?;
    Ok(time)
}

/// Sends tokens on, with a hop less to go, to the address in its first message.
struct Member {
    next: Option<Address<Load>>,
    gate: &'static Gate,
}

impl Actor for Member {
    type Message = Load;

    fn receive(&mut self, _: &Context, load: Load, out: &mut StepOutput) -> StepResult {
        match load {
            Load::Number([0, ..]) => self.gate.hit(),
            Load::Number([left, a, b, c]) => {
                let next = self.next.as_ref().expect("a next one");
                next.send(Load::Number([left - 1, a, b, c]))?;
            }
            Load::Next(next) => self.next = Some(next),
            Load::End => {
                self.gate.hit();
                out.done(());
            }
        }
        Ok(())
    }
}

pub(super) fn fan_in(ganger: &Ganger, producers: u64, messages: u64) -> Timed {
    let consumer = || Consumer::new(producers * messages, ganger.gate);
    let to = spawn_all(ganger, 1, consumer)?;
    ganger.gate.time(1, || {
        (0..producers).try_for_each(|_| {
            let to = to.clone();
            ganger.submit(Producer { messages, to }).map(drop)
        })
    })
}

pub(super) fn fan_out(ganger: &Ganger, receivers: u64, messages: u64) -> Timed {
    let to = spawn_all(ganger, receivers, || Consumer::new(messages, ganger.gate))?;
    ganger.gate.time(receivers, || {
        ganger.submit(Producer { messages, to }).map(drop)
    })
}

/// Takes `left` numbers, brings their sum to the gate, and ends.
struct Consumer {
    left: u64,
    sum: u64,
    gate: &'static Gate,
}

impl Consumer {
    fn new(left: u64, gate: &'static Gate) -> Self {
        let sum = 0;
        Self { left, sum, gate }
    }
}

impl Actor for Consumer {
    type Message = Load;

    fn receive(&mut self, _: &Context, load: Load, out: &mut StepOutput) -> StepResult {
        let Load::Number([number, ..]) = load else {
            return Err("no number".into());
        };
        self.sum += number;
        self.left -= 1;
        if self.left == 0 {
            self.gate.hit_with(self.sum);
            out.done(());
        }
        Ok(())
    }
}

/// Sends each of the numbers below `messages` to all, in a single step, and ends.
struct Producer {
    messages: u64,
    to: Vec<Address<Load>>,
}

impl Process for Producer {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for number in 0..self.messages {
            for consumer in &self.to {
                consumer.send(load(number))?;
            }
        }
        out.done(());
        Ok(())
    }
}

//! Actors that send to each other.

use super::Ganger;
use crate::whole::acts::{Consumer, Node};
use crate::whole::contestant::{Contestant, Timed, failed};
use crate::whole::gate::Gate;
use crate::whole::job::Error;
use crate::whole::load::{Host, Mail};
use ganger_proc_api::{
    Context, Event, Events, Message, Pid, Process, StepOutput, StepResult, process_fn,
};
use ganger_sched::Scheduler;
use std::thread;

/// A node of the tree.
pub(super) struct Branch(pub(super) Node<Pid>);

impl Process for Branch {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        let send = |&parent: &Pid, number| {
            let sent = ctx.send(parent, "sum", number);
            sent.expect("the parent is there");
        };
        if self.0.levels == 0 {
            self.0.leaf(send);
            out.done(());
            return Ok(());
        }
        if events.is_empty() {
            for child in self.0.children(&ctx.pid()) {
                ctx.submit(Self(child), "main", ())?;
            }
        }
        for event in events {
            if let Event::Message(message) = event {
                let sum = message.payloads.first().and_then(|sum| sum.as_u64());
                if self.0.add(sum.expect("a number"), send) {
                    out.done(());
                }
            }
        }
        Ok(())
    }
}

/// Times pairs that answer the PID of a message's sender.
pub(super) fn ping_pong_by_pid(ganger: &Ganger, pairs: u64, round_trips: u64) -> Timed {
    let gate = ganger.gate;
    let half = || {
        process_fn(move |ctx, events, out| {
            for event in events {
                let Event::Message(message) = event else {
                    continue;
                };
                let left = message.payloads.first().and_then(|left| left.as_u64());
                let left = left.expect("a number");
                if left > 0 {
                    ctx.send(message.source.expect("a sender"), "ball", left - 1)?;
                }
                if left <= 1 {
                    gate.hit();
                    out.done(());
                }
            }
            Ok(())
        })
    };
    let pair = |_| Ok((ganger.submit(half())?, ganger.submit(half())?));
    let pairs: Vec<_> = (0..pairs).map(pair).collect::<Result<_, Error>>()?;
    gate.time(2 * pairs.len() as u64, || {
        for (white, black) in &pairs {
            let ball = Message::new("ball", 2 * round_trips).from_pid(black.pid());
            white.send(ball).map_err(failed)?;
        }
        Ok(())
    })
}

/// As a fan-in, but each producer sends all numbers by a single call.
pub(super) fn fan_in_all(ganger: &Ganger, producers: u64, messages: u64) -> Timed {
    let gate = ganger.gate;
    let consumer = |_| Consumer::<u64>::new(producers * messages, gate);
    let consumer = ganger.start_all(1, consumer)?.remove(0);
    gate.time(1, || {
        (0..producers).try_for_each(|_| {
            let consumer = consumer.clone();
            let producer = process_fn(move |_, _, out| {
                consumer.send_all((0..messages).map(Mail::mail))?;
                out.done(());
                Ok(())
            });
            ganger.submit(producer).map(drop)
        })
    })
}

pub(super) fn fan_in_of_threads(
    scheduler: &Scheduler,
    gate: &'static Gate,
    threads: u64,
    messages: u64,
) -> Timed {
    let consumer = Host::new(Consumer::<u64>::new(threads * messages, gate));
    let consumer = Mail::start(scheduler, consumer)?;
    thread::scope(|scope| {
        gate.time(1, || {
            for _ in 0..threads {
                scope.spawn(|| {
                    for number in 0..messages {
                        let sent = consumer.send_blocking(number.mail());
                        sent.expect("the consumer is there");
                    }
                });
            }
            Ok(())
        })
    })
}

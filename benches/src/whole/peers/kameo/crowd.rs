//! Actors that wait for a message.

use super::{Kameo, start as start_actor};
use crate::whole::bell::Bell;
use crate::whole::board::Board;
use crate::whole::contestant::{Deliver, Timed, failed};
use crate::whole::gate::Gate;
use crate::whole::job::Error;
use ::kameo::Actor;
use ::kameo::actor::ActorRef;
use ::kameo::error::Infallible;
use ::kameo::message::{Context, Message};
use std::sync::Arc;
use std::time::Duration;

pub(super) fn start(
    kameo: &Kameo,
    processes: u64,
) -> Result<(Duration, Vec<ActorRef<Waiter>>), Error> {
    let _inside = kameo.enter();
    let mut crowd = Vec::with_capacity(usize::try_from(processes).map_err(failed)?);
    let time = kameo.gate.time(processes, || {
        for _ in 0..processes {
            crowd.push(start_actor::<Waiter>(kameo.gate));
        }
        Ok(())
    })?;
    Ok((time, crowd))
}

pub(super) fn wake(kameo: &Kameo, crowd: Vec<ActorRef<Waiter>>) -> Timed {
    kameo.gate.time(crowd.len() as u64, || {
        let mut crowd = crowd.iter();
        crowd.try_for_each(|waiter| waiter.tell(0).try_send().map_err(failed))
    })
}

pub(super) fn sleeper(kameo: &Kameo, bell: &'static Bell) -> Deliver {
    let _inside = kameo.enter();
    let heard = move |number| bell.strike(number);
    let sleeper = start_actor(Listener::new(heard, kameo.gate));
    Box::new(move |number| deliver(&sleeper, number))
}

pub(super) fn due(kameo: &Kameo, board: &Arc<Board>) -> Deliver {
    let _inside = kameo.enter();
    let listener = |row| {
        let board = Arc::clone(board);
        let heard = move |tick| board.arrive(row, tick);
        start_actor(Listener::new(heard, kameo.gate))
    };
    let all: Vec<_> = (0..board.processes()).map(listener).collect();
    Box::new(move |tick| all.iter().for_each(|process| deliver(process, tick)))
}

fn deliver<F: Hear>(to: &ActorRef<Listener<F>>, number: u64) {
    to.tell(number).try_send().expect("the process is there");
}

/// Hits the gate when it starts, and when a message ends it.
pub(in crate::whole::peers) struct Waiter(&'static Gate);

impl Actor for Waiter {
    type Args = &'static Gate;
    type Error = Infallible;

    async fn on_start(gate: &'static Gate, _: ActorRef<Self>) -> Result<Self, Infallible> {
        gate.hit();
        Ok(Self(gate))
    }
}

impl Message<u64> for Waiter {
    type Reply = ();

    async fn handle(&mut self, _: u64, ctx: &mut Context<Self, ()>) {
        self.0.hit();
        ctx.stop();
    }
}

/// Passes numbers on until `heard` says that a number was the last.
struct Listener<F> {
    heard: F,
    gate: &'static Gate,
}

/// Hears numbers, and says whether a number was the last.
trait Hear: Fn(u64) -> bool + Send + 'static {}

impl<F: Fn(u64) -> bool + Send + 'static> Hear for F {}

impl<F: Hear> Listener<F> {
    fn new(heard: F, gate: &'static Gate) -> Self {
        Self { heard, gate }
    }
}

impl<F: Hear> Actor for Listener<F> {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(listener: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(listener)
    }
}

impl<F: Hear> Message<u64> for Listener<F> {
    type Reply = ();

    async fn handle(&mut self, number: u64, ctx: &mut Context<Self, ()>) {
        if (self.heard)(number) {
            self.gate.hit();
            ctx.stop();
        }
    }
}

//! Actors that wait for a message.

use super::{Actix, Number};
use crate::whole::bell::Bell;
use crate::whole::board::Board;
use crate::whole::contestant::{Deliver, Timed, failed};
use crate::whole::gate::Gate;
use crate::whole::job::Error;
use ::actix::{Actor, ActorContext, Addr, Context, Handler};
use std::sync::Arc;
use std::time::Duration;

pub(super) fn start(actix: &Actix, processes: u64) -> Result<(Duration, Vec<Addr<Waiter>>), Error> {
    let mut crowd = Vec::with_capacity(usize::try_from(processes).map_err(failed)?);
    let time = actix.gate.time(processes, || {
        for _ in 0..processes {
            crowd.push(actix.start(Waiter(actix.gate)));
        }
        Ok(())
    })?;
    Ok((time, crowd))
}

pub(super) fn wake(actix: &Actix, crowd: Vec<Addr<Waiter>>) -> Timed {
    actix.gate.time(crowd.len() as u64, || {
        crowd.iter().for_each(|waiter| waiter.do_send(Number(0)));
        Ok(())
    })
}

pub(super) fn sleeper(actix: &Actix, bell: &'static Bell) -> Deliver {
    let gate = actix.gate;
    let heard = move |number| bell.strike(number);
    let sleeper = actix.start(Listener { heard, gate });
    Box::new(move |number| sleeper.do_send(Number(number)))
}

pub(super) fn due(actix: &Actix, board: &Arc<Board>) -> Deliver {
    let gate = actix.gate;
    let listener = |row| {
        let board = Arc::clone(board);
        let heard = move |tick| board.arrive(row, tick);
        actix.start(Listener { heard, gate })
    };
    let all: Vec<_> = (0..board.processes()).map(listener).collect();
    Box::new(move |tick| all.iter().for_each(|process| process.do_send(Number(tick))))
}

/// Hits the gate when it starts, and when a message ends it.
pub(in crate::whole::peers) struct Waiter(&'static Gate);

impl Actor for Waiter {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Context<Self>) {
        self.0.hit();
    }
}

impl Handler<Number> for Waiter {
    type Result = ();

    fn handle(&mut self, _: Number, ctx: &mut Context<Self>) {
        self.0.hit();
        ctx.stop();
    }
}

/// Passes numbers on until `heard` says that a number was the last.
struct Listener<F> {
    heard: F,
    gate: &'static Gate,
}

impl<F: Fn(u64) -> bool + Unpin + 'static> Actor for Listener<F> {
    type Context = Context<Self>;
}

impl<F: Fn(u64) -> bool + Unpin + 'static> Handler<Number> for Listener<F> {
    type Result = ();

    fn handle(&mut self, Number(number): Number, ctx: &mut Context<Self>) {
        if (self.heard)(number) {
            self.gate.hit();
            ctx.stop();
        }
    }
}

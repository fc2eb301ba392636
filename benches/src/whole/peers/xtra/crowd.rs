//! Actors that wait for a message.

use super::{Xtra, send, start as start_actor};
use crate::whole::bell::Bell;
use crate::whole::board::Board;
use crate::whole::contestant::{Deliver, Timed, failed};
use crate::whole::gate::Gate;
use crate::whole::job::Error;
use ::xtra::{Actor, Address, Context, Handler, Mailbox};
use std::sync::Arc;
use std::time::Duration;

pub(super) fn start(
    xtra: &Xtra,
    processes: u64,
) -> Result<(Duration, Vec<Address<Waiter>>), Error> {
    let _inside = xtra.enter();
    let mut crowd = Vec::with_capacity(usize::try_from(processes).map_err(failed)?);
    let time = xtra.gate.time(processes, || {
        for _ in 0..processes {
            crowd.push(start_actor(Waiter(xtra.gate)));
        }
        Ok(())
    })?;
    Ok((time, crowd))
}

pub(super) fn wake(xtra: &Xtra, crowd: Vec<Address<Waiter>>) -> Timed {
    xtra.gate.time(crowd.len() as u64, || {
        let mut crowd = crowd.iter();
        crowd.try_for_each(|waiter| send(waiter, 0).map_err(failed))
    })
}

pub(super) fn sleeper(xtra: &Xtra, bell: &'static Bell) -> Deliver {
    let _inside = xtra.enter();
    let heard = move |number| bell.strike(number);
    let gate = xtra.gate;
    let sleeper = start_actor(Listener { heard, gate });
    Box::new(move |number| deliver(&sleeper, number))
}

pub(super) fn due(xtra: &Xtra, board: &Arc<Board>) -> Deliver {
    let _inside = xtra.enter();
    let gate = xtra.gate;
    let listener = |row| {
        let board = Arc::clone(board);
        let heard = move |tick| board.arrive(row, tick);
        start_actor(Listener { heard, gate })
    };
    let all: Vec<_> = (0..board.processes()).map(listener).collect();
    Box::new(move |tick| all.iter().for_each(|process| deliver(process, tick)))
}

fn deliver<F: Hear>(to: &Address<Listener<F>>, number: u64) {
    send(to, number).expect("the process is there");
}

/// Hits the gate when it starts, and when a message ends it.
pub(in crate::whole::peers) struct Waiter(&'static Gate);

impl Actor for Waiter {
    type Stop = ();

    async fn started(&mut self, _: &Mailbox<Self>) -> Result<(), ()> {
        self.0.hit();
        Ok(())
    }

    async fn stopped(self) {}
}

impl Handler<u64> for Waiter {
    type Return = ();

    async fn handle(&mut self, _: u64, ctx: &mut Context<Self>) {
        self.0.hit();
        ctx.stop_self();
    }
}

/// Passes numbers on until `heard` says that a number was the last.
#[derive(Actor)]
struct Listener<F> {
    heard: F,
    gate: &'static Gate,
}

/// Hears numbers, and says whether a number was the last.
trait Hear: Fn(u64) -> bool + Send + 'static {}

impl<F: Fn(u64) -> bool + Send + 'static> Hear for F {}

impl<F: Hear> Handler<u64> for Listener<F> {
    type Return = ();

    async fn handle(&mut self, number: u64, ctx: &mut Context<Self>) {
        if (self.heard)(number) {
            self.gate.hit();
            ctx.stop_self();
        }
    }
}

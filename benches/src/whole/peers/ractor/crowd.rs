//! Actors that wait for a message.

use super::Ractor;
use crate::whole::bell::Bell;
use crate::whole::board::Board;
use crate::whole::contestant::{Deliver, Timed, failed};
use crate::whole::gate::Gate;
use crate::whole::job::Error;
use ::ractor::{Actor, ActorProcessingErr, ActorRef};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

pub(super) fn start(
    ractor: &Ractor,
    processes: u64,
) -> Result<(Duration, Vec<ActorRef<u64>>), Error> {
    let gate = ractor.gate;
    let mut crowd = Vec::with_capacity(usize::try_from(processes).map_err(failed)?);
    let time = gate.time(processes, || {
        ractor.spawn_each::<Waiter>(processes, |_| gate, |waiter| crowd.push(waiter))
    })?;
    Ok((time, crowd))
}

pub(super) fn wake(ractor: &Ractor, crowd: Vec<ActorRef<u64>>) -> Timed {
    ractor.gate.time(crowd.len() as u64, || {
        let mut crowd = crowd.iter();
        crowd.try_for_each(|waiter| waiter.send_message(0).map_err(failed))
    })
}

pub(super) fn sleeper(ractor: &Ractor, bell: &'static Bell) -> Result<Deliver, Error> {
    let heard = move |number| bell.strike(number);
    let sleeper = ractor
        .runtime
        .block_on(Listener::spawn(heard, ractor.gate))?;
    Ok(Box::new(move |number| {
        let sent = sleeper.send_message(number);
        sent.expect("the sleeper is there");
    }))
}

pub(super) fn due(ractor: &Ractor, board: &Arc<Board>) -> Result<Deliver, Error> {
    let listener = |row| {
        let board = Arc::clone(board);
        let heard = move |tick| board.arrive(row, tick);
        ractor.runtime.block_on(Listener::spawn(heard, ractor.gate))
    };
    let all = (0..board.processes()).map(listener);
    let all: Vec<_> = all.collect::<Result<_, _>>()?;
    Ok(Box::new(move |tick| {
        for process in &all {
            process.send_message(tick).expect("the process is there");
        }
    }))
}

/// Hits the gate when it starts, and when a message ends it.
#[derive(Default)]
struct Waiter;

impl Actor for Waiter {
    type Msg = u64;
    type State = &'static Gate;
    type Arguments = &'static Gate;

    async fn pre_start(
        &self,
        _: ActorRef<u64>,
        gate: &'static Gate,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(gate)
    }

    async fn post_start(
        &self,
        _: ActorRef<u64>,
        gate: &mut &'static Gate,
    ) -> Result<(), ActorProcessingErr> {
        gate.hit();
        Ok(())
    }

    async fn handle(
        &self,
        this: ActorRef<u64>,
        _: u64,
        gate: &mut &'static Gate,
    ) -> Result<(), ActorProcessingErr> {
        gate.hit();
        this.stop(None);
        Ok(())
    }
}

/// Passes numbers on until `heard` says that a number was the last.
struct Listener<F>(PhantomData<fn(F)>);

impl<F: Fn(u64) -> bool + Send + Sync + 'static> Listener<F> {
    async fn spawn(heard: F, gate: &'static Gate) -> Result<ActorRef<u64>, Error> {
        let listener = Actor::spawn(None, Self(PhantomData), (heard, gate)).await;
        Ok(listener.map_err(failed)?.0)
    }
}

impl<F: Fn(u64) -> bool + Send + Sync + 'static> Actor for Listener<F> {
    type Msg = u64;
    type State = (F, &'static Gate);
    type Arguments = (F, &'static Gate);

    async fn pre_start(
        &self,
        _: ActorRef<u64>,
        args: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(args)
    }

    async fn handle(
        &self,
        this: ActorRef<u64>,
        number: u64,
        (heard, gate): &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if heard(number) {
            gate.hit();
            this.stop(None);
        }
        Ok(())
    }
}

//! Processes that wait for a message.

use super::Ganger;
use crate::whole::bell::Bell;
use crate::whole::board::Board;
use crate::whole::contestant::{Deliver, Heard, Timed, failed};
use crate::whole::gate::Gate;
use crate::whole::job::Error;
use ganger_proc_api::{Context, Event, Events, Message, Process, StepOutput, StepResult};
use ganger_sched::ProcessHandle;
use std::sync::Arc;
use std::time::Duration;

/// Starts a process for each number from 0 up, made by `waiter`.
pub(super) fn start<P: Process>(
    ganger: &Ganger,
    processes: u64,
    waiter: impl Fn(u64, &'static Gate) -> P,
) -> Result<(Duration, Vec<ProcessHandle>), Error> {
    let mut crowd = Vec::with_capacity(usize::try_from(processes).map_err(failed)?);
    let time = ganger.gate.time(processes, || {
        for number in 0..processes {
            crowd.push(ganger.submit(waiter(number, ganger.gate))?);
        }
        Ok(())
    })?;
    Ok((time, crowd))
}

pub(super) fn wake(ganger: &Ganger, crowd: Vec<ProcessHandle>) -> Timed {
    ganger.gate.time(crowd.len() as u64, || {
        let mut crowd = crowd.iter();
        crowd.try_for_each(|waiter| waiter.send(Message::new("end", ())).map_err(failed))
    })
}

pub(super) fn sleeper(ganger: &Ganger, bell: &'static Bell) -> Result<Deliver, Error> {
    let gate = ganger.gate;
    let sleeper = ganger.submit(Listener {
        heard: move |number| bell.strike(number),
        gate,
    })?;
    Ok(Box::new(move |number| {
        let sent = sleeper.send(Message::new("ring", number));
        sent.expect("the sleeper is there");
    }))
}

pub(super) fn due(ganger: &Ganger, board: &Arc<Board>) -> Result<Deliver, Error> {
    let gate = ganger.gate;
    let all = ganger.submit_all(board.processes() as u64, |row| {
        let board = Arc::clone(board);
        let row = usize::try_from(row).expect("a row of the board");
        let heard = move |tick| board.arrive(row, tick);
        Listener { heard, gate }
    })?;
    Ok(Box::new(move |tick| {
        for process in &all {
            let sent = process.send(Message::new("tick", tick));
            sent.expect("the process is there");
        }
    }))
}

pub(super) fn herald(ganger: &Ganger, heard: Heard) -> Result<Deliver, Error> {
    let gate = ganger.gate;
    let herald = ganger.submit(Listener { heard, gate })?;
    Ok(Box::new(move |number| {
        let sent = herald.send(Message::new("tell", number));
        sent.expect("the herald is there");
    }))
}

/// Hits the gate when it starts, and when a message ends it.
pub(super) struct Waiter(pub(super) &'static Gate);

impl Process for Waiter {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        self.0.hit();
        if events.next().is_some() {
            out.done(());
        }
        Ok(())
    }
}

/// Passes numbers on until `heard` says that a number was the last.
struct Listener<F> {
    heard: F,
    gate: &'static Gate,
}

impl<F: Fn(u64) -> bool + Send + 'static> Process for Listener<F> {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            let Event::Message(message) = event else {
                continue;
            };
            let number = message.payloads.first().and_then(|number| number.as_u64());
            if (self.heard)(number.expect("a number")) {
                self.gate.hit();
                out.done(());
            }
        }
        Ok(())
    }
}

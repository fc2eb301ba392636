//! Tasks that wait for a message.

use super::Tokio;
use crate::whole::bell::Bell;
use crate::whole::board::Board;
use crate::whole::contestant::{Deliver, Heard, Timed, failed};
use crate::whole::gate::Gate;
use crate::whole::job::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Starts a task for each number from 0 up, made by `wait`.
pub(super) fn start<F: Future<Output = ()> + Send + 'static>(
    tokio: &Tokio,
    processes: u64,
    wait: impl Fn(u64, UnboundedReceiver<u64>, &'static Gate) -> F,
) -> Result<(Duration, Vec<UnboundedSender<u64>>), Error> {
    let mut crowd = Vec::with_capacity(usize::try_from(processes).map_err(failed)?);
    let time = tokio.gate.time(processes, || {
        for number in 0..processes {
            let (sender, messages) = unbounded_channel();
            tokio.runtime.spawn(wait(number, messages, tokio.gate));
            crowd.push(sender);
        }
        Ok(())
    })?;
    Ok((time, crowd))
}

pub(super) fn wake(tokio: &Tokio, crowd: Vec<UnboundedSender<u64>>) -> Timed {
    tokio.gate.time(crowd.len() as u64, || {
        let mut crowd = crowd.iter();
        crowd.try_for_each(|waiter| waiter.send(0).map_err(failed))
    })
}

pub(super) fn sleeper(tokio: &Tokio, bell: &'static Bell) -> Deliver {
    let (sender, numbers) = unbounded_channel();
    let heard = move |number| bell.strike(number);
    tokio.runtime.spawn(listen(numbers, heard, tokio.gate));
    Box::new(move |number| sender.send(number).expect("the sleeper is there"))
}

pub(super) fn herald(tokio: &Tokio, heard: Heard) -> Deliver {
    let (sender, numbers) = unbounded_channel();
    tokio.runtime.spawn(listen(numbers, heard, tokio.gate));
    Box::new(move |number| sender.send(number).expect("the herald is there"))
}

pub(super) fn due(tokio: &Tokio, board: &Arc<Board>) -> Deliver {
    let listener = |row| {
        let (sender, ticks) = unbounded_channel();
        let board = Arc::clone(board);
        let heard = move |tick| board.arrive(row, tick);
        tokio.runtime.spawn(listen(ticks, heard, tokio.gate));
        sender
    };
    let all: Vec<_> = (0..board.processes()).map(listener).collect();
    Box::new(move |tick| {
        for process in &all {
            process.send(tick).expect("the process is there");
        }
    })
}

/// Hits the gate when it starts, and when a message ends it.
pub(super) async fn wait(mut messages: UnboundedReceiver<u64>, gate: &'static Gate) {
    gate.hit();
    messages.recv().await.expect("a message");
    gate.hit();
}

/// Passes numbers on until `heard` says that a number was the last.
async fn listen(
    mut numbers: UnboundedReceiver<u64>,
    heard: impl Fn(u64) -> bool,
    gate: &'static Gate,
) {
    while !heard(numbers.recv().await.expect("a number")) {}
    gate.hit();
}

//! Tasks that depend on each other: a set of tasks whose ends are awaited, and a channel to many.

use super::Tokio;
use crate::whole::contestant::{Timed, asker, failed};
use crate::whole::jobs::{POOL, compute};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, broadcast};
use tokio::task::JoinSet;

pub(super) fn spawn_monitored(tokio: &Tokio, processes: u64) -> Timed {
    let gate = tokio.gate;
    tokio.time(async move {
        let mut children = JoinSet::new();
        for _ in 0..processes {
            children.spawn(async {});
        }
        let mut told = 0;
        while children.join_next().await.is_some() {
            told += 1;
        }
        gate.hit_with(told);
    })
}

/// The channel has room for all: a late receiver would lose messages.
pub(super) fn broadcast(tokio: &Tokio, members: u64, messages: u64) -> Timed {
    let gate = tokio.gate;
    let room = usize::try_from(messages).map_err(failed)?;
    let (to, _) = broadcast::channel(room);
    for _ in 0..members {
        let mut numbers = to.subscribe();
        tokio.runtime.spawn(async move {
            let mut sum = 0;
            for _ in 0..messages {
                sum += numbers.recv().await.expect("there is room for all");
            }
            gate.hit_with(sum);
        });
    }
    gate.time(members, || {
        tokio.runtime.spawn(async move {
            for number in 0..messages {
                to.send(number).expect("the members are there");
            }
        });
        Ok(())
    })
}

/// A task has failed.
struct Failed;

async fn fail(is_last: bool) -> Result<(), Failed> {
    if is_last { Ok(()) } else { Err(Failed) }
}

pub(super) fn restart(tokio: &Tokio, restarts: u64) -> Timed {
    let gate = tokio.gate;
    tokio.time(async move {
        let mut children = JoinSet::new();
        let mut restarted = 0;
        children.spawn(fail(restarts == 0));
        while let Some(Ok(Err(Failed))) = children.join_next().await {
            restarted += 1;
            children.spawn(fail(restarted == restarts));
        }
        gate.hit_with(restarted);
    })
}

/// Each job is a task; a semaphore lets a limited number run.
pub(super) fn pool(tokio: &Tokio, callers: u64, jobs: u64, length: Duration) -> Timed {
    let gate = tokio.gate;
    let places = Arc::new(Semaphore::new(POOL));
    gate.time(callers, || {
        tokio.spawn_each(callers, |_| {
            let places = Arc::clone(&places);
            let mut mine = JoinSet::new();
            asker!(gate, (1..=jobs).rev(), |number| {
                let place = Arc::clone(&places).acquire_owned().await;
                let place = place.expect("it is not closed");
                mine.spawn(async move {
                    let answer = compute(number, length);
                    drop(place);
                    answer
                });
                let answer = mine.join_next().await.expect("there is one");
                answer.expect("no job panics")
            })
        })
    })
}

//! Tasks that depend on one another: a set of tasks whose ends are awaited, and a channel to many.

use super::Tokio;
use crate::whole::contestant::{Timed, failed};
use tokio::sync::broadcast;
use tokio::task::JoinSet;

pub(super) fn spawn_monitored(tokio: &Tokio, processes: u64) -> Timed {
    let gate = tokio.gate;
    let parent = async move {
        let mut children = JoinSet::new();
        for _ in 0..processes {
            children.spawn(async {});
        }
        let mut told = 0;
        while children.join_next().await.is_some() {
            told += 1;
        }
        gate.hit_with(told);
    };
    gate.time(1, || {
        drop(tokio.runtime.spawn(parent));
        Ok(())
    })
}

/// The channel has room for all: a receiver that is late would lose messages.
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

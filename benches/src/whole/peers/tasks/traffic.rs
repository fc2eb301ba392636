//! Pairs, rings and fans.

use super::Tasks;
use crate::whole::contestant::{Timed, failed};
use crate::whole::gate::Gate;
use crate::whole::job::Error;
use ganger_proc_api::BoxError;
use ganger_sched::Address;
use ganger_task::Cx;

/// The messages to halves of a pair, and to members of a ring.
enum Traffic {
    /// The next task, to which the numbers go. This message comes first.
    Next(Address<Traffic>),
    /// A ball, or a token.
    Number(u64),
    /// The last one.
    End,
}

fn spawn_all<F, Fut>(tasks: &Tasks, count: u64, body: F) -> Result<Vec<Address<Traffic>>, Error>
where
    F: FnOnce(Cx<Traffic>) -> Fut + Copy + Send + 'static,
    Fut: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    let spawn = |_| Ok(tasks.start(body)?.address().clone());
    (0..count).map(spawn).collect()
}

/// Returns the address in a task's first message.
async fn next(cx: &Cx<Traffic>) -> Result<Address<Traffic>, BoxError> {
    match cx.recv().await {
        Some(Traffic::Next(next)) => Ok(next),
        _ => Err("it has no partner".into()),
    }
}

pub(super) fn ping_pong(tasks: &Tasks, pairs: u64, round_trips: u64) -> Timed {
    let gate = tasks.gate;
    let body = move |cx| half(cx, gate);
    let (white, black) = (
        spawn_all(tasks, pairs, body)?,
        spawn_all(tasks, pairs, body)?,
    );
    for (white, black) in white.iter().zip(&black) {
        white.send(Traffic::Next(black.clone())).map_err(failed)?;
        black.send(Traffic::Next(white.clone())).map_err(failed)?;
    }
    gate.time(2 * pairs, || {
        // The first message, and the last, which is a zero, are half a round trip each.
        let ball = || Traffic::Number(2 * round_trips);
        let mut white = white.iter();
        white.try_for_each(|white| white.send(ball()).map_err(failed))
    })
}

async fn half(cx: Cx<Traffic>, gate: &'static Gate) -> Result<(), BoxError> {
    let partner = next(&cx).await?;
    while let Some(Traffic::Number(left)) = cx.recv().await {
        if left > 0 {
            partner.send(Traffic::Number(left - 1))?;
        }
        // A half sees `1`, the other `0`.
        if left <= 1 {
            gate.hit();
            break;
        }
    }
    Ok(())
}

pub(super) fn ring(tasks: &Tasks, members: u64, tokens: u64, hops: u64) -> Timed {
    let gate = tasks.gate;
    let ring = spawn_all(tasks, members, move |cx| member(cx, gate))?;
    for (member, next) in ring.iter().zip(ring.iter().cycle().skip(1)) {
        member.send(Traffic::Next(next.clone())).map_err(failed)?;
    }
    let apart = (ring.len() / usize::try_from(tokens).map_err(failed)?).max(1);
    let starts = || ring.iter().step_by(apart);
    let time = gate.time(starts().count() as u64, || {
        let token = || Traffic::Number(hops);
        starts().try_for_each(|member| member.send(token()).map_err(failed))
    })?;
    gate.time(members, || {
        let mut ring = ring.iter();
        ring.try_for_each(|member| member.send(Traffic::End).map_err(failed))
    })?;
    Ok(time)
}

/// Sends tokens on, with a hop less to go.
async fn member(cx: Cx<Traffic>, gate: &'static Gate) -> Result<(), BoxError> {
    let next = next(&cx).await?;
    while let Some(Traffic::Number(left)) = cx.recv().await {
        match left.checked_sub(1) {
            Some(left) => next.send(Traffic::Number(left))?,
            None => gate.hit(),
        }
    }
    gate.hit();
    Ok(())
}

pub(super) fn fan_in(tasks: &Tasks, producers: u64, messages: u64) -> Timed {
    let gate = tasks.gate;
    let consumer = tasks.start(async move |cx: Cx<u64>| {
        let mut sum = 0;
        for _ in 0..producers * messages {
            sum += cx.recv().await.ok_or("cancelled")?;
        }
        gate.hit_with(sum);
        Ok(())
    })?;
    gate.time(1, || {
        (0..producers).try_for_each(|_| {
            let to = consumer.address().clone();
            let produce = async move |_: Cx| {
                (0..messages).try_for_each(|number| to.send(number))?;
                Ok(())
            };
            tasks.start(produce).map(drop)
        })
    })
}

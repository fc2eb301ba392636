//! Tasks yield, send to each other, ask each other, pass values through a channel, and take turns
//! with a mutex.

use crate::actors::{Ball, Question, play};
use crate::one_worker::{OneWorker, ended};
use ganger_proc_api::BoxError;
use ganger_task::Cx;
use std::sync::Arc;

pub(crate) fn yields(worker: &OneWorker, steps: u64) -> Result<(), BoxError> {
    let task = worker.scheduler.spawn(async move |cx: Cx| {
        for _ in 0..steps {
            cx.yield_now().await;
        }
        Ok(())
    })?;
    ended(task)
}

const POISONED: &str = "a task has failed";

pub(crate) fn send(worker: &OneWorker, sends: u64) -> Result<(), BoxError> {
    let spawn = || worker.scheduler.spawn(half);
    play([spawn()?, spawn()?], sends)
}

/// Sends each received number, less 1, to its partner, and ends at 1 or 0.
async fn half(cx: Cx<Ball>) -> Result<(), BoxError> {
    let Some(Ball::Partner(partner)) = cx.recv().await else {
        return Err("without a partner".into());
    };
    while let Some(Ball::Number(left)) = cx.recv().await {
        if let Some(less) = left.checked_sub(1) {
            partner.send(Ball::Number(less))?;
        }
        if left <= 1 {
            break;
        }
    }
    Ok(())
}

pub(crate) fn call(worker: &OneWorker, calls: u64) -> Result<(), BoxError> {
    let server = worker.scheduler.spawn(async move |cx: Cx<Question>| {
        for _ in 0..calls {
            let Question(number, reply) = cx.recv().await.ok_or("cancelled")?;
            reply.complete(number);
        }
        Ok(())
    })?;
    let to = server.address().clone();
    let asker = worker.scheduler.spawn(async move |cx: Cx| {
        for number in 0..calls {
            let question = to.call(move |reply| Question(number, reply));
            if cx.ask(question).await? != number {
                return Err("another answer".into());
            }
        }
        Ok(())
    })?;
    ended(asker)?;
    ended(server)
}

pub(crate) fn channel(worker: &OneWorker, capacity: usize, values: u64) -> Result<(), BoxError> {
    let (sender, receiver) = ganger_channel::channel(capacity);
    let receiver = worker.scheduler.spawn(async move |_: Cx| {
        for expected in 0..values {
            if receiver.recv().await? != expected {
                return Err("another value".into());
            }
        }
        Ok(())
    })?;
    let sender = worker.scheduler.spawn(async move |_: Cx| {
        for value in 0..values {
            sender.send(value).await?;
        }
        Ok(())
    })?;
    ended(sender)?;
    ended(receiver)
}

/// Runs a single task, which finds the mutex free each time.
pub(crate) fn free_mutex(worker: &OneWorker, turns: u64) -> Result<(), BoxError> {
    let task = worker.scheduler.spawn(async move |_: Cx| {
        let mutex = ganger_lock::Mutex::new(0);
        for _ in 0..turns {
            *mutex.lock().await.map_err(|_| POISONED)? += 1_u64;
        }
        Ok(())
    })?;
    ended(task)
}

/// Runs two tasks: each keeps the mutex over a step, so that the other waits for its turn.
pub(crate) fn mutex(worker: &OneWorker, turns: u64) -> Result<(), BoxError> {
    let mutex = Arc::new(ganger_lock::Mutex::new(0_u64));
    let contender = |turns: u64| {
        let mutex = Arc::clone(&mutex);
        worker.scheduler.spawn(async move |cx: Cx| {
            for _ in 0..turns {
                let mut guard = mutex.lock().await.map_err(|_| POISONED)?;
                *guard += 1;
                cx.yield_now().await;
            }
            Ok(())
        })
    };
    let (one, other) = (contender(turns / 2)?, contender(turns - turns / 2)?);
    ended(one)?;
    ended(other)
}

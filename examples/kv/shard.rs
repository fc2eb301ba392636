//! A shard: a process that owns a part of the keys. Keys that end are timers of it.

use super::protocol::Answer;
use super::store::{Operation, Store};
use bytes::Bytes;
use ganger::prelude::*;

/// Commands that come together, and are answered together, in their order.
pub(crate) struct Batch {
    pub(crate) jobs: Vec<Job>,
    pub(crate) reply: Reply<Vec<Answer>>,
}

pub(crate) struct Job {
    pub(crate) operation: Operation,
    pub(crate) args: Vec<Bytes>,
}

pub(crate) struct Shard {
    store: Store,
    ends: KeyedTimers<Bytes>,
}

impl Shard {
    pub(crate) fn new() -> Self {
        Self {
            store: Store::new(Moment::from_nanos(0)),
            ends: KeyedTimers::new(0),
        }
    }
}

impl Actor for Shard {
    type Message = Batch;

    fn receive(&mut self, ctx: &Context, batch: Batch, out: &mut StepOutput) -> StepResult {
        self.store.at(ctx.now());
        let answers = batch.jobs.iter().map(|job| {
            let answered = (job.operation)(&mut self.store, &job.args);
            answered.unwrap_or_else(|refused| Answer::Error(refused.to_string()))
        });
        let answers = answers.collect();
        for (key, lasts) in self.store.changes() {
            match lasts {
                Some(time) => self.ends.start(key, time, out),
                None => _ = self.ends.cancel(&key, out),
            }
        }
        batch.reply.complete(answers);
        Ok(())
    }

    fn completed(&mut self, ctx: &Context, over: Completion, _: &mut StepOutput) -> StepResult {
        if let Some(key) = self.ends.fired(&over) {
            self.store.at(ctx.now());
            self.store.expire(&key);
        }
        Ok(())
    }
}

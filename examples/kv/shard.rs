//! A shard: a process that owns a part of the keys. Keys that end are timers of it.
//!
//! **A transaction** of several shards, or with keys that are watched, holds each of its shards, in
//! the order of their numbers, so that no two wait for each other. A shard that is held looks after
//! the holder alone; others wait. The holder's commands give it back, and so does the holder's end.

use super::protocol::Answer;
use super::store::{Operation, Store};
use super::transaction::Watched;
use bytes::Bytes;
use ganger::prelude::*;
use ganger::time::KeyedTimers;
use ganger::{ExitNotice, Instant};
use std::collections::VecDeque;

/// What a shard is asked for.
pub(crate) enum Work {
    Batch(Batch),
    Hold(Hold),
    /// Its holder needs it no longer.
    Release(Pid),
}

/// Commands that come together, and are answered together, in their order.
pub(crate) struct Batch {
    pub(crate) jobs: Vec<Job>,
    /// The process that holds the shard, and gives it back with this.
    pub(crate) holder: Option<Pid>,
    pub(crate) reply: Reply<Vec<Answer>>,
}

pub(crate) struct Job {
    pub(crate) operation: Operation,
    pub(crate) args: Vec<Bytes>,
    /// It may change the value of its key.
    pub(crate) writes: bool,
}

/// The shard is to be the holder's, if the watched keys have these versions. Answers whether it is.
pub(crate) struct Hold {
    pub(crate) holder: Pid,
    pub(crate) watched: Vec<Watched>,
    pub(crate) reply: Reply<bool>,
}

/// The tag of the end of a holder. Timers have others.
const HOLDER_ENDS: Tag = Tag::MAX;

pub(crate) struct Shard {
    store: Store,
    ends: KeyedTimers<Bytes>,
    holder: Option<Pid>,
    /// What came while it was held.
    waits: VecDeque<Work>,
}

impl Shard {
    pub(crate) fn new() -> Self {
        Self {
            store: Store::new(Instant::from_nanos(0)),
            ends: KeyedTimers::new(0),
            holder: None,
            waits: VecDeque::new(),
        }
    }

    fn carry_out(&mut self, batch: Batch, out: &mut StepOutput) {
        let answers = batch.jobs.iter().map(|job| {
            let answered = (job.operation)(&mut self.store, &job.args);
            if job.writes
                && let Some(key) = job.args.first()
            {
                self.store.touch(key);
            }
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
    }

    fn hold(&mut self, ctx: &Context, hold: Hold) {
        let as_watched = |(key, version): &Watched| self.store.version(key) == *version;
        // One that has ended already gives nothing back.
        let is_held =
            hold.watched.iter().all(as_watched) && ctx.monitor(hold.holder, HOLDER_ENDS).is_ok();
        self.holder = is_held.then_some(hold.holder);
        hold.reply.complete(is_held);
    }

    fn release(&mut self, ctx: &Context) {
        if let Some(holder) = self.holder.take() {
            ctx.demonitor(holder, HOLDER_ENDS);
        }
    }

    fn work(&mut self, ctx: &Context, work: Work, out: &mut StepOutput) {
        match work {
            Work::Release(holder) if self.holder == Some(holder) => self.release(ctx),
            Work::Release(_) => {}
            Work::Batch(batch) if self.holder.is_none() => self.carry_out(batch, out),
            Work::Batch(batch) if batch.holder == self.holder => {
                self.carry_out(batch, out);
                self.release(ctx);
            }
            Work::Hold(hold) if self.holder.is_none() => self.hold(ctx, hold),
            other => self.waits.push_back(other),
        }
    }

    /// Goes on with what has waited, until it is held again.
    fn go_on(&mut self, ctx: &Context, out: &mut StepOutput) {
        while self.holder.is_none()
            && let Some(work) = self.waits.pop_front()
        {
            self.work(ctx, work, out);
        }
    }
}

impl Actor for Shard {
    type Message = Work;

    fn receive(&mut self, ctx: &Context, work: Work, out: &mut StepOutput) -> StepResult {
        self.store.at(ctx.now());
        self.work(ctx, work, out);
        self.go_on(ctx, out);
        Ok(())
    }

    fn exited(&mut self, ctx: &Context, end: ExitNotice, out: &mut StepOutput) -> StepResult {
        if self.holder == Some(end.pid) {
            self.holder = None;
            self.store.at(ctx.now());
            self.go_on(ctx, out);
        }
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

//! A shard: a part of the keys, and the process that looks after them. Each key with an end has a
//! timer of the process.
//!
//! **The keys are behind a lock.** A connection carries out short commands itself, where it finds
//! the lock free: two messages and two steps cost more than most commands. Where another thread has
//! the lock, a process holds the shard, or commands are long, the connection asks the process. So
//! no connection waits for the lock, and the process waits for short commands alone.
//!
//! **A command that panics** leaves the lock poisoned. Connections then pass it by, and the process
//! fails at the next message, and begins anew without keys.
//!
//! **A transaction** of several shards, or with watched keys, holds each of its shards, in the
//! order of their numbers, so that no two wait for each other. A held shard serves only the holder;
//! others wait. The holder's commands give it back, and so does the holder's end.

use super::protocol::Answer;
use super::store::{Operation, Store};
use super::transaction::Watched;
use bytes::Bytes;
use ganger::prelude::*;
use ganger::time::KeyedTimers;
use ganger::{ExitNotice, Instant};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

/// A message to a shard.
pub(crate) enum Work {
    Batch(Batch),
    Hold(Hold),
    /// A connection has changed when keys end.
    Ends,
    /// The holder gives the shard back.
    Release(Pid),
}

/// Commands that come together, and are answered together, in their order.
pub(crate) struct Batch {
    pub(crate) jobs: Vec<Job>,
    /// The process that holds the shard, and gives it back with this batch.
    pub(crate) holder: Option<Pid>,
    pub(crate) reply: Reply<Vec<Answer>>,
}

pub(crate) struct Job {
    pub(crate) operation: Operation,
    pub(crate) args: Vec<Bytes>,
    /// Whether the command may change the value of its key.
    pub(crate) writes: bool,
}

/// Asks to hold the shard, if the watched keys have these versions. The answer tells whether it is
/// held.
pub(crate) struct Hold {
    pub(crate) holder: Pid,
    pub(crate) watched: Vec<Watched>,
    pub(crate) reply: Reply<bool>,
}

/// The tag of the end of a holder. Timers have others.
const HOLDER_ENDS: Tag = Tag::MAX;

/// The keys of a shard.
#[derive(Clone)]
pub(crate) struct Keys(Arc<Mutex<Guarded>>);

struct Guarded {
    store: Store,
    /// Its process alone carries out commands.
    is_held: bool,
}

impl Guarded {
    fn new() -> Self {
        Self {
            store: Store::new(Instant::from_nanos(0)),
            is_held: false,
        }
    }

    fn carry_out(&mut self, jobs: &[Job], now: Instant) -> Vec<Answer> {
        self.store.at(now);
        let answers = jobs.iter().map(|job| {
            let answered = (job.operation)(&mut self.store, &job.args);
            if job.writes
                && let Some(key) = job.args.first()
            {
                self.store.touch(key);
            }
            answered.unwrap_or_else(|refused| Answer::Error(refused.to_string()))
        });
        answers.collect()
    }
}

impl Keys {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Guarded::new())))
    }

    /// Carries out short commands on the thread of the caller, if the keys are free. Returns the
    /// answers, and whether the caller must tell the shard's process [`Work::Ends`]: only the first
    /// caller that changes ends must, until the process has looked. So a burst does not fill its
    /// mailbox.
    pub(crate) fn try_carry_out(&self, jobs: &[Job], now: Instant) -> Option<(Vec<Answer>, bool)> {
        let mut keys = self.0.try_lock().ok()?;
        if keys.is_held {
            return None;
        }
        let was_told = keys.store.has_changes();
        let answers = keys.carry_out(jobs, now);
        Some((answers, !was_told && keys.store.has_changes()))
    }

    /// Locks the keys for the shard's process, which fails after a command that has panicked.
    fn lock(&self) -> MutexGuard<'_, Guarded> {
        self.0.lock().expect("no command has failed")
    }
}

/// The process of a shard.
pub(crate) struct Shard {
    keys: Keys,
    ends: KeyedTimers<Bytes>,
    holder: Option<Pid>,
    /// The work that came while the shard was held.
    waits: VecDeque<Work>,
}

impl Shard {
    /// Begins without keys.
    pub(crate) fn new(keys: &Keys) -> Self {
        keys.0.clear_poison();
        *keys.lock() = Guarded::new();
        Self {
            keys: keys.clone(),
            ends: KeyedTimers::new(0),
            holder: None,
            waits: VecDeque::new(),
        }
    }

    fn carry_out(&mut self, ctx: &Context, batch: Batch, out: &mut StepOutput) {
        let answers = self.keys.lock().carry_out(&batch.jobs, ctx.now());
        self.follow(out);
        batch.reply.complete(answers);
    }

    /// Sets a timer for each key with an end.
    fn follow(&mut self, out: &mut StepOutput) {
        let changes = self.keys.lock().store.changes();
        for (key, lasts) in changes {
            match lasts {
                Some(time) => self.ends.start(key, time, out),
                None => _ = self.ends.cancel(&key, out),
            }
        }
    }

    fn hold(&mut self, ctx: &Context, hold: Hold) {
        let mut keys = self.keys.lock();
        keys.store.at(ctx.now());
        let mut as_watched = |(key, version): &Watched| keys.store.version(key) == *version;
        // A holder that has ended already gives nothing back.
        let is_held = hold.watched.iter().all(&mut as_watched)
            && ctx.monitor(hold.holder, HOLDER_ENDS).is_ok();
        keys.is_held = is_held;
        drop(keys);
        self.holder = is_held.then_some(hold.holder);
        hold.reply.complete(is_held);
    }

    fn release(&mut self, ctx: &Context) {
        if let Some(holder) = self.holder.take() {
            ctx.demonitor(holder, HOLDER_ENDS);
            self.keys.lock().is_held = false;
        }
    }

    fn work(&mut self, ctx: &Context, work: Work, out: &mut StepOutput) {
        match work {
            Work::Release(holder) if self.holder == Some(holder) => self.release(ctx),
            Work::Release(_) => {}
            Work::Ends => {
                self.keys.lock().store.at(ctx.now());
                self.follow(out);
            }
            Work::Batch(batch) if self.holder.is_none() => self.carry_out(ctx, batch, out),
            Work::Batch(batch) if batch.holder == self.holder => {
                self.carry_out(ctx, batch, out);
                self.release(ctx);
            }
            Work::Hold(hold) if self.holder.is_none() => self.hold(ctx, hold),
            other => self.waits.push_back(other),
        }
    }

    /// Goes on with the waiting work, until the shard is held again.
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
        self.work(ctx, work, out);
        self.go_on(ctx, out);
        Ok(())
    }

    fn exited(&mut self, ctx: &Context, end: ExitNotice, out: &mut StepOutput) -> StepResult {
        if self.holder == Some(end.pid) {
            self.holder = None;
            self.keys.lock().is_held = false;
            self.go_on(ctx, out);
        }
        Ok(())
    }

    fn completed(&mut self, ctx: &Context, over: Completion, _: &mut StepOutput) -> StepResult {
        if let Some(key) = self.ends.fired(&over) {
            let mut keys = self.keys.lock();
            keys.store.at(ctx.now());
            keys.store.expire(&key);
        }
        Ok(())
    }
}

//! A worker of a pool: a process that takes jobs.

use super::queue::{Entry, Queue};
use super::{MakeWork, PoolError, Work};
use crate::log::contain;
use ganger_proc_api::{
    BoxError, Context, Event, Events, Payloads, Process, StepOutput, StepResult, Tag,
};
use ganger_sched::ContextExt;
use ganger_time::{TimerOutput, Timers};
use std::sync::Arc;
use std::time::Duration;

/// The tag of the timer of an idle worker.
const IDLE: Tag = 1;

/// So many jobs a step at the most.
const BATCH: u32 = 64;

/// What all workers of a pool have in common.
pub(super) struct Settings<J, A> {
    pub(super) make: MakeWork<J, A>,
    pub(super) retries: u32,
    pub(super) copy: Option<fn(&J) -> J>,
    /// A worker that was idle for so long ends; `None` if all stay.
    pub(super) idle: Option<Duration>,
}

pub(super) struct Worker<J, A> {
    queue: Arc<Queue<J, A>>,
    settings: Arc<Settings<J, A>>,
    index: usize,
    work: Option<Work<J, A>>,
    timers: Option<Arc<Timers>>,
    /// The timer runs.
    is_armed: bool,
    /// It has told the queue that it ends.
    is_gone: bool,
}

impl<J, A> Worker<J, A> {
    pub(super) fn new(
        queue: Arc<Queue<J, A>>,
        settings: Arc<Settings<J, A>>,
        index: usize,
    ) -> Self {
        Self {
            queue,
            settings,
            index,
            work: None,
            timers: None,
            is_armed: false,
            is_gone: false,
        }
    }
}

impl<J: Send + 'static, A: Send + 'static> Worker<J, A> {
    /// Carries a job out, and answers. A panic is the worker's failure.
    fn serve(&mut self, entry: Entry<J, A>) -> Result<(), BoxError> {
        let Entry {
            job,
            reply,
            since,
            tries,
        } = entry;
        let Some(work) = &mut self.work else {
            return Err("a worker steps after its `init`".into());
        };
        let copy = self.settings.copy.filter(|_| tries < self.settings.retries);
        let mut again = None;
        let done = contain(|| {
            again = copy.map(|copy| copy(&job));
            work(job)
        });
        let error = match done {
            Ok(done) => {
                self.queue.served(self.index);
                match (reply, done) {
                    (Some(reply), Ok(answer)) => reply.complete(answer),
                    (Some(reply), Err(error)) => reply.fail(error),
                    (None, _) => {}
                }
                return Ok(());
            }
            Err(message) => message,
        };
        match again {
            Some(job) => {
                let tries = tries + 1;
                let entry = Entry {
                    job,
                    reply,
                    since,
                    tries,
                };
                self.queue.panicked(self.index, Some(entry));
            }
            None => {
                self.queue.panicked(self.index, None);
                if let Some(reply) = reply {
                    reply.fail(PoolError::Panicked(error.as_str().into()));
                }
            }
        }
        Err(format!("panicked with a job: {error}").into())
    }
}

impl<J: Send + 'static, A: Send + 'static> Process for Worker<J, A> {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        self.timers = ctx.source();
        self.work = Some((self.settings.make)());
        self.queue.begin(self.index, ctx.waker());
        Ok(())
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        let Some(timers) = self.timers.clone() else {
            return Err("no timers".into());
        };
        for event in events {
            if let Event::Completion(_) = event {
                self.is_armed = false;
                if self.queue.retire(self.index) {
                    self.is_gone = true;
                    out.done(());
                    return Ok(());
                }
            }
        }
        if ctx.is_cancelled() {
            return Ok(());
        }
        for _ in 0..BATCH {
            let Some(entry) = self.queue.take(self.index, timers.now()) else {
                if let Some(idle) = self.settings.idle
                    && !self.is_armed
                {
                    out.sleep(idle, IDLE);
                    self.is_armed = true;
                }
                return Ok(());
            };
            if self.is_armed {
                out.cancel(IDLE);
                self.is_armed = false;
            }
            self.serve(entry)?;
            if ctx.should_yield() || ctx.is_cancelled() {
                break;
            }
        }
        out.go_on();
        Ok(())
    }

    fn close(&mut self) {
        if !self.is_gone {
            self.queue.gone(self.index);
        }
    }
}

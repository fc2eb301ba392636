//! The process that admits jobs.

use super::queue::{Entry, Queue};
use super::worker::Settings;
use super::worker_child;
use crate::tree::Tree;
use ganger_proc_api::{
    BoxError, Context, Event, Events, Payloads, Process, Reply, StepOutput, StepResult, Tag,
};
use ganger_sched::ContextExt;
use ganger_sync::sync::{Mutex, lock};
use ganger_time::Timers;
use std::sync::Arc;

/// A job on its way to a pool.
pub(super) struct Order<J, A> {
    job: J,
    key: Option<u64>,
    reply: Option<Reply<A>>,
}

impl<J, A> Order<J, A> {
    pub(super) fn new(job: J, key: Option<u64>, reply: Option<Reply<A>>) -> Self {
        Self { job, key, reply }
    }
}

pub(super) struct Front<J, A> {
    queue: Arc<Queue<J, A>>,
    settings: Arc<Settings<J, A>>,
    /// Known when the pool has been started.
    tree: Arc<Mutex<Option<Tree>>>,
    timers: Option<Arc<Timers>>,
}

impl<J, A> Front<J, A> {
    pub(super) fn new(
        queue: Arc<Queue<J, A>>,
        settings: Arc<Settings<J, A>>,
        tree: Arc<Mutex<Option<Tree>>>,
    ) -> Self {
        Self {
            queue,
            settings,
            tree,
            timers: None,
        }
    }
}

impl<J: Send + 'static, A: Send + 'static> Process for Front<J, A> {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        ctx.accept_only::<Order<J, A>>();
        self.timers = ctx.source();
        self.queue.set_front(ctx.waker());
        Ok(())
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        let Some(timers) = &self.timers else {
            return Err("no timers".into());
        };
        for event in events {
            match event {
                Event::Message(message) => {
                    let Order { job, key, reply } = message.take::<Order<J, A>>()?;
                    let entry = Entry {
                        job,
                        reply,
                        since: timers.now(),
                        tries: 0,
                    };
                    self.queue.admit(entry, key);
                }
                Event::Completion(started) if started.result.is_err() => {
                    // Another job tries again.
                    self.queue
                        .not_started(usize::try_from(started.tag).unwrap_or(usize::MAX));
                }
                _ => {}
            }
        }
        let tree = lock(&self.tree).clone();
        let Some(tree) = tree else { return Ok(()) };
        while let Some(index) = self.queue.next_to_start() {
            let child = worker_child(&self.queue, &self.settings, index);
            out.ask(tree.start_child(child), index as Tag);
        }
        if self.queue.is_drained() {
            // Its end ends this process.
            let _ = ctx.cancel(tree.pid(), "all jobs are done");
        }
        Ok(())
    }

    fn close(&mut self) {
        self.queue.end();
    }
}

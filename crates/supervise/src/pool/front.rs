//! The process that starts workers for jobs, and ends the pool when nothing is left to do.

use super::queue::{Next, Queue};
use super::worker::Settings;
use super::worker_child;
use crate::order::Order;
use crate::tree::Tree;
use crate::view::View;
use ganger_proc_api::{
    BoxError, CancelReason, Context, Event, Events, Payloads, Process, StepOutput, StepResult, Tag,
};
use ganger_sched::{ContextExt, Moment};
use ganger_time::{TimerOutput, Timers};
use std::sync::Arc;
use std::time::Duration;

/// The tag of its timer. Below are the numbers of workers that are started.
const DUE: Tag = Tag::MAX;

/// How long it waits when a worker could not be started.
const AGAIN: Duration = Duration::from_millis(100);

pub(super) struct Front<J, A> {
    queue: Arc<Queue<J, A>>,
    settings: Arc<Settings<J, A>>,
    /// The pool.
    view: Arc<View>,
    /// The workers; `None` for an inline pool.
    workers: Option<Tree>,
    timers: Option<Arc<Timers>>,
    /// The moment for which the timer runs.
    armed: Moment,
    /// When to look again, since a worker could not be started.
    again: Moment,
    /// Why it was asked to finish.
    reason: Option<CancelReason>,
}

impl<J, A> Front<J, A> {
    pub(super) fn new(
        queue: Arc<Queue<J, A>>,
        settings: Arc<Settings<J, A>>,
        view: Arc<View>,
    ) -> Self {
        Self {
            queue,
            settings,
            view,
            workers: None,
            timers: None,
            armed: Moment::NEVER,
            again: Moment::NEVER,
            reason: None,
        }
    }

    fn find_workers(&self, ctx: &Context) -> Option<Tree> {
        let entry = self.view.find(super::WORKERS)?;
        let scheduler = ctx.scheduler()?;
        Some(Tree {
            address: scheduler.address(entry.pid?)?.typed::<Order>().ok()?,
            view: entry.below?,
            scheduler: scheduler.downgrade(),
        })
    }
}

impl<J: Send + 'static, A: Send + 'static> Process for Front<J, A> {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        self.timers = ctx.source();
        self.workers = self.find_workers(ctx);
        if let Some(workers) = &self.workers {
            ctx.monitor(workers.pid(), 0)?;
        }
        self.queue.open(ctx.waker());
        Ok(())
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        let timers = self.timers.clone().ok_or("no timers")?;
        out.defer_cancel();
        for event in events {
            match event {
                Event::Completion(it) if it.tag == DUE => {
                    self.armed = Moment::NEVER;
                    self.again = Moment::NEVER;
                }
                Event::Completion(started) if started.result.is_err() => {
                    let index = usize::try_from(started.tag).unwrap_or(usize::MAX);
                    self.queue.not_started(index);
                    self.again = timers.now().after(AGAIN);
                }
                Event::Cancel(reason) => {
                    self.reason.get_or_insert(reason);
                    self.queue.drain();
                }
                // Nothing carries jobs out any more.
                Event::Exit(_) => self.queue.end(),
                _ => {}
            }
        }
        let mut due = self.again;
        if let Some(workers) = &self.workers
            && self.again == Moment::NEVER
        {
            due = loop {
                match self.queue.next() {
                    Next::Start(index) => {
                        let child = worker_child(&self.queue, &self.settings, index);
                        out.ask(workers.start_child(child), index as Tag);
                    }
                    Next::Wait(due) => break due.unwrap_or(Moment::NEVER),
                }
            };
        }
        if self.queue.is_drained() {
            if let Some(reason) = self.reason.take() {
                out.show_cancel(reason);
                return Ok(());
            }
            if self.queue.drains()
                && let Some(owner) = self.queue.owner()
            {
                // The end of the pool ends this process.
                let _ = ctx.cancel(owner, "all jobs are done");
            }
        }
        if due != self.armed {
            out.cancel(DUE);
            if due < Moment::NEVER {
                out.sleep_until(due, DUE);
            }
            self.armed = due;
        }
        Ok(())
    }

    fn close(&mut self) {
        self.queue.end();
    }
}

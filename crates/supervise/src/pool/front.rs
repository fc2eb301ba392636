//! The process that starts workers for jobs, expires old jobs, and ends the pool when nothing is
//! left to do.

use super::entry::START;
use super::queue::{Next, Queue};
use super::worker::{Settings, worker_child};
use crate::driver::Order;
use crate::plan::Streak;
use crate::tree::Tree;
use crate::view::View;
use ganger_proc_api::internal::RunnerOutput as _;
use ganger_proc_api::{
    BoxError, CancelReason, Context, Event, Events, Payloads, Process, StepOutput, StepResult, Tag,
};
use ganger_sched::{ContextExt, Instant};
use std::sync::Arc;

/// The child of a pool that has the workers.
pub(super) const WORKERS: &str = "workers";

/// The tag of the front's timer. Lower tags are the numbers of workers.
const DUE: Tag = Tag::MAX;

/// The tag of the front's monitor of the workers' supervisor.
const NO_WORKERS: Tag = DUE - 1;

pub(super) struct Front<J, A> {
    queue: Arc<Queue<J, A>>,
    settings: Arc<Settings<J, A>>,
    /// The pool.
    view: Arc<View>,
    /// The workers; `None` for an inline pool.
    workers: Option<Tree>,
    /// The moment for which the timer runs.
    armed: Instant,
    /// The failed starts of workers in a row.
    streak: Streak,
    /// The earliest time of the next start.
    again: Instant,
    /// The reason of the cancellation, once it has come.
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
            armed: Instant::NEVER,
            streak: Streak::default(),
            again: START,
            reason: None,
        }
    }

    fn find_workers(&self, ctx: &Context) -> Option<Tree> {
        let entry = self.view.find(WORKERS)?;
        let scheduler = ctx.scheduler()?;
        Some(Tree {
            address: scheduler.address(entry.pid?)?.typed::<Order>().ok()?,
            view: entry.below?,
            scheduler: scheduler.downgrade(),
        })
    }
}

/// Returns the place of a worker, from its tag.
fn place(tag: Tag) -> usize {
    usize::try_from(tag).unwrap_or(usize::MAX)
}

impl<J: Send + 'static, A: Send + 'static> Process for Front<J, A> {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        self.workers = self.find_workers(ctx);
        if let Some(workers) = &self.workers {
            ctx.monitor(workers.pid(), NO_WORKERS)?;
        }
        self.queue.open(ctx.waker());
        Ok(())
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        out.defer_cancel();
        for event in events {
            match event {
                Event::Completion(it) if it.tag == DUE => self.armed = Instant::NEVER,
                Event::Completion(it) => match it.result {
                    Ok(_) => self.streak = Streak::default(),
                    Err(_) => {
                        let now = ctx.now();
                        self.queue.not_started(place(it.tag));
                        // Any number from 0 to 1 will do.
                        let chance = (now.as_nanos() % 1_000) as f64 / 999.0;
                        let back_off = Some(self.settings.back_off);
                        self.again = now.after(self.streak.failed(now, back_off, chance));
                    }
                },
                Event::Cancel(reason) => {
                    self.reason.get_or_insert(reason);
                    self.queue.drain();
                }
                // Nothing carries jobs out any more.
                Event::Exit(notice) if notice.tag == NO_WORKERS => self.queue.end(),
                Event::Exit(notice) => self.queue.ended(place(notice.tag), notice.pid),
                _ => {}
            }
        }
        let mut due = Instant::NEVER;
        if let Some(workers) = &self.workers {
            let may_start = self.again <= ctx.now();
            due = loop {
                match self.queue.next(may_start) {
                    Next::Start(index) => {
                        let child = worker_child(&self.queue, &self.settings, index);
                        out.ask(workers.start_child(child), index as Tag);
                    }
                    Next::Monitor(index, pid) => ctx.monitor(pid, index as Tag)?,
                    Next::Wait(due) if may_start => break due,
                    Next::Wait(due) => break due.min(self.again),
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
            if due < Instant::NEVER {
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

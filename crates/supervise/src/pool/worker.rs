//! A worker of a pool: a process that takes jobs.

use super::entry::Entry;
use super::error::PoolError;
use super::queue::Queue;
use crate::child::ChildSpec;
use crate::log::contain;
use crate::plan::BackOff;
use ganger_proc_api::{
    BoxError, Context, Event, Events, Payloads, Process, Reply, StepOutput, StepResult, Tag,
};
use std::sync::Arc;
use std::time::Duration;

/// The tag of the timer of an idle worker.
const IDLE: Tag = 1;

/// The most jobs of a step.
const BATCH: u32 = 64;

/// A worker's function.
pub(super) type Work<J, A> = Box<dyn FnMut(J) -> Result<A, BoxError> + Send>;
pub(super) type MakeWork<J, A> = Arc<dyn Fn() -> Work<J, A> + Send + Sync>;

/// The settings of all workers of a pool.
pub(super) struct Settings<J, A> {
    pub(super) make: MakeWork<J, A>,
    pub(super) retries: u32,
    pub(super) copy: Option<fn(&J) -> J>,
    /// Errors are retried, as panics are.
    pub(super) retries_errors: bool,
    /// The number of permanent workers; others end after this idle time.
    pub(super) always: usize,
    pub(super) idle: Duration,
    pub(super) back_off: BackOff,
}

impl<J, A> Settings<J, A> {
    /// Returns the longest idle time of a worker; `None` for a permanent worker.
    pub(super) fn idle_end(&self, index: usize) -> Option<Duration> {
        (index >= self.always).then_some(self.idle)
    }
}

pub(super) struct Worker<J, A> {
    queue: Arc<Queue<J, A>>,
    settings: Arc<Settings<J, A>>,
    index: usize,
    work: Option<Work<J, A>>,
    /// The timer runs.
    is_armed: bool,
    /// The queue knows the worker, and not its end.
    has_begun: bool,
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
            is_armed: false,
            has_begun: false,
        }
    }
}

impl<J, A> Worker<J, A> {
    /// Tells the queue of the worker's end, once.
    fn leave(&mut self) {
        if std::mem::take(&mut self.has_begun) {
            self.queue.gone(self.index);
        }
    }
}

/// A worker whose start failed after `init` is dropped without a `close`.
impl<J, A> Drop for Worker<J, A> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Creates a worker as a child of the supervisor of all workers.
pub(super) fn worker_child<J: Send + 'static, A: Send + 'static>(
    queue: &Arc<Queue<J, A>>,
    settings: &Arc<Settings<J, A>>,
    index: usize,
) -> ChildSpec {
    let (queue, settings) = (Arc::clone(queue), Arc::clone(settings));
    let has_idle_end = settings.idle_end(index).is_some();
    let theirs = Arc::clone(&settings);
    let make = move || Worker::new(Arc::clone(&queue), Arc::clone(&theirs), index);
    let child = ChildSpec::new(format!("worker {index}"), make)
        .in_place()
        .back_off(settings.back_off.of_starts());
    if has_idle_end {
        child.temporary()
    } else {
        child
    }
}

/// The caller of a job, and its answer.
struct Done<A>(Option<Reply<A>>, Result<A, BoxError>);

impl<A: Send + 'static> Done<A> {
    fn answer(self) {
        match self {
            Self(Some(reply), Ok(answer)) => reply.complete(answer),
            Self(Some(reply), Err(error)) => reply.fail(error),
            Self(None, _) => {}
        }
    }
}

impl<J: Send + 'static, A: Send + 'static> Worker<J, A> {
    /// Runs a job. A panic is the worker's failure. `None` if the job waits for another try.
    fn serve(&mut self, ctx: &Context, entry: Entry<J, A>) -> Result<Option<Done<A>>, BoxError> {
        let Entry {
            job,
            reply,
            tries,
            since,
            number,
            rank,
            worker,
            cause,
            ..
        } = entry;
        let Some(work) = &mut self.work else {
            return Err("a worker steps after its `init`".into());
        };
        let copy = self.settings.copy.filter(|_| tries < self.settings.retries);
        let mut copied = None;
        let done = contain(|| {
            copied = copy.map(|copy| copy(&job));
            cause.clone().step(ctx, || work(job))
        });
        let again = |job, reply| {
            let entry = Entry {
                tries: tries + 1,
                since,
                number,
                rank,
                worker,
                cause: cause.clone(),
                ..Entry::new(job, reply)
            };
            self.queue.again(self.index, Box::new(entry));
        };
        let error = match (done, copied) {
            (Ok(Err(_)), Some(job)) if self.settings.retries_errors => {
                again(job, reply);
                return Ok(None);
            }
            (Ok(done), _) => return Ok(Some(Done(reply, done))),
            (Err(message), Some(job)) => {
                again(job, reply);
                message
            }
            (Err(message), None) => {
                self.queue.panicked(self.index);
                if let Some(reply) = reply {
                    reply.fail(PoolError::Panicked(message.as_str().into()));
                }
                message
            }
        };
        Err(format!("panicked with a job: {error}").into())
    }
}

impl<J: Send + 'static, A: Send + 'static> Process for Worker<J, A> {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        self.work = Some((self.settings.make)());
        self.queue.begin(self.index, ctx.pid(), ctx.waker())?;
        self.has_begun = true;
        Ok(())
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            if let Event::Completion(_) = event {
                self.is_armed = false;
                if self.queue.retire(self.index) {
                    self.has_begun = false;
                    out.done(());
                    return Ok(());
                }
            }
        }
        if ctx.is_cancelled() {
            return Ok(());
        }
        let mut done: Option<Done<A>> = None;
        for _ in 0..BATCH {
            let next = self.queue.take(self.index, done.is_some());
            if let Some(done) = done.take() {
                done.answer();
            }
            let Some(entry) = next else {
                if let Some(idle) = self.settings.idle_end(self.index)
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
            done = self.serve(ctx, *entry)?;
            if ctx.should_yield() || ctx.is_cancelled() {
                break;
            }
        }
        if let Some(done) = done {
            self.queue.served(self.index);
            done.answer();
        }
        out.step_again();
        Ok(())
    }

    fn close(&mut self) {
        self.leave();
    }
}

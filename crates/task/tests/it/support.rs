//! A scheduler, and tasks that the test steps by hand.

use ganger_proc_api::{
    BoxError, Context, Event, Events, ExitReason, Outcome, Payload, Payloads, Process, StepOutput,
    Tag,
};
use ganger_sched::{ProcessHandle, Scheduler};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;
use std::time::Duration;

/// The longest wait of a test for an event; then the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Counts how often it was woken.
#[derive(Default)]
pub(crate) struct Woken(pub(crate) AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        // Ordering: SeqCst: the task, or the test, waits for it.
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

pub(crate) fn start(workers: usize) -> Scheduler {
    let scheduler = Scheduler::builder().workers(workers).build().unwrap();
    scheduler.start().unwrap();
    scheduler
}

pub(crate) fn exit<M>(handle: ProcessHandle<M>) -> ExitReason {
    match handle.wait_timeout(PATIENCE) {
        Ok(reason) => reason,
        Err(handle) => panic!("{} has not ended", handle.pid()),
    }
}

#[track_caller]
pub(crate) fn number<M>(handle: ProcessHandle<M>) -> u64 {
    match exit(handle) {
        ExitReason::Done(it) => it.as_u64().unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Waits until it holds.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let begin = std::time::Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::yield_now();
    }
}

/// A task without a scheduler.
pub(crate) struct ByHand {
    process: Box<dyn Process>,
    ctx: Context,
    pub(crate) events: VecDeque<Event>,
}

/// The result of a step by hand.
#[derive(Debug)]
pub(crate) struct Stepped {
    pub(crate) outcome: Outcome,
    pub(crate) yields: Vec<Tag>,
    pub(crate) cancelled: Vec<Tag>,
}

impl ByHand {
    pub(crate) fn new(mut process: Box<dyn Process>) -> Self {
        let ctx = Context::detached("{test|1}".parse().unwrap());
        process.init(&ctx, "task", Payloads::new()).unwrap();
        Self {
            process,
            ctx,
            events: VecDeque::new(),
        }
    }

    pub(crate) fn step(&mut self) -> Result<Stepped, BoxError> {
        let mut out = StepOutput::new();
        let mut events = Events::new(&mut self.events);
        self.process.step(&self.ctx, &mut events, &mut out)?;
        Ok(Stepped {
            yields: out.yields().iter().map(|it| it.tag).collect(),
            cancelled: out.cancelled().to_vec(),
            outcome: out.take_outcome(),
        })
    }

    pub(crate) fn send<M: Send + 'static>(&mut self, message: M) {
        let message = ganger_proc_api::Message::of(message);
        self.events.push_back(Event::Message(message));
    }

    pub(crate) fn answer(&mut self, tag: Tag, result: impl Into<Payload>) {
        let completion = ganger_proc_api::Completion::new(tag, Ok(result.into()));
        self.events.push_back(Event::Completion(completion));
    }
}

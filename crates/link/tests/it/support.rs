//! Processes led by a test.

use ganger_proc_api::{
    Context, Event, Events, ExitCause, ExitNotice, ExitReason, Message, Payload, Pid, Process,
    StepOutput, StepResult, Tag,
};
use ganger_sched::{Handle, ProcessHandle, Scheduler};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a test waits for a certain event before it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// An act of a puppet.
type Act = Box<dyn FnOnce(&Context, &mut StepOutput) -> StepResult + Send>;

/// The notices of ends for a puppet.
pub(crate) type Told = Arc<Mutex<Vec<(Pid, Tag, ExitCause)>>>;

/// A process led by a test: it carries out the acts in its messages, and notes its notices.
pub(crate) struct Puppet {
    told: Told,
}

impl Process for Puppet {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            match event {
                Event::Exit(notice) => {
                    let ExitNotice {
                        pid, tag, cause, ..
                    } = *notice;
                    self.told.lock().unwrap().push((pid, tag, cause));
                }
                Event::Message(message) => {
                    let act = message.payloads.into_first().downcast::<Act>();
                    act.map_err(|_| "no act")?(ctx, out)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

pub(crate) struct Strings {
    pub(crate) handle: ProcessHandle,
    pub(crate) told: Told,
}

impl Strings {
    pub(crate) fn pid(&self) -> Pid {
        self.handle.pid()
    }

    /// Tells the puppet to act; returns `false` when the process has ended.
    pub(crate) fn tell(
        &self,
        act: impl FnOnce(&Context, &mut StepOutput) -> StepResult + Send + 'static,
    ) -> bool {
        let act: Act = Box::new(act);
        let message = Message::new("do", Payload::any(act));
        self.handle.send(message).is_ok()
    }

    /// Tells the puppet to act as `tell` does, and waits until the act is done.
    pub(crate) fn have(
        &self,
        act: impl FnOnce(&Context, &mut StepOutput) -> StepResult + Send + 'static,
    ) {
        let (done, is_done) = channel();
        assert!(self.tell(move |ctx, out| {
            act(ctx, out)?;
            Ok(done.send(())?)
        }));
        is_done.recv_timeout(PATIENCE).unwrap();
    }

    /// Takes the puppet's notices since the last call, in order.
    pub(crate) fn told(&self) -> Vec<(Pid, Tag, ExitCause)> {
        std::mem::take(&mut *self.told.lock().unwrap())
    }
}

pub(crate) fn puppet(scheduler: &Handle) -> Strings {
    let told = Told::default();
    let puppet = Puppet {
        told: Arc::clone(&told),
    };
    Strings {
        handle: scheduler.spawn(puppet).unwrap(),
        told,
    }
}

pub(crate) fn start(workers: usize) -> Scheduler {
    let scheduler = Scheduler::builder().workers(workers).build().unwrap();
    scheduler.start().unwrap();
    scheduler
}

pub(crate) fn exit<M>(handle: ProcessHandle<M>) -> ExitReason {
    let exit = handle.wait_timeout(PATIENCE);
    exit.unwrap_or_else(|handle| panic!("{handle:?} does not end"))
}

pub(crate) fn failed(text: &str) -> ExitCause {
    ExitCause::Failed(text.into())
}

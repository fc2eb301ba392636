//! The processes of the cases.

use super::{Ground, PATIENCE, Side};
use ganger_proc_api::{
    Context, Event, Events, ExitCause, Message, Payloads, Pid, Process, StepOutput, StepResult, Tag,
};
use ganger_sched::{ProcessHandle, Suspended};
use std::borrow::Borrow;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::Duration;

/// An event of a process.
#[derive(Debug)]
pub(super) enum Seen {
    Message(Message),
    Control(Message),
    Exit(Pid, Tag, ExitCause),
}

/// The acts of a process in a test.
type Act = Box<dyn FnOnce(&Context, &mut StepOutput) -> StepResult + Send>;

/// A process that shows its events to a test, and acts for the test.
struct Puppet {
    sees: Sender<Seen>,
}

impl Process for Puppet {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            match event {
                Event::Message(mut message) => {
                    let payloads = std::mem::take(&mut message.payloads);
                    match act(payloads) {
                        Ok(act) => act(ctx, out)?,
                        Err(payloads) => {
                            message.payloads = payloads;
                            drop(self.sees.send(Seen::Message(message)));
                        }
                    }
                }
                Event::Control(message) => drop(self.sees.send(Seen::Control(*message))),
                Event::Exit(notice) => {
                    let seen = Seen::Exit(notice.pid, notice.tag, notice.cause.clone());
                    drop(self.sees.send(seen));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn act(payloads: Payloads) -> Result<Act, Payloads> {
    match payloads.len() {
        1 => payloads
            .into_first()
            .downcast::<Act>()
            .map_err(Payloads::from),
        _ => Err(payloads),
    }
}

/// A puppet, and what it has seen.
pub(super) struct Strings<G> {
    pub(super) handle: ProcessHandle,
    seen: Receiver<Seen>,
    side: Side<G>,
}

/// An act that a puppet has begun.
#[must_use = "the act is awaited"]
pub(super) struct Begun<G>(Receiver<()>, G);

impl<G: Ground> Begun<G> {
    /// Waits until the puppet has acted.
    pub(super) fn wait(self) {
        let told = self.1.next(&self.0, PATIENCE);
        told.expect("the process has its turn");
    }
}

impl<G: Ground> Strings<G> {
    pub(super) fn start(scheduler: impl Borrow<Side<G>>) -> Self {
        let side = scheduler.borrow().clone();
        let (sees, seen) = channel();
        let handle = side.spawn(Puppet { sees });
        let handle = handle.expect("the process starts");
        Self { handle, seen, side }
    }

    pub(super) fn pid(&self) -> Pid {
        self.handle.pid()
    }

    /// Has the process do something.
    pub(super) fn act(
        &self,
        act: impl FnOnce(&Context, &mut StepOutput) -> StepResult + Send + 'static,
    ) {
        let act: Act = Box::new(act);
        let message = Message::new("act", ganger_proc_api::Payload::any(act));
        self.handle.send(message).expect("the process lives");
    }

    /// Has the process do something, while the case goes on.
    pub(super) fn begin(
        &self,
        act: impl FnOnce(&Context, &mut StepOutput) -> StepResult + Send + 'static,
    ) -> Begun<G> {
        let (tell, told) = channel();
        self.act(move |ctx, out| {
            let result = act(ctx, out);
            let _gone = tell.send(());
            result
        });
        Begun(told, self.side.ground)
    }

    /// Has the process do something, and waits until it has.
    pub(super) fn done(
        &self,
        act: impl FnOnce(&Context, &mut StepOutput) -> StepResult + Send + 'static,
    ) {
        self.begin(act).wait();
    }

    /// Has the process take nothing until [`go_on`](Self::go_on).
    pub(super) fn hold(&self) {
        self.side.ground.eventually("the process stands", || {
            let stands = self.side.suspend(self.pid());
            stands.expect("the process lives") == Suspended::Stands
        });
    }

    /// Has the process take the waiting messages.
    pub(super) fn go_on(&self) {
        let stood = self.side.resume(self.pid());
        assert!(stood.expect("the process lives"));
    }

    /// Returns the next event that the process has seen.
    pub(super) fn next(&self) -> Seen {
        let next = self.side.ground.next(&self.seen, PATIENCE);
        next.expect("something is seen")
    }

    pub(super) fn message(&self) -> Message {
        match self.next() {
            Seen::Message(message) => message,
            other => panic!("{other:?} is not a message"),
        }
    }

    pub(super) fn number(&self) -> u64 {
        let first = self.message().payloads.into_first();
        first.as_u64().expect("a number")
    }

    /// Returns the next number, unless nothing is seen for this time.
    pub(super) fn number_within(&self, time: Duration) -> Option<u64> {
        let seen = self.side.ground.next(&self.seen, time)?;
        match seen {
            Seen::Message(message) => message.payloads.into_first().as_u64(),
            other => panic!("{other:?} is not a message"),
        }
    }

    /// Returns the notices so far. Nothing else has been seen.
    pub(super) fn exits(&self) -> Vec<(Pid, Tag, ExitCause)> {
        let notice = |seen| match seen {
            Seen::Exit(pid, tag, cause) => (pid, tag, cause),
            other => panic!("{other:?} is not a notice"),
        };
        self.seen.try_iter().map(notice).collect()
    }

    pub(super) fn exit(&self) -> (Pid, Tag, ExitCause) {
        match self.next() {
            Seen::Exit(pid, tag, cause) => (pid, tag, cause),
            other => panic!("{other:?} is not a notice"),
        }
    }

    /// Returns whether nothing further has been seen.
    pub(super) fn is_quiet(&self) -> bool {
        matches!(self.seen.try_recv(), Err(TryRecvError::Empty))
    }

    /// Waits for the end of the process.
    pub(super) fn wait(self) -> ganger_proc_api::ExitReason {
        self.side.ground.end(self.handle)
    }
}

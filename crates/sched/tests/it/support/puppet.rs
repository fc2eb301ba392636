//! Processes led by a test, which get their notices from them.

use super::PATIENCE;
use ganger_proc_api::{
    Context, Event, Events, ExitCause, ExitNotice, Message, Payload, Pid, Process, StepOutput,
    StepResult, Tag,
};
use ganger_sched::{Handle, ProcessHandle};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A process led by a test: it does the test's acts, and passes its notices on.
pub(crate) struct Puppet {
    pub(crate) notices: Sender<ExitNotice>,
}

/// An act for a puppet.
pub(crate) type Act = Box<dyn FnOnce(&Context, &mut StepOutput) -> StepResult + Send>;

impl Process for Puppet {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            match event {
                Event::Exit(notice) => self.notices.send(*notice)?,
                Event::Message(message) => {
                    let act = message.payloads.into_first().downcast::<Act>();
                    act.map_err(|_| "no act")?(ctx, out)?;
                }
                Event::Cancel(_) => out.done(()),
                _ => {}
            }
        }
        Ok(())
    }
}

pub(crate) struct Strings {
    pub(crate) handle: ProcessHandle,
    pub(crate) notices: Receiver<ExitNotice>,
}

impl Strings {
    pub(crate) fn pid(&self) -> Pid {
        self.handle.pid()
    }

    pub(crate) fn tell(
        &self,
        act: impl FnOnce(&Context, &mut StepOutput) -> StepResult + Send + 'static,
    ) {
        let act: Act = Box::new(act);
        let payload = Payload::any(act);
        let message = Message::new("do", payload);
        self.handle.address().send(message).unwrap();
    }

    /// Tells the puppet to act as `tell` does, and waits until it is done.
    pub(crate) fn have(
        &self,
        act: impl FnOnce(&Context, &mut StepOutput) -> StepResult + Send + 'static,
    ) {
        let (done, is_done) = channel();
        self.tell(move |ctx, out| {
            act(ctx, out)?;
            Ok(done.send(())?)
        });
        is_done.recv_timeout(PATIENCE).unwrap();
    }

    pub(crate) fn monitor(&self, target: Pid, tag: Tag) {
        self.have(move |ctx, _| Ok(ctx.monitor(target, tag)?));
    }

    pub(crate) fn next(&self) -> (Pid, Tag, ExitCause) {
        let notice = self.notices.recv_timeout(PATIENCE).expect("a notice");
        (notice.pid, notice.tag, notice.cause)
    }

    /// Checks that no further notice comes, not even one under way: the notices of a process come
    /// in order.
    pub(crate) fn has_none_but(&self, last: Tag) {
        let nobody = Pid::new(self.pid().host(), 4_000_000_000);
        self.monitor(nobody, last);
        assert_eq!(self.next(), (nobody, last, ExitCause::NotFound));
        assert!(self.notices.try_recv().is_err());
    }
}

pub(crate) fn puppet(handle: &Handle) -> Strings {
    let (notices, received) = channel();
    let handle = handle.submit(Puppet { notices }, "main", ()).unwrap();
    Strings {
        handle,
        notices: received,
    }
}

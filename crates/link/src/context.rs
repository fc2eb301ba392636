//! What this crate adds to the context of a process.

use crate::links::Links;
use crate::target::{Target, TargetError};
use crate::watch::{self, Lane, Watch};
use ganger_proc_api::{Context, ExitCause, NotFound, Pid, Tag};
use ganger_sched::{Address, ContextExt, Handle, Spawner};

/// What this crate adds to [`Context`]: links, and monitors that can be taken back.
///
/// **Links.** Two processes that are linked end together: when one ends in another way than by
/// `done`, the other one ends as well, with the same cause, and so on along all links. A restart in
/// place breaks links in the same way. A process that [traps](Self::trap_exits) exits gets a notice
/// instead, also of an end by `done`. A link is gone when one of the two has ended. There is at
/// most one between two processes.
pub trait LinkContext {
    /// Begins to start a process that is linked to this one from its first moment on. If its
    /// `init` fails, the error says so, and there is no signal.
    fn linked(&self) -> Spawner<Context>;

    /// Links this process to another one. Does nothing when they are linked, or are the same.
    ///
    /// When no process has the PID, this process gets the signal that it would have got at the end
    /// of that one, with [`ExitCause::NotFound`].
    ///
    /// # Errors
    /// [`TargetError`] when no process of this scheduler is meant.
    fn link(&self, peer: impl Target) -> Result<(), TargetError>;

    /// Takes the link with another process away. After that, no end of either counts for the other
    /// one, also if its signal is under way, or its notice waits. Does nothing when they are not
    /// linked.
    ///
    /// # Errors
    /// [`TargetError`] when no process of this scheduler is meant.
    fn unlink(&self, peer: impl Target) -> Result<(), TargetError>;

    /// The processes that this one is linked to, in no order.
    fn links(&self) -> Vec<Pid>;

    /// From the next step on, signals come as [`Event::Exit`](ganger_proc_api::Event::Exit) with
    /// that tag, and end this process no more. It counts what is said when a signal arrives, which
    /// is between two steps.
    fn trap_exits(&self, tag: Tag);

    /// From the next step on, signals end this process again.
    fn end_trap(&self);

    /// Sends an exit signal with that cause, as a linked process does at its end. It ends the
    /// process, unless that traps exits, or the cause is [`ExitCause::Done`]. What can't be trapped
    /// is [`Context::terminate`].
    ///
    /// # Errors
    /// [`NotFound`] when no live process of the scheduler has that PID.
    fn exit(&self, target: Pid, cause: ExitCause) -> Result<(), NotFound>;

    /// Monitors another process: as [`Context::monitor`], with a monitor that can be taken back,
    /// and with a lane of choice.
    ///
    /// # Errors
    /// [`TargetError`] when no process of this scheduler is meant.
    fn watch(&self, target: impl Target, tag: Tag, lane: Lane) -> Result<Watch, TargetError>;
}

fn own(ctx: &Context) -> Option<(Handle, Address)> {
    Some((ctx.scheduler()?, ctx.untyped_address()?))
}

impl LinkContext for Context {
    fn linked(&self) -> Spawner<Context> {
        self.spawner().linked()
    }

    fn link(&self, peer: impl Target) -> Result<(), TargetError> {
        let (scheduler, process) = own(self).ok_or(TargetError::Detached)?;
        let peer = peer.pid_in(&scheduler)?;
        Links::of(&scheduler).link(&scheduler, &process, peer);
        Ok(())
    }

    fn unlink(&self, peer: impl Target) -> Result<(), TargetError> {
        let scheduler = self.scheduler().ok_or(TargetError::Detached)?;
        let peer = peer.pid_in(&scheduler)?;
        Links::of(&scheduler).unlink(self.pid(), peer);
        Ok(())
    }

    fn links(&self) -> Vec<Pid> {
        let scheduler = self.scheduler();
        scheduler.map_or_else(Vec::new, |it| Links::of(&it).peers(self.pid()))
    }

    fn trap_exits(&self, tag: Tag) {
        if let Some((scheduler, process)) = own(self) {
            Links::of(&scheduler).trap(&process, Some(tag));
        }
    }

    fn end_trap(&self) {
        if let Some((scheduler, process)) = own(self) {
            Links::of(&scheduler).trap(&process, None);
        }
    }

    fn exit(&self, target: Pid, cause: ExitCause) -> Result<(), NotFound> {
        let is_sent = self.scheduler().is_some_and(|scheduler| {
            let target = target.pid_in(&scheduler);
            target.is_ok_and(|it| Links::of(&scheduler).signal(it, self.pid(), None, cause))
        });
        if is_sent {
            Ok(())
        } else {
            Err(NotFound { pid: target })
        }
    }

    fn watch(&self, target: impl Target, tag: Tag, lane: Lane) -> Result<Watch, TargetError> {
        let (scheduler, watcher) = own(self).ok_or(TargetError::Detached)?;
        let target = target.pid_in(&scheduler)?;
        Ok(watch::begin(&scheduler, &watcher, target, tag, lane))
    }
}

/// What this crate adds to [`Spawner`].
pub trait LinkSpawner {
    /// The process that starts the other one is linked to it: see [`LinkContext::linked`].
    #[must_use]
    fn linked(self) -> Self;

    /// The process that starts the other one monitors it, in that lane.
    #[must_use]
    fn watched(self, tag: Tag, lane: Lane) -> Self;
}

impl LinkSpawner for Spawner<Context> {
    fn linked(self) -> Self {
        match own(self.context()) {
            None => self,
            Some((scheduler, parent)) => {
                let links = Links::of(&scheduler);
                self.before_init(move |child| {
                    if links.link_child(&parent, child) {
                        Ok(())
                    } else {
                        Err("the process to be linked to has ended".into())
                    }
                })
            }
        }
    }

    fn watched(self, tag: Tag, lane: Lane) -> Self {
        match self.context().untyped_address() {
            None => self,
            Some(watcher) => {
                self.before_init(move |child| Ok(watch::begin_with(watcher, child, tag, lane)?))
            }
        }
    }
}

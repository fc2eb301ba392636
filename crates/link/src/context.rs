//! The methods that this crate adds to the context of a process.

use crate::links::Links;
use crate::target::{Target, TargetError};
use crate::watch::{self, Lane, Watch};
use ganger_proc_api::{Context, ExitCause, NotFound, Pid, Tag};
use ganger_sched::{Address, ContextExt, Handle, Spawner};

/// The methods that this crate adds to [`Context`]: links, and monitors with a way back.
///
/// **Links.** Two linked processes end together: when either ends in another way than by `done`,
/// the other ends as well, with the same cause, and so on along all links. A restart in place
/// breaks links in the same way. A process that [traps](Self::trap_exits) exits gets a notice
/// instead, also of an end by `done`. A link is gone when either process has ended. Two processes
/// have at most one link.
pub trait LinkContext {
    /// Begins to start a process that is linked to this process from its first moment on. If its
    /// `init` fails, the caller gets the error, and no signal is sent.
    fn linked(&self) -> Spawner<Context>;

    /// Links this process to another process. Does nothing when they are linked, or are the same.
    ///
    /// When no process has the PID, this process gets the signal of an ended peer, with
    /// [`ExitCause::NotFound`].
    ///
    /// # Errors
    /// [`TargetError`] when no process is meant that this scheduler can reach.
    fn link(&self, peer: impl Target) -> Result<(), TargetError>;

    /// Takes the link with another process away. From then on, the end of either does not count for
    /// the other, even if its signal is under way, or its notice waits. Does nothing when they are
    /// not linked.
    ///
    /// # Errors
    /// [`TargetError`] when no process is meant that this scheduler can reach.
    fn unlink(&self, peer: impl Target) -> Result<(), TargetError>;

    /// Returns the processes linked to this process, in no order.
    fn links(&self) -> Vec<Pid>;

    /// Turns signals into [`Event::Exit`](ganger_proc_api::Event::Exit) with this tag, from the
    /// next step on; they do not end this process. The setting counts at the moment when a signal
    /// arrives, between two steps.
    fn trap_exits(&self, tag: Tag);

    /// Has signals end this process again, from the next step on.
    fn end_trap(&self);

    /// Sends an exit signal with this cause, as a linked process does at its end. The signal ends
    /// the target, unless the target traps exits, or the cause is [`ExitCause::Done`].
    /// [`Context::terminate`] ends a process that traps exits, too.
    ///
    /// # Errors
    /// [`NotFound`] when no live process of the scheduler has this PID, and for a process of
    /// another scheduler where nothing connects to it.
    fn exit(&self, target: Pid, cause: ExitCause) -> Result<(), NotFound>;

    /// Monitors another process: as [`Context::monitor`], with a monitor that the caller can take
    /// back, and with a lane of choice.
    ///
    /// # Errors
    /// [`TargetError`] when no process is meant that this scheduler can reach.
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

/// The methods that this crate adds to [`Spawner`].
pub trait LinkSpawner {
    /// Links the new process to the process that starts it: see [`LinkContext::linked`].
    #[must_use]
    fn linked(self) -> Self;

    /// Monitors the new process in this lane, for the process that starts it.
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

//! Links as commands: for processes with yields alone, such as interpreters. The commands of the
//! scheduler are in [`ganger_sched::commands`].
//!
//! ```
//! use ganger_link::commands::Link;
//! use ganger_proc_api::{BoxError, Event, ExitReason, process_fn};
//! use ganger_sched::Scheduler;
//!
//! let scheduler = Scheduler::start_default()?;
//! let other = scheduler.spawn(process_fn(|_, events, _| match events.next() {
//!     Some(Event::Message(_)) => Err("broken".into()),
//!     _ => Ok(()),
//! }))?;
//! let pid = other.pid();
//! let one = scheduler.spawn(process_fn(move |ctx, events, out| {
//!     match events.next() {
//!         None => _ = out.ask(Link(pid), 1),
//!         // They are linked.
//!         Some(_) => ctx.send(pid, "break", ())?,
//!     }
//!     Ok(())
//! }))?;
//! assert!(matches!(one.wait(), ExitReason::Exited(_)));
//! # Ok::<(), BoxError>(())
//! ```

use crate::links::Links;
use crate::target::Target;
use ganger_proc_api::{Command, Pid, TypedCommand};
use ganger_sched::internal::own_command;

/// Links the process to another process: see [`LinkContext::link`](crate::LinkContext::link). Its
/// error is a [`TargetError`](crate::TargetError). The id is 7.
#[derive(Debug, Clone, Copy)]
pub struct Link(
    /// This process.
    pub Pid,
);

/// Takes the link with another process away: see
/// [`LinkContext::unlink`](crate::LinkContext::unlink). Its error is a
/// [`TargetError`](crate::TargetError). The id is 8.
#[derive(Debug, Clone, Copy)]
pub struct Unlink(
    /// This process.
    pub Pid,
);

impl TypedCommand for Link {
    type Answer = ();

    fn into_command(self) -> Command {
        own_command(7, self, |Self(peer), scheduler, process| {
            let peer = peer.pid_in(scheduler)?;
            Links::of(scheduler).link(scheduler, process, peer);
            Ok(())
        })
    }
}

impl TypedCommand for Unlink {
    type Answer = ();

    fn into_command(self) -> Command {
        own_command(8, self, |Self(peer), scheduler, process| {
            let peer = peer.pid_in(scheduler)?;
            Links::of(scheduler).unlink(process.pid(), peer);
            Ok(())
        })
    }
}

//! The part of a link for ends: of a watched process, and of a session with open questions.

use super::Link;
use crate::node::calls::contained;
use crate::node::tables::{Open, Spawn};
use ganger_proc_api::{CommandError, ExitCause, Pid, Reply};
use ganger_sched::{ExitAction, Handle};

impl Link {
    /// Tells of the end of a watched process.
    pub(super) fn exited(&mut self, scheduler: &Handle, number: u64, cause: &ExitCause) {
        let watch = self.peer.look(|state| state.tables.watches.remove(number));
        if let Some((pid, action)) = watch {
            self.unlist(scheduler, pid);
            tell_exit(pid, action, cause);
        }
    }
}

/// Answers the open questions of a session that has ended.
pub(super) fn unanswered(names: Vec<Reply<Option<Pid>>>, spawns: Vec<Spawn>, open: Open) {
    let names = names.into_iter().map(Reply::untyped);
    let spawns = spawns.into_iter().map(|it| it.reply.untyped());
    let asked = open.asked.into_values().map(|it| it.completer);
    for completer in names.chain(spawns).chain(asked) {
        let no_connection = Err(CommandError::Ended(ExitCause::NoConnection));
        contained("an asker", || completer.finish(no_connection));
    }
    for far in open.answering.into_values() {
        contained("the holder of a reply", || far.give_up());
    }
}

/// Tells the watcher of an end. The watcher's code must not end the link.
pub(super) fn tell_exit(pid: Pid, mut action: Box<dyn ExitAction>, cause: &ExitCause) {
    contained("the watcher of a process", || {
        action.release(pid);
        action.tell(pid, cause);
    });
}

//! The end of an own process, for a watcher at a peer.

use super::peer::Peer;
use super::requests::Request;
use crate::id::Half;
use ganger_proc_api::{ExitCause, Pid};
use ganger_sched::{ExitAction, ExitKey, Handle};
use std::sync::Arc;

/// Tells the peer, if its session is still the one that has asked.
struct Foreign {
    peer: Arc<Peer>,
    half: Half,
    number: u64,
    in_order: bool,
}

/// The owner is kept alive by each action. A number is used once in a session, and the actions of
/// a session are taken back before the next has any.
fn key(peer: &Arc<Peer>, number: u64) -> ExitKey {
    ExitKey::new(Arc::as_ptr(peer).addr() as u64, number)
}

impl ExitAction for Foreign {
    fn tell(self: Box<Self>, process: Pid, cause: &ExitCause) {
        let forgotten = self.peer.look(|state| {
            let is_current = state.session().session() == Some(self.half);
            is_current && state.tables.watched.remove(&self.number).is_some()
        });
        if forgotten {
            let exit = Request::Exit {
                number: self.number,
                cause: cause.clone(),
                in_order: self.in_order,
                of: Some(process.with_node(None)),
            };
            self.peer.answer(self.half, exit);
        }
    }

    fn is_watch(&self) -> bool {
        true
    }

    fn key(&self) -> Option<ExitKey> {
        Some(key(&self.peer, self.number))
    }
}

/// The peer watches a process.
pub(crate) fn begin(
    peer: &Arc<Peer>,
    scheduler: &Handle,
    half: Half,
    (number, pid, in_order): (u64, Pid, bool),
) {
    let is_current = peer.look(|state| {
        let is_current = state.session().session() == Some(half);
        if is_current {
            state.tables.watched.insert(number, pid);
        }
        is_current
    });
    if !is_current {
        return;
    }
    let peer = Arc::clone(peer);
    let action = Box::new(Foreign {
        peer,
        half,
        number,
        in_order,
    });
    if !scheduler.is_local(pid) {
        return action.tell(pid, &ExitCause::NotFound);
    }
    if let Err(gone) = scheduler.add_exit_action(pid, action) {
        gone.into_action().tell(pid, &ExitCause::NotFound);
    }
}

/// The peer watches it no more.
pub(crate) fn end(peer: &Arc<Peer>, scheduler: &Handle, number: u64) {
    let pid = peer.look(|state| state.tables.watched.remove(&number));
    if let Some(pid) = pid {
        scheduler.remove_exit_actions(pid, key(peer, number));
    }
}

/// The session of these watches has ended.
pub(crate) fn forget(
    peer: &Arc<Peer>,
    scheduler: &Handle,
    watched: impl IntoIterator<Item = (u64, Pid)>,
) {
    for (number, pid) in watched {
        scheduler.remove_exit_actions(pid, key(peer, number));
    }
}

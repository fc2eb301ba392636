//! The end of an own process, for a watcher at a peer.

use super::peer::Peer;
use super::requests::Request;
use crate::id::Half;
use crate::wire::ReadError;
use ganger_proc_api::{ExitCause, Pid};
use ganger_sched::{ExitAction, ExitKey, Handle};
use std::sync::Arc;

/// Tells the peer, if the asking session still lasts.
struct Foreign {
    peer: Arc<Peer>,
    half: Half,
    number: u64,
    in_order: bool,
    /// Of a process whose start has not been answered, perhaps.
    of_start: bool,
}

/// Returns the key of an exit action, with the address of the peer, which each action keeps alive.
/// A number is used once in a session, and the actions of a session are taken back before the next
/// has any.
fn key(peer: &Arc<Peer>, number: u64) -> ExitKey {
    ExitKey::new(Arc::as_ptr(peer).addr() as u64, number)
}

impl ExitAction for Foreign {
    fn tell(self: Box<Self>, process: Pid, cause: &ExitCause) {
        let forgotten = self.peer.look(|state| {
            if state.session().session() != Some(self.half) {
                return false;
            }
            let was_watched = state.tables.watched.remove(&self.number).is_some();
            if !was_watched && self.of_start {
                // The answer to the start comes first.
                state.tables.early.insert(self.number, cause.clone());
            }
            was_watched
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

    fn not_started(self: Box<Self>, process: Pid, cause: &ExitCause) {
        // The answer says so.
        if !self.of_start {
            self.tell(process, cause);
        }
    }

    fn is_watch(&self) -> bool {
        true
    }

    fn key(&self) -> Option<ExitKey> {
        Some(key(&self.peer, self.number))
    }
}

/// Begins a watch by the peer. An error: the peer watches too many processes, or by a number in
/// use.
pub(crate) fn begin(
    peer: &Arc<Peer>,
    scheduler: &Handle,
    half: Half,
    (number, pid, in_order): (u64, Pid, bool),
) -> Result<(), ReadError> {
    let is_current = peer.look(|state| {
        if state.session().session() != Some(half) {
            return Ok(false);
        }
        if !state.tables.may_watch() {
            return Err(ReadError::Short);
        }
        // Each monitor is an action of its process, and the table bounds both.
        if state.tables.watched.contains_key(&number) {
            return Err(ReadError::Symbol);
        }
        state.tables.watched.insert(number, pid);
        Ok(true)
    })?;
    if !is_current {
        return Ok(());
    }
    let peer = Arc::clone(peer);
    let action = Box::new(Foreign {
        peer,
        half,
        number,
        in_order,
        of_start: false,
    });
    if !scheduler.is_local(pid) {
        action.tell(pid, &ExitCause::NotFound);
    } else if let Err(gone) = scheduler.add_exit_action(pid, action) {
        gone.into_action().tell(pid, &ExitCause::NotFound);
    }
    Ok(())
}

/// Returns the action of a process that is started for the peer, with a monitor of this number.
pub(crate) fn of_start(peer: &Arc<Peer>, half: Half, number: u64) -> Box<dyn ExitAction> {
    Box::new(Foreign {
        peer: Arc::clone(peer),
        half,
        number,
        in_order: false,
        of_start: true,
    })
}

/// Notes that the start has been answered: its monitor is as any from now on.
pub(crate) fn started(peer: &Arc<Peer>, half: Half, number: u64, pid: Pid) {
    let early = peer.look(|state| {
        if state.session().session() != Some(half) {
            return None;
        }
        let early = state.tables.early.remove(&number);
        if early.is_none() {
            state.tables.watched.insert(number, pid);
        }
        early
    });
    if let Some(cause) = early {
        let exit = Request::Exit {
            number,
            cause,
            in_order: false,
            of: None,
        };
        peer.answer(half, exit);
    }
}

/// Ends the peer's watch of a process.
pub(crate) fn end(peer: &Arc<Peer>, scheduler: &Handle, number: u64) {
    let pid = peer.look(|state| state.tables.watched.remove(&number));
    if let Some(pid) = pid {
        scheduler.remove_exit_actions(pid, key(peer, number));
    }
}

/// Forgets watches whose session has ended.
pub(crate) fn forget(
    peer: &Arc<Peer>,
    scheduler: &Handle,
    watched: impl IntoIterator<Item = (u64, Pid)>,
) {
    for (number, pid) in watched {
        scheduler.remove_exit_actions(pid, key(peer, number));
    }
}

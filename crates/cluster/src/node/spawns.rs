//! Processes that a node starts for others, by the name of their kind: the asking side.
//!
//! **Protocol.** The asking node sends the kind, the names, the input and the first message in a
//! single request, and with a monitor its number.
//! 1. *Far side* (`starts.rs`): an exit action is there before the process begins. The end of the
//!    process may come before the far side has answered: then its cause waits, so that the answer
//!    is first.
//! 2. *Far side*: answers with the PID, or with the error, and from then on the monitor is as any.
//! 3. *Asking side*: keeps the watcher beside the question, and has it among the monitors when the
//!    PID is there. Without an answer the question says `NoConnection`: the process may run.

use super::calls;
use super::causes::write_text;
use super::core::Core;
use super::requests::Request;
use super::values;
use crate::wire::{Apart, Fields as _};
use ganger_proc_api::{
    BoxError, ExitCause, ExitNotice, NodeName, Payload, Payloads, Pid, Reply, Tag,
};
use ganger_sched::{Address, Call, ExitAction, SystemEvent};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A process to be started at another node: see [`Cluster::spawn_on`](crate::Cluster::spawn_on).
#[must_use = "nothing is started until the call is asked"]
pub struct FarSpawn {
    core: Arc<Core>,
    node: NodeName,
    kind: Arc<str>,
    names: Vec<Box<str>>,
    input: Payload,
    first: Option<Payload>,
    watcher: Option<Box<dyn ExitAction>>,
}

impl FarSpawn {
    pub(crate) fn new(core: Arc<Core>, node: NodeName, kind: &str, input: Payload) -> Self {
        Self {
            core,
            node,
            kind: kind.into(),
            names: Vec::new(),
            input,
            first: None,
            watcher: None,
        }
    }

    /// Gives the process a name at its node. Several calls give it several, at most 16.
    pub fn named(mut self, name: impl Into<Box<str>>) -> Self {
        self.names.push(name.into());
        self
    }

    /// Puts a message into the mailbox before any other.
    pub fn with_message<M: Any + Send>(self, message: M) -> Self {
        Self {
            first: Some(Payload::any(message)),
            ..self
        }
    }

    /// Has a process monitor the new process, from its first moment on.
    pub fn monitored_by<M>(self, watcher: &Address<M>, tag: Tag) -> Self {
        let watcher = watcher.untyped().clone();
        Self {
            watcher: Some(Box::new(Tells { watcher, tag })),
            ..self
        }
    }

    /// The question that starts it. The answer is its PID. An error says why nothing was started;
    /// but `Ended(NoConnection)` says that the answer is lost, and the process may run.
    pub fn call(self) -> Call<Pid> {
        Call::by(move |reply| self.ask(reply))
    }

    fn ask(self, reply: Reply<Pid>) -> Result<(), BoxError> {
        let no_node =
            || BoxError::from(format!("there is no connection to the node {}", self.node));
        let peer = self.core.reach(self.node).ok_or_else(no_node)?;
        let scheduler = self.core.base.scheduler.upgrade().ok_or_else(no_node)?;
        let mut values = Payloads::from(self.input);
        values.extend(self.first);
        let (encoded, replies) = calls::encode(&peer, &scheduler, values);
        let (encoded, values) = encoded.map_err(|(why, _)| why)?;
        let mut body = Apart::default();
        write_text(&mut body, &self.kind);
        body.varint(self.names.len() as u64);
        for name in &self.names {
            write_text(&mut body, name);
        }
        values::write_values(&mut body, peer.places, &values, &encoded);
        let body = body.finish();
        let watcher = self.watcher;
        // A refused reply is dropped without the lock: its asker may be at this peer.
        let mut reply = Some(reply);
        let sent = peer.with(|state, now| {
            if state.is_closed() {
                return None;
            }
            let reply = reply.take()?;
            let watch = watcher.as_ref().map(|_| state.tables.watches.reserve());
            let number = state.tables.spawns.insert((reply, watch.zip(watcher)));
            let spawn = Request::Spawn {
                number,
                watch,
                body,
            };
            let taken = replies.map(|replies| {
                let (completers, taken) = replies.take();
                (calls::ask(&peer, &mut state.tables.open, completers), taken)
            });
            state.request(spawn, peer.places, now);
            Some(taken)
        });
        if let Some((unwanted, taken)) = sent.ok_or_else(no_node)? {
            taken.drop_message(values);
            calls::take_back_all(&peer, unwanted);
        }
        Ok(())
    }
}

impl fmt::Debug for FarSpawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FarSpawn")
            .field("node", &self.node)
            .field("kind", &self.kind)
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

/// Tells the watcher of a process that another node has started.
struct Tells {
    watcher: Address,
    tag: Tag,
}

impl ExitAction for Tells {
    fn tell(self: Box<Self>, process: Pid, cause: &ExitCause) {
        let notice = ExitNotice::new(process, self.tag, cause.clone());
        let _gone = self.watcher.send_system(SystemEvent::Exit(notice));
    }

    fn is_watch(&self) -> bool {
        true
    }
}

//! Processes that a node starts for other nodes, by the name of their kind: the asking side.
//!
//! **Protocol.** The asking node sends the kind, the names, the input and the first message in a
//! single request, and with a monitor or a link its number.
//! 1. *Far side* (`starts.rs`): an exit action is there before the process begins. The end of the
//!    process may come before the far side has answered: then its cause waits, so that the answer
//!    is first.
//! 2. *Far side*: answers with the PID, or with the error, and from then on the monitor is as any.
//!    A link is there as well, and its signal waits for the answer (`far_links.rs`).
//! 3. *Asking side*: keeps the watcher beside the question, and has it among the monitors when the
//!    PID is there. Without an answer the question says `NoConnection`: the process may run.

use super::askers::Asker;
use super::calls;
use super::causes::{MAX_TEXT, write_text};
use super::core::Core;
use super::far_links;
use super::inherited;
use super::not_asked::NotAsked;
use super::requests::Request;
use super::starts::MAX_NAMES;
use super::tables::Spawn;
use super::values;
use crate::wire::{Apart, Fields as _};
use ganger_proc_api::{
    BoxError, ExitCause, ExitNotice, NodeName, Payload, Payloads, Pid, Reply, Tag,
};
use ganger_sched::crossing::Inherited;
use ganger_sched::{Address, Call, ExitAction, SystemEvent};
use std::any::{Any, type_name};
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
    watcher: Option<Tells>,
    linked: Option<Address>,
    /// With the names of their types.
    inherited: Vec<(&'static str, Arc<dyn Any + Send + Sync>)>,
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
            linked: None,
            inherited: Vec::new(),
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

    /// Has a process of this node monitor the new process, from its first moment on. The call
    /// fails for a process of another node, which may monitor the PID instead.
    pub fn monitored_by<M>(self, watcher: &Address<M>, tag: Tag) -> Self {
        let watcher = watcher.untyped().clone();
        Self {
            watcher: Some(Tells { watcher, tag }),
            ..self
        }
    }

    /// Links the new process, from its first moment on, to a process of this node: mostly the one
    /// that asks. Both end together, as after
    /// [`LinkContext::link`](ganger_link::LinkContext::link). An end of either before the answer
    /// counts as well. Of a process that was not started the answer alone tells, and no signal. The
    /// end of the connection ends the new process also where the answer is lost.
    ///
    /// The call fails for a process of another node.
    pub fn linked<M>(self, process: &Address<M>) -> Self {
        Self {
            linked: Some(process.untyped().clone()),
            ..self
        }
    }

    /// Sets a value that the process and its children inherit, in the place of the asker's value of
    /// the same type. The type must cross: see [`Types::inherit`](crate::Types::inherit).
    pub fn with_inherited<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.inherited.push((type_name::<T>(), Arc::new(value)));
        self
    }

    /// Returns the question that starts the process. The process inherits the values of the asking
    /// process whose types cross. The answer is its PID. An error says why nothing was started; but
    /// `Ended(NoConnection)` says that the answer is lost, and the process may run.
    pub fn call(self) -> Call<Pid> {
        Call::by(move |reply| self.ask(reply))
    }

    fn ask(self, reply: Reply<Pid>) -> Result<(), BoxError> {
        let node = self.node;
        let no_node = || NotAsked::no_connection(node);
        let peer = self.core.reach(node).ok_or_else(no_node)?;
        let scheduler = self.core.base.scheduler.upgrade().ok_or_else(no_node)?;
        let mut values = Payloads::from(self.input);
        values.extend(self.first);
        let (encoded, replies) = calls::encode(&peer, &scheduler, &mut values)?;
        let watcher = self.watcher.as_ref().map(|it| &it.watcher);
        for process in watcher.into_iter().chain(&self.linked) {
            let pid = process.pid();
            if !scheduler.is_local(pid) {
                let text = "is of another node, and can't be told from here: have it monitor the \
                            PID of the new process";
                return Err(format!("{pid} {text}").into());
            }
        }
        if self.names.len() > MAX_NAMES {
            return Err(format!("a process has at most {MAX_NAMES} names").into());
        }
        let lengths = self.names.iter().map(|name| name.len());
        if lengths.chain([self.kind.len()]).any(|it| it > MAX_TEXT) {
            return Err(format!("a kind or a name has at most {MAX_TEXT} bytes").into());
        }
        let link = self.linked.map(|it| Asker::new(&scheduler, &it));
        let link = link.transpose()?;
        let mut body = Apart::default();
        write_text(&mut body, &self.kind);
        body.varint(self.names.len() as u64);
        for name in &self.names {
            write_text(&mut body, name);
        }
        far_links::write(&mut body, peer.places, link.as_ref());
        let types = &peer.base.types;
        let mut inherits = Inherited::here(&scheduler);
        for (name, value) in self.inherited {
            if !types.inherits(&*value) {
                return Err(
                    format!("{name} crosses to no node: register it to be inherited").into(),
                );
            }
            inherits = inherits.with(value);
        }
        inherited::write(&mut body, types, &inherits)?;
        values::write_values(&mut body, peer.places, &values, &encoded);
        let body = body.finish();
        let watcher = self.watcher.map(|it| Box::new(it) as Box<dyn ExitAction>);
        // A refused reply is dropped without the lock: its asker may be at this peer.
        let mut reply = Some(reply);
        let sent = peer.with(|state, now| {
            if state.is_closed() {
                return Err(no_node());
            }
            let questions = replies.as_ref().map_or(0, |it| it.numbers().count());
            if !state.has_room_for(body.len()) || !state.tables.may_ask(1 + questions) {
                return Err(NotAsked::full(node));
            }
            let reply = reply.take().ok_or_else(no_node)?;
            let watch = watcher.as_ref().map(|_| state.tables.watches.reserve());
            let number = state.tables.spawns.insert(Spawn {
                reply,
                watch: watch.zip(watcher),
                link,
            });
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
            Ok(taken)
        });
        if let Some((unwanted, taken)) = sent? {
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

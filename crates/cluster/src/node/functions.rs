//! Functions that a node offers by their names, called from another node: the asking side.
//!
//! **Protocol.** A call is a message on the data lane, so that its asker's messages keep their
//! order around it, and a full queue refuses it. Its reply has a number, as those in messages do
//! (`calls.rs`).
//! 1. *Asking side*: the completer is in the table before the call leaves. A deadline and a call
//!    that is taken back are the same here: the other side is told.
//! 2. *Answering side* (`served.rs`): looks the name up in the functions of the scheduler. The
//!    function runs in the process that reads for the peer, with the asker's inherited values.
//!
//! A call whose asker has left before is not carried out.

use super::calls;
use super::causes::{MAX_TEXT, write_text};
use super::cluster::Cluster;
use super::core::Core;
use super::inherited;
use super::not_asked::NotAsked;
use super::requests::op;
use super::types::EncodeError;
use super::values;
use crate::id::Lane;
use crate::wire::{Apart, Fields as _};
use ganger_link::Services;
use ganger_proc_api::{BoxError, NodeName, Payload, Payloads, Pid, Reply, SendErrorKind, TypeName};
use ganger_sched::crossing::{Inherited, Outgoing as _};
use ganger_sched::{Address, Call, Handle};
use std::any::Any;
use std::sync::Arc;
use thiserror::Error;

/// Where a function is called: a node, or the node of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place(Option<NodeName>);

impl From<NodeName> for Place {
    fn from(node: NodeName) -> Self {
        Self(Some(node))
    }
}

/// A PID without a node is of the caller's own.
impl From<Pid> for Place {
    fn from(pid: Pid) -> Self {
        Self(pid.node())
    }
}

impl<M> From<&Address<M>> for Place {
    fn from(address: &Address<M>) -> Self {
        address.pid().into()
    }
}

/// A function of another node is not called: the call does not leave its node.
///
/// The error inside of [`CommandError::Failed`](ganger_proc_api::CommandError::Failed).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("can't call a function of the node {node}: {kind}")]
#[non_exhaustive]
pub struct FunctionRefused {
    /// The other node.
    pub node: NodeName,
    /// Why the call is refused: `Full` when too much waits for the node, `NoCodec` for an input of
    /// a type that is not registered.
    pub kind: SendErrorKind,
}

impl Cluster {
    /// Returns a call of the function that a node offers by this name: see
    /// [`Services`](ganger_link::Services), whose functions are for all nodes. Ask the call as any
    /// other, with a deadline or without.
    ///
    /// The other node looks for the function when the call arrives, in the order of the asker's
    /// messages. So an unknown name and wrong types are `CommandError::Failed`, and the end of
    /// the connection is `Ended(NoConnection)`. A caller that leaves, or takes the call back, shows
    /// there in [`Reply::is_cancelled`]. Both types need a codec.
    ///
    /// ```no_run
    /// # use ganger_cluster::Cluster;
    /// # use ganger_proc_api::{BoxError, NodeName};
    /// # use std::time::Duration;
    /// # fn double(node: &Cluster) -> Result<(), BoxError> {
    /// let beta = NodeName::new("beta")?;
    /// let double = node.call_on::<u64, u64>(beta, "double", 21);
    /// assert_eq!(double.wait_timeout(Duration::from_secs(1))?, 42);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "a call asks when a step, a task or a thread takes it"]
    pub fn call_on<I, O>(&self, place: impl Into<Place>, name: &str, input: I) -> Call<O>
    where
        I: Any + Send,
        O: Any + Send,
    {
        let core = Arc::clone(&self.core);
        let (place, name) = (place.into(), Arc::<str>::from(name));
        Call::by(move |reply: Reply<O>| {
            let scheduler = core
                .base
                .scheduler
                .upgrade()
                .ok_or("the scheduler has gone")?;
            match place.0.filter(|node| *node != core.base.node) {
                Some(node) => ask(&core, &scheduler, node, (&name, Payload::of(input)), reply),
                None => {
                    let call = Services::of(&scheduler).call::<I, O>(&name, input);
                    call.map_err(|error| error.to_string())?.pass_on(reply)
                }
            }
        })
    }
}

fn ask<O: Any + Send>(
    core: &Arc<Core>,
    scheduler: &Handle,
    node: NodeName,
    (name, input): (&str, Payload),
    reply: Reply<O>,
) -> Result<(), BoxError> {
    let refused = |kind| FunctionRefused { node, kind };
    if name.len() > MAX_TEXT {
        return Err(format!("the name of a function has at most {MAX_TEXT} bytes").into());
    }
    let peer = core
        .reach(node)
        .ok_or_else(|| NotAsked::no_connection(node))?;
    let mut values = Payloads::from(input);
    let encoded = calls::encode(&peer, scheduler, &mut values);
    let (encoded, replies) = encoded.map_err(|why| {
        refused(match why {
            EncodeError::NoCodec(name) => SendErrorKind::NoCodec(TypeName::new(name)),
            EncodeError::TooLarge => SendErrorKind::TooLarge,
        })
    })?;
    let number = peer.asking.reply().ok_or("too many questions are open")?;
    let asker = reply.pid();
    let mut body = Apart::default();
    write_text(&mut body, name);
    body.varint(number);
    body.u8(u8::from(asker.is_some()));
    if let Some(asker) = asker {
        peer.places.write(&mut body, asker);
    }
    inherited::write(&mut body, &core.base.types, &Inherited::here(scheduler))?;
    values::write_values(&mut body, peer.places, &values, &encoded);
    let body = body.finish();
    // A refused reply is dropped without the lock: its asker may be at this peer.
    let mut reply = Some(reply);
    let sent = peer.with(|state, now| {
        let questions = replies.as_ref().map_or(1, |it| 1 + it.numbers().count());
        if !state.tables.may_ask(questions) {
            return Err(SendErrorKind::Full);
        }
        let key = peer.places.key(asker);
        state.accept_written(Lane::Data, key, op::CALL, body, now)?;
        let (mut completers, taken) = match replies {
            Some(replies) => {
                let (completers, taken) = replies.take();
                (completers, Some(taken))
            }
            None => (Vec::new(), None),
        };
        completers.extend(reply.take().map(|reply| (number, reply.untyped())));
        Ok((calls::ask(&peer, &mut state.tables.open, completers), taken))
    });
    let (unwanted, taken) = sent.map_err(refused)?;
    if let Some(taken) = taken {
        taken.drop_message(values);
    }
    calls::take_back_all(&peer, unwanted);
    Ok(())
}

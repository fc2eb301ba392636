//! Processes that a node starts for others: the side that starts (`spawns.rs` has the protocol).

use super::calls::Answering;
use super::causes::read_text;
use super::peer::Peer;
use super::requests::Request;
use super::values::Decoder;
use super::watch;
use crate::wire::{Known, ReadError, Reader};
use bytes::Bytes;
use ganger_proc_api::{BoxError, Message, Payload};
use ganger_sched::Handle;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The most names of a process.
const MAX_NAMES: u64 = 16;

/// Starts a process for the peer, and answers.
pub(crate) fn start(
    peer: &Arc<Peer>,
    scheduler: &Handle,
    (answering, decoder): (&Answering, &Decoder),
    (number, watch, body): (u64, Option<u64>, Bytes),
) -> Result<(), ReadError> {
    let half = answering.half();
    let mut reader = Reader::new(body);
    let mut known = Known::default();
    let kind = read_text(&mut reader)?;
    let mut spawner = scheduler.spawner();
    let names = reader.varint()?;
    if names > MAX_NAMES {
        return Err(ReadError::Short);
    }
    for _ in 0..names {
        spawner = spawner.named(&*read_text(&mut reader)?);
    }
    let (values, replies) = decoder.values(&mut reader, &mut known, &peer.base.types)?;
    let _come = answering.settle(replies);
    let mut values = values.into_iter();
    let input = values.next().unwrap_or(Payload::UNIT);
    if let Some(first) = values.next() {
        spawner = spawner.with_message(Message::new("", first));
    }
    if let Some(watch) = watch {
        let action = watch::of_start(peer, half, watch);
        spawner = spawner.before_init(move |process| {
            let added = process.add_exit_action(action);
            added.map_err(|error| BoxError::from(error.to_string()))
        });
    }
    let started = match peer.base.kinds.get(&kind) {
        None => Err(format!("the node offers no kind {kind:?}").into()),
        Some(make) => catch_unwind(AssertUnwindSafe(|| make(spawner, input)))
            .unwrap_or_else(|_| Err("the start of the process has panicked".into())),
    };
    let result = started.map_err(|error| Arc::from(error.to_string()));
    let pid = result.as_ref().ok().copied();
    peer.answer(half, Request::Spawned { number, result });
    if let (Some(watch), Some(pid)) = (watch, pid) {
        watch::started(peer, half, watch, pid);
    }
    Ok(())
}

//! A message for many processes of a peer: it crosses once, with the list of its targets.

use super::calls;
use super::peer::Peer;
use super::requests::op;
use super::values::{self, Decoder};
use crate::id::Lane;
use crate::wire::{Apart, Fields as _, Known, ReadError, Reader};
use bytes::Bytes;
use ganger_link::carrier::MAX_TARGETS;
use ganger_proc_api::{MAX_SYMBOL_BYTES, Message, Pid, SendErrorKind, TypeName};
use ganger_sched::Handle;
use std::sync::Arc;

/// Sends a message to processes of the peer.
pub(crate) fn send(
    peer: &Arc<Peer>,
    scheduler: &Handle,
    targets: &[Pid],
    mut message: Message,
) -> Result<(), SendErrorKind> {
    if message.topic.len() > MAX_SYMBOL_BYTES {
        return Err(SendErrorKind::TooLarge);
    }
    let (encoded, replies) = calls::encode(peer, scheduler, &mut message.payloads)?;
    if replies.is_some() {
        // A question has a single target.
        return Err(SendErrorKind::NoCodec(TypeName::new("Reply")));
    }
    let mut apart = Apart::default();
    apart.varint(targets.len() as u64);
    for target in targets {
        peer.places.write(&mut apart, *target);
    }
    values::write_message(&mut apart, peer.places, &message, &encoded);
    let bytes = apart.finish();
    peer.with(|state, now| state.accept_written(Lane::Data, None, op::MULTI, bytes, now))
}

/// Reads the targets. Returns the rest, too, which each of them gets.
pub(crate) fn read(decoder: &Decoder, mut reader: Reader) -> Result<(Vec<Pid>, Bytes), ReadError> {
    let count = reader.varint()?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count > MAX_TARGETS {
        return Err(ReadError::Short);
    }
    let mut known = Known::default();
    let mut targets = Vec::new();
    for _ in 0..count {
        targets.push(decoder.places.read(&mut reader, &mut known)?);
    }
    Ok((targets, reader.rest()))
}

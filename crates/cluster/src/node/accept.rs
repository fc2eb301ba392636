//! The messages of processes to a peer, as the session takes them.
//!
//! A message that fits a frame goes into the session. A longer one, and each behind such a message
//! of the same source, leaves in chunks.

use super::peer::State;
use super::places::Places;
use super::requests::op;
use super::types::MAX_MESSAGE;
use super::values::{self, Encoded};
use super::waiting;
use crate::id::Lane;
use crate::session::SendError;
use crate::wire::Apart;
use bytes::Bytes;
use ganger_proc_api::{Envelope, Instant, Pid, SendErrorKind};
use std::task::Waker;

impl State {
    /// Takes a message of a process.
    pub(crate) fn accept(
        &mut self,
        lane: Lane,
        envelope: &Envelope,
        encoded: &Encoded<'_>,
        places: Places,
        now: Instant,
    ) -> Result<(), SendErrorKind> {
        self.may_take(lane)?;
        let key = places.key(envelope.message.source);
        if !self.streams[lane.index()].has(key) {
            let sent = self.put(lane, op::MESSAGE, now, |writer| {
                values::write(writer, places, envelope, encoded);
            });
            match sent {
                Ok(()) => return Ok(()),
                Err(SendError::TooLarge { .. }) => {}
                Err(_) => return Err(SendErrorKind::Full),
            }
        }
        let mut apart = Apart::default();
        values::write(&mut apart, places, envelope, encoded);
        self.stream(lane, key, op::MESSAGE, apart.finish())
    }

    /// Takes a message of a process, as bytes without symbols. `key` is its source.
    pub(crate) fn accept_written(
        &mut self,
        lane: Lane,
        key: Option<Pid>,
        op: u8,
        bytes: Bytes,
        now: Instant,
    ) -> Result<(), SendErrorKind> {
        self.may_take(lane)?;
        if !self.streams[lane.index()].has(key) {
            match self.put(lane, op, now, |writer| writer.raw(&bytes)) {
                Ok(()) => return Ok(()),
                Err(SendError::TooLarge { .. }) => {}
                Err(_) => return Err(SendErrorKind::Full),
            }
        }
        self.stream(lane, key, op, bytes)
    }

    fn may_take(&self, lane: Lane) -> Result<(), SendErrorKind> {
        match self.has_room(lane) {
            _ if self.is_closed() => Err(SendErrorKind::NoConnection),
            true => Ok(()),
            false => {
                waiting::refused(0);
                Err(SendErrorKind::Full)
            }
        }
    }

    /// Takes a large message, or a message behind a large one, into the streams, and not into the
    /// session's queue.
    fn stream(
        &mut self,
        lane: Lane,
        key: Option<Pid>,
        op: u8,
        bytes: Bytes,
    ) -> Result<(), SendErrorKind> {
        if bytes.len() >= MAX_MESSAGE {
            return Err(SendErrorKind::TooLarge);
        }
        let streams = &mut self.streams[lane.index()];
        if !streams.has_room_for(bytes.len(), MAX_MESSAGE) {
            waiting::refused(bytes.len());
            return Err(SendErrorKind::Full);
        }
        streams.push(key, op, bytes);
        Ok(())
    }

    /// Returns whether a waiting sender may try again, whose message of this length was refused
    /// beside the queue.
    pub(super) fn has_room_beside(&self, wanted: usize) -> bool {
        let streams = &self.streams[Lane::Data.index()];
        self.has_room(Lane::Data) && streams.has_room_for(wanted, MAX_MESSAGE)
    }

    pub(super) fn next_waiting(&mut self) -> Option<Waker> {
        let mut waiting = std::mem::take(&mut self.waiting);
        let waker = waiting.take(|wanted| self.has_room_beside(wanted));
        self.waiting = waiting;
        waker
    }

    /// Returns the number of senders that wait for room.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

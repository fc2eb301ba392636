//! Sends of many messages to a process.
//!
//! **Problem.** A send is a read-modify-write on a word shared by a process's senders and its
//! runner. A sender with a thousand messages fetches the word's cache line a thousand times.
//!
//! **Protocol.** The sender links messages in nodes of its own, and puts them in by a single push,
//! [`MOST`] at a time. So the process begins with the first, on another worker, while the sender
//! makes later messages. With a limit of the mailbox a single read-modify-write takes the free
//! places beforehand.

use crate::runtime::cell::ProcessCell;
use crate::runtime::cell::Task;
use crate::runtime::item::{self, Item};
use ganger_mpsc::Batch;
use ganger_proc_api::{Event, Message, Pid, SendErrorKind};

/// How many messages are put in at a time.
const MOST: usize = 128;

/// Not all messages of a [`send_all`](crate::Address::send_all) were taken. The remaining messages
/// are inside: nothing is lost.
#[derive(Debug, thiserror::Error)]
#[error("can't send {} more messages to {target} after {sent}: {kind}", messages.len())]
#[non_exhaustive]
pub struct SendAllError {
    /// Why they were not taken.
    pub kind: SendErrorKind,
    /// The process.
    pub target: Pid,
    /// How many messages before these have been sent.
    pub sent: usize,
    /// The messages not sent, in order.
    pub messages: Vec<Message>,
}

/// Sends messages, in order: see [`Address::send_all`](crate::Address::send_all).
pub(crate) fn send_all(
    task: &Task,
    messages: impl IntoIterator<Item = Message>,
) -> Result<(), SendAllError> {
    let mut messages = messages.into_iter().fuse();
    let mut sent = 0;
    loop {
        let mut lot = Batch::new();
        let mut refused = None;
        for message in messages.by_ref().take(MOST) {
            if let Some(kind) = task.accepts.refuses(&message) {
                refused = Some((kind, message));
                break;
            }
            lot.push_back(Item::Event(Event::Message(message)));
        }
        let count = lot.len();
        if count == 0 && refused.is_none() {
            return Ok(());
        }
        let result = match (task.deliver_lot(lot), &refused) {
            (Ok(()), Some((kind, _))) => Err((*kind, Batch::new())),
            (result, _) => result,
        };
        match result {
            Ok(()) => sent += count,
            Err((kind, rest)) => {
                let sent = sent + count - rest.len();
                let mut left: Vec<_> = rest.into_iter().map(item::into_message).collect();
                left.extend(refused.map(|(_, message)| message));
                // In turn: `extend` would rely on the iterator's answer to their number.
                messages.for_each(|message| left.push(message));
                return Err(SendAllError {
                    kind,
                    target: task.target(),
                    sent,
                    messages: left,
                });
            }
        }
    }
}

impl ProcessCell {
    /// Delivers messages, as many as have room, and returns the others. Never blocks.
    fn deliver_lot(self: &Task, mut lot: Batch<Item>) -> Result<(), (SendErrorKind, Batch<Item>)> {
        if lot.is_empty() {
            return Ok(());
        }
        let places = self.reserve_up_to(lot.len());
        if places == 0 {
            return Err((self.no_room(), lot));
        }
        if let Err(mut refused) = self.push_batch(lot.split_to(places)) {
            refused.append(lot);
            if self.is_stand_in() {
                return self.send_lot_away(refused);
            }
            return Err((self.closed(), refused));
        }
        if lot.is_empty() {
            Ok(())
        } else {
            Err((self.no_room(), lot))
        }
    }
}

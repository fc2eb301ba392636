//! Sending many messages to one process.
//!
//! **Problem.** A send is one read-modify-write on a word that a process's senders share with
//! its runner. A sender with a thousand messages fetches that word's cache line a thousand times.
//!
//! **Protocol.** The sender links messages in nodes that only it sees, and puts them in by a single
//! push, [`MOST`] at a time. So the process begins with the first, on another worker, while the
//! sender makes later ones. With a limit of the mailbox one read-modify-write takes the places
//! beforehand, as many as there are.

use crate::api::process_handle::Address;
use crate::core::cell::ProcessCell;
use crate::core::cell::Task;
use crate::core::item::Item;
use ganger_mpsc::Batch;
use ganger_proc_api::{Event, Message, Pid, SendErrorKind};

/// How many messages are put in at a time.
const MOST: usize = 128;

/// Not all messages of a [`send_all`](Address::send_all) were taken. The others are inside: nothing
/// is lost.
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
    /// The messages that were not, in order.
    pub messages: Vec<Message>,
}

impl Address {
    /// Sends messages, in order, at a lower price than by a [`send`](Self::send) each. Never
    /// blocks, unless the iterator does. O(n).
    ///
    /// One atomic operation puts in a lot of 128 messages. So the process may get the first of them
    /// before the iterator has come to its end, and messages of other senders between two lots.
    /// What the iterator itself sends to the process overtakes the messages of its lot, and it must
    /// not wait for an answer to one of these. If the iterator panics, the lots before have been
    /// sent, and the messages that it has yielded since are dropped.
    ///
    /// # Errors
    /// [`SendAllError`], with all messages inside that were not sent, when the process has ended,
    /// when its mailbox becomes full, or when other senders wait for room in it. The messages
    /// before them have been sent. The call then draws the iterator to its end, so it must have
    /// one. Without any messages the call succeeds.
    ///
    /// ```
    /// use ganger_proc_api::{
    ///     BoxError, Context, Event, Events, ExitReason, Message, Process, StepOutput,
    ///     StepResult,
    /// };
    /// use ganger_sched::Scheduler;
    ///
    /// struct Sum(u64);
    ///
    /// impl Process for Sum {
    ///     fn step(
    ///         &mut self,
    ///         _: &Context,
    ///         events: &mut Events<'_>,
    ///         out: &mut StepOutput,
    ///     ) -> StepResult {
    ///         for event in events {
    ///             if let Event::Message(message) = event {
    ///                 match message.payloads.first().and_then(|number| number.as_u64()) {
    ///                     Some(number) => self.0 += number,
    ///                     None => out.done(self.0),
    ///                 }
    ///             }
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let scheduler = Scheduler::builder().start()?;
    /// let sum = scheduler.spawn(Sum(0))?;
    /// let numbers = (1..=100_u64).map(|n| Message::new("number", n));
    /// sum.address().send_all(numbers.chain([Message::new("end", ())]))?;
    /// assert!(matches!(sum.wait(), ExitReason::Done(n) if n.as_u64() == Some(5_050)));
    /// # Ok::<(), BoxError>(())
    /// ```
    pub fn send_all(
        &self,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<(), SendAllError> {
        let mut messages = messages.into_iter().fuse();
        let mut sent = 0;
        loop {
            let mut lot = Batch::new();
            let mut refused = None;
            for message in messages.by_ref().take(MOST) {
                if let Some(kind) = self.task.accepts.refuses(&message) {
                    refused = Some((kind, message));
                    break;
                }
                lot.push_back(Item::Event(Event::Message(message)));
            }
            let count = lot.len();
            if count == 0 && refused.is_none() {
                return Ok(());
            }
            let result = match (self.task.deliver_lot(lot), &refused) {
                (Ok(()), Some((kind, _))) => Err((*kind, Batch::new())),
                (result, _) => result,
            };
            match result {
                Ok(()) => sent += count,
                Err((kind, rest)) => {
                    let sent = sent + count - rest.len();
                    let mut left: Vec<_> = rest.into_iter().map(message_of).collect();
                    left.extend(refused.map(|(_, message)| message));
                    // One by one: `extend` would rely on the iterator's answer to how many there
                    // are.
                    messages.for_each(|message| left.push(message));
                    return Err(SendAllError {
                        kind,
                        target: self.pid(),
                        sent,
                        messages: left,
                    });
                }
            }
        }
    }
}

fn message_of(item: Item) -> Message {
    match item {
        Item::Event(Event::Message(message)) => message,
        _ => unreachable!("what was refused is what was sent"),
    }
}

impl ProcessCell {
    /// Delivers messages, as many as there is room for, and gives the others back. Never blocks.
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
            return Err((self.closed(), refused));
        }
        if lot.is_empty() {
            Ok(())
        } else {
            Err((self.no_room(), lot))
        }
    }
}

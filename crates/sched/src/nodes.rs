//! Events on their way into nodes, and out of them again when the receiver refuses them.

use crate::core::Item;
use ganger_mpsc::{Batch, Single};
use ganger_proc_api::{
    CommandError, Completion, Event, Message, Payload, Pid, SendError, SendErrorKind, Tag,
};

/// The result of a command.
pub(crate) type CommandResult = Result<Payload, CommandError>;

/// A completion in a node of its own, with a result that is moved out of its place.
///
/// # Safety
/// A result lies there, and the caller neither uses nor drops it afterwards.
#[inline]
pub(crate) unsafe fn of_completion(
    tag: Tag,
    token: u64,
    result: *const CommandResult,
) -> Single<Item> {
    // SAFETY: the caller gives the result away (precondition).
    let result = unsafe { result.read() };
    Single::of(Item::Event(Event::Completion(Completion::of(
        tag, token, result,
    ))))
}

/// A message in a node of its own. `key` names the mailbox that it goes to: nodes for one mailbox
/// lie near each other.
#[inline]
pub(crate) fn of_message(message: Message, key: u64) -> Single<Item> {
    Single::near(Item::Event(Event::Message(message)), key)
}

/// Notes that the receiver with that mailbox key was not waiting when this thread delivered a
/// message to it. A thread that sends to many such receivers in turn gets the nodes for each of
/// them side by side.
#[inline]
pub(crate) fn note_behind(key: u64) {
    Batch::<Item>::note_behind(key);
}

/// The error that gives a refused message back to its sender.
#[cold]
pub(crate) fn refused(kind: SendErrorKind, refused: Single<Item>, target: &Pid) -> SendError {
    match refused.into_item() {
        Item::Event(Event::Message(message)) => SendError::new(kind, message.to(*target)),
        _ => unreachable!("a refused item is the message that was sent"),
    }
}

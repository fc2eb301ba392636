//! Events on their way into nodes, and out of them again when the receiver refuses them.

use crate::core::Item;
use ganger_mpsc::Single;
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

/// A message in a node of its own.
#[inline]
pub(crate) fn of_message(message: Message) -> Single<Item> {
    Single::of(Item::Event(Event::Message(message)))
}

/// The error that gives a refused message back to its sender.
#[cold]
pub(crate) fn refused(kind: SendErrorKind, refused: Single<Item>, target: &Pid) -> SendError {
    match refused.into_item() {
        Item::Event(Event::Message(message)) => SendError::new(kind, message.to(*target)),
        _ => unreachable!("a refused item is the message that was sent"),
    }
}

//! Events on their way into nodes, and out of them again when the receiver refuses them.

use crate::core::owned::Item;
use ganger_mpsc::Single;
use ganger_proc_api::{
    CommandError, Completion, Event, Message, Payload, Pid, SendError, SendErrorKind, Tag,
};

/// The result of a command.
pub(crate) type CommandResult = Result<Payload, CommandError>;

/// A completion in a node of its own.
#[inline]
pub(crate) fn of_completion(tag: Tag, token: u64, result: CommandResult) -> Single<Item> {
    let completion = Completion::of(tag, token, result);
    Single::of(Item::Event(Event::Completion(completion)))
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

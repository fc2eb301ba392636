//! What a step receives: see [`Events`](crate::Events).

use crate::{CancelReason, CommandError, Message, Payload, Tag};

/// Something that happened to a process since its last step.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// Somebody sent a message.
    Message(Message),
    /// A command that the process yielded has been carried out, or has failed.
    Completion(Completion),
    /// The process is asked to finish; it decides how.
    Cancel(CancelReason),
    /// Somebody sent a control message, which overtakes messages and completions. In a box, so that other
    /// events are no larger for it.
    Control(Box<Message>),
}

// It is moved into each batch and out again.
const _: () = assert!(size_of::<Event>() == 56 && size_of::<Event>() == size_of::<Message>());

/// The answer to one yield.
#[derive(Debug)]
pub struct Completion {
    /// The tag that the process gave the yield.
    pub tag: Tag,
    /// The command's result.
    pub result: Result<Payload, CommandError>,
    token: u64,
}

impl Completion {
    /// The answer to a yield with that tag, for unit tests of processes.
    #[must_use]
    pub fn new(tag: Tag, result: Result<Payload, CommandError>) -> Self {
        Self::of(tag, 0, result)
    }

    /// The answer to the yield that `token` names; for schedulers.
    #[must_use]
    #[inline]
    pub fn of(tag: Tag, token: u64, result: Result<Payload, CommandError>) -> Self {
        Self { tag, result, token }
    }

    /// Names the yield; for schedulers.
    #[must_use]
    #[inline]
    pub fn token(&self) -> u64 {
        self.token
    }
}

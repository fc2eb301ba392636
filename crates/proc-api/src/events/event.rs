//! The events that a step takes from its [`Events`](crate::Events).

use super::{CancelReason, ExitNotice};
use crate::commands::Completion;
use crate::values::Message;
use std::any::Any;

/// News for a process since its last step.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A message has arrived.
    Message(Message),
    /// A command of the process has been carried out, or has failed.
    Completion(Completion),
    /// The process is asked to finish. It ends after the step that is shown this event, taken or
    /// not, with [`ExitReason::Cancelled`](crate::ExitReason::Cancelled), unless the step says
    /// otherwise: with [`done`](crate::StepOutput::done), [`upgrade`](crate::StepOutput::upgrade)
    /// or [`defer_cancel`](crate::StepOutput::defer_cancel).
    Cancel(CancelReason),
    /// A control message has arrived. Control messages overtake messages and completions. The box
    /// keeps other events small.
    Control(Box<Message>),
    /// A process [monitored](crate::Context::monitor) by this process has ended. The notice
    /// overtakes messages and completions.
    Exit(Box<ExitNotice>),
}

// Each event moves into a mailbox and out again, so its size counts.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Event>() == 56 && size_of::<Event>() == size_of::<Message>());

impl Event {
    /// Returns the message, whether it is a control message or not.
    #[must_use]
    pub fn message(&self) -> Option<&Message> {
        match self {
            Self::Message(message) => Some(message),
            Self::Control(message) => Some(message),
            Self::Completion(_) | Self::Cancel(_) | Self::Exit(_) => None,
        }
    }

    /// Takes the value of a message that [`Message::of`] made from an `M` other than `Message`.
    /// Leaves an event that owns nothing.
    #[inline]
    pub(super) fn take_value<M: Any>(&mut self) -> Option<M> {
        match self {
            Self::Message(message) if Message::kind_of::<M>().is_some() => {
                message.payloads.take_only()
            }
            _ => None,
        }
    }

    /// Returns the message by value, whether it is a control message or not. For processes that
    /// treat both alike.
    ///
    /// ```
    /// use ganger_proc_api::{Event, Message};
    /// let events = [
    ///     Event::Message(Message::new("add", 1_u64)),
    ///     Event::Control(Box::new(Message::new("add", 2_u64))),
    /// ];
    /// let numbers = events.map(|event| match event.into_message() {
    ///     Ok(message) => message.payloads.into_first().as_u64(),
    ///     Err(_other) => None,
    /// });
    /// assert_eq!(numbers, [Some(1), Some(2)]);
    /// ```
    ///
    /// # Errors
    /// Gives the event back when it is not a message.
    pub fn into_message(self) -> Result<Message, Self> {
        match self {
            Self::Message(message) => Ok(message),
            Self::Control(message) => Ok(*message),
            other => Err(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Payload;

    #[test]
    fn both_kinds_of_messages_are_messages_and_the_rest_comes_back() {
        let message = || Message::new("topic", 7_u64);
        for event in [
            Event::Message(message()),
            Event::Control(Box::new(message())),
        ] {
            assert_eq!(event.message().unwrap().topic, "topic");
            assert_eq!(
                event.into_message().unwrap().payloads.into_first().as_u64(),
                Some(7)
            );
        }
        let completion = Event::Completion(Completion::new(7, Ok(Payload::UNIT)));
        assert!(completion.message().is_none());
        let returned = completion.into_message();
        assert!(matches!(returned, Err(Event::Completion(it)) if it.tag == 7));
        let cancel = Event::Cancel(CancelReason::Shutdown);
        assert!(cancel.message().is_none());
        let returned = cancel.into_message();
        assert!(matches!(
            returned,
            Err(Event::Cancel(CancelReason::Shutdown))
        ));
    }
}

//! Which messages a task takes.

use ganger_proc_api::{Context, Kind, Message, WrongType};
use std::any::Any;

/// What a [`Cx`](crate::Cx) receives: messages of one type, or, for `dyn Any`, any [`Message`].
///
/// Every type that is `Send` and `'static` is one.
pub trait Messages: 'static {
    /// What a receive gives.
    type Item: Send + 'static;

    /// The type, if it is one alone.
    #[doc(hidden)]
    fn kind() -> Option<Kind>;

    /// Says in the task's `init` what it takes.
    #[doc(hidden)]
    fn accept(ctx: &Context);

    /// What it is, if it is of the type.
    #[doc(hidden)]
    fn take(message: Message) -> Result<Self::Item, WrongType>;

    /// A look at it, if it is of the type.
    #[doc(hidden)]
    fn look(message: &Message) -> Option<&Self::Item>
    where
        Self::Item: Sync;
}

impl<M: Send + 'static> Messages for M {
    type Item = M;

    fn kind() -> Option<Kind> {
        Some(Kind::of::<M>())
    }

    fn accept(ctx: &Context) {
        ctx.accept_only::<M>();
    }

    fn take(message: Message) -> Result<M, WrongType> {
        message.take()
    }

    fn look(message: &Message) -> Option<&M>
    where
        M: Sync,
    {
        match message.payloads.as_slice() {
            [only] => only.downcast_ref(),
            _ => None,
        }
    }
}

impl Messages for dyn Any {
    type Item = Message;

    fn kind() -> Option<Kind> {
        None
    }

    fn accept(_: &Context) {}

    fn take(message: Message) -> Result<Message, WrongType> {
        Ok(message)
    }

    fn look(message: &Message) -> Option<&Message> {
        Some(message)
    }
}

//! How processes end, and why no answer comes, by serde: the particulars cross as texts.

use crate::commands::CommandError;
use crate::values::{BoxError, CancelReason, ExitCause};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::error::Error;

/// A cancel reason on its way.
#[derive(Serialize, Deserialize)]
enum Reason<'a> {
    Shutdown,
    Requested(Cow<'a, str>),
}

/// A cause on its way. New ones come last.
#[derive(Serialize, Deserialize)]
enum Cause<'a> {
    Done,
    Failed(Cow<'a, str>),
    Panicked(Cow<'a, str>),
    Cancelled(Reason<'a>),
    Terminated,
    UpgradeFailed(Cow<'a, str>),
    NotFound,
    NoConnection,
}

/// An answer's error on its way. New ones come last.
#[derive(Serialize, Deserialize)]
enum NoAnswer<'a> {
    Dropped,
    Ended(Cause<'a>),
    Panicked(Cow<'a, str>),
    Timeout,
    Failed(Cow<'a, str>),
}

impl<'a> From<&'a CancelReason> for Reason<'a> {
    fn from(reason: &'a CancelReason) -> Self {
        match reason {
            CancelReason::Shutdown => Self::Shutdown,
            CancelReason::Requested(text) => Self::Requested((**text).into()),
        }
    }
}

impl From<Reason<'_>> for CancelReason {
    fn from(reason: Reason<'_>) -> Self {
        match reason {
            Reason::Shutdown => Self::Shutdown,
            Reason::Requested(text) => Self::Requested(text.into()),
        }
    }
}

impl<'a> From<&'a ExitCause> for Cause<'a> {
    fn from(cause: &'a ExitCause) -> Self {
        match cause {
            ExitCause::Done => Self::Done,
            ExitCause::Failed(text) => Self::Failed((**text).into()),
            ExitCause::Panicked(text) => Self::Panicked((**text).into()),
            ExitCause::Cancelled(reason) => Self::Cancelled(reason.into()),
            ExitCause::Terminated => Self::Terminated,
            ExitCause::UpgradeFailed(text) => Self::UpgradeFailed((**text).into()),
            ExitCause::NotFound => Self::NotFound,
            ExitCause::NoConnection => Self::NoConnection,
        }
    }
}

impl From<Cause<'_>> for ExitCause {
    fn from(cause: Cause<'_>) -> Self {
        match cause {
            Cause::Done => Self::Done,
            Cause::Failed(text) => Self::Failed(text.into()),
            Cause::Panicked(text) => Self::Panicked(text.into()),
            Cause::Cancelled(reason) => Self::Cancelled(reason.into()),
            Cause::Terminated => Self::Terminated,
            Cause::UpgradeFailed(text) => Self::UpgradeFailed(text.into()),
            Cause::NotFound => Self::NotFound,
            Cause::NoConnection => Self::NoConnection,
        }
    }
}

impl<'a> From<&'a CommandError> for NoAnswer<'a> {
    fn from(error: &'a CommandError) -> Self {
        match error {
            CommandError::Dropped => Self::Dropped,
            CommandError::Ended(cause) => Self::Ended(cause.into()),
            CommandError::Panicked(text) => Self::Panicked((**text).into()),
            CommandError::Timeout => Self::Timeout,
            error @ (CommandError::Unknown(_)
            | CommandError::WrongType(_)
            | CommandError::Failed(_)) => Self::Failed(text_of_chain(error).into()),
        }
    }
}

impl From<NoAnswer<'_>> for CommandError {
    fn from(error: NoAnswer<'_>) -> Self {
        match error {
            NoAnswer::Dropped => Self::Dropped,
            NoAnswer::Ended(cause) => Self::Ended(cause.into()),
            NoAnswer::Panicked(text) => Self::Panicked(text.into()),
            NoAnswer::Timeout => Self::Timeout,
            NoAnswer::Failed(text) => Self::Failed(BoxError::from(text.into_owned())),
        }
    }
}

/// Returns the text of the error, followed by the texts of its sources.
fn text_of_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

macro_rules! by_way_of {
    ($($value:ty => $way:ident),+ $(,)?) => {$(
        impl Serialize for $value {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $way::from(self).serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for $value {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $way::deserialize(deserializer).map(Self::from)
            }
        }
    )+};
}

by_way_of! {
    CancelReason => Reason,
    ExitCause => Cause,
    CommandError => NoAnswer,
}

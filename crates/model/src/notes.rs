//! Notes of events, as the process or the caller sees them.

use crate::plan::{Act, Far, Kind, Place, Start};
use ganger_proc_api::{
    CancelReason, CommandError, Event, ExitCause, ExitReason, Payload, Pid, SendErrorKind,
    SubmitErrorKind, UpgradeError,
};

/// Identifies a message, a yield, a process or anything else. Each number is given out once.
pub(crate) type Number = u64;

/// An event, as a step is shown it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    Message(Number),
    Control(Number),
    Completion(Number, Finished),
    Cancel(Number),
    Shutdown,
    /// A monitored process has ended in this way, as far as notices tell, or was not there.
    Exit(Number, Option<End>),
    /// An event without a cause.
    Foreign,
}

/// The content of a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finished {
    Result,
    Failed,
    Dropped,
    Panicked,
    Unknown,
}

/// How a process has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Done(Number),
    /// By this cancellation, or by a shutdown.
    Cancelled(Option<Number>),
    Failed(Number),
    Panicked(Number),
    Terminated,
    HeirFailed,
    HeirPanicked,
    FactoryPanicked,
    FactoryUnknown,
    /// None of these.
    Foreign,
}

/// The heir of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heir {
    /// The process of this number.
    Process(Number),
    /// Any product of a factory.
    Made,
    PanickingFactory,
    UnknownFactory,
}

/// The decision of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Waits,
    GoesOn,
    Finishes(Number),
    Fails(Number),
    Panics(Number),
    Becomes(Heir),
}

/// A call from outside or from a step, with the result that it must have, unless the call itself is
/// wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    Send(Pid, Seen, Act, Option<Sent>),
    Cancel(Pid, Number, Option<bool>),
    Terminate(Pid, Option<bool>),
    Upgrade(Pid, Heir, Option<Upgraded>),
    Submit(Number, Start, Option<Submitted>),
    Complete(Number, Finished),
    Stop,
    Wait(Pid, Number, Act, Option<Sent>),
    GiveUp(Number),
    Volley(Pid, Vec<Vec<Number>>, Option<usize>),
    Crowd(Vec<Number>),
    Far(Number, Far, Option<Sent>),
    Monitor(Pid, Number, Option<bool>),
    Demonitor(Pid, Number),
    Place(Place, bool, Option<bool>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    Accepted,
    NotFound,
    Closed,
    Full,
    Stopping,
    NoHost,
    NoNode,
    /// The message waits for room.
    Waits,
    Otherwise,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Upgraded {
    Accepted,
    NotFound,
    UnknownFactory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Submitted {
    Started,
    Stopping,
    LimitReached,
    AlreadyExists,
    InitFailed,
    InitPanicked,
    StartRefused,
    StartPanicked,
    Otherwise,
}

/// An event of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Note {
    /// `init` of a process begins, under this PID.
    Init(Pid, Number, Start),
    /// The hook of a start is called.
    Started(Pid),
    /// A step of a process begins, and is shown these events.
    Step(Pid, Number, Vec<Seen>),
    /// A step takes an event.
    Took(Pid, Seen),
    /// A step ends, with these yields and this outcome. The flag says whether the step defers a
    /// cancellation.
    Stepped(Pid, Vec<(Number, Kind)>, Outcome, bool),
    /// The handler of a yield is called.
    Handled(Number),
    /// `close` of a process begins.
    Closed(Number),
    /// The hook of an end is called.
    Ended(Pid, End),
}

/// Returns the number inside a message, a result or an error.
pub(crate) fn number_of(text: &str) -> Option<Number> {
    text.parse().ok()
}

impl Seen {
    pub(crate) fn of(event: &Event) -> Self {
        let number = |payload: Option<&Payload>| payload.and_then(Payload::as_u64);
        let seen = match event {
            Event::Message(it) => number(it.payloads.first()).map(Self::Message),
            Event::Control(it) => number(it.payloads.first()).map(Self::Control),
            Event::Cancel(CancelReason::Shutdown) => Some(Self::Shutdown),
            Event::Cancel(CancelReason::Requested(text)) => number_of(text).map(Self::Cancel),
            Event::Completion(it) => Some(Self::Completion(it.tag, Finished::of(&it.result))),
            Event::Exit(it) => Some(Self::Exit(it.tag, End::told(&it.cause))),
            _ => None,
        };
        seen.unwrap_or(Self::Foreign)
    }

    /// Returns the end after this event, if it is a cancellation that is not deferred.
    pub(crate) fn end(self) -> Option<End> {
        match self {
            Self::Cancel(number) => Some(End::Cancelled(Some(number))),
            Self::Shutdown => Some(End::Cancelled(None)),
            _ => None,
        }
    }

    /// Returns whether the event overtakes messages and completions.
    pub(crate) fn is_system(self) -> bool {
        matches!(
            self,
            Self::Control(_) | Self::Cancel(_) | Self::Shutdown | Self::Exit(..)
        )
    }
}

impl Submitted {
    /// Returns a submit's result after such a start.
    pub(crate) fn after(start: Start) -> Self {
        match start {
            Start::Well => Self::Started,
            Start::InitFails => Self::InitFailed,
            Start::InitPanics => Self::InitPanicked,
            Start::Refused => Self::StartRefused,
            Start::HookPanics => Self::StartPanicked,
        }
    }

    /// Returns the result of a refused start.
    pub(crate) fn refused(kind: &SubmitErrorKind) -> Self {
        match kind {
            SubmitErrorKind::Stopping => Self::Stopping,
            SubmitErrorKind::LimitReached { .. } => Self::LimitReached,
            SubmitErrorKind::AlreadyExists(_) => Self::AlreadyExists,
            SubmitErrorKind::InitFailed(_) => Self::InitFailed,
            SubmitErrorKind::InitPanicked(_) => Self::InitPanicked,
            SubmitErrorKind::StartRefused(_) => Self::StartRefused,
            SubmitErrorKind::StartPanicked(_) => Self::StartPanicked,
            _ => Self::Otherwise,
        }
    }
}

impl Sent {
    /// Returns the result of a refused send.
    pub(crate) fn refused(kind: SendErrorKind) -> Self {
        match kind {
            SendErrorKind::NotFound => Self::NotFound,
            SendErrorKind::Ended(_) | SendErrorKind::Closed => Self::Closed,
            SendErrorKind::Full => Self::Full,
            SendErrorKind::Stopping => Self::Stopping,
            SendErrorKind::HostNotFound => Self::NoHost,
            SendErrorKind::NodeNotFound => Self::NoNode,
            _ => Self::Otherwise,
        }
    }
}

impl Finished {
    fn of(result: &Result<Payload, CommandError>) -> Self {
        match result {
            Ok(_) => Self::Result,
            Err(CommandError::Dropped) => Self::Dropped,
            Err(CommandError::Panicked(_)) => Self::Panicked,
            Err(CommandError::Unknown(_)) => Self::Unknown,
            Err(_) => Self::Failed,
        }
    }

    /// Returns the result of a handler of this kind, unless it keeps the completer.
    pub(crate) fn by(kind: Kind) -> Option<Self> {
        match kind {
            Kind::AtOnce | Kind::AnswersAndErrs | Kind::Terminates => Some(Self::Result),
            Kind::Kept | Kind::Delayed => None,
            Kind::Drops => Some(Self::Dropped),
            Kind::Errs => Some(Self::Failed),
            Kind::Panics => Some(Self::Panicked),
            Kind::Unknown => Some(Self::Unknown),
        }
    }
}

impl End {
    pub(crate) fn of(reason: &ExitReason) -> Self {
        let end = match reason {
            ExitReason::Done(result) => result.as_u64().map(Self::Done),
            ExitReason::Failed(error) => number_of(&error.to_string()).map(Self::Failed),
            ExitReason::Panicked(text) => number_of(text).map(Self::Panicked),
            ExitReason::Cancelled(reason) => Self::cancelled(reason),
            ExitReason::Terminated => Some(Self::Terminated),
            ExitReason::UpgradeFailed(UpgradeError::InitFailed(_)) => Some(Self::HeirFailed),
            ExitReason::UpgradeFailed(UpgradeError::InitPanicked(_)) => Some(Self::HeirPanicked),
            ExitReason::UpgradeFailed(UpgradeError::FactoryPanicked(_)) => {
                Some(Self::FactoryPanicked)
            }
            ExitReason::UpgradeFailed(UpgradeError::UnknownFactory(_)) => {
                Some(Self::FactoryUnknown)
            }
            _ => None,
        };
        end.unwrap_or(Self::Foreign)
    }
}

impl End {
    fn cancelled(reason: &CancelReason) -> Option<Self> {
        match reason {
            CancelReason::Shutdown => Some(Self::Cancelled(None)),
            CancelReason::Requested(text) => number_of(text).map(|it| Self::Cancelled(Some(it))),
            _ => None,
        }
    }

    /// Returns the end as a notice has it: without results, and with a common end for all failed
    /// heirs.
    pub(crate) fn as_told(self) -> Self {
        match self {
            Self::Done(_) => Self::Done(0),
            Self::HeirPanicked | Self::FactoryPanicked | Self::FactoryUnknown => Self::HeirFailed,
            other => other,
        }
    }

    /// Returns the end in a notice; none if the notice says that the process was not there.
    fn told(cause: &ExitCause) -> Option<Self> {
        let end = match cause {
            ExitCause::NotFound => return None,
            ExitCause::Done => Some(Self::Done(0)),
            ExitCause::Failed(text) => number_of(text).map(Self::Failed),
            ExitCause::Panicked(text) => number_of(text).map(Self::Panicked),
            ExitCause::Cancelled(reason) => Self::cancelled(reason),
            ExitCause::Terminated => Some(Self::Terminated),
            ExitCause::UpgradeFailed(_) => Some(Self::HeirFailed),
            _ => None,
        };
        Some(end.unwrap_or(Self::Foreign))
    }

    /// Returns the name of this end, without its number.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::Cancelled(_) => "cancelled",
            Self::Failed(_) => "failed",
            Self::Panicked(_) => "panicked",
            Self::Terminated => "terminated",
            Self::HeirFailed => "heir failed",
            Self::HeirPanicked => "heir panicked",
            Self::FactoryPanicked => "factory panicked",
            Self::FactoryUnknown => "factory unknown",
            Self::Foreign => "foreign",
        }
    }
}

impl Heir {
    /// Returns the end of a process whose heir can't be made.
    pub(crate) fn failure(self) -> Option<End> {
        match self {
            Self::Process(_) | Self::Made => None,
            Self::PanickingFactory => Some(End::FactoryPanicked),
            Self::UnknownFactory => Some(End::FactoryUnknown),
        }
    }
}

//! Along the causes of an error, no text comes twice, and none is missing.

use ganger_proc_api::{
    BoxError, CommandError, CommandId, Envelope, ExitCause, HostName, Message, NodeName, Payloads,
    Pid, SendError, SendErrorKind, SubmitError, SubmitErrorKind, Symbol, TypeName, UnknownMethod,
    UpgradeError,
};
use std::error::Error;
use std::fmt;

/// An error with a cause, as user code reports it.
#[derive(Debug)]
struct Outer(std::io::Error);

impl fmt::Display for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no list")
    }
}

impl Error for Outer {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

fn outer() -> BoxError {
    Box::new(Outer(std::io::Error::other("disk on fire")))
}

/// Returns the texts of an error and of its causes.
fn texts(error: &(dyn Error + 'static)) -> Vec<String> {
    std::iter::successors(Some(error), |&error| error.source())
        .map(ToString::to_string)
        .collect()
}

#[test]
fn what_a_user_reports_is_said_once_with_its_causes() {
    let errors: [(Box<dyn Error>, &str); 6] = [
        (Box::new(CommandError::Failed(outer())), "no list"),
        (
            Box::new(SubmitErrorKind::InitFailed(outer())),
            "init failed: no list",
        ),
        (
            Box::new(SubmitErrorKind::StartRefused(outer())),
            "the lifecycle hook refused the start: no list",
        ),
        (
            Box::new(SubmitError::new(SubmitErrorKind::InitFailed(outer()))),
            "the process was not started: init failed: no list",
        ),
        (
            Box::new(SubmitError::new(SubmitErrorKind::StartRefused(outer()))),
            "the process was not started: the lifecycle hook refused the start: no list",
        ),
        (
            Box::new(UpgradeError::InitFailed(outer())),
            "the new process's init failed: no list",
        ),
    ];
    for (error, text) in errors {
        assert_eq!(texts(&*error), [text, "disk on fire"]);
    }
}

#[test]
fn errors_that_show_what_they_hold_do_not_return_it_as_well() {
    let pid = Pid::new(HostName::new("host").unwrap(), 7);
    let envelope = Envelope {
        target: pid,
        message: Message::new("topic", Payloads::new()),
    };
    let invalid = SubmitErrorKind::InvalidPid {
        pid,
        why: "too large",
    };
    let errors: Vec<Box<dyn Error>> = vec![
        Box::new(CommandError::Unknown(CommandId::new(262))),
        Box::new(CommandError::Dropped),
        Box::new(CommandError::Panicked("text".into())),
        Box::new(SubmitError::new(SubmitErrorKind::Stopping)),
        Box::new(SubmitError::new(SubmitErrorKind::LimitReached { max: 7 })),
        Box::new(SubmitError::new(SubmitErrorKind::AlreadyExists(pid))),
        Box::new(SubmitError::new(invalid)),
        Box::new(SubmitError::new(SubmitErrorKind::InitPanicked(
            "text".into(),
        ))),
        Box::new(SubmitError::new(SubmitErrorKind::StartPanicked(
            "text".into(),
        ))),
        Box::new(UpgradeError::UnknownFactory(Symbol::new("name"))),
        Box::new(UpgradeError::FactoryPanicked("text".into())),
        Box::new(UpgradeError::InitPanicked("text".into())),
        Box::new(SendError::new(SendErrorKind::Full, envelope)),
        Box::new(SendErrorKind::NoConnection),
        Box::new(SendErrorKind::NoCodec(TypeName::new("shop::Order"))),
        Box::new(UnknownMethod::new("main")),
        Box::new("{a b|0x1}".parse::<Pid>().unwrap_err()),
        Box::new(NodeName::new("").unwrap_err()),
    ];
    for error in errors {
        assert_eq!(texts(&*error).len(), 1, "{error}");
    }
}

// pins: B12
#[test]
fn a_lost_connection_and_a_type_without_codec_say_so() {
    let cause = ExitCause::NoConnection;
    assert_eq!(cause.to_string(), "no connection to its node");
    assert!(!cause.is_done());
    let lost = SendErrorKind::NoConnection;
    assert_eq!(lost.to_string(), "no connection to the node");
    let uncoded = SendErrorKind::NoCodec(TypeName::new("shop::Cart"));
    assert_eq!(
        uncoded.to_string(),
        "no codec for shop::Cart: register the type to send it to other nodes"
    );
    // A sender may try again later, but not for want of room, and the receiver may live.
    for kind in [lost, uncoded] {
        assert!(!kind.is_full() && !kind.is_closed());
    }
    // The result of each send, which the hot path returns.
    assert_eq!(size_of::<SendErrorKind>(), 4);
}

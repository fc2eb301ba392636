//! The types that may cross threads.

use ganger_proc_api::{
    CancelToken, Command, CommandError, Completer, Context, Envelope, Event, ExitReason, Payload,
    SendError, StepOutput, SubmitError, UpgradeRequest,
};

#[test]
fn everything_that_travels_is_send_and_sync() {
    fn travels<T: Send + Sync>() {}
    travels::<Payload>();
    travels::<Envelope>();
    travels::<Command>();
    travels::<Event>();
    travels::<StepOutput>();
    travels::<Completer>();
    travels::<Context>();
    travels::<CancelToken>();
    travels::<UpgradeRequest>();
    travels::<ExitReason>();
}

#[test]
fn errors_fit_into_a_box_error() {
    fn is_error<T: std::error::Error + Send + Sync + 'static>() {}
    is_error::<SendError>();
    is_error::<SubmitError>();
    is_error::<CommandError>();
}

//! The common acts of this crate's receivers: passing an envelope on, and refusing it.

use ganger_proc_api::{Envelope, EnvelopeReceiver, SendError, SendErrorKind};

/// The target of this crate's tracing events.
pub(crate) const TARGET: &str = "ganger::relay";

/// How a receiver passes an envelope on: [`EnvelopeReceiver::send`] or
/// [`EnvelopeReceiver::send_control`].
pub(crate) type PassOn = fn(&dyn EnvelopeReceiver, Envelope) -> Result<(), SendError>;

/// Returns the error that refuses `envelope`, and emits a tracing event.
#[cold]
pub(crate) fn refused(kind: SendErrorKind, envelope: Envelope) -> SendError {
    tracing::debug!(target: TARGET, pid = %envelope.target, reason = %kind, "envelope refused");
    SendError::new(kind, envelope)
}

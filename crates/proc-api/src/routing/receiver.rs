//! The trait of receivers of envelopes, and receivers from closures.

use crate::values::{Envelope, Pid, SendError, SendErrorKind};
use std::fmt;
use std::sync::{Arc, Weak};
use std::task::Waker;

/// Takes envelopes, or gives them back.
///
/// Hosts, nodes, routers and links to other nodes are all receivers, so each can stand behind
/// another.
///
/// ```
/// use ganger_proc_api::{Message, Envelope, EnvelopeReceiver, SendError, SendErrorKind};
///
/// /// A host with mailboxes that are always full.
/// struct Busy;
///
/// impl EnvelopeReceiver for Busy {
///     fn send(&self, envelope: Envelope) -> Result<(), SendError> {
///         Err(SendError::new(SendErrorKind::Full, envelope))
///     }
/// }
///
/// let target = "{busy|1}".parse()?;
/// let error = Busy.send(Message::new("job", 7_u64).to(target)).unwrap_err();
/// assert_eq!(error.kind, SendErrorKind::Full);
/// let envelope = error.into_envelope(); // can be sent again later
/// assert_eq!(envelope.message.topic, "job");
/// # Ok::<(), ganger_proc_api::ParsePidError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't receive envelopes",
    note = "implement `EnvelopeReceiver` for it, with `send`, or make a receiver of a closure by \
            `receiver_fn`"
)]
pub trait EnvelopeReceiver: Send + Sync {
    /// Takes the envelope, or returns it unchanged inside the error.
    ///
    /// The implementation must not block. Envelopes from the same thread to the same PID must
    /// arrive in the order of their sends. The caller holds no lock, so an implementation may
    /// itself send. It may also add and remove hosts, peers and channels anywhere, even itself.
    ///
    /// # Errors
    /// [`SendError`] with the envelope inside. Its kind tells why the envelope was refused.
    fn send(&self, envelope: Envelope) -> Result<(), SendError>;

    /// Takes a control message, as [`send`](Self::send) does. Control messages overtake other
    /// messages in the target's mailbox.
    ///
    /// By default, `send` takes it as an ordinary message. An implementation that passes envelopes
    /// on should implement this method, and pass control messages on as control messages. The two
    /// kinds have no order between them.
    ///
    /// # Errors
    /// The errors of [`send`](Self::send).
    fn send_control(&self, envelope: Envelope) -> Result<(), SendError> {
        self.send(envelope)
    }

    /// Has `waker` called, once, when an envelope for the target may be taken again, after one was
    /// refused with [`SendErrorKind::Full`]. The sender then sends again. Returns whether `waker`
    /// is called.
    ///
    /// The waker is also called when a send would be refused for another reason, and at once if
    /// that is so already, or there is room. A receiver that wakes one sender for each place that
    /// it has, in the order of the calls, serves them in this order. The call must not block.
    ///
    /// By default, drops the waker and returns `false`: the sender gets the refusal. A receiver
    /// that passes envelopes on should pass this on as well.
    fn room(&self, target: Pid, waker: Waker) -> bool {
        let _ = (target, waker);
        false
    }
}

impl<R: EnvelopeReceiver + ?Sized> EnvelopeReceiver for Arc<R> {
    fn send(&self, envelope: Envelope) -> Result<(), SendError> {
        (**self).send(envelope)
    }

    fn send_control(&self, envelope: Envelope) -> Result<(), SendError> {
        (**self).send_control(envelope)
    }

    fn room(&self, target: Pid, waker: Waker) -> bool {
        (**self).room(target, waker)
    }
}

/// Refuses with [`SendErrorKind::Stopping`] if the receiver has been dropped.
///
/// Two routers of the same program that are each other's peers keep each other alive. Let either
/// hold the other as a `Weak`.
impl<R: EnvelopeReceiver> EnvelopeReceiver for Weak<R> {
    fn send(&self, envelope: Envelope) -> Result<(), SendError> {
        match self.upgrade() {
            Some(receiver) => receiver.send(envelope),
            None => Err(SendError::new(SendErrorKind::Stopping, envelope)),
        }
    }

    fn send_control(&self, envelope: Envelope) -> Result<(), SendError> {
        match self.upgrade() {
            Some(receiver) => receiver.send_control(envelope),
            None => Err(SendError::new(SendErrorKind::Stopping, envelope)),
        }
    }

    fn room(&self, target: Pid, waker: Waker) -> bool {
        (self.upgrade()).is_some_and(|receiver| receiver.room(target, waker))
    }
}

impl<R: EnvelopeReceiver + ?Sized> EnvelopeReceiver for &R {
    fn send(&self, envelope: Envelope) -> Result<(), SendError> {
        (**self).send(envelope)
    }

    fn send_control(&self, envelope: Envelope) -> Result<(), SendError> {
        (**self).send_control(envelope)
    }

    fn room(&self, target: Pid, waker: Waker) -> bool {
        (**self).room(target, waker)
    }
}

/// Calls a function with each envelope: see [`receiver_fn`].
#[derive(Clone, Copy)]
pub struct ReceiverFn<F>(F);

/// Returns a receiver that calls `function` with every envelope, on the sender's thread.
///
/// ```
/// use ganger_proc_api::{Message, Envelope, EnvelopeReceiver, receiver_fn};
///
/// let printer = receiver_fn(|envelope: Envelope| {
///     println!("{}: {:?}", envelope.target, envelope.message);
///     Ok(())
/// });
/// printer.send(Message::new("hello", ()).to("{printer|1}".parse()?)).unwrap();
/// # Ok::<(), ganger_proc_api::ParsePidError>(())
/// ```
pub const fn receiver_fn<F>(function: F) -> ReceiverFn<F>
where
    F: Fn(Envelope) -> Result<(), SendError> + Send + Sync,
{
    ReceiverFn(function)
}

impl<F> EnvelopeReceiver for ReceiverFn<F>
where
    F: Fn(Envelope) -> Result<(), SendError> + Send + Sync,
{
    fn send(&self, envelope: Envelope) -> Result<(), SendError> {
        (self.0)(envelope)
    }
}

impl<F> fmt::Debug for ReceiverFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReceiverFn(..)")
    }
}

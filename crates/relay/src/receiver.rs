//! The trait of receivers of packages.

use ganger_proc_api::{Package, SendError, SendErrorKind};
use std::fmt;
use std::sync::{Arc, Weak};

/// The target of this crate's tracing events.
pub(crate) const TARGET: &str = "ganger::relay";

/// Takes packages, or gives them back.
///
/// Hosts, nodes, routers and links to other nodes are all receivers, so each can stand behind
/// another.
///
/// ```
/// use ganger_proc_api::{Message, Package, SendError, SendErrorKind};
/// use ganger_relay::PackageReceiver;
///
/// /// A host with mailboxes that are always full.
/// struct Busy;
///
/// impl PackageReceiver for Busy {
///     fn send(&self, package: Package) -> Result<(), SendError> {
///         Err(SendError::new(SendErrorKind::Full, package))
///     }
/// }
///
/// let target = "{busy|1}".parse()?;
/// let error = Busy.send(Message::new("job", 7_u64).to(target)).unwrap_err();
/// assert_eq!(error.kind, SendErrorKind::Full);
/// let package = error.into_package(); // can be sent again later
/// assert_eq!(package.message.topic, "job");
/// # Ok::<(), ganger_proc_api::ParsePidError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't receive packages",
    note = "implement `PackageReceiver` for it, with `send`, or make one of a closure by \
            `receiver_fn`"
)]
pub trait PackageReceiver: Send + Sync {
    /// Takes the package, or returns it unchanged inside the error.
    ///
    /// The implementation must not block. Packages from one thread to one PID must arrive in the
    /// order of their sends. The caller holds no lock, so an implementation may itself send. It may
    /// also add and remove hosts, peers and channels anywhere, even itself.
    ///
    /// # Errors
    /// [`SendError`] with the package inside. Its kind tells why the package was refused.
    fn send(&self, package: Package) -> Result<(), SendError>;

    /// Takes a control message, as [`send`](Self::send) does. Control messages overtake other
    /// messages in the target's mailbox.
    ///
    /// By default, `send` takes it as an ordinary message. A receiver that passes packages on
    /// should implement this method, and pass control messages on as control messages. The two
    /// kinds have no order between them.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    fn send_control(&self, package: Package) -> Result<(), SendError> {
        self.send(package)
    }
}

impl<R: PackageReceiver + ?Sized> PackageReceiver for Arc<R> {
    fn send(&self, package: Package) -> Result<(), SendError> {
        (**self).send(package)
    }

    fn send_control(&self, package: Package) -> Result<(), SendError> {
        (**self).send_control(package)
    }
}

/// Refuses with [`SendErrorKind::Stopping`] if the receiver has been dropped.
///
/// Two routers of one program that are each other's peers keep each other alive. Let one of them
/// hold the other as a `Weak`.
impl<R: PackageReceiver> PackageReceiver for Weak<R> {
    fn send(&self, package: Package) -> Result<(), SendError> {
        match self.upgrade() {
            Some(receiver) => receiver.send(package),
            None => Err(refused(SendErrorKind::Stopping, package)),
        }
    }

    fn send_control(&self, package: Package) -> Result<(), SendError> {
        match self.upgrade() {
            Some(receiver) => receiver.send_control(package),
            None => Err(refused(SendErrorKind::Stopping, package)),
        }
    }
}

impl<R: PackageReceiver + ?Sized> PackageReceiver for &R {
    fn send(&self, package: Package) -> Result<(), SendError> {
        (**self).send(package)
    }

    fn send_control(&self, package: Package) -> Result<(), SendError> {
        (**self).send_control(package)
    }
}

/// A receiver that calls a function: see [`receiver_fn`].
#[derive(Clone, Copy)]
pub struct ReceiverFn<F>(F);

/// Returns a receiver that calls `function` with every package, on the sender's thread.
///
/// ```
/// use ganger_proc_api::{Message, Package};
/// use ganger_relay::{PackageReceiver, receiver_fn};
///
/// let printer = receiver_fn(|package: Package| {
///     println!("{}: {:?}", package.target, package.message);
///     Ok(())
/// });
/// printer.send(Message::new("hello", ()).to("{printer|1}".parse()?)).unwrap();
/// # Ok::<(), ganger_proc_api::ParsePidError>(())
/// ```
pub const fn receiver_fn<F>(function: F) -> ReceiverFn<F>
where
    F: Fn(Package) -> Result<(), SendError> + Send + Sync,
{
    ReceiverFn(function)
}

impl<F> PackageReceiver for ReceiverFn<F>
where
    F: Fn(Package) -> Result<(), SendError> + Send + Sync,
{
    fn send(&self, package: Package) -> Result<(), SendError> {
        (self.0)(package)
    }
}

impl<F> fmt::Debug for ReceiverFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReceiverFn(..)")
    }
}

/// How a receiver passes a package on: [`PackageReceiver::send`] or
/// [`PackageReceiver::send_control`].
pub(crate) type PassOn = fn(&dyn PackageReceiver, Package) -> Result<(), SendError>;

/// Returns the error that refuses `package`, and emits a tracing event.
#[cold]
pub(crate) fn refused(kind: SendErrorKind, package: Package) -> SendError {
    tracing::debug!(target: TARGET, pid = %package.target, reason = %kind, "package refused");
    SendError::new(kind, package)
}

//! Sends that wait for room behind the router: of a thread, and of a task.
//!
//! **Problem.** A link to another node has a queue with a bound, and refuses with `Full`. The
//! scheduler has no place for a sender to wait for the queue of a link.
//!
//! **Rejected.** Handing the message over to the router until it has room: each link would need
//! what a mailbox has, and a message taken back would have to be found in it.
//!
//! **Protocol.**
//! 1. *Sender*: sends. When the message comes back with `Full`, the sender leaves its waker with
//!    the router, waits, and sends again. A router that takes no waker has the sender refused, at
//!    once.
//! 2. *Router*: calls the waker when there is room, or a send would be refused for another reason;
//!    at once, if that is so already.
//!
//! **Proof sketch.** The sender sleeps only behind a waker that was left after the refusal. Room
//! that has come between the two wakes it at once.

use crate::base::clock::Deadline;
use crate::blocking::{block_if_replaced, may_wait};
use crate::probe::{Decide, Decider};
use crate::runtime::local;
use crate::runtime::shared::Shared;
use ganger_proc_api::{Envelope, SendError, SendErrorKind};
use ganger_sync::Parker;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

impl Shared {
    /// Routes an envelope, and blocks until the router has room for it, or `timeout` has passed.
    #[cold]
    #[cfg_attr(feature = "sim", track_caller)]
    pub(super) fn route_within(
        self: &Arc<Self>,
        envelope: Envelope,
        timeout: Option<Duration>,
    ) -> Result<(), SendError> {
        match self.route(envelope) {
            Err(refused) if refused.kind == SendErrorKind::Full => {
                self.await_room(refused.into_envelope(), timeout)
            }
            result => result,
        }
    }

    /// Waits for room as [`route_within`](Self::route_within) does, for an envelope that the router
    /// has refused.
    #[cfg_attr(feature = "sim", track_caller)]
    pub(super) fn await_room(
        self: &Arc<Self>,
        mut envelope: Envelope,
        timeout: Option<Duration>,
    ) -> Result<(), SendError> {
        if timeout == Some(Duration::ZERO) {
            return Err(SendError::new(SendErrorKind::Timeout, envelope));
        }
        if !may_wait() {
            return Err(SendError::new(SendErrorKind::Full, envelope));
        }
        Decider::refuse_to_block("a send that waits for room", "`send`, or `send_async`");
        let thread = Arc::new(Parker::new());
        let waker = Waker::from(Arc::clone(&thread));
        let own = local::own_process();
        let own = own.as_ref();
        // The wait of a step ends with its process.
        let _waits = own.map(|own| {
            let steps = &own.shared.rooms.waiting_steps;
            steps.enter(own.pid().id(), waker.clone())
        });
        let end = timeout.map(Deadline::after);
        loop {
            if let Some(own) = own.filter(|own| own.state.is_called_back()) {
                // A stop cancels all.
                let kind = if own.shared.shutdown.is_stopping() {
                    SendErrorKind::Stopping
                } else {
                    SendErrorKind::Cancelled
                };
                return Err(SendError::new(kind, envelope));
            }
            let left = end.map(Deadline::remaining);
            if left == Some(Duration::ZERO) {
                return Err(SendError::new(SendErrorKind::Timeout, envelope));
            }
            let mut has_waited = false;
            if self.awaits_room(&envelope, waker.clone()) {
                has_waited = block_if_replaced(|| match left {
                    None => thread.park(),
                    Some(left) => _ = thread.park_timeout(left),
                });
            }
            envelope = match self.route(envelope) {
                Err(refused) if has_waited && refused.kind == SendErrorKind::Full => {
                    refused.into_envelope()
                }
                result => return result,
            };
        }
    }

    /// Returns whether the router calls the waker when it has room for the envelope.
    pub(super) fn awaits_room(&self, envelope: &Envelope, waker: Waker) -> bool {
        let target = envelope.target;
        let router = self.router().filter(|_| !self.is_local(target));
        router.is_some_and(|router| router.room(target, waker))
    }
}

//! The process, or the router, to which an envelope goes.

use crate::base::contain::log;
use crate::probe::{Carry, Cause};
use crate::process::remote::Remote;
use crate::runtime::cell::Task;
use crate::runtime::item;
use crate::runtime::item::Item;
use crate::runtime::local;
use crate::runtime::shared::Shared;
use crate::send::delivery::Accepted;
use ganger_mpsc::Single;
use ganger_proc_api::internal::Hop;
use ganger_proc_api::{
    CancelReason, Envelope, EnvelopeReceiver, NotFound, Pid, SendError, SendErrorKind,
};
use std::sync::Arc;
use tracing::Level;

/// Passes an envelope to a receiver for other hosts.
type PassOn = fn(&dyn EnvelopeReceiver, Envelope) -> Result<(), SendError>;

/// Clones the value: the lints know of a concrete type whether it is cheaper to copy.
fn again<T: Clone>(value: Option<&T>) -> Option<T> {
    value.cloned()
}

impl Shared {
    /// Returns whether the PID belongs to this scheduler.
    pub(crate) fn is_local(&self, pid: Pid) -> bool {
        pid.host() == self.host && (pid.node().is_none() || pid.node() == self.node)
    }

    /// Returns the PID as the scheduler knows it: without the node, if the node is the scheduler's
    /// own.
    pub(crate) fn canonical(&self, pid: Pid) -> Pid {
        if pid.node() == self.node {
            pid.with_node(None)
        } else {
            pid
        }
    }

    /// Returns the remote and the canonical PID, where the PID is of another scheduler.
    #[cold]
    #[inline(never)]
    pub(crate) fn elsewhere(&self, pid: Pid) -> Option<(&Arc<dyn Remote>, Pid)> {
        let remote = self.remote.get()?;
        (!self.is_local(pid)).then(|| (remote, self.canonical(pid)))
    }

    /// Returns the live process with this PID.
    pub(crate) fn find(&self, pid: Pid) -> Option<Task> {
        if self.is_local(pid) {
            self.census.registry.get(pid.id())
        } else {
            None
        }
    }

    /// Asks the process with this PID to finish.
    pub(crate) fn cancel(&self, pid: Pid, reason: CancelReason) -> Result<(), NotFound> {
        let Some(task) = self.find(pid) else {
            let elsewhere = self.elsewhere(pid).ok_or(NotFound { pid });
            return elsewhere.and_then(|(remote, pid)| remote.cancel(pid, reason));
        };
        task.cancel(reason).then_some(()).ok_or(NotFound { pid })
    }

    /// Lets the process with this PID take no further step.
    pub(crate) fn terminate(&self, pid: Pid) -> Result<(), NotFound> {
        let Some(task) = self.find(pid) else {
            let elsewhere = self.elsewhere(pid).ok_or(NotFound { pid });
            return elsewhere.and_then(|(remote, pid)| remote.terminate(pid));
        };
        task.terminate().then_some(()).ok_or(NotFound { pid })
    }

    /// Sends an envelope to a process of this scheduler, or on to the router.
    pub(crate) fn route(self: &Arc<Self>, envelope: Envelope) -> Result<(), SendError> {
        if self.is_local(envelope.target) {
            return self.deliver_here(envelope);
        }
        self.pass_out(envelope, |to, envelope| to.send(envelope))
    }

    /// Routes a control message as [`route`](Self::route) does others.
    pub(crate) fn route_control(&self, envelope: Envelope) -> Result<(), SendError> {
        if self.is_local(envelope.target) {
            return self.deliver_control(envelope);
        }
        self.pass_out(envelope, |to, envelope| to.send_control(envelope))
    }

    /// Returns the receiver of envelopes for other hosts and nodes.
    #[cold]
    #[inline(never)]
    pub(crate) fn router(&self) -> Option<&dyn EnvelopeReceiver> {
        let router = self.config.router.as_ref();
        router.or_else(|| self.late_router.get()).map(|it| &**it)
    }

    /// Passes envelopes for other hosts to the router.
    fn pass_out(&self, envelope: Envelope, send: PassOn) -> Result<(), SendError> {
        let target = envelope.target;
        let Some(router) = self.router() else {
            return Err(SendError::new(self.unroutable(target), envelope));
        };
        let Some(_hop) = Hop::between_hosts() else {
            log(Level::WARN, || {
                tracing::warn!(
                    target: "ganger::sched", host = %self.host, pid = %target,
                    "routers pass an envelope in a circle"
                );
            });
            return Err(SendError::new(self.unroutable(target), envelope));
        };
        send(router, envelope)
    }

    /// Sends an envelope to a process of this scheduler.
    pub(crate) fn deliver(self: &Arc<Self>, envelope: Envelope) -> Result<(), SendError> {
        if self.is_local(envelope.target) {
            self.deliver_here(envelope)
        } else {
            Err(SendError::new(self.unroutable(envelope.target), envelope))
        }
    }

    /// Delivers as [`deliver`](Self::deliver) does, for a target of this scheduler.
    fn deliver_here(self: &Arc<Self>, envelope: Envelope) -> Result<(), SendError> {
        let id = envelope.target.id();
        // The message is in its node before the look-up, which the end of the process waits for.
        let message = item::of_message(envelope.message);
        // So is its cause, kept by this thread meanwhile: its drop may call foreign code.
        let cause = self.carrier().cause();
        local::with_either(self, |queue| {
            match self.put(id, again(cause.as_ref()), message) {
                Ok(None) => {}
                Ok(Some(token)) => self.schedule_on(queue, token),
                Err((kind, message)) => {
                    return Err(item::refused(kind, message, &envelope.target));
                }
            }
            Ok(())
        })
    }

    /// Puts a message into the process with this id: see
    /// [`ProcessCell::accept`](crate::runtime::cell::ProcessCell::accept).
    fn put(&self, id: u64, mut cause: Option<Cause>, message: Single<Item>) -> Accepted {
        let mut message = Some(message);
        let put = self.census.registry.read(id, |task| {
            let message = message.take();
            let message = message.unwrap_or_else(|| unreachable!("the registry calls this once"));
            if task.accepts.get().is_some()
                && let Some(kind) = item::message(&message).and_then(|it| task.accepts.refuses(it))
            {
                return Err((kind, message));
            }
            task.accept(cause.take(), message)
        });
        match (put, message) {
            (Some(put), _) => put,
            (None, Some(message)) => Err((self.unknown(), message)),
            (None, None) => unreachable!("the registry keeps no message"),
        }
    }

    /// Sends a control message to a process of this scheduler.
    pub(crate) fn deliver_control(&self, envelope: Envelope) -> Result<(), SendError> {
        let Envelope { target, message } = envelope;
        let (kind, message) = if !self.is_local(target) {
            (self.unroutable(target), message)
        } else if let Some(task) = self.census.registry.get(target.id()) {
            match task.deliver_control(message) {
                Ok(()) => return Ok(()),
                Err(refused) => refused,
            }
        } else {
            (self.unknown(), message)
        };
        Err(SendError::new(kind, message.to(target)))
    }

    /// Tells why a PID of this scheduler has no process.
    fn unknown(&self) -> SendErrorKind {
        if self.shutdown.is_halted() {
            SendErrorKind::Stopping
        } else {
            SendErrorKind::NotFound
        }
    }

    fn unroutable(&self, target: Pid) -> SendErrorKind {
        if target.node().is_none() || target.node() == self.node {
            SendErrorKind::HostNotFound
        } else {
            SendErrorKind::NodeNotFound
        }
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;

//! The world beyond a simulated scheduler: its node, a router with peers, and a link to them. The
//! link refuses or delays envelopes.

use crate::faults::LATE;
use crate::timers::SimClock;
use ganger_proc_api::{
    Envelope, EnvelopeReceiver, NameError, NodeName, Pid, SendError, SendErrorKind,
};
use ganger_relay::{Node, Router};
use ganger_sched::internal::sim;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The node of the only scheduler of a run.
pub(crate) const NODE: &str = "simulated";
/// The scheduler's host name.
pub(crate) const HOST: &str = "sim";

pub(crate) struct Network {
    pub(crate) router: Arc<Router>,
    pub(crate) way: Way,
    pub(crate) clock: SimClock,
}

/// The link between the scheduler and the router.
#[derive(Clone)]
pub(crate) struct Way(Arc<Inner>);

struct Inner {
    to: Arc<Router>,
    clock: SimClock,
    traffic: Mutex<Traffic>,
}

/// Envelopes of the same sender, receiver and kind. They stay in order.
type Stream = (Option<Pid>, Pid, bool);

#[derive(Default)]
struct Traffic {
    /// How many envelopes are on their way, and when the last of them arrives.
    late: HashMap<Stream, (usize, Duration)>,
    returned: Vec<SendError>,
}

impl Network {
    pub(crate) fn new(node: &str) -> Result<Self, NameError> {
        let clock = SimClock::default();
        let router = Arc::new(Router::new(Arc::new(Node::new(NodeName::new(node)?))));
        let way = Way(Arc::new(Inner {
            to: Arc::clone(&router),
            clock: clock.clone(),
            traffic: Mutex::default(),
        }));
        Ok(Self { router, way, clock })
    }
}

impl Way {
    /// Takes the envelopes refused after a delay, since the last call.
    pub(crate) fn take_returned(&self) -> Vec<SendError> {
        std::mem::take(&mut self.0.traffic().returned)
    }

    fn send_on(&self, envelope: Envelope, is_control: bool) -> Result<(), SendError> {
        if sim::happens("envelope is refused") {
            let kinds = [
                SendErrorKind::Full,
                SendErrorKind::HostNotFound,
                SendErrorKind::NodeNotFound,
            ];
            let kind = kinds[sim::pick(kinds.len())];
            sim::tell(format!(
                "fault: an envelope for {} is refused: {kind}",
                envelope.target
            ));
            return Err(SendError::new(kind, envelope));
        }
        let is_late = sim::happens("envelope is late");
        let inner = &self.0;
        let stream = (envelope.message.source, envelope.target, is_control);
        let before = inner.traffic().late.get(&stream).copied();
        if before.is_none() && !is_late {
            return inner.arrive(envelope, is_control);
        }
        let (count, last) = before.unwrap_or_default();
        let micros = usize::try_from(LATE.as_micros()).unwrap_or(usize::MAX);
        let delay = if is_late { sim::pick(micros) as u64 } else { 0 };
        if is_late {
            let delay = Duration::from_micros(delay);
            sim::tell(format!(
                "fault: an envelope for {} is {delay:?} late",
                envelope.target
            ));
        }
        let now = inner.clock.now();
        let due = now.saturating_add(Duration::from_micros(delay)).max(last);
        inner.traffic().late.insert(stream, (count + 1, due));
        let way = Arc::clone(inner);
        inner.clock.after(due.saturating_sub(now), move || {
            way.leave(stream);
            if let Err(error) = way.arrive(envelope, is_control) {
                way.traffic().returned.push(error);
            }
        });
        Ok(())
    }
}

impl Inner {
    fn arrive(&self, envelope: Envelope, is_control: bool) -> Result<(), SendError> {
        if is_control {
            self.to.send_control(envelope)
        } else {
            self.to.send(envelope)
        }
    }

    /// Notes the arrival of an envelope.
    fn leave(&self, stream: Stream) {
        let mut traffic = self.traffic();
        if let Some((count, _)) = traffic.late.get_mut(&stream) {
            *count -= 1;
            if *count == 0 {
                traffic.late.remove(&stream);
            }
        }
    }

    fn traffic(&self) -> MutexGuard<'_, Traffic> {
        self.traffic.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EnvelopeReceiver for Way {
    fn send(&self, envelope: Envelope) -> Result<(), SendError> {
        self.send_on(envelope, false)
    }

    fn send_control(&self, envelope: Envelope) -> Result<(), SendError> {
        self.send_on(envelope, true)
    }
}

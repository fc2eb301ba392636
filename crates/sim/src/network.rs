//! The world beyond a simulated scheduler: its node, a router with peers, and a link to them that
//! refuses or delays envelopes.

use crate::faults::LATE;
use crate::rt::Rt;
use crate::timers::SimClock;
use ganger_proc_api::{
    Envelope, EnvelopeReceiver, HostName, NameError, NodeName, Pid, SendError, SendErrorKind,
};
use ganger_relay::{Node, Router};
use ganger_sched::internal::sim;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The node of the scheduler.
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

/// Envelopes of one sender for one receiver, of one kind. They stay in order.
type Stream = (Option<Pid>, Pid, bool);

#[derive(Default)]
struct Traffic {
    /// How many envelopes are on their way, and when the last one arrives.
    late: HashMap<Stream, (usize, Duration)>,
    returned: Vec<SendError>,
}

/// A host or peer that disappears for a while.
#[derive(Clone, Copy)]
enum Place {
    Host(HostName),
    Peer(NodeName),
}

impl Network {
    pub(crate) fn new() -> Result<Self, NameError> {
        let clock = SimClock::default();
        let router = Arc::new(Router::new(Arc::new(Node::new(NodeName::new(NODE)?))));
        let way = Way(Arc::new(Inner {
            to: Arc::clone(&router),
            clock: clock.clone(),
            traffic: Mutex::default(),
        }));
        Ok(Self { router, way, clock })
    }
}

impl Way {
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

    /// One envelope fewer is on its way.
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

impl Rt<'_> {
    /// The router behind the scheduler. Its local node `simulated` has the scheduler as its host
    /// `sim`; a test adds other hosts, and peers.
    ///
    /// Envelopes that the scheduler's processes send through it may be refused or late, and any of
    /// its hosts and peers may disappear for a while: see [`Faults`](crate::Faults). Envelopes that
    /// the test sends to the router itself are neither refused nor late.
    ///
    /// The router is unused when the simulation's [`builder`](crate::Sim::builder) sets another
    /// one.
    #[must_use]
    pub fn router(&self) -> &Arc<Router> {
        &self.network.router
    }

    /// The envelopes that came late and were then refused, since the last call. As in a network,
    /// their senders are not told.
    #[must_use]
    pub fn returned(&self) -> Vec<SendError> {
        std::mem::take(&mut self.network.way.0.traffic().returned)
    }

    /// Removes some host or peer for a while; returns its name.
    pub(crate) fn lose_a_place(&self) -> Option<&'static str> {
        let router = self.router();
        let hosts = router.local().hosts().into_iter().map(Place::Host);
        let peers = router.peers().into_iter().map(Place::Peer);
        let places: Vec<_> = hosts.chain(peers).collect();
        if places.is_empty() {
            return None;
        }
        let place = places[self.choose_for("place", places.len())];
        let micros = usize::try_from(LATE.as_micros()).unwrap_or(usize::MAX);
        let away = Duration::from_micros(self.choose_for("away for", micros) as u64);
        let receiver = place.remove(router)?;
        let router = Arc::clone(router);
        // Another receiver may have taken the name by then; `add` then fails, which is fine.
        self.clock.after(away, move || place.add(&router, receiver));
        Some(place.name())
    }
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Self::Host(host) => host.as_str(),
            Self::Peer(peer) => peer.as_str(),
        }
    }

    fn remove(self, router: &Router) -> Option<Arc<dyn EnvelopeReceiver>> {
        match self {
            Self::Host(host) => router.local().remove_host(host),
            Self::Peer(peer) => router.remove_peer(peer),
        }
    }

    fn add(self, router: &Router, receiver: Arc<dyn EnvelopeReceiver>) {
        drop(match self {
            Self::Host(host) => router.local().add_host(host, receiver),
            Self::Peer(peer) => router.add_peer(peer, receiver),
        });
    }
}

//! The network of a simulated scheduler, for its test, with hosts and peers that disappear.

use crate::faults::LATE;
use crate::moves::Core;
use crate::rt::Rt;
use crate::seat::Seat;
use ganger_proc_api::{EnvelopeReceiver, HostName, NodeName, SendError};
use ganger_relay::Router;
use std::sync::Arc;
use std::time::Duration;

/// A host or peer that disappears for a while.
#[derive(Clone, Copy)]
enum Place {
    Host(HostName),
    Peer(NodeName),
}

impl Rt<'_> {
    /// Returns the router behind the scheduler. Its local node `simulated` has the scheduler as its
    /// host `sim`; a test adds other hosts, and peers.
    ///
    /// The router may refuse or delay envelopes from the scheduler's processes, and any of its
    /// hosts and peers may disappear for a while: see [`Faults`](crate::Faults). Envelopes from the
    /// test to the router itself are neither refused nor late.
    ///
    /// The router is unused when the simulation's [`builder`](crate::Sim::builder) sets another
    /// router.
    #[must_use]
    pub fn router(&self) -> &Arc<Router> {
        &self.seat.network.router
    }

    /// Takes the envelopes refused after a delay, since the last call. As in a network, their
    /// senders do not hear of the refusal.
    #[must_use]
    pub fn returned(&self) -> Vec<SendError> {
        self.seat.network.way.take_returned()
    }
}

impl Core<'_> {
    /// Removes some host or peer for a while; returns its name.
    pub(crate) fn lose_a_place(&self, seat: &Seat<'_>) -> Option<&'static str> {
        let router = &seat.network.router;
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
        // Another receiver may have taken the name by then; `add` then fails, and the name is in
        // use.
        seat.clock.after(away, move || place.add(&router, receiver));
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

//! Places beyond the scheduler, and envelopes to them.

use crate::calls::{come_back, number_in};
use crate::notes::{Call, Sent};
use crate::plan::{Far, Place};
use crate::world::World;
use ganger_proc_api::{
    Envelope, EnvelopeReceiver, HostName, NodeName, Pid, SendError, SendErrorKind,
};
use ganger_sim::Rt;
use std::sync::{Arc, Weak};

pub(crate) const PLACES: [Place; 3] = [Place::Host, Place::Peer, Place::Elsewhere];

/// The receiver at a place: takes envelopes, or refuses them.
struct At(Weak<World>, Place);

impl At {
    fn take(&self, envelope: Envelope, is_control: bool) -> Result<(), SendError> {
        let Self(world, place) = self;
        let (Some(world), Some(number)) = (world.upgrade(), number_in(&envelope)) else {
            return Err(SendError::new(SendErrorKind::Stopping, envelope));
        };
        if world.state().spec.routes.is_refused(number) {
            return Err(SendError::new(SendErrorKind::Full, envelope));
        }
        let is_meant = envelope.target == target(*place) || *place == Place::Elsewhere;
        world.compare("the target of what arrives (R3)", Some(true), is_meant);
        world.tell("arrived", |spec| {
            spec.routes.arrived(number, *place, is_control)
        });
        Ok(())
    }
}

impl EnvelopeReceiver for At {
    fn send(&self, envelope: Envelope) -> Result<(), SendError> {
        self.take(envelope, false)
    }

    fn send_control(&self, envelope: Envelope) -> Result<(), SendError> {
        self.take(envelope, true)
    }
}

/// Returns the PID of envelopes for a place.
fn target(place: Place) -> Pid {
    let Ok(pid) = match place {
        Place::Host => "{simulated@other|7}",
        Place::Peer => "{there@far|7}",
        Place::Elsewhere => "{elsewhere@far|7}",
    }
    .parse() else {
        unreachable!("these are PIDs");
    };
    pid
}

/// Adds a place, or removes it.
pub(crate) fn set(world: &Arc<World>, rt: &Rt<'_>, place: Place, is_there: bool) {
    let expected = world.ask(
        |answer| Call::Place(place, is_there, answer),
        |spec| Ok(spec.routes.set(place, is_there)),
    );
    let found = if is_there {
        add(world, rt, place)
    } else {
        remove(rt, place)
    };
    world.reach("a place comes or goes (R3)", expected, found);
}

/// Adds a place; returns false for a known place.
pub(crate) fn add(world: &Arc<World>, rt: &Rt<'_>, place: Place) -> bool {
    let (router, at) = (rt.router(), Arc::new(At(Arc::downgrade(world), place)));
    match place {
        Place::Host => router.local().add_host(host(), at).is_ok(),
        Place::Peer => router.add_peer(peer(), at).is_ok(),
        Place::Elsewhere => router.set_fallback(at).is_none(),
    }
}

/// Removes a place; false when it was not there.
fn remove(rt: &Rt<'_>, place: Place) -> bool {
    let router = rt.router();
    let removed = match place {
        Place::Host => router.local().remove_host(host()),
        Place::Peer => router.remove_peer(peer()),
        Place::Elsewhere => router.clear_fallback(),
    };
    removed.is_some()
}

fn host() -> HostName {
    target(Place::Host).host()
}

fn peer() -> NodeName {
    target(Place::Peer)
        .node()
        .unwrap_or_else(|| unreachable!("a peer is a node"))
}

/// Sends an envelope to a place in the name of a process, by way of `through`.
pub(crate) fn send(
    world: &World,
    source: Pid,
    far: Far,
    through: impl FnOnce(Envelope) -> Result<(), SendError>,
) {
    let number = world.number();
    let expected = world.ask(
        |answer| Call::Far(number, far, answer),
        |spec| Ok(spec.routes.send(source, number, far)),
    );
    let envelope = Envelope::new(source, target(far.place), "far", number);
    let found = come_back(world, number, through(envelope));
    // A late envelope counts as accepted, even if it comes back.
    let expected = expected.filter(|_| found != Sent::Accepted);
    world.reach("a send far away (R2, R3)", expected, found);
    if found != Sent::Accepted {
        world.tell("comes back", |spec| spec.routes.came_back(number, found));
    }
}

/// Checks the envelopes back late.
pub(crate) fn look_at_returned(world: &World, rt: &Rt<'_>) {
    for error in rt.returned() {
        let found = Sent::refused(error.kind);
        let number = number_in(&error.into_envelope());
        world.reach("what comes back later (R2, R3)", None, found);
        world.tell("comes back later", |spec| {
            let number = number.ok_or("something else comes back")?;
            spec.routes.came_back(number, found)
        });
    }
}

//! No lock is held across a send or a drop: in these tests receivers and payloads use every part of
//! the router that called them.

use crate::common::*;
use ganger_proc_api::{Envelope, Message, Payload, SendError};
use ganger_relay::{ChannelHost, EnvelopeReceiver, Node, Router};
use std::sync::{Arc, Weak};

/// A router with a host, a peer, a fallback and a channel host, and a recorder to send to.
struct World {
    router: Router,
    channels: Arc<ChannelHost>,
    recorder: Arc<Recorder>,
}

/// More than the shards of a map, so each shard is locked for writing.
const MANY: u64 = 300;

impl World {
    fn new() -> Arc<Self> {
        let router = Router::new(Arc::new(Node::new(node("here"))));
        let channels = Arc::new(ChannelHost::new(node("here"), host("box")));
        let recorder = Recorder::new();
        router
            .local()
            .add_host(host("box"), channels.clone())
            .unwrap();
        router
            .local()
            .add_host(host("rec"), recorder.clone())
            .unwrap();
        router.add_peer(node("rec"), recorder.clone()).unwrap();
        Arc::new(Self {
            router,
            channels,
            recorder,
        })
    }

    /// Uses every operation, and leaves everything as before except for an envelope in the
    /// recorder.
    fn use_everything(&self) {
        let local = self.router.local();
        for n in 0..MANY {
            let name = format!("many-{n}");
            local.add_host(host(&name), self.recorder.clone()).unwrap();
            self.router
                .add_peer(node(&name), self.recorder.clone())
                .unwrap();
            let inbox = self.channels.open();
            self.router
                .send(Message::new("nested", ()).to(inbox.pid()))
                .unwrap();
            assert_eq!(inbox.close().len(), 1);
            local.remove_host(host(&name)).unwrap();
            self.router.remove_peer(node(&name)).unwrap();
        }
        assert!(local.hosts().contains(&host("rec")));
        assert!(self.router.peers().contains(&node("rec")));
        assert!(self.channels.attached().len() < 2);
        let fallback = self.router.set_fallback(self.recorder.clone());
        match fallback {
            Some(fallback) => self.router.set_fallback(fallback),
            None => self.router.clear_fallback(),
        };
        self.router.send(envelope("{rec|1}", 1)).unwrap();
    }
}

/// Uses every operation on each send and when dropped.
struct Reentrant(Weak<World>);

impl EnvelopeReceiver for Reentrant {
    fn send(&self, _envelope: Envelope) -> Result<(), SendError> {
        let world = self.0.upgrade().unwrap();
        world.use_everything();
        // The receiver removes itself as well, from every place where it may be.
        let (name, peer) = (host("reentrant"), node("reentrant"));
        if let Some(this) = world.router.local().remove_host(name) {
            world.router.local().add_host(name, this).unwrap();
        }
        if let Some(this) = world.router.remove_peer(peer) {
            world.router.add_peer(peer, this).unwrap();
        }
        Ok(())
    }
}

impl Drop for Reentrant {
    fn drop(&mut self) {
        if let Some(world) = self.0.upgrade() {
            world.use_everything();
        }
    }
}

fn reentrant(world: &Arc<World>) -> Arc<Reentrant> {
    Arc::new(Reentrant(Arc::downgrade(world)))
}

// pins: R3
#[test]
fn a_receiver_may_use_everything_that_it_was_called_through() {
    returns(|| {
        let world = World::new();
        let (router, name, peer) = (&world.router, host("reentrant"), node("reentrant"));
        router.local().add_host(name, reentrant(&world)).unwrap();
        router.add_peer(peer, reentrant(&world)).unwrap();
        router.set_fallback(reentrant(&world));
        for target in ["{reentrant|1}", "{reentrant@a|1}", "{unknown@a|1}"] {
            router.send(envelope(target, 1)).unwrap();
            assert_eq!(world.recorder.take_one("{rec|1}"), 1);
        }
    });
}

// pins: R3
#[test]
fn a_receiver_may_use_everything_when_it_is_dropped() {
    returns(|| {
        let world = World::new();
        let (router, name, peer) = (&world.router, host("reentrant"), node("reentrant"));
        router.local().add_host(name, reentrant(&world)).unwrap();
        drop(
            router
                .local()
                .add_host(name, reentrant(&world))
                .unwrap_err(),
        );
        assert_eq!(world.recorder.take_one("{rec|1}"), 1);
        drop(router.local().remove_host(name).unwrap());
        assert_eq!(world.recorder.take_one("{rec|1}"), 1);

        router.add_peer(peer, reentrant(&world)).unwrap();
        drop(router.add_peer(peer, reentrant(&world)).unwrap_err());
        assert_eq!(world.recorder.take_one("{rec|1}"), 1);
        drop(router.remove_peer(peer).unwrap());
        assert_eq!(world.recorder.take_one("{rec|1}"), 1);

        router.set_fallback(reentrant(&world));
        drop(router.set_fallback(reentrant(&world)).unwrap());
        assert_eq!(world.recorder.take_one("{rec|1}"), 1);
        drop(router.clear_fallback().unwrap());
        assert_eq!(world.recorder.take_one("{rec|1}"), 1);
    });
}

/// A receiver that takes itself out of the table; only the call keeps it alive.
struct Leaver(Reentrant);

impl EnvelopeReceiver for Leaver {
    fn send(&self, _envelope: Envelope) -> Result<(), SendError> {
        let world = self.0.0.upgrade().unwrap();
        drop(world.router.local().remove_host(host("leaver")).unwrap());
        assert!(world.recorder.take().is_empty(), "not dropped yet");
        Ok(())
    }
}

// pins: R3
#[test]
fn a_receiver_may_leave_during_its_own_send() {
    returns(|| {
        let world = World::new();
        let leaver = Arc::new(Leaver(Reentrant(Arc::downgrade(&world))));
        world
            .router
            .local()
            .add_host(host("leaver"), leaver)
            .unwrap();
        world.router.send(envelope("{leaver|1}", 1)).unwrap();
        assert_eq!(world.recorder.take_one("{rec|1}"), 1, "dropped once");
    });
}

// pins: R5
#[test]
fn a_payload_may_use_everything_when_a_receiver_frees_it() {
    returns(|| {
        let world = World::new();
        let inbox = world.channels.open();
        let payload = Payload::any(Reentrant(Arc::downgrade(&world)));
        let message = Message::new("heavy", payload);
        world.router.send(message.to(inbox.pid())).unwrap();
        drop(inbox);
        assert_eq!(world.recorder.take_one("{rec|1}"), 1);
    });
}

//! Signals in a simulation: those that the test raises.

use super::traffic::{Event, READS, Told, Traffic};
use super::world::World;
use crate::ready::Ready;
use std::io;
use std::mem;
use std::sync::{Arc, Weak};

/// One that is told of a signal.
pub(super) struct Watched {
    signal: i32,
    has_come: bool,
    ready: Weak<Ready>,
}

impl Traffic {
    /// Has the signal come as soon as the simulation moves.
    #[cfg_attr(not(unix), allow(dead_code, reason = "there are no signals"))]
    pub(super) fn raise(&mut self, signal: i32) {
        self.new.push((self.now, Event::Raised(signal)));
    }

    pub(super) fn arrive_signal(&mut self, signal: i32, told: &mut Vec<Told>) {
        for watched in self.signals.values_mut() {
            if watched.signal == signal {
                watched.has_come = true;
                told.push(Told(watched.ready.clone(), READS));
            }
        }
    }
}

/// A simulated signal.
#[cfg_attr(not(unix), allow(dead_code, reason = "there are no signals"))]
pub(crate) struct SimSignal {
    world: Arc<World>,
    id: u64,
}

#[cfg_attr(not(unix), allow(dead_code, reason = "there are no signals"))]
impl SimSignal {
    pub(crate) fn new(world: &Arc<World>, signal: i32) -> Self {
        let id = world.with(|traffic| {
            let id = traffic.signals.last_key_value().map_or(0, |(id, _)| id + 1);
            let watched = Watched {
                signal,
                has_come: false,
                ready: Weak::new(),
            };
            traffic.signals.insert(id, watched);
            id
        });
        let world = Arc::clone(world);
        Self { world, id }
    }

    fn with<R>(&self, f: impl FnOnce(&mut Watched) -> R) -> Option<R> {
        self.world
            .with(|traffic| traffic.signals.get_mut(&self.id).map(f))
    }

    pub(crate) fn watch(&self, ready: &Arc<Ready>) {
        self.with(|it| it.ready = Arc::downgrade(ready));
    }

    /// It would block when none has come.
    pub(crate) fn take(&self) -> io::Result<()> {
        match self.with(|it| mem::take(&mut it.has_come)) {
            Some(true) => Ok(()),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl Drop for SimSignal {
    fn drop(&mut self) {
        self.world.with(|traffic| traffic.signals.remove(&self.id));
    }
}

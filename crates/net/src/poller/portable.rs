//! The pollers of other systems, by the crate `polling`: an event for each time that a socket is
//! armed. An event disarms both sides, so that both are looked at.

use super::{Found, Lent, MOST, Sides};
use polling::{Event, Events};
use std::io;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A poller. One thread at a time waits.
#[derive(Debug)]
pub(crate) struct Poller {
    poller: polling::Poller,
    events: Mutex<Events>,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let most = NonZeroUsize::new(MOST).unwrap_or(NonZeroUsize::MIN);
        Ok(Self {
            poller: polling::Poller::new()?,
            events: Mutex::new(Events::with_capacity(most)),
        })
    }

    /// Has a socket in the poller for as long as it is open.
    pub(crate) fn add(&self, socket: Lent<'_>, id: u64) -> io::Result<()> {
        // SAFETY: the socket is removed before it is closed.
        unsafe { self.poller.add(&socket, Event::none(key(id))) }
    }

    /// Waits for a socket from now on, until the next event of it.
    pub(crate) fn arm(&self, socket: Lent<'_>, id: u64, wanted: Sides) -> io::Result<()> {
        let event = Event::new(key(id), wanted.read, wanted.write);
        self.poller.modify(socket, event)
    }

    /// Has a socket in the poller no longer.
    pub(crate) fn remove(&self, socket: Lent<'_>) {
        // One that is not there has never been added.
        let _ = self.poller.delete(socket);
    }

    /// Waits until a socket is ready, for that long at the most; may return early.
    pub(crate) fn wait(&self, timeout: Option<Duration>, found: &mut Vec<Found>) -> io::Result<()> {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.clear();
        match self.poller.wait(&mut events, timeout) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        found.extend(events.iter().map(|event| Found {
            id: event.key as u64,
            ready: Sides {
                read: true,
                write: true,
            },
            cuts_short: false,
        }));
        Ok(())
    }

    /// Ends the wait, or else the next one.
    pub(crate) fn notify(&self) {
        // It fails when the system is out of memory; the wait is over at its time then.
        let _ = self.poller.notify();
    }
}

/// On systems of 32 bits ids come again after 2^32 sockets.
#[allow(clippy::cast_possible_truncation, reason = "see there")]
fn key(id: u64) -> usize {
    id as usize
}

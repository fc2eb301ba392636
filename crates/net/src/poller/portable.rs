//! The pollers of other systems, by the crate `polling`: one event each time a socket is armed. An
//! event disarms both directions, so both are reported as ready.

use super::{Interest, IoEvent, Lent, MAX_EVENTS};
use polling::{Event, Events};
use std::io;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A poller. Only one thread at a time waits in the poller.
#[derive(Debug)]
pub(crate) struct Poller {
    poller: polling::Poller,
    events: Mutex<Events>,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let most = NonZeroUsize::new(MAX_EVENTS).unwrap_or(NonZeroUsize::MIN);
        Ok(Self {
            poller: polling::Poller::new()?,
            events: Mutex::new(Events::with_capacity(most)),
        })
    }

    /// Watches a socket while it is open.
    pub(crate) fn add(&self, socket: Lent<'_>, id: u64) -> io::Result<()> {
        // SAFETY: the socket is removed before it is closed.
        unsafe { self.poller.add(&socket, Event::none(key(id))) }
    }

    /// Asks for the next event of a socket.
    pub(crate) fn arm(&self, socket: Lent<'_>, id: u64, wanted: Interest) -> io::Result<()> {
        let event = Event::new(key(id), wanted.read, wanted.write);
        self.poller.modify(socket, event)
    }

    /// Stops watching a socket.
    pub(crate) fn remove(&self, socket: Lent<'_>) {
        // Fails if the socket was never added.
        let _ = self.poller.delete(socket);
    }

    /// Waits until a socket is ready, or the time is over; may return early.
    pub(crate) fn wait(
        &self,
        timeout: Option<Duration>,
        found: &mut Vec<IoEvent>,
    ) -> io::Result<()> {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.clear();
        match self.poller.wait(&mut events, timeout) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        let event = |event: Event| IoEvent::new(event.key as u64, Interest::BOTH);
        found.extend(events.iter().map(event));
        Ok(())
    }

    /// Ends the present wait, or the next wait if no thread waits now.
    pub(crate) fn notify(&self) {
        // Fails if the system is out of memory. The wait then ends at its timeout.
        let _ = self.poller.notify();
    }
}

/// Returns the key of a socket: on systems with 32 bits the keys repeat after 2^32 sockets.
#[allow(clippy::cast_possible_truncation, reason = "see above")]
fn key(id: u64) -> usize {
    id as usize
}

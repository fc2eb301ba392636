//! The poller of Linux: epoll, edge-triggered.

use super::{Interest, IoEvent, Lent, MAX_EVENTS};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// The id of the notifier. Sockets have other ids.
const NOTIFIER: u64 = 0;

/// A poller. Only one thread at a time waits in it.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
    /// An eventfd: each increment is an event.
    notifier: File,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let notifier = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let data = EventData::new_u64(NOTIFIER);
        epoll::add(&epoll, &notifier, data, EventFlags::IN | EventFlags::ET)?;
        let notifier = notifier.into();
        Ok(Self { epoll, notifier })
    }

    /// Watches a socket in both directions while it is open.
    pub(crate) fn add(&self, socket: Lent<'_>, id: u64) -> io::Result<()> {
        let reads = EventFlags::IN | EventFlags::PRI | EventFlags::RDHUP;
        let flags = reads | EventFlags::OUT | EventFlags::ET;
        Ok(epoll::add(
            &self.epoll,
            socket,
            EventData::new_u64(id),
            flags,
        )?)
    }

    /// Does nothing: epoll watches a socket from `add` on.
    #[allow(clippy::unused_self, reason = "other pollers need it")]
    pub(crate) fn arm(&self, _: Lent<'_>, _: u64, _: Interest) -> io::Result<()> {
        Ok(())
    }

    /// Stops watching a socket.
    pub(crate) fn remove(&self, socket: Lent<'_>) {
        // Fails if the socket was never added.
        let _ = epoll::delete(&self.epoll, socket);
    }

    /// Waits until a socket is ready, or the time is over; may return early.
    pub(crate) fn wait(
        &self,
        timeout: Option<Duration>,
        found: &mut Vec<IoEvent>,
    ) -> io::Result<()> {
        let is_unlimited = match self.wait_precisely(timeout) {
            Ok(is_unlimited) => is_unlimited,
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let none = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut events = [const { MaybeUninit::<Event>::uninit() }; MAX_EVENTS];
        match epoll::wait(&self.epoll, &mut events, (!is_unlimited).then_some(&none)) {
            Ok((events, _)) => {
                found.reserve(events.len());
                found.extend(events.iter().filter_map(Self::io_event));
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Waits for a limited time, in nanoseconds: `epoll_wait` itself counts milliseconds. Returns
    /// true if the time is unlimited, and the caller must wait.
    fn wait_precisely(&self, timeout: Option<Duration>) -> Result<bool, Errno> {
        let Some(timeout) = timeout else {
            return Ok(true);
        };
        if !timeout.is_zero()
            && let Ok(timeout) = Timespec::try_from(timeout)
        {
            poll(
                &mut [PollFd::new(&self.epoll, PollFlags::IN)],
                Some(&timeout),
            )?;
        }
        Ok(false)
    }

    fn io_event(event: &Event) -> Option<IoEvent> {
        let Event { flags, data } = *event;
        let broken = flags.intersects(EventFlags::HUP | EventFlags::ERR);
        let cuts_short = broken || flags.intersects(EventFlags::RDHUP | EventFlags::PRI);
        (data.u64() != NOTIFIER).then(|| IoEvent {
            id: data.u64(),
            ready: Interest {
                read: cuts_short || flags.contains(EventFlags::IN),
                write: broken || flags.contains(EventFlags::OUT),
            },
            cuts_short,
        })
    }

    /// Ends the present wait, or the next wait if no thread waits now.
    pub(crate) fn notify(&self) {
        // Fails if the counter is full. The increments before were events.
        let _ = (&self.notifier).write(&1_u64.to_ne_bytes());
    }

    /// Returns whether `notify` was called since the last call of this method.
    #[cfg(test)]
    pub(crate) fn take_notice(&self) -> bool {
        std::io::Read::read(&mut (&self.notifier), &mut [0; 8]).is_ok()
    }
}

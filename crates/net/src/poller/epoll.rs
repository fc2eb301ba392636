//! epoll, edge-triggered.

use super::{Found, Lent, MOST, Sides};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// No socket has this id.
const ALARM: u64 = 0;

/// A poller. One thread at a time waits.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
    /// A counter of the system. Each time that it grows is an event.
    alarm: File,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let alarm = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let data = EventData::new_u64(ALARM);
        epoll::add(&epoll, &alarm, data, EventFlags::IN | EventFlags::ET)?;
        let alarm = alarm.into();
        Ok(Self { epoll, alarm })
    }

    /// Watches a socket, in both directions, for as long as it is open.
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

    /// A socket is waited for. Here it is watched always.
    #[allow(clippy::unused_self, reason = "other pollers need it")]
    pub(crate) fn arm(&self, _: Lent<'_>, _: u64, _: Sides) -> io::Result<()> {
        Ok(())
    }

    /// Watches a socket no longer.
    pub(crate) fn remove(&self, socket: Lent<'_>) {
        // One that is not there has never been added.
        let _ = epoll::delete(&self.epoll, socket);
    }

    /// Waits until a socket is ready, for that long at the most; may return early.
    pub(crate) fn wait(&self, timeout: Option<Duration>, found: &mut Vec<Found>) -> io::Result<()> {
        let waits = match self.rest(timeout) {
            Ok(waits) => waits,
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let none = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut events = [const { MaybeUninit::<Event>::uninit() }; MOST];
        match epoll::wait(&self.epoll, &mut events, (!waits).then_some(&none)) {
            Ok((events, _)) => found.extend(events.iter().filter_map(Self::found)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Waits that long, if it is limited: epoll itself counts milliseconds. Returns whether the
    /// caller is to wait.
    fn rest(&self, timeout: Option<Duration>) -> Result<bool, Errno> {
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

    fn found(event: &Event) -> Option<Found> {
        let Event { flags, data } = *event;
        let broken = flags.intersects(EventFlags::HUP | EventFlags::ERR);
        let cuts_short = broken || flags.intersects(EventFlags::RDHUP | EventFlags::PRI);
        (data.u64() != ALARM).then(|| Found {
            id: data.u64(),
            ready: Sides {
                read: cuts_short || flags.contains(EventFlags::IN),
                write: broken || flags.contains(EventFlags::OUT),
            },
            cuts_short,
        })
    }

    /// Ends the wait, or else the next one.
    pub(crate) fn notify(&self) {
        // It fails when the counter is full, and that has been an event.
        let _ = (&self.alarm).write(&1_u64.to_ne_bytes());
    }

    /// Whether it has been notified since the last such look.
    #[cfg(test)]
    pub(crate) fn take_alarm(&self) -> bool {
        std::io::Read::read(&mut (&self.alarm), &mut [0; 8]).is_ok()
    }
}

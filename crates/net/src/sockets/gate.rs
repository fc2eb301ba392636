//! A limit of open connections: permits, and waits for a free permit or for the last one.

use crate::poller::{Direction, Interest};
use crate::reactor::{Reactor, ScheduledIo, Waiter};
use ganger_sync::sync::lock;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex};

/// Counts connections. Its read direction is ready while a permit is free, its write direction when
/// none is taken. The network does not know it: it has no deadline, and the halt does not end it.
pub(crate) struct Gate {
    reactor: Arc<Reactor>,
    io: ScheduledIo,
    most: usize,
    open: Mutex<usize>,
}

/// The place of a connection. Its drop frees the place.
pub(crate) struct Permit(Arc<Gate>);

impl Gate {
    pub(crate) fn new(reactor: &Arc<Reactor>, most: usize) -> Arc<Self> {
        Arc::new(Self {
            reactor: Arc::clone(reactor),
            io: ScheduledIo::new(0),
            most,
            open: Mutex::new(0),
        })
    }

    /// Waits for a free permit. Cancel-safe.
    pub(crate) async fn enter(self: &Arc<Self>) -> io::Result<Permit> {
        self.wait(Direction::Read, || self.try_enter()).await?;
        Ok(Permit(Arc::clone(self)))
    }

    /// Waits until no connection is open.
    pub(crate) async fn emptied(&self) -> io::Result<()> {
        let try_empty = || match self.open() {
            0 => Ok(()),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        };
        self.wait(Direction::Write, try_empty).await
    }

    /// Returns the number of open connections.
    pub(crate) fn open(&self) -> usize {
        *lock(&self.open)
    }

    async fn wait(
        &self,
        direction: Direction,
        mut attempt: impl FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        let mut waiter = Waiter::new(&self.io, direction);
        let arm = |_| Ok(());
        poll_fn(|context| {
            let (slot, attempt) = (waiter.slot(), &mut attempt);
            (self.reactor).poll_io(&self.io, direction, slot, context, arm, attempt)
        })
        .await
        .map(|_| ())
    }

    fn try_enter(&self) -> io::Result<()> {
        let mut open = lock(&self.open);
        if *open == self.most {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        *open += 1;
        Ok(())
    }

    fn leave(&self) -> usize {
        let mut open = lock(&self.open);
        *open -= 1;
        *open
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let open = self.0.leave();
        self.0.io.wake(Interest {
            read: true,
            write: open == 0,
        });
    }
}

//! Signals of the system.
//!
//! The action of a signal may do next to nothing: it writes a byte into a pair of sockets, whose
//! other end is in the poller. If the pair is full, the signal has been written before.

use crate::look::{About, SocketKind};
use crate::poller::{Direction, Lent};
use crate::reactor::Reactor;
use crate::sockets::socket::{Close, Closer, IoSource, Socket};
use crate::world::SimSignal;
use rustix::process::Signal as Named;
use signal_hook_registry::{FORBIDDEN, SigId, register, unregister};
use std::fmt;
use std::future::poll_fn;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// A kind of signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignalKind(i32);

impl SignalKind {
    /// SIGHUP: the terminal is gone, or a server must read its settings again.
    pub const HANGUP: Self = Self(Named::HUP.as_raw());
    /// SIGINT: Ctrl-C.
    pub const INTERRUPT: Self = Self(Named::INT.as_raw());
    /// SIGQUIT: Ctrl-\.
    pub const QUIT: Self = Self(Named::QUIT.as_raw());
    /// SIGTERM: the program must end.
    pub const TERMINATE: Self = Self(Named::TERM.as_raw());
    /// SIGCHLD: a child has ended, or was stopped.
    pub const CHILD: Self = Self(Named::CHILD.as_raw());
    /// SIGUSR1.
    pub const USER_1: Self = Self(Named::USR1.as_raw());
    /// SIGUSR2.
    pub const USER_2: Self = Self(Named::USR2.as_raw());

    /// Returns the signal with this number.
    #[must_use]
    pub const fn from_raw(number: i32) -> Self {
        Self(number)
    }

    /// Returns the number of the signal.
    #[must_use]
    pub const fn as_raw(self) -> i32 {
        self.0
    }

    pub(crate) fn named(self) -> io::Result<Named> {
        Named::from_named_raw(self.0).ok_or_else(|| {
            let text = format!("invalid signal: {} has no name", self.0);
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })
    }
}

/// Reports the signals that the program gets to a process.
///
/// From its creation on, and even after its drop, the signal loses its default action: a program
/// with a `Signal` of [`SignalKind::INTERRUPT`] goes on after Ctrl-C. Any number of `Signal`s may
/// listen to the same kind, and each reports it. Signals before the next `recv` count once.
///
/// ```
/// # use ganger_net::Net;
/// # use ganger_sched::Scheduler;
/// use ganger_net::{Signal, SignalKind};
/// use ganger_task::Cx;
///
/// # let scheduler = Scheduler::builder().driver(Net::new()?).build()?;
/// # scheduler.start()?;
/// let task = scheduler.spawn(async |_: Cx| {
///     let terminate = Signal::new(SignalKind::TERMINATE)?;
/// #   rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM)?;
///     terminate.recv().await?;
///     Ok("the program is to end")
/// })?;
/// # assert!(task.wait().is_done());
/// # Ok::<(), ganger_proc_api::BoxError>(())
/// ```
pub struct Signal(Arc<Socket<Raised>>);

enum Raised {
    System(Notice),
    Simulated(SimSignal),
}

/// Receives Ctrl-C in the terminal: SIGINT.
///
/// # Errors
/// As for [`Signal::new`].
pub fn ctrl_c() -> io::Result<Signal> {
    Signal::new(SignalKind::INTERRUPT)
}

/// Waits until the program is asked to end: by SIGINT, Ctrl-C in a terminal, or by SIGTERM, as
/// systems and containers send it.
///
/// From the first poll on, neither signal ends the program. Later signals change nothing: the
/// deadline of the stop limits its time, and SIGKILL is for impatient users. The same request may
/// arrive as two signals, from a terminal and from the parent of the program.
///
/// ```no_run
/// use ganger_net::{Net, shutdown_signal};
/// use ganger_sched::Scheduler;
/// use ganger_task::Cx;
/// use std::time::Duration;
///
/// let scheduler = Scheduler::builder().driver(Net::new()?).start()?;
/// let asked = scheduler.spawn(async |_: Cx| Ok(shutdown_signal().await?))?;
/// asked.wait().into_result()?;
/// scheduler.stop(Duration::from_secs(10))?; // All processes are asked to finish.
/// # Ok::<(), ganger_proc_api::BoxError>(())
/// ```
///
/// # Errors
/// As for [`Signal::new`], and for [`Signal::recv`].
pub async fn shutdown_signal() -> io::Result<()> {
    let (interrupt, terminate) = (ctrl_c()?, Signal::new(SignalKind::TERMINATE)?);
    let (mut interrupt, mut terminate) = (pin!(interrupt.recv()), pin!(terminate.recv()));
    poll_fn(|context| match interrupt.as_mut().poll(context) {
        Poll::Pending => terminate.as_mut().poll(context),
        asked => asked,
    })
    .await
}

impl Signal {
    /// Listens for a signal from now on.
    ///
    /// # Errors
    /// Errors of the system; `InvalidInput` for a signal that no program may handle, such as
    /// SIGKILL; `Other` on a thread without a network.
    pub fn new(kind: SignalKind) -> io::Result<Self> {
        let raised = match Reactor::current()?.world() {
            Some(world) => Raised::Simulated(SimSignal::new(world, kind.0)),
            None => Raised::System(Notice::of(kind)?),
        };
        Socket::new(raised).map(Self)
    }

    /// Waits for the next signal. Any number of processes may wait; a signal ends a single wait.
    ///
    /// **Cancel-safe**: a dropped wait has taken no signal.
    ///
    /// # Errors
    /// `TimedOut` after the deadline; `NotConnected` when it is closed, or the scheduler has
    /// halted.
    pub async fn recv(&self) -> io::Result<()> {
        let take = |it: &Raised| match it {
            Raised::System(notice) => notice.take(),
            Raised::Simulated(signal) => signal.take(),
        };
        self.0.wait(Direction::Read, take).await
    }

    /// Limits [`recv`](Self::recv) to this time from now: see
    /// [`Stream::set_read_deadline`](crate::Stream::set_read_deadline).
    pub fn set_deadline(&self, within: Option<Duration>) {
        self.0.set_deadline(Direction::Read, within);
    }

    /// Returns a handle that ends the waits from anywhere.
    #[must_use]
    pub fn closer(&self) -> Closer {
        Closer::of(&self.0)
    }

    /// Ends the waits: see [`Closer::close`].
    pub fn close(&self) {
        Close::close(&*self.0);
    }
}

impl IoSource for Raised {
    fn lent(&self) -> Option<Lent<'_>> {
        match self {
            Self::System(notice) => Some(notice.lent()),
            Self::Simulated(_) => None,
        }
    }

    fn about(&self) -> About {
        About::of(SocketKind::Signal)
    }

    fn watch(&self, id: u64) {
        if let Self::Simulated(signal) = self {
            signal.watch(id);
        }
    }
}

/// The pair of sockets that a signal writes to.
pub(crate) struct Notice {
    id: SigId,
    reads: UnixStream,
}

impl Notice {
    pub(crate) fn of(kind: SignalKind) -> io::Result<Self> {
        if FORBIDDEN.contains(&kind.0) {
            let text = format!("invalid signal: no program may handle {}", kind.0);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let (reads, writes) = UnixStream::pair()?;
        reads.set_nonblocking(true)?;
        writes.set_nonblocking(true)?;
        let act = move || {
            // Fails if the pair is full.
            let _ = rustix::io::write(&writes, &[0]);
        };
        // SAFETY: the action only calls `write` of the system, which is allowed in actions of
        // signals. The action neither allocates, nor locks, nor panics.
        let id = unsafe { register(kind.0, act) }?;
        Ok(Self { id, reads })
    }

    pub(crate) fn lent(&self) -> Lent<'_> {
        self.reads.as_fd()
    }

    /// Takes all signals so far. Fails with `WouldBlock` if none has come.
    pub(crate) fn take(&self) -> io::Result<()> {
        let mut buffer = [0; 64];
        let mut has_come = false;
        loop {
            match (&self.reads).read(&mut buffer) {
                Ok(64) => has_come = true,
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && has_come => {
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Notice {
    fn drop(&mut self) {
        unregister(self.id);
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Signal").field(&self.0).finish()
    }
}

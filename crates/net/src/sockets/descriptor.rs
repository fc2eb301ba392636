//! The system's descriptors of sockets, for settings without a call in this crate.
//!
//! `AsFd` and `AsSocket` promise a valid descriptor while the socket value lives. A
//! [`Closer`](crate::Closer) closes a socket from anywhere, so the user gets a duplicate instead.

use super::listener::{Listener, Listening};
use super::socket::{IoSource, Socket};
use super::stream::{Stream, Transport};
use super::udp::UdpSocket;
use crate::error;
use crate::poller::Lent;
use std::io;
#[cfg(unix)]
use std::os::fd::OwnedFd as Descriptor;
#[cfg(windows)]
use std::os::windows::io::OwnedSocket as Descriptor;

fn of<S: IoSource>(socket: &Socket<S>) -> io::Result<Descriptor> {
    let own = |lent: Lent<'_>| lent.try_clone_to_owned();
    socket.with(|it| it.lent().map_or_else(|| Err(error::no_system()), own))
}

impl<T: Transport> Stream<T> {
    /// Returns another descriptor of the system's socket, for settings without a call here. The
    /// descriptor has `AsFd` and `AsRawFd`, on Windows `AsSocket` and `AsRawSocket`, and its
    /// settings hold for this connection. Drop it soon: while it is open, the peer sees no end of
    /// this side.
    ///
    /// ```
    /// # use ganger_net::Net;
    /// # use ganger_sched::Scheduler;
    /// # use ganger_task::Cx;
    /// use ganger_net::{TcpListener, TcpStream};
    /// use socket2::SockRef;
    ///
    /// # let scheduler = Scheduler::builder().driver(Net::new()?).build()?;
    /// # scheduler.start()?;
    /// # let task = scheduler.spawn(async |_: Cx| {
    /// let listener = TcpListener::bind("127.0.0.1:0")?;
    /// let stream = TcpStream::connect(listener.local_addr()?).await?;
    /// SockRef::from(&stream.descriptor()?).set_ttl_v4(7)?;
    /// # Ok(())
    /// # })?;
    /// # task.wait().into_result()?;
    /// # Ok::<(), ganger_proc_api::BoxError>(())
    /// ```
    ///
    /// # Errors
    /// Errors of the system; `NotConnected` when this side has closed the connection; `Unsupported`
    /// in a simulation.
    pub fn descriptor(&self) -> io::Result<Descriptor> {
        of(&self.0)
    }
}

impl<L: Listening> Listener<L> {
    /// Returns another descriptor of the system's socket: see [`Stream::descriptor`]. While it is
    /// open, the system takes connections even after the close of this listener.
    ///
    /// # Errors
    /// The errors of [`Stream::descriptor`].
    pub fn descriptor(&self) -> io::Result<Descriptor> {
        of(&self.0)
    }
}

impl UdpSocket {
    /// Returns another descriptor of the system's socket: see [`Stream::descriptor`].
    ///
    /// # Errors
    /// The errors of [`Stream::descriptor`].
    pub fn descriptor(&self) -> io::Result<Descriptor> {
        of(&self.0)
    }
}

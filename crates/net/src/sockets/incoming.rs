//! A listener with a limit of open connections, and with a wait for their end.
//!
//! A connection counts from its accept until its socket is closed. Connections over the limit wait
//! in the system's queue.

use super::gate::Gate;
use super::listener::{Listener, Listening};
use super::socket::Closer;
use super::stream::Stream;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The first and the longest pause before the next try, when the system lacks descriptors or
/// memory. Each pause is twice as long as the pause before.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

/// A listener with a limit of open connections: see [`Listener::incoming`].
pub struct Incoming<L: Listening> {
    listener: Listener<L>,
    gate: Arc<Gate>,
}

impl<L: Listening> Listener<L> {
    /// Limits the number of open connections. The result can wait until all of them are closed.
    ///
    /// ```no_run
    /// # use ganger_proc_api::BoxError;
    /// use ganger_net::{TcpListener, TcpStream};
    /// use ganger_sched::ContextExt;
    /// use ganger_task::Cx;
    ///
    /// # async fn talk(stream: TcpStream) -> Result<(), BoxError> { Ok(()) }
    /// async fn server(cx: Cx) -> Result<(), BoxError> {
    ///     let incoming = TcpListener::bind("127.0.0.1:7000")?.incoming(10_000);
    ///     while let Ok(accepted) = cx.until_cancelled(incoming.accept()).await {
    ///         let (stream, _) = accepted?;
    ///         cx.spawn(async |_: Cx| talk(stream).await)?;
    ///     }
    ///     // A stop cancels all tasks: each `talk` ends in its own time.
    ///     incoming.drain().await;
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn incoming(self, most: usize) -> Incoming<L> {
        let gate = Gate::new(self.0.reactor(), most);
        Incoming {
            listener: self,
            gate,
        }
    }
}

impl<L: Listening> Incoming<L> {
    /// Accepts the next connection, as soon as fewer connections than the limit are open. If the
    /// system lacks a descriptor, memory or room for another socket, the call waits and tries
    /// again; a connection that can't be kept is closed. Cancel-safe, as [`Listener::accept`].
    ///
    /// # Errors
    /// All other errors of `accept`.
    pub async fn accept(&self) -> io::Result<(Stream<L::Transport>, L::Address)> {
        let mut pause = PAUSES.0;
        loop {
            let permit = self.gate.enter().await?;
            match self.listener.accept_as(Some(permit)).await {
                Err(error) if is_of_shortage(&error) => {
                    self.listener.0.pause(pause).await?;
                    pause = (2 * pause).min(PAUSES.1);
                }
                result => return result,
            }
        }
    }

    /// Returns the number of open connections. A waiting `accept` counts as a connection.
    #[must_use]
    pub fn open(&self) -> usize {
        self.gate.open()
    }

    /// Closes the listener, and waits until all of its connections are closed. The system refuses
    /// the connections in its queue.
    pub async fn drain(self) {
        self.listener.close();
        // The gate is never closed.
        let _ = self.gate.emptied().await;
    }

    /// Returns the listener.
    #[must_use]
    pub fn listener(&self) -> &Listener<L> {
        &self.listener
    }

    /// Returns a handle that closes the listener from anywhere. The connections stay open.
    #[must_use]
    pub fn closer(&self) -> Closer {
        self.listener.closer()
    }
}

impl<L: Listening> fmt::Debug for Incoming<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("open", &self.open())
            .finish_non_exhaustive()
    }
}

/// Returns whether the system lacks a resource for now.
fn is_of_shortage(error: &io::Error) -> bool {
    #[cfg(unix)]
    let is_so = {
        use rustix::io::Errno;
        let short = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS];
        Errno::from_io_error(error).is_some_and(|it| short.contains(&it))
    };
    #[cfg(windows)]
    let is_so = {
        const WSAEMFILE: i32 = 10024;
        const WSAENOBUFS: i32 = 10055;
        matches!(error.raw_os_error(), Some(WSAEMFILE | WSAENOBUFS))
    };
    // ENOSPC of a poller: this user has no room for another socket (epoll_ctl(2)).
    let kinds = [io::ErrorKind::OutOfMemory, io::ErrorKind::StorageFull];
    is_so || kinds.contains(&error.kind())
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::socket::{IoSource, Socket};
    use super::super::stream::Transport;
    use super::*;
    use crate::look::{About, SocketKind};
    use crate::net::Net;
    use crate::poller::Lent;
    use ganger_sched::Scheduler;
    use ganger_task::Cx;
    use rustix::io::Errno;
    use std::io::IoSlice;
    use std::net::Shutdown;
    use std::sync::Mutex;

    /// Fails in each of these ways, and then accepts.
    struct Fails(Mutex<Vec<Errno>>);

    struct Accepted;

    impl IoSource for Fails {
        fn lent(&self) -> Option<Lent<'_>> {
            None
        }

        fn about(&self) -> About {
            About::of(SocketKind::Call)
        }
    }

    impl IoSource for Accepted {
        fn lent(&self) -> Option<Lent<'_>> {
            None
        }

        fn about(&self) -> About {
            About::of(SocketKind::Call)
        }
    }

    impl Listening for Fails {
        type Transport = Accepted;
        type Address = ();

        fn accept(&self) -> io::Result<(Accepted, ())> {
            match self.0.lock().unwrap().pop() {
                Some(error) => Err(error.into()),
                None => Ok((Accepted, ())),
            }
        }
    }

    impl Transport for Accepted {
        fn read(&self, _: &mut [u8]) -> io::Result<usize> {
            Ok(0)
        }

        fn write(&self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn write_vectored(&self, _: &[IoSlice<'_>]) -> io::Result<usize> {
            Ok(0)
        }

        fn shutdown(&self, _: Shutdown) -> io::Result<()> {
            Ok(())
        }
    }

    /// Accepts twice, with a limit of one.
    fn accept_after(errors: Vec<Errno>) -> io::Result<()> {
        let net = Net::new()?;
        let builder = Scheduler::builder().driver(net.clone());
        let scheduler = builder.build().unwrap();
        scheduler.start().unwrap();
        let (send, outcome) = std::sync::mpsc::channel();
        let task = scheduler.spawn(async move |_: Cx| {
            let fails = Fails(Mutex::new(errors));
            let incoming = Listener(Socket::new(fails)?).incoming(1);
            let accepted = incoming.accept().await;
            let is_kept = accepted.is_ok();
            assert_eq!(incoming.open(), usize::from(is_kept));
            send.send(accepted.map(drop))?;
            // The first connection has freed its place.
            drop(incoming.accept().await?);
            assert_eq!(incoming.open(), 0);
            Ok(())
        });
        assert!(task.unwrap().wait().is_done());
        assert_eq!(net.sockets(), 0);
        outcome.recv().unwrap()
    }

    // pins: I7
    #[test]
    fn a_shortage_is_waited_out_and_counts_no_connection() {
        let short = [Errno::NOSPC, Errno::NOMEM, Errno::NOBUFS, Errno::MFILE];
        accept_after(short.to_vec()).unwrap();
    }

    // pins: I7
    #[test]
    fn a_connection_at_fault_is_passed_over_and_a_listener_at_fault_is_not() {
        accept_after(vec![Errno::CONNRESET, Errno::CONNABORTED]).unwrap();
        #[cfg(target_os = "linux")]
        accept_after(vec![Errno::PROTO, Errno::HOSTUNREACH]).unwrap();
        let error = accept_after(vec![Errno::INVAL]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}

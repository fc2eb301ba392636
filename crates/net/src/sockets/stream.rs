//! Connections that bytes go through.

use super::socket::{Close, Closer, IoSource, Socket};
use crate::poller::{Direction, Interest};
use crate::reactor::WaiterSlot;
use futures_io::{AsyncRead, AsyncWrite};
use std::fmt;
use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// The system takes so many slices at a time. A write of more would be short for no lack of room.
const MOST_SLICES: usize = 1024;

/// A connection: a [`TcpStream`](crate::TcpStream) or a [`UnixStream`](crate::UnixStream).
///
/// It is closed when it is dropped, with the process that owns it, for example. To give it to
/// another process, move it there: nothing is read that no operation has asked for, so nothing is
/// lost.
///
/// Its operations take it shared, and any number of them may wait. Bytes of several writes at a
/// time mix in no order. The traits of `futures-io` take it alone.
///
/// **Cancel-safe.** A wait for `read`, `peek` or `write` that is dropped has moved no byte. One for
/// `read_exact` or `write_all` may have moved some. A poll by the traits of `futures-io` that is
/// given up leaves its waker behind, until the next event or the close.
///
/// **Deadlines.** One a side: see [`set_read_deadline`](Self::set_read_deadline).
pub struct Stream<T: Transport>(pub(crate) Arc<Socket<T>>);

/// The transport of bytes in a connection: of a [`TcpStream`](crate::TcpStream) or a
/// [`UnixStream`](crate::UnixStream). Only this crate implements it.
pub trait Transport: IoSource {
    #[doc(hidden)]
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize>;
    #[doc(hidden)]
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;
    #[doc(hidden)]
    fn write_vectored(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize>;
    #[doc(hidden)]
    fn shutdown(&self, how: Shutdown) -> io::Result<()>;
}

impl<T: Transport> Stream<T> {
    pub(crate) fn socket(&self) -> &Arc<Socket<T>> {
        &self.0
    }

    /// Reads what is there, up to the length of the buffer; waits when nothing is. 0 means that the
    /// other side sends no more, or that the buffer is empty.
    ///
    /// # Errors
    /// Those of the system; `TimedOut` after the deadline; `NotConnected` when this side has closed
    /// the connection.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        read(&self.0, buffer).await
    }

    /// Fills the buffer.
    ///
    /// # Errors
    /// As for [`read`](Self::read), and `UnexpectedEof` when the other side ends before.
    pub async fn read_exact(&self, buffer: &mut [u8]) -> io::Result<()> {
        read_exact(&self.0, buffer).await
    }

    /// Writes as many of the bytes as there is room for; waits when there is none. Returns how
    /// many.
    ///
    /// # Errors
    /// As for [`read`](Self::read); mostly `BrokenPipe` when the other side is gone.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        write(&self.0, bytes).await
    }

    /// Writes all of the bytes.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub async fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        write_all(&self.0, bytes).await
    }

    /// Ends reading, writing or both: the other side sees an end after writes have ended.
    ///
    /// # Errors
    /// Those of the system; `Unsupported` for a pipe to a child: close it.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.with(|it| it.shutdown(how))?;
        // What waits here sees it, also where no poller tells: in a simulation.
        self.0.wake(Interest {
            read: how != Shutdown::Write,
            write: how != Shutdown::Read,
        });
        Ok(())
    }

    /// Reads end within that time from now, with an error of the kind `TimedOut`: those that wait,
    /// and all that begin until another deadline is set. `None` is no deadline.
    ///
    /// A time of zero ends what waits.
    pub fn set_read_deadline(&self, within: Option<Duration>) {
        self.0.set_deadline(Direction::Read, within);
    }

    /// As [`set_read_deadline`](Self::set_read_deadline), for writes.
    pub fn set_write_deadline(&self, within: Option<Duration>) {
        self.0.set_deadline(Direction::Write, within);
    }

    /// A half that reads and one that writes, for two owners. The connection is closed when both
    /// are dropped. When the half that writes is dropped, the other side sees an end. They have no
    /// buffers: see [`split_buffered`](Self::split_buffered).
    #[must_use]
    pub fn split(self) -> (ReadHalf<T>, WriteHalf<T>) {
        (ReadHalf(Arc::clone(&self.0)), WriteHalf(Some(self.0)))
    }

    /// What closes the connection from anywhere.
    #[must_use]
    pub fn closer(&self) -> Closer {
        Closer::of(&self.0)
    }

    /// Closes the connection: see [`Closer::close`].
    pub fn close(&self) {
        Close::close(&*self.0);
    }

    /// Closes the connection, and the other side is told that something is missing: see
    /// [`Closer::abort`].
    pub fn abort(&self) {
        Close::abort(&*self.0);
    }
}

/// The half of a [`Stream`] that reads.
pub struct ReadHalf<T: Transport>(Arc<Socket<T>>);

impl<T: Transport> ReadHalf<T> {
    /// See [`Stream::read`].
    ///
    /// # Errors
    /// As there.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        read(&self.0, buffer).await
    }

    /// See [`Stream::read_exact`].
    ///
    /// # Errors
    /// As there.
    pub async fn read_exact(&self, buffer: &mut [u8]) -> io::Result<()> {
        read_exact(&self.0, buffer).await
    }

    /// See [`Stream::set_read_deadline`].
    pub fn set_deadline(&self, within: Option<Duration>) {
        self.0.set_deadline(Direction::Read, within);
    }

    /// See [`Stream::closer`].
    #[must_use]
    pub fn closer(&self) -> Closer {
        Closer::of(&self.0)
    }

    /// The stream again, of its two halves.
    ///
    /// # Errors
    /// With both inside when they are of two streams.
    pub fn reunite(self, mut other: WriteHalf<T>) -> Result<Stream<T>, (Self, WriteHalf<T>)> {
        match other.0.take_if(|other| Arc::ptr_eq(&self.0, other)) {
            Some(socket) => Ok(Stream(socket)),
            None => Err((self, other)),
        }
    }
}

/// The half of a [`Stream`] that writes. When it is dropped, the other side sees an end.
pub struct WriteHalf<T: Transport>(
    /// None when it is a stream again.
    Option<Arc<Socket<T>>>,
);

impl<T: Transport> WriteHalf<T> {
    fn socket(&self) -> &Arc<Socket<T>> {
        // It is taken out by the call that consumes it.
        self.0.as_ref().expect("a half of a stream")
    }

    /// See [`Stream::write`].
    ///
    /// # Errors
    /// As there.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        write(self.socket(), bytes).await
    }

    /// See [`Stream::write_all`].
    ///
    /// # Errors
    /// As there.
    pub async fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        write_all(self.socket(), bytes).await
    }

    /// See [`Stream::set_write_deadline`].
    pub fn set_deadline(&self, within: Option<Duration>) {
        self.socket().set_deadline(Direction::Write, within);
    }

    /// See [`Stream::closer`].
    #[must_use]
    pub fn closer(&self) -> Closer {
        Closer::of(self.socket())
    }
}

impl<T: Transport> Drop for WriteHalf<T> {
    fn drop(&mut self) {
        if let Some(socket) = &self.0 {
            // It fails when the connection has ended already.
            let _ = end_writes(socket);
        }
    }
}

async fn read<T: Transport>(socket: &Socket<T>, buffer: &mut [u8]) -> io::Result<usize> {
    let room = buffer.len();
    socket
        .wait_bytes(Direction::Read, room, |it| it.read(buffer))
        .await
}

async fn read_exact<T: Transport>(socket: &Socket<T>, mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        match read(socket, buffer).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => buffer = &mut buffer[length..],
        }
    }
    Ok(())
}

async fn write<T: Transport>(socket: &Socket<T>, bytes: &[u8]) -> io::Result<usize> {
    let room = bytes.len();
    socket
        .wait_bytes(Direction::Write, room, |it| it.write(bytes))
        .await
}

async fn write_all<T: Transport>(socket: &Socket<T>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match write(socket, bytes).await? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            length => bytes = &bytes[length..],
        }
    }
    Ok(())
}

fn end_writes<T: Transport>(socket: &Socket<T>) -> io::Result<()> {
    match socket.with(|it| it.shutdown(Shutdown::Write)) {
        // The other side has broken the connection: there is nothing to end.
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
        // A pipe has no other end of writes.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            socket.close();
            Ok(())
        }
        result => result,
    }
}

fn poll_read<T: Transport>(
    socket: &Socket<T>,
    context: &mut Context<'_>,
    buffer: &mut [u8],
) -> Poll<io::Result<usize>> {
    let room = buffer.len();
    socket.poll_bytes(Direction::Read, WaiterSlot::Owner, context, room, |it| {
        it.read(buffer)
    })
}

fn poll_write<T: Transport>(
    socket: &Socket<T>,
    context: &mut Context<'_>,
    bytes: &[u8],
) -> Poll<io::Result<usize>> {
    let room = bytes.len();
    socket.poll_bytes(Direction::Write, WaiterSlot::Owner, context, room, |it| {
        it.write(bytes)
    })
}

fn poll_write_vectored<T: Transport>(
    socket: &Socket<T>,
    context: &mut Context<'_>,
    bytes: &[IoSlice<'_>],
) -> Poll<io::Result<usize>> {
    let bytes = &bytes[..bytes.len().min(MOST_SLICES)];
    let room = bytes.iter().map(|it| it.len()).sum();
    let operation = |it: &T| it.write_vectored(bytes);
    socket.poll_bytes(
        Direction::Write,
        WaiterSlot::Owner,
        context,
        room,
        operation,
    )
}

impl<T: Transport> AsyncRead for Stream<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        poll_read(&self.0, context, buffer)
    }
}

impl<T: Transport> AsyncRead for ReadHalf<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        poll_read(&self.0, context, buffer)
    }
}

macro_rules! writes {
    ($of:ident) => {
        impl<T: Transport> AsyncWrite for $of<T> {
            fn poll_write(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                poll_write(self.socket(), context, bytes)
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bytes: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                poll_write_vectored(self.socket(), context, bytes)
            }

            /// Nothing is kept here that could be flushed.
            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            /// Ends writes.
            fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(end_writes(self.socket()))
            }
        }

        impl<T: Transport> fmt::Debug for $of<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($of)).field(self.socket()).finish()
            }
        }
    };
}

writes!(Stream);
writes!(WriteHalf);

impl<T: Transport> fmt::Debug for ReadHalf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadHalf").field(&self.0).finish()
    }
}

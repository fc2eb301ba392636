//! Connections: streams of bytes in both directions, and their halves.

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

/// The most slices in a system call. More slices would make a write short without a lack of room.
const MOST_SLICES: usize = 1024;

/// A connection: a [`TcpStream`](crate::TcpStream) or a [`UnixStream`](crate::UnixStream).
///
/// The drop closes the connection: the end of the process that owns it, for example. To give the
/// connection to another process, move it there: no byte is read without an operation that asks for
/// it, so no byte is lost.
///
/// The operations take `&self`, and any number of them may wait. The bytes of concurrent writes mix
/// in any order. The traits of `futures-io` take `&mut self`.
///
/// **Cancel-safe.** A dropped `read`, `peek` or `write` has moved no byte; a dropped `read_exact`
/// or `write_all` may have moved some. An abandoned poll by the traits of `futures-io` leaves its
/// waker behind, until the next event or the close.
///
/// **Deadlines.** Each direction has its own: see [`set_read_deadline`](Self::set_read_deadline).
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

    /// Reads up to the length of the buffer; waits if no byte has come. 0 means that the peer has
    /// ended its writes, or that the buffer is empty.
    ///
    /// # Errors
    /// Errors of the system; `TimedOut` after the deadline; `NotConnected` when this side has
    /// closed the connection.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        read(&self.0, buffer).await
    }

    /// Fills the buffer.
    ///
    /// # Errors
    /// As for [`read`](Self::read), and `UnexpectedEof` when the peer ends before.
    pub async fn read_exact(&self, buffer: &mut [u8]) -> io::Result<()> {
        read_exact(&self.0, buffer).await
    }

    /// Writes as many of the bytes as fit, and returns their number; waits if none fits.
    ///
    /// # Errors
    /// As for [`read`](Self::read); mostly `BrokenPipe` when the peer is gone.
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

    /// Ends reads, writes or both: the peer sees an end after the end of writes.
    ///
    /// # Errors
    /// Errors of the system; `Unsupported` for a pipe to a child: close it.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.with(|it| it.shutdown(how))?;
        // In a simulation no poller wakes the waiters of this side.
        self.0.wake(Interest {
            read: how != Shutdown::Write,
            write: how != Shutdown::Read,
        });
        Ok(())
    }

    /// Sets the deadline of reads from now: waiting and later reads fail after it with `TimedOut`,
    /// until another deadline is set. `None` is no deadline.
    ///
    /// A time of zero ends all waiting reads.
    pub fn set_read_deadline(&self, within: Option<Duration>) {
        self.0.set_deadline(Direction::Read, within);
    }

    /// Sets the deadline of writes, as [`set_read_deadline`](Self::set_read_deadline) does of
    /// reads.
    pub fn set_write_deadline(&self, within: Option<Duration>) {
        self.0.set_deadline(Direction::Write, within);
    }

    /// Splits the connection into a read half and a write half, for two owners. The drop of both
    /// closes the connection; the drop of the write half ends writes, so the peer sees an end. The
    /// halves have no buffers: see [`split_buffered`](Self::split_buffered).
    #[must_use]
    pub fn split(self) -> (ReadHalf<T>, WriteHalf<T>) {
        (ReadHalf(Arc::clone(&self.0)), WriteHalf(Some(self.0)))
    }

    /// Returns a handle that closes the connection from anywhere.
    #[must_use]
    pub fn closer(&self) -> Closer {
        Closer::of(&self.0)
    }

    /// Closes the connection: see [`Closer::close`].
    pub fn close(&self) {
        Close::close(&*self.0);
    }

    /// Closes the connection, and tells the peer that bytes are missing: see [`Closer::abort`].
    pub fn abort(&self) {
        Close::abort(&*self.0);
    }
}

/// The read half of a [`Stream`].
pub struct ReadHalf<T: Transport>(Arc<Socket<T>>);

impl<T: Transport> ReadHalf<T> {
    /// Reads bytes: see [`Stream::read`].
    ///
    /// # Errors
    /// The errors of [`Stream::read`].
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        read(&self.0, buffer).await
    }

    /// Fills the buffer: see [`Stream::read_exact`].
    ///
    /// # Errors
    /// The errors of [`Stream::read_exact`].
    pub async fn read_exact(&self, buffer: &mut [u8]) -> io::Result<()> {
        read_exact(&self.0, buffer).await
    }

    /// Sets the deadline of reads: see [`Stream::set_read_deadline`].
    pub fn set_deadline(&self, within: Option<Duration>) {
        self.0.set_deadline(Direction::Read, within);
    }

    /// Returns a handle that closes the connection: see [`Stream::closer`].
    #[must_use]
    pub fn closer(&self) -> Closer {
        Closer::of(&self.0)
    }

    /// Joins the two halves of a stream.
    ///
    /// # Errors
    /// With both halves inside when they belong to two streams.
    pub fn reunite(self, mut other: WriteHalf<T>) -> Result<Stream<T>, (Self, WriteHalf<T>)> {
        match other.0.take_if(|other| Arc::ptr_eq(&self.0, other)) {
            Some(socket) => Ok(Stream(socket)),
            None => Err((self, other)),
        }
    }
}

/// The write half of a [`Stream`]. When it is dropped, the peer sees an end.
pub struct WriteHalf<T: Transport>(
    /// None after [`ReadHalf::reunite`].
    Option<Arc<Socket<T>>>,
);

impl<T: Transport> WriteHalf<T> {
    fn socket(&self) -> &Arc<Socket<T>> {
        // Only a call that consumes the half takes the socket out.
        self.0.as_ref().expect("a half of a stream")
    }

    /// Writes bytes: see [`Stream::write`].
    ///
    /// # Errors
    /// The errors of [`Stream::write`].
    pub async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        write(self.socket(), bytes).await
    }

    /// Writes all bytes: see [`Stream::write_all`].
    ///
    /// # Errors
    /// The errors of [`Stream::write_all`].
    pub async fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        write_all(self.socket(), bytes).await
    }

    /// Sets the deadline of writes: see [`Stream::set_write_deadline`].
    pub fn set_deadline(&self, within: Option<Duration>) {
        self.socket().set_deadline(Direction::Write, within);
    }

    /// Returns a handle that closes the connection: see [`Stream::closer`].
    #[must_use]
    pub fn closer(&self) -> Closer {
        Closer::of(self.socket())
    }
}

impl<T: Transport> Drop for WriteHalf<T> {
    fn drop(&mut self) {
        if let Some(socket) = &self.0 {
            // Fails if the connection has ended.
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
        // The peer has broken the connection: its writes are over.
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
        // Only the close ends the writes to a pipe.
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

            /// Succeeds at once, as a stream has no buffer to flush.
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

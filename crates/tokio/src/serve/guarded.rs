//! The bytes of a connection: with a time-out of writes, and with its place in the limit.

use super::activity::{Activity, now};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Sleep, sleep};

/// A connection whose writes fail when the other side does not read for a time. The connection has
/// its place until it is dropped, also when it has been upgraded.
pub(super) struct Guarded<I> {
    io: I,
    timeout: Duration,
    /// The timer of the waiting write. The first waiting write makes the timer.
    timer: Option<Pin<Box<Sleep>>>,
    /// The timer runs.
    waits: bool,
    activity: Activity,
    _place: OwnedSemaphorePermit,
}

impl<I> Guarded<I> {
    pub(super) fn new(
        io: I,
        timeout: Duration,
        activity: Activity,
        place: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            io,
            timeout,
            timer: None,
            waits: false,
            activity,
            _place: place,
        }
    }

    /// Returns the present activity of the connection.
    pub(super) fn activity(&self) -> &Activity {
        &self.activity
    }

    /// Returns the result of a write, or its time-out.
    fn within<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waits = false;
            return written;
        }
        let timeout = self.timeout;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(timeout)));
        if !self.waits {
            self.waits = true;
            if let Some(end) = now().checked_add(timeout) {
                timer.as_mut().reset(end);
            }
        }
        match timer.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Guarded<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.io).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.activity.has_read();
        }
        read
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Guarded<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(context, bytes);
        self.within(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.io).poll_flush(context);
        self.within(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.io).poll_shutdown(context);
        self.within(context, ended)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(context, bytes);
        self.within(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

//! Bytes to and from a peer, by TCP alone or by TLS above it.
//!
//! A single process reads. Writes are in the order of the outbox, whose *turn* a single thread has
//! at a time. TLS has its state behind a lock; no wait holds the lock.

use bytes::BytesMut;
use ganger_net::TcpStream;
use ganger_sync::sync::{Mutex, lock};
use rustls::Connection;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use thiserror::Error;

/// The most bytes of a read.
const READ: usize = 64 << 10;

/// A read or write has failed.
#[derive(Debug, Error)]
pub(crate) enum PipeError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Tls(#[from] rustls::Error),
}

/// A connection's bytes.
pub(crate) struct Pipe {
    stream: TcpStream,
    tls: Option<Mutex<Connection>>,
}

impl Pipe {
    pub(crate) fn new(stream: TcpStream, tls: Option<Connection>) -> Self {
        let tls = tls.map(|mut tls| {
            // The outbox is the bound.
            tls.set_buffer_limit(None);
            Mutex::new(tls)
        });
        Self { stream, tls }
    }

    pub(crate) fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Calls `look` with the state of TLS, if there is any.
    pub(crate) fn with_tls<R>(&self, look: impl FnOnce(&mut Connection) -> R) -> Option<R> {
        self.tls.as_ref().map(|tls| look(&mut lock(tls)))
    }

    /// Makes bytes ready for the connection: TLS encrypts them, and adds its own messages.
    pub(crate) fn seal(&self, bytes: Vec<u8>) -> Result<Vec<u8>, PipeError> {
        let sealed = self.with_tls(|tls| {
            tls.writer().write_all(&bytes)?;
            let mut sealed = Vec::with_capacity(bytes.len() + 64);
            while tls.wants_write() {
                tls.write_tls(&mut sealed)?;
            }
            Ok(sealed)
        });
        sealed.unwrap_or(Ok(bytes))
    }

    /// Writes sealed bytes as far as the connection takes them now.
    pub(crate) fn try_write(&self, sealed: &[u8]) -> io::Result<usize> {
        let mut written = 0;
        while written < sealed.len() {
            // A dropped write has moved no byte.
            let write = pin!(self.stream.write(&sealed[written..]));
            match write.poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Pending => break,
                Poll::Ready(bytes) => written += bytes?,
            }
        }
        Ok(written)
    }

    /// Writes sealed bytes.
    pub(crate) async fn write_sealed(&self, sealed: &[u8]) -> io::Result<()> {
        self.stream.write_all(sealed).await
    }

    /// Writes bytes, and the messages of TLS itself.
    pub(crate) async fn write(&self, bytes: Vec<u8>) -> Result<(), PipeError> {
        let sealed = self.seal(bytes)?;
        Ok(self.write_sealed(&sealed).await?)
    }

    /// Returns the last bytes of this side, for TLS.
    pub(crate) fn farewell(&self) -> Result<Vec<u8>, PipeError> {
        self.with_tls(|tls| tls.send_close_notify());
        self.seal(Vec::new())
    }

    /// Ends the writes of this side. The reader goes on for this time at the most.
    pub(crate) fn finish(&self, within: Duration) {
        // Fails if the connection is broken already.
        let _ = self.stream.shutdown(Shutdown::Write);
        self.stream.set_read_deadline(Some(within));
    }

    /// Ends the connection at once.
    pub(crate) fn close(&self) {
        self.stream.close();
    }
}

/// Received bytes of a pipe.
pub(crate) struct Incoming {
    buffer: Box<[u8]>,
    /// Without TLS around them.
    pub(crate) bytes: BytesMut,
}

/// A read is done.
pub(crate) struct Filled {
    /// The peer has ended its writes.
    pub(crate) is_end: bool,
    /// TLS has a message for the writer.
    pub(crate) has_output: bool,
}

impl Incoming {
    pub(crate) fn new() -> Self {
        Self {
            buffer: vec![0; READ].into_boxed_slice(),
            bytes: BytesMut::new(),
        }
    }

    /// Waits for bytes, and adds them. With TLS there may be none, because they were for TLS alone.
    pub(crate) async fn fill(&mut self, pipe: &Pipe) -> Result<Filled, PipeError> {
        let length = pipe.stream.read(&mut self.buffer).await?;
        if length == 0 {
            return Ok(Filled {
                is_end: true,
                has_output: false,
            });
        }
        let received = &self.buffer[..length];
        let bytes = &mut self.bytes;
        let opened = pipe.with_tls(|tls| open(tls, received, bytes));
        opened.unwrap_or_else(|| {
            self.bytes.extend_from_slice(received);
            Ok(Filled {
                is_end: false,
                has_output: false,
            })
        })
    }
}

/// Takes the plain bytes out of records.
fn open(
    tls: &mut Connection,
    mut received: &[u8],
    bytes: &mut BytesMut,
) -> Result<Filled, PipeError> {
    let mut is_end = false;
    while !received.is_empty() && !is_end {
        // Zero bytes are taken after the peer's farewell.
        is_end = tls.read_tls(&mut received)? == 0;
        let state = tls.process_new_packets()?;
        is_end |= state.peer_has_closed();
        let begin = bytes.len();
        bytes.resize(begin + state.plaintext_bytes_to_read(), 0);
        tls.reader().read_exact(&mut bytes[begin..])?;
    }
    Ok(Filled {
        is_end,
        has_output: tls.wants_write(),
    })
}

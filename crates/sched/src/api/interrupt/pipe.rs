//! A bell that the action of a signal may ring, on Unix: a pair of sockets.

use super::Ring;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

/// The waiting end.
pub(super) struct Bell {
    reads: UnixStream,
    writes: UnixStream,
}

/// A ringing end. The end never blocks.
pub(super) struct Rope(UnixStream);

impl Bell {
    pub(super) fn new() -> io::Result<Self> {
        let (reads, writes) = UnixStream::pair()?;
        writes.set_nonblocking(true)?;
        Ok(Self { reads, writes })
    }

    pub(super) fn rope(&self) -> io::Result<Rope> {
        self.writes.try_clone().map(Rope)
    }

    /// Blocks until the bell rings.
    pub(super) fn wait(&self) -> Ring {
        let mut byte = [0];
        match (&self.reads).read_exact(&mut byte) {
            Ok(()) => Ring::of(byte[0]),
            Err(error) => unreachable!("the writing end is open: {error}"),
        }
    }
}

impl Rope {
    /// Rings, unless the pair is full. Calls `write` of the system alone: neither allocates, nor
    /// locks, nor panics.
    pub(super) fn pull(&self, ring: Ring) -> bool {
        (&self.0).write(&[ring.byte()]).is_ok()
    }
}

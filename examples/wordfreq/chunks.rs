//! A bounded number of buffers for chunks of files.
//!
//! Processes never wait for memory; reader threads do. A reader takes a buffer before it reads, and
//! the buffer comes back when the process has dropped the chunk. So the uncounted chunks fit a few
//! megabytes, even with many files.

use std::io::{self, Read};
use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The number of bytes in a chunk. A shorter chunk is the file's last.
pub(crate) const CHUNK_BYTES: usize = 64 * 1024;

/// The unused buffers.
#[derive(Debug)]
pub(crate) struct Buffers {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    spare: Vec<Box<[u8]>>,
    /// How many more may be made.
    unmade: usize,
    closed: bool,
}

/// A buffer with a part of a file in it; goes back when dropped.
#[derive(Debug)]
pub(crate) struct Chunk {
    buffer: Box<[u8]>,
    length: usize,
    home: Arc<Buffers>,
}

impl Buffers {
    /// Creates a pool of at most `limit` buffers, made when they are needed.
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        let state = State {
            spare: Vec::new(),
            unmade: limit,
            closed: false,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }

    /// Waits for a buffer; `None` when the pool is closed.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Chunk> {
        let mut state = self
            .changed
            .wait_while(self.lock(), |state| {
                state.spare.is_empty() && state.unmade == 0 && !state.closed
            })
            .unwrap_or_else(PoisonError::into_inner);
        if state.closed {
            return None;
        }
        let spare = state.spare.pop();
        state.unmade -= usize::from(spare.is_none());
        drop(state);
        Some(Chunk {
            buffer: spare.unwrap_or_else(|| vec![0; CHUNK_BYTES].into()),
            length: 0,
            home: Arc::clone(self),
        })
    }

    /// Ends all waiting, from now on.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Chunk {
    /// Reads until the buffer is full or the input ends. Blocks.
    pub(crate) fn fill(&mut self, mut input: impl Read) -> io::Result<()> {
        self.length = 0;
        while self.length < self.buffer.len() {
            match input.read(&mut self.buffer[self.length..]) {
                Ok(0) => break,
                Ok(count) => self.length += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns whether nothing of the file comes after this chunk.
    pub(crate) fn is_last(&self) -> bool {
        self.length < self.buffer.len()
    }
}

impl Deref for Chunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[..self.length]
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        self.home.lock().spare.push(buffer);
        self.home.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// Gives one byte at a time, and is interrupted before each.
    struct Hesitant<'a>(&'a [u8], bool);

    impl Read for Hesitant<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let length = buffer.len().min(1);
            self.0.read(&mut buffer[..length])
        }
    }

    #[test]
    fn short_reads_still_fill_a_chunk() {
        let buffers = Buffers::new(1);
        let data = vec![b'x'; CHUNK_BYTES + 5];
        let mut input = Hesitant(&data, false);
        let mut chunk = buffers.take().unwrap();
        chunk.fill(&mut input).unwrap();
        assert_eq!((chunk.len(), chunk.is_last()), (CHUNK_BYTES, false));
        chunk.fill(&mut input).unwrap();
        assert_eq!((&*chunk, chunk.is_last()), (&b"xxxxx"[..], true));
        chunk.fill(&mut input).unwrap();
        assert_eq!((chunk.len(), chunk.is_last()), (0, true));
    }

    #[test]
    fn there_are_never_more_buffers_than_the_limit() {
        let buffers = Buffers::new(2);
        let first = buffers.take().unwrap();
        let second = buffers.take().unwrap();
        let addresses = [
            first.buffer.as_ptr() as usize,
            second.buffer.as_ptr() as usize,
        ];
        thread::scope(|scope| {
            let third = scope.spawn(|| buffers.take().unwrap().buffer.as_ptr() as usize);
            drop(first);
            assert_eq!(third.join().unwrap(), addresses[0]);
            drop(second);
        });
        assert_eq!(buffers.lock().spare.len(), 2);
    }

    #[test]
    fn closing_ends_the_wait_for_a_buffer() {
        let buffers = Buffers::new(1);
        let _only = buffers.take();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| buffers.take().is_none());
            buffers.close();
            assert!(waiting.join().unwrap());
        });
    }
}

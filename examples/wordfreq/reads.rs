//! The command for reading files, and the threads that carry it out.
//!
//! Handlers run on the scheduler's workers and must not block, and reading files does. So the
//! handler only queues the request with its completer; a few threads read, and complete it.
//!
//! A request names a file and an offset: nothing is open between two reads, so thousands of files
//! can be on their way. Requests for a further chunk of a file come before requests for a first
//! chunk: a begun file is finished soon, and few tables are half filled at any time.

use super::chunks::{Buffers, CHUNK_BYTES, Chunk};
use ganger::{BoxError, Command, CommandId, Completer, Handler, Payload};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Reads a chunk: takes a [`ReadRequest`], completes with a [`Chunk`].
pub(crate) const READ: CommandId = CommandId::new(256);

/// The number of reading threads. Counting a chunk takes longer than reading it: a few threads keep
/// many workers busy, and several help with files that are slow to open.
const READERS: usize = 4;

/// The chunks for each worker, read or counted: enough to bridge the time until a reader gets its
/// turn. More chunks only let more files be begun, and their tables fill the caches.
const CHUNKS_PER_WORKER: usize = 16;

/// A read: of the chunk at `offset`, whole unless the file ends in it.
#[derive(Debug)]
pub(crate) struct ReadRequest {
    pub(crate) path: Arc<Path>,
    pub(crate) offset: u64,
}

/// The threads. Dropping it gives the queued requests up and ends the threads, but waits for none:
/// a file system may take its time.
#[derive(Debug)]
pub(crate) struct ReaderPool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    queues: Mutex<Queues>,
    changed: Condvar,
    buffers: Arc<Buffers>,
}

/// Bounded by the files on their way: each file has at most one request.
#[derive(Debug, Default)]
struct Queues {
    first: VecDeque<Job>,
    further: VecDeque<Job>,
    closed: bool,
}

#[derive(Debug)]
struct Job {
    request: ReadRequest,
    completer: Completer,
}

/// Queues requests for a [`ReaderPool`].
#[derive(Debug)]
pub(crate) struct ReadHandler(Arc<Shared>);

impl ReaderPool {
    /// Starts the threads, for this number of workers.
    pub(crate) fn start(workers: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queues: Mutex::default(),
            changed: Condvar::new(),
            buffers: Buffers::new(CHUNKS_PER_WORKER * workers),
        });
        let pool = Self(shared);
        for number in 0..READERS {
            let shared = Arc::clone(&pool.0);
            let builder = thread::Builder::new().name(format!("reader-{number}"));
            builder.spawn(move || shared.serve())?;
        }
        Ok(pool)
    }

    /// Returns the handler for [`READ`].
    pub(crate) fn handler(&self) -> ReadHandler {
        ReadHandler(Arc::clone(&self.0))
    }
}

impl Drop for ReaderPool {
    fn drop(&mut self) {
        let closed = Queues {
            closed: true,
            ..Queues::default()
        };
        let given_up = std::mem::replace(&mut *self.0.lock(), closed);
        // Outside of the lock: dropping a completer answers.
        drop(given_up);
        self.0.changed.notify_all();
        self.0.buffers.close();
    }
}

impl Handler for ReadHandler {
    fn handle(&self, command: Command, completer: Completer) -> Result<(), BoxError> {
        let request = command.payloads.into_first().downcast::<ReadRequest>();
        let request = request.map_err(|_| "a read needs a ReadRequest")?;
        let job = Job { request, completer };
        let mut queues = self.0.lock();
        if queues.closed {
            drop(queues);
            return Err("the readers have stopped".into());
        }
        match job.request.offset {
            0 => queues.first.push_back(job),
            _ => queues.further.push_back(job),
        }
        drop(queues);
        self.0.changed.notify_one();
        Ok(())
    }
}

impl Shared {
    fn serve(&self) {
        while let Some(Job { request, completer }) = self.next() {
            if completer.is_cancelled() {
                // The process will not wait for the chunk, and dropping the completer says so.
                continue;
            }
            let Some(mut chunk) = self.buffers.take() else {
                return;
            };
            match read(&request, &mut chunk) {
                Ok(()) => completer.complete(Payload::any(chunk)),
                Err(error) => completer.fail(error),
            }
        }
    }

    fn next(&self) -> Option<Job> {
        let mut queues = self
            .changed
            .wait_while(self.lock(), |queues| {
                queues.first.is_empty() && queues.further.is_empty() && !queues.closed
            })
            .unwrap_or_else(PoisonError::into_inner);
        let further = queues.further.pop_front();
        further.or_else(|| queues.first.pop_front())
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(request: &ReadRequest, chunk: &mut Chunk) -> io::Result<()> {
    debug_assert!(request.offset.is_multiple_of(CHUNK_BYTES as u64));
    let mut file = File::open(&request.path)?;
    if request.offset > 0 {
        file.seek(SeekFrom::Start(request.offset))?;
    }
    chunk.fill(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ganger::{CommandError, Completion};
    use std::sync::mpsc::{Receiver, channel};

    fn submit(handler: &ReadHandler, path: &Path, offset: u64) -> Receiver<Completion> {
        let (sender, receiver) = channel();
        let pid = "{test|1}".parse().unwrap();
        let completer = Completer::from_fn(pid, offset, move |completion| {
            sender.send(completion).unwrap();
        });
        let path = path.into();
        let request = Payload::any(ReadRequest { path, offset });
        handler
            .handle(Command::new(READ, request), completer)
            .unwrap();
        receiver
    }

    #[test]
    fn a_file_is_read_from_any_chunk_on() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let data: Vec<u8> = (0..=250).cycle().take(2 * CHUNK_BYTES + 7).collect();
        std::fs::write(&path, &data).unwrap();
        let pool = ReaderPool::start(2).unwrap();
        for (number, expected) in data.chunks(CHUNK_BYTES).enumerate() {
            let offset = (number * CHUNK_BYTES) as u64;
            let completion = submit(&pool.handler(), &path, offset).recv().unwrap();
            let chunk = completion.result.unwrap().downcast::<Chunk>().unwrap();
            assert_eq!(&*chunk, expected);
            assert_eq!(chunk.is_last(), number == 2);
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_fails_the_command() {
        let directory = tempfile::tempdir().unwrap();
        let pool = ReaderPool::start(2).unwrap();
        for path in [directory.path(), &directory.path().join("missing")] {
            let completion = submit(&pool.handler(), path, 0).recv().unwrap();
            assert!(
                matches!(completion.result, Err(CommandError::Failed(_))),
                "{completion:?}"
            );
        }
    }

    #[test]
    fn every_command_is_answered_when_the_pool_ends_early() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "text").unwrap();
        let pool = ReaderPool::start(2).unwrap();
        let handler = pool.handler();
        let receivers: Vec<_> = (0..1000).map(|_| submit(&handler, &path, 0)).collect();
        drop(pool);
        for receiver in receivers {
            assert_eq!(receiver.into_iter().count(), 1);
        }
    }
}

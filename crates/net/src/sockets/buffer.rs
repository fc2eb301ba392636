//! Buffers of the two sides of a connection: lines with a limit, and small writes together.
//!
//! **Problem.** A read brings what has come: part of a line, or several. A line without an end
//! takes all memory. A system call for each small write is dear.
//!
//! **Protocol.** The reader keeps what has come and was not taken. A line is taken as a whole or
//! not at all: a wait for one that is dropped loses nothing, and one that is too long stays where
//! it is until its rest is [skipped](BufReader::skip_line). The reader reads no more when more is
//! kept than the limit allows. Its buffer doubles when it is full, so it has at most twice the
//! limit, and twice [`ROOM`].

use super::stream::{ReadHalf, Stream, Transport, WriteHalf};
use futures_io::{AsyncRead, AsyncWrite};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;

/// So much is read at a time, and so much is kept of small writes.
const ROOM: usize = 8 * 1024;

/// Why there is no line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// The line is longer than the limit. Nothing of it has been taken.
    #[error(
        "a line is longer than the limit of {limit} bytes; `skip_line` goes on with the next one, \
         a larger limit takes it, and a server that trusts no client ends the connection"
    )]
    TooLong {
        /// How long it may be.
        limit: usize,
    },
    /// The line is not UTF-8. It has been taken, and the next call goes on with the next one.
    #[error("a line is not UTF-8; `next_until(b'\\n', limit)` takes lines of any bytes")]
    NotText {
        /// The line.
        line: Vec<u8>,
    },
    /// The connection has failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// An error of the connection as it is; another one as `InvalidData`, with this one inside.
impl From<LineError> for io::Error {
    fn from(error: LineError) -> Self {
        match error {
            LineError::Io(error) => error,
            error => Self::new(io::ErrorKind::InvalidData, error),
        }
    }
}

/// Reads with a buffer: lines with a limit, and exact numbers of bytes between them.
///
/// It reads from a [`ReadHalf`], a [`Stream`], a pipe of a child, or anything else that has the
/// trait of `futures-io`. What it has read and not given stays with it.
///
/// ```
/// # use ganger_net::{Net, TcpListener, TcpStream};
/// # use ganger_sched::Scheduler;
/// use ganger_net::{BufReader, LineError};
/// use ganger_task::{Cx, SpawnTask};
///
/// # let scheduler = Scheduler::builder().driver(Net::new()?).start()?;
/// let task = scheduler.spawn_task(async |_: Cx| {
///     # let listener = TcpListener::bind("127.0.0.1:0")?;
///     # let client = TcpStream::connect(listener.local_addr()?).await?;
///     # let (server, _) = listener.accept().await?;
///     client.write_all(b"hello\r\nmuch too long for it\nSET 4\nabcd").await?;
///     let mut reads = BufReader::new(server);
///     assert_eq!(reads.next_line(10).await?.as_deref(), Some("hello"));
///     let too_long = reads.next_line(10).await;
///     assert!(matches!(too_long, Err(LineError::TooLong { limit: 10 })));
///     reads.skip_line().await?;
///     assert_eq!(reads.next_line(10).await?.as_deref(), Some("SET 4"));
///     let mut value = [0; 4];
///     reads.read_exact(&mut value).await?;
///     assert_eq!(&value, b"abcd");
///     drop(client);
///     assert_eq!(reads.next_line(10).await?, None); // The end.
///     Ok(())
/// })?;
/// task.wait().into_result()?;
/// # Ok::<(), ganger_proc_api::BoxError>(())
/// ```
pub struct BufReader<R> {
    inner: R,
    buffer: Box<[u8]>,
    /// What has been read, and not given.
    start: usize,
    end: usize,
    /// In so many bytes of it the end of a line was looked for, and is not.
    looked: Looked,
}

/// How far a delimiter was looked for.
#[derive(Clone, Copy, Default)]
struct Looked {
    delimiter: u8,
    length: usize,
}

impl<R> BufReader<R> {
    /// A reader of that, which has read nothing.
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            buffer: Box::default(),
            start: 0,
            end: 0,
            looked: Looked::default(),
        }
    }

    /// What has been read, and not given.
    #[must_use]
    pub fn buffer(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// What it reads from: for its deadline, for example.
    #[must_use]
    pub fn get_ref(&self) -> &R {
        &self.inner
    }

    /// What it reads from, and the bytes that it has read and not given.
    #[must_use]
    pub fn into_parts(self) -> (R, Vec<u8>) {
        let left = self.buffer().to_vec();
        (self.inner, left)
    }

    /// So many bytes are given.
    fn consume(&mut self, length: usize) {
        self.start += length;
        self.looked.length = self.looked.length.saturating_sub(length);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            // A long line was an exception.
            if self.buffer.len() > ROOM {
                self.buffer = Box::default();
            }
        }
    }

    /// Makes room behind what is kept.
    fn make_room(&mut self) {
        if self.end < self.buffer.len() {
            return;
        }
        let kept = self.end - self.start;
        if kept + ROOM <= self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
        } else {
            let mut larger = Vec::with_capacity(kept + kept.max(ROOM));
            larger.extend_from_slice(self.buffer());
            larger.resize(larger.capacity(), 0);
            self.buffer = larger.into();
        }
        (self.start, self.end) = (0, kept);
    }

    /// Where the delimiter is in what is kept.
    fn find(&mut self, delimiter: u8) -> Option<usize> {
        if self.looked.delimiter != delimiter {
            self.looked = Looked {
                delimiter,
                length: 0,
            };
        }
        let from = self.looked.length;
        let kept = self.buffer();
        let found = kept[from..].iter().position(|it| *it == delimiter);
        if found.is_none() {
            self.looked.length = kept.len();
        }
        found.map(|at| from + at)
    }
}

impl<R: AsyncRead + Unpin> BufReader<R> {
    /// Reads what has come since, behind what is kept. 0 at the end.
    async fn fill(&mut self) -> io::Result<usize> {
        self.make_room();
        let (inner, room) = (&mut self.inner, &mut self.buffer[self.end..]);
        let length = poll_fn(|context| Pin::new(&mut *inner).poll_read(context, room)).await?;
        self.end += length;
        Ok(length)
    }

    /// Reads what is there, up to the length of the buffer; waits when nothing is. 0 means that the
    /// other side sends no more, or that the buffer is empty.
    ///
    /// # Errors
    /// As for [`Stream::read`].
    pub async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.start == self.end {
            if buffer.len() >= ROOM {
                let inner = &mut self.inner;
                return poll_fn(|it| Pin::new(&mut *inner).poll_read(it, buffer)).await;
            }
            if !buffer.is_empty() {
                self.fill().await?;
            }
        }
        let length = buffer.len().min(self.end - self.start);
        buffer[..length].copy_from_slice(&self.buffer()[..length]);
        self.consume(length);
        Ok(length)
    }

    /// Fills the buffer. One that is dropped may have taken some bytes.
    ///
    /// # Errors
    /// As for [`read`](Self::read), and `UnexpectedEof` when the other side ends before.
    pub async fn read_exact(&mut self, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read(buffer).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                length => buffer = &mut buffer[length..],
            }
        }
        Ok(())
    }

    /// The next line, without its end (`\n` or `\r\n`); `None` at the end of what the other side
    /// sends. The last line needs no end.
    ///
    /// The line may have `limit` bytes, without its end. No more memory is taken than twice that
    /// and some kilobytes. A wait that is dropped loses nothing.
    ///
    /// # Errors
    /// [`LineError`]: [`TooLong`](LineError::TooLong), until the rest of the line is
    /// [skipped](Self::skip_line) or the limit is larger; [`NotText`](LineError::NotText); those of
    /// the connection.
    pub async fn next_line(&mut self, limit: usize) -> Result<Option<String>, LineError> {
        let Some(line) = self.next(b'\n', limit, true).await? else {
            return Ok(None);
        };
        let text = String::from_utf8(line).map_err(|error| LineError::NotText {
            line: error.into_bytes(),
        })?;
        Ok(Some(text))
    }

    /// The next bytes up to that one, without it. As [`next_line`](Self::next_line) otherwise.
    ///
    /// # Errors
    /// As there, but for `NotText`. [`skip_until`](Self::skip_until) passes over the rest of what
    /// is too long.
    pub async fn next_until(
        &mut self,
        delimiter: u8,
        limit: usize,
    ) -> Result<Option<Vec<u8>>, LineError> {
        self.next(delimiter, limit, false).await
    }

    async fn next(
        &mut self,
        delimiter: u8,
        limit: usize,
        is_line: bool,
    ) -> Result<Option<Vec<u8>>, LineError> {
        loop {
            let found = self.find(delimiter);
            let kept = self.buffer();
            let part = &kept[..found.unwrap_or(kept.len())];
            // What may be a part of the end of a line does not count.
            let part = match part.strip_suffix(b"\r") {
                Some(line) if is_line => line,
                _ => part,
            };
            if part.len() > limit {
                return Err(LineError::TooLong { limit });
            }
            if let Some(at) = found {
                let part = part.to_vec();
                self.consume(at + 1);
                return Ok(Some(part));
            }
            if self.fill().await? == 0 {
                // The last one. What looked like a part of an end is none.
                let kept = self.buffer();
                if kept.len() > limit {
                    return Err(LineError::TooLong { limit });
                }
                let last = (!kept.is_empty()).then(|| kept.to_vec());
                self.consume(self.end - self.start);
                return Ok(last);
            }
        }
    }

    /// Passes over all up to the end of a line, and the end. For a line that is
    /// [too long](LineError::TooLong): it needs no memory. `false` when the other side ends before.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub async fn skip_line(&mut self) -> io::Result<bool> {
        self.skip_until(b'\n').await
    }

    /// As [`skip_line`](Self::skip_line), up to that byte.
    ///
    /// # Errors
    /// As there.
    pub async fn skip_until(&mut self, delimiter: u8) -> io::Result<bool> {
        loop {
            match self.find(delimiter) {
                Some(at) => {
                    self.consume(at + 1);
                    return Ok(true);
                }
                None => self.consume(self.end - self.start),
            }
            if self.fill().await? == 0 {
                return Ok(false);
            }
        }
    }
}

impl<R: fmt::Debug> fmt::Debug for BufReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufReader")
            .field("inner", &self.inner)
            .field("kept", &self.buffer().len())
            .finish()
    }
}

/// Writes with a buffer: small writes go out together, when the buffer of 8 KiB is full or at a
/// [`flush`](Self::flush).
///
/// It writes to a [`WriteHalf`], a [`Stream`], a pipe of a child, or anything else that has the
/// trait of `futures-io`. **What is not flushed when it is dropped is lost.**
///
/// ```
/// # use ganger_net::{Net, TcpListener, TcpStream};
/// # use ganger_sched::Scheduler;
/// use ganger_task::{Cx, SpawnTask};
///
/// # let scheduler = Scheduler::builder().driver(Net::new()?).start()?;
/// let task = scheduler.spawn_task(async |_: Cx| {
///     # let listener = TcpListener::bind("127.0.0.1:0")?;
///     # let client = TcpStream::connect(listener.local_addr()?).await?;
///     # let (server, _) = listener.accept().await?;
///     let (_, mut writes) = client.split_buffered();
///     for number in 0..100 {
///         writes.write_all(format!("{number}\n").as_bytes()).await?;
///     }
///     writes.flush().await?; // All in one write.
///     let (mut reads, _) = server.split_buffered();
///     assert_eq!(reads.next_line(10).await?.as_deref(), Some("0"));
///     Ok(())
/// })?;
/// task.wait().into_result()?;
/// # Ok::<(), ganger_proc_api::BoxError>(())
/// ```
pub struct BufWriter<W> {
    inner: W,
    buffer: Vec<u8>,
    /// So much of the buffer has been written.
    written: usize,
}

impl<W> BufWriter<W> {
    /// A writer to that, which keeps nothing.
    pub fn new(inner: W) -> Self {
        Self {
            inner,
            buffer: Vec::new(),
            written: 0,
        }
    }

    /// What has not been written to the connection.
    #[must_use]
    pub fn buffer(&self) -> &[u8] {
        &self.buffer[self.written..]
    }

    /// What it writes to: for its deadline, for example.
    #[must_use]
    pub fn get_ref(&self) -> &W {
        &self.inner
    }

    /// What it writes to, and the bytes that have not been written.
    #[must_use]
    pub fn into_parts(self) -> (W, Vec<u8>) {
        let left = self.buffer().to_vec();
        (self.inner, left)
    }
}

impl<W: AsyncWrite + Unpin> BufWriter<W> {
    /// Takes all of the bytes: writes first what does not fit into the buffer with them.
    ///
    /// One of less than 8 KiB that is dropped has taken all of the bytes or none; a larger one may
    /// have written some.
    ///
    /// # Errors
    /// As for [`Stream::write`].
    pub async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len() + bytes.len() > ROOM {
            self.flush().await?;
        }
        if bytes.len() < ROOM {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        while !bytes.is_empty() {
            let length = write(&mut self.inner, bytes).await?;
            bytes = &bytes[length..];
        }
        Ok(())
    }

    /// Writes what is kept. A wait that is dropped loses nothing, and the next one goes on.
    ///
    /// # Errors
    /// As for [`Stream::write`].
    pub async fn flush(&mut self) -> io::Result<()> {
        while self.written < self.buffer.len() {
            self.written += write(&mut self.inner, &self.buffer[self.written..]).await?;
        }
        self.buffer.clear();
        self.written = 0;
        let inner = &mut self.inner;
        poll_fn(|context| Pin::new(&mut *inner).poll_flush(context)).await
    }

    /// Writes what is kept, and ends writes: the other side sees an end.
    ///
    /// # Errors
    /// As for [`Stream::write`].
    pub async fn finish(mut self) -> io::Result<()> {
        self.flush().await?;
        let inner = &mut self.inner;
        poll_fn(|context| Pin::new(&mut *inner).poll_close(context)).await
    }
}

async fn write<W: AsyncWrite + Unpin>(inner: &mut W, bytes: &[u8]) -> io::Result<usize> {
    match poll_fn(|context| Pin::new(&mut *inner).poll_write(context, bytes)).await? {
        0 => Err(io::ErrorKind::WriteZero.into()),
        length => Ok(length),
    }
}

impl<W: fmt::Debug> fmt::Debug for BufWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufWriter")
            .field("inner", &self.inner)
            .field("kept", &self.buffer().len())
            .finish()
    }
}

impl<T: Transport> Stream<T> {
    /// [Halves](Self::split) with buffers: one that reads lines with a limit, and one that writes
    /// what is small together.
    #[must_use]
    pub fn split_buffered(self) -> (BufReader<ReadHalf<T>>, BufWriter<WriteHalf<T>>) {
        let (reads, writes) = self.split();
        (BufReader::new(reads), BufWriter::new(writes))
    }
}

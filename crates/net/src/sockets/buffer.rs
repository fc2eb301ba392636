//! Buffers for a connection: a reader of lines with a limit, and a writer that joins small writes.
//!
//! **Problem.** A read may return part of a line, or several lines. A line without an end would
//! take all memory. A system call for each small write is expensive.
//!
//! **Protocol.** The reader keeps all bytes that its user has not taken. The user takes a line as a
//! whole or not at all: a dropped wait loses nothing, and a line over the limit stays in the buffer
//! until the user [skips](BufReader::skip_line) it. The reader stops when it keeps more bytes than
//! the limit. Its buffer doubles when it is full, so the buffer has at most twice the limit, and
//! twice [`ROOM`].

use super::stream::{ReadHalf, Stream, Transport, WriteHalf};
use futures_io::{AsyncRead, AsyncWrite};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;

/// The length of a read, and the room for small writes.
const ROOM: usize = 8 * 1024;

/// The reason why a read of a line fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// The line is longer than the limit. All its bytes are still in the reader.
    #[error(
        "a line is longer than {limit} bytes: `skip_line` passes over it, a larger limit takes it, \
         and a server that trusts no client must close the connection"
    )]
    TooLong {
        /// The greatest length of a line.
        limit: usize,
    },
    /// The line is not UTF-8. The next call reads the next line.
    #[error("a line is not UTF-8: `next_until(b'\\n', limit)` takes lines of any bytes")]
    NotText {
        /// The line.
        line: Vec<u8>,
    },
    /// The connection has failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// An error of the connection stays itself; all other errors become `InvalidData`, with the
/// [`LineError`] inside.
impl From<LineError> for io::Error {
    fn from(error: LineError) -> Self {
        match error {
            LineError::Io(error) => error,
            error => Self::new(io::ErrorKind::InvalidData, error),
        }
    }
}

/// A buffered reader: lines with a limit, and exact numbers of bytes between them.
///
/// The source is a [`ReadHalf`], a [`Stream`], a pipe of a child, or any other type with the trait
/// of `futures-io`. Bytes that the source gave too early stay in the buffer.
///
/// ```
/// # use ganger_net::{Net, TcpListener, TcpStream};
/// # use ganger_sched::Scheduler;
/// use ganger_net::{BufReader, LineError};
/// use ganger_task::Cx;
///
/// # let scheduler = Scheduler::builder().driver(Net::new()?).start()?;
/// let task = scheduler.spawn(async |_: Cx| {
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
    /// The bytes from `start` to `end` wait for the user.
    start: usize,
    end: usize,
    /// The part of these bytes without the delimiter.
    looked: Looked,
}

/// The progress of the search for a delimiter.
#[derive(Clone, Copy, Default)]
struct Looked {
    delimiter: u8,
    length: usize,
}

impl<R> BufReader<R> {
    /// Creates a reader with an empty buffer.
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            buffer: Box::default(),
            start: 0,
            end: 0,
            looked: Looked::default(),
        }
    }

    /// Returns the buffered bytes.
    #[must_use]
    pub fn buffer(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Returns the source: for its deadline, for example.
    #[must_use]
    pub fn get_ref(&self) -> &R {
        &self.inner
    }

    /// Returns the source, and the buffered bytes.
    #[must_use]
    pub fn into_parts(self) -> (R, Vec<u8>) {
        let left = self.buffer().to_vec();
        (self.inner, left)
    }

    /// Removes bytes from the front of the buffer.
    fn consume(&mut self, length: usize) {
        self.start += length;
        self.looked.length = self.looked.length.saturating_sub(length);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            // Long lines are rare.
            if self.buffer.len() > ROOM {
                self.buffer = Box::default();
            }
        }
    }

    /// Makes room behind the buffered bytes.
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

    /// Returns the position of the delimiter in the buffered bytes.
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
    /// Reads once, behind the buffered bytes. 0 is the end.
    async fn fill(&mut self) -> io::Result<usize> {
        self.make_room();
        let (inner, room) = (&mut self.inner, &mut self.buffer[self.end..]);
        let length = poll_fn(|context| Pin::new(&mut *inner).poll_read(context, room)).await?;
        self.end += length;
        Ok(length)
    }

    /// Reads up to the length of the buffer; waits if no byte has come. 0 means the end of the
    /// connection, or an empty buffer.
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

    /// Fills the buffer. A dropped call may have taken some bytes.
    ///
    /// # Errors
    /// As for [`read`](Self::read), and `UnexpectedEof` when the connection ends before.
    pub async fn read_exact(&mut self, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read(buffer).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                length => buffer = &mut buffer[length..],
            }
        }
        Ok(())
    }

    /// Reads the next line, without its end (`\n` or `\r\n`); `None` at the end of the connection.
    /// The last line needs no end.
    ///
    /// The line may have `limit` bytes, without its end. The buffer takes at most twice the limit
    /// and some kilobytes. A dropped wait loses nothing.
    ///
    /// # Errors
    /// [`LineError`]: [`TooLong`](LineError::TooLong), until the line is [skipped](Self::skip_line)
    /// or the limit is larger; [`NotText`](LineError::NotText); errors of the connection.
    pub async fn next_line(&mut self, limit: usize) -> Result<Option<String>, LineError> {
        let Some(line) = self.next(b'\n', limit, true).await? else {
            return Ok(None);
        };
        let text = String::from_utf8(line).map_err(|error| LineError::NotText {
            line: error.into_bytes(),
        })?;
        Ok(Some(text))
    }

    /// Reads the bytes before the next delimiter, as [`next_line`](Self::next_line) does.
    ///
    /// # Errors
    /// The errors of [`next_line`](Self::next_line), without `NotText`.
    /// [`skip_until`](Self::skip_until) passes over bytes beyond the limit.
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
            // A trailing `\r` may belong to the end of the line: the limit ignores it.
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
                // The last line, where a trailing `\r` belongs to the line.
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

    /// Passes over the rest of a line and its end, in constant memory: for a line
    /// [over the limit](LineError::TooLong). `false` when the connection ends before.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub async fn skip_line(&mut self) -> io::Result<bool> {
        self.skip_until(b'\n').await
    }

    /// Skips as [`skip_line`](Self::skip_line) does, up to another delimiter.
    ///
    /// # Errors
    /// The errors of [`skip_line`](Self::skip_line).
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

/// A buffered writer: small writes go out together, when the buffer of 8 KiB is full or at a
/// [`flush`](Self::flush).
///
/// The target is a [`WriteHalf`], a [`Stream`], a pipe of a child, or any other type with the trait
/// of `futures-io`. **Bytes that are not flushed before the drop are lost.**
///
/// ```
/// # use ganger_net::{Net, TcpListener, TcpStream};
/// # use ganger_sched::Scheduler;
/// use ganger_task::Cx;
///
/// # let scheduler = Scheduler::builder().driver(Net::new()?).start()?;
/// let task = scheduler.spawn(async |_: Cx| {
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
    /// The length of the part of the buffer that the target has taken.
    written: usize,
}

impl<W> BufWriter<W> {
    /// Creates a writer with an empty buffer.
    pub fn new(inner: W) -> Self {
        Self {
            inner,
            buffer: Vec::new(),
            written: 0,
        }
    }

    /// Returns the buffered bytes.
    #[must_use]
    pub fn buffer(&self) -> &[u8] {
        &self.buffer[self.written..]
    }

    /// Returns the target: for its deadline, for example.
    #[must_use]
    pub fn get_ref(&self) -> &W {
        &self.inner
    }

    /// Returns the target, and the buffered bytes.
    #[must_use]
    pub fn into_parts(self) -> (W, Vec<u8>) {
        let left = self.buffer().to_vec();
        (self.inner, left)
    }
}

impl<W: AsyncWrite + Unpin> BufWriter<W> {
    /// Takes all of the bytes. Flushes the buffer before, if they do not fit.
    ///
    /// A dropped write of less than 8 KiB has taken all of the bytes or none; a larger write may
    /// have taken some.
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

    /// Writes the buffered bytes. A dropped flush loses nothing, and the next flush goes on.
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

    /// Writes the buffered bytes, and ends writes: the peer sees an end.
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
    /// Splits the stream into [halves](Self::split) with buffers: a reader of lines with a limit,
    /// and a writer that joins small writes.
    #[must_use]
    pub fn split_buffered(self) -> (BufReader<ReadHalf<T>>, BufWriter<WriteHalf<T>>) {
        let (reads, writes) = self.split();
        (BufReader::new(reads), BufWriter::new(writes))
    }
}

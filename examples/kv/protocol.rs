//! The Redis protocol, versions 2 and 3: the parser takes requests as they come in, and answers are
//! encoded. A client speaks version 2 unless it asks for another.
//!
//! A request takes no more memory than [`Limits`] allow, and the parser sets nothing aside for a
//! mere announcement. It looks at each byte a bounded number of times, however the bytes are cut.

use bytes::{Buf, Bytes, BytesMut};
use std::fmt::Display;
use std::io::Write as _;

/// The limits of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Arguments of a request, the name of the command included.
    pub(crate) arguments: usize,
    /// Bytes of an argument.
    pub(crate) argument: usize,
    /// Bytes of all arguments of a request together.
    pub(crate) request: usize,
    /// Bytes of a line.
    pub(crate) line: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            arguments: 64 * 1024,
            argument: 8 * 1024 * 1024,
            request: 16 * 1024 * 1024,
            line: 16 * 1024,
        }
    }
}

/// A request: the command and its arguments.
pub(crate) type Request = Vec<Bytes>;

/// A defect of a client's input. The parser can't understand the rest.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProtocolError {
    #[error("Protocol error: too big inline request or line")]
    LongLine,
    #[error("Protocol error: invalid multibulk length")]
    ArgumentCount,
    #[error("Protocol error: invalid bulk length")]
    ArgumentLength,
    #[error("Protocol error: request is too large")]
    LargeRequest,
    #[error("Protocol error: expected '$', got '{}'", .0.escape_ascii())]
    NoArgument(u8),
    #[error("Protocol error: expected a line's end behind an argument")]
    NoEnd,
}

/// Makes requests of bytes.
#[derive(Debug)]
pub(crate) struct Parser {
    limits: Limits,
    buffer: BytesMut,
    /// This many bytes of the buffer have no line's end among them.
    searched: usize,
    /// The request in progress.
    begun: Option<Begun>,
}

#[derive(Debug)]
struct Begun {
    arguments: Request,
    missing: usize,
    /// Bytes of the arguments so far.
    bytes: usize,
    /// The length of the next argument, once it has been read.
    next: Option<usize>,
}

impl Parser {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            buffer: BytesMut::new(),
            searched: 0,
            begun: None,
        }
    }

    /// Takes input of a client.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns whether the parser has a part of a request.
    pub(crate) fn is_inside(&self) -> bool {
        self.begun.is_some() || !self.buffer.is_empty()
    }

    /// Gives the next request, if it is complete. Leaves empty requests out.
    pub(crate) fn next(&mut self) -> Result<Option<Request>, ProtocolError> {
        loop {
            let Some(mut begun) = self.begun.take() else {
                let Some(line) = self.line()? else {
                    if self.buffer.is_empty() {
                        // An empty buffer still keeps the memory of all earlier input.
                        self.buffer = BytesMut::new();
                    }
                    return Ok(None);
                };
                match line.split_first() {
                    Some((b'*', count)) => self.begin(count)?,
                    _ => {
                        let words = line.split(u8::is_ascii_whitespace);
                        let words = words.filter(|it| !it.is_empty());
                        let request: Request = words.map(|it| line.slice_ref(it)).collect();
                        if !request.is_empty() {
                            return Ok(Some(request));
                        }
                    }
                }
                continue;
            };
            let is_whole = self.fill(&mut begun)?;
            if is_whole {
                return Ok(Some(begun.arguments));
            }
            self.begun = Some(begun);
            return Ok(None);
        }
    }

    fn begin(&mut self, count: &[u8]) -> Result<(), ProtocolError> {
        let count = number(count).ok_or(ProtocolError::ArgumentCount)?;
        // A request of nothing, or of less, is none.
        let missing = usize::try_from(count).unwrap_or(0);
        if missing > self.limits.arguments {
            return Err(ProtocolError::ArgumentCount);
        }
        self.begun = (missing > 0).then(|| Begun {
            arguments: Vec::with_capacity(missing.min(8)),
            missing,
            bytes: 0,
            next: None,
        });
        Ok(())
    }

    /// Takes arguments from the buffer. Says whether the request has all.
    fn fill(&mut self, begun: &mut Begun) -> Result<bool, ProtocolError> {
        while begun.missing > 0 {
            let length = match begun.next {
                Some(length) => length,
                None => {
                    let Some(line) = self.line()? else {
                        return Ok(false);
                    };
                    let length = self.length(&line)?;
                    begun.bytes += length;
                    if begun.bytes > self.limits.request {
                        return Err(ProtocolError::LargeRequest);
                    }
                    *begun.next.insert(length)
                }
            };
            if self.buffer.len() < length + 2 {
                return Ok(false);
            }
            begun.arguments.push(self.buffer.split_to(length).freeze());
            if !self.buffer.starts_with(b"\r\n") {
                return Err(ProtocolError::NoEnd);
            }
            self.buffer.advance(2);
            begun.next = None;
            begun.missing -= 1;
        }
        Ok(true)
    }

    fn length(&self, line: &[u8]) -> Result<usize, ProtocolError> {
        match line.split_first() {
            Some((b'$', length)) => number(length)
                .and_then(|it| usize::try_from(it).ok())
                .filter(|length| *length <= self.limits.argument)
                .ok_or(ProtocolError::ArgumentLength),
            Some((other, _)) => Err(ProtocolError::NoArgument(*other)),
            None => Err(ProtocolError::NoArgument(b'\r')),
        }
    }

    /// Gives the next line without its end, `\n` or `\r\n`.
    fn line(&mut self) -> Result<Option<Bytes>, ProtocolError> {
        let end = self.buffer[self.searched..]
            .iter()
            .position(|it| *it == b'\n');
        let Some(end) = end.map(|end| self.searched + end) else {
            self.searched = self.buffer.len();
            let is_long = self.searched > self.limits.line;
            return if is_long {
                Err(ProtocolError::LongLine)
            } else {
                Ok(None)
            };
        };
        self.searched = 0;
        if end > self.limits.line {
            return Err(ProtocolError::LongLine);
        }
        let mut line = self.buffer.split_to(end + 1);
        line.truncate(end);
        if line.ends_with(b"\r") {
            line.truncate(end - 1);
        }
        Ok(Some(line.freeze()))
    }
}

/// Parses a number, in the form in which the protocol writes numbers.
pub(crate) fn number(text: &[u8]) -> Option<i64> {
    // A written number has no `+` and no needless zero.
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_plain = match digits {
        [] => false,
        [b'0'] => digits.len() == text.len(),
        [first, ..] => *first != b'0' && digits.iter().all(u8::is_ascii_digit),
    };
    if !is_plain {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// How answers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Two,
    Three,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Status(&'static str),
    Error(String),
    Number(i64),
    Text(Bytes),
    Nothing,
    List(Vec<Answer>),
    /// Keys and values by turns. In version 2 a list.
    Map(Vec<Answer>),
    /// An answer without a request. In version 2 a list.
    Push(Vec<Answer>),
    NoList,
}

impl Answer {
    pub(crate) const OK: Self = Self::Status("OK");

    pub(crate) fn text(text: impl Into<Vec<u8>>) -> Self {
        Self::Text(Bytes::from(text.into()))
    }

    pub(crate) fn count(count: usize) -> Self {
        Self::Number(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// Makes a map of a list with keys and values by turns.
    pub(crate) fn into_map(self) -> Self {
        match self {
            Self::List(parts) => Self::Map(parts),
            other => other,
        }
    }

    pub(crate) fn optional(text: Option<Bytes>) -> Self {
        text.map_or(Self::Nothing, Self::Text)
    }

    /// Appends it as the protocol writes it.
    pub(crate) fn encode(&self, version: Version, to: &mut Vec<u8>) {
        if let Some(parts) = self.begin(version, to) {
            return parts.iter().for_each(|it| it.encode(version, to));
        }
        match self {
            Self::Status(text) => put(to, &[b"+", text.as_bytes(), b"\r\n"]),
            Self::Error(text) => {
                // A line's end inside would end the answer.
                let text = text.replace(['\r', '\n'], " ");
                put(to, &[b"-", text.as_bytes(), b"\r\n"]);
            }
            Self::Number(number) => put_number(":", *number, to),
            Self::Text(text) => {
                Self::begin_text(text.len(), to);
                put(to, &[text, b"\r\n"]);
            }
            Self::Nothing | Self::NoList if version == Version::Three => {
                to.extend_from_slice(b"_\r\n");
            }
            Self::Nothing => to.extend_from_slice(b"$-1\r\n"),
            Self::NoList => to.extend_from_slice(b"*-1\r\n"),
            Self::List(_) | Self::Map(_) | Self::Push(_) => {}
        }
    }

    /// Appends the head of an answer with parts, and returns its parts.
    pub(crate) fn begin(&self, version: Version, to: &mut Vec<u8>) -> Option<&[Self]> {
        let (kind, count, parts) = match (self, version) {
            (Self::Map(parts), Version::Three) => ("%", parts.len() / 2, parts),
            (Self::Push(parts), Version::Three) => (">", parts.len(), parts),
            (Self::List(parts) | Self::Map(parts) | Self::Push(parts), _) => {
                ("*", parts.len(), parts)
            }
            _ => return None,
        };
        put_number(kind, count, to);
        Some(parts)
    }

    /// Appends the head of a text.
    pub(crate) fn begin_text(length: usize, to: &mut Vec<u8>) {
        put_number("$", length, to);
    }
}

fn put(to: &mut Vec<u8>, parts: &[&[u8]]) {
    parts.iter().for_each(|it| to.extend_from_slice(it));
}

fn put_number(kind: &str, number: impl Display, to: &mut Vec<u8>) {
    // A vector takes all.
    let _ = write!(to, "{kind}{number}\r\n");
}

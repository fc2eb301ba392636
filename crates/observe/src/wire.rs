//! Protobuf's encoding: <https://protobuf.dev/programming-guides/encoding>.

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;
const FIXED32: u64 = 5;

/// The bytes of a message.
#[derive(Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn varint(&mut self, field: u32, value: u64) {
        self.key(field, VARINT);
        self.raw(value);
    }

    pub(crate) fn fixed64(&mut self, field: u32, value: u64) {
        self.key(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn text(&mut self, field: u32, text: &str) {
        self.length(field, text.as_bytes());
    }

    pub(crate) fn message(&mut self, field: u32, message: &Self) {
        self.length(field, &message.0);
    }

    /// Appends the fields of another message.
    #[cfg(feature = "profile")]
    pub(crate) fn append(&mut self, fields: &Self) {
        self.0.extend_from_slice(&fields.0);
    }

    /// Writes the key and the length of a field whose bytes come next.
    pub(crate) fn head(&mut self, field: u32, length: usize) {
        self.key(field, LENGTH);
        self.raw(length as u64);
    }

    fn length(&mut self, field: u32, bytes: &[u8]) {
        self.head(field, bytes.len());
        self.0.extend_from_slice(bytes);
    }

    fn key(&mut self, field: u32, kind: u64) {
        self.raw(u64::from(field) << 3 | kind);
    }

    #[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
    fn raw(&mut self, mut value: u64) {
        while value > 0x7F {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

/// A place in the file, and the expectation there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) at: usize,
    pub(crate) what: &'static str,
}

/// A part of a file: the fields of a message.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    /// Where the first byte is in the file.
    pub(crate) at: usize,
}

#[derive(Clone, Copy)]
pub(crate) enum Field<'a> {
    Number(u64),
    Part(Fields<'a>),
}

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Reads the next field, with its number.
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Field<'a>)>, Damage> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let at = self.at;
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).map_err(|_| damage(at, "a field's number"))?;
        let field = match key & 7 {
            VARINT => Field::Number(self.varint()?),
            FIXED64 => Field::Number(self.fixed()?),
            FIXED32 => {
                self.take(4)?;
                Field::Number(0)
            }
            LENGTH => {
                let length = self.varint()?;
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                let at = self.at;
                let bytes = self.take(length)?;
                // The part begins behind its length.
                Field::Part(Fields { bytes, at })
            }
            _ => return Err(damage(at, "a field's kind")),
        };
        if number == 0 {
            return Err(damage(at, "a field's number"));
        }
        Ok(Some((number, field)))
    }

    fn varint(&mut self) -> Result<u64, Damage> {
        let at = self.at;
        let mut value = 0;
        for (place, byte) in (0..).zip(self.bytes.iter().take(10)) {
            if place == 9 && *byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7F) << (7 * place);
            if *byte < 0x80 {
                self.skip(place + 1);
                return Ok(value);
            }
        }
        let is_short = self.bytes.len() < 10;
        Err(damage(at, if is_short { SHORT } else { "a number" }))
    }

    fn fixed(&mut self) -> Result<u64, Damage> {
        let bytes = self.take(8)?;
        Ok(bytes
            .iter()
            .rev()
            .fold(0, |all, byte| all << 8 | u64::from(*byte)))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Damage> {
        let Some((bytes, _)) = self.bytes.split_at_checked(length) else {
            return Err(damage(self.at, SHORT));
        };
        self.skip(length);
        Ok(bytes)
    }

    fn skip(&mut self, length: usize) {
        self.bytes = &self.bytes[length..];
        self.at += length;
    }
}

const SHORT: &str = "the end: the file has been cut off";

pub(crate) const fn damage(at: usize, what: &'static str) -> Damage {
    Damage { at, what }
}

impl<'a> Field<'a> {
    pub(crate) fn number(self) -> Result<u64, Damage> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Part(fields) => Err(damage(fields.at, "a number where a message is")),
        }
    }

    /// Returns the field as a message; `at` is the place of a field with a number instead.
    pub(crate) fn part(self, at: usize) -> Result<Fields<'a>, Damage> {
        match self {
            Self::Part(fields) => Ok(fields),
            Self::Number(_) => Err(damage(at, "a message where a number is")),
        }
    }

    pub(crate) fn text(self, at: usize) -> Result<&'a str, Damage> {
        let fields = self.part(at)?;
        std::str::from_utf8(fields.bytes).map_err(|_| damage(fields.at, "a text that is not UTF-8"))
    }
}

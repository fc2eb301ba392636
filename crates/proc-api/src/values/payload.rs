//! A value on its way between processes, handlers and the world.

use super::Pid;
use crate::raw::{Kind, Opaque};
use bytes::Bytes;
use std::any::{Any, type_name};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The most bytes of a string or byte string in a [`Payload`] without an allocation.
pub const MAX_INLINE_BYTES: usize = 15;

/// A value of a message, a command or a completion.
///
/// Twenty-four bytes. Scalars, PIDs, and texts and byte strings of up to [`MAX_INLINE_BYTES`] bytes
/// are stored inline, and so are values of any other `Send` type of up to 8 bytes. A larger value
/// is behind a pointer.
///
/// ```
/// use ganger_proc_api::Payload;
/// assert_eq!(Payload::from(42_u64).as_u64(), Some(42));
/// assert_eq!(Payload::from("short").as_str(), Some("short"));
///
/// let table = vec![("the", 3)];
/// let payload = Payload::any(table);
/// assert_eq!(payload.downcast::<Vec<(&str, i32)>>().unwrap(), [("the", 3)]);
/// ```
#[derive(Default)]
pub struct Payload(Repr);

/// The variants.
///
/// The tag takes a whole word, because the value of each variant is aligned to a word. A processor
/// can forward a freshly written word to a read of the same word, but not a byte to a read of a
/// word. So a tag of one byte would delay each move of a fresh payload.
#[derive(Default)]
enum Repr {
    #[default]
    Unit,
    Bool(Flag),
    Int(i64),
    Uint(u64),
    Float(f64),
    Pid(Pid),
    InlineStr(Inline),
    InlineBytes(Inline),
    Long(Long),
    /// A value whose type only its maker and its taker know.
    Any(Opaque),
}

/// A value behind a pointer; present until it is taken out.
///
/// Only this variant and `Any` have destructors. The drop of either is a cold call, so the code
/// that drops a payload stays small.
struct Long(Option<LongRepr>);

enum LongRepr {
    Str(Box<str>),
    Bytes(Box<Bytes>),
}

impl Long {
    fn get(&self) -> Option<&LongRepr> {
        self.0.as_ref()
    }

    fn as_str(&self) -> Option<&str> {
        match self.get() {
            Some(LongRepr::Str(text)) => Some(text),
            _ => None,
        }
    }
}

/// Bytes may have a user's destructor.
///
/// Values are dropped in lists: the payloads of a message, the messages of a mailbox. When the
/// destructor of an item panics, the list drops its other items during the unwinding. A second
/// panic that left this destructor would then abort the program, so it is contained here.
impl Drop for Long {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        let value = self.0.take();
        if std::thread::panicking() {
            let dropped = catch_unwind(AssertUnwindSafe(|| drop(value)));
            // The panic's own value may panic when it is dropped.
            dropped.unwrap_or_else(std::mem::forget);
        }
    }
}

impl LongRepr {
    fn into_payload(self) -> Payload {
        Payload(Repr::Long(Long(Some(self))))
    }
}

const _: () = assert!(size_of::<Payload>() == 24);
const _: () = assert!(align_of::<Flag>() == WORD && align_of::<Inline>() == WORD);

/// In bytes.
const WORD: usize = size_of::<u64>();

/// A truth value, as a word.
#[derive(Clone, Copy)]
#[repr(align(8))]
struct Flag(bool);

#[derive(Clone, Copy)]
#[repr(align(8))]
struct Inline {
    bytes: [u8; MAX_INLINE_BYTES],
    length: u8,
}

impl Inline {
    fn new(source: &[u8]) -> Option<Self> {
        let length = u8::try_from(source.len()).ok()?;
        let mut bytes = [0; MAX_INLINE_BYTES];
        bytes.get_mut(..source.len())?.copy_from_slice(source);
        Some(Self { length, bytes })
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl Payload {
    /// The empty value: the result of a command without another.
    pub const UNIT: Self = Self(Repr::Unit);

    /// Makes a payload of a value of any type. A value of up to 8 bytes is stored inline, a value
    /// of up to 256 bytes in a reused block of memory, and a larger value on the heap.
    #[must_use]
    #[inline]
    pub fn any<T: Any + Send>(value: T) -> Self {
        Self(Repr::Any(Opaque::new(value)))
    }

    /// Returns whether this is [`Payload::UNIT`].
    #[must_use]
    pub fn is_unit(&self) -> bool {
        matches!(self.0, Repr::Unit)
    }

    /// Returns the type of a value from [`any`](Self::any).
    #[must_use]
    #[inline]
    pub fn kind(&self) -> Option<Kind> {
        match &self.0 {
            Repr::Any(value) => Some(value.kind()),
            _ => None,
        }
    }

    /// Returns the name of the type of a value that is neither a text, a byte string, nor from
    /// `any`.
    pub(super) fn scalar_name(&self) -> &'static str {
        match self.0 {
            Repr::Bool(_) => "bool",
            Repr::Int(_) => "i64",
            Repr::Uint(_) => "u64",
            Repr::Float(_) => "f64",
            Repr::Pid(_) => type_name::<Pid>(),
            _ => "()",
        }
    }

    /// Returns the boolean, if the payload is a boolean.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self.0 {
            Repr::Bool(Flag(value)) => Some(value),
            _ => None,
        }
    }

    /// Returns the integer, signed or unsigned, if the payload is an integer and fits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self.0 {
            Repr::Int(value) => Some(value),
            Repr::Uint(value) => value.try_into().ok(),
            _ => None,
        }
    }

    /// Returns the integer, signed or unsigned, if the payload is an integer and fits.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        match self.0 {
            Repr::Uint(value) => Some(value),
            Repr::Int(value) => value.try_into().ok(),
            _ => None,
        }
    }

    /// Returns the floating-point number, if the payload is a floating-point number.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self.0 {
            Repr::Float(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the PID, if the payload is a PID.
    #[must_use]
    pub fn as_pid(&self) -> Option<Pid> {
        match self.0 {
            Repr::Pid(pid) => Some(pid),
            _ => None,
        }
    }

    /// Returns the text, if the payload is a text.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.0 {
            // An inline text is valid UTF-8 by construction. Checking it is safe, and cheap.
            Repr::InlineStr(inline) => std::str::from_utf8(inline.as_bytes()).ok(),
            Repr::Long(long) => long.as_str(),
            _ => None,
        }
    }

    /// Returns the bytes, if it is a byte string or a text.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match &self.0 {
            Repr::InlineStr(inline) | Repr::InlineBytes(inline) => Some(inline.as_bytes()),
            Repr::Long(long) => match long.get()? {
                LongRepr::Bytes(bytes) => Some(bytes),
                LongRepr::Str(text) => Some(text.as_bytes()),
            },
            _ => None,
        }
    }

    /// Returns a reference to the value inside, if it was made by [`any`](Self::any) from a `T`.
    ///
    /// ```
    /// use ganger_proc_api::Payload;
    /// assert_eq!(Payload::any(vec![1, 2]).downcast_ref(), Some(&vec![1, 2]));
    /// ```
    #[must_use]
    pub fn downcast_ref<T: Any + Sync>(&self) -> Option<&T> {
        match &self.0 {
            Repr::Any(value) => value.get(),
            _ => None,
        }
    }

    /// Returns a reference to the value inside, if it was made by [`any`](Self::any) from a `T`.
    ///
    /// The reference is unique, because payloads are `Sync` and the value need not be.
    pub fn downcast_mut<T: Any>(&mut self) -> Option<&mut T> {
        match &mut self.0 {
            Repr::Any(value) => value.get_mut(),
            _ => None,
        }
    }

    /// Takes the value out, if [`any`](Self::any) made it from a `T`, and leaves a value that owns
    /// nothing.
    #[inline]
    pub(super) fn take_out<T: Any>(&mut self) -> Option<T> {
        match &mut self.0 {
            Repr::Any(value) => value.take_out(),
            _ => None,
        }
    }

    /// Moves the payload to another place, word by word, if [`any`](Self::any) made it.
    #[inline]
    pub(super) fn by_words(self) -> Self {
        match self.0 {
            Repr::Any(value) => Self(Repr::Any(value.by_words())),
            other => Self(other),
        }
    }

    /// Returns the value inside, if it was made by [`any`](Self::any) from a `T`.
    ///
    /// # Errors
    /// Gives the payload back when it holds something else.
    #[inline]
    pub fn downcast<T: Any>(self) -> Result<T, Self> {
        match self.0 {
            Repr::Any(value) => value.take().map_err(|value| Self(Repr::Any(value))),
            other => Err(Self(other)),
        }
    }

    /// Returns the bytes, if it is a byte string or a text. Copies inline ones.
    ///
    /// # Errors
    /// Gives the payload back when it holds something else.
    pub fn into_bytes(self) -> Result<Bytes, Self> {
        if let Repr::InlineStr(inline) | Repr::InlineBytes(inline) = &self.0 {
            return Ok(Bytes::copy_from_slice(inline.as_bytes()));
        }
        match self.into_long()? {
            LongRepr::Bytes(bytes) => Ok(*bytes),
            LongRepr::Str(text) => Ok(Bytes::from(text.into_boxed_bytes())),
        }
    }

    /// Returns the text, if the payload is a text.
    ///
    /// # Errors
    /// Gives the payload back when it holds something else.
    pub fn into_string(self) -> Result<String, Self> {
        if matches!(self.0, Repr::InlineStr(_)) {
            return self.as_str().map(str::to_owned).ok_or(self);
        }
        match self.into_long()? {
            LongRepr::Str(text) => Ok(text.into_string()),
            other => Err(other.into_payload()),
        }
    }

    /// Returns the value behind the pointer.
    ///
    /// # Errors
    /// Gives the payload back when its value is inline.
    fn into_long(self) -> Result<LongRepr, Self> {
        match self.0 {
            Repr::Long(mut long) => long.0.take().ok_or(Self::UNIT),
            other => Err(Self(other)),
        }
    }

    /// Copies the payload. `None` if the payload was made by [`any`](Self::any): such a value can
    /// only be moved.
    #[must_use]
    pub fn try_clone(&self) -> Option<Self> {
        Some(Self(match &self.0 {
            Repr::Unit => Repr::Unit,
            Repr::Bool(value) => Repr::Bool(*value),
            Repr::Int(value) => Repr::Int(*value),
            Repr::Uint(value) => Repr::Uint(*value),
            Repr::Float(value) => Repr::Float(*value),
            Repr::Pid(pid) => Repr::Pid(*pid),
            Repr::InlineStr(inline) => Repr::InlineStr(*inline),
            Repr::InlineBytes(inline) => Repr::InlineBytes(*inline),
            Repr::Long(long) => {
                return match long.get()? {
                    LongRepr::Str(text) => Some(LongRepr::Str(text.clone()).into_payload()),
                    LongRepr::Bytes(bytes) => Some(LongRepr::Bytes(bytes.clone()).into_payload()),
                };
            }
            Repr::Any(_) => return None,
        }))
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Unit => f.write_str("()"),
            Repr::Bool(Flag(value)) => value.fmt(f),
            Repr::Int(value) => value.fmt(f),
            Repr::Uint(value) => value.fmt(f),
            Repr::Float(value) => value.fmt(f),
            Repr::Pid(pid) => pid.fmt(f),
            Repr::InlineBytes(inline) => bytes::Bytes::copy_from_slice(inline.as_bytes()).fmt(f),
            Repr::InlineStr(_) => self.as_str().unwrap_or_default().fmt(f),
            Repr::Long(long) => match long.get() {
                Some(LongRepr::Str(text)) => text.fmt(f),
                Some(LongRepr::Bytes(bytes)) => bytes.fmt(f),
                None => f.write_str("()"),
            },
            Repr::Any(value) => value.fmt(f),
        }
    }
}

macro_rules! from_scalar {
    ($($source:ty => $variant:ident),+ $(,)?) => {$(
        impl From<$source> for Payload {
            #[inline]
            fn from(value: $source) -> Self {
                Self(Repr::$variant(value.into()))
            }
        }
    )+};
}

impl From<bool> for Payload {
    #[inline]
    fn from(value: bool) -> Self {
        Self(Repr::Bool(Flag(value)))
    }
}

from_scalar! {
    i8 => Int, i16 => Int, i32 => Int, i64 => Int, u8 => Uint, u16 => Uint,
    u32 => Uint, u64 => Uint, f32 => Float, f64 => Float, Pid => Pid,
}

impl From<usize> for Payload {
    fn from(value: usize) -> Self {
        Self(Repr::Uint(value as u64))
    }
}

impl From<()> for Payload {
    fn from((): ()) -> Self {
        Self::UNIT
    }
}

impl From<&str> for Payload {
    fn from(text: &str) -> Self {
        match Inline::new(text.as_bytes()) {
            Some(inline) => Self(Repr::InlineStr(inline)),
            None => LongRepr::Str(text.into()).into_payload(),
        }
    }
}

impl From<String> for Payload {
    fn from(text: String) -> Self {
        match Inline::new(text.as_bytes()) {
            Some(inline) => Self(Repr::InlineStr(inline)),
            None => LongRepr::Str(text.into_boxed_str()).into_payload(),
        }
    }
}

impl From<&[u8]> for Payload {
    fn from(bytes: &[u8]) -> Self {
        match Inline::new(bytes) {
            Some(inline) => Self(Repr::InlineBytes(inline)),
            None => Bytes::copy_from_slice(bytes).into(),
        }
    }
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Self {
        match Inline::new(&bytes) {
            Some(inline) => Self(Repr::InlineBytes(inline)),
            None => LongRepr::Bytes(Box::new(bytes)).into_payload(),
        }
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

#[cfg(test)]
mod tests;

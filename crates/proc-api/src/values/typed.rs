//! Values by their type: how a receiver takes a sender's value, and learns of a different type.

use super::{Message, Payload, Payloads, Pid, Symbol};
use crate::raw::{Kind, as_same};
use bytes::Bytes;
use std::any::{Any, TypeId, type_name};
use std::mem;

/// A value is not of the requested type. The value is inside, so nothing is lost.
///
/// ```
/// use ganger_proc_api::Payload;
///
/// let error = Payload::from("seven").take::<u64>().unwrap_err();
/// let text = "expected a value of type u64, got one of type alloc::string::String";
/// assert_eq!(error.to_string(), text);
/// assert_eq!(error.payloads.into_first().as_str(), Some("seven"));
/// ```
#[derive(Debug, thiserror::Error)]
#[error("expected a value of type {expected}, got one of type {got}")]
pub struct WrongType {
    /// The requested type.
    pub expected: &'static str,
    /// The type of the value.
    pub got: &'static str,
    /// The value; or all values, unless the list has exactly one value.
    pub payloads: Payloads,
}

/// The types of scalars, each with the method that gives it.
macro_rules! with_scalars {
    ($each:ident) => {
        $each! {
            () => |it: &Payload| it.is_unit().then_some(()),
            bool => Payload::as_bool,
            i64 => Payload::as_i64,
            u64 => Payload::as_u64,
            f64 => Payload::as_f64,
            Pid => Payload::as_pid,
            i8 => |it: &Payload| it.as_i64()?.try_into().ok(),
            i16 => |it: &Payload| it.as_i64()?.try_into().ok(),
            i32 => |it: &Payload| it.as_i64()?.try_into().ok(),
            u8 => |it: &Payload| it.as_u64()?.try_into().ok(),
            u16 => |it: &Payload| it.as_u64()?.try_into().ok(),
            u32 => |it: &Payload| it.as_u64()?.try_into().ok(),
            usize => |it: &Payload| it.as_u64()?.try_into().ok(),
            f32 => |it: &Payload| it.as_f64().and_then(single),
        }
    };
}

/// Returns the number in single precision, if it fits exactly.
fn single(number: f64) -> Option<f32> {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "it is compared with the number"
    )]
    let single = number as f32;
    (f64::from(single).to_bits() == number.to_bits() || number.is_nan()).then_some(single)
}

impl Payload {
    /// Makes a payload of a value of any type, as the result of a process is made. `()`, `bool`,
    /// integers of up to 64 bits, `f32`, `f64`, [`Pid`], texts and byte strings become payloads as
    /// by the `From` of their types, a payload stays as it is, and any other value is stored as by
    /// [`any`](Self::any). [`take`](Self::take) gives the value back.
    ///
    /// ```
    /// use ganger_proc_api::Payload;
    /// assert_eq!(Payload::of(7_u64).as_u64(), Some(7));
    /// assert_eq!(Payload::of(vec!["a"]).take::<Vec<&str>>()?, ["a"]);
    /// # Ok::<(), ganger_proc_api::WrongType>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn of<T: Any + Send>(value: T) -> Self {
        macro_rules! plain {
            ($($plain:ty),+ $(,)?) => {$(
                if is::<T, $plain>() {
                    return Self::from(same::<T, $plain>(value));
                }
            )+};
        }
        plain!(
            Self,
            (),
            bool,
            i8,
            i16,
            i32,
            i64,
            u8,
            u16,
            u32,
            u64,
            usize,
            f32,
            f64,
            Pid,
            String,
            &'static str,
            Bytes,
            Vec<u8>,
            &'static [u8],
        );
        Self::any(value)
    }

    /// Takes the value, if it is a `T`: made by [`any`](Self::any) from a `T`, or a scalar, text or
    /// byte string for which `T` is a type: `()`, `bool`, an integer that it fits in, `f32`, `f64`,
    /// [`Pid`], `String`, [`Bytes`], `Vec<u8>`. A `&str` is taken as a `String`.
    ///
    /// ```
    /// use ganger_proc_api::Payload;
    /// assert_eq!(Payload::any(vec![1, 2]).take::<Vec<i32>>()?, [1, 2]);
    /// assert_eq!(Payload::from(7_u64).take::<u64>()?, 7);
    /// # Ok::<(), ganger_proc_api::WrongType>(())
    /// ```
    ///
    /// # Errors
    /// [`WrongType`], with the payload inside, when it is something else.
    #[inline]
    pub fn take<T: Any>(self) -> Result<T, WrongType> {
        // The most frequent answers need no call.
        if is::<T, u64>()
            && let Some(value) = self.as_u64()
        {
            return Ok(same(value));
        }
        if is::<T, ()>() && self.is_unit() {
            return Ok(same(()));
        }
        self.downcast().or_else(Self::take_plain)
    }

    /// Takes the value as [`take`](Self::take) does, where the value was not made by `any` from a
    /// `T`.
    #[cold]
    #[inline(never)]
    fn take_plain<T: Any>(mut self) -> Result<T, WrongType> {
        let mut place = None::<T>;
        let slot: &mut dyn Any = &mut place;
        macro_rules! take_scalar {
            ($($scalar:ty => $get:expr),+ $(,)?) => {$(
                if let Some(slot) = slot.downcast_mut::<Option<$scalar>>() {
                    *slot = Some(&self).and_then($get);
                }
            )+};
        }
        with_scalars!(take_scalar);
        if let Some(slot) = slot.downcast_mut() {
            *slot = self.take_text();
        } else if let Some(slot) = slot.downcast_mut() {
            *slot = self.take_byte_string();
        } else if let Some(slot) = slot.downcast_mut() {
            *slot = self.take_byte_string().map(Vec::from);
        }
        place.ok_or_else(|| WrongType::new(Kind::of::<T>(), self.into()))
    }

    fn take_text(&mut self) -> Option<String> {
        self.as_str()?;
        mem::take(self).into_string().ok()
    }

    fn take_byte_string(&mut self) -> Option<Bytes> {
        if self.as_str().is_some() {
            return None;
        }
        self.as_bytes()?;
        mem::take(self).into_bytes().ok()
    }

    /// Returns whether [`take`](Self::take) gives a value of this kind.
    #[must_use]
    pub fn fits(&self, kind: Kind) -> bool {
        match self.kind() {
            Some(own) => own == kind,
            None => self.fits_plainly(kind),
        }
    }

    #[cold]
    #[inline(never)]
    fn fits_plainly(&self, kind: Kind) -> bool {
        macro_rules! is_scalar {
            ($($scalar:ty => $get:expr),+ $(,)?) => {
                $(kind.is::<$scalar>() && {
                    let scalar: Option<$scalar> = Some(self).and_then($get);
                    scalar.is_some()
                })||+
            };
        }
        let is_text = self.as_str().is_some();
        with_scalars!(is_scalar)
            || kind.is::<String>() && is_text
            || (kind.is::<Bytes>() || kind.is::<Vec<u8>>()) && !is_text && self.as_bytes().is_some()
    }

    /// Returns the name of the value's type, with its path, for people.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        if let Some(kind) = self.kind() {
            kind.name()
        } else if self.as_str().is_some() {
            type_name::<String>()
        } else if self.as_bytes().is_some() {
            type_name::<Bytes>()
        } else {
            self.scalar_name()
        }
    }
}

impl Payloads {
    /// Takes the only value, if it is a `T`; `()` from an empty list. As [`Payload::take`].
    ///
    /// # Errors
    /// [`WrongType`], with the values inside.
    #[inline]
    pub fn take<T: Any>(self) -> Result<T, WrongType> {
        match self.len() {
            0 | 1 => self.into_first().take(),
            _ => Err(WrongType::new(Kind::of::<T>(), self)),
        }
    }

    /// Returns whether [`take`](Self::take) gives a value of this kind.
    #[must_use]
    pub fn fits(&self, kind: Kind) -> bool {
        match self.as_slice() {
            [] => kind.is::<()>(),
            [value] => value.fits(kind),
            _ => false,
        }
    }

    /// Returns the name of the type of the only value, for people.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self.as_slice() {
            [] => type_name::<()>(),
            [value] => value.type_name(),
            _ => "a list of several values",
        }
    }
}

impl Message {
    /// Makes a message of a single value, without a source and a topic, for a process that takes
    /// messages of this type. A `Message` stays as it is. For values of up to 256 bytes, the
    /// program's allocator is needed only until blocks of their sizes exist.
    #[must_use]
    #[inline]
    pub fn of<M: Any + Send>(value: M) -> Self {
        if is::<M, Message>() {
            return same(value);
        }
        Self::new(Symbol::default(), Payload::any(value))
    }

    /// Returns the kind of `M`; `None` for `Message`, the type of messages of any kind.
    #[doc(hidden)]
    #[must_use]
    pub fn kind_of<M: Any>() -> Option<Kind> {
        (!is::<M, Message>()).then(Kind::of::<M>)
    }

    /// Takes the message's only value, if it is a `T`; the message itself for `T` = `Message`. As
    /// [`Payload::take`].
    ///
    /// ```
    /// use ganger_proc_api::Message;
    ///
    /// #[derive(Debug, PartialEq)]
    /// enum Account {
    ///     Pay(u64),
    /// }
    ///
    /// let pay = || Message::of(Account::Pay(7));
    /// assert_eq!(pay().take::<Account>()?, Account::Pay(7));
    /// let error = pay().take::<String>().unwrap_err();
    /// assert!(error.got.ends_with("Account"), "{error}");
    /// assert_eq!(error.payloads.take::<Account>()?, Account::Pay(7));
    /// # Ok::<(), ganger_proc_api::WrongType>(())
    /// ```
    ///
    /// # Errors
    /// [`WrongType`], with the values inside.
    #[inline]
    pub fn take<T: Any>(self) -> Result<T, WrongType> {
        if is::<T, Message>() {
            return Ok(same(self));
        }
        self.payloads.take()
    }

    /// Borrows the value that [`take`](Self::take) would give, if [`of`](Self::of) or
    /// [`Payload::any`] made it.
    #[doc(hidden)]
    #[must_use]
    pub fn look<T: Any + Sync>(&self) -> Option<&T> {
        if let Some(message) = (self as &dyn Any).downcast_ref() {
            return Some(message);
        }
        match self.payloads.as_slice() {
            [only] => only.downcast_ref(),
            _ => None,
        }
    }
}

impl WrongType {
    /// Creates the error for values whose kind is not `expected`.
    #[must_use]
    #[cold]
    pub fn new(expected: Kind, payloads: Payloads) -> Self {
        Self {
            expected: expected.name(),
            got: payloads.type_name(),
            payloads,
        }
    }
}

/// Returns whether both are the same type: the compiler decides it.
#[inline(always)]
fn is<A: Any, B: Any>() -> bool {
    TypeId::of::<A>() == TypeId::of::<B>()
}

/// Returns the value under the other name of its type.
#[inline(always)]
fn same<A: Any, B: Any>(value: A) -> B {
    match as_same(value) {
        Ok(value) => value,
        Err(_) => unreachable!("both are of one type"),
    }
}

#[cfg(test)]
mod tests;

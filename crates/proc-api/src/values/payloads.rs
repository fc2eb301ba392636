//! The values of a message or command.

use super::Payload;
use std::any::Any;
use std::fmt;
use std::mem;

/// A short list of [`Payload`]s; a single value needs no allocation.
///
/// Every value that converts into a payload converts into a list with a single value:
///
/// ```
/// use ganger_proc_api::{Payload, Payloads};
/// let one: Payloads = 7_u64.into();
/// let two: Payloads = ["key".into(), Payload::from(1.5)].into();
/// assert_eq!(one.first().and_then(Payload::as_u64), Some(7));
/// assert_eq!(two.get(1).and_then(Payload::as_f64), Some(1.5));
/// ```
#[derive(Default)]
pub struct Payloads(Repr);

#[derive(Default)]
enum Repr {
    #[default]
    None,
    One(Payload),
    Many(Many),
}

/// Two values or more. Most lists have a single value. The drop of a longer list is a cold call, so
/// the code that drops a list stays small.
#[expect(
    clippy::box_collection,
    reason = "a thin pointer keeps the common case at 24 bytes"
)]
struct Many(Box<Vec<Payload>>);

impl Many {
    fn new(list: Vec<Payload>) -> Self {
        Self(Box::new(list))
    }

    fn into_inner(mut self) -> Vec<Payload> {
        mem::take(&mut self.0)
    }
}

impl Drop for Many {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        drop(mem::take(&mut *self.0));
    }
}

const _: () = assert!(size_of::<Payloads>() == 24);

impl Payloads {
    /// Creates an empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self(Repr::None)
    }

    /// Adds a value at the end.
    pub fn push(&mut self, payload: impl Into<Payload>) {
        let payload = payload.into();
        self.0 = match mem::take(&mut self.0) {
            Repr::None => Repr::One(payload),
            Repr::One(first) => Repr::Many(Many::new(vec![first, payload])),
            Repr::Many(mut many) => {
                many.0.push(payload);
                Repr::Many(many)
            }
        };
    }

    /// Returns the number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Returns whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the only value out, if [`Payload::any`] made it from a `T`, and leaves values that own
    /// nothing.
    #[inline]
    pub(crate) fn take_only<T: Any>(&mut self) -> Option<T> {
        match &mut self.0 {
            Repr::One(only) => only.take_out(),
            _ => None,
        }
    }

    /// Moves the values to another place, word by word if the list is a single value from
    /// [`Payload::any`].
    #[inline]
    pub(crate) fn by_words(self) -> Self {
        match self.0 {
            Repr::One(only) => Self(Repr::One(only.by_words())),
            other => Self(other),
        }
    }

    /// Returns the values as a slice.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> &[Payload] {
        match &self.0 {
            Repr::None => &[],
            Repr::One(payload) => std::slice::from_ref(payload),
            Repr::Many(many) => &many.0,
        }
    }

    /// Iterates over the values, to change them in their places.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Payload> {
        let all: &mut [Payload] = match &mut self.0 {
            Repr::None => &mut [],
            Repr::One(payload) => std::slice::from_mut(payload),
            Repr::Many(many) => &mut many.0,
        };
        all.iter_mut()
    }

    /// Returns the value at `index`.
    #[must_use]
    #[inline]
    pub fn get(&self, index: usize) -> Option<&Payload> {
        self.as_slice().get(index)
    }

    /// Returns the first value.
    #[must_use]
    #[inline]
    pub fn first(&self) -> Option<&Payload> {
        self.as_slice().first()
    }

    /// Returns the first value, by value; [`Payload::UNIT`] for an empty list. The rest is dropped.
    #[must_use]
    #[inline]
    pub fn into_first(self) -> Payload {
        match self.0 {
            Repr::One(payload) => payload,
            Repr::None => Payload::UNIT,
            Repr::Many(many) => *first_of(many.into_inner()),
        }
    }

    /// Iterates over the values.
    pub fn iter(&self) -> std::slice::Iter<'_, Payload> {
        self.as_slice().iter()
    }
}

/// Returns the first value in a box, so that the value of a caller with a single value stays in
/// registers.
#[cold]
#[inline(never)]
fn first_of(many: Vec<Payload>) -> Box<Payload> {
    Box::new(many.into_iter().next().unwrap_or_default())
}

impl fmt::Debug for Payloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

/// The values of a message or a command: none, `()`; a single value that converts into a
/// [`Payload`]; or several, `[Payload; N]`.
///
/// A value of the program's own type is `Payload::any(value)`. Mostly it needs no such list: an
/// address sends a value of its [`Actor`](crate::Actor)'s type, a
/// [`TypedCommand`](crate::TypedCommand) is itself such a value, and
/// [`Message::of`](crate::Message::of) makes a message of it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a payload",
    label = "not a payload",
    note = "`Payload::any(value)` makes a payload of a value of any `Send + 'static` type",
    note = "a message of one value is `Message::of(value)`; an address of its type sends the bare \
            value, and a command of one value is a `TypedCommand`"
)]
pub trait IntoPayloads {
    /// Returns the values.
    fn into_payloads(self) -> Payloads;
}

#[diagnostic::do_not_recommend]
impl<T: Into<Payloads>> IntoPayloads for T {
    #[inline]
    fn into_payloads(self) -> Payloads {
        self.into()
    }
}

impl<T: Into<Payload>> From<T> for Payloads {
    #[inline]
    fn from(value: T) -> Self {
        Self(Repr::One(value.into()))
    }
}

/// Collects the values.
impl<const N: usize> From<[Payload; N]> for Payloads {
    fn from(values: [Payload; N]) -> Self {
        values.into_iter().collect()
    }
}

impl FromIterator<Payload> for Payloads {
    fn from_iter<I: IntoIterator<Item = Payload>>(iter: I) -> Self {
        let mut list = Self::new();
        list.extend(iter);
        list
    }
}

impl Extend<Payload> for Payloads {
    fn extend<I: IntoIterator<Item = Payload>>(&mut self, iter: I) {
        for payload in iter {
            self.push(payload);
        }
    }
}

impl<'a> IntoIterator for &'a Payloads {
    type Item = &'a Payload;
    type IntoIter = std::slice::Iter<'a, Payload>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for Payloads {
    type Item = Payload;
    type IntoIter = IntoIter;

    fn into_iter(self) -> IntoIter {
        match self.0 {
            Repr::None => IntoIter {
                one: None,
                many: Vec::new().into_iter(),
            },
            Repr::One(payload) => IntoIter {
                one: Some(payload),
                many: Vec::new().into_iter(),
            },
            Repr::Many(many) => IntoIter {
                one: None,
                many: many.into_inner().into_iter(),
            },
        }
    }
}

/// Iterates over a list's values, by value.
#[derive(Debug)]
pub struct IntoIter {
    one: Option<Payload>,
    many: std::vec::IntoIter<Payload>,
}

impl Iterator for IntoIter {
    type Item = Payload;

    fn next(&mut self) -> Option<Payload> {
        self.one.take().or_else(|| self.many.next())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::from(self.one.is_some()) + self.many.len();
        (left, Some(left))
    }
}

impl ExactSizeIterator for IntoIter {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_its_order_at_every_length() {
        for length in 0..5_u64 {
            let list: Payloads = (0..length).map(Payload::from).collect();
            assert_eq!(list.len() as u64, length);
            let values: Vec<_> = list.iter().map(|p| p.as_u64().unwrap()).collect();
            assert_eq!(values, (0..length).collect::<Vec<_>>());
            assert_eq!(list.into_iter().len() as u64, length);
        }
    }

    #[test]
    fn an_array_becomes_a_list_of_its_length() {
        assert!(Payloads::from([]).is_empty());
        let one = Payloads::from([Payload::from(7_u64)]);
        assert!(matches!(one.0, Repr::One(_)), "without an allocation");
        let three = Payloads::from([1_u64, 2, 3].map(Payload::from));
        let values: Vec<_> = three.iter().filter_map(Payload::as_u64).collect();
        assert_eq!(values, [1, 2, 3]);
    }
}

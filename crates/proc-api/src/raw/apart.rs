//! A value of three words that goes through a call in registers.
//!
//! **Problem.** A value of more than two words goes through a call behind a pointer. The caller has
//! just stored it word by word, and the callee moves it two words at a time: each such load waits
//! for the stores.
//!
//! **Protocol.** [`apart`] takes the value apart, and the callee [joins](join) the parts.
//!
//! **Why it is sound.** Each call of `apart` gives both parts a lifetime of its own, and a join
//! uses them up. So a join gets two parts of the same value. Dropped parts lose the value.

use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr;

type Word = MaybeUninit<u64>;

/// Invariant in the lifetime.
type Of<'id, T> = PhantomData<(fn(&'id ()) -> &'id (), T)>;

/// The first word of a value.
pub struct First<'id, T>(Word, Of<'id, T>);

/// The other two.
pub struct Others<'id, T>(Word, Word, Of<'id, T>);

/// Calls `f` with the parts of the value.
#[inline(always)]
pub(crate) fn apart<T, R>(
    value: T,
    f: impl for<'id> FnOnce(First<'id, T>, Others<'id, T>) -> R,
) -> R {
    const {
        assert!(size_of::<T>() == size_of::<[Word; 3]>());
        assert!(align_of::<T>() == align_of::<Word>());
    }
    let value = ManuallyDrop::new(value);
    // SAFETY: three words, each possibly uninitialised. The value is not used again.
    let [first, second, third] = unsafe { ptr::read((&raw const value).cast::<[Word; 3]>()) };
    f(
        First(first, PhantomData),
        Others(second, third, PhantomData),
    )
}

/// Joins these parts to the value.
#[inline(always)]
pub fn join<'id, T>(first: First<'id, T>, others: Others<'id, T>) -> T {
    let words = [first.0, others.0, others.1];
    // SAFETY: the words come from one call of `apart`, and have the size and alignment of its
    // value. The join uses them up.
    unsafe { ptr::read((&raw const words).cast::<T>()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_value_is_the_same_when_its_parts_are_joined() {
        let text = "three words".to_owned();
        assert_eq!(apart(text, join), "three words");
        let held = Arc::new(());
        let three = [(); 3].map(|()| Arc::clone(&held));
        let three = apart(three, join);
        assert_eq!(Arc::strong_count(&held), 4);
        drop(three);
        assert_eq!(Arc::strong_count(&held), 1);
        apart([(); 3].map(|()| Arc::clone(&held)), |_, _| ());
        assert_eq!(Arc::strong_count(&held), 4, "lost, not dropped");
    }
}

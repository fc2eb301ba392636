//! A value of a guessed type: each step of a task guesses the type of its scheduler.
//!
//! **Rejected.** `downcast_ref` of the standard library: the id of the type comes in two registers,
//! goes into memory, and is loaded as one value of two words. Such a load waits for both stores.

use std::any::{Any, TypeId};
use std::ptr;

/// Returns the value, if it is a `T`.
#[inline]
pub(crate) fn downcast_ref<T: Any>(value: &dyn Any) -> Option<&T> {
    // An order is found word by word.
    let is_it = value.type_id().cmp(&TypeId::of::<T>()).is_eq();
    // SAFETY: the value is a `T`, and is borrowed for as long.
    is_it.then(|| unsafe { &*ptr::from_ref(value).cast() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_of_its_own_type_alone() {
        let value: &dyn Any = &7_u64;
        assert_eq!(downcast_ref::<u64>(value), Some(&7));
        assert!(downcast_ref::<i64>(value).is_none() && downcast_ref::<()>(value).is_none());
    }
}

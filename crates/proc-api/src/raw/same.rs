//! A value whose type has two names, in generic code.
//!
//! **Rejected.** `dyn Any` does it without unsafe code, but by way of a place in memory. Each value
//! was copied twice there just after it had been made, and the copies waited for the stores.

use std::any::TypeId;
use std::mem::ManuallyDrop;
use std::ptr;

/// Returns the value as a `B`, if `A` is the same type; the compiler decides it.
///
/// # Errors
/// The value, if it is of another type.
#[inline(always)]
pub(crate) fn as_same<A: 'static, B: 'static>(value: A) -> Result<B, A> {
    if TypeId::of::<A>() != TypeId::of::<B>() {
        return Err(value);
    }
    let value = ManuallyDrop::new(value);
    // SAFETY: `A` and `B` are the same type. The value is not used again.
    Ok(unsafe { ptr::read((&raw const value).cast::<B>()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_value_is_itself_and_no_other() {
        let held = Arc::new(());
        let same: Result<Arc<()>, _> = as_same(Arc::clone(&held));
        assert!(same.is_ok_and(|it| Arc::ptr_eq(&it, &held)));
        let other: Result<Arc<u8>, _> = as_same(Arc::clone(&held));
        assert!(other.is_err_and(|it| Arc::ptr_eq(&it, &held)));
        assert_eq!(Arc::strong_count(&held), 1);
    }
}

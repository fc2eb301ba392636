//! One value of a type that only the code that made it knows.
//!
//! **Problem.** Messages of users' own types are small and many. A box for each would call the
//! program's allocator twice a message, mostly on two threads, where it is slowest.
//!
//! **Rejected.** A place of 128 bytes in each message: all messages would be moved at that size.
//!
//! **Protocol**
//! 1. A value of a word or less lies in the [`Opaque`] itself. Any other lies in memory that
//!    `ganger-nodes` gives: up to 256 bytes in a block of a slab, and otherwise on the heap.
//! 2. The [`Kind`] of its type is written beside it, once.
//! 3. `take` moves the value out, if it is a `T`, and frees its memory. `drop` drops the value
//!    where it is, and frees its memory.
//!
//! **Why it is sound.** The kind says which type was written. Both ways out consume the opaque, so
//! that the value leaves it once.

use std::any::{TypeId, type_name};
use std::fmt;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

/// A `Send` value of any type, in two words.
pub(crate) struct Opaque {
    kind: Kind,
    place: Place,
}

/// A small value, or the pointer to a value.
type Place = MaybeUninit<NonNull<()>>;

/// Which type a value has: a word, free to make.
///
/// Two are equal if they are of the same type.
#[derive(Clone, Copy)]
pub struct Kind(&'static Facts);

/// What the code knows of a type whose values it handles blindly.
struct Facts {
    id: TypeId,
    name: fn() -> &'static str,
    /// Drops the value of that type at that place, and frees its memory.
    drop: unsafe fn(&mut Place),
}

const _: () = assert!(align_of::<Facts>() > 1);

/// Where the facts of a type are.
struct Of<T>(PhantomData<T>);

impl<T: 'static> Of<T> {
    const FACTS: &'static Facts = &Facts {
        id: TypeId::of::<T>(),
        name: type_name::<T>,
        drop: drop_at::<T>,
    };
}

/// As large as the value, but never without a size: memory needs one.
#[repr(C)]
union Block<T> {
    value: ManuallyDrop<T>,
    filler: u8,
}

// SAFETY: the value is `Send`: `Opaque::new` takes no other.
unsafe impl Send for Opaque {}
// SAFETY: a shared opaque gives out what is known of the type, and a value only where that is
// `Sync`.
unsafe impl Sync for Opaque {}

impl Kind {
    /// The kind of a type.
    #[must_use]
    pub const fn of<T: 'static>() -> Self {
        Self(Of::<T>::FACTS)
    }

    /// The type's name, with its path, for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        (self.0.name)()
    }

    /// Whether it is of type `T`.
    #[must_use]
    #[inline]
    pub fn is<T: 'static>(self) -> bool {
        self == Self::of::<T>()
    }

    /// The same, as a pointer that is never null and is even; for schedulers, which keep it in an
    /// atomic.
    #[doc(hidden)]
    #[must_use]
    pub fn into_raw(self) -> *mut () {
        std::ptr::from_ref(self.0).cast_mut().cast()
    }

    /// The kind that [`into_raw`](Self::into_raw) made that pointer of; `None` if it is null.
    ///
    /// # Safety
    /// `into_raw` has made it, or it is null.
    #[doc(hidden)]
    #[must_use]
    pub unsafe fn from_raw(pointer: *mut ()) -> Option<Self> {
        // SAFETY: null, or made of a `&'static Facts` (precondition).
        unsafe { pointer.cast::<Facts>().as_ref() }.map(Self)
    }
}

impl PartialEq for Kind {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        // Mostly the type has its facts once, and nothing has to be read.
        std::ptr::eq(self.0, other.0) || self.0.id == other.0.id
    }
}

impl Eq for Kind {}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kind({})", self.name())
    }
}

/// Whether a value of that type lies in the opaque itself.
const fn is_inline<T>() -> bool {
    size_of::<T>() <= size_of::<Place>() && align_of::<T>() <= align_of::<Place>()
}

/// Memory that holds no value any more, and is free when this is dropped.
struct Emptied<T>(NonNull<Block<T>>);

impl<T> Drop for Emptied<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `Opaque::new` has allocated it for this type, and its value is gone.
        unsafe { ganger_nodes::free(self.0) };
    }
}

/// Where the value is that lies at `place`, and its memory, if it has some of its own.
///
/// # Safety
/// `Opaque::new` has put a `T` there.
#[inline]
unsafe fn value_at<T>(place: &mut Place) -> (*mut T, Option<NonNull<Block<T>>>) {
    if const { is_inline::<T>() } {
        return (place.as_mut_ptr().cast(), None);
    }
    // SAFETY: a value that is not inline is behind a pointer (precondition).
    let memory = unsafe { place.assume_init() }.cast::<Block<T>>();
    (memory.as_ptr().cast(), Some(memory))
}

/// Drops the value at `place`, and frees its memory, even if the value's destructor panics.
///
/// # Safety
/// `Opaque::new` has put a `T` there, and it is not used afterwards.
unsafe fn drop_at<T>(place: &mut Place) {
    // SAFETY: as this function's.
    unsafe {
        let (value, memory) = value_at::<T>(place);
        let _emptied = memory.map(Emptied);
        value.drop_in_place();
    }
}

impl Opaque {
    /// Holds that value. O(1), but for calls of the allocator.
    #[inline]
    pub(crate) fn new<T: Send + 'static>(value: T) -> Self {
        let mut place = Place::uninit();
        if const { is_inline::<T>() } {
            // SAFETY: the place has room for the value, and is aligned for it.
            unsafe { place.as_mut_ptr().cast::<T>().write(value) };
        } else {
            let memory = ganger_nodes::allocate::<Block<T>>();
            // SAFETY: fresh memory, at least as large as the value, and aligned for it.
            unsafe { memory.cast::<T>().write(value) };
            place.write(memory.cast());
        }
        let kind = Kind::of::<T>();
        Self { kind, place }
    }

    /// The type of the value.
    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// The value, if it is a `T`.
    pub(crate) fn get<T: Sync + 'static>(&self) -> Option<&T> {
        if !self.kind.is::<T>() {
            return None;
        }
        if const { is_inline::<T>() } {
            // SAFETY: `new` has put a `T` there, which is borrowed like the opaque.
            return Some(unsafe { &*self.place.as_ptr().cast() });
        }
        // SAFETY: as above; a value that is not inline is behind a pointer, at its beginning.
        Some(unsafe { self.place.assume_init().cast().as_ref() })
    }

    /// The value, if it is a `T`.
    pub(crate) fn get_mut<T: 'static>(&mut self) -> Option<&mut T> {
        if !self.kind.is::<T>() {
            return None;
        }
        // SAFETY: `new` has put a `T` there, which is borrowed like the opaque.
        Some(unsafe { &mut *value_at::<T>(&mut self.place).0 })
    }

    /// As [`take`](Self::take), and leaves a `()`. The caller gets the value from where it lies, so
    /// that it is moved once.
    #[inline]
    pub(crate) fn take_out<T: 'static>(&mut self) -> Option<T> {
        if !self.kind.is::<T>() {
            return None;
        }
        self.kind = Kind::of::<()>();
        // SAFETY: `new` has put a `T` there. The opaque holds a `()` from now on, which lies
        // anywhere: the value leaves it once.
        unsafe {
            let (value, memory) = value_at::<T>(&mut self.place);
            let _emptied = memory.map(Emptied);
            Some(value.read())
        }
    }

    /// The same value in another place, moved word by word: a load of two words waits for both
    /// stores, if they have just been made.
    #[inline]
    pub(crate) fn by_words(self) -> Self {
        let this = ManuallyDrop::new(self);
        let (kind, place) = (this.kind, this.place);
        Self { kind, place }
    }

    /// The value, moved out, if it is a `T`.
    #[inline]
    pub(crate) fn take<T: 'static>(self) -> Result<T, Self> {
        if !self.kind.is::<T>() {
            return Err(self);
        }
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `new` has put a `T` there. The opaque is not dropped: the value leaves it once.
        unsafe {
            let (value, memory) = value_at::<T>(&mut this.place);
            let _emptied = memory.map(Emptied);
            Ok(value.read())
        }
    }
}

/// The value has a destructor that a user wrote. When others of a list are dropped because that of
/// one panics, a second panic that got out would abort the program. So it is contained.
impl Drop for Opaque {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        let mut drop_value = || {
            // SAFETY: `new` has put a value of the kind there, and this is the last use of it.
            unsafe { (self.kind.0.drop)(&mut self.place) };
        };
        if !std::thread::panicking() {
            return drop_value();
        }
        // The panic's own value may panic when it is dropped.
        catch_unwind(AssertUnwindSafe(drop_value)).unwrap_or_else(std::mem::forget);
    }
}

impl fmt::Debug for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Any({})", self.kind.name())
    }
}

#[cfg(test)]
mod tests;

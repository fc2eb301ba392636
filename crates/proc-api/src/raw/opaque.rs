//! A value whose type only its maker and its taker know.
//!
//! **Problem.** Messages of users' own types are small and many. A box for each would call the
//! program's allocator twice a message, mostly on two threads, where it is slowest.
//!
//! **Rejected.** A place of 128 bytes in each message: every message would be moved at this size.
//!
//! **Protocol**
//! 1. A value of a word or less lies in the [`Opaque`] itself. A larger value lies in memory from
//!    `ganger-nodes`: up to 256 bytes in a block of a slab, and otherwise on the heap.
//! 2. The [`Kind`] of the value's type is stored with it, once.
//! 3. `take` moves the value out, if it is a `T`, and frees its memory. `drop` drops the value in
//!    place, and frees its memory.
//!
//! **Why it is sound.** The kind names the type of the stored value. `take` and `drop` consume the
//! opaque, so the value leaves it once.

use std::any::{TypeId, type_name};
use std::fmt;
use std::hash::{Hash, Hasher};
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

/// The type of a value: a word, free to make.
///
/// Two kinds are equal if they are of the same type.
#[derive(Clone, Copy)]
pub struct Kind(&'static Facts);

/// The facts about a type that code needs to handle its values blindly.
struct Facts {
    id: TypeId,
    name: fn() -> &'static str,
    /// Drops the value in a place, and frees its memory.
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

/// As large as the value, but at least one byte: an allocation needs a size.
#[repr(C)]
union Block<T> {
    value: ManuallyDrop<T>,
    filler: u8,
}

// SAFETY: the value is `Send`: `Opaque::new` requires it.
unsafe impl Send for Opaque {}
// SAFETY: a shared opaque gives out facts about the type, and a reference to the value only if the
// value is `Sync`.
unsafe impl Sync for Opaque {}

impl Kind {
    /// Returns the kind of a type.
    #[must_use]
    pub const fn of<T: 'static>() -> Self {
        Self(Of::<T>::FACTS)
    }

    /// Returns the type's name, with its path, for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        (self.0.name)()
    }

    /// Returns whether this is the kind of type `T`.
    #[must_use]
    #[inline]
    pub fn is<T: 'static>(self) -> bool {
        self == Self::of::<T>()
    }

    /// Returns the kind as a pointer, never null and always even. A scheduler keeps the pointer in
    /// an atomic.
    #[doc(hidden)]
    #[must_use]
    pub fn into_raw(self) -> *mut () {
        std::ptr::from_ref(self.0).cast_mut().cast()
    }

    /// Returns the kind from a pointer of [`into_raw`](Self::into_raw); `None` for null.
    ///
    /// # Safety
    /// The pointer comes from `into_raw`, or is null.
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
        // Mostly a type has a single set of facts, and their address decides.
        std::ptr::eq(self.0, other.0) || self.0.id == other.0.id
    }
}

impl Eq for Kind {}

impl Hash for Kind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kind({})", self.name())
    }
}

/// Returns whether a value of type `T` lies in the opaque itself.
const fn is_inline<T>() -> bool {
    size_of::<T>() <= size_of::<Place>() && align_of::<T>() <= align_of::<Place>()
}

/// Memory whose value is gone; freed on drop.
struct Emptied<T>(NonNull<Block<T>>);

impl<T> Drop for Emptied<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `Opaque::new` has allocated the memory for this type, and its value is gone.
        unsafe { ganger_nodes::free(self.0) };
    }
}

/// Finds the value that lies at `place`, and its memory, if it has some of its own.
///
/// # Safety
/// `Opaque::new` has put a `T` there.
#[inline]
unsafe fn value_at<T>(place: &mut Place) -> (*mut T, Option<NonNull<Block<T>>>) {
    if const { is_inline::<T>() } {
        return (place.as_mut_ptr().cast(), None);
    }
    // SAFETY: a value outside of the opaque is behind a pointer (precondition).
    let memory = unsafe { place.assume_init() }.cast::<Block<T>>();
    (memory.as_ptr().cast(), Some(memory))
}

/// Drops the value at `place`, and frees its memory, even if the value's destructor panics.
///
/// # Safety
/// `Opaque::new` has put a `T` there, and the caller does not use it afterwards.
unsafe fn drop_at<T>(place: &mut Place) {
    // SAFETY: the contract of this function.
    unsafe {
        let (value, memory) = value_at::<T>(place);
        let _emptied = memory.map(Emptied);
        value.drop_in_place();
    }
}

impl Opaque {
    /// Creates the opaque that holds this value. O(1), but for calls of the allocator.
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

    /// Returns the type of the value.
    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the value, if it is a `T`.
    pub(crate) fn get<T: Sync + 'static>(&self) -> Option<&T> {
        if !self.kind.is::<T>() {
            return None;
        }
        if const { is_inline::<T>() } {
            // SAFETY: `new` has put a `T` there, and the borrow of it is the borrow of the opaque.
            return Some(unsafe { &*self.place.as_ptr().cast() });
        }
        // SAFETY: `new` has put a `T` behind the pointer, at the beginning of its block; the borrow
        // of the value is the borrow of the opaque.
        Some(unsafe { self.place.assume_init().cast().as_ref() })
    }

    /// Returns the value, if it is a `T`.
    pub(crate) fn get_mut<T: 'static>(&mut self) -> Option<&mut T> {
        if !self.kind.is::<T>() {
            return None;
        }
        // SAFETY: `new` has put a `T` there, and the borrow of it is the borrow of the opaque.
        Some(unsafe { &mut *value_at::<T>(&mut self.place).0 })
    }

    /// Takes the value as [`take`](Self::take) does, and leaves a `()`. The caller reads the value
    /// in place, so the value is moved once.
    #[inline]
    pub(crate) fn take_out<T: 'static>(&mut self) -> Option<T> {
        if !self.kind.is::<T>() {
            return None;
        }
        self.kind = Kind::of::<()>();
        // SAFETY: `new` has put a `T` there. The opaque holds a `()` from now on, and a `()` needs
        // no place: the value leaves the opaque once.
        unsafe {
            let (value, memory) = value_at::<T>(&mut self.place);
            let _emptied = memory.map(Emptied);
            Some(value.read())
        }
    }

    /// Moves the value to another place, word by word: a load of two words waits for both stores,
    /// if they have just been made.
    #[inline]
    pub(crate) fn by_words(self) -> Self {
        let this = ManuallyDrop::new(self);
        let (kind, place) = (this.kind, this.place);
        Self { kind, place }
    }

    /// Takes the value, moved out, if it is a `T`.
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

/// The value may have a user's destructor. When the destructor of a list's item panics, the list
/// drops its other items during the unwinding. A second panic that left this destructor would then
/// abort the program, so it is contained.
impl Drop for Opaque {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        let mut drop_value = || {
            // SAFETY: `new` has put a value of this kind there, and nothing uses the value
            // afterwards.
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

//! What keeps a package from going in a circle.

use std::cell::Cell;

/// Through how many nodes, and on to how many others, a package may come on one thread.
const MOST: usize = 32;

thread_local! {
    static HOPS: Cell<usize> = const { Cell::new(0) };
}

/// A node or a router has a package passed on by this thread, until this is dropped.
pub(crate) struct Hop;

impl Hop {
    /// None if it has come through too many already: some of them stand behind one another in a circle.
    #[inline]
    pub(crate) fn begin() -> Option<Self> {
        let hops = HOPS.get();
        (hops < MOST).then(|| {
            HOPS.set(hops + 1);
            Self
        })
    }
}

impl Drop for Hop {
    fn drop(&mut self) {
        HOPS.set(HOPS.get() - 1);
    }
}

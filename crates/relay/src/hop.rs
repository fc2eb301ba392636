//! What keeps a package from going in a circle.

use std::cell::Cell;
use std::thread::LocalKey;

/// How many routers may pass a package on to other nodes, one after the other on one thread.
const MOST_ROUTERS: usize = 32;

/// How many hosts of nodes may be asked within one another on one thread. More than anybody needs, also if they send other
/// packages meanwhile, and less than a stack has room for.
const MOST_HOSTS: usize = 128;

thread_local! {
    static ROUTERS: Cell<usize> = const { Cell::new(0) };
    static HOSTS: Cell<usize> = const { Cell::new(0) };
}

/// A package is passed on on this thread, until this is dropped.
pub(crate) struct Hop(&'static LocalKey<Cell<usize>>);

impl Hop {
    /// From one router to another. None if it has come through too many already: they stand behind one another in a circle.
    #[inline]
    pub(crate) fn between_routers() -> Option<Self> {
        Self::begin(&ROUTERS, MOST_ROUTERS)
    }

    /// From a node to a host. None, as above.
    #[inline]
    pub(crate) fn to_host() -> Option<Self> {
        Self::begin(&HOSTS, MOST_HOSTS)
    }

    #[inline]
    fn begin(hops: &'static LocalKey<Cell<usize>>, most: usize) -> Option<Self> {
        let before = hops.get();
        (before < most).then(|| {
            hops.set(before + 1);
            Self(hops)
        })
    }
}

impl Drop for Hop {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

//! What keeps a package from going in a circle.
//!
//! **Problem.** Those who pass packages on may stand behind one another in a circle, and each of them may try others when one
//! has refused. A bound of how many there are within one another does not suffice: with two tries each, as many sends
//! would reach it as two to the power of the bound.
//!
//! **Protocol.** Who reaches the bound is refused, and lowers it by one until the outermost send on this thread has
//! returned. So what is tried on the way back is refused at once, and there are at most as many ways to the bound as it
//! is high. It does not become lower than a few, so that one who sends to many is not refused because some of those
//! stand in circles; but it does after a thousand refusals, for each of those levels may have many tries.

use std::cell::Cell;
use std::marker::PhantomData;
use std::thread::LocalKey;

/// How many routers may pass a package on to other nodes, one after the other on one thread.
const MOST_ROUTERS: usize = 32;

/// How many hosts may be asked within one another on one thread. More than anybody needs, also if they send other
/// packages meanwhile, and less than a stack has room for.
const MOST_HOSTS: usize = 128;

/// How many there may be within one another whatever circles there have been; unless there have been very many.
const FEW: usize = 4;
const MANY_CIRCLES: usize = 1_000;

/// On a thread.
#[derive(Clone, Copy)]
struct Hops {
    now: usize,
    most: usize,
    bound: usize,
    /// Since the outermost one began.
    refused: usize,
}

impl Hops {
    const fn new(bound: usize) -> Self {
        Self {
            now: 0,
            most: bound,
            bound,
            refused: 0,
        }
    }

    fn begin(&mut self) -> bool {
        let is_allowed = self.now < self.most;
        if is_allowed {
            self.now += 1;
        } else {
            self.refused += 1;
            let few = if self.refused < MANY_CIRCLES { FEW } else { 1 };
            if self.now == self.most && self.most > few {
                self.most -= 1;
            }
        }
        is_allowed
    }

    fn end(&mut self) {
        self.now -= 1;
        if self.now == 0 {
            *self = Self::new(self.bound);
        }
    }
}

thread_local! {
    static ROUTERS: Cell<Hops> = const { Cell::new(Hops::new(MOST_ROUTERS)) };
    static HOSTS: Cell<Hops> = const { Cell::new(Hops::new(MOST_HOSTS)) };
}

/// A package is passed on on this thread, until this is dropped.
#[must_use]
#[derive(Debug)]
pub struct Hop {
    hops: &'static LocalKey<Cell<Hops>>,
    /// It stays on its thread.
    _thread: PhantomData<*const ()>,
}

impl Hop {
    /// From one router to another. None if it has come through too many already: they stand behind one another in a circle.
    #[inline]
    pub(crate) fn between_routers() -> Option<Self> {
        Self::begin(&ROUTERS)
    }

    /// From a node to a host, or from a host to what knows others. None, as above.
    #[inline]
    #[must_use]
    pub fn between_hosts() -> Option<Self> {
        Self::begin(&HOSTS)
    }

    #[inline]
    fn begin(key: &'static LocalKey<Cell<Hops>>) -> Option<Self> {
        let mut hops = key.get();
        let is_allowed = hops.begin();
        key.set(hops);
        // Only then: to drop one changes the count.
        is_allowed.then(|| Self {
            hops: key,
            _thread: PhantomData,
        })
    }
}

impl Drop for Hop {
    fn drop(&mut self) {
        let mut hops = self.hops.get();
        hops.end();
        self.hops.set(hops);
    }
}

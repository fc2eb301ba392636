//! The guard against routing loops.
//!
//! **Problem.** Receivers may pass envelopes on to one another in a loop. Each receiver may also
//! try a second receiver if the first has refused. A limit on the depth alone does not suffice:
//! with two tries at each level, the number of sends doubles with every level.
//!
//! **Protocol.** Each thread counts how deep its sends are nested.
//! 1. A send that reaches the limit is refused, and lowers the limit by one.
//! 2. When the outermost send of the thread returns, the limit is restored.
//!
//! **Why it ends.** After a refusal, the levels above find the limit lowered, so their other tries
//! are refused at once. The number of sends then grows with the limit, and not exponentially.
//!
//! The limit stays at or above [`MIN_LIMIT`], so a sender of many envelopes is not refused because
//! a few of them met loops. After [`MANY_REFUSALS`] refusals it falls further, because each of
//! these levels may try many receivers.

use std::cell::Cell;
use std::marker::PhantomData;
use std::thread::LocalKey;

/// The most routers on a thread that pass envelopes on to other nodes, nested in each other.
const MAX_ROUTERS: usize = 32;

/// The most hosts on a thread with sends nested in each other. A stack has room for this many.
const MAX_HOSTS: usize = 128;

/// The lowest limit before [`MANY_REFUSALS`] refusals.
const MIN_LIMIT: usize = 4;

/// From this many refusals on, the limit falls below [`MIN_LIMIT`].
const MANY_REFUSALS: usize = 1_000;

/// The nested sends of a thread.
#[derive(Clone, Copy)]
struct Hops {
    depth: usize,
    limit: usize,
    /// The limit without refusals.
    full_limit: usize,
    /// Refusals since the outermost send began.
    refused: usize,
}

impl Hops {
    const fn new(full_limit: usize) -> Self {
        Self {
            depth: 0,
            limit: full_limit,
            full_limit,
            refused: 0,
        }
    }

    /// Goes a level deeper. `false`: the limit forbids it.
    fn descend(&mut self) -> bool {
        let is_allowed = self.depth < self.limit;
        if is_allowed {
            self.depth += 1;
        } else {
            self.refused += 1;
            let lowest = if self.refused < MANY_REFUSALS {
                MIN_LIMIT
            } else {
                1
            };
            if self.depth == self.limit && self.limit > lowest {
                self.limit -= 1;
            }
        }
        is_allowed
    }

    /// Comes back from a level.
    fn ascend(&mut self) {
        self.depth -= 1;
        if self.depth == 0 {
            *self = Self::new(self.full_limit);
        }
    }
}

thread_local! {
    static ROUTERS: Cell<Hops> = const { Cell::new(Hops::new(MAX_ROUTERS)) };
    static HOSTS: Cell<Hops> = const { Cell::new(Hops::new(MAX_HOSTS)) };
}

/// A level of nesting: this thread passes an envelope on until the hop is dropped.
#[must_use]
#[derive(Debug)]
pub struct Hop {
    hops: &'static LocalKey<Cell<Hops>>,
    /// Keeps the hop on its thread.
    _thread: PhantomData<*const ()>,
}

impl Hop {
    /// Begins a hop from a router to another. `None` at the limit: the routers form a loop.
    #[inline]
    #[must_use]
    pub fn between_routers() -> Option<Self> {
        Self::begin(&ROUTERS)
    }

    /// Begins a hop from a node to a host, or from a host to another receiver. `None` at the limit:
    /// the hosts form a loop.
    #[inline]
    #[must_use]
    pub fn between_hosts() -> Option<Self> {
        Self::begin(&HOSTS)
    }

    #[inline]
    fn begin(key: &'static LocalKey<Cell<Hops>>) -> Option<Self> {
        let mut hops = key.get();
        let is_allowed = hops.descend();
        key.set(hops);
        // The hop is made only if it is allowed, because dropping it changes the depth.
        is_allowed.then(|| Self {
            hops: key,
            _thread: PhantomData,
        })
    }
}

impl Drop for Hop {
    fn drop(&mut self) {
        let mut hops = self.hops.get();
        hops.ascend();
        self.hops.set(hops);
    }
}

//! The origin of a process: its parent, its inherited values, its own limit of the mailbox, and its
//! incarnation, if it is restarted in place.
//!
//! **Problem.** Few programs hand values down, and a word for them would be in every process. So
//! the word with the parent's id may lead to a node instead, which has all of these.
//!
//! | word | what it is |
//! |---|---|
//! | odd | the parent's id above the two lowest bits; zero without a parent |
//! | even | the pointer of a node, but for the second bit |
//! | the second bit is set | the mailbox has a limit, that of the node or the scheduler's |
//!
//! Whether the mailbox has a limit is known from the start, and stays. So a sender learns from the
//! word alone that no limit exists.
//!
//! **Protocol.** The thread that sets the first of these puts a node there, by a compare and swap.
//! The node stays until the origin is dropped, so every holder of a reference to the origin may
//! read it. The values behind it are under a lock, and are never changed in place: a change
//! replaces them, and children have the values of the moment at which they were started.

use crate::base::contain::contain;
use crate::limits::room::Limit;
use ganger_proc_api::Withdrawal;
use ganger_sync::atomic::{AtomicPtr, Ordering};
use ganger_sync::sync::{Mutex, lock};
use std::any::{Any, TypeId};
use std::mem;
use std::ptr;
use std::sync::Arc;

/// The tag of a word with an id.
const IS_ID: usize = 1;

/// The tag of a process whose mailbox has a limit.
const IS_LIMITED: usize = 2;

/// Where the id begins.
const ID: u32 = 2;

/// Larger ids have a node: ids of slots that have been used a billion times.
const LARGEST_ID: usize = usize::MAX >> ID;

pub(crate) struct Origin(AtomicPtr<Node>);

struct Node {
    parent: u64,
    /// Stays as it is.
    limit: Option<Limit>,
    values: Mutex<Option<Arc<Values>>>,
    /// Set for a process that is restarted in place.
    incarnation: Mutex<Option<Incarnation>>,
}

/// A life of a process that is restarted in place.
#[derive(Clone, Default)]
pub(crate) struct Incarnation {
    /// How many there were before.
    pub(crate) number: u64,
    /// Withdraws the requests of this incarnation alone.
    pub(crate) end: Withdrawal,
}

const _: () = assert!(align_of::<Node>() > IS_ID + IS_LIMITED);

/// Inherited values, at most one of each type.
#[derive(Default)]
pub(crate) struct Values(Vec<(TypeId, Value)>);

/// A value of any type.
pub(crate) type Value = Arc<dyn Any + Send + Sync>;

impl Values {
    fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let found = self.0.iter().find(|(id, _)| *id == TypeId::of::<T>());
        Arc::clone(&found?.1).downcast().ok()
    }

    /// Returns all values, in no order.
    #[cfg(feature = "serde")]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Value> {
        self.0.iter().map(|(_, value)| value)
    }

    /// Returns these values with `value` in the place of the value of its type.
    pub(crate) fn with(&self, value: Value) -> Self {
        let id = (*value).type_id();
        let others = self.0.iter().filter(|(other, _)| *other != id).cloned();
        Self(others.chain([(id, value)]).collect())
    }
}

impl Origin {
    /// Creates the origin of a child of the process with id `parent`, or of no process for zero.
    /// The limit is its own, if it has one; `is_limited` says whether its own limit, or the
    /// scheduler's, is a number.
    pub(crate) fn new(
        parent: u64,
        values: Option<Arc<Values>>,
        limit: Option<Limit>,
        is_limited: bool,
    ) -> Self {
        let tag = if is_limited { IS_LIMITED } else { 0 };
        let word = match usize::try_from(parent) {
            Ok(id) if values.is_none() && limit.is_none() && id <= LARGEST_ID => {
                ptr::without_provenance_mut(id << ID | tag | IS_ID)
            }
            _ => Node::boxed(parent, values, limit).map_addr(|it| it | tag),
        };
        Self(AtomicPtr::new(word))
    }

    /// Returns whether the mailbox has a limit.
    #[inline(always)]
    pub(crate) fn is_limited(&self) -> bool {
        // Ordering: Relaxed: it was known before the process was shared, and stays.
        self.0.load(Ordering::Relaxed).addr() & IS_LIMITED != 0
    }

    /// Returns the mailbox's own limit, if set.
    pub(crate) fn limit(&self) -> Option<Limit> {
        self.node().ok()?.limit
    }

    /// Returns the id of the parent, if a process has started this one.
    pub(crate) fn parent(&self) -> Option<u64> {
        let id = match self.node() {
            Ok(node) => node.parent,
            Err(word) => id_of(word),
        };
        (id > 0).then_some(id)
    }

    /// Returns the values for a child that is started now.
    pub(crate) fn values(&self) -> Option<Arc<Values>> {
        self.node().ok()?.values()
    }

    /// Returns the value of type `T`.
    pub(crate) fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.values()?.get()
    }

    /// Sets a value. The caller drops the former values: their destructors may be foreign code.
    #[must_use]
    pub(crate) fn set(&self, value: Value) -> Option<Arc<Values>> {
        let node = self.node().unwrap_or_else(|word| self.put_node(word));
        let mut values = lock(&node.values);
        let next = match &*values {
            Some(values) => values.with(value),
            None => Values::default().with(value),
        };
        values.replace(Arc::new(next))
    }

    /// Sets all values, and returns the former, which the caller drops or puts back.
    #[cfg(feature = "serde")]
    #[must_use]
    pub(crate) fn replace(&self, values: Option<Arc<Values>>) -> Option<Arc<Values>> {
        if values.is_none() && self.node().is_err() {
            return None;
        }
        let node = self.node().unwrap_or_else(|word| self.put_node(word));
        mem::replace(&mut *lock(&node.values), values)
    }

    /// Returns whether the process may have values.
    pub(crate) fn has_values(&self) -> bool {
        self.node().is_ok()
    }

    /// Takes the values of a process that has ended. The caller drops them.
    #[must_use]
    pub(crate) fn take(&self) -> Option<Arc<Values>> {
        mem::take(&mut *lock(&self.node().ok()?.values))
    }

    /// Returns the incarnation, if the process may be restarted in place.
    pub(crate) fn incarnation(&self) -> Option<Incarnation> {
        lock(&self.node().ok()?.incarnation).clone()
    }

    /// Allows restarts of the process in place. This is its first incarnation, if it has none.
    pub(crate) fn begin_incarnations(&self) {
        let node = self.node().unwrap_or_else(|word| self.put_node(word));
        lock(&node.incarnation).get_or_insert_default();
    }

    /// Ends the incarnation, and begins the next.
    pub(crate) fn next_incarnation(&self) {
        let node = self.node().unwrap_or_else(|word| self.put_node(word));
        let mut incarnation = lock(&node.incarnation);
        let before = incarnation.take().unwrap_or_default();
        *incarnation = Some(Incarnation {
            number: before.number + 1,
            end: Withdrawal::default(),
        });
        drop(incarnation);
        before.end.withdraw();
    }

    /// Returns the node, or the word with an id in its place.
    fn node(&self) -> Result<&Node, *mut Node> {
        // Ordering: Acquire pairs with the Release in `put_node`.
        let word = self.0.load(Ordering::Acquire);
        if word.addr() & IS_ID != 0 {
            return Err(word);
        }
        // SAFETY: an even word is the pointer of a box with a tag, and the box lives as long as
        // this.
        Ok(unsafe { &*untagged(word) })
    }

    /// Puts a node in the place of the word, or finds the node of another thread.
    #[cold]
    fn put_node(&self, word: *mut Node) -> &Node {
        let node = Node::boxed(id_of(word), None, None);
        let tagged = node.map_addr(|it| it | word.addr() & IS_LIMITED);
        // Ordering: Release pairs with the Acquire in `node`; the Acquire of a failure with the
        // Release of the thread that was faster.
        let put = self
            .0
            .compare_exchange(word, tagged, Ordering::Release, Ordering::Acquire);
        let there = match put {
            Ok(_) => node,
            Err(there) => {
                // SAFETY: `boxed` has made it, and no other thread has seen it.
                drop(unsafe { Box::from_raw(node) });
                there
            }
        };
        // SAFETY: as in `node`: a word changes once, from an id to a pointer.
        unsafe { &*untagged(there) }
    }
}

/// Returns the pointer in an even word.
fn untagged(word: *mut Node) -> *mut Node {
    word.map_addr(|it| it & !IS_LIMITED)
}

/// Returns the id in an odd word.
fn id_of(word: *mut Node) -> u64 {
    (word.addr() >> ID) as u64
}

impl Drop for Origin {
    fn drop(&mut self) {
        // Ordering: Relaxed, because this thread has it alone.
        let word = self.0.load(Ordering::Relaxed);
        if word.addr() & IS_ID == 0 {
            // SAFETY: as in `node`, and no reference to this is left.
            Node::discard(unsafe { Box::from_raw(untagged(word)) });
        }
    }
}

impl Node {
    fn boxed(parent: u64, values: Option<Arc<Values>>, limit: Option<Limit>) -> *mut Self {
        let values = Mutex::new(values);
        Box::into_raw(Box::new(Self {
            parent,
            limit,
            values,
            incarnation: Mutex::default(),
        }))
    }

    #[cold]
    fn values(&self) -> Option<Arc<Values>> {
        lock(&self.values).clone()
    }

    /// Drops the node of a process, and values set after the end of the process. Their panics must
    /// not reach the next process in the cell.
    #[cold]
    fn discard(node: Box<Self>) {
        let _panic = contain(|| drop(node));
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_its_parent_and_its_values() {
        let largest = LARGEST_ID as u64;
        for parent in [0, 7, largest, largest + 1, u64::MAX] {
            let origin = Origin::new(parent, None, None, false);
            let expected = (parent > 0).then_some(parent);
            assert_eq!((origin.parent(), origin.get::<u8>()), (expected, None));
            assert!(origin.set(Arc::new(1_u8)).is_none());
            assert!(origin.set(Arc::new("text")).is_some());
            assert!(origin.set(Arc::new(2_u8)).is_some());
            let child = Origin::new(9, origin.values(), None, false);
            assert_eq!(
                (origin.parent(), origin.get()),
                (expected, Some(Arc::new(2_u8)))
            );
            assert_eq!(
                (child.parent(), child.get()),
                (Some(9), Some(Arc::new(2_u8)))
            );
            drop(child.set(Arc::new(3_u8)));
            drop(origin.take());
            assert_eq!((origin.get::<u8>(), origin.parent()), (None, expected));
            assert_eq!(
                (child.get(), child.get()),
                (Some(Arc::new(3_u8)), Some(Arc::new("text")))
            );
        }
    }

    #[test]
    fn incarnations_are_counted_and_each_end_withdraws_what_was_for_it() {
        let limit = Some(Limit::of(9));
        for origin in [
            Origin::new(7, None, None, true),
            Origin::new(7, Some(Arc::default()), None, true),
            Origin::new(7, None, limit, true),
        ] {
            assert!(origin.incarnation().is_none());
            origin.begin_incarnations();
            origin.begin_incarnations();
            let first = origin.incarnation().unwrap();
            assert_eq!((first.number, first.end.is_withdrawn()), (0, false));
            origin.next_incarnation();
            let second = origin.incarnation().unwrap();
            assert_eq!((second.number, second.end.is_withdrawn()), (1, false));
            assert!(first.end.is_withdrawn());
            assert_eq!(origin.parent(), Some(7));
            assert!(origin.limit().is_none_or(|it| Some(it) == limit));
            assert!(origin.is_limited());
        }
    }

    // pins: P13
    #[test]
    fn an_origin_has_its_limit_whatever_else_it_has() {
        let all = [
            None,
            Some(Limit::NONE),
            Some(Limit::of(1)),
            Some(Limit::of(usize::MAX)),
        ];
        for (limit, is_limited) in all.into_iter().flat_map(|it| [(it, false), (it, true)]) {
            for parent in [0, 7, u64::MAX] {
                let origin = Origin::new(parent, None, limit, is_limited);
                let is = || (origin.is_limited(), origin.limit(), origin.parent());
                let expected = (is_limited, limit, (parent > 0).then_some(parent));
                assert_eq!(is(), expected);
                assert!(origin.set(Arc::new(1_u8)).is_none());
                assert_eq!(is(), expected);
                assert_eq!(origin.get(), Some(Arc::new(1_u8)));
            }
        }
    }

    #[test]
    fn values_go_with_their_origin() {
        struct Bomb(#[expect(dead_code, reason = "it counts")] Arc<()>);
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("on purpose");
            }
        }
        let probe = Arc::new(());
        let origin = Origin::new(7, None, Some(Limit::NONE), false);
        drop(origin.set(Arc::new(Bomb(Arc::clone(&probe)))));
        assert_eq!(Arc::strong_count(&probe), 2);
        drop(origin);
        assert_eq!(Arc::strong_count(&probe), 1);
    }
}

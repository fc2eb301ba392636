//! What on a thread's stack counts as live, and can't end before the thread returns to it.
//!
//! A `stop` that is called in there must not wait for it. Nothing of this has a destructor, so that it works in the
//! destructors of other thread-locals, in whatever order they come.

use crate::shared::Shared;
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::ptr;

thread_local! {
    /// Empty when the thread ends, and then there is nothing to free.
    static HELD: ManuallyDrop<RefCell<Stack>> = const { ManuallyDrop::new(RefCell::new(Stack::new())) };
}

/// Why something that counts as live can't end before this thread returns to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// The turn of a process is on this thread's stack.
    Turn,
    /// A submission is.
    Submission,
    /// The hook is called that may refuse the start of the process with that id: nobody else runs it meanwhile.
    Start(u64),
    /// The reaper tells everybody that it is over: it ends nobody meanwhile.
    Telling,
    /// The first call of `stop` is at work.
    Stop,
}

type Entry = (*const Shared, Held);

/// The first few without memory of their own: nearly always they are all.
struct Stack {
    first: [Entry; FIRST],
    len: usize,
    more: Vec<Entry>,
}

const FIRST: usize = 3;

impl Stack {
    const fn new() -> Self {
        Self {
            first: [(ptr::null(), Held::Turn); FIRST],
            len: 0,
            more: Vec::new(),
        }
    }

    fn push(&mut self, entry: Entry) {
        match self.first.get_mut(self.len) {
            Some(place) => *place = entry,
            None => self.more.push(entry),
        }
        self.len += 1;
    }

    fn pop(&mut self) {
        debug_assert!(self.len > 0, "a guard for each");
        self.len -= 1;
        if self.len >= FIRST {
            self.more.pop();
        } else if self.len + 1 == FIRST {
            self.more = Vec::new();
        }
    }

    fn count(&self, wanted: Entry) -> usize {
        let entries = self.first.iter().take(self.len).chain(&self.more);
        entries.filter(|entry| **entry == wanted).count()
    }
}

/// Notes, until the guard is dropped, that this thread holds something that counts as live.
pub(crate) fn hold(shared: &Shared, what: Held) -> Hold {
    HELD.with(|held| held.borrow_mut().push((ptr::from_ref(shared), what)));
    Hold(())
}

/// Guards are dropped in the reverse order of their making.
pub(crate) struct Hold(());

impl Drop for Hold {
    fn drop(&mut self) {
        HELD.with(|held| held.borrow_mut().pop());
    }
}

/// Whether this thread is at work in the first call of `stop`, which calls users' code.
pub(crate) fn is_stopping(shared: &Shared) -> bool {
    count(shared, Held::Stop) > 0
}

pub(super) fn count(shared: &Shared, what: Held) -> usize {
    HELD.with(|held| held.borrow().count((ptr::from_ref(shared), what)))
}

/// Calls `f` as if this thread held nothing.
#[cfg(feature = "sim")]
pub(super) fn nothing<R>(f: impl FnOnce() -> R) -> R {
    struct Return(Stack);
    impl Drop for Return {
        fn drop(&mut self) {
            let held = std::mem::replace(&mut self.0, Stack::new());
            HELD.with(|place| place.replace(held));
        }
    }
    let _return = Return(HELD.with(|held| held.replace(Stack::new())));
    f()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Scheduler;

    #[test]
    fn many_are_counted_and_leave_no_memory() {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        let other = Scheduler::builder().workers(1).build().unwrap();
        let counts = |shared: &Shared| {
            [Held::Turn, Held::Submission, Held::Stop].map(|what| count(shared, what))
        };
        let mut holds = Vec::new();
        for _ in 0..4 {
            holds.push(hold(&scheduler.shared, Held::Turn));
            holds.push(hold(&scheduler.shared, Held::Submission));
            holds.push(hold(&other.shared, Held::Submission));
        }
        assert_eq!(counts(&scheduler.shared), [4, 4, 0]);
        assert_eq!(counts(&other.shared), [0, 4, 0]);
        while holds.len() > 2 {
            drop(holds.pop());
        }
        assert_eq!(counts(&scheduler.shared), [1, 1, 0]);
        let kept = HELD.with(|held| held.borrow().more.capacity());
        assert_eq!(kept, 0);
        drop(holds.pop());
        assert_eq!(counts(&scheduler.shared), [1, 0, 0]);
        drop(holds.pop());
        assert_eq!(counts(&scheduler.shared), [0, 0, 0]);
    }
}

//! A count of members, and a wait until the count is zero.

use crate::blocking::block_on;
use crate::seat::Seat;
use ganger_sync::sync::{Mutex, lock};
use ganger_wait::WaitQueue;
use ganger_wait::watch::Thing;
use std::fmt;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Counts its members. A wait ends when the count is zero. Then the group may be used again.
///
/// ```
/// use ganger_lock::WaitGroup;
/// use std::sync::Arc;
///
/// let group = Arc::new(WaitGroup::new());
/// for number in 0..4 {
///     let member = Arc::clone(&group).enter();
///     std::thread::spawn(move || {
///         println!("{number}");
///         drop(member);
///     });
/// }
/// group.wait_blocking();
/// ```
#[derive(Default)]
pub struct WaitGroup {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    count: usize,
    queue: WaitQueue<()>,
}

/// More has been done than was added. The count stays at zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("negative wait group counter: `done` was called more often than `add`")]
pub struct BelowZero;

impl WaitGroup {
    /// Creates a group with no member under way.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `count` members. Call this before the wait for them.
    ///
    /// # Panics
    /// If the sum is more than `usize::MAX`.
    pub fn add(&self, count: usize) {
        let mut state = lock(&self.state);
        state.count = match state.count.checked_add(count) {
            Some(sum) => sum,
            None => panic!("a wait group counts up to usize::MAX"),
        };
    }

    /// Counts a member as ended.
    ///
    /// # Errors
    /// [`BelowZero`] when none is under way.
    pub fn done(&self) -> Result<(), BelowZero> {
        let mut state = lock(&self.state);
        state.count = state.count.checked_sub(1).ok_or(BelowZero)?;
        let all = (state.count == 0).then(|| state.queue.take_all(None));
        drop(state);
        drop(all);
        Ok(())
    }

    /// Adds a member until the returned guard is dropped: by a task, or with the state of a process
    /// when the process ends.
    pub fn enter(self: Arc<Self>) -> Member {
        self.add(1);
        Member(self)
    }

    /// Returns the number of members under way.
    #[must_use]
    pub fn count(&self) -> usize {
        lock(&self.state).count
    }

    /// Waits until none is under way.
    pub fn wait(&self) -> GroupWait<&Self> {
        GroupWait {
            group: self,
            seat: None,
        }
    }

    /// Waits as [`wait`](Self::wait) does; the wait keeps the group alive.
    pub fn wait_owned(self: Arc<Self>) -> GroupWait<Arc<Self>> {
        GroupWait {
            group: self,
            seat: None,
        }
    }

    /// Blocks this thread until none is under way. Not for steps.
    pub fn wait_blocking(&self) {
        block_on("a wait for a group", "`wait`", self.wait());
    }
}

impl fmt::Debug for WaitGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WaitGroup").field(&self.count()).finish()
    }
}

/// A member of the group, until the guard is dropped.
#[derive(Debug)]
#[must_use = "a member that is dropped has ended at once"]
pub struct Member(Arc<WaitGroup>);

impl Drop for Member {
    fn drop(&mut self) {
        let done = self.0.done();
        debug_assert_eq!(done, Ok(()), "another one has ended in its place");
    }
}

/// Waits for a [`WaitGroup`].
#[must_use = "a future does nothing unless it is awaited"]
pub struct GroupWait<G: Deref<Target = WaitGroup>> {
    group: G,
    seat: Option<Seat>,
}

impl<G: Deref<Target = WaitGroup>> Unpin for GroupWait<G> {}

impl<G: Deref<Target = WaitGroup>> Future for GroupWait<G> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if this.seat.is_none() {
            let mut state = lock(&this.group.state);
            if state.count == 0 {
                return Poll::Ready(());
            }
            this.seat = Some(Seat::back(
                &mut state.queue,
                0,
                (),
                Thing::of("wait group", &*this.group),
            ));
        }
        match &this.seat {
            Some(seat) if seat.poll(context).is_pending() => Poll::Pending,
            _ => {
                this.seat = None;
                Poll::Ready(())
            }
        }
    }
}

impl<G: Deref<Target = WaitGroup>> Drop for GroupWait<G> {
    fn drop(&mut self) {
        if let Some(seat) = &self.seat {
            let _told_or_not = seat.leave(&mut lock(&self.group.state).queue);
        }
    }
}

impl<G: Deref<Target = WaitGroup>> fmt::Debug for GroupWait<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupWait").finish_non_exhaustive()
    }
}

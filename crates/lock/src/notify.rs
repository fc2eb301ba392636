//! Notices: something may have happened.
//!
//! A `notify_one` without a waiter is kept, once: `notify_one` before `notified` is not lost. A
//! waiter that is dropped before it has seen its notice passes the notice on: to the first waiter,
//! or to the last if the notice was for the last.

use crate::blocking::block_on;
use crate::seat::Seat;
use ganger_sync::sync::{Mutex, lock};
use ganger_wait::watch::Thing;
use ganger_wait::{Left, WaitQueue};
use std::fmt;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Tells waiters that something may have happened. The waiters then look for themselves.
///
/// ```
/// use ganger_lock::Notify;
///
/// let notify = Notify::new();
/// notify.notify_one();
/// notify.notified_blocking(); // the notice was kept
/// ```
pub struct Notify {
    state: Mutex<State>,
}

struct State {
    /// A notice is kept for the next waiter.
    is_kept: bool,
    /// How often all were told.
    rounds: u64,
    queue: WaitQueue<()>,
}

/// The cases as which a waiter is told.
const FIRST: u32 = 0;
const LAST: u32 = 1;
const ALL: u32 = 2;

impl Notify {
    /// Creates a `Notify` without a kept notice.
    #[must_use]
    pub fn new() -> Self {
        let state = State {
            is_kept: false,
            rounds: 0,
            queue: WaitQueue::new(),
        };
        let state = Mutex::new(state);
        Self { state }
    }

    /// Waits for the next notice: a kept `notify_one`, a later `notify_one`, or a `notify_all`
    /// after this call.
    pub fn notified(&self) -> Notified<&Self> {
        Notified::new(self)
    }

    /// Waits as [`notified`](Self::notified) does; the wait keeps the `Notify` alive.
    pub fn notified_owned(self: Arc<Self>) -> Notified<Arc<Self>> {
        Notified::new(self)
    }

    /// Blocks this thread until the next notice. Not for steps.
    pub fn notified_blocking(&self) {
        block_on("a wait for a notice", "`notified`", self.notified());
    }

    /// Tells the longest waiter. Without a waiter the notice is kept for the next waiter. If the
    /// wait is dropped before it has seen the notice, the notice goes to the waiter that is the
    /// longest by then.
    pub fn notify_one(&self) {
        self.notify(FIRST);
    }

    /// Tells the latest waiter. Without a waiter the notice is kept for the next waiter. If the
    /// wait is dropped before it has seen the notice, the notice goes to the waiter that is the
    /// latest by then.
    pub fn notify_last(&self) {
        self.notify(LAST);
    }

    fn notify(&self, whom: u32) {
        let mut state = lock(&self.state);
        let next = match whom {
            LAST => state.queue.pop_last_as(LAST),
            _ => state.queue.pop(),
        };
        state.is_kept |= next.is_none();
        drop(state);
        if let Some(entry) = next {
            entry.waiter.wake();
        }
    }

    /// Tells all present waiters. Keeps no notice.
    pub fn notify_all(&self) {
        let mut state = lock(&self.state);
        state.rounds += 1;
        let all = state.queue.take_all(Some(ALL));
        drop(state);
        drop(all);
    }
}

impl Default for Notify {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.state);
        f.debug_struct("Notify")
            .field("is_kept", &state.is_kept)
            .field("waiting", &state.queue.len())
            .finish()
    }
}

/// Waits for a notice of a [`Notify`].
#[must_use = "a future does nothing unless it is awaited"]
pub struct Notified<N: Deref<Target = Notify>> {
    notify: N,
    /// The rounds when it was made.
    since: u64,
    seat: Option<Seat>,
}

impl<N: Deref<Target = Notify>> Notified<N> {
    fn new(notify: N) -> Self {
        let since = lock(&notify.state).rounds;
        Self {
            notify,
            since,
            seat: None,
        }
    }
}

impl<N: Deref<Target = Notify>> Unpin for Notified<N> {}

impl<N: Deref<Target = Notify>> Future for Notified<N> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if this.seat.is_none() {
            let mut state = lock(&this.notify.state);
            if state.rounds != this.since || state.is_kept {
                state.is_kept &= state.rounds != this.since;
                return Poll::Ready(());
            }
            this.seat = Some(Seat::back(
                &mut state.queue,
                FIRST,
                (),
                Thing::of("notify", &*this.notify),
            ));
        }
        let Some(seat) = &this.seat else {
            unreachable!("it has one")
        };
        if seat.poll(context).is_pending() {
            return Poll::Pending;
        }
        this.seat = None;
        Poll::Ready(())
    }
}

impl<N: Deref<Target = Notify>> Drop for Notified<N> {
    fn drop(&mut self) {
        let Some(seat) = &self.seat else { return };
        let left = seat.leave(&mut lock(&self.notify.state).queue);
        if let Left::Claimed(whom @ (FIRST | LAST)) = left {
            self.notify.notify(whom);
        }
    }
}

impl<N: Deref<Target = Notify>> fmt::Debug for Notified<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notified").finish_non_exhaustive()
    }
}

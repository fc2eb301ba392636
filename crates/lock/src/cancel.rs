//! A tree of cancellations: a parent's cancels its children's, and not the other way round.

use crate::blocking::block_on;
use crate::seat::Seat;
use ganger_proc_api::{CancelReason, Context, ExitCause, Pid};
use ganger_sched::{ContextExt, ExitAction};
use ganger_sync::sync::{Mutex, lock};
use ganger_wait::WaitQueue;
use ganger_wait::watch::Thing;
use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{self, Poll};

/// The name of a wait for a cancellation, in reports of deadlocks.
pub(crate) const TOKEN: &str = "token";

/// Tells all clones and children of a token to stop their work, and why.
///
/// ```
/// use ganger_lock::CancellationToken;
///
/// let request = CancellationToken::new();
/// let query = request.child();
/// request.cancel("the caller has gone");
/// assert_eq!(query.cancelled_blocking().to_string(), "the caller has gone");
/// ```
#[derive(Clone)]
pub struct CancellationToken(Arc<Node>);

struct Node {
    state: Mutex<State>,
    /// The parent, and this child's number there.
    parent: Option<(Arc<Self>, u64)>,
}

#[derive(Default)]
struct State {
    reason: Option<CancelReason>,
    next: u64,
    children: BTreeMap<u64, Weak<Node>>,
    queue: WaitQueue<()>,
}

impl CancellationToken {
    /// Creates a token without a parent.
    #[must_use]
    pub fn new() -> Self {
        Self::with_parent(None, State::default())
    }

    fn with_parent(parent: Option<(Arc<Node>, u64)>, state: State) -> Self {
        let state = Mutex::new(state);
        Self(Arc::new(Node { state, parent }))
    }

    /// Creates a token for a process. The token is cancelled when the process ends, in whatever
    /// way, or is restarted in place. A process that
    /// [defers](ganger_proc_api::StepOutput::defer_cancel) its cancellation cancels the token
    /// itself. Each call creates another token.
    #[must_use]
    pub fn of_process(process: &Context) -> Self {
        let token = Self::new();
        let action = Ends(token.clone());
        if process.add_exit_action(Box::new(action)).is_err() {
            token.cancel("the process has ended");
        }
        token
    }

    /// Creates a token that is cancelled with its parent, and may be cancelled alone. The child of
    /// a cancelled token is cancelled.
    #[must_use]
    pub fn child(&self) -> Self {
        let mut state = lock(&self.0.state);
        if let Some(reason) = state.reason.clone() {
            let cancelled = State {
                reason: Some(reason),
                ..State::default()
            };
            return Self::with_parent(None, cancelled);
        }
        let number = state.next;
        state.next += 1;
        let child = Self::with_parent(Some((Arc::clone(&self.0), number)), State::default());
        state.children.insert(number, Arc::downgrade(&child.0));
        child
    }

    /// Cancels this token and the tokens below. The first reason counts. Returns whether `reason`
    /// is the first. O(n) in the tokens below.
    pub fn cancel(&self, reason: impl Into<CancelReason>) -> bool {
        let reason = reason.into();
        let mut next = vec![Arc::clone(&self.0)];
        let mut is_first = None;
        // All tokens are cancelled before the first waiter is told, so that no waker finds half of
        // a tree.
        let mut told = Vec::new();
        while let Some(node) = next.pop() {
            let mut state = lock(&node.state);
            let is_new = state.reason.is_none();
            is_first.get_or_insert(is_new);
            if !is_new {
                continue;
            }
            state.reason = Some(reason.clone());
            let children = std::mem::take(&mut state.children);
            if !state.queue.is_empty() {
                told.push(state.queue.take_all(None));
            }
            drop(state);
            next.extend(children.into_values().filter_map(|it| it.upgrade()));
        }
        is_first == Some(true)
    }

    /// Returns whether the token has been cancelled. Never blocks for long.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        lock(&self.0.state).reason.is_some()
    }

    /// Returns the reason of the cancellation, if the token has been cancelled.
    #[must_use]
    pub fn reason(&self) -> Option<CancelReason> {
        lock(&self.0.state).reason.clone()
    }

    /// Waits until it is cancelled, and says why.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled {
            token: self.clone(),
            seat: None,
        }
    }

    /// Blocks this thread until it is cancelled. Not for steps.
    #[must_use]
    pub fn cancelled_blocking(&self) -> CancelReason {
        block_on("a wait for a cancellation", "`cancelled`", self.cancelled())
    }
}

impl Default for CancellationToken {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for CancellationToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CancellationToken")
            .field(&self.reason())
            .finish()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // A long chain of parents is not dropped by recursion.
        let mut parent = self.parent.take();
        while let Some((node, number)) = parent {
            lock(&node.state).children.remove(&number);
            parent = Arc::into_inner(node).and_then(|mut it| it.parent.take());
        }
    }
}

/// Cancels the token of an ended process.
struct Ends(CancellationToken);

impl ExitAction for Ends {
    fn tell(self: Box<Self>, _: Pid, cause: &ExitCause) {
        self.0.cancel(format!("the process has ended: {cause}"));
    }

    /// Returns whether no other clone of the token is left, and no child.
    fn is_over(&self) -> bool {
        Arc::strong_count(&self.0.0) == 1
    }
}

/// Waits until a [`CancellationToken`] is cancelled.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Cancelled {
    token: CancellationToken,
    seat: Option<Seat>,
}

impl Future for Cancelled {
    type Output = CancelReason;

    fn poll(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<CancelReason> {
        let this = &mut *self;
        let mut state = lock(&this.token.0.state);
        if let Some(reason) = &state.reason {
            return Poll::Ready(reason.clone());
        }
        if this.seat.is_none() {
            this.seat = Some(Seat::back(
                &mut state.queue,
                0,
                (),
                Thing::of(TOKEN, &*this.token.0),
            ));
        }
        drop(state);
        match &this.seat {
            Some(seat) if seat.poll(context).is_pending() => Poll::Pending,
            _ => match this.token.reason() {
                Some(reason) => Poll::Ready(reason),
                None => unreachable!("all are told when there is a reason"),
            },
        }
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        if let Some(seat) = &self.seat {
            let _told_or_not = seat.leave(&mut lock(&self.token.0.state).queue);
        }
    }
}

impl fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancelled").field(&self.token).finish()
    }
}

//! The acts of actors in the workloads, the same for all peers. Each peer starts actors and sends
//! to them in its own way.

use super::gate::Gate;
use super::load::{Act, Load};
use super::turns::Stuck;
use std::marker::PhantomData;

/// How many children a node has.
pub(super) const CHILDREN: u64 = 10;

/// The turns of an actor, until it ends.
pub(super) trait Turn: Unpin + Send + 'static {
    /// Whether a turn blocks the thread: then other actors run after each turn.
    const BLOCKS: bool = false;

    /// Takes a turn; returns whether another follows.
    fn turn(&mut self) -> bool;
}

impl<F: FnMut() -> bool + Unpin + Send + 'static> Turn for F {
    fn turn(&mut self) -> bool {
        self()
    }
}

/// Runs once.
pub(super) struct Hit(pub(super) &'static Gate);

impl Act for Hit {
    type Load = u64;
    const STARTS: bool = true;

    #[inline]
    fn started(&mut self) -> bool {
        self.0.hit();
        true
    }
}

/// Hits the gate when it starts, and when a message ends it.
pub(super) struct Waiter(pub(super) &'static Gate);

impl Act for Waiter {
    type Load = u64;
    const STARTS: bool = true;

    #[inline]
    fn started(&mut self) -> bool {
        self.0.hit();
        false
    }

    #[inline]
    fn heard(&mut self, _: u64, _: impl FnOnce(u64)) -> bool {
        self.0.hit();
        true
    }
}

/// Passes numbers on until `heard` says that a number was the last.
pub(super) struct Listener<F> {
    pub(super) heard: F,
    pub(super) gate: &'static Gate,
}

impl<F: Fn(u64) -> bool + Unpin + Send + 'static> Act for Listener<F> {
    type Load = u64;

    #[inline]
    fn heard(&mut self, number: u64, _: impl FnOnce(u64)) -> bool {
        let is_last = (self.heard)(number);
        if is_last {
            self.gate.hit();
        }
        is_last
    }
}

/// Counts a number down in turns with its partner.
pub(super) struct Half<M>(pub(super) &'static Gate, pub(super) PhantomData<M>);

impl<M: Load> Act for Half<M> {
    type Load = M;

    #[inline]
    fn heard(&mut self, ball: M, pass: impl FnOnce(M)) -> bool {
        let left = ball.number().expect("none is the last");
        if left > 0 {
            pass(ball.renumbered(left - 1));
        }
        // A half sees `1`, the other `0`.
        if left <= 1 {
            self.0.hit();
        }
        left <= 1
    }
}

/// Sends tokens on, with a hop less to go.
pub(super) struct Member<M>(pub(super) &'static Gate, pub(super) PhantomData<M>);

impl<M: Load> Act for Member<M> {
    type Load = M;

    #[inline]
    fn heard(&mut self, token: M, pass: impl FnOnce(M)) -> bool {
        let number = token.number();
        match number {
            Some(0) | None => self.0.hit(),
            Some(left) => pass(token.renumbered(left - 1)),
        }
        number.is_none()
    }
}

/// Takes `left` numbers, brings their sum to the gate, and ends.
pub(super) struct Consumer<M> {
    left: u64,
    sum: u64,
    gate: &'static Gate,
    takes: PhantomData<M>,
}

impl<M> Consumer<M> {
    pub(super) fn new(left: u64, gate: &'static Gate) -> Self {
        let (sum, takes) = (0, PhantomData);
        Self {
            left,
            sum,
            gate,
            takes,
        }
    }
}

impl<M: Load> Act for Consumer<M> {
    type Load = M;
    const BATCHES: bool = true;

    #[inline]
    fn heard(&mut self, load: M, _: impl FnOnce(M)) -> bool {
        self.sum += load.number().expect("none is the last");
        self.left -= 1;
        if self.left == 0 {
            self.gate.hit_with(self.sum);
        }
        self.left == 0
    }
}

/// Sends each of the numbers below `messages` to all, without a pause, and ends.
pub(super) struct Producer<R, F> {
    pub(super) messages: u64,
    pub(super) to: Vec<R>,
    pub(super) send: F,
}

impl<R, F> Unpin for Producer<R, F> {}

impl<R: Send + 'static, F: Fn(&R, u64) + Send + 'static> Act for Producer<R, F> {
    type Load = u64;
    const STARTS: bool = true;

    #[inline]
    fn started(&mut self) -> bool {
        for number in 0..self.messages {
            for consumer in &self.to {
                (self.send)(consumer, number);
            }
        }
        true
    }
}

/// Blocks its thread in each turn.
pub(super) struct Blocker {
    pub(super) stuck: &'static Stuck,
    pub(super) gate: &'static Gate,
}

impl Turn for Blocker {
    const BLOCKS: bool = true;

    fn turn(&mut self) -> bool {
        let goes_on = self.stuck.turn();
        if !goes_on {
            self.gate.hit();
        }
        goes_on
    }
}

/// A node of a tree: with levels of others below it, or a leaf. Leaves send their number up,
/// parents the sum.
pub(super) struct Node<R> {
    pub(super) levels: u32,
    number: u64,
    /// The parent; the first node has none.
    up: Option<R>,
    gate: &'static Gate,
    left: u64,
    sum: u64,
}

impl<R> Node<R> {
    /// Creates the root of the tree.
    pub(super) fn root(levels: u32, gate: &'static Gate) -> Self {
        Self {
            levels,
            number: 0,
            up: None,
            gate,
            left: CHILDREN,
            sum: 0,
        }
    }

    /// Returns the children of the node with this address.
    pub(super) fn children(&self, this: &R) -> impl Iterator<Item = Self> + use<R>
    where
        R: Clone,
    {
        let (levels, first, gate, up) = (
            self.levels - 1,
            self.number * CHILDREN,
            self.gate,
            this.clone(),
        );
        (0..CHILDREN).map(move |child| Self {
            number: first + child,
            up: Some(up.clone()),
            ..Self::root(levels, gate)
        })
    }

    /// Sends a leaf's number up.
    pub(super) fn leaf(&self, send: impl FnOnce(&R, u64)) {
        self.send_up(self.number, send);
    }

    /// Adds a child's sum; with the last, sends the sum up, and returns that the node ends.
    pub(super) fn add(&mut self, sum: u64, send: impl FnOnce(&R, u64)) -> bool {
        self.sum += sum;
        self.left -= 1;
        if self.left == 0 {
            self.send_up(self.sum, send);
        }
        self.left == 0
    }

    fn send_up(&self, number: u64, send: impl FnOnce(&R, u64)) {
        match &self.up {
            Some(parent) => send(parent, number),
            None => self.gate.hit_with(number),
        }
    }
}

//! The workloads of actors, the same for all crates of actors. Each crate starts actors and sends
//! to them in its own way.

use super::super::bell::{Bell, LAST};
use super::super::board::Board;
use super::super::contestant::{Contestant, Deliver, Timed, failed};
use super::super::gate::Gate;
use super::super::job::Error;
use super::super::turns::{Race, Stuck};
use std::sync::Arc;
use std::time::Duration;

/// How many children a node has.
pub(super) const CHILDREN: u64 = 10;

/// What an actor does, whichever crate runs it.
pub(super) trait Act: Unpin + Send + 'static {
    /// Begins; returns whether it ends at once.
    fn started(&mut self) -> bool {
        false
    }

    /// Takes a number; `pass` sends a number to the next actor of its ring. Returns whether it
    /// ends.
    fn heard(&mut self, number: u64, pass: impl FnOnce(u64)) -> bool;
}

/// What an actor does turn by turn, until it ends.
pub(super) trait Turn: Unpin + Send + 'static {
    /// Whether a turn blocks the thread, so that others run after each of them.
    const BLOCKS: bool = false;

    /// Takes a turn; returns whether another follows.
    fn turn(&mut self) -> bool;
}

/// A crate of actors, with its running threads.
pub(super) trait Actors: Sized + 'static {
    /// The address of an actor.
    type Ref<A: Act>: Clone + Send + 'static;

    /// What its actors hit.
    fn gate(&self) -> &'static Gate;

    /// How many threads run actors.
    fn workers(&self) -> usize;

    /// Starts actors from this thread, made of their numbers, and hands their addresses out.
    fn start_each<A: Act>(
        &self,
        actors: u64,
        make: impl Fn(u64) -> A,
        started: impl FnMut(Self::Ref<A>),
    ) -> Result<(), Error>;

    /// Starts actors, each of which has the address of the next; the last has the first one's.
    fn ring<A: Act>(&self, members: u64, make: impl Fn() -> A) -> Result<Vec<Self::Ref<A>>, Error>;

    /// Sends without waiting.
    fn send<A: Act>(to: &Self::Ref<A>, number: u64) -> Result<(), Error>;

    /// Starts actors that take turns.
    fn start_turns<T: Turn>(&self, actors: u64, make: impl Fn() -> T) -> Result<(), Error>;

    /// Starts the [`Node`] above all others.
    fn start_tree(&self, levels: u32) -> Result<(), Error>;

    /// As in [`Contestant`].
    fn command_asked(&self, commands: u64) -> Timed;

    /// As in [`Contestant`].
    fn call_from_outside(&self, _calls: u64) -> Timed {
        unmeasured()
    }

    /// As in [`Contestant`].
    fn spawn_monitored(&self, _processes: u64) -> Timed {
        unmeasured()
    }

    /// As in [`Contestant`].
    fn restart(&self, _restarts: u64) -> Timed {
        unmeasured()
    }

    /// As in [`Contestant`].
    fn pool(&self, _callers: u64, _jobs: u64, _length: Duration) -> Timed {
        unmeasured()
    }

    /// As in [`Contestant`].
    fn broadcast(&self, _members: u64, _messages: u64) -> Timed {
        unmeasured()
    }

    fn start<A: Act>(&self, actor: impl Fn() -> A) -> Result<Self::Ref<A>, Error> {
        let mut all = self.start_all(1, |_| actor())?;
        all.pop().ok_or_else(|| failed("no actor"))
    }

    fn start_all<A: Act>(
        &self,
        actors: u64,
        make: impl Fn(u64) -> A,
    ) -> Result<Vec<Self::Ref<A>>, Error> {
        let mut all = Vec::with_capacity(usize::try_from(actors).map_err(failed)?);
        self.start_each(actors, make, |actor| all.push(actor))?;
        Ok(all)
    }
}

fn unmeasured<T>() -> Result<T, Error> {
    Err(Error::Missing("it is not measured".to_owned()))
}

/// Actors as a contestant.
pub(super) struct Of<P>(pub(super) P);

impl<P: Actors> Contestant for Of<P> {
    type Crowd = Vec<P::Ref<Waiter>>;

    fn spawn(&self, processes: u64) -> Timed {
        let gate = self.0.gate();
        gate.time(processes, || {
            self.0.start_each(processes, |_| Hit(gate), drop)
        })
    }

    fn skynet(&self, levels: u32) -> Timed {
        self.0.gate().time(1, || self.0.start_tree(levels))
    }

    fn yields(&self, processes: u64, each: u64) -> Timed {
        let gate = self.0.gate();
        gate.time(processes, || {
            self.0
                .start_turns(processes, || Stepper { left: each, gate })
        })
    }

    fn ping_pong(&self, pairs: u64, round_trips: u64) -> Timed {
        let gate = self.0.gate();
        let pairs = (0..pairs).map(|_| self.0.ring(2, || Half(gate)));
        let pairs: Vec<_> = pairs.collect::<Result<_, _>>()?;
        gate.time(2 * pairs.len() as u64, || {
            // The first message, and the last, which is a zero, are half a round trip each.
            let mut whites = pairs.iter().map(|pair| &pair[0]);
            whites.try_for_each(|white| P::send(white, 2 * round_trips))
        })
    }

    fn ring(&self, members: u64, tokens: u64, hops: u64) -> Timed {
        let gate = self.0.gate();
        let ring = self.0.ring(members, || Member(gate))?;
        let apart = (ring.len() / usize::try_from(tokens).map_err(failed)?).max(1);
        let starts = || ring.iter().step_by(apart);
        let time = gate.time(starts().count() as u64, || {
            starts().try_for_each(|member| P::send(member, hops))
        })?;
        gate.time(members, || {
            ring.iter().try_for_each(|member| P::send(member, LAST))
        })?;
        Ok(time)
    }

    fn fan_in(&self, producers: u64, messages: u64) -> Timed {
        let gate = self.0.gate();
        let consumer = self.0.start(|| Consumer::new(producers * messages, gate))?;
        gate.time(1, || {
            let producer = |_| Producer::<P> {
                messages,
                to: vec![consumer.clone()],
            };
            self.0.start_each(producers, producer, drop)
        })
    }

    fn fan_out(&self, receivers: u64, messages: u64) -> Timed {
        let gate = self.0.gate();
        let consumer = |_| Consumer::new(messages, gate);
        let to = self.0.start_all(receivers, consumer)?;
        gate.time(receivers, || {
            let producer = |_| Producer::<P> {
                messages,
                to: to.clone(),
            };
            self.0.start_each(1, producer, drop)
        })
    }

    fn crowd(&self, processes: u64) -> Result<(Duration, Self::Crowd), Error> {
        let gate = self.0.gate();
        let mut crowd = Vec::with_capacity(usize::try_from(processes).map_err(failed)?);
        let time = gate.time(processes, || {
            let started = |waiter| crowd.push(waiter);
            self.0.start_each(processes, |_| Waiter(gate), started)
        })?;
        Ok((time, crowd))
    }

    fn wake(&self, crowd: Self::Crowd) -> Timed {
        self.0.gate().time(crowd.len() as u64, || {
            crowd.iter().try_for_each(|waiter| P::send(waiter, 0))
        })
    }

    fn command_asked(&self, commands: u64) -> Timed {
        self.0.command_asked(commands)
    }

    fn call_from_outside(&self, calls: u64) -> Timed {
        self.0.call_from_outside(calls)
    }

    fn spawn_monitored(&self, processes: u64) -> Timed {
        self.0.spawn_monitored(processes)
    }

    fn restart(&self, restarts: u64) -> Timed {
        self.0.restart(restarts)
    }

    fn restart_in_place(&self, restarts: u64) -> Timed {
        self.0.restart(restarts)
    }

    fn pool(&self, callers: u64, jobs: u64, length: Duration) -> Timed {
        self.0.pool(callers, jobs, length)
    }

    fn broadcast(&self, members: u64, messages: u64) -> Timed {
        self.0.broadcast(members, messages)
    }

    fn sleeper(&self, bell: &'static Bell) -> Result<Deliver, Error> {
        let gate = self.0.gate();
        let heard = move |number| bell.strike(number);
        let sleeper = self.0.start(|| Listener { heard, gate })?;
        Ok(Box::new(move |number| {
            P::send(&sleeper, number).expect("the sleeper is there");
        }))
    }

    fn due(&self, board: &Arc<Board>) -> Result<Deliver, Error> {
        let gate = self.0.gate();
        let all = self.0.start_all(board.processes() as u64, |row| {
            let board = Arc::clone(board);
            let row = usize::try_from(row).expect("a row of the board");
            let heard = move |tick| board.arrive(row, tick);
            Listener { heard, gate }
        })?;
        Ok(Box::new(move |tick| {
            let mut all = all.iter();
            let sent = all.try_for_each(|process| P::send(process, tick));
            sent.expect("the processes are there");
        }))
    }

    fn workers(&self) -> usize {
        self.0.workers()
    }

    fn block(&self, stuck: &'static Stuck, processes: u64) -> Result<(), Error> {
        let gate = self.0.gate();
        self.0.start_turns(processes, || Blocker { stuck, gate })
    }

    fn race(&self, race: &'static Race, processes: u64) -> Result<(), Error> {
        let (laps, gate) = (0, self.0.gate());
        self.0.start_turns(processes, || Racer { laps, race, gate })
    }
}

/// Runs once.
struct Hit(&'static Gate);

impl Act for Hit {
    fn started(&mut self) -> bool {
        self.0.hit();
        true
    }

    fn heard(&mut self, _: u64, _: impl FnOnce(u64)) -> bool {
        true
    }
}

/// Hits the gate when it starts, and when a message ends it.
pub(in crate::whole) struct Waiter(&'static Gate);

impl Act for Waiter {
    fn started(&mut self) -> bool {
        self.0.hit();
        false
    }

    fn heard(&mut self, _: u64, _: impl FnOnce(u64)) -> bool {
        self.0.hit();
        true
    }
}

/// Passes numbers on until `heard` says that a number was the last.
struct Listener<F> {
    heard: F,
    gate: &'static Gate,
}

impl<F: Fn(u64) -> bool + Unpin + Send + 'static> Act for Listener<F> {
    fn heard(&mut self, number: u64, _: impl FnOnce(u64)) -> bool {
        let is_last = (self.heard)(number);
        if is_last {
            self.gate.hit();
        }
        is_last
    }
}

/// Counts a number down in turns with its partner.
struct Half(&'static Gate);

impl Act for Half {
    fn heard(&mut self, left: u64, pass: impl FnOnce(u64)) -> bool {
        if left > 0 {
            pass(left - 1);
        }
        // A half sees `1`, the other `0`.
        if left <= 1 {
            self.0.hit();
        }
        left <= 1
    }
}

/// Sends tokens on, with a hop less to go.
struct Member(&'static Gate);

impl Act for Member {
    fn heard(&mut self, left: u64, pass: impl FnOnce(u64)) -> bool {
        match left {
            0 | LAST => self.0.hit(),
            left => pass(left - 1),
        }
        left == LAST
    }
}

/// Takes `left` numbers, brings their sum to the gate, and ends.
pub(super) struct Consumer {
    left: u64,
    sum: u64,
    gate: &'static Gate,
}

impl Consumer {
    pub(super) fn new(left: u64, gate: &'static Gate) -> Self {
        let sum = 0;
        Self { left, sum, gate }
    }
}

impl Act for Consumer {
    fn heard(&mut self, number: u64, _: impl FnOnce(u64)) -> bool {
        self.sum += number;
        self.left -= 1;
        if self.left == 0 {
            self.gate.hit_with(self.sum);
        }
        self.left == 0
    }
}

/// Sends each of the numbers below `messages` to all, without a pause, and ends.
struct Producer<P: Actors> {
    messages: u64,
    to: Vec<P::Ref<Consumer>>,
}

impl<P: Actors> Unpin for Producer<P> {}

impl<P: Actors> Act for Producer<P> {
    fn started(&mut self) -> bool {
        for number in 0..self.messages {
            for consumer in &self.to {
                P::send(consumer, number).expect("the consumer is there");
            }
        }
        true
    }

    fn heard(&mut self, _: u64, _: impl FnOnce(u64)) -> bool {
        true
    }
}

/// Continues this many times.
struct Stepper {
    left: u64,
    gate: &'static Gate,
}

impl Turn for Stepper {
    fn turn(&mut self) -> bool {
        self.left -= 1;
        if self.left == 0 {
            self.gate.hit();
        }
        self.left > 0
    }
}

/// Blocks its thread in each turn.
struct Blocker {
    stuck: &'static Stuck,
    gate: &'static Gate,
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

/// Runs a lap a turn.
struct Racer {
    laps: u64,
    race: &'static Race,
    gate: &'static Gate,
}

impl Turn for Racer {
    fn turn(&mut self) -> bool {
        let goes_on = self.race.lap();
        if goes_on {
            self.laps += 1;
        } else {
            self.race.finish(self.laps);
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
    /// Creates the node above all others.
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

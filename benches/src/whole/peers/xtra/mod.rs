//! xtra: processes are actors with unbounded mailboxes, on a tokio runtime with many threads.
//!
//! A mailbox and its address exist before the actor does. An actor that needs an address is given
//! it at its start, its own included. Messages of the same priority wait in a heap and may be taken
//! in another order than they were sent; nothing here relies on it.

mod alone;
mod ask;
mod crowd;
mod fan;
mod pair;
mod ring;
mod tree;

use crate::whole::bell::Bell;
use crate::whole::board::Board;
use crate::whole::contestant::{Contestant, Deliver, Timed};
use crate::whole::gate::Gate;
use crate::whole::job::Error;
use crate::whole::turns::{Race, Stuck};
use ::xtra::{Actor, Address, Handler, Mailbox, spawn_tokio};
use futures_util::FutureExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{EnterGuard, Runtime};

/// A runtime.
#[derive(Debug)]
pub(super) struct Xtra {
    runtime: Runtime,
    workers: usize,
    gate: &'static Gate,
}

impl Xtra {
    /// Creates a runtime with this number of threads. Its actors hit the gate.
    pub(super) fn new(workers: usize, gate: &'static Gate) -> Result<Self, Error> {
        Ok(Self {
            runtime: super::tokio::runtime(workers)?,
            workers,
            gate,
        })
    }

    /// The calling thread may start actors while this is alive.
    fn enter(&self) -> EnterGuard<'_> {
        self.runtime.enter()
    }
}

/// Starts an actor, on the runtime that the thread has entered.
fn start<A: Actor<Stop = ()>>(actor: A) -> Address<A> {
    spawn_tokio(actor, Mailbox::unbounded())
}

/// Starts an actor that is made with its own address. The actor ends when it stops itself, because
/// its own address keeps its mailbox open.
fn start_with_address<A: Actor<Stop = ()>>(actor: impl FnOnce(Address<A>) -> A) {
    let (this, mailbox) = Mailbox::unbounded();
    drop(tokio::spawn(::xtra::run(mailbox, actor(this))));
}

/// Sends without waiting for an answer. An unbounded mailbox takes every message at once, so a
/// thread outside of the runtime can send as well.
fn send<A, M>(to: &Address<A>, message: M) -> Result<(), ::xtra::Error>
where
    A: Handler<M>,
    M: Send + 'static,
{
    let sent = to.send(message).detach().now_or_never();
    sent.expect("an unbounded mailbox has room").map(drop)
}

impl Contestant for Xtra {
    type Crowd = Vec<Address<crowd::Waiter>>;

    fn spawn(&self, processes: u64) -> Timed {
        let _inside = self.enter();
        self.gate.time(processes, || {
            for _ in 0..processes {
                drop(start(alone::Hit(self.gate)));
            }
            Ok(())
        })
    }

    fn skynet(&self, levels: u32) -> Timed {
        let _inside = self.enter();
        self.gate.time(1, || {
            tree::Node::start_root(levels, self.gate);
            Ok(())
        })
    }

    fn yields(&self, processes: u64, each: u64) -> Timed {
        let _inside = self.enter();
        let gate = self.gate;
        gate.time(processes, || {
            for _ in 0..processes {
                alone::step(each, gate);
            }
            Ok(())
        })
    }

    fn ping_pong(&self, pairs: u64, round_trips: u64) -> Timed {
        pair::run(self, pairs, round_trips)
    }

    fn ring(&self, members: u64, tokens: u64, hops: u64) -> Timed {
        ring::run(self, members, tokens, hops)
    }

    fn fan_in(&self, producers: u64, messages: u64) -> Timed {
        fan::run_in(self, producers, messages)
    }

    fn fan_out(&self, receivers: u64, messages: u64) -> Timed {
        fan::run_out(self, receivers, messages)
    }

    fn crowd(&self, processes: u64) -> Result<(Duration, Self::Crowd), Error> {
        crowd::start(self, processes)
    }

    fn wake(&self, crowd: Self::Crowd) -> Timed {
        crowd::wake(self, crowd)
    }

    fn command_asked(&self, commands: u64) -> Timed {
        ask::run(self, commands)
    }

    fn sleeper(&self, bell: &'static Bell) -> Result<Deliver, Error> {
        Ok(crowd::sleeper(self, bell))
    }

    fn due(&self, board: &Arc<Board>) -> Result<Deliver, Error> {
        Ok(crowd::due(self, board))
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn block(&self, stuck: &'static Stuck, processes: u64) -> Result<(), Error> {
        let _inside = self.enter();
        for _ in 0..processes {
            alone::block(stuck, self.gate);
        }
        Ok(())
    }

    fn race(&self, race: &'static Race, processes: u64) -> Result<(), Error> {
        let _inside = self.enter();
        for _ in 0..processes {
            alone::race(race, self.gate);
        }
        Ok(())
    }
}

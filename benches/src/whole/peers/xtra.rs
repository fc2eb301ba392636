//! xtra: processes are actors with unbounded mailboxes, on a tokio runtime with many threads.
//!
//! A mailbox and its address exist before the actor does. An actor that needs an address is given
//! it at its start, its own included. Messages of the same priority wait in a heap and may be taken
//! in another order than they were sent; nothing here relies on it.

use super::tokio::time;
use crate::whole::acts::{Node, Turn};
use crate::whole::contestant::{Contestant, Ring, Services, Timed, asker, failed, throws};
use crate::whole::gate::gate;
use crate::whole::job::Error;
use crate::whole::load::Act;
use ::xtra::{Actor, Address, Context, Handler, Mailbox, spawn_tokio};
use futures_util::FutureExt;
use tokio::runtime::Runtime;
use tokio::task::coop::consume_budget;
use tokio::task::yield_now;

/// Runs the actors.
pub(super) struct Xtra(pub(super) Runtime);

/// Starts an actor that is made with its own address, on the runtime that the thread has entered.
/// The actor ends when it stops itself, because its own address keeps its mailbox open.
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

pub(in crate::whole) struct Host<A> {
    act: A,
    next: Option<Address<Self>>,
}

impl<A: Act> Actor for Host<A> {
    type Stop = ();

    async fn started(&mut self, _: &Mailbox<Self>) -> Result<(), ()> {
        // An error ends it without a look at its mailbox.
        match self.act.started() {
            true => Err(()),
            false => Ok(()),
        }
    }

    async fn stopped(self) {}
}

impl<A: Act> Handler<A::Load> for Host<A> {
    type Return = ();

    async fn handle(&mut self, load: A::Load, ctx: &mut Context<Self>) {
        let next = self.next.as_ref();
        let pass = |load| {
            let next = next.expect("a next one");
            send(next, load).expect("the next one is there");
        };
        if self.act.heard(load, pass) {
            ctx.stop_self();
        }
    }
}

/// The message of an actor to itself, to continue.
struct Again;

/// Takes turns until the last, by messages to itself.
///
/// The message alone does not let others run: an actor handles its whole mailbox before its task
/// yields. So each message is taken off the budget that tokio gives a task, as tokio's own channels
/// do. Other actors run after 128 messages.
#[derive(Actor)]
struct Looper<T> {
    this: Address<Self>,
    turns: T,
}

fn again<T: Turn>(actor: &Address<Looper<T>>) {
    send(actor, Again).expect("an actor that runs has a mailbox");
}

impl<T: Turn> Handler<Again> for Looper<T> {
    type Return = ();

    async fn handle(&mut self, _: Again, ctx: &mut Context<Self>) {
        if !self.turns.turn() {
            ctx.stop_self();
            return;
        }
        again(&self.this);
        match T::BLOCKS {
            // The budget would let other actors run after 128 turns only.
            true => yield_now().await,
            false => consume_budget().await,
        }
    }
}

/// A node of the tree. A leaf ends without a look at its mailbox.
struct Branch {
    this: Address<Self>,
    node: Node<Address<Self>>,
}

impl Branch {
    fn start(node: Node<Address<Self>>) {
        start_with_address(|this| Self { this, node });
    }

    fn send(parent: &Address<Self>, number: u64) {
        send(parent, number).expect("the parent is there");
    }
}

impl Actor for Branch {
    type Stop = ();

    async fn started(&mut self, _: &Mailbox<Self>) -> Result<(), ()> {
        if self.node.levels == 0 {
            self.node.leaf(Self::send);
            return Err(());
        }
        self.node.children(&self.this).for_each(Self::start);
        Ok(())
    }

    async fn stopped(self) {}
}

impl Handler<u64> for Branch {
    type Return = ();

    async fn handle(&mut self, sum: u64, ctx: &mut Context<Self>) {
        if self.node.add(sum, Self::send) {
            ctx.stop_self();
        }
    }
}

/// Answers each request with its own value. Ends with the last address.
#[derive(Actor)]
struct Server;

impl Handler<u64> for Server {
    type Return = u64;

    async fn handle(&mut self, number: u64, _: &mut Context<Self>) -> u64 {
        number
    }
}

impl Contestant for Xtra {
    type Ref<A: Act> = Address<Host<A>>;

    fn start_each<A: Act>(
        &self,
        actors: u64,
        make: impl Fn(u64) -> A,
        mut started: impl FnMut(Address<Host<A>>),
    ) -> Result<(), Error> {
        let _inside = self.0.enter();
        for number in 0..actors {
            let (act, next) = (make(number), None);
            started(spawn_tokio(Host { act, next }, Mailbox::unbounded()));
        }
        Ok(())
    }

    fn ring<A: Act>(&self, members: u64, make: impl Fn() -> A) -> Ring<A> {
        let _inside = self.0.enter();
        let places: Vec<(Address<Host<A>>, _)> =
            (0..members).map(|_| Mailbox::unbounded()).collect();
        let addresses = places.iter().map(|(address, _)| address.clone());
        let nexts: Vec<_> = addresses.cycle().skip(1).take(places.len()).collect();
        let member = |(place, next)| {
            let (act, next) = (make(), Some(next));
            spawn_tokio(Host { act, next }, place)
        };
        let ring = places.into_iter().zip(nexts).map(member);
        Ok(throws::<Self, A>(ring.collect::<Vec<_>>()))
    }

    fn send<A: Act>(to: &Address<Host<A>>, load: A::Load) -> Result<(), Error> {
        send(to, load).map_err(failed)
    }

    fn start_turns<T: Turn>(&self, actors: u64, make: impl Fn() -> T) -> Result<(), Error> {
        let _inside = self.0.enter();
        for _ in 0..actors {
            start_with_address(|this| {
                again(&this);
                let turns = make();
                Looper { this, turns }
            });
        }
        Ok(())
    }

    fn start_tree(&self, levels: u32) -> Result<(), Error> {
        let _inside = self.0.enter();
        Branch::start(Node::root(levels, gate()));
        Ok(())
    }
}

impl Services for Xtra {
    fn command_asked(&self, commands: u64) -> Timed {
        let _inside = self.0.enter();
        let server = spawn_tokio(Server, Mailbox::unbounded());
        let asker = asker!(1..=commands, |number| {
            server.send(number).await.expect("an answer")
        });
        time(&self.0, asker)
    }
}

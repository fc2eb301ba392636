//! kameo: processes are actors with unbounded mailboxes, on a tokio runtime with many threads.

use super::tokio::time;
use crate::whole::acts::{Node, Turn};
use crate::whole::contestant::{Contestant, Services, Timed, ask_in_turn, asker, failed};
use crate::whole::gate::gate;
use crate::whole::job::Error;
use crate::whole::load::Act;
use ::kameo::Actor;
use ::kameo::actor::{ActorRef, Spawn};
use ::kameo::error::Infallible;
use ::kameo::mailbox;
use ::kameo::message::{Context, Message};
use ::kameo::supervision::RestartPolicy;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::yield_now;

/// Runs the actors.
pub(super) struct Kameo(pub(super) Runtime);

/// Starts an actor, on the runtime that the thread has entered.
fn begin<A: Actor>(args: A::Args) -> ActorRef<A> {
    A::spawn_with_mailbox(args, mailbox::unbounded())
}

pub(in crate::whole) struct Host<A: Act> {
    act: A,
    next: Option<ActorRef<Self>>,
}

/// The message of nearly all workloads.
struct Number<M>(M);

/// The address of the next actor of a ring.
struct Next<A: Act>(ActorRef<Host<A>>);

impl<A: Act> Actor for Host<A> {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(mut this: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
        // An actor that ends at once ends because no reference to it is left.
        this.act.started();
        Ok(this)
    }
}

impl<A: Act> Message<Next<A>> for Host<A> {
    type Reply = ();

    async fn handle(&mut self, Next(next): Next<A>, _: &mut Context<Self, ()>) {
        self.next = Some(next);
    }
}

impl<A: Act> Message<Number<A::Load>> for Host<A> {
    type Reply = ();

    async fn handle(&mut self, Number(load): Number<A::Load>, ctx: &mut Context<Self, ()>) {
        let next = self.next.as_ref();
        let pass = |load| {
            let sent = next.expect("a next one").tell(Number(load)).try_send();
            assert!(sent.is_ok(), "the next one is there");
        };
        if self.act.heard(load, pass) {
            ctx.stop();
        }
    }
}

/// The message of an actor to itself, to continue.
struct Again;

/// Takes turns until the last, by messages to itself.
struct Looper<T>(T);

fn again<T: Turn>(actor: &ActorRef<Looper<T>>) {
    let sent = actor.tell(Again).try_send();
    assert!(sent.is_ok(), "an actor that runs has a mailbox");
}

impl<T: Turn> Actor for Looper<T> {
    type Args = T;
    type Error = Infallible;

    async fn on_start(turns: T, this: ActorRef<Self>) -> Result<Self, Infallible> {
        again(&this);
        Ok(Self(turns))
    }
}

impl<T: Turn> Message<Again> for Looper<T> {
    type Reply = ();

    async fn handle(&mut self, _: Again, ctx: &mut Context<Self, ()>) {
        if !self.0.turn() {
            ctx.stop();
            return;
        }
        if T::BLOCKS {
            // A mailbox lets other actors run after 128 messages only.
            yield_now().await;
        }
        again(ctx.actor_ref());
    }
}

/// A node of the tree. A leaf ends because no reference to it is left.
struct Branch(Node<ActorRef<Self>>);

impl Branch {
    fn send(parent: &ActorRef<Self>, number: u64) {
        parent.tell(number).try_send().expect("the parent is there");
    }
}

impl Actor for Branch {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(branch: Self, this: ActorRef<Self>) -> Result<Self, Infallible> {
        if branch.0.levels == 0 {
            branch.0.leaf(Self::send);
            return Ok(branch);
        }
        for child in branch.0.children(&this) {
            drop(begin::<Self>(Self(child)));
        }
        Ok(branch)
    }
}

impl Message<u64> for Branch {
    type Reply = ();

    async fn handle(&mut self, sum: u64, ctx: &mut Context<Self, ()>) {
        if self.0.add(sum, Self::send) {
            ctx.stop();
        }
    }
}

/// Answers each request with its own value. Ends with the last reference.
#[derive(Actor)]
struct Server;

impl Message<u64> for Server {
    type Reply = u64;

    async fn handle(&mut self, number: u64, _: &mut Context<Self, u64>) -> u64 {
        number
    }
}

/// Restarts its child alone. Ends with the last reference.
#[derive(Actor)]
struct Supervisor;

/// Fails at its first message, which it sends itself, while any failures are left. A restarted
/// actor has the mailbox of the actor before it.
#[derive(Clone)]
struct Failing {
    left: Arc<AtomicU64>,
    restarts: u64,
}

/// The error of an actor's failure.
#[derive(Debug)]
struct Failed;

impl Actor for Failing {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(failing: Self, this: ActorRef<Self>) -> Result<Self, Infallible> {
        this.tell(Again).await.expect("it has just been started");
        Ok(failing)
    }
}

impl Message<Again> for Failing {
    type Reply = Result<(), Failed>;

    async fn handle(&mut self, _: Again, ctx: &mut Context<Self, Self::Reply>) -> Self::Reply {
        // Ordering: Relaxed: a single actor at a time, and each is started by the end of the actor
        // before it.
        let left = self.left.load(Ordering::Relaxed);
        if left > 0 {
            self.left.store(left - 1, Ordering::Relaxed);
            return Err(Failed);
        }
        gate().hit_with(self.restarts);
        ctx.stop();
        Ok(())
    }
}

impl Contestant for Kameo {
    type Ref<A: Act> = ActorRef<Host<A>>;

    fn start_each<A: Act>(
        &self,
        actors: u64,
        make: impl Fn(u64) -> A,
        mut started: impl FnMut(ActorRef<Host<A>>),
    ) -> Result<(), Error> {
        let _inside = self.0.enter();
        for number in 0..actors {
            let (act, next) = (make(number), None);
            started(begin(Host { act, next }));
        }
        Ok(())
    }

    fn link<A: Act>(from: &ActorRef<Host<A>>, next: ActorRef<Host<A>>) -> Result<(), Error> {
        from.tell(Next(next)).try_send().map_err(failed)
    }

    fn send<A: Act>(to: &ActorRef<Host<A>>, load: A::Load) -> Result<(), Error> {
        to.tell(Number(load)).try_send().map_err(failed)
    }

    fn start_turns<T: Turn>(&self, actors: u64, make: impl Fn() -> T) -> Result<(), Error> {
        let _inside = self.0.enter();
        (0..actors).for_each(|_| drop(begin::<Looper<T>>(make())));
        Ok(())
    }

    fn start_tree(&self, levels: u32) -> Result<(), Error> {
        let _inside = self.0.enter();
        drop(begin::<Branch>(Branch(Node::root(levels, gate()))));
        Ok(())
    }
}

impl Services for Kameo {
    fn command_asked(&self, commands: u64) -> Timed {
        let _inside = self.0.enter();
        let server = begin::<Server>(Server);
        let asker = asker!(1..=commands, |number| {
            server.ask(number).await.expect("an answer")
        });
        time(&self.0, asker)
    }

    fn call_from_outside(&self, calls: u64) -> Timed {
        let _inside = self.0.enter();
        let server = begin::<Server>(Server);
        ask_in_turn(calls, |number| {
            let call = async { server.ask(number).await };
            self.0.block_on(call).map_err(failed)
        })
    }

    fn restart_in_place(&self, restarts: u64) -> Timed {
        self.restart(restarts)
    }

    fn restart(&self, restarts: u64) -> Timed {
        let _inside = self.0.enter();
        let child = Failing {
            left: Arc::new(AtomicU64::new(restarts)),
            restarts,
        };
        let supervisor = begin::<Supervisor>(Supervisor);
        let its = supervisor.clone();
        let child = async move {
            Failing::supervise_with(&its, move || child.clone())
                .restart_policy(RestartPolicy::Transient)
                .restart_limit(u32::MAX, Duration::from_secs(1))
                .spawn_with_mailbox(mailbox::unbounded())
                .await
        };
        let time = time(&self.0, async { drop(child.await) });
        drop(supervisor);
        time
    }
}

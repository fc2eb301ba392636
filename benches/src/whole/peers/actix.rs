//! actix: processes are actors on an arbiter, a single thread, whatever the number of workers
//! elsewhere. An actor stays on the arbiter that it was started on.

use crate::whole::acts::{Node, Turn};
use crate::whole::contestant::{Contestant, Services, Timed, asker};
use crate::whole::gate::gate;
use crate::whole::job::{Error, Job};
use crate::whole::load::Act;
use ::actix::{
    Actor, ActorContext, ActorFuture, ActorFutureExt, Addr, Arbiter, AsyncContext, Context,
    Handler, Message, System, SystemRunner, WrapFuture,
};
use std::pin::Pin;
use std::task::{self, Poll};
use tokio::task::yield_now;

/// An arbiter.
pub(super) struct Actix {
    arbiter: Arbiter,
    /// The owner of the arbiter, which need not run itself.
    _system: SystemRunner,
}

impl Actix {
    pub(super) fn new() -> Self {
        let _system = System::new();
        let arbiter = Arbiter::new();
        Self { arbiter, _system }
    }

    fn begin<A: Actor<Context = Context<A>> + Send>(&self, actor: A) -> Addr<A> {
        A::start_in_arbiter(&self.arbiter.handle(), |_| actor)
    }
}

/// The message of nearly all workloads.
struct Number<M>(M);

impl<M: 'static> Message for Number<M> {
    type Result = ();
}

/// The address of the next actor of a ring.
struct Next<A: Act>(Addr<Host<A>>);

impl<A: Act> Message for Next<A> {
    type Result = ();
}

pub(in crate::whole) struct Host<A: Act> {
    act: A,
    next: Option<Addr<Self>>,
}

impl<A: Act> Actor for Host<A> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        if self.act.started() {
            ctx.stop();
        }
    }
}

impl<A: Act> Handler<Next<A>> for Host<A> {
    type Result = ();

    fn handle(&mut self, Next(next): Next<A>, _: &mut Context<Self>) {
        self.next = Some(next);
    }
}

impl<A: Act> Handler<Number<A::Load>> for Host<A> {
    type Result = ();

    fn handle(&mut self, Number(load): Number<A::Load>, ctx: &mut Context<Self>) {
        let next = self.next.as_ref();
        let pass = |load| next.expect("a next one").do_send(Number(load));
        if self.act.heard(load, pass) {
            ctx.stop();
        }
    }
}

/// Takes turns until the last.
///
/// A message to itself does not let others run: an actor handles its whole mailbox before the
/// arbiter looks at another. So the actor has a future that asks to be polled again. An actor that
/// blocks lets the arbiter look for messages from other threads in between: an actor that wakes
/// itself would be polled again before that.
struct Looper<T>(Option<T>);

impl<T: Turn> Actor for Looper<T> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        let Some(mut turns) = self.0.take_if(|_| T::BLOCKS) else {
            ctx.spawn(Turns);
            return;
        };
        let turns = async move {
            while turns.turn() {
                yield_now().await;
            }
        };
        let ends = turns.into_actor(self).map(|(), _, ctx| ctx.stop());
        ctx.spawn(ends);
    }
}

struct Turns;

impl<T: Turn> ActorFuture<Looper<T>> for Turns {
    type Output = ();

    fn poll(
        self: Pin<&mut Self>,
        actor: &mut Looper<T>,
        ctx: &mut Context<Looper<T>>,
        task: &mut task::Context<'_>,
    ) -> Poll<()> {
        if actor.0.as_mut().is_some_and(T::turn) {
            task.waker().wake_by_ref();
            Poll::Pending
        } else {
            ctx.stop();
            Poll::Ready(())
        }
    }
}

/// A node of the tree.
struct Branch(Node<Addr<Self>>);

impl Actor for Branch {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        if self.0.levels == 0 {
            self.0.leaf(|parent, number| parent.do_send(Number(number)));
            ctx.stop();
            return;
        }
        for child in self.0.children(&ctx.address()) {
            drop(Self(child).start());
        }
    }
}

impl Handler<Number<u64>> for Branch {
    type Result = ();

    fn handle(&mut self, Number(sum): Number<u64>, ctx: &mut Context<Self>) {
        let send = |parent: &Addr<Self>, number| parent.do_send(Number(number));
        if self.0.add(sum, send) {
            ctx.stop();
        }
    }
}

/// Answers each request with its own value. Ends with the last address.
struct Server;

impl Actor for Server {
    type Context = Context<Self>;
}

struct Ask(u64);

impl Message for Ask {
    type Result = u64;
}

impl Handler<Ask> for Server {
    type Result = u64;

    fn handle(&mut self, Ask(number): Ask, _: &mut Context<Self>) -> u64 {
        number
    }
}

impl Contestant for Actix {
    type Ref<A: Act> = Addr<Host<A>>;

    fn workers(_: &Job) -> u64 {
        1
    }

    fn start_each<A: Act>(
        &self,
        actors: u64,
        make: impl Fn(u64) -> A,
        mut started: impl FnMut(Addr<Host<A>>),
    ) -> Result<(), Error> {
        for number in 0..actors {
            let (act, next) = (make(number), None);
            started(self.begin(Host { act, next }));
        }
        Ok(())
    }

    fn link<A: Act>(from: &Addr<Host<A>>, next: Addr<Host<A>>) -> Result<(), Error> {
        from.do_send(Next(next));
        Ok(())
    }

    fn send<A: Act>(to: &Addr<Host<A>>, load: A::Load) -> Result<(), Error> {
        to.do_send(Number(load));
        Ok(())
    }

    fn start_turns<T: Turn>(&self, actors: u64, make: impl Fn() -> T) -> Result<(), Error> {
        (0..actors).for_each(|_| drop(self.begin(Looper(Some(make())))));
        Ok(())
    }

    fn start_tree(&self, levels: u32) -> Result<(), Error> {
        drop(self.begin(Branch(Node::root(levels, gate()))));
        Ok(())
    }
}

impl Services for Actix {
    fn command_asked(&self, commands: u64) -> Timed {
        let server = self.begin(Server);
        let asker = asker!(1..=commands, |number| {
            server.send(Ask(number)).await.expect("an answer")
        });
        gate().time(1, || {
            assert!(self.arbiter.spawn(asker), "the arbiter runs");
            Ok(())
        })
    }
}

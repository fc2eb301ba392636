//! ractor: processes are actors on a tokio runtime with many threads.
//!
//! An actor has a type, which handles messages, and a state, given at its start here.

mod depend;
mod pool;

use crate::whole::acts::{Node, Turn};
use crate::whole::contestant::{Contestant, failed};
use crate::whole::gate::gate;
use crate::whole::job::Error;
use crate::whole::load::{Act, Load};
use ::ractor::{Actor, ActorProcessingErr, ActorRef};
use std::marker::PhantomData;
use tokio::runtime::Runtime;
use tokio::task::yield_now;

type Done = Result<(), ActorProcessingErr>;

/// Runs the actors. A factory needs timers.
pub(super) struct Ractor(pub(super) Runtime);

impl Ractor {
    fn spawn_one<A: Actor>(&self, actor: A, args: A::Arguments) -> Result<ActorRef<A::Msg>, Error> {
        let actor = Actor::spawn(None, actor, args);
        Ok(self.0.block_on(actor).map_err(failed)?.0)
    }
}

/// The type of actors with numbers as messages.
struct Host<A>(PhantomData<fn(A)>);

pub(in crate::whole) enum Message<M: Load> {
    /// The next actor of a ring.
    Next(ActorRef<Self>),
    Number(M),
}

struct State<A: Act> {
    act: A,
    next: Option<ActorRef<Message<A::Load>>>,
}

impl<A: Act> Actor for Host<A> {
    type Msg = Message<A::Load>;
    type State = State<A>;
    type Arguments = A;

    async fn pre_start(
        &self,
        _: ActorRef<Self::Msg>,
        act: A,
    ) -> Result<State<A>, ActorProcessingErr> {
        let next = None;
        Ok(State { act, next })
    }

    async fn post_start(&self, this: ActorRef<Self::Msg>, state: &mut State<A>) -> Done {
        if state.act.started() {
            this.stop(None);
        }
        Ok(())
    }

    async fn handle(
        &self,
        this: ActorRef<Self::Msg>,
        message: Self::Msg,
        State { act, next }: &mut State<A>,
    ) -> Done {
        let load = match message {
            Message::Next(actor) => {
                *next = Some(actor);
                return Ok(());
            }
            Message::Number(load) => load,
        };
        let pass = |load| {
            let next = next.as_ref().expect("a next one");
            let sent = next.send_message(Message::Number(load));
            assert!(sent.is_ok(), "the next one is there");
        };
        if act.heard(load, pass) {
            this.stop(None);
        }
        Ok(())
    }
}

/// The type of actors that take turns until the last, by messages to themselves.
struct Looper<T>(PhantomData<fn(T)>);

impl<T: Turn> Actor for Looper<T> {
    type Msg = ();
    type State = T;
    type Arguments = T;

    async fn pre_start(&self, this: ActorRef<()>, turns: T) -> Result<T, ActorProcessingErr> {
        this.send_message(())?;
        Ok(turns)
    }

    async fn handle(&self, this: ActorRef<()>, (): (), turns: &mut T) -> Done {
        if !turns.turn() {
            this.stop(None);
            return Ok(());
        }
        if T::BLOCKS {
            // A mailbox lets other actors run after 128 messages only.
            yield_now().await;
        }
        Ok(this.send_message(())?)
    }
}

/// The type of the nodes of the tree.
struct Branch;

fn send_up(parent: &ActorRef<u64>, number: u64) {
    parent.send_message(number).expect("the parent is there");
}

impl Actor for Branch {
    type Msg = u64;
    type State = Node<ActorRef<u64>>;
    type Arguments = Node<ActorRef<u64>>;

    async fn pre_start(
        &self,
        _: ActorRef<u64>,
        node: Self::State,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(node)
    }

    async fn post_start(&self, this: ActorRef<u64>, node: &mut Self::State) -> Done {
        if node.levels == 0 {
            node.leaf(send_up);
            this.stop(None);
            return Ok(());
        }
        for child in node.children(&this) {
            Actor::spawn(None, Self, child).await?;
        }
        Ok(())
    }

    async fn handle(&self, this: ActorRef<u64>, sum: u64, node: &mut Self::State) -> Done {
        if node.add(sum, send_up) {
            this.stop(None);
        }
        Ok(())
    }
}

impl Contestant for Ractor {
    type Ref<A: Act> = ActorRef<Message<A::Load>>;

    /// Starts actors by `spawn`, which runs the actor's `pre_start` here and spawns a single task;
    /// `spawn_instant`, which needs no future, spawns two.
    fn start_each<A: Act>(
        &self,
        actors: u64,
        make: impl Fn(u64) -> A,
        mut started: impl FnMut(Self::Ref<A>),
    ) -> Result<(), Error> {
        self.0.block_on(async {
            for number in 0..actors {
                let actor = Actor::spawn(None, Host(PhantomData), make(number)).await;
                started(actor.map_err(failed)?.0);
            }
            Ok(())
        })
    }

    fn link<A: Act>(from: &Self::Ref<A>, next: Self::Ref<A>) -> Result<(), Error> {
        from.send_message(Message::Next(next)).map_err(failed)
    }

    fn send<A: Act>(to: &Self::Ref<A>, load: A::Load) -> Result<(), Error> {
        to.send_message(Message::Number(load)).map_err(failed)
    }

    fn start_turns<T: Turn>(&self, actors: u64, make: impl Fn() -> T) -> Result<(), Error> {
        self.0.block_on(async {
            for _ in 0..actors {
                let actor = Actor::spawn(None, Looper(PhantomData), make()).await;
                actor.map_err(failed)?;
            }
            Ok(())
        })
    }

    fn start_tree(&self, levels: u32) -> Result<(), Error> {
        let root = Node::root(levels, gate());
        self.spawn_one(Branch, root).map(drop)
    }
}

//! Actors that depend on each other: a supervisor that is told of ends, and process groups.

use super::{Done, Message, Ractor};
use crate::whole::acts::Consumer;
use crate::whole::contestant::{Contestant, Timed};
use crate::whole::gate::Gate;
use ::ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent, pg};

pub(super) fn spawn_monitored(ractor: &Ractor, processes: u64) -> Timed {
    ractor.gate.time(1, || {
        let parent = (processes, ractor.gate);
        ractor.spawn_one(Parent, parent).map(drop)
    })
}

/// Starts actors that end at once, and counts the notices of their ends.
struct Parent;

impl Actor for Parent {
    type Msg = ();
    type State = (u64, u64, &'static Gate);
    type Arguments = (u64, &'static Gate);

    async fn pre_start(
        &self,
        _: ActorRef<()>,
        (processes, gate): Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok((processes, 0, gate))
    }

    async fn post_start(&self, this: ActorRef<()>, (processes, ..): &mut Self::State) -> Done {
        for _ in 0..*processes {
            Actor::spawn_linked(None, Child, (), this.get_cell()).await?;
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        this: ActorRef<()>,
        event: SupervisionEvent,
        (processes, told, gate): &mut Self::State,
    ) -> Done {
        if let SupervisionEvent::ActorTerminated(..) = event {
            *told += 1;
            if told == processes {
                gate.hit_with(*told);
                this.stop(None);
            }
        }
        Ok(())
    }
}

/// Ends at once.
struct Child;

impl Actor for Child {
    type Msg = ();
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<()>, (): ()) -> Done {
        Ok(())
    }

    async fn post_start(&self, this: ActorRef<()>, (): &mut ()) -> Done {
        this.stop(None);
        Ok(())
    }
}

pub(super) fn restart(ractor: &Ractor, restarts: u64) -> Timed {
    ractor.gate.time(1, || {
        let supervisor = (restarts, ractor.gate);
        ractor.spawn_one(Restarter, supervisor).map(drop)
    })
}

/// Starts an actor that fails, and another actor at the notice of each failure.
struct Restarter;

impl Actor for Restarter {
    type Msg = ();
    type State = (u64, u64, &'static Gate);
    type Arguments = (u64, &'static Gate);

    async fn pre_start(
        &self,
        _: ActorRef<()>,
        (restarts, gate): Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok((restarts, 0, gate))
    }

    async fn post_start(&self, this: ActorRef<()>, (restarts, ..): &mut Self::State) -> Done {
        Actor::spawn_linked(None, Failing, *restarts == 0, this.get_cell()).await?;
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        this: ActorRef<()>,
        event: SupervisionEvent,
        (restarts, restarted, gate): &mut Self::State,
    ) -> Done {
        match event {
            SupervisionEvent::ActorFailed(..) => {
                *restarted += 1;
                let is_last = restarted == restarts;
                Actor::spawn_linked(None, Failing, is_last, this.get_cell()).await?;
            }
            SupervisionEvent::ActorTerminated(..) => {
                gate.hit_with(*restarted);
                this.stop(None);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Fails, or ends if it is the last.
struct Failing;

impl Actor for Failing {
    type Msg = ();
    type State = bool;
    type Arguments = bool;

    async fn pre_start(&self, _: ActorRef<()>, is_last: bool) -> Result<bool, ActorProcessingErr> {
        Ok(is_last)
    }

    async fn post_start(&self, this: ActorRef<()>, is_last: &mut bool) -> Done {
        if !*is_last {
            return Err("it fails".into());
        }
        this.stop(None);
        Ok(())
    }
}

/// The name of the group.
const GROUP: &str = "broadcast";

pub(super) fn broadcast(ractor: &Ractor, members: u64, messages: u64) -> Timed {
    let consumer = |_| Consumer::<u64>::new(messages, ractor.gate);
    let consumers = ractor.start_all(members, consumer)?;
    let cells = consumers.iter().map(ActorRef::get_cell).collect();
    pg::join(GROUP.to_owned(), cells);
    ractor
        .gate
        .time(members, || ractor.spawn_one(Sender, messages).map(drop))
}

/// Sends each of the numbers below a bound to the group, without a pause, and ends.
struct Sender;

impl Actor for Sender {
    type Msg = ();
    type State = u64;
    type Arguments = u64;

    async fn pre_start(&self, _: ActorRef<()>, messages: u64) -> Result<u64, ActorProcessingErr> {
        Ok(messages)
    }

    async fn post_start(&self, this: ActorRef<()>, messages: &mut u64) -> Done {
        let group = GROUP.to_owned();
        for number in 0..*messages {
            for member in pg::get_members(&group) {
                // A member of the run before may be on its way out; sums say whether one is lost.
                drop(member.send_message::<Message<u64>>(Message::Number(number)));
            }
        }
        this.stop(None);
        Ok(())
    }
}

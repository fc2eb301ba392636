//! Actors that depend on each other: servers, supervisors with notices of ends, and process groups.

use super::{Done, Message, Ractor, pool};
use crate::whole::acts::Consumer;
use crate::whole::contestant::{Contestant, Services, Timed, ask_in_turn, asker, failed};
use crate::whole::gate::{Gate, gate};
use crate::whole::peers::tokio::time;
use ::ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent, pg};
use std::time::Duration;

/// Answers each request with its own value.
struct Server;

struct Ask(u64, RpcReplyPort<u64>);

impl Actor for Server {
    type Msg = Ask;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Ask>, (): ()) -> Done {
        Ok(())
    }

    async fn handle(&self, _: ActorRef<Ask>, Ask(number, reply): Ask, (): &mut ()) -> Done {
        Ok(reply.send(number)?)
    }
}

/// Does a single act when it starts, and ends, unless the act fails.
struct Once<F>(F);

impl<F: Fn() -> Done + Send + Sync + 'static> Actor for Once<F> {
    type Msg = ();
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<()>, (): ()) -> Done {
        Ok(())
    }

    async fn post_start(&self, this: ActorRef<()>, (): &mut ()) -> Done {
        (self.0)()?;
        this.stop(None);
        Ok(())
    }
}

/// Starts short-lived actors, and counts the notices of their ends; or starts a failing actor,
/// another at the notice of each failure, and in the end an actor without a failure.
struct Supervisor {
    restarts: bool,
}

async fn start(supervisor: &ActorRef<()>, fails: bool) -> Done {
    let child = Once(move || match fails {
        true => Err("it fails".into()),
        false => Ok(()),
    });
    Actor::spawn_linked(None, child, (), supervisor.get_cell()).await?;
    Ok(())
}

impl Actor for Supervisor {
    type Msg = ();
    type State = (u64, u64, &'static Gate);
    type Arguments = u64;

    async fn pre_start(
        &self,
        _: ActorRef<()>,
        due: u64,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok((due, 0, gate()))
    }

    async fn post_start(&self, this: ActorRef<()>, (due, ..): &mut Self::State) -> Done {
        if self.restarts {
            return start(&this, *due > 0).await;
        }
        for _ in 0..*due {
            start(&this, false).await?;
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        this: ActorRef<()>,
        event: SupervisionEvent,
        (due, told, gate): &mut Self::State,
    ) -> Done {
        let has_failed = matches!(event, SupervisionEvent::ActorFailed(..));
        let has_ended = matches!(event, SupervisionEvent::ActorTerminated(..));
        *told += u64::from(has_failed || has_ended && !self.restarts);
        if has_failed {
            start(&this, told < due).await?;
        } else if has_ended && told == due {
            gate.hit_with(*told);
            this.stop(None);
        }
        Ok(())
    }
}

/// The name of the group.
const GROUP: &str = "broadcast";

impl Ractor {
    fn supervise(&self, restarts: bool, due: u64) -> Timed {
        let supervisor = Supervisor { restarts };
        gate().time(1, || self.spawn_one(supervisor, due).map(drop))
    }
}

impl Services for Ractor {
    fn command_asked(&self, commands: u64) -> Timed {
        let server = self.spawn_one(Server, ())?;
        let its = server.clone();
        let asker = asker!(1..=commands, |number| {
            let answer = its.call(|reply| Ask(number, reply), None).await;
            answer.expect("a request").expect("an answer")
        });
        let time = time(&self.0, asker);
        server.stop(None);
        time
    }

    fn call_from_outside(&self, calls: u64) -> Timed {
        let server = self.spawn_one(Server, ())?;
        let time = ask_in_turn(calls, |number| {
            let call = server.call(|reply| Ask(number, reply), None);
            let answer = self.0.block_on(call).map_err(failed)?;
            Ok(answer.expect("an answer"))
        });
        server.stop(None);
        time
    }

    fn spawn_monitored(&self, processes: u64) -> Timed {
        self.supervise(false, processes)
    }

    fn restart(&self, restarts: u64) -> Timed {
        self.supervise(true, restarts)
    }

    fn pool(&self, callers: u64, jobs: u64, length: Duration) -> Timed {
        pool::run(self, callers, jobs, length)
    }

    fn broadcast(&self, members: u64, messages: u64) -> Timed {
        let consumer = |_| Consumer::<u64>::new(messages, gate());
        let consumers = self.start_all(members, consumer)?;
        let cells = consumers.iter().map(ActorRef::get_cell).collect();
        pg::join(GROUP.to_owned(), cells);
        let sender = Once(move || {
            let group = GROUP.to_owned();
            for number in 0..messages {
                for member in pg::get_members(&group) {
                    // A member of the run before may be on its way out; sums say whether one is
                    // lost.
                    drop(member.send_message::<Message<u64>>(Message::Number(number)));
                }
            }
            Ok(())
        });
        gate().time(members, || self.spawn_one(sender, ()).map(drop))
    }
}

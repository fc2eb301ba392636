//! Requests in sequence, which an actor answers.

use super::Ractor;
use crate::whole::contestant::Timed;
use ::ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};

pub(super) fn run(ractor: &Ractor, commands: u64) -> Timed {
    let gate = ractor.gate;
    let server = ractor.spawn_one::<Server>(())?;
    let asker = async move {
        let mut sum = 0;
        for number in 1..=commands {
            let answer = server.call(|reply| Ask(number, reply), None).await;
            sum += answer.expect("a request").expect("an answer");
        }
        server.stop(None);
        gate.hit_with(sum);
    };
    gate.time(1, || {
        drop(ractor.runtime.spawn(asker));
        Ok(())
    })
}

/// This thread asks, and waits for each answer.
pub(super) fn call_from_outside(ractor: &Ractor, calls: u64) -> Timed {
    let server = ractor.spawn_one::<Server>(())?;
    ractor.gate.time(1, || {
        let mut sum = 0;
        for number in 1..=calls {
            let call = server.call(|reply| Ask(number, reply), None);
            let answer = ractor.runtime.block_on(call);
            sum += answer.expect("a request").expect("an answer");
        }
        server.stop(None);
        ractor.gate.hit_with(sum);
        Ok(())
    })
}

/// Answers each request with its own value.
#[derive(Default)]
struct Server;

struct Ask(u64, RpcReplyPort<u64>);

impl Actor for Server {
    type Msg = Ask;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Ask>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        _: ActorRef<Ask>,
        Ask(number, reply): Ask,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        Ok(reply.send(number)?)
    }
}

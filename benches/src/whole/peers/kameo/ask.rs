//! Requests in sequence, which an actor answers.

use super::{Kameo, start};
use crate::whole::contestant::Timed;
use ::kameo::Actor;
use ::kameo::message::{Context, Message};

pub(super) fn run(kameo: &Kameo, commands: u64) -> Timed {
    let _inside = kameo.enter();
    let gate = kameo.gate;
    let server = start::<Server>(Server);
    let asker = async move {
        let mut sum = 0;
        for number in 1..=commands {
            sum += server.ask(number).await.expect("an answer");
        }
        gate.hit_with(sum);
    };
    gate.time(1, || {
        drop(kameo.runtime.spawn(asker));
        Ok(())
    })
}

/// This thread asks, and waits for each answer.
pub(super) fn call_from_outside(kameo: &Kameo, calls: u64) -> Timed {
    let _inside = kameo.enter();
    let server = start::<Server>(Server);
    kameo.gate.time(1, || {
        let mut sum = 0;
        for number in 1..=calls {
            let call = async { server.ask(number).await };
            sum += kameo.runtime.block_on(call).expect("an answer");
        }
        kameo.gate.hit_with(sum);
        Ok(())
    })
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

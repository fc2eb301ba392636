//! Requests in sequence, which an actor answers.

use super::{Xtra, start};
use crate::whole::contestant::Timed;
use ::xtra::{Actor, Context, Handler};

pub(super) fn run(xtra: &Xtra, commands: u64) -> Timed {
    let _inside = xtra.enter();
    let gate = xtra.gate;
    let server = start(Server);
    let asker = async move {
        let mut sum = 0;
        for number in 1..=commands {
            sum += server.send(number).await.expect("an answer");
        }
        gate.hit_with(sum);
    };
    gate.time(1, || {
        drop(xtra.runtime.spawn(asker));
        Ok(())
    })
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

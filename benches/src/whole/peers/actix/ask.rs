//! Requests in sequence, which an actor answers.

use super::Actix;
use crate::whole::contestant::Timed;
use ::actix::{Actor, Context, Handler, Message};

pub(super) fn run(actix: &Actix, commands: u64) -> Timed {
    let gate = actix.gate;
    let server = actix.start(Server);
    let asker = async move {
        let mut sum = 0;
        for number in 1..=commands {
            sum += server.send(Ask(number)).await.expect("an answer");
        }
        gate.hit_with(sum);
    };
    gate.time(1, || {
        assert!(actix.arbiter.spawn(asker), "the arbiter runs");
        Ok(())
    })
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

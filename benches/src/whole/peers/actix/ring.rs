//! Tokens that go round a ring.

use super::{Actix, Number};
use crate::whole::bell::LAST;
use crate::whole::contestant::{Timed, failed};
use crate::whole::gate::Gate;
use ::actix::{Actor, ActorContext, Addr, Context, Handler, Message};

pub(super) fn run(actix: &Actix, members: u64, tokens: u64, hops: u64) -> Timed {
    let gate = actix.gate;
    let ring = actix.start_all(members, |_| Member { next: None, gate });
    for (member, next) in ring.iter().zip(ring.iter().cycle().skip(1)) {
        member.do_send(Next(next.clone()));
    }
    let apart = (ring.len() / usize::try_from(tokens).map_err(failed)?).max(1);
    let starts = || ring.iter().step_by(apart);
    let time = gate.time(starts().count() as u64, || {
        starts().for_each(|member| member.do_send(Number(hops)));
        Ok(())
    })?;
    gate.time(members, || {
        ring.iter().for_each(|member| member.do_send(Number(LAST)));
        Ok(())
    })?;
    Ok(time)
}

/// Sends tokens on, with a hop less to go, to the address in its first message.
struct Member {
    next: Option<Addr<Self>>,
    gate: &'static Gate,
}

impl Actor for Member {
    type Context = Context<Self>;
}

struct Next(Addr<Member>);

impl Message for Next {
    type Result = ();
}

impl Handler<Next> for Member {
    type Result = ();

    fn handle(&mut self, Next(next): Next, _: &mut Context<Self>) {
        self.next = Some(next);
    }
}

impl Handler<Number> for Member {
    type Result = ();

    fn handle(&mut self, Number(left): Number, ctx: &mut Context<Self>) {
        match left {
            0 => self.gate.hit(),
            LAST => {
                self.gate.hit();
                ctx.stop();
            }
            left => {
                let next = self.next.as_ref().expect("a next one");
                next.do_send(Number(left - 1));
            }
        }
    }
}

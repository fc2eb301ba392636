//! Tokens that go round a ring.

use super::Ganger;
use crate::whole::contestant::{Timed, failed};
use crate::whole::gate::Gate;
use ganger_proc_api::{Context, Event, Events, Message, Payload, Process, StepOutput, StepResult};
use ganger_sched::Address;

pub(super) fn run(ganger: &Ganger, members: u64, tokens: u64, hops: u64) -> Timed {
    let gate = ganger.gate;
    let ring = ganger.submit_all(members, |_| Member { next: None, gate })?;
    for (member, next) in ring.iter().zip(ring.iter().cycle().skip(1)) {
        let next = Payload::any(next.clone());
        member.send(Message::new("next", next)).map_err(failed)?;
    }
    let apart = (ring.len() / usize::try_from(tokens).map_err(failed)?).max(1);
    let starts = || ring.iter().step_by(apart);
    let time = gate.time(starts().count() as u64, || {
        let mut starts = starts();
        starts.try_for_each(|member| member.send(Message::new("token", hops)).map_err(failed))
    })?;
    gate.time(members, || {
        let mut ring = ring.iter();
        ring.try_for_each(|member| member.send(Message::new("end", ())).map_err(failed))
    })?;
    Ok(time)
}

/// Sends tokens on, with a hop less to go, to the address in its first message.
struct Member {
    next: Option<Address>,
    gate: &'static Gate,
}

impl Process for Member {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            let Event::Message(message) = event else {
                continue;
            };
            let payload = message.payloads.into_first();
            match payload.as_u64() {
                Some(0) => self.gate.hit(),
                Some(left) => {
                    let next = self.next.as_ref().expect("a next one");
                    next.send(Message::new("token", left - 1))?;
                }
                None if payload.is_unit() => {
                    self.gate.hit();
                    out.done(());
                }
                None => self.next = payload.downcast().ok(),
            }
        }
        Ok(())
    }
}

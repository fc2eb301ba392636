//! Processes that depend on each other: calls, monitors, groups.

use super::Ganger;
use crate::whole::contestant::{Timed, failed};
use crate::whole::gate::Gate;
use ganger_link::{Group, Groups};
use ganger_proc_api::{
    Actor, Context, Event, Events, Process, Reply, StepOutput, StepResult, actor_fn, process_fn,
};
use ganger_sched::{Address, ContextExt, ProcessHandle};

/// A question.
struct Ask(u64, Reply<u64>);

/// Answers each question with its own value. Ends when it is cancelled.
fn server(ganger: &Ganger) -> Result<ProcessHandle<Ask>, crate::whole::job::Error> {
    let server = actor_fn(|_, Ask(number, reply): Ask, _| {
        reply.complete(number);
        Ok(())
    });
    ganger.scheduler.spawn(server).map_err(failed)
}

fn end(ganger: &Ganger, server: &ProcessHandle<Ask>) -> Result<(), crate::whole::job::Error> {
    ganger.scheduler.terminate(server.pid()).map_err(failed)
}

pub(super) fn call(ganger: &Ganger, calls: u64) -> Timed {
    let server = server(ganger)?;
    let asker = Asker {
        server: server.address().clone(),
        left: calls,
        sum: 0,
        gate: ganger.gate,
    };
    let time = ganger.gate.time(1, || ganger.submit(asker).map(drop))?;
    end(ganger, &server)?;
    Ok(time)
}

/// Asks for each of the numbers from `left` down to 1, after the answer to the number before, and
/// brings the sum of the answers to the gate.
struct Asker {
    server: Address<Ask>,
    left: u64,
    sum: u64,
    gate: &'static Gate,
}

impl Process for Asker {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            if let Event::Completion(answer) = event {
                self.sum += answer.take::<u64>()?;
                self.left -= 1;
            }
        }
        let number = self.left;
        if number == 0 {
            self.gate.hit_with(self.sum);
            out.done(());
        } else {
            out.ask(self.server.call(move |reply| Ask(number, reply)), number);
        }
        Ok(())
    }
}

pub(super) fn call_from_outside(ganger: &Ganger, calls: u64) -> Timed {
    let server = server(ganger)?;
    let time = ganger.gate.time(1, || {
        let mut sum = 0;
        for number in 1..=calls {
            let answer = server.call(move |reply| Ask(number, reply)).wait();
            sum += answer.map_err(failed)?;
        }
        ganger.gate.hit_with(sum);
        Ok(())
    })?;
    end(ganger, &server)?;
    Ok(time)
}

/// The number of processes started in a step.
const BATCH: u64 = 256;

pub(super) fn spawn_monitored(ganger: &Ganger, processes: u64) -> Timed {
    let parent = Parent {
        to_start: processes,
        told: 0,
        processes,
        gate: ganger.gate,
    };
    ganger.gate.time(1, || ganger.submit(parent).map(drop))
}

/// Starts processes, and counts the notices of their ends.
struct Parent {
    to_start: u64,
    told: u64,
    processes: u64,
    gate: &'static Gate,
}

impl Process for Parent {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            if let Event::Exit(_) = event {
                self.told += 1;
            }
        }
        for _ in 0..self.to_start.min(BATCH) {
            let child = process_fn(|_, _, out| {
                out.done(());
                Ok(())
            });
            ctx.monitored(1).spawn(child)?;
            self.to_start -= 1;
        }
        if self.told == self.processes {
            self.gate.hit_with(self.told);
            out.done(());
        } else if self.to_start > 0 {
            out.step_again();
        }
        Ok(())
    }
}

pub(super) fn broadcast(ganger: &Ganger, members: u64, messages: u64) -> Timed {
    let group = Groups::of(&ganger.scheduler, "broadcast").group("all");
    for _ in 0..members {
        let member = Member {
            left: messages,
            sum: 0,
            gate: ganger.gate,
        };
        let member = ganger.scheduler.spawn(member).map_err(failed)?;
        group.join(&member).map_err(failed)?;
    }
    ganger.gate.time(members, || {
        ganger.submit(Sender { messages, group }).map(drop)
    })
}

/// Takes `left` numbers, brings their sum to the gate, and ends.
struct Member {
    left: u64,
    sum: u64,
    gate: &'static Gate,
}

impl Actor for Member {
    type Message = u64;

    fn receive(&mut self, _: &Context, number: u64, out: &mut StepOutput) -> StepResult {
        self.sum += number;
        self.left -= 1;
        if self.left == 0 {
            self.gate.hit_with(self.sum);
            out.done(());
        }
        Ok(())
    }
}

/// Broadcasts each of the numbers below `messages`, in a single step, and ends.
struct Sender {
    messages: u64,
    group: Group,
}

impl Process for Sender {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for number in 0..self.messages {
            self.group.broadcast(&number);
        }
        out.done(());
        Ok(())
    }
}

//! Processes that depend on each other: calls, monitors, groups.

use super::Ganger;
use crate::whole::contestant::{Timed, failed};
use crate::whole::gate::Gate;
use ganger_link::Groups;
use ganger_proc_api::{
    Context, Event, Events, Process, Reply, StepOutput, StepResult, actor_fn, process_fn,
};
use ganger_sched::{ContextExt, ProcessHandle};

/// A question.
struct Ask(u64, Reply<u64>);

/// Calls `time` with a process that answers each question with its own value.
fn with_server(ganger: &Ganger, time: impl FnOnce(&ProcessHandle<Ask>) -> Timed) -> Timed {
    let server = actor_fn(|_, Ask(number, reply): Ask, _| {
        reply.complete(number);
        Ok(())
    });
    let server = ganger.scheduler.spawn(server).map_err(failed)?;
    let time = time(&server)?;
    ganger.scheduler.terminate(server.pid()).map_err(failed)?;
    Ok(time)
}

pub(super) fn call(ganger: &Ganger, calls: u64) -> Timed {
    with_server(ganger, |server| {
        let server = server.address().clone();
        ganger.time(Asker::new(ganger.gate, calls, move |out, number| {
            out.ask(server.call(move |reply| Ask(number, reply)), number);
        }))
    })
}

/// Calls `ask` for each number from `left` down to 1, after the answer to the number before,
/// and brings the sum of the answers to the gate.
pub(super) struct Asker<F> {
    ask: F,
    left: u64,
    sum: u64,
    gate: &'static Gate,
}

impl<F: Fn(&mut StepOutput, u64) + Send + 'static> Asker<F> {
    pub(super) fn new(gate: &'static Gate, left: u64, ask: F) -> Self {
        let sum = 0;
        Self {
            ask,
            left,
            sum,
            gate,
        }
    }
}

impl<F: Fn(&mut StepOutput, u64) + Send + 'static> Process for Asker<F> {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            if let Event::Completion(answer) = event {
                self.sum += answer.take::<u64>()?;
                self.left -= 1;
            }
        }
        if self.left == 0 {
            self.gate.hit_with(self.sum);
            out.done(());
        } else {
            (self.ask)(out, self.left);
        }
        Ok(())
    }
}

pub(super) fn call_from_outside(ganger: &Ganger, calls: u64) -> Timed {
    with_server(ganger, |server| {
        ganger.gate.time(1, || {
            let mut sum = 0;
            for number in 1..=calls {
                let answer = server.call(move |reply| Ask(number, reply)).wait();
                sum += answer.map_err(failed)?;
            }
            ganger.gate.hit_with(sum);
            Ok(())
        })
    })
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
    ganger.time(parent)
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
        let (mut left, mut sum, gate) = (messages, 0, ganger.gate);
        let member = actor_fn(move |_, number: u64, out| {
            sum += number;
            left -= 1;
            if left == 0 {
                gate.hit_with(sum);
                out.done(());
            }
            Ok(())
        });
        let member = ganger.scheduler.spawn(member).map_err(failed)?;
        group.join(&member).map_err(failed)?;
    }
    let sender = process_fn(move |_, _, out| {
        for number in 0..messages {
            group.broadcast(&number);
        }
        out.done(());
        Ok(())
    });
    ganger
        .gate
        .time(members, || ganger.submit(sender).map(drop))
}

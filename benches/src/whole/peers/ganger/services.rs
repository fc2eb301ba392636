//! Processes that depend on each other: commands, calls, monitors, restarts, pools, groups.

use super::Ganger;
use super::ask::{ASK, ECHO};
use crate::whole::contestant::{Services, Timed, ask_in_turn, failed};
use crate::whole::gate::{Gate, gate};
use crate::whole::jobs::{POOL, compute};
use ganger_link::Groups;
use ganger_proc_api::{
    Command, CommandId, Context, Event, Events, Process, Reply, StepOutput, StepResult, actor_fn,
    process_fn,
};
use ganger_sched::{ContextExt, ProcessHandle};
use ganger_supervise::{ChildSpec, Pool, Supervisor};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A question.
struct Ask(u64, Reply<u64>);

/// Calls `ask` for each number from `left` down to 1, after the answer to the number before,
/// and brings the sum of the answers to the gate.
struct Asker<F> {
    ask: F,
    left: u64,
    sum: u64,
    gate: &'static Gate,
}

impl<F: Fn(&mut StepOutput, u64) + Send + 'static> Asker<F> {
    fn new(left: u64, ask: F) -> Self {
        let (sum, gate) = (0, gate());
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

/// The number of processes started in a step.
const BATCH: u64 = 256;

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

impl Ganger {
    /// Yields a command with each of the numbers down to 1, after the answer to the command before.
    fn command(&self, command: CommandId, commands: u64) -> Timed {
        self.time(Asker::new(commands, move |out, number| {
            out.yield_command(Command::new(command, number), number);
        }))
    }

    /// Calls `time` with a process that answers each question with its own value.
    fn with_server(&self, time: impl FnOnce(&ProcessHandle<Ask>) -> Timed) -> Timed {
        let server = actor_fn(|_, Ask(number, reply): Ask, _| {
            reply.complete(number);
            Ok(())
        });
        let server = self.scheduler.spawn(server).map_err(failed)?;
        let time = time(&server)?;
        self.scheduler.terminate(server.pid()).map_err(failed)?;
        Ok(time)
    }

    /// Restarts a failing process; `child` makes the child of its factory.
    fn restarts(&self, restarts: u64, child: fn(ChildSpec) -> ChildSpec) -> Timed {
        let left = Arc::new(AtomicU64::new(restarts));
        let gate = gate();
        let mut tree = None;
        let time = gate.time(1, || {
            // Fails in its first step while any failures are left.
            let failing = ChildSpec::new("failing", move || {
                let left = Arc::clone(&left);
                process_fn(move |ctx, _, _| {
                    if ctx.is_cancelled() {
                        return Ok(());
                    }
                    // Ordering: Relaxed: a single process at a time, and each is started by the
                    // end of the process before it.
                    let now = left.load(Ordering::Relaxed);
                    if now > 0 {
                        left.store(now - 1, Ordering::Relaxed);
                        return Err("it fails".into());
                    }
                    gate.hit_with(restarts);
                    Ok(())
                })
            });
            let supervisor = Supervisor::one_for_one().intensity(u32::MAX, Duration::ZERO);
            let started = supervisor.with(child(failing)).start(&self.scheduler);
            tree = Some(started.map_err(failed)?);
            Ok(())
        })?;
        if let Some(tree) = tree {
            tree.stop();
        }
        Ok(time)
    }
}

impl Services for Ganger {
    fn command_inline(&self, commands: u64) -> Timed {
        self.command(ECHO, commands)
    }

    fn command_asked(&self, commands: u64) -> Timed {
        self.command(ASK, commands)
    }

    fn call(&self, calls: u64) -> Timed {
        self.with_server(|server| {
            let server = server.address().clone();
            self.time(Asker::new(calls, move |out, number| {
                out.ask(server.call(move |reply| Ask(number, reply)), number);
            }))
        })
    }

    fn call_from_outside(&self, calls: u64) -> Timed {
        self.with_server(|server| {
            ask_in_turn(calls, |number| {
                let answer = server.call(move |reply| Ask(number, reply)).wait();
                answer.map_err(failed)
            })
        })
    }

    fn spawn_monitored(&self, processes: u64) -> Timed {
        self.time(Parent {
            to_start: processes,
            told: 0,
            processes,
            gate: gate(),
        })
    }

    fn restart(&self, restarts: u64) -> Timed {
        self.restarts(restarts, |child| child)
    }

    fn restart_in_place(&self, restarts: u64) -> Timed {
        self.restarts(restarts, ChildSpec::in_place)
    }

    fn pool(&self, callers: u64, jobs: u64, length: Duration) -> Timed {
        let work = move || move |number| Ok(compute(number, length));
        let pool = Pool::new(POOL, work).start(&self.scheduler);
        let pool = pool.map_err(failed)?;
        let time = gate().time(callers, || {
            (0..callers).try_for_each(|_| {
                let pool = pool.remote();
                let caller = Asker::new(jobs, move |out, number| {
                    out.ask(pool.call(number), number);
                });
                self.submit(caller).map(drop)
            })
        })?;
        pool.stop();
        Ok(time)
    }

    fn broadcast(&self, members: u64, messages: u64) -> Timed {
        let group = Groups::of(&self.scheduler, "broadcast").group("all");
        for _ in 0..members {
            let (mut left, mut sum, gate) = (messages, 0, gate());
            let member = actor_fn(move |_, number: u64, out| {
                sum += number;
                left -= 1;
                if left == 0 {
                    gate.hit_with(sum);
                    out.done(());
                }
                Ok(())
            });
            let member = self.scheduler.spawn(member).map_err(failed)?;
            group.join(&member).map_err(failed)?;
        }
        let sender = process_fn(move |_, _, out| {
            for number in 0..messages {
                group.broadcast(&number);
            }
            out.done(());
            Ok(())
        });
        gate().time(members, || self.submit(sender).map(drop))
    }
}

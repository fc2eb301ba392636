//! Plans, carried out in a simulation.

use crate::calls::{self, aim};
use crate::handlers::{Hooks, register, register_factories};
use crate::notes::Call;
use crate::plan::{Answer, Op, Plan};
use crate::spec::Limits;
use crate::world::{Hub, World};
use ganger_sched::ProcessState;
use ganger_sim::{Faults, Report, Rt, Sim, Strategy};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// What became of a plan.
#[derive(Debug)]
#[non_exhaustive]
pub struct Played {
    /// What the simulation has to say.
    pub report: Report,
    /// What calls have returned, each once, and how processes have ended.
    pub reached: BTreeSet<String>,
}

/// Carries out the plan that these bytes are: see [`play`].
///
/// # Panics
/// As `play`.
pub fn play_bytes(bytes: &[u8]) {
    play(&Plan::from_bytes(bytes));
}

/// Does what the plan says to a scheduler in a simulation, and compares all that can be seen with the specification.
/// # Panics
/// When anything is not as it has to be: says what, and what had happened before.
pub fn play(plan: &Plan) -> Played {
    let hub = Arc::new(Hub::default());
    let limits = Limits {
        batch: plan.batch,
        mailbox: plan.mailbox,
        processes: plan.processes,
    };
    let world = World::new(&hub, 0, limits);
    let strategy = match plan.seed % 4 {
        0 => Strategy::Priorities {
            changes: 3,
            moves: 300,
        },
        _ => Strategy::Random,
    };
    let sim = Sim::new(plan.seed).workers(plan.workers).strategy(strategy);
    let sim = sim.faults(Faults {
        worker_stalls: 30,
        ..Faults::some()
    });
    let hooks = Arc::clone(&hub);
    let sim = sim.builder(move |builder| {
        let builder = builder.event_batch(limits.batch);
        let builder = builder.lifecycle(Hooks(Arc::clone(&hooks)));
        let builder = match limits.mailbox {
            Some(limit) => builder.mailbox_limit(limit),
            None => builder,
        };
        match limits.processes {
            Some(limit) => builder.max_processes(limit),
            None => builder,
        }
    });
    let report = sim.run(|rt| {
        let mut is_stopped = false;
        hub.connect(rt, Some(rt.clock()));
        let registered = register(&hub, rt).is_ok() && register_factories(&world, rt).is_ok();
        assert!(registered, "handlers and factories can be registered");
        for &op in &plan.ops {
            act(&world, rt, op, &mut is_stopped);
            world.assert_right();
        }
        settle(&world, rt);
        act(&world, rt, Op::Stop(0), &mut is_stopped);
        while !world.state().kept.is_empty() {
            calls::complete_kept(&world, 0, Answer::Dropped);
        }
        settle(&world, rt);
        world.tell("over", |spec| spec.over());
        world.check_handles();
        world.assert_right();
    });
    world.assert_right();
    let reached = world.reached();
    Played { report, reached }
}

/// One thing, from outside.
fn act(world: &Arc<World>, rt: &Rt<'_>, op: Op, is_stopped: &mut bool) {
    let aim = |to| aim(world, to);
    match op {
        Op::Settle => settle(world, rt),
        Op::Move(moves) => (0..moves).for_each(|_| _ = rt.step()),
        Op::Submit {
            nature,
            start,
            chosen,
        } => calls::submit_from_outside(world, rt, nature, start, chosen),
        Op::Send { to, act, control } => {
            if let Some(to) = aim(to) {
                calls::send_from_outside(world, rt, to, act, control);
            }
        }
        Op::Cancel(to) => _ = aim(to).map(|to| calls::cancel(world, rt, to)),
        Op::Terminate(to) => _ = aim(to).map(|to| calls::terminate(world, rt, to)),
        Op::Upgrade(to, next) => _ = aim(to).map(|to| calls::upgrade(world, rt, to, next)),
        Op::Complete(nth, answer) => calls::complete_kept(world, nth, answer),
        Op::Stop(micros) => {
            if !std::mem::replace(is_stopped, true) {
                stop(world, rt, Duration::from_micros(micros));
            }
        }
    }
}

/// Until nobody can move; then all that can be seen is compared.
fn settle(world: &World, rt: &Rt<'_>) {
    rt.settle();
    world.tell("settled", |spec| spec.settled());
    let mut found: Vec<_> = rt
        .processes()
        .into_iter()
        .map(|it| {
            let is_blocked = it.state == ProcessState::Blocked;
            let waits = is_blocked || it.state == ProcessState::Idle;
            world.compare("it waits (P3)", Some((it.pid, true)), (it.pid, waits));
            (it.pid, it.incarnation, it.is_cancelled, is_blocked)
        })
        .collect();
    found.sort_unstable();
    let stats = rt.stats();
    let (living, counts) = {
        let spec = &world.state().spec;
        (spec.living(), spec.counts().check(&stats.total))
    };
    world.compare("the live processes (P15)", Some(living.len()), stats.live);
    world.compare("the list of processes (P3, P15)", Some(living), found);
    world.tell("counts", |_| counts);
}

fn stop(world: &World, rt: &Rt<'_>, deadline: Duration) {
    let end = rt.now().saturating_add(deadline);
    world.ask(|_| Call::Stop, |spec| spec.stop(end));
    let report = rt.stop(deadline);
    world.compare(
        "closing and stuck (D3)",
        Some((0, 0)),
        (report.closing, report.stuck.len()),
    );
    world.tell("reported", |spec| {
        spec.stopped(report.completed, report.forced)
    });
}

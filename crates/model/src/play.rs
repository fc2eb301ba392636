//! Plans, carried out in a simulation.

use crate::calls::{self, aim};
use crate::counted;
use crate::far;
use crate::handlers::{Hooks, register, register_factories};
use crate::notes::Call;
use crate::plan::{Act, Answer, Nature, Op, Plan, Start, Way};
use crate::spec::Limits;
use crate::starts::{submit_from_outside, upgrade};
use crate::waits;
use crate::world::{Hub, World};
use ganger_proc_api::Pid;
use ganger_sched::{Observe, ProcessState};
use ganger_sim::{Faults, Report, Rt, Sim, Strategy};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The time of spares without work before their end: they end within a plan.
const BRIEFLY: Duration = Duration::from_millis(30);

/// The result of a plan.
#[derive(Debug)]
#[non_exhaustive]
pub struct Played {
    /// The report of the simulation.
    pub report: Report,
    /// The results of calls, each once, and the ends of processes.
    pub reached: BTreeSet<String>,
}

/// Carries out the plan of these bytes: see [`play`].
///
/// # Panics
/// As `play`.
pub fn play_bytes(bytes: &[u8]) {
    play(&Plan::from_bytes(bytes));
}

/// Carries a plan out on a scheduler in a simulation, and compares all visible results with the
/// specification.
///
/// # Panics
/// If anything differs. The text has the difference, and the events before.
pub fn play(plan: &Plan) -> Played {
    // Counts take no part in the events of a plan: each plan may have any level.
    let level = match plan.seed % 3 {
        0 => Observe::Off,
        1 => Observe::Counts,
        _ => Observe::Histograms,
    };
    play_observed(plan, level)
}

/// Plays a plan as [`play`] does, on a scheduler that counts so much of itself; the counts have to
/// be those of the specification.
///
/// # Panics
/// As `play`.
pub fn play_observed(plan: &Plan, level: Observe) -> Played {
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
    let sim = sim.spares(plan.blocks.unwrap_or(0)).faults(Faults {
        worker_stalls: 30,
        step_blocks: if plan.blocks.is_some() { 50 } else { 0 },
        envelope_is_late: 200,
        ..Faults::some()
    });
    let hooks = Arc::clone(&hub);
    let sim = sim.builder(move |builder| {
        let builder = limits.set(builder.keep_spares(BRIEFLY).observe(level));
        builder.lifecycle(Hooks(Arc::clone(&hooks)))
    });
    let report = sim.run(|rt| {
        let mut is_stopped = false;
        hub.connect(rt, Some(rt.clock()));
        let registered = register(&hub, rt).is_ok() && register_factories(&world, rt).is_ok();
        assert!(registered, "handlers and factories can be registered");
        let are_there = far::PLACES.map(|place| far::add(&world, rt, place));
        assert_eq!(are_there, [true; 3]);
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
        if rt.stats().total.long_steps > 0 {
            world.come_to("a spare takes over");
        }
    });
    world.assert_right();
    if report.trace.to_string().contains("nobody has needed it") {
        world.come_to("a spare ends");
    }
    let reached = world.reached();
    Played { report, reached }
}

/// Carries out an operation, from outside.
fn act(world: &Arc<World>, rt: &Rt<'_>, op: Op, is_stopped: &mut bool) {
    let aim = |to| aim(world, to);
    match op {
        Op::Settle => settle(world, rt),
        Op::Move(moves) => (0..moves).for_each(|_| _ = rt.step()),
        Op::Submit {
            nature,
            start,
            chosen,
        } => submit_from_outside(world, rt, nature, start, chosen),
        Op::Send { to, act, control } => {
            if let Some(to) = aim(to) {
                calls::send_from_outside(world, rt, to, act, control);
            }
        }
        Op::Cancel(to) => _ = aim(to).map(|to| calls::cancel(world, rt, to)),
        Op::Terminate(to) => _ = aim(to).map(|to| calls::terminate(world, rt, to)),
        Op::Upgrade(to, next) => _ = aim(to).map(|to| upgrade(world, rt, to, next)),
        Op::Complete(nth, answer) => calls::complete_kept(world, nth, answer),
        Op::Stop(micros) => {
            if !std::mem::replace(is_stopped, true) {
                stop(world, rt, Duration::from_micros(micros));
            }
        }
        Op::Wait(to, act) => _ = aim(to).map(|to| waits::begin(world, rt, to, act)),
        Op::GiveUp(nth) => waits::give_up(world, nth),
        Op::Volley {
            to,
            senders,
            each,
            act,
        } => _ = aim(to).map(|to| volley(world, rt, to, vec![each; senders], act)),
        Op::Far(from, call) => {
            _ = aim(from).map(|from| {
                far::send(world, from, call, |envelope| {
                    if call.control {
                        rt.send_control(envelope)
                    } else {
                        rt.send(envelope)
                    }
                });
            });
        }
        Op::Place(place, is_there) => far::set(world, rt, place, is_there),
        Op::Crowd {
            nature,
            start,
            submitters,
            each,
            first,
        } => crowd(world, rt, nature, start, [submitters, each], first),
        Op::Press {
            to,
            senders,
            each,
            act,
            way,
        } => _ = aim(to).map(|to| press(world, rt, to, senders * each, act, way)),
    }
}

/// Submits from several submitters in turns, while actors move.
fn crowd(
    world: &Arc<World>,
    rt: &Rt<'_>,
    nature: Nature,
    start: Start,
    [submitters, each]: [usize; 2],
    first: u64,
) {
    for turn in 0..each * submitters {
        let nth = turn as u64 / submitters as u64;
        let start = if turn % 3 == 2 { start } else { Start::Well };
        let chosen = nth.is_multiple_of(2).then_some(first + nth / 2);
        submit_from_outside(world, rt, nature, start, chosen);
        (0..rt.choose(4)).for_each(|_| _ = rt.step());
    }
}

/// Sends from several senders that wait for room at once. A simulation has no threads to block, so
/// each has a future instead.
fn press(world: &World, rt: &Rt<'_>, to: Pid, senders: usize, act: Act, way: Way) {
    let takes = if way == Way::Open {
        Act::Release
    } else {
        Act::Hold
    };
    calls::send_from_outside(world, rt, to, takes, true);
    for nth in 0..senders {
        (0..rt.choose(4)).for_each(|_| _ = rt.step());
        waits::begin(world, rt, to, if nth % 3 == 2 { act } else { Act::Note });
    }
    match way {
        Way::Open => {}
        Way::Then(act) => calls::send_from_outside(world, rt, to, act, true),
        Way::Terminated => calls::terminate(world, rt, to),
    }
}

/// Sends from several senders in random turns, between other moves; `left` has the number of
/// messages of each sender.
fn volley(world: &World, rt: &Rt<'_>, to: Pid, mut left: Vec<usize>, act: Act) {
    let mut sent = 0;
    while !left.is_empty() {
        let sender = rt.choose(left.len());
        sent += 1;
        let act = if sent % 3 == 0 { act } else { Act::Note };
        calls::send_from_outside(world, rt, to, act, false);
        left[sender] -= 1;
        if left[sender] == 0 {
            left.swap_remove(sender);
        }
        (0..rt.choose(4)).for_each(|_| _ = rt.step());
    }
}

/// Goes on until no actor can move; then compares all visible results.
fn settle(world: &World, rt: &Rt<'_>) {
    rt.settle();
    waits::look_at_all(world);
    far::look_at_returned(world, rt);
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
    counted::look_at_all(world, rt);
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

//! Plans, carried out on a scheduler with threads: each plan by a thread of its own, on processes
//! of its own.
//!
//! Each of these worlds waits after each act until all its events are over. So the events of a
//! world have a single order, and the specification knows the right results. Events of different
//! worlds have no order. They share the workers, the queues, the tables, the pools and the
//! mailboxes' memory.
//!
//! Within a world, several threads at once may send to a single process (`volley`), block there
//! until there is room (`press`), and submit (`crowd`).
//!
//! Acts that would make two processes of a world run at once are left out: a step may not send to
//! other processes, start, cancel or terminate them. A shutdown comes when all processes have
//! ended. A limit of processes holds for all worlds together, so only a single world may have a
//! limit.

mod crowd;
mod press;
mod volley;

use crate::calls::{self, aim};
use crate::handlers::{Hooks, register, register_factories};
use crate::plan::{Act, Answer, Op, Plan};
use crate::spec::{Counts, Limits};
use crate::starts::{submit_from_outside, upgrade};
use crate::waits;
use crate::world::{Hub, World, give_way};
use ganger_proc_api::Pid;
use ganger_sched::{Handle, ProcessState, Scheduler};
use std::collections::BTreeSet;
use std::hint;
use std::panic::resume_unwind;
use std::sync::{Arc, Barrier};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

/// A longer wait than this is in vain.
const IN_VAIN: Duration = Duration::from_secs(60);
/// The number of a thread's looks at other threads' progress: at first in a row, then with a yield
/// after each look, then with a pause of `BRIEFLY`. After `LOOKS` looks the thread gives up.
const SPINS: u32 = 500;
const YIELDS: u32 = SPINS + 500;
const LOOKS: u32 = YIELDS + 60_000;
const BRIEFLY: Duration = Duration::from_millis(1);

/// Carries the plans out on a single scheduler with `workers` workers, all at once.
///
/// Returns the distinct results of calls, and the distinct ends of processes.
///
/// # Panics
/// If anything differs from the specification. The text has the difference, and the events before.
pub fn play_on_threads(plans: &[Plan], workers: usize) -> BTreeSet<String> {
    let hub = Arc::new(Hub::default());
    let limits = Limits {
        batch: plans.first().map_or(256, |plan| plan.batch),
        mailbox: plans.first().and_then(|plan| plan.mailbox),
        processes: match plans {
            [plan] => plan.processes,
            _ => None,
        },
    };
    let builder = Scheduler::builder().workers(workers).quiet_failures();
    let builder = limits.set(builder);
    let builder = builder.lifecycle(Hooks(Arc::clone(&hub)));
    let Ok(scheduler) = builder.build() else {
        panic!("these settings are right");
    };
    hub.connect(&scheduler, None);
    let worlds: Vec<_> = (0..plans.len())
        .map(|nth| World::new(&hub, nth, limits))
        .collect();
    let is_registered = worlds
        .iter()
        .all(|world| register_factories(world, &scheduler).is_ok())
        && register(&hub, &scheduler).is_ok();
    assert!(is_registered && scheduler.start().is_ok());
    thread::scope(|scope| {
        for (world, plan) in worlds.iter().zip(plans) {
            let handle: &Handle = &scheduler;
            scope.spawn(move || {
                for &op in &plan.ops {
                    act(world, handle, op);
                    wait_until_quiet(world, handle);
                    world.assert_right();
                }
                end(world, handle);
            });
        }
    });
    let report = scheduler.stop(IN_VAIN).unwrap();
    // The last process may still be on its way from the hook to the counts.
    let left = (report.forced, report.stuck.len());
    assert_eq!(left, (0, 0), "all had ended before: {report:?}");
    let mut counts = Counts::default();
    for world in &worlds {
        world.tell("over", |spec| spec.over());
        world.check_handles();
        world.assert_right();
        counts += world.state().spec.counts();
    }
    let total = scheduler.stats().total;
    assert_eq!(counts.check(&total), Ok(()));
    worlds.iter().flat_map(|world| world.reached()).collect()
}

/// Blocks until all events of the world are over, and all visible results are right.
fn wait_until_quiet(world: &World, handle: &Handle) {
    world.wait_until_settled(IN_VAIN);
    let (living, limits) = {
        let spec = &world.state().spec;
        (spec.living(), spec.limits())
    };
    // A step notes its end before the scheduler has carried out its results.
    let waits_as = |(pid, ..): (Pid, u32, bool, bool)| {
        let it = handle.process(pid)?;
        let is_blocked = it.state == ProcessState::Blocked;
        let waits = is_blocked || it.state == ProcessState::Idle;
        waits.then_some((it.pid, it.incarnation, it.is_cancelled, is_blocked))
    };
    for expected in living {
        let mut looks = 0;
        while !world.is_broken() && waits_as(expected) != Some(expected) {
            looks += 1;
            if looks < SPINS {
                hint::spin_loop();
            } else if looks < YIELDS {
                thread::yield_now();
            } else if looks < LOOKS {
                thread::park_timeout(BRIEFLY);
            } else {
                world.compare(
                    "it waits (P3, P15)",
                    Some(Some(expected)),
                    waits_as(expected),
                );
            }
        }
    }
    if !world.is_broken() {
        waits::look_at_all(world);
    }
    // An ended process gives its place back after the hook has been called.
    if limits.processes.is_some() && !world.is_broken() {
        world.check_handles();
    }
}

/// Returns the results of `f`, called in a thread for each of `all`. The function that `f` is given
/// blocks until all threads call it.
fn at_once<T: Sync, R: Send>(all: &[T], f: impl Fn(&T, &dyn Fn()) -> R + Sync) -> Vec<R> {
    let barrier = Barrier::new(all.len());
    let meet = || {
        // The last thread has not slept: it gives the other threads time to wake up.
        if barrier.wait().is_leader() {
            give_way();
        }
    };
    let run = &|it| f(it, &meet);
    thread::scope(|scope| {
        let threads: Vec<_> = all.iter().map(|it| scope.spawn(move || run(it))).collect();
        let results = threads.into_iter().map(ScopedJoinHandle::join);
        results
            .map(|result| result.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}

/// Ends the remaining processes.
fn end(world: &World, handle: &Handle) {
    while !world.state().kept.is_empty() {
        calls::complete_kept(world, 0, Answer::Dropped);
        wait_until_quiet(world, handle);
    }
    end_all(world, handle);
    world.assert_right();
}

/// Terminates all processes of a world.
fn end_all(world: &World, handle: &Handle) {
    let living = world.state().spec.living();
    for (pid, ..) in living {
        calls::terminate(world, handle, pid);
        wait_until_quiet(world, handle);
    }
}

/// Carries out an operation, from outside.
fn act(world: &Arc<World>, handle: &Handle, op: Op) {
    let aim = |to| aim(world, to);
    match op {
        Op::Submit {
            nature,
            start,
            chosen,
        } => submit_from_outside(world, handle, nature, start, chosen),
        Op::Send { to, act, control } => {
            if let Some(to) = aim(to) {
                calls::send_from_outside(world, handle, to, inside_of_one(act), control);
            }
        }
        Op::Cancel(to) => _ = aim(to).map(|to| calls::cancel(world, handle, to)),
        Op::Terminate(to) => _ = aim(to).map(|to| calls::terminate(world, handle, to)),
        Op::Upgrade(to, next) => _ = aim(to).map(|to| upgrade(world, handle, to, next)),
        Op::Complete(nth, answer) => calls::complete_kept(world, nth, answer),
        Op::Volley {
            to,
            senders,
            each,
            act,
        } => {
            if let Some(to) = aim(to) {
                volley::send(world, handle, to, [senders, 25 * each], act);
            }
        }
        Op::Press {
            to,
            senders,
            each,
            act,
            way,
        } => {
            if let Some(to) = aim(to) {
                press::send(world, handle, to, [senders, each], act, way);
            }
        }
        Op::Crowd {
            nature,
            start,
            submitters,
            each,
            first,
        } => crowd::submit(world, handle, nature, start, [submitters, each], first),
        Op::Wait(to, act) => {
            _ = aim(to).map(|to| waits::begin(world, handle, to, inside_of_one(act)));
        }
        Op::GiveUp(nth) => waits::give_up(world, nth),
        Op::Settle | Op::Move(_) | Op::Stop(_) | Op::Far(..) | Op::Place(..) => {}
    }
}

/// Returns the same act, or a harmless act if `act` involves another process.
fn inside_of_one(act: Act) -> Act {
    match act {
        Act::Pass(..) | Act::Wait(..) | Act::Spawn(..) => Act::Note,
        Act::Far(_) | Act::Cancel(_) | Act::Terminate(_) => Act::Note,
        act => act,
    }
}

//! Plans, carried out on a scheduler with threads: each by a thread of its own, on processes of its own.
//!
//! Each of these worlds waits after each thing that it has done until nothing is left to happen in it; so there is
//! one order of what happens in it, and the specification says what that has to be. Between the worlds there is none:
//! workers, queues, tables, pools and the mailboxes' memory are shared. The one thing that several threads do at once
//! in a world is to send to one process: what each of them sends arrives in its order, in whatever order among the rest.
//!
//! What would have two processes of a world run at once is left out: what they send to, start, cancel and terminate
//! from inside of steps. So are limits, which count what happens after a step has written down its end. A shutdown
//! comes when all have ended.

use crate::calls::{self, aim};
use crate::handlers::{Hooks, register, register_factories};
use crate::notes::{Call, Number, Sent};
use crate::plan::{Act, Answer, Op, Plan};
use crate::spec::{Counts, Limits};
use crate::world::{Hub, World};
use ganger_proc_api::{Package, Pid};
use ganger_sched::{Handle, Scheduler};
use std::collections::BTreeSet;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

/// After which time nothing will happen any more.
const IN_VAIN: Duration = Duration::from_secs(60);

/// Does what the plans say to one scheduler, at once, with that many workers.
///
/// Returns what calls have returned, each once, and how processes have ended.
///
/// # Panics
/// When anything is not as it has to be: says what, and what had happened before.
pub fn play_on_threads(plans: &[Plan], workers: usize) -> BTreeSet<String> {
    let hub = Arc::new(Hub::default());
    let batch = plans.first().map_or(256, |plan| plan.batch);
    let builder = Scheduler::builder().workers(workers).event_batch(batch);
    let builder = builder.lifecycle(Hooks(Arc::clone(&hub)));
    let Ok(scheduler) = builder.build() else {
        panic!("these settings are right");
    };
    hub.connect(&scheduler, None);
    let limits = Limits {
        batch,
        mailbox: None,
        processes: None,
    };
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
                    world.wait_until_settled(IN_VAIN);
                    world.assert_right();
                }
                end(world, handle);
            });
        }
    });
    let report = scheduler.stop(IN_VAIN);
    // The last one may still be on its way from the hook to the counts.
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

/// Ends what is left.
fn end(world: &World, handle: &Handle) {
    while !world.state().kept.is_empty() {
        calls::complete_kept(world, 0, Answer::Dropped);
        world.wait_until_settled(IN_VAIN);
    }
    let living = world.state().spec.living();
    for (pid, ..) in living {
        calls::terminate(world, handle, pid);
        world.wait_until_settled(IN_VAIN);
    }
    world.assert_right();
}

/// One thing, from outside.
fn act(world: &Arc<World>, handle: &Handle, op: Op) {
    let aim = |to| aim(world, to);
    match op {
        Op::Submit { nature, start, .. } => {
            calls::submit_from_outside(world, handle, nature, start, None);
        }
        Op::Send { to, act, control } => {
            let act = match act {
                Act::Pass(..) | Act::Wait(..) | Act::Spawn(..) => Act::Note,
                Act::Far(_) | Act::Cancel(_) | Act::Terminate(_) => Act::Note,
                act => act,
            };
            if let Some(to) = aim(to) {
                calls::send_from_outside(world, handle, to, act, control);
            }
        }
        Op::Cancel(to) => _ = aim(to).map(|to| calls::cancel(world, handle, to)),
        Op::Terminate(to) => _ = aim(to).map(|to| calls::terminate(world, handle, to)),
        Op::Upgrade(to, next) => _ = aim(to).map(|to| calls::upgrade(world, handle, to, next)),
        Op::Complete(nth, answer) => calls::complete_kept(world, nth, answer),
        Op::Volley {
            to,
            senders,
            each,
            act,
        } => {
            if let Some(to) = aim(to) {
                volley(world, handle, to, [senders, 25 * each], act);
            }
        }
        Op::Settle | Op::Move(_) | Op::Stop(_) => {}
        Op::Wait(..) | Op::GiveUp(_) | Op::Far(..) | Op::Place(..) => {}
    }
}

/// So many threads, each of which sends so many messages to one process.
fn volley(world: &World, handle: &Handle, to: Pid, [senders, each]: [usize; 2], act: Act) {
    let streams: Vec<Vec<Number>> = (0..senders)
        .map(|_| (0..each).map(|_| world.number()).collect())
        .collect();
    for &number in streams.iter().flatten() {
        let act = if number % 3 == 0 { act } else { Act::Note };
        world.state().acts.insert(number, act);
    }
    let receiver = world.ask(
        |answer| Call::Volley(to, streams.clone(), answer.flatten()),
        |spec| spec.volley(to, &streams),
    );
    let begin = &Barrier::new(senders);
    let accepted: Vec<usize> = thread::scope(|scope| {
        let all: Vec<_> = streams
            .iter()
            .map(|stream| {
                scope.spawn(move || {
                    begin.wait();
                    send_in_order(world, handle, to, stream)
                })
            })
            .collect();
        all.into_iter().map(|it| it.join().unwrap_or(0)).collect()
    });
    match receiver.flatten() {
        Some(nth) => {
            world.wait_until_settled(IN_VAIN);
            world.tell("a volley is over", |spec| {
                spec.volley_over(nth, &accepted, each)
            });
        }
        None => world.compare("nobody takes them (R2)", Some(vec![0; senders]), accepted),
    }
}

/// Sends these; returns how many are accepted before its receiver has ended.
fn send_in_order(world: &World, handle: &Handle, to: Pid, stream: &[Number]) -> usize {
    let mut accepted = 0;
    for (nth, &number) in stream.iter().enumerate() {
        let sent = handle.send(Package::new(to, to, "act", number));
        let found = calls::come_back(world, number, sent);
        let is_right = match found {
            Sent::Accepted => accepted == nth,
            found => matches!(found, Sent::Closed | Sent::NotFound),
        };
        world.compare(
            "nobody comes back (P14)",
            Some((found, true)),
            (found, is_right),
        );
        world.reach("a send among others (R2)", None, found);
        accepted += usize::from(found == Sent::Accepted);
    }
    accepted
}

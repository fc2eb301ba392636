//! So many threads, each of which sends so many messages to one process, and blocks where there is no room.
//!
//! Nobody may wait for ever. So the threads are none that this one has to join: it waits for what they have to say, and
//! not for longer than anything may take.

use super::{IN_VAIN, give_way, volley, wait_until_quiet};
use crate::calls;
use crate::notes::{Number, Sent};
use crate::plan::{Act, Way};
use crate::world::World;
use ganger_proc_api::Pid;
use ganger_sched::Handle;
use std::sync::{Arc, Barrier, mpsc};
use std::thread;

/// What one of them says in the end: which it is, and what has become of its messages.
type Said = (usize, Vec<(Number, Sent)>);

/// So many threads send so many messages each.
pub(super) fn send(
    world: &Arc<World>,
    handle: &Handle,
    to: Pid,
    sizes: [usize; 2],
    act: Act,
    way: Way,
) {
    empty(world, handle, to);
    if way != Way::Open {
        calls::send_from_outside(world, handle, to, Act::Hold, true);
        wait_until_quiet(world, handle);
    }
    let streams = volley::streams(world, sizes, act);
    let receiver = volley::begin(world, to, &streams);
    let said = begin(world, handle, to, &streams);
    let waiting = match receiver {
        Some(nth) if way != Way::Open => {
            let waiting = fill(world, to, nth, sizes.iter().product());
            open(world, handle, to, way);
            waiting
        }
        _ => Vec::new(),
    };
    let mut sent = vec![Vec::new(); streams.len()];
    for _ in &streams {
        match said.recv_timeout(IN_VAIN) {
            Ok((nth, stream)) => sent[nth] = stream,
            Err(_) => world.tell("a thread sends", |_| {
                Err("it waits in vain (P13)".to_owned())
            }),
        }
        world.assert_right();
    }
    for (number, found) in sent.iter().flatten() {
        if waiting.contains(number) {
            world.reach("who has waited for room (R2, P13)", None, found);
        }
    }
    volley::end(world, receiver, &sent);
}

/// Has a process take what it has left where it is, and whatever comes. What it has left may have it leave the rest, so
/// that the last time is when nothing was left before.
fn empty(world: &World, handle: &Handle, to: Pid) {
    let mut is_empty = false;
    while !is_empty && !world.is_broken() {
        is_empty = world.state().spec.leaves(to) == 0;
        calls::send_from_outside(world, handle, to, Act::Release, true);
        wait_until_quiet(world, handle);
    }
}

/// Threads that send these, and say what has become of it.
fn begin(
    world: &Arc<World>,
    handle: &Handle,
    to: Pid,
    streams: &[Vec<Number>],
) -> mpsc::Receiver<Said> {
    let (say, said) = mpsc::channel();
    let start = Arc::new(Barrier::new(streams.len() + 1));
    for (nth, stream) in streams.iter().cloned().enumerate() {
        let (world, handle) = (Arc::clone(world), handle.clone());
        let (say, start) = (say.clone(), Arc::clone(&start));
        thread::spawn(move || {
            start.wait();
            let send = |package| handle.send_blocking(package);
            let what = "a send that blocks (R2, P13)";
            let sent = volley::send_in_order(&world, to, &stream, what, send);
            // Who has been waited for in vain is not listened to any more.
            let _ = say.send((nth, sent));
        });
    }
    start.wait();
    said
}

/// Blocks until there is no room for more in the mailbox of a process that takes nothing, or all of so many messages
/// are in it; whose turn it is then of those who send.
fn fill(world: &World, to: Pid, nth: usize, all: usize) -> Vec<Number> {
    let limit = world.state().spec.limits().mailbox;
    let full = limit.map_or(all, |limit| limit.min(all));
    if !world.wait_until(IN_VAIN, |spec| spec.leaves(to) >= full) {
        let broken = format!("there is room, and not {full} arrive (P5, P13)");
        world.tell("threads send", |_| Err(broken));
    }
    // Else who has found no room may not wait yet when that changes.
    if world.number().is_multiple_of(2) {
        give_way();
    }
    world.state().spec.next_of_each(nth)
}

/// What takes no messages goes on, or ends.
fn open(world: &World, handle: &Handle, to: Pid, way: Way) {
    match way {
        Way::Open => {}
        Way::Then(act) => calls::send_from_outside(world, handle, to, act, true),
        Way::Terminated => calls::terminate(world, handle, to),
    }
}

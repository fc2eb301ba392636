//! Several threads that send several messages each to a single process, and block if it has no
//! room.
//!
//! No sender may wait for ever. The threads are therefore never joined: this thread waits for their
//! reports, for a bounded time.

use super::{IN_VAIN, give_way, volley, wait_until_quiet};
use crate::calls;
use crate::notes::{Number, Sent};
use crate::plan::{Act, Way};
use crate::world::World;
use ganger_proc_api::Pid;
use ganger_sched::Handle;
use std::sync::{Arc, Barrier, mpsc};
use std::thread;

/// The report of a thread: its number, and the fates of its messages.
type Said = (usize, Vec<(Number, Sent)>);

/// Sends several messages from each of several threads.
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

/// Makes a process take all messages in its mailbox. Such a message may make it leave the rest, so
/// the last round begins with none left.
fn empty(world: &World, handle: &Handle, to: Pid) {
    let mut is_empty = false;
    while !is_empty && !world.is_broken() {
        is_empty = world.state().spec.leaves(to) == 0;
        calls::send_from_outside(world, handle, to, Act::Release, true);
        wait_until_quiet(world, handle);
    }
}

/// Starts the threads that send these messages and report their results.
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
            let send = |envelope| handle.send_blocking(envelope);
            let what = "a send that blocks (R2, P13)";
            let sent = volley::send_in_order(&world, to, &stream, what, send);
            // The receiver may have given up on this thread.
            let _ = say.send((nth, sent));
        });
    }
    start.wait();
    said
}

/// Blocks until the mailbox of a process that takes nothing is full, or holds all messages. Returns
/// the next message of each sender.
fn fill(world: &World, to: Pid, nth: usize, all: usize) -> Vec<Number> {
    let limit = world.state().spec.limits().mailbox;
    let full = limit.map_or(all, |limit| limit.min(all));
    if !world.wait_until(IN_VAIN, |spec| spec.leaves(to) >= full) {
        let broken = format!("there is room, and not {full} arrive (P5, P13)");
        world.tell("threads send", |_| Err(broken));
    }
    // Half of the time, gives senders that have found no room the time to start waiting.
    if world.number().is_multiple_of(2) {
        give_way();
    }
    world.state().spec.next_of_each(nth)
}

/// Lets the process that takes no messages go on, or ends it.
fn open(world: &World, handle: &Handle, to: Pid, way: Way) {
    match way {
        Way::Open => {}
        Way::Then(act) => calls::send_from_outside(world, handle, to, act, true),
        Way::Terminated => calls::terminate(world, handle, to),
    }
}

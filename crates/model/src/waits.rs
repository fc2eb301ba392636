//! Waiting sends, held like the futures of a single task: each is polled when it has been woken, or
//! dropped.

use crate::calls::{allow_for_a_stop, come_back};
use crate::notes::{Call, Sent};
use crate::plan::Act;
use crate::waiting::Waiting;
use crate::world::World;
use ganger_proc_api::{Envelope, Pid};
use ganger_sched::Handle;
use std::task::Poll;

fn look(waiting: &mut Waiting, world: &World) -> Sent {
    match waiting.poll() {
        Poll::Pending => Sent::Waits,
        Poll::Ready(sent) => come_back(world, waiting.number, sent),
    }
}

/// Sends a message that makes its receiver do `act`, and waits for room for it.
pub(crate) fn begin(world: &World, handle: &Handle, to: Pid, act: Act) {
    let number = world.number();
    world.state().acts.insert(number, act);
    let expected = world.ask(
        |answer| Call::Wait(to, number, act, answer),
        |spec| spec.wait_for_room(to, number),
    );
    let send = handle.send_async(Envelope::new(to, to, "act", number));
    let mut waiting = Waiting::new(number, send);
    let found = look(&mut waiting, world);
    let expected = allow_for_a_stop(world, expected, found);
    world.reach("a send that may wait (R2, P13)", expected, found);
    if found == Sent::Waits {
        world.state().waiting.push(waiting);
    }
}

/// Polls all waiting sends that have been woken.
pub(crate) fn look_at_all(world: &World) {
    let mut all = std::mem::take(&mut world.state().waiting);
    all.retain_mut(|waiting| {
        let expected = world.state().spec.became(waiting.number);
        let is_woken = waiting.take_wake();
        let is_over = expected != Sent::Waits;
        world.compare("who has waited is woken (P13)", Some(is_over), is_woken);
        let found = look(waiting, world);
        let expected = allow_for_a_stop(world, Some(expected), found);
        world.reach("a send that has waited (R2, P13)", expected, found);
        found == Sent::Waits
    });
    world.state().waiting.append(&mut all);
}

/// Drops a waiting send: a message that has not been accepted by then never is.
pub(crate) fn give_up(world: &World, nth: usize) {
    let mut state = world.state();
    let count = state.waiting.len();
    if count == 0 {
        return;
    }
    let waiting = state.waiting.swap_remove(nth % count);
    drop(state);
    let number = waiting.number;
    world.ask(|_| Call::GiveUp(number), |spec| spec.give_up(number));
    drop(waiting);
}

/// Gives all waiting sends up.
pub(crate) fn give_all_up(world: &World) {
    while !world.state().waiting.is_empty() {
        give_up(world, 0);
    }
}

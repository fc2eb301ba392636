//! Waiting sends, held like the futures of a single task: each is polled when it has been woken, or
//! dropped.

use crate::calls::{allow_for_a_stop, come_back};
use crate::notes::{Call, Number, Sent};
use crate::plan::Act;
use crate::world::World;
use ganger_proc_api::{Envelope, Pid};
use ganger_sched::{Handle, SendAsync};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// A waiting send.
pub(crate) struct Waiting {
    number: Number,
    send: SendAsync,
    woken: Arc<Woken>,
}

/// Whether the waker has been called since the last look.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        // Ordering: Release pairs with the Acquire in `look_at_all`: the poll after the wake-up
        // sees its reason.
        self.0.store(true, Ordering::Release);
    }
}

impl Waiting {
    fn look(&mut self, world: &World) -> Sent {
        let waker = Waker::from(Arc::clone(&self.woken));
        match Pin::new(&mut self.send).poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => Sent::Waits,
            Poll::Ready(sent) => come_back(world, self.number, sent),
        }
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
    let mut waiting = Waiting {
        number,
        send: handle.send_async(Envelope::new(to, to, "act", number)),
        woken: Arc::default(),
    };
    let found = waiting.look(world);
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
        // Ordering: Acquire pairs with the Release in the waker.
        let is_woken = waiting.woken.0.swap(false, Ordering::Acquire);
        let is_over = expected != Sent::Waits;
        world.compare("who has waited is woken (P13)", Some(is_over), is_woken);
        let found = waiting.look(world);
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

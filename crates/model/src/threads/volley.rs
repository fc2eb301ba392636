//! Several threads that send several messages each to a single process.

use super::{IN_VAIN, at_once};
use crate::calls;
use crate::notes::{Call, Number, Sent};
use crate::plan::Act;
use crate::waits;
use crate::world::World;
use ganger_proc_api::{Envelope, Pid, SendError};
use ganger_sched::Handle;

/// Returns the messages of all senders; every third message makes the receiver do `act`.
pub(super) fn streams(world: &World, [senders, each]: [usize; 2], act: Act) -> Vec<Vec<Number>> {
    let stream = |_| (0..each).map(|_| world.number()).collect();
    let streams: Vec<Vec<Number>> = (0..senders).map(stream).collect();
    for &number in streams.iter().flatten() {
        let act = if number % 3 == 0 { act } else { Act::Note };
        world.state().acts.insert(number, act);
    }
    streams
}

/// Lets several senders begin to send these messages to a process, after all waiting sends are
/// given up. Returns the receiver's life, if it is there.
pub(super) fn begin(world: &World, to: Pid, streams: &[Vec<Number>]) -> Option<usize> {
    waits::give_all_up(world);
    let receiver = world.ask(
        |answer| Call::Volley(to, streams.to_vec(), answer.flatten()),
        |spec| spec.volley(to, streams),
    );
    receiver.flatten()
}

/// Tells the specification that all have sent, and the fate of each message.
pub(super) fn end(world: &World, receiver: Option<usize>, sent: &[Vec<(Number, Sent)>]) {
    let accepted = |stream: &Vec<(Number, Sent)>| {
        let accepted = stream.iter().filter(|(_, sent)| *sent == Sent::Accepted);
        accepted.map(|&(number, _)| number).collect()
    };
    let accepted: Vec<Vec<Number>> = sent.iter().map(accepted).collect();
    let Some(nth) = receiver else {
        let is_taken = accepted.iter().any(|stream| !stream.is_empty());
        return world.compare("nobody takes them (R2)", Some(false), is_taken);
    };
    world.tell("all have sent", |spec| spec.volley_sent(nth, &accepted));
    world.wait_until_settled(IN_VAIN);
    let is_gone = |&(_, sent): &(Number, Sent)| matches!(sent, Sent::Closed | Sent::NotFound);
    let is_said_to_be_gone = sent.iter().flatten().any(is_gone);
    world.tell("a volley is over", |spec| {
        spec.volley_over(nth, is_said_to_be_gone)
    });
}

/// Sends several messages from each of several threads.
pub(super) fn send(world: &World, handle: &Handle, to: Pid, sizes: [usize; 2], act: Act) {
    let streams = streams(world, sizes, act);
    let receiver = begin(world, to, &streams);
    let sent = at_once(&streams, |stream, meet| {
        meet();
        let send = |envelope| handle.send(envelope);
        send_in_order(world, to, stream, "a send among others (R2)", send)
    });
    end(world, receiver, &sent);
}

/// Sends these messages. A refusal is right when the process has ended, or when its mailbox has a
/// limit.
pub(super) fn send_in_order(
    world: &World,
    to: Pid,
    stream: &[Number],
    what: &'static str,
    send: impl Fn(Envelope) -> Result<(), SendError>,
) -> Vec<(Number, Sent)> {
    let is_limited = world.state().spec.limits().mailbox.is_some();
    let mut is_gone = false;
    let mut sent = Vec::with_capacity(stream.len());
    for &number in stream {
        let result = send(Envelope::new(to, to, "act", number));
        let found = calls::come_back(world, number, result);
        let is_right = match found {
            Sent::Accepted => !is_gone,
            Sent::Full => !is_gone && is_limited,
            found => matches!(found, Sent::Closed | Sent::NotFound),
        };
        is_gone |= matches!(found, Sent::Closed | Sent::NotFound);
        world.compare(what, Some((found, true)), (found, is_right));
        world.reach(what, None, found);
        sent.push((number, found));
    }
    sent
}

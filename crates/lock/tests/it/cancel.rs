//! Trees of cancellations.

use crate::support::{Counts, poll, poll_by};
use ganger_lock::{CancellationToken, Until};
use ganger_proc_api::{CancelReason, Event, process_fn};
use ganger_sched::Scheduler;
use std::sync::mpsc::channel;
use std::task::Poll;

// pins: K8
#[test]
fn a_parent_cancels_its_children_and_not_the_other_way_round() {
    let root = CancellationToken::new();
    let (left, right) = (root.child(), root.child());
    let leaf = left.child();
    assert!(left.cancel("left") && !left.cancel("again"));
    assert!(leaf.is_cancelled() && !root.is_cancelled() && !right.is_cancelled());
    let (woken, waker) = Counts::waker();
    let mut wait = right.cancelled();
    assert!(poll_by(&mut wait, &waker).is_pending());
    drop(right.cancelled());
    assert!(root.cancel("root"));
    assert_eq!(woken.get(), 1);
    assert!(matches!(poll(&mut wait), Poll::Ready(reason) if reason.to_string() == "root"));
    assert_eq!(leaf.reason().unwrap().to_string(), "left");
    assert_eq!(root.child().reason().unwrap().to_string(), "root");
}

// pins: K8
#[test]
fn long_chains_and_many_children_leave_nothing() {
    let root = CancellationToken::new();
    let mut leaf = root.clone();
    for _ in 0..100_000 {
        leaf = leaf.child();
    }
    let children: Vec<_> = (0..1_000).map(|_| root.child()).collect();
    drop(children);
    let below = leaf.child();
    assert!(root.cancel("over") && below.is_cancelled());
    drop((root, leaf));
    let chain = (0..100_000).fold(CancellationToken::new(), |it, _| it.child());
    drop(chain);
}

// pins: K8
#[test]
fn the_token_of_a_process_is_cancelled_with_it_and_a_step_waits_for_it() {
    let scheduler = Scheduler::start_default().unwrap();
    let (sender, receiver) = channel();
    let parent = process_fn(move |ctx, _, _| {
        sender.send(CancellationToken::of_process(ctx).child())?;
        Ok(())
    });
    let parent = scheduler.spawn(parent).unwrap();
    let token = receiver.recv().unwrap();
    let own = token.clone();
    let waiter = process_fn(move |_, events, out| {
        match events.next() {
            None => drop(out.ask(Until::new(own.cancelled()), 1)),
            Some(Event::Completion(it)) => out.done(it.take::<CancelReason>()?.to_string()),
            Some(_) => {}
        }
        Ok(())
    });
    let waiter = scheduler.spawn(waiter).unwrap();
    assert!(!token.is_cancelled());
    scheduler.cancel(parent.pid(), "enough").unwrap();
    let reason = waiter.wait().take::<String>().unwrap();
    assert!(reason.contains("enough"), "{reason}");
}

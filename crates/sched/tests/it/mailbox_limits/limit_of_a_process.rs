//! Processes with a limit of their own, or without a limit, under each limit of the scheduler.

use super::waiting_senders::*;
use crate::support::*;
use ganger_proc_api::{Message, SendErrorKind, SubmitErrorKind, UpgradeRequest, actor_fn};
use ganger_sched::{ContextExt, ProcessHandle, Scheduler};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Builds a scheduler without starting it, so nothing is taken.
fn built(limit: Option<usize>) -> Scheduler {
    match limit {
        Some(limit) => limited(limit).build().unwrap(),
        None => Scheduler::builder().workers(1).build().unwrap(),
    }
}

/// Returns how many messages the process takes before it is full, up to a hundred.
fn room(process: &ProcessHandle) -> usize {
    let send = |n: &u64| match process.send(numbered(*n)) {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.kind, SendErrorKind::Full);
            false
        }
    };
    (0..100_u64).take_while(send).count()
}

// pins: P13
#[test]
fn a_limit_of_its_own_counts_for_one_process_and_for_no_other() {
    for (of_all, others) in [(None, 100), (Some(7), 7), (Some(1), 1)] {
        let scheduler = built(of_all);
        let other = scheduler.spawn(waiter()).unwrap();
        let small = scheduler.spawner().mailbox_limit(3).spawn(waiter());
        let free = scheduler.spawner().no_mailbox_limit().spawn(waiter());
        let (small, free) = (small.unwrap(), free.unwrap());
        let last = scheduler.spawn(waiter()).unwrap();
        let rooms = [&other, &small, &free, &last].map(room);
        assert_eq!(rooms, [others, 3, 100, others]);
        // Control messages have as many places of their own.
        for _ in 0..3 {
            small.send_control(Message::new("c", ())).unwrap();
        }
        let full = small.send_control(Message::new("c", ())).unwrap_err();
        assert_eq!(full.kind, SendErrorKind::Full);
        let queued = |it: &ProcessHandle| scheduler.process(it.pid()).unwrap().queued;
        assert_eq!((queued(&small), queued(&free)), (Some(3), None));
        assert_eq!(queued(&other), of_all);
    }
}

// pins: P13
#[test]
fn the_cell_of_a_limited_process_has_no_limit_for_the_next_one() {
    let scheduler = start(1);
    for limited in [true, false].repeat(10) {
        let (done, is_done) = channel();
        // A process that takes nothing, and ends when it is cancelled.
        let parent = process(move |ctx, _, out| {
            let spawner = ctx.spawner();
            let spawner = match limited {
                true => spawner.mailbox_limit(1),
                false => spawner,
            };
            let child = spawner.spawn(actor_fn(|_, (): (), _| Ok(())))?;
            let sent = (0..3).filter(|_| child.send(()).is_ok()).count();
            done.send((child.pid(), sent))?;
            out.done(());
            Ok(())
        });
        assert!(exit(scheduler.spawn(parent).unwrap()).is_done());
        let (child, sent) = is_done.recv_timeout(PATIENCE).unwrap();
        // No other worker runs the child meanwhile.
        assert_eq!(sent, if limited { 1 } else { 3 });
        scheduler.terminate(child).unwrap();
        until("the child has ended", || scheduler.stats().live == 0);
    }
}

// pins: P13
#[test]
fn a_limit_of_nothing_starts_nothing_and_a_large_one_is_none_too_large() {
    let scheduler = built(None);
    let error = scheduler.spawner().mailbox_limit(0).spawn(waiter());
    let error = error.unwrap_err();
    assert!(matches!(error.kind, SubmitErrorKind::Prevented(_)));
    assert!(
        error
            .to_string()
            .contains("mailbox_limit must be at least 1"),
        "{error}"
    );
    assert!(error.into_process().is_some());
    let most = scheduler.spawner().mailbox_limit(usize::MAX);
    assert_eq!(room(&most.spawn(waiter()).unwrap()), 100);
}

// pins: P13
#[test]
fn first_messages_count_for_the_limit() {
    let scheduler = built(None);
    let with_two = |limit| {
        let spawner = scheduler.spawner().mailbox_limit(limit);
        let spawner = spawner.with_message(numbered(1)).with_message(numbered(2));
        spawner.spawn(waiter())
    };
    assert_eq!(room(&with_two(3).unwrap()), 1);
    let refused = with_two(1).unwrap_err();
    assert!(matches!(refused.kind, SubmitErrorKind::Prevented(_)));
}

// pins: P13
#[test]
fn senders_wait_for_room_in_the_one_that_has_a_limit() {
    for of_all in [None, Some(1), Some(100)] {
        let scheduler = built(of_all);
        let spawner = scheduler.spawner().mailbox_limit(2);
        let handle = spawner.spawn(collector(5)).unwrap();
        let address = handle.address().clone();
        for n in 0..2 {
            address.send(numbered(n)).unwrap();
        }
        assert_refused(address.send(numbered(9)), SendErrorKind::Full, 9);
        let late = address.send_timeout(numbered(9), Duration::from_millis(1));
        assert_refused(late, SendErrorKind::Timeout, 9);
        let second = waiting(address.send_async(numbered(2)));
        let third = elsewhere(&address, |it| it.send_timeout(numbered(3), PATIENCE));
        scheduler.start().unwrap();
        block_on(second).unwrap();
        joined(third).unwrap();
        address.send_timeout(numbered(4), PATIENCE).unwrap();
        assert_eq!(collected(handle), "0 1 2 3 4");
    }
}

// pins: P13, D1
#[test]
fn an_end_and_a_stop_give_waiting_senders_their_messages_back() {
    for stops in [false, true] {
        let scheduler = start(1);
        let spawner = scheduler.spawner().mailbox_limit(1);
        let handle = spawner.spawn(leaver()).unwrap();
        let address = handle.address().clone();
        address.send(numbered(0)).unwrap();
        let waits = waiting(address.send_async(numbered(1)));
        if stops {
            scheduler.stop(Duration::ZERO).unwrap();
        } else {
            scheduler.terminate(handle.pid()).unwrap();
        }
        exit(handle);
        let kind = if stops {
            SendErrorKind::Stopping
        } else {
            ENDED
        };
        assert_refused(block_on(waits), kind, 1);
    }
}

// pins: P11, P13
#[test]
fn an_upgrade_keeps_the_limit() {
    let scheduler = start(1);
    let leaver = || Box::new(leaver());
    scheduler
        .register_factory("next", move || leaver())
        .unwrap();
    let spawner = scheduler.spawner().mailbox_limit(2);
    let first = process(move |_, _, out| {
        out.upgrade(UpgradeRequest::factory("next", "main", ()));
        Ok(())
    });
    let handle = spawner.spawn(first).unwrap();
    until_state(&scheduler, handle.pid(), ganger_sched::ProcessState::Idle);
    assert_eq!(room(&handle), 2);
}

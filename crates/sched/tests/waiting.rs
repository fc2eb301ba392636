//! Sends that wait for room: when they may not, from inside a step, and what a waker can do to them.
#![cfg(not(loom))]

mod support;

use ganger_proc_api::{Message, SendErrorKind};
use ganger_sched::{ProcessState, Scheduler};
use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::mpsc::channel;
use std::task::{Context, RawWakerVTable, Waker};
use std::time::Duration;
use support::{PATIENCE, exit_number, process, quiet_panics, until_state};

// pins: P13
#[test]
fn a_send_with_no_time_to_wait_gives_no_place_away() {
    let hour = Duration::from_secs(3_600);
    let builder = Scheduler::builder().workers(1).mailbox_limit(1);
    let scheduler = builder.step_limits(hour, hour).build().unwrap();
    scheduler.start().unwrap();
    let full = process(|_, _, out| {
        out.idle();
        Ok(())
    });
    let full = scheduler.submit(full, "full", ()).unwrap();
    full.send(Message::new("first", 1)).unwrap();
    until_state(&scheduler, full.pid(), ProcessState::Idle);
    let (to, handle) = (full.address().clone(), scheduler.handle());
    let polls = process(move |ctx, _, out| {
        let other = process(|_, _, out| {
            out.done(0);
            Ok(())
        });
        // Somebody waits behind this step.
        ctx.submit(other, "other", ())?;
        let refused = to.send_timeout(Message::new("second", 2), Duration::ZERO);
        assert_eq!(refused.unwrap_err().kind, SendErrorKind::Timeout);
        out.done(handle.stats().relieved as u64);
        Ok(())
    });
    let polls = scheduler.submit(polls, "polls", ()).unwrap();
    assert_eq!(exit_number(polls), 0, "its worker was relieved");
    scheduler.terminate(full.pid()).unwrap();
}

// pins: P13
#[test]
fn a_step_waits_for_no_room_at_another_scheduler_when_its_own_has_nobody_left() {
    let builder = || Scheduler::builder().workers(1).max_spares(0);
    let here = builder().host("here").build().unwrap();
    let there = builder().host("there").mailbox_limit(1).build().unwrap();
    here.start().unwrap();
    there.start().unwrap();
    let full = process(|_, _, out| {
        out.idle();
        Ok(())
    });
    let full = there.submit(full, "full", ()).unwrap();
    full.send(Message::new("first", 1)).unwrap();
    let to = full.address().clone();
    let (tell, told) = channel();
    let sends = process(move |_, _, out| {
        tell.send(to.send_blocking(Message::new("second", 2)))?;
        out.done(0);
        Ok(())
    });
    let sends = here.submit(sends, "sends", ()).unwrap();
    let refused = told.recv_timeout(PATIENCE).expect("it waits for ever");
    assert_eq!(refused.unwrap_err().kind, SendErrorKind::Full);
    assert_eq!(exit_number(sends), 0);
    there.terminate(full.pid()).unwrap();
}

/// A waker that panics when it is cloned.
fn waker_that_panics() -> ManuallyDrop<Waker> {
    static TABLE: RawWakerVTable =
        RawWakerVTable::new(|_| panic!("on purpose: clone"), |_| (), |_| (), |_| ());
    // SAFETY: the functions do nothing, or do not return.
    ManuallyDrop::new(unsafe { Waker::new(std::ptr::null(), &TABLE) })
}

// pins: R2, P13
#[test]
fn a_waker_that_cannot_be_cloned_loses_no_message() {
    quiet_panics();
    let builder = Scheduler::builder().workers(1).mailbox_limit(1);
    let scheduler = builder.shutdown_deadline(Duration::ZERO).build().unwrap();
    let full = process(|_, _, out| {
        out.idle();
        Ok(())
    });
    let full = scheduler.submit(full, "full", ()).unwrap();
    full.send(Message::new("first", 1)).unwrap();
    for is_waiting in [false, true] {
        let mut send = full.address().send_async(Message::new("second", 2));
        if is_waiting {
            let mut context = Context::from_waker(Waker::noop());
            assert!(Pin::new(&mut send).poll(&mut context).is_pending());
        }
        let waker = waker_that_panics();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            Pin::new(&mut send).poll(&mut Context::from_waker(&waker))
        }));
        assert!(panicked.is_err());
        let package = send.into_package().expect("it is not lost");
        assert_eq!(package.message.topic, "second", "was waiting: {is_waiting}");
    }
}

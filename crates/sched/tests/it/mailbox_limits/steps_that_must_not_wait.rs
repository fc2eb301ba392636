//! Sends that wait for room: when a step must not wait, and the effects of a waker on a send.

use crate::support::{PATIENCE, exit_number, process, quiet_panics, stop_unstarted, until_state};
use ganger_proc_api::{BoxError, Lifecycle, Message, Pid, SendError, SendErrorKind, Symbol};
use ganger_sched::{ProcessHandle, ProcessState, Scheduler, SendAsync, WeakHandle};
use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::thread;
use std::time::Duration;

// pins: P13
#[test]
fn a_send_with_no_time_to_wait_gives_no_place_away() {
    let hour = Duration::from_secs(3_600);
    let builder = Scheduler::builder().workers(1).mailbox_limit(1);
    let scheduler = builder.step_limits(hour, hour).build().unwrap();
    scheduler.start().unwrap();
    let full = process(|_, _, _| Ok(()));
    let full = scheduler.submit(full, "full", ()).unwrap();
    full.send(Message::new("first", 1)).unwrap();
    until_state(&scheduler, full.pid(), ProcessState::Idle);
    let (to, handle) = (full.address().clone(), scheduler.handle());
    let polls = process(move |ctx, _, out| {
        let other = process(|_, _, out| {
            out.done(0);
            Ok(())
        });
        // A process waits behind this step.
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
    let full = process(|_, _, _| Ok(()));
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

/// A hook that sends two messages to each process before it starts.
#[derive(Default)]
struct Primes {
    scheduler: OnceLock<WeakHandle>,
    refused: Mutex<Vec<SendErrorKind>>,
}

impl Lifecycle for Primes {
    fn on_start(&self, pid: Pid, _: Symbol) -> Result<(), BoxError> {
        let handle = self.scheduler.get().and_then(WeakHandle::upgrade);
        let to = handle
            .ok_or("it is gone")?
            .address(pid)
            .ok_or("it is not there")?;
        to.send_blocking(Message::new("first", 1))?;
        let refused = to.send_blocking(Message::new("second", 2)).unwrap_err();
        self.refused.lock().unwrap().push(refused.kind);
        Ok(())
    }
}

/// Checks that a hook does not wait for room, which no other thread makes before the hook has
/// returned.
// pins: P2, P13, D4
#[test]
fn a_hook_does_not_wait_for_the_process_that_it_is_about_to_start() {
    let hook = Arc::new(Primes::default());
    let builder = Scheduler::builder().workers(1).mailbox_limit(1);
    let scheduler = builder.lifecycle(Arc::clone(&hook)).build().unwrap();
    hook.scheduler.set(scheduler.downgrade()).unwrap();
    scheduler.start().unwrap();
    let (tell, told) = channel();
    let handle = scheduler.handle();
    let counts = || {
        process(|_, events, out| {
            if events.count() == 1 {
                out.done(1);
            }
            Ok(())
        })
    };
    // From outside, and from a step.
    thread::spawn(move || {
        let outside = handle.submit(counts(), "outside", ()).unwrap();
        assert_eq!(exit_number(outside), 1);
        let submits = process(move |ctx, _, out| {
            ctx.submit(counts(), "inside", ())?;
            out.done(2);
            Ok(())
        });
        let exit = handle.submit(submits, "submits", ()).unwrap();
        tell.send(exit_number(exit)).unwrap();
    });
    assert_eq!(told.recv_timeout(PATIENCE), Ok(2), "it waits for ever");
    assert_eq!(*hook.refused.lock().unwrap(), [SendErrorKind::Full; 3]);
}

/// Creates a waker that panics when it is cloned, or when it is dropped.
fn waker_that_panics(table: &'static RawWakerVTable) -> ManuallyDrop<Waker> {
    // SAFETY: the functions of both tables do nothing, or do not return.
    ManuallyDrop::new(unsafe { Waker::new(ptr::null(), table) })
}

static AT_CLONE: RawWakerVTable =
    RawWakerVTable::new(|_| panic!("on purpose: clone"), |_| (), |_| (), |_| ());

static AT_DROP: RawWakerVTable = RawWakerVTable::new(
    |_| RawWaker::new(ptr::null(), &AT_DROP),
    |_| (),
    |_| (),
    |_| panic!("on purpose: drop"),
);

/// Builds a scheduler that is not started, and a process without room.
fn full() -> (Scheduler, ProcessHandle) {
    quiet_panics();
    let builder = Scheduler::builder().workers(1).mailbox_limit(1);
    let scheduler = builder.shutdown_deadline(Duration::ZERO).build().unwrap();
    let full = process(|_, _, _| Ok(()));
    let full = scheduler.submit(full, "full", ()).unwrap();
    full.send(Message::new("first", 1)).unwrap();
    (scheduler, full)
}

fn poll(send: &mut SendAsync, waker: &Waker) -> Poll<Result<(), SendError>> {
    Pin::new(send).poll(&mut Context::from_waker(waker))
}

// pins: R2, P13
#[test]
fn a_waker_that_cannot_be_cloned_loses_no_message() {
    let (_scheduler, full) = full();
    let waker = waker_that_panics(&AT_CLONE);
    for is_waiting in [false, true] {
        let mut send = full.address().send_async(Message::new("second", 2));
        if is_waiting {
            assert!(poll(&mut send, Waker::noop()).is_pending());
        }
        let panicked = catch_unwind(AssertUnwindSafe(|| poll(&mut send, &waker)));
        assert!(panicked.is_err());
        let envelope = send.into_envelope().expect("it is not lost");
        assert_eq!(
            envelope.message.topic, "second",
            "was waiting: {is_waiting}"
        );
    }
}

// pins: R2, P8, P13
#[test]
fn a_waker_that_cannot_be_dropped_loses_no_message() {
    let (scheduler, full) = full();
    let waker = waker_that_panics(&AT_DROP);
    let [mut back, mut refused] = [(); 2].map(|()| {
        let mut send = full.address().send_async(Message::new("second", 2));
        assert!(poll(&mut send, &waker).is_pending());
        send
    });
    // The second poll drops the waker of the first.
    assert!(poll(&mut back, &waker).is_pending());
    assert_eq!(scheduler.stats().total.panics, 1);
    assert!(back.into_envelope().is_some());
    assert_eq!(scheduler.stats().total.panics, 2);
    stop_unstarted(&scheduler, Duration::ZERO);
    full.wait_timeout(PATIENCE).expect("it has ended");
    let Poll::Ready(Err(error)) = poll(&mut refused, &waker) else {
        panic!("nobody has taken it");
    };
    assert_eq!(error.kind, SendErrorKind::Stopping);
    assert_eq!(error.into_envelope().message.topic, "second");
}

//! Sends that wait for room for ever, unless a stop, a cancellation or a termination ends the wait.

use crate::support::*;
use ganger_proc_api::{
    Event, ExitReason, Message, Payload, Pid, Process, SendError, SendErrorKind,
};
use ganger_sched::{Address, Builder, ProcessHandle, ProcessState, Scheduler, SendAsync};
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

/// Longer than any test.
const NEVER: Duration = Duration::from_secs(3_600);

/// The sender, and the result of its send: the reason of a refusal, and the returned message.
type Told = (Pid, Result<(), (SendErrorKind, u64)>);

fn limited() -> Builder {
    Scheduler::builder().workers(2).mailbox_limit(1)
}

fn numbered(n: u64) -> Message {
    Message::new("n", n)
}

fn outcome(sent: Result<(), SendError>) -> Result<(), (SendErrorKind, u64)> {
    sent.map_err(|error| {
        let kind = rough(error.kind);
        let number = error.into_envelope().message.payloads.into_first().as_u64();
        (kind, number.expect("a numbered message"))
    })
}

/// Creates a process that sends `7` in its first step, tells the result, and finishes. The process
/// leaves its messages in their places.
fn sender(to: &Arc<OnceLock<Address>>, tell: &Sender<Told>) -> impl Process {
    let (to, tell) = (Arc::clone(to), tell.clone());
    process(move |ctx, _, out| {
        let sent = to.get().unwrap().send_blocking(numbered(7));
        tell.send((ctx.pid(), outcome(sent)))?;
        out.done(());
        Ok(())
    })
}

/// Submits two processes whose steps wait for room in each other's mailboxes.
fn circle(scheduler: &Scheduler) -> ([ProcessHandle; 2], Receiver<Told>) {
    let (tell, told) = channel();
    let addresses = [(); 2].map(|()| Arc::new(OnceLock::new()));
    let submit = |nth: usize| {
        let sender = sender(&addresses[1 - nth], &tell);
        let handle = scheduler.submit(sender, "main", ()).unwrap();
        addresses[nth].set(handle.address().clone()).unwrap();
        handle.send(numbered(0)).unwrap();
        handle
    };
    let handles = [submit(0), submit(1)];
    scheduler.start().unwrap();
    for handle in &handles {
        until_state(scheduler, handle.pid(), ProcessState::Running);
    }
    (handles, told)
}

#[track_caller]
fn assert_told(told: &Receiver<Told>, expected: [(Pid, SendErrorKind); 2]) {
    let mut all = [(); 2].map(|()| told.recv_timeout(Duration::from_secs(60)).unwrap());
    all.sort_by_key(|(pid, _)| pid.id());
    assert_eq!(all, expected.map(|(pid, kind)| (pid, Err((kind, 7)))));
}

// pins: P13, D1
#[test]
fn a_stop_ends_a_circle_of_steps_that_wait() {
    let scheduler = limited().build().unwrap();
    let (handles, told) = circle(&scheduler);
    let report = scheduler.stop(Duration::from_secs(60)).unwrap();
    assert_eq!((report.completed, report.forced), (2, 0), "{report:?}");
    let pids = handles.each_ref().map(ProcessHandle::pid);
    // A step may have seen the cancellation, or the end of the other process.
    for _ in pids {
        let (_, sent) = told.recv().unwrap();
        let (kind, number) = sent.unwrap_err();
        let kinds = [SendErrorKind::Stopping, ENDED];
        assert!(kinds.contains(&kind) && number == 7, "{kind:?}");
    }
}

// pins: P13, D4
#[test]
fn a_scheduler_that_is_dropped_leaves_no_thread_in_a_circle() {
    let scheduler = limited().shutdown_deadline(NEVER).build().unwrap();
    let (handles, told) = circle(&scheduler);
    let dropper = thread::spawn(move || drop(scheduler));
    joined(dropper);
    for handle in handles {
        assert!(matches!(exit(handle), ExitReason::Done(_)));
    }
    assert_eq!(told.try_iter().count(), 2);
}

// pins: P9, P13
#[test]
fn a_termination_ends_a_circle_of_steps_that_wait() {
    let scheduler = limited().build().unwrap();
    let (handles, told) = circle(&scheduler);
    let [first, second] = handles.each_ref().map(ProcessHandle::pid);
    scheduler.terminate(first).unwrap();
    let kinds = [SendErrorKind::Cancelled, ENDED];
    assert_told(&told, [(first, kinds[0]), (second, kinds[1])]);
    let [first, second] = handles.map(exit);
    assert!(matches!(first, ExitReason::Terminated), "{first}");
    assert!(matches!(second, ExitReason::Done(_)), "{second}");
}

// pins: P10, P13
#[test]
fn a_cancellation_ends_a_circle_of_steps_that_wait() {
    let scheduler = limited().build().unwrap();
    let (handles, told) = circle(&scheduler);
    let [first, second] = handles.each_ref().map(ProcessHandle::pid);
    scheduler.cancel(second, "enough").unwrap();
    let kinds = [ENDED, SendErrorKind::Cancelled];
    assert_told(&told, [(first, kinds[0]), (second, kinds[1])]);
    for handle in handles {
        assert!(matches!(exit(handle), ExitReason::Done(_)));
    }
}

/// Checks waits for the mailbox of another scheduler, which continues.
// pins: P13, D2
#[test]
fn a_stop_ends_the_waits_of_its_steps_wherever_they_send_to() {
    let [here, there] = [(); 2].map(|()| limited().build().unwrap());
    let full = there.submit(waiter(), "main", ()).unwrap();
    full.send(numbered(0)).unwrap();
    let (tell, told) = channel();
    let to = Arc::new(OnceLock::from(full.address().clone()));
    let handle = here.submit(sender(&to, &tell), "main", ()).unwrap();
    here.start().unwrap();
    until_state(&here, handle.pid(), ProcessState::Running);
    let report = here.stop(Duration::from_secs(60)).unwrap();
    assert_eq!((report.completed, report.forced), (1, 0), "{report:?}");
    let refused = (SendErrorKind::Cancelled, 7);
    assert_eq!(told.recv().unwrap(), (handle.pid(), Err(refused)));
}

/// Checks both orders of the mark and the wait.
// pins: P9, P10, P13
#[test]
fn a_step_of_a_process_that_is_to_end_begins_no_wait() {
    for terminates in [true, false] {
        let scheduler = limited().build().unwrap();
        let full = scheduler.submit(waiter(), "main", ()).unwrap();
        full.send(numbered(0)).unwrap();
        let (tell, told) = channel();
        let (go, gone) = channel();
        let to = full.address().clone();
        let sender = process(move |_, _, out| {
            gone.recv()?;
            tell.send(outcome(to.send_blocking(numbered(7))))?;
            tell.send(outcome(to.send_timeout(numbered(8), NEVER)))?;
            out.done(());
            Ok(())
        });
        // Its mailbox stays full: the only worker is in the step.
        let scheduler_of_sender = Scheduler::builder().workers(1).build().unwrap();
        let handle = scheduler_of_sender.submit(sender, "main", ()).unwrap();
        scheduler_of_sender.start().unwrap();
        until_state(&scheduler_of_sender, handle.pid(), ProcessState::Running);
        if terminates {
            scheduler_of_sender.terminate(handle.pid()).unwrap();
        } else {
            scheduler_of_sender.cancel(handle.pid(), "enough").unwrap();
        }
        go.send(()).unwrap();
        for n in [7, 8] {
            let told = told.recv_timeout(Duration::from_secs(60)).unwrap();
            assert_eq!(told, Err((SendErrorKind::Cancelled, n)));
        }
        exit(handle);
    }
}

// pins: P10, P13
#[test]
fn a_step_that_knows_of_the_cancellation_waits_as_before() {
    let there = limited().build().unwrap();
    let full = there.submit(waiter(), "main", ()).unwrap();
    full.send(numbered(0)).unwrap();
    let to = full.address().clone();
    let sender = process(move |_, events, out| {
        for event in events {
            if let Event::Cancel(_) = event {
                to.send_blocking(numbered(7))?;
                out.done(1_u64);
            }
        }
        Ok(())
    });
    let here = Scheduler::builder().workers(1).build().unwrap();
    here.start().unwrap();
    let handle = here.submit(sender, "main", ()).unwrap();
    here.cancel(handle.pid(), "enough").unwrap();
    until_state(&here, handle.pid(), ProcessState::Running);
    there.start().unwrap();
    assert_eq!(exit_number(handle), 1);
}

fn poll(future: &mut SendAsync, waker: &Waker) -> Poll<Result<(), SendError>> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// Announces its wake-up, and then does not return until it may.
struct Slow(Mutex<(Sender<()>, Receiver<()>)>);

impl Wake for Slow {
    fn wake(self: Arc<Self>) {
        let channels = self.0.lock().unwrap();
        channels.0.send(()).unwrap();
        let _gone = channels.1.recv();
    }
}

/// Checks that a stop ends the waits of threads and tasks alike. A waker without a return holds up
/// no process. The process ends after the waker's call, because its own end wakes the remaining
/// waiters.
// pins: P13, D1, D3
#[test]
fn a_stop_gives_every_sender_that_waits_its_message_back() {
    let scheduler = limited().build().unwrap();
    scheduler.start().unwrap();
    // Its message stays in its mailbox.
    let full = process(|_, _, out| {
        out.defer_cancel();
        Ok(())
    });
    let full = scheduler.submit(full, "main", ()).unwrap();
    let address = full.address();
    address.send(numbered(0)).unwrap();
    let (woken, is_woken) = channel();
    let (release, released) = channel();
    let slow = Waker::from(Arc::new(Slow(Mutex::new((woken, released)))));
    let mut task = address.send_async(numbered(1));
    assert!(poll(&mut task, &slow).is_pending());
    let blocked = {
        let address = address.clone();
        thread::spawn(move || outcome(address.send_timeout(numbered(2), NEVER)))
    };
    scheduler.begin_stop(NEVER);
    is_woken.recv_timeout(Duration::from_secs(60)).unwrap();
    // The process ends although the waker has not returned.
    scheduler.begin_stop(Duration::ZERO);
    let closed = address.clone();
    assert!(matches!(exit(full), ExitReason::Terminated));
    release.send(()).unwrap();
    let kinds = [SendErrorKind::Stopping, ENDED];
    let (kind, number) = joined(blocked).unwrap_err();
    assert!(kinds.contains(&kind) && number == 2, "{kind:?}");
    let Poll::Ready(sent) = poll(&mut task, Waker::noop()) else {
        panic!("it waits on");
    };
    // The stop may be over.
    let (kind, number) = outcome(sent).unwrap_err();
    assert!(kind.is_closed() && number == 1, "{kind:?}");
    let (kind, number) = outcome(closed.send_blocking(numbered(3))).unwrap_err();
    assert!(kind.is_closed() && number == 3, "{kind:?}");
}

// pins: P13, D1, D2
#[test]
fn while_a_scheduler_stops_no_sender_waits_and_others_send_as_before() {
    let scheduler = limited().build().unwrap();
    let (go, gone) = channel::<()>();
    let full = process(move |_, events, out| {
        if matches!(events.peek(), Some(Event::Cancel(_))) {
            events.next();
            // Its message stays in its mailbox meanwhile.
            let _gone = gone.recv();
            let number = |event| match event {
                Event::Message(message) => Payload::as_u64(message.payloads.first()?),
                _ => None,
            };
            out.done(events.filter_map(number).sum::<u64>());
        }
        Ok(())
    });
    let full = scheduler.submit(full, "main", ()).unwrap();
    let address = full.address();
    address.send(numbered(5)).unwrap();
    let mut task = address.send_async(numbered(1));
    assert!(poll(&mut task, Waker::noop()).is_pending());
    scheduler.start().unwrap();
    scheduler.begin_stop(NEVER);
    // As soon as the stop has come to it.
    let mut sent = Poll::Pending;
    until("the wait is over", || {
        sent = poll(&mut task, Waker::noop());
        sent.is_ready()
    });
    let Poll::Ready(sent) = sent else {
        unreachable!("it is ready")
    };
    assert_eq!(outcome(sent), Err((SendErrorKind::Stopping, 1)));
    let mut late = address.send_async(numbered(2));
    let Poll::Ready(sent) = poll(&mut late, Waker::noop()) else {
        panic!("it waits");
    };
    assert_eq!(outcome(sent), Err((SendErrorKind::Stopping, 2)));
    let sent = outcome(address.send_blocking(numbered(3)));
    assert_eq!(sent, Err((SendErrorKind::Stopping, 3)));
    let sent = outcome(address.send(numbered(4)));
    assert_eq!(sent, Err((SendErrorKind::Full, 4)));
    drop(go);
    assert_eq!(exit_number(full), 5);
}

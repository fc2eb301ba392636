//! Selects with a second use, and users' code that panics or re-enters the channel.

use crate::support::{Bell, Calls, does_not_hang, now, poll};
use ganger_channel::{RecvError, Sender, Until, broadcast, channel, select, watch};
use ganger_proc_api::{Event, process_fn};
use ganger_sched::Scheduler;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Wake, Waker};
use std::thread;

// pins: Q6
#[test]
fn a_select_that_was_polled_commits_to_one_case_however_it_goes_on() {
    let (a, from_a) = channel::<u32>(0);
    let (b, from_b) = channel::<u32>(1);
    let mut select = select()
        .send(&a, 1, |it| format!("sent {}", it.is_ok()))
        .recv(&from_b, |it| format!("got {it:?}"));
    assert!(now(&mut select).is_pending());
    assert_eq!(from_a.try_recv(), Ok(1));
    b.try_send(9).unwrap();
    assert_eq!(select.wait().unwrap(), "sent true");
    assert_eq!(from_b.try_recv(), Ok(9));
}

// pins: Q6
#[test]
fn a_select_that_was_polled_says_what_it_was_chosen_for() {
    let (a, from_a) = channel::<u32>(0);
    let mut select = select().send(&a, 1, |_| "sent");
    assert!(now(&mut select).is_pending());
    assert_eq!(from_a.try_recv(), Ok(1));
    assert_eq!(select.try_now(), Some("sent"));
}

// pins: Q7
#[test]
fn a_select_that_was_polled_does_not_meet_itself() {
    let (a, from_a) = channel::<u32>(0);
    let mut select = select().send(&a, 1, |_| "sent").recv(&from_a, |_| "got");
    assert!(now(&mut select).is_pending());
    assert_eq!(select.try_now(), None);
    assert!(from_a.try_recv().is_err());
}

// pins: Q6
#[test]
fn a_select_whose_future_panics_goes_on_at_its_next_poll() {
    let (sender, receiver) = channel::<u32>(1);
    for is_sent_before in [false, true] {
        let mut polls = 0;
        let panics_once = poll_fn(|_| {
            polls += 1;
            assert!(polls != 2, "it does not like to be polled");
            Poll::<()>::Pending
        });
        let mut select = select()
            .recv(&receiver, Result::ok)
            .future(panics_once, |()| None);
        assert!(now(&mut select).is_pending());
        assert!(catch_unwind(AssertUnwindSafe(|| now(&mut select))).is_err());
        if !is_sent_before {
            assert!(now(&mut select).is_pending());
        }
        sender.try_send(7).unwrap();
        assert_eq!(now(&mut select), Poll::Ready(Some(7)));
    }
}

/// Checks that a given up select leaves its places, although its future has panicked.
// pins: Q6
#[test]
fn a_select_whose_future_has_panicked_is_given_up() {
    let (sender, receiver) = channel::<u32>(0);
    let mut polls = 0;
    let panics = poll_fn(|_| {
        polls += 1;
        assert!(polls != 2, "it does not like to be polled");
        Poll::<()>::Pending
    });
    let mut select = select()
        .recv(&receiver, Result::ok)
        .future(panics, |()| None);
    assert!(now(&mut select).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| now(&mut select))).is_err());
    assert_eq!(select.try_now(), None);
    assert!(sender.try_send(7).is_err());
}

// pins: Q6
#[test]
fn a_select_that_is_over_takes_no_value() {
    let (a, from_a) = channel::<u32>(4);
    a.try_send(1).unwrap();
    a.try_send(2).unwrap();
    let mut select = select().recv(&from_a, |it| it);
    assert_eq!(now(&mut select), Poll::Ready(Ok(1)));
    assert!(catch_unwind(AssertUnwindSafe(|| select.try_now())).is_err());
    assert_eq!(from_a.try_recv(), Ok(2));
}

// pins: Q7
#[test]
fn what_comes_while_a_select_is_busy_is_found_before_it_waits() {
    let (sender, receiver) = channel::<u32>(1);
    let is_waiting = AtomicBool::new(false);
    let sends = poll_fn(|_| {
        if is_waiting.load(Ordering::Relaxed) {
            // The select is busy with this poll, so no case can be chosen.
            sender.try_send(1).unwrap();
        }
        Poll::<()>::Pending
    });
    let mut select = select().recv(&receiver, Some).future(sends, |()| None);
    assert!(now(&mut select).is_pending());
    is_waiting.store(true, Ordering::Relaxed);
    assert_eq!(now(&mut select), Poll::Ready(Some(Ok(1))));
}

// pins: Q8
#[test]
fn a_future_that_panics_is_an_error_of_its_yield_and_not_of_the_sender() {
    let scheduler = Scheduler::start_default().unwrap();
    let (sender, receiver) = channel::<u64>(0);
    let process = process_fn(move |_, events, out| {
        match events.next() {
            None => {
                let receiver = receiver.clone();
                let fails = async move {
                    let value = receiver.recv().await;
                    assert!(value.is_err(), "it does not like values");
                };
                out.ask(Until::new(fails), 1);
            }
            Some(Event::Completion(it)) => out.done(format!("{:?}", it.take::<()>())),
            Some(_) => {}
        }
        Ok(())
    });
    let process = scheduler.spawn(process).unwrap();
    while sender.try_send(1).is_err() {
        thread::yield_now();
    }
    let said = process.wait().take::<String>().unwrap();
    assert!(said.contains("it does not like values"), "{said}");
}

/// Panics when first dropped.
struct Panics(Arc<AtomicBool>);

impl Drop for Panics {
    fn drop(&mut self) {
        assert!(self.0.swap(true, Ordering::Relaxed), "it is dropped");
    }
}

// pins: Q10
#[test]
fn a_value_that_panics_when_it_is_dropped_leaves_no_subscriber_asleep() {
    let has_panicked = Arc::new(AtomicBool::new(false));
    let value = || Arc::new(Panics(Arc::clone(&has_panicked)));
    // The first subscriber never gets its value: the next send drops the value.
    let (sender, _first) = broadcast(1);
    sender.send(value());
    let mut late = sender.subscribe();
    let (bell, waker) = Bell::new();
    let mut recv = late.recv();
    assert!(poll(&mut recv, &waker).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| sender.send(value()))).is_err());
    assert_eq!(bell.rung(), 1);
}

struct Bad;

impl Wake for Bad {
    fn wake(self: Arc<Self>) {
        panic!("it does not like to be woken");
    }
}

// pins: Q3
#[test]
fn a_waker_that_panics_leaves_no_other_receiver_asleep() {
    let (sender, receiver) = channel::<u32>(0);
    let (mut one, mut other) = (receiver.recv(), receiver.recv());
    assert!(poll(&mut one, &Waker::from(Arc::new(Bad))).is_pending());
    let (bell, waker) = Bell::new();
    assert!(poll(&mut other, &waker).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| sender.close())).is_err());
    assert_eq!(bell.rung(), 1);
}

/// Begins a wait. Another waker then takes the place of its waker, and a panic follows: in the
/// clone of the new waker, or in the drop of the old waker.
fn wait_past_a_waker_that_panics<F: Future + Unpin>(
    mut future: F,
    good: &Waker,
    is_new: bool,
) -> F {
    let is_bad = Arc::new(AtomicBool::new(false));
    let bad = Calls::waker({
        let is_bad = Arc::clone(&is_bad);
        move || assert!(!is_bad.load(Ordering::Relaxed), "it does not like it")
    });
    let (first, second) = match is_new {
        true => (good, &bad),
        false => (&bad, good),
    };
    assert!(poll(&mut future, first).is_pending());
    is_bad.store(true, Ordering::Relaxed);
    let polled = catch_unwind(AssertUnwindSafe(|| poll(&mut future, second).is_pending()));
    assert!(polled.is_err());
    is_bad.store(false, Ordering::Relaxed);
    future
}

/// Checks that the wait goes on, and leaves its place when it is given up.
// pins: Q4
#[test]
fn a_wait_keeps_its_place_when_a_change_of_its_waker_panics() {
    for is_new in [false, true] {
        let (bell, good) = Bell::new();
        let (sender, receiver) = channel::<u32>(0);
        let mut recv = wait_past_a_waker_that_panics(receiver.recv(), &good, is_new);
        sender.try_send(1).unwrap();
        assert_eq!((now(&mut recv), bell.rung()), (Poll::Ready(Ok(1)), 1));
        drop(wait_past_a_waker_that_panics(
            receiver.recv(),
            &good,
            is_new,
        ));
        assert!(sender.try_send(2).is_err(), "no receiver waits");
        let send = wait_past_a_waker_that_panics(sender.send(3), &good, is_new);
        assert_eq!(send.into_value(), Some(3));
        assert!(receiver.try_recv().is_err(), "no sender waits");
        let (publisher, mut watcher) = watch(1);
        drop(wait_past_a_waker_that_panics(
            watcher.changed(),
            &good,
            is_new,
        ));
        publisher.send(2);
        assert_eq!(bell.rung(), 1, "no watcher waits");
    }
}

/// Has the last sender.
struct Closes(#[allow(dead_code, reason = "it is dropped")] Mutex<Option<Sender<u32>>>);

impl Wake for Closes {
    fn wake(self: Arc<Self>) {}
}

// pins: Q6
#[test]
fn a_waker_that_closes_the_channel_when_it_goes_does_so_without_a_lock() {
    let (sender, receiver) = channel::<u32>(0);
    let mut select = select().recv(&receiver, |it| it);
    let waker = Waker::from(Arc::new(Closes(Mutex::new(Some(sender)))));
    assert!(poll(&mut select, &waker).is_pending());
    drop(waker);
    // The new waker replaces and drops the old waker.
    assert_eq!(now(&mut select), Poll::Ready(Err(RecvError::Closed)));
}

/// Polls twice, each time with a waker that makes the call at each run.
fn poll_by_callers<F: Future + Unpin>(
    mut future: F,
    call: impl Fn() + Clone + Send + Sync + 'static,
) {
    for _ in 0..2 {
        assert!(poll(&mut future, &Calls::waker(call.clone())).is_pending());
    }
}

// pins: Q12
#[test]
fn a_waker_may_use_the_channel_when_it_is_cloned_woken_and_dropped() {
    does_not_hang(|| {
        let (sender, receiver) = channel::<u32>(1);
        let look = {
            let sender = sender.clone();
            move || assert!(sender.len() <= 1)
        };
        poll_by_callers(receiver.recv(), look.clone());
        let cases = select().recv(&receiver, |_| ());
        poll_by_callers(cases, look.clone());
        let mut recv = receiver.recv();
        assert!(poll(&mut recv, &Calls::waker(look.clone())).is_pending());
        sender.try_send(1).unwrap();
        assert_eq!(now(&mut recv), Poll::Ready(Ok(1)));
        sender.try_send(2).unwrap();
        poll_by_callers(sender.send(3), look.clone());
        let mut send = sender.send(4);
        assert!(poll(&mut send, &Calls::waker(look)).is_pending());
        assert!(sender.close());
        assert!(now(&mut send).is_ready());
    });
}

// pins: Q12
#[test]
fn a_waker_may_use_a_watch_and_a_broadcast_when_it_is_cloned_woken_and_dropped() {
    does_not_hang(|| {
        let (publisher, mut watcher) = watch(1);
        let look = {
            let publisher = publisher.clone();
            move || assert!(*publisher.latest() >= 1)
        };
        poll_by_callers(watcher.changed(), look.clone());
        let mut changed = watcher.changed();
        assert!(poll(&mut changed, &Calls::waker(look)).is_pending());
        publisher.send(2);
        assert!(now(&mut changed).is_ready());
    });
    does_not_hang(|| {
        let (broadcaster, mut subscriber) = broadcast::<u32>(1);
        let look = {
            let broadcaster = broadcaster.clone();
            move || drop(broadcaster.subscribe())
        };
        poll_by_callers(subscriber.recv(), look.clone());
        let mut recv = subscriber.recv();
        assert!(poll(&mut recv, &Calls::waker(look)).is_pending());
        broadcaster.send(2);
        assert_eq!(now(&mut recv), Poll::Ready(Ok(2)));
    });
}

/// A value: uses its channel when dropped.
struct Uses(Box<dyn Fn() + Send + Sync>);

impl Drop for Uses {
    fn drop(&mut self) {
        (self.0)();
    }
}

// pins: Q12
#[test]
fn a_value_may_use_the_channel_when_it_is_dropped() {
    does_not_hang(|| {
        let (sender, receiver) = channel::<Uses>(1);
        let value = || {
            let sender = sender.clone();
            Uses(Box::new(move || assert!(sender.len() <= 1)))
        };
        assert!(sender.try_send(value()).is_ok());
        assert!(sender.try_send(value()).is_err());
        let mut send = sender.send(value());
        assert!(now(&mut send).is_pending());
        drop(send);
        drop(receiver.try_recv());
        let mut recv = receiver.recv();
        assert!(now(&mut recv).is_pending());
        assert!(sender.try_send(value()).is_ok());
        drop(recv);
        drop(receiver);
        assert!(sender.try_send(value()).is_err());
    });
    does_not_hang(|| {
        let (broadcaster, subscriber) = broadcast::<Arc<Uses>>(2);
        let value = || {
            let broadcaster = broadcaster.clone();
            Arc::new(Uses(Box::new(move || drop(broadcaster.subscribe()))))
        };
        for _ in 0..4 {
            broadcaster.send(value());
        }
        let mut other = subscriber.clone();
        drop(subscriber);
        assert!(other.try_recv().is_err(), "it has lost some");
        assert!(other.try_recv().is_ok());
        drop(other);
        broadcaster.send(value());
        let (publisher, watcher) = watch(value());
        drop(publisher.send(value()));
        drop((publisher, watcher));
    });
}

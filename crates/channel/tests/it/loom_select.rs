//! Models of selects against two channels, against each other, and with a future.

use crate::poll_once;
use ganger_channel::{channel, select};
use ganger_sync::sync::{Arc, Mutex, lock};
use ganger_sync::{model, thread};
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// Serves the same select by two threads: the second thread is too late.
// pins: Q6
#[test]
fn two_channels_serve_one_select() {
    model::check(2, || {
        let (a, from_a) = channel(0);
        let (b, from_b) = channel(0);
        let mut waits = Box::new(select().recv(&from_a, Result::ok).recv(&from_b, Result::ok));
        assert!(poll_once(&mut *waits).is_none());
        let other = thread::spawn(move || {
            let sent = a.try_send(1).is_ok();
            (sent, a)
        });
        let sent_b = b.try_send(2).is_ok();
        let (sent_a, _a) = other.join().unwrap();
        assert!(sent_a != sent_b, "one of them was in time");
        let got = poll_once(&mut *waits);
        assert_eq!(got, Some(Some(if sent_a { 1 } else { 2 })));
    });
}

/// Waits in both selects for the first ready case. The model reports a deadlock if a select sleeps
/// without an end.
// pins: Q7
#[test]
fn two_selects_meet_once() {
    model::check(2, || {
        let (a, from_a) = channel(0);
        let (b, from_b) = channel(0);
        let (a2, from_b2) = (a.clone(), from_b.clone());
        let other = thread::spawn(move || {
            let met = select()
                .send(&a2, 1, |sent| sent.map_or(0, |()| 1))
                .recv(&from_b2, |it| it.unwrap_or(0) + 1)
                .wait();
            met.unwrap()
        });
        let met = select()
            .send(&b, 1, |sent| sent.map_or(0, |()| 2))
            .recv(&from_a, |it| it.unwrap_or(0))
            .wait();
        assert_eq!(met.unwrap(), other.join().unwrap());
    });
}

#[derive(Default)]
struct Flag(Mutex<(bool, Option<Waker>)>);

impl Flag {
    fn set(&self) {
        let waker = {
            let mut state = lock(&self.0);
            state.0 = true;
            state.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Makes a future and a channel ready at the same moment: the value is received, or stays.
// pins: Q6
#[test]
fn a_future_ends_a_select_while_it_is_served() {
    model::check(2, || {
        let (sender, receiver) = channel(1);
        let flag = Arc::new(Flag::default());
        let other = {
            let flag = Arc::clone(&flag);
            thread::spawn(move || {
                flag.set();
                sender.try_send(1).unwrap();
            })
        };
        let is_set = poll_fn(|context| {
            let mut state = lock(&flag.0);
            if state.0 {
                return Poll::Ready(());
            }
            state.1 = Some(context.waker().clone());
            Poll::Pending
        });
        let got = select()
            .recv(&receiver, Result::ok)
            .future(is_set, |()| None)
            .wait();
        other.join().unwrap();
        let left = receiver.try_recv().ok();
        assert_eq!(got.unwrap().or(left), Some(1));
    });
}

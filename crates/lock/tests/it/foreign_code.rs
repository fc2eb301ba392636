//! Wakers that panic, and waits inside of waits.

use crate::support::Counts;
use ganger_lock::{CancellationToken, Notify, RwLock, block_on, block_on_for};
use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::{Arc, mpsc};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker panics");
    }
}

// pins: K7
#[test]
fn a_wait_inside_of_a_wait_takes_none_of_its_wake_ups() {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let notify = Notify::new();
        let mut is_first = true;
        block_on(async {
            let mut outer = pin!(notify.notified());
            poll_fn(|context| {
                let polled = outer.as_mut().poll(context);
                if std::mem::take(&mut is_first) {
                    notify.notify_one();
                    assert!(block_on_for(Duration::from_millis(5), pending::<()>()).is_none());
                }
                polled
            })
            .await;
        });
        sender.send(()).unwrap();
    });
    receiver.recv_timeout(Duration::from_secs(60)).unwrap();
}

// pins: K4
#[test]
fn a_waker_that_panics_leaves_none_of_the_others_asleep() {
    let lock = RwLock::new(());
    let guard = lock.try_write().unwrap();
    let mut waits = [(); 3].map(|()| lock.read());
    let (count, counts) = Counts::waker();
    let wakers = [Waker::noop().clone(), Waker::from(Arc::new(Panics)), counts];
    for (wait, waker) in waits.iter_mut().zip(&wakers) {
        let polled = Pin::new(wait).poll(&mut Context::from_waker(waker));
        assert!(polled.is_pending());
    }
    assert!(catch_unwind(AssertUnwindSafe(|| drop(guard))).is_err());
    assert_eq!(count.get(), 1);
}

// pins: K8
#[test]
fn a_waker_that_panics_leaves_no_child_uncancelled() {
    let root = CancellationToken::new();
    let child = root.child();
    let mut wait = root.cancelled();
    let waker = Waker::from(Arc::new(Panics));
    let polled = Pin::new(&mut wait).poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| root.cancel("it is over"))).is_err());
    assert!(root.is_cancelled() && child.is_cancelled());
}

//! Waits of yields for futures.

use ganger_proc_api::internal::Delivery;
use ganger_proc_api::{Completer, TypedCommand};
use ganger_sync::failing;
use ganger_wait::Until;
use std::future::poll_fn;
use std::sync::mpsc::channel;
use std::task::Poll;

/// Polls the future from its wake-up, even during a failure.
#[test]
fn a_future_has_no_part_in_what_fails_when_it_is_woken() {
    let (sender, wakers) = channel();
    let mut polls = 0;
    let future = poll_fn(move |context| {
        assert!(!failing::is_failing());
        polls += 1;
        if polls == 3 {
            return Poll::Ready(polls);
        }
        sender.send(context.waker().clone()).unwrap();
        Poll::Pending
    });
    let (sender, completions) = channel();
    let pid = "{test|1}".parse().unwrap();
    let completer = Completer::from_fn(pid, 1, move |it| sender.send(it).unwrap());
    let command = Until::new(future).into_command();
    let delivery: Delivery = command.payloads.take().unwrap();
    delivery.deliver(completer).unwrap();
    failing::within(true, || wakers.recv().unwrap().wake());
    struct Wakes(std::task::Waker);
    impl Drop for Wakes {
        fn drop(&mut self) {
            self.0.wake_by_ref();
        }
    }
    let waker = wakers.recv().unwrap();
    let panicked = std::panic::catch_unwind(move || {
        let _wakes = Wakes(waker);
        panic!("on purpose");
    });
    assert!(panicked.is_err());
    assert_eq!(completions.recv().unwrap().take::<i32>().unwrap(), 3);
}

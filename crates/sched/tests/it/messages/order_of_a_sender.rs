//! A sender whose message has been accepted sends its next message, which must not come first.

use crate::support::*;
use ganger_proc_api::{Event, Message, Payload, SendError};
use ganger_sched::{Address, Scheduler};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;

const MESSAGES: u64 = 100_000;

fn number(message: &Message) -> u64 {
    let number = message.payloads.first().and_then(Payload::as_u64);
    number.expect("a numbered message")
}

/// After how many polls in vain the sender yields its thread: on a busy machine other threads need
/// the processor to make room.
const IN_VAIN: u32 = 1_000;

/// Polls again and again, as an executor does without wake-ups.
fn send_polling(address: &Address, n: u64) -> Result<(), SendError> {
    let mut sending = pin!(address.send_async(Message::new("n", n)));
    let mut polls = 0;
    loop {
        match sending
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(sent) => return sent,
            Poll::Pending if polls % IN_VAIN == IN_VAIN - 1 => thread::yield_now(),
            Poll::Pending => std::hint::spin_loop(),
        }
        polls += 1;
    }
}

/// Checks that the messages of a single sender arrive in order at a single receiver.
// pins: P4, R4
#[test]
fn what_has_been_accepted_is_before_what_is_sent_after_that() {
    let builder = Scheduler::builder().workers(2).mailbox_limit(4);
    let scheduler = builder.build().unwrap();
    scheduler.start().unwrap();
    let pairs: Vec<_> = (0..3)
        .map(|_| {
            let (mut next, mut swapped) = (0, 0_u64);
            let receiver = process(move |_, events, out| {
                for event in events {
                    if let Event::Message(message) = event {
                        swapped += u64::from(number(&message) != next);
                        next += 1;
                    }
                }
                if next == MESSAGES {
                    out.done(swapped);
                }
                Ok(())
            });
            let receiver = scheduler.submit(receiver, "main", ()).unwrap();
            let address = receiver.address().clone();
            let sender =
                thread::spawn(move || (0..MESSAGES).try_for_each(|n| send_polling(&address, n)));
            (receiver, sender)
        })
        .collect();
    let mut swapped = 0;
    for (receiver, sender) in pairs {
        joined(sender).unwrap();
        swapped += exit_number(receiver);
    }
    assert_eq!(swapped, 0, "messages out of place");
}

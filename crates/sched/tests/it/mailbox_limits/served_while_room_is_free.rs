//! Sends that wait for room are served for many places at a time, and never wait for ever while
//! room is free.

use super::waiting_senders::{
    assert_refused, block_on, collected, limited, number, numbered, started, waiting,
};
use crate::support::{exit_number, process};
use ganger_proc_api::{
    Context, Event, Events, Message, Process, SendError, SendErrorKind, StepOutput,
};
use ganger_sched::{Address, ProcessHandle, Scheduler, SendAsync};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Creates a process that takes `take` messages in its first step, and calls `rest` from then on.
/// Also returns the first waiting sender: the mailbox for 8 messages is full.
fn crowded(
    take: usize,
    mut rest: impl FnMut(&Context, &mut Events<'_>, &mut StepOutput) + Send + 'static,
) -> (Scheduler, ProcessHandle, SendAsync) {
    let scheduler = limited(8).build().unwrap();
    let mut has_taken = false;
    let process = process(move |ctx, events, out| {
        if has_taken {
            rest(ctx, events, out);
        } else {
            assert_eq!(events.take(take).count(), take);
            has_taken = true;
            out.step_again();
        }
        Ok(())
    });
    let handle = scheduler.submit(process, "main", ()).unwrap();
    for n in 0..8 {
        handle.send(numbered(n)).unwrap();
    }
    let waits = waiting(handle.address().send_async(numbered(8)));
    scheduler.start().unwrap();
    (scheduler, handle, waits)
}

// pins: P13
#[test]
fn a_process_that_waits_beside_messages_lets_senders_in() {
    // Its last step takes a message, and leaves more than a quarter.
    let (scheduler, handle, waits) = crowded(1, |_, events, _| {
        let _ = events.next();
    });
    block_on(waits).unwrap();
    scheduler.terminate(handle.pid()).unwrap();
}

// pins: P13
#[test]
fn a_process_that_goes_on_without_messages_lets_senders_in() {
    let (scheduler, handle, waits) = crowded(1, |_, _, out| out.step_again());
    block_on(waits).unwrap();
    scheduler.terminate(handle.pid()).unwrap();
}

// pins: P13, G6
#[test]
fn a_step_that_says_that_it_blocks_lets_senders_in() {
    let (go_on, wait) = mpsc::channel::<()>();
    let (_scheduler, handle, waits) = crowded(1, move |ctx, _, out| {
        ctx.blocking(|| wait.recv()).unwrap();
        out.done(7_u64);
    });
    block_on(waits).unwrap();
    go_on.send(()).unwrap();
    assert_eq!(exit_number(handle), 7);
}

// pins: P13
#[test]
fn a_sender_whose_time_is_over_takes_the_room_that_there_is() {
    let (go_on, wait) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    let mut seen = Vec::new();
    let (_scheduler, handle, waits) = crowded(2, move |_, events, out| {
        if seen.is_empty() {
            tell.send(()).unwrap();
            wait.recv().unwrap();
        }
        for event in events {
            if let Event::Message(message) = event {
                seen.push(number(&message).to_string());
            }
        }
        if seen.len() == 8 {
            out.done(seen.join(" "));
        }
    });
    told.recv().unwrap();
    // The step does not end. The mailbox has room for two.
    let short = Duration::from_millis(1);
    let address = handle.address();
    assert_refused(address.send(numbered(10)), SendErrorKind::Full, 10);
    address.send_timeout(numbered(9), short).unwrap();
    let third = address.send_timeout(numbered(11), short);
    assert_refused(third, SendErrorKind::Timeout, 11);
    block_on(waits).unwrap();
    go_on.send(()).unwrap();
    assert_eq!(collected(handle), "2 3 4 5 6 7 8 9");
}

/// Creates a process that takes a random number of messages a step, continues, waits or blocks. The
/// process ends when each of the senders has sent `each` numbers, in order.
fn moody(seed: u64, limit: usize, senders: usize, each: u64) -> impl Process {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut next = vec![0; senders];
    process(move |ctx, events, out| {
        let is_message = |event: &Event| matches!(event, Event::Message(_));
        let mut shown = 0;
        let _none = events.take_where(|event| {
            shown += usize::from(is_message(event));
            false
        });
        assert!(shown <= limit, "{shown} messages at once, seed {seed}");
        while events.take_where(|event| !is_message(event)).is_some() {}
        let take = random.usize(..=limit).min(shown);
        for _ in 0..take {
            let Some(Event::Message(message)) = events.next() else {
                panic!("a message is missing, seed {seed}");
            };
            let n = number(&message) / 8;
            let sender = usize::try_from(number(&message) % 8).unwrap();
            assert_eq!(n, next[sender], "of sender {sender}, seed {seed}");
            next[sender] += 1;
        }
        if random.u8(..8) == 0 {
            ctx.blocking(thread::yield_now);
        }
        if next.iter().all(|&next| next == each) {
            out.done(each);
        } else if shown > 0 && (take == 0 || random.bool()) {
            out.step_again();
        }
        Ok(())
    })
}

/// A way to send.
type SendBy = fn(&Address, Message) -> Result<(), SendError>;

/// Checks that no sender waits for ever, and no message is lost or overtakes another, whatever the
/// process does.
// pins: P4, P13
#[test]
fn senders_of_all_kinds_get_through_to_a_process_of_all_moods() {
    const EACH: u64 = 100;
    let kinds: [SendBy; 4] = [
        Address::send_blocking,
        |to, message| to.send_timeout(message, Duration::from_micros(200)),
        |to, message| block_on(to.send_async(message)),
        <Address>::send,
    ];
    for seed in 0..30 {
        let limit = 1 + usize::try_from(seed % 24).unwrap();
        let scheduler = started(limited(limit).workers(2));
        let moody = moody(seed, limit, 2 * kinds.len(), EACH);
        let handle = scheduler.submit(moody, "main", ()).unwrap();
        thread::scope(|scope| {
            for sender in 0..2 * kinds.len() {
                let (to, send) = (handle.address(), kinds[sender % kinds.len()]);
                scope.spawn(move || {
                    for n in 0..EACH {
                        let mut message = numbered(8 * n + sender as u64);
                        while let Err(error) = send(to, message) {
                            let may_try_again =
                                matches!(error.kind, SendErrorKind::Full | SendErrorKind::Timeout);
                            assert!(may_try_again, "{error}, seed {seed}");
                            message = error.into_envelope().message;
                            thread::yield_now();
                        }
                    }
                });
            }
        });
        // The process may wait despite messages.
        while !handle.is_finished() {
            let _is_sent = handle.address().send_control(Message::new("look", ()));
            thread::yield_now();
        }
        assert_eq!(exit_number(handle), EACH);
    }
}

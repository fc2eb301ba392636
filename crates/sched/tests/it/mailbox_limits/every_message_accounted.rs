//! An account of each message to a mailbox with a small limit: however the process ends, and
//! however its senders give up, a message is accepted, in order, or comes back.

use super::waiting_senders::{block_on, limited, number, numbered, started};
use crate::support::{exit, process, until};
use fastrand::Rng;
use ganger_proc_api::{Event, Message, Process, SendError, SendErrorKind, UpgradeRequest};
use ganger_sched::{Address, Scheduler};
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

const SENDERS: usize = 7;
const EACH: u64 = 24;

/// How many messages of each sender have come to a step, and how many control messages.
type Taken = Arc<Mutex<[u64; SENDERS + 1]>>;

/// Creates a process that takes a random number of messages a step, and continues, waits, or
/// blocks. A cancellation ends it.
fn taker(seed: u64, limit: usize, taken: Taken) -> impl Process {
    let mut random = Rng::with_seed(seed);
    process(move |ctx, events, out| {
        let is_message = |event: &Event| matches!(event, Event::Message(_));
        if random.bool() {
            out.step_again();
        }
        let mut shown = 0;
        let _none = events.take_where(|event| {
            shown += usize::from(is_message(event));
            false
        });
        assert!(shown <= limit, "{shown} messages at once");
        while let Some(event) = events.take_where(|event| !is_message(event)) {
            match event {
                Event::Cancel(_) => out.done(()),
                Event::Control(_) => taken.lock().unwrap()[SENDERS] += 1,
                _ => {}
            }
        }
        for _ in 0..random.usize(..=limit).min(shown) {
            let Some(Event::Message(message)) = events.next() else {
                panic!("a message is missing");
            };
            let n = number(&message) / 8;
            let sender = usize::try_from(number(&message) % 8).unwrap();
            let next = &mut taken.lock().unwrap()[sender];
            assert_eq!(n, *next, "of sender {sender}");
            *next += 1;
        }
        if random.u8(..4) == 0 {
            ctx.blocking(thread::yield_now);
        }
        Ok(())
    })
}

/// Sends a message, or takes it back after some looks.
fn send_or_take_back(to: &Address, message: Message, looks: usize) -> Result<(), SendError> {
    let mut future = to.send_async(message);
    for _ in 0..looks {
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(sent) = Pin::new(&mut future).poll(&mut context) {
            return sent;
        }
        thread::yield_now();
    }
    let left = future.into_envelope();
    left.map_or(Ok(()), |it| Err(SendError::new(SendErrorKind::Timeout, it)))
}

/// Sends numbers until all are accepted or the process has ended. Returns how many were accepted.
fn send_numbers(to: &Address, sender: usize, limit: usize, mut random: Rng) -> u64 {
    let short = Duration::from_micros(100);
    let mut n = 0;
    let mut is_refused = false;
    while n < EACH {
        let message = |n: u64| numbered(8 * n + sender as u64);
        let sent = match sender {
            // Rather than try again and again.
            _ if mem::take(&mut is_refused) => to.send_blocking(message(n)),
            0 | 1 => to.send_blocking(message(n)),
            2 => to.send_timeout(message(n), random.u32(..3) * short),
            3 => send_or_take_back(to, message(n), random.usize(..4)),
            4 => block_on(to.send_async(message(n))),
            5 => to.send(message(n)),
            _ => {
                let end = EACH.min(n + random.u64(1..=3 * limit as u64));
                match to.send_all((n..end).map(message)) {
                    Ok(()) => {
                        n = end;
                        continue;
                    }
                    Err(error) => {
                        n += error.sent as u64;
                        assert_eq!(error.messages.len() as u64, end - n);
                        let first = error.messages.into_iter().next().unwrap();
                        Err(SendError::new(error.kind, first.to(error.target)))
                    }
                }
            }
        };
        match sent {
            Ok(()) => n += 1,
            Err(error) => {
                let kind = error.kind;
                assert_eq!(
                    number(&error.into_envelope().message),
                    8 * n + sender as u64
                );
                match kind {
                    SendErrorKind::Full | SendErrorKind::Timeout => is_refused = true,
                    SendErrorKind::Ended(_) | SendErrorKind::Stopping => break,
                    other => panic!("{other}"),
                }
            }
        }
    }
    n
}

/// Disturbs the process, while its senders send, at once or after some messages.
fn disturb(scheduler: &Scheduler, to: &Address, how: u64) {
    let pid = to.pid();
    match how {
        0 => drop(scheduler.terminate(pid)),
        1 => drop(scheduler.cancel(pid, "over")),
        2 => scheduler.begin_stop(Duration::ZERO),
        3 => scheduler.begin_stop(Duration::from_secs(5)),
        _ => drop(scheduler.upgrade(pid, UpgradeRequest::factory("next", "main", ()))),
    }
}

// pins: P4, P11, P13, D1
#[test]
fn each_message_is_accepted_in_order_or_comes_back() {
    for seed in 0..40 {
        let limit = 1 + usize::try_from(seed % 8).unwrap();
        let taken = Taken::default();
        let scheduler = started(limited(limit).workers(2));
        let next = Arc::clone(&taken);
        scheduler
            .register_factory("next", move || {
                Box::new(taker(seed, limit, Arc::clone(&next)))
            })
            .unwrap();
        let first = taker(seed, limit, Arc::clone(&taken));
        let handle = scheduler.submit(first, "main", ()).unwrap();
        let to = handle.address().clone();
        let mut looks = 0;
        let accepted: u64 = thread::scope(|scope| {
            let senders: Vec<_> = (0..SENDERS)
                .map(|sender| {
                    let (to, random) = (&to, Rng::with_seed(8 * seed + sender as u64));
                    scope.spawn(move || send_numbers(to, sender, limit, random))
                })
                .collect();
            let at = Rng::with_seed(seed).u64(..EACH * SENDERS as u64);
            let mut disturbed_at = None;
            // The process may wait despite messages.
            until("all senders have ended", || {
                let count: u64 = taken.lock().unwrap()[..SENDERS].iter().sum();
                let is_next = disturbed_at.is_none_or(|last| seed % 5 == 4 && count > last);
                if count >= at && is_next {
                    disturbed_at = Some(count);
                    disturb(&scheduler, &to, seed % 5);
                }
                looks += u64::from(to.send_control(Message::new("look", ())).is_ok());
                senders.iter().all(thread::ScopedJoinHandle::is_finished)
            });
            senders.into_iter().map(|it| it.join().unwrap()).sum()
        });
        let _is_alive = scheduler.cancel(handle.pid(), "over");
        let reason = exit(handle);
        scheduler.stop(Duration::from_secs(5)).unwrap();
        let taken: u64 = taken.lock().unwrap().iter().sum();
        let undelivered = scheduler.stats().total.undelivered;
        assert_eq!(
            accepted + looks,
            taken + undelivered,
            "seed {seed}, {reason:?}"
        );
    }
}

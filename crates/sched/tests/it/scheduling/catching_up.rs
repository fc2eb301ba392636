//! Several turns in a pick: a process far behind continues, and no other process suffers from it.

use crate::support::*;
use ganger_proc_api::{CancelReason, Event, ExitReason, Message, Payload};
use ganger_sched::{Builder, ProcessHandle, ProcessState, Scheduler};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Creates a builder of one worker, whose steps are shown four events at a time.
fn one_worker() -> Builder {
    Scheduler::builder().workers(1).max_spares(0).event_batch(4)
}

/// Sends the numbers below `numbers`.
fn send(handle: &ProcessHandle, numbers: u64) {
    for n in 0..numbers {
        handle.send(Message::new("n", n)).unwrap();
    }
}

fn number(event: Event) -> u64 {
    match event {
        Event::Message(message) => message.payloads.into_first().as_u64().unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Returns the turns and the picks of a scheduler so far.
fn turns_and_picks(scheduler: &Scheduler) -> (u64, u64) {
    let stats = scheduler.stats().total;
    (stats.turns, stats.local_picks + stats.global_picks)
}

// pins: P4, R4
#[test]
fn a_process_that_is_far_behind_has_several_turns_in_one_pick() {
    const MESSAGES: u64 = 20_000;
    let scheduler = one_worker().build().unwrap();
    let mut next = 0;
    let receiver = process(move |_, events, out| {
        assert!(events.len() <= 4, "{}", events.len());
        for event in events {
            assert_eq!(number(event), next);
            next += 1;
        }
        if next == MESSAGES {
            out.done(next);
        }
        Ok(())
    });
    let receiver = scheduler.submit(receiver, "main", ()).unwrap();
    send(&receiver, MESSAGES);
    scheduler.start().unwrap();
    assert_eq!(exit_number(receiver), MESSAGES);
    let (turns, picks) = turns_and_picks(&scheduler);
    assert_eq!(turns, MESSAGES / 4);
    // The machine may have other things to do than this, but not all of the time.
    assert!(picks < turns, "{picks} picks");
    assert!(picks >= turns / 64, "{picks} picks");
}

// pins: G4
#[test]
fn a_process_with_long_steps_has_one_turn_in_a_pick() {
    let scheduler = one_worker().build().unwrap();
    let mut left = 100;
    let receiver = process(move |_, events, out| {
        std::thread::sleep(Duration::from_micros(200));
        left -= events.count();
        if left == 0 {
            out.done(());
        }
        Ok(())
    });
    let receiver = scheduler.submit(receiver, "main", ()).unwrap();
    send(&receiver, 100);
    scheduler.start().unwrap();
    assert!(exit(receiver).is_done());
    assert_eq!(turns_and_picks(&scheduler), (25, 25));
}

// pins: G4
#[test]
fn others_have_their_turns_meanwhile() {
    const MESSAGES: u64 = 20_000;
    let builder = one_worker().event_batch(1).rotation(1);
    let scheduler = builder.build().unwrap();
    let steps = Arc::new(AtomicU64::new(0));
    let counts = Arc::clone(&steps);
    let mut left = MESSAGES;
    let receiver = process(move |_, events, out| {
        counts.fetch_add(1, Ordering::SeqCst);
        left -= events.count() as u64;
        if left == 0 {
            out.done(());
        }
        Ok(())
    });
    let receiver = scheduler.submit(receiver, "main", ()).unwrap();
    send(&receiver, MESSAGES);
    let mut before = 0;
    let other = process(move |_, _, out| {
        let now = steps.load(Ordering::SeqCst);
        // With a rotation at every pick the two alternate, and a pick in between may take the
        // oldest.
        assert!(now - before <= 2 * 64, "{before} to {now}");
        before = now;
        if now == MESSAGES {
            out.done(());
        } else {
            out.step_again();
        }
        Ok(())
    });
    let other = scheduler.submit(other, "main", ()).unwrap();
    scheduler.start().unwrap();
    assert!(exit(receiver).is_done());
    let reason = exit(other);
    assert!(reason.is_done(), "{reason}");
}

// pins: P9
#[test]
fn no_step_follows_after_a_termination() {
    let scheduler = one_worker().build().unwrap();
    let handle = scheduler.handle();
    let calls = Calls::new();
    let receiver = counted(&calls, move |ctx, events, _| {
        events.for_each(drop);
        handle.terminate(ctx.pid())?;
        Ok(())
    });
    let receiver = scheduler.submit(receiver, "main", ()).unwrap();
    send(&receiver, 1_000);
    scheduler.start().unwrap();
    assert!(matches!(exit(receiver), ExitReason::Terminated));
    assert_eq!((calls.steps(), calls.closes()), (1, 1));
}

// pins: P10
#[test]
fn a_cancel_event_does_not_wait_until_its_process_has_caught_up() {
    let scheduler = one_worker().build().unwrap();
    let handle = scheduler.handle();
    let mut steps = 0;
    let receiver = process(move |ctx, events, out| {
        steps += 1;
        if steps == 1 {
            events.for_each(drop);
            handle.cancel(ctx.pid(), "enough")?;
        } else if let Some(Event::Cancel(CancelReason::Requested(_))) = events.next() {
            out.done(steps);
        }
        Ok(())
    });
    let receiver = scheduler.submit(receiver, "main", ()).unwrap();
    send(&receiver, 1_000);
    scheduler.start().unwrap();
    assert_eq!(exit_number(receiver), 2);
}

/// Checks a cancellation of a process not far behind, so without a further turn at once.
// pins: P10
#[test]
fn a_cancel_event_comes_before_the_turns_of_others() {
    let scheduler = one_worker().rotation(1).build().unwrap();
    let handle = scheduler.handle();
    let others = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&others);
    // In the deque before the receiver, so a rotation would take it first.
    let other = process(move |_, _, out| {
        if others.fetch_add(1, Ordering::SeqCst) == 100 {
            out.done(());
        } else {
            out.step_again();
        }
        Ok(())
    });
    let other = scheduler.submit(other, "main", ()).unwrap();
    let mut before = None;
    let receiver = process(move |ctx, events, out| {
        let now = count.load(Ordering::SeqCst);
        match before.replace(now) {
            None => {
                events.for_each(drop);
                handle.cancel(ctx.pid(), "enough")?;
            }
            Some(before) => out.done(now - before),
        }
        Ok(())
    });
    let receiver = scheduler.submit(receiver, "main", ()).unwrap();
    send(&receiver, 6);
    scheduler.start().unwrap();
    assert_eq!(exit_number(receiver), 0);
    assert!(exit(other).is_done());
}

// pins: D3
#[test]
fn who_is_behind_when_the_scheduler_halts_ends_with_its_turn() {
    let builder = Scheduler::builder().workers(2).event_batch(4);
    let scheduler = builder.build().unwrap();
    let calls = Calls::new();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let lasts = counted(&calls, move |_, events, _| {
        events.for_each(drop);
        let _released = released.recv();
        Ok(())
    });
    let lasts = scheduler.submit(lasts, "main", ()).unwrap();
    send(&lasts, 1_000);
    scheduler.start().unwrap();
    until_state(&scheduler, lasts.pid(), ProcessState::Running);
    scheduler.stop(Duration::from_millis(20)).unwrap();
    drop(release);
    let reason = exit(lasts);
    assert_eq!((calls.steps(), calls.closes()), (1, 1), "{reason}");
}

// pins: P3, P4
#[test]
fn what_a_step_leaves_is_in_front_of_the_next_batch() {
    const MESSAGES: u64 = 1_000;
    let scheduler = one_worker().build().unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let receiver = process(move |_, events, out| {
        // Even messages first, as long as any are left.
        let is_even = |event: &Event| match event {
            Event::Message(message) => message
                .payloads
                .first()
                .and_then(Payload::as_u64)
                .is_some_and(|n| n % 2 == 0),
            _ => false,
        };
        let mut log = log.lock().unwrap();
        log.extend(std::iter::from_fn(|| events.take_where(is_even)).map(number));
        if log.len() as u64 == MESSAGES / 2 {
            log.extend(events.map(number));
            out.done(());
        }
        Ok(())
    });
    let receiver = scheduler.submit(receiver, "main", ()).unwrap();
    send(&receiver, MESSAGES);
    scheduler.start().unwrap();
    assert!(exit(receiver).is_done());
    let order = (0..MESSAGES).step_by(2).chain((1..MESSAGES).step_by(2));
    assert_eq!(*seen.lock().unwrap(), order.collect::<Vec<_>>());
}

//! A running step wakes a lone process: the step's worker takes it, unless the step goes on.

use crate::support::*;
use ganger_proc_api::{Message, Pid};
use ganger_sched::{BuildError, ProcessState, Scheduler};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

// pins: G2
#[test]
fn a_lone_process_is_handed_on_when_the_step_that_woke_it_goes_on() {
    // Without spares: the other worker, which sleeps, must be woken.
    let scheduler = start(2);
    for _ in 0..10 {
        let has_run = Arc::new(AtomicBool::new(false));
        let runs = Arc::clone(&has_run);
        let lone = process(move |_, events, out| {
            if events.next().is_some() {
                runs.store(true, Ordering::SeqCst);
                out.done(1);
            }
            Ok(())
        });
        let lone = scheduler.submit(lone, "main", ()).unwrap();
        until_state(&scheduler, lone.pid(), ProcessState::Idle);
        until("both workers sleep", || scheduler.stats().sleeping == 2);
        // The monitor takes a last look before it sleeps as well, and must be woken.
        std::thread::sleep(Duration::from_millis(10));
        let target = lone.pid();
        let handle = scheduler.handle();
        let waker = process(move |ctx, _, out| {
            // A worker woken for this process must find nothing more.
            until("the other worker sleeps", || handle.stats().sleeping == 1);
            ctx.send(target, "go", ())?;
            until("the other has run", || has_run.load(Ordering::SeqCst));
            out.done(2);
            Ok(())
        });
        let waker = scheduler.submit(waker, "main", ()).unwrap();
        assert_eq!((exit_number(waker), exit_number(lone)), (2, 1));
    }
}

// pins: G2, G5
#[test]
fn a_pair_that_wakes_each_other_hardly_wakes_anybody_else() {
    const ROUNDS: u64 = 100_000;
    // As seldom as the monitor looks, to tell its wake-ups from those of sends.
    const DELAY: Duration = Duration::from_millis(2);
    let builder = Scheduler::builder().workers(2).max_spares(0);
    let scheduler = builder.hand_off_delay(DELAY).build().unwrap();
    scheduler.start().unwrap();
    let half = || {
        process(|ctx, events, out| {
            for event in events {
                let ganger_proc_api::Event::Message(message) = event else {
                    continue;
                };
                let left = message.payloads.first().and_then(|left| left.as_u64());
                let left = left.ok_or("a number")?;
                if left > 0 {
                    let partner: Pid = message.source.ok_or("a sender")?;
                    ctx.send(partner, "ball", left - 1)?;
                }
                if left <= 1 {
                    out.done(left);
                }
            }
            Ok(())
        })
    };
    let [white, black] = [(); 2].map(|()| scheduler.submit(half(), "main", ()).unwrap());
    until("both workers sleep", || scheduler.stats().sleeping == 2);
    let (start, before) = (Instant::now(), scheduler.stats().total);
    let ball = Message::new("ball", ROUNDS).from_pid(black.pid());
    white.send(ball).unwrap();
    let ends = [exit_number(white), exit_number(black)];
    assert!(ends == [0, 1] || ends == [1, 0]);
    let after = scheduler.stats().total;
    // The monitor wakes a worker in at most half of its looks, where a system that takes the
    // processor away made a step look long. Both workers may have been on their way to sleep, or to
    // the first ball.
    let woken = u128::from(after.sleeps - before.sleeps);
    let most = start.elapsed().as_millis() / DELAY.as_millis() + 8;
    assert!(woken <= most, "{woken} times; {most} are allowed");
}

#[test]
fn a_hand_off_delay_out_of_range_is_refused() {
    for delay in [Duration::ZERO, Duration::from_millis(3), Duration::MAX] {
        let built = Scheduler::builder().hand_off_delay(delay).build();
        let error = built.map(drop).unwrap_err();
        assert!(matches!(error, BuildError::OutOfRange { .. }));
        let text = error.to_string();
        assert!(text.contains("hand_off_delay in microseconds"), "{text}");
        assert!(text.contains("from 1 to 2000"), "{text}");
    }
    let least = Scheduler::builder().hand_off_delay(Duration::from_micros(1));
    assert!(least.build().is_ok());
}

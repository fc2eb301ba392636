//! Wakers: a step without an event.

use crate::support::{Calls, waiter};
use crate::support::{PATIENCE, counted, exit, exit_number, process, start, until, until_state};
use ganger_proc_api::Context;
use ganger_sched::ProcessState;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;

// pins: P5
#[test]
fn a_wake_is_a_step_without_events() {
    let scheduler = start(1);
    let calls = Calls::new();
    let handle = counted(&calls, |_, events, _| {
        assert!(events.next().is_none());
        Ok(())
    });
    let handle = scheduler.submit(handle, "main", ()).unwrap();
    for steps in 1..4 {
        until_state(&scheduler, handle.pid(), ProcessState::Idle);
        assert_eq!(calls.steps(), steps);
        handle.address().waker().wake_by_ref();
        until("it has stepped", || calls.steps() > steps);
    }
    scheduler.terminate(handle.pid()).unwrap();
    assert!(!exit(handle).is_done());
}

/// Checks a step that goes on until it has been woken.
// pins: P5
#[test]
fn a_wake_while_the_step_runs_causes_another() {
    let scheduler = start(1);
    let (inside, is_inside) = channel();
    let (woken, is_woken) = channel();
    let mut steps = 0;
    let twice = process(move |ctx, _, out| {
        steps += 1;
        if steps == 1 {
            inside.send(ctx.waker())?;
            is_woken.recv_timeout(PATIENCE)?;
        } else {
            out.done(7_u64);
        }
        Ok(())
    });
    let handle = scheduler.submit(twice, "main", ()).unwrap();
    let waker = is_inside.recv_timeout(PATIENCE).unwrap();
    waker.wake();
    woken.send(()).unwrap();
    assert_eq!(exit_number(handle), 7);
}

// pins: P5
#[test]
fn a_step_may_wake_its_own_process() {
    let scheduler = start(1);
    let mut steps = 0_u64;
    let own = process(move |ctx: &Context, _, out| {
        steps += 1;
        ctx.waker().wake();
        if steps == 100 {
            out.done(steps);
        }
        Ok(())
    });
    assert_eq!(exit_number(scheduler.submit(own, "main", ()).unwrap()), 100);
}

/// Checks wakes that each find the step running, as it continues meanwhile.
// pins: P5
#[test]
fn a_crowd_of_wakes_during_a_step_is_one_further_step() {
    const WAKES: usize = 100_000;
    let scheduler = start(1);
    let calls = Calls::new();
    let (inside, is_inside) = channel();
    let (woken, is_woken) = channel();
    let handle = counted(&calls, move |ctx, _, _| {
        if inside.send(ctx.waker()).is_ok() {
            let _ = is_woken.recv_timeout(PATIENCE);
        }
        Ok(())
    });
    let handle = scheduler.submit(handle, "main", ()).unwrap();
    let waker = is_inside.recv_timeout(PATIENCE).unwrap();
    (0..WAKES).for_each(|_| waker.wake_by_ref());
    drop(is_inside);
    woken.send(()).unwrap();
    until("it has stepped again", || calls.steps() == 2);
    until_state(&scheduler, handle.pid(), ProcessState::Idle);
    assert_eq!(calls.steps(), 2);
    scheduler.terminate(handle.pid()).unwrap();
    drop(exit(handle));
}

// pins: P5, P12
#[test]
fn a_wake_after_the_end_is_harmless_and_its_waker_keeps_no_process() {
    let scheduler = start(1);
    let calls = Calls::new();
    let brief = counted(&calls, |_, _, out| {
        out.done(());
        Ok(())
    });
    let handle = scheduler.submit(brief, "main", ()).unwrap();
    let waker = handle.address().waker();
    assert!(exit(handle).is_done());
    assert_eq!((calls.steps(), calls.closes(), calls.drops()), (1, 1, 1));
    let other = waker.clone();
    waker.wake();
    other.wake_by_ref();
    assert!(other.will_wake(&other.clone()));
    // The wake goes to no other process either.
    let next = scheduler.submit(waiter(), "main", ()).unwrap();
    other.wake();
    scheduler.cancel(next.pid(), "enough").unwrap();
    assert!(exit(next).is_done());
}

/// Checks that the process sees the last count of several threads, which count and wake.
// pins: G2, P5
#[test]
fn no_wake_is_lost_among_threads() {
    const THREADS: u64 = 4;
    let rounds = if cfg!(miri) { 20 } else { 5_000 };
    let scheduler = start(2);
    let count = Arc::new(AtomicU64::new(0));
    let seen = Arc::new(AtomicU64::new(0));
    let is_over = Arc::new(AtomicBool::new(false));
    let reader = {
        let (count, seen) = (Arc::clone(&count), Arc::clone(&seen));
        let is_over = Arc::clone(&is_over);
        process(move |_, _, out| {
            seen.store(count.load(Ordering::Relaxed), Ordering::Relaxed);
            if is_over.load(Ordering::Relaxed) {
                out.done(());
            }
            Ok(())
        })
    };
    let handle = scheduler.submit(reader, "main", ()).unwrap();
    let waker = handle.address().waker();
    for round in 1..=rounds {
        thread::scope(|scope| {
            for _ in 0..if round % 50 == 0 { THREADS } else { 0 } {
                scope.spawn(|| {
                    count.fetch_add(1, Ordering::Relaxed);
                    waker.wake_by_ref();
                });
            }
            count.fetch_add(1, Ordering::Relaxed);
            waker.wake_by_ref();
        });
        let all = count.load(Ordering::Relaxed);
        until("the last wake has been seen", || {
            seen.load(Ordering::Relaxed) == all
        });
    }
    is_over.store(true, Ordering::Relaxed);
    waker.wake();
    assert!(exit(handle).is_done());
}

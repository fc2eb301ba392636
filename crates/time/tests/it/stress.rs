//! Timers on threads, many at a time.

use crate::support::{PATIENCE, ms, start, until};
use ganger_proc_api::{Envelope, Event, process_fn};
use ganger_sched::ContextExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

// pins: T1
#[test]
fn many_processes_sleep_and_none_wakes_early() {
    const SLEEPS: u64 = 40;
    for workers in [1, 2, 4] {
        let (scheduler, timers) = start(workers);
        let sleepers: Vec<_> = (0..300_u64)
            .map(|nth| {
                let (mut random, mut due, mut left) = (fastrand::Rng::with_seed(nth), None, SLEEPS);
                let process = process_fn(move |ctx, events, out| {
                    if let Some(due) = due {
                        let Some(Event::Completion(it)) = events.next() else {
                            return Err("no completion".into());
                        };
                        it.result?;
                        assert!(ctx.now() >= due, "T1: it is early");
                        left -= 1;
                        // The second sleep is taken back each time.
                        out.cancel(1);
                    }
                    if left == 0 {
                        out.done(());
                        return Ok(());
                    }
                    let time = Duration::from_micros(random.u64(..3_000));
                    due = Some(ctx.now().after(time));
                    out.sleep(time, 0);
                    out.sleep(time + ms(500), 1);
                    Ok(())
                });
                scheduler.spawn(process).unwrap()
            })
            .collect();
        for sleeper in sleepers {
            assert!(sleeper.wait().is_done());
        }
        until("all are gone", || timers.stats().pending == 0);
        let stats = timers.stats();
        assert_eq!(stats.armed, stats.fired + stats.cancelled);
        assert!(stats.cancelled >= 300 * SLEEPS, "{stats:?}");
    }
}

/// Sends later from threads outside, and cancels half of the messages at the moment when they are
/// due.
// pins: T2
#[test]
fn each_message_of_threads_outside_is_sent_or_cancelled() {
    const EACH: u64 = 3_000;
    let (scheduler, timers) = start(2);
    let received = Arc::new(AtomicU64::new(0));
    let own = Arc::clone(&received);
    let collects = scheduler.spawn(process_fn(move |_, events, _| {
        let messages = events.filter(|it| matches!(it, Event::Message(_))).count();
        own.fetch_add(messages as u64, Ordering::SeqCst);
        Ok(())
    }));
    let collects = collects.unwrap();
    let cancelled = AtomicU64::new(0);
    thread::scope(|scope| {
        for nth in 0..3 {
            let (timers, cancelled, pid) = (&timers, &cancelled, collects.pid());
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(nth);
                let mut before = Vec::new();
                for number in 0..EACH {
                    let envelope = Envelope::new(None, pid, "n", number);
                    let delay = Duration::from_micros(random.u64(..500));
                    before.push(timers.send_after(delay, envelope));
                    if before.len() > 20 {
                        let mut timer = before.swap_remove(random.usize(..20));
                        let act = random.u8(..4);
                        if act == 0 {
                            timer.reset(Duration::from_micros(50));
                        }
                        let is_gone = act == 1 && timer.cancel().is_some();
                        cancelled.fetch_add(u64::from(is_gone), Ordering::SeqCst);
                    }
                }
            });
        }
    });
    let all = || received.load(Ordering::SeqCst) + cancelled.load(Ordering::SeqCst);
    until("all are accounted for", || all() == 3 * EACH);
    until("none is left", || timers.stats().pending == 0);
    assert_eq!((all(), timers.stats().refused), (3 * EACH, 0));
}

/// Sticks each worker in a step that waits for the sleepers of its own steps to take their steps
/// elsewhere.
// pins: T4
#[test]
fn sleepers_of_workers_that_are_stuck_go_on() {
    const WORKERS: usize = 2;
    let (scheduler, _timers) = start(WORKERS);
    let (sender, receiver) = channel();
    let receiver = Arc::new(std::sync::Mutex::new(receiver));
    let sleepers: Vec<_> = (0..20)
        .map(|_| {
            let (sender, mut left) = (sender.clone(), 10);
            let process = process_fn(move |_, _, out| {
                left -= 1;
                if left == 0 {
                    sender.send(())?;
                    out.done(());
                } else {
                    out.sleep(ms(3), 1);
                }
                Ok(())
            });
            scheduler.spawn(process).unwrap()
        })
        .collect();
    let stuck: Vec<_> = (0..WORKERS)
        .map(|_| {
            let receiver = Arc::clone(&receiver);
            let process = process_fn(move |ctx, _, out| {
                // A message to itself goes through the outside, too.
                let _ = ctx.send_after(ms(1), ctx.pid(), "n", ());
                for _ in 0..10 {
                    receiver.lock().unwrap().recv_timeout(PATIENCE)?;
                }
                out.done(());
                Ok(())
            });
            scheduler.spawn(process).unwrap()
        })
        .collect();
    for handle in sleepers.into_iter().chain(stuck) {
        assert!(handle.wait().is_done());
    }
}

/// Checks that after the halt no timer fires, and no memory is kept.
// pins: T6
#[test]
fn a_stop_takes_all_timers_along() {
    let (scheduler, timers) = start(2);
    let kept = Arc::new(());
    for nth in 0..50_u64 {
        let held = Arc::clone(&kept);
        let process = process_fn(move |_, _, out| {
            let _held = &held;
            out.sleep(ms(1_000_000), nth);
            Ok(())
        });
        let pid = scheduler.spawn(process).unwrap().pid();
        let envelope = Envelope::new(None, pid, "n", ());
        let _ = timers.send_after(ms(1_000_000), envelope);
    }
    until("all sleep", || timers.stats().pending == 100);
    scheduler.stop(Duration::ZERO).unwrap();
    until("all is gone", || {
        timers.stats().pending == 0 && Arc::strong_count(&kept) == 1
    });
    let refused = Envelope::new(None, "{main|1}".parse().unwrap(), "n", ());
    assert_eq!(timers.send_after(ms(1), refused).read(), None);
}

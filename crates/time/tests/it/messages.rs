//! Messages with a later time, in virtual time.

use crate::support::{assert_in_time, moment, ms, sim, stats, timers};
use ganger_proc_api::{Envelope, Event, Payload, Pid, process_fn};
use ganger_sched::ContextExt;
use ganger_sim::{Faults, Rt};
use ganger_time::Timer;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What came when.
type Received = Arc<Mutex<Vec<(Duration, u64)>>>;

/// Takes messages, and notes their times and values.
fn collects(rt: &Rt<'_>) -> (Pid, Received) {
    let all = Arc::new(Mutex::new(Vec::new()));
    let (own, clock) = (Arc::clone(&all), rt.clock());
    let process = rt.spawn(process_fn(move |_, events, _| {
        for event in events {
            if let Event::Message(it) = event {
                let number = it.payloads.into_first().as_u64().unwrap();
                own.lock().unwrap().push((clock.now(), number));
            }
        }
        Ok(())
    }));
    (process.unwrap().pid(), all)
}

// pins: T2
#[test]
fn messages_are_sent_later_unless_they_are_cancelled() {
    sim(6).run(|rt| {
        let (pid, all) = collects(rt);
        rt.settle();
        let (timers, begin) = (timers(rt), rt.now());
        let send =
            |millis: u64| timers.send_after(ms(millis), Envelope::new(None, pid, "n", millis));
        let (first, second, mut third) = (send(10), send(20), send(30));
        let (mut fourth, now) = (send(40), send(0));
        assert_eq!(now.read(), None);
        assert_eq!(first.read(), Some(ms(10)));
        assert_eq!(
            (second.cancel(), second.cancel(), second.read()),
            (Some(moment(begin + ms(20))), None, None)
        );
        // Earlier and later than before.
        assert!(third.reset(ms(5)) && fourth.reset(ms(50)));
        assert_eq!((third.read(), fourth.read()), (Some(ms(5)), Some(ms(50))));
        rt.settle();
        assert!(!third.reset(ms(1)) && fourth.cancel().is_none());
        let all = all.lock().unwrap();
        let numbers: Vec<_> = all.iter().map(|it| it.1).collect();
        assert_eq!(numbers, [0, 30, 10, 40]);
        for (due, it) in [0, 5, 10, 50].into_iter().zip(&*all) {
            assert_in_time(begin + ms(due), it.0);
        }
    });
}

/// Cancels and resets a message in the mailbox, with messages before and behind it.
// pins: T2, R4
#[test]
fn a_message_in_the_mailbox_is_not_seen_after_it_was_cancelled_or_reset() {
    for (resets, expected) in [(false, &[1, 3][..]), (true, &[1, 3, 2])] {
        sim(16).run(|rt| {
            let (pid, all) = collects(rt);
            rt.settle();
            let envelope = |number: u64| Envelope::new(None, pid, "n", number);
            rt.send(envelope(1)).unwrap();
            let now = rt.now();
            let mut timer = timers(rt).send_after(Duration::ZERO, envelope(2));
            rt.send(envelope(3)).unwrap();
            if resets {
                assert!(timer.reset(ms(10)));
            } else {
                assert_eq!(timer.cancel(), Some(moment(now)));
                assert_eq!((timer.cancel(), timer.reset(ms(1))), (None, false));
            }
            rt.settle();
            let numbers: Vec<_> = all.lock().unwrap().iter().map(|it| it.1).collect();
            assert_eq!(numbers, expected);
            assert_eq!((timer.cancel(), timer.read()), (None, None));
        });
    }
}

// pins: T2, R2
#[test]
fn a_message_in_the_mailbox_of_a_process_that_ends_is_dropped_with_it() {
    for is_cancelled in [false, true] {
        sim(17).run(|rt| {
            let (pid, _) = collects(rt);
            rt.settle();
            let before = rt.stats().total.undelivered;
            let envelope = Envelope::new(None, pid, "n", 1_u64);
            let timer = timers(rt).send_after(Duration::ZERO, envelope);
            assert_eq!(is_cancelled.then(|| timer.cancel()).is_some(), is_cancelled);
            rt.terminate(pid).unwrap();
            rt.settle();
            let undelivered = rt.stats().total.undelivered - before;
            assert_eq!(undelivered, u64::from(!is_cancelled));
            assert_eq!(timer.cancel(), None);
        });
    }
}

/// Checks that a sent message takes a place in the mailbox until the process has looked at the
/// message.
// pins: T2, P13
#[test]
fn a_message_that_is_taken_back_from_a_limited_mailbox_leaves_its_place() {
    let sim = sim(22).builder(|builder| builder.mailbox_limit(2));
    sim.run(|rt| {
        let (pid, all) = collects(rt);
        rt.settle();
        let timers = timers(rt);
        let envelope = |number: u64| Envelope::new(None, pid, "n", number);
        for round in 0..5 {
            let first = timers.send_after(Duration::ZERO, envelope(3 * round));
            let _ = timers.send_after(Duration::ZERO, envelope(3 * round + 1));
            // It is full.
            let refused = timers.send_after(Duration::ZERO, envelope(3 * round + 2));
            assert_eq!((stats(rt).refused, refused.cancel()), (round + 1, None));
            assert!(first.cancel().is_some());
            rt.settle();
        }
        let numbers: Vec<_> = all.lock().unwrap().iter().map(|it| it.1).collect();
        assert_eq!(numbers, [1, 4, 7, 10, 13]);
    });
}

// pins: T2
#[test]
fn a_message_of_a_type_that_its_process_does_not_take_is_refused_when_it_is_due() {
    sim(23).run(|rt| {
        let seen = Arc::new(Mutex::new(0));
        let own = Arc::clone(&seen);
        let process = rt.spawn(process_fn(move |ctx, events, _| {
            ctx.accept_only::<u32>();
            *own.lock().unwrap() += events.count();
            Ok(())
        }));
        let pid = process.unwrap().pid();
        rt.settle();
        let wrong = Envelope::new(None, pid, "n", "a text");
        let right = Envelope::new(None, pid, "n", Payload::any(7_u32));
        let wrong = timers(rt).send_after(ms(1), wrong);
        let right = timers(rt).send_after(ms(1), right);
        rt.settle();
        assert_eq!((*seen.lock().unwrap(), stats(rt).refused), (1, 1));
        assert_eq!((wrong.cancel(), right.cancel()), (None, None));
    });
}

/// Takes a message back in the step that would see the message, or in an earlier step.
// pins: T2
#[test]
fn a_process_takes_back_what_it_has_sent_itself() {
    for seed in 0..50 {
        sim(seed).faults(Faults::some()).run(|rt| {
            let (mut timer, mut wanted, mut turns) = (None::<Timer>, 0, 0_u64);
            let process = rt.spawn(process_fn(move |ctx, events, out| {
                for event in events {
                    let Event::Message(it) = event else { continue };
                    let number = it.payloads.into_first().as_u64().unwrap();
                    assert_eq!(number, wanted, "of an arming that was taken back");
                    // A shown message cannot be taken back.
                    assert!(timer.take().is_none_or(|it| it.cancel().is_none()));
                }
                turns += 1;
                if turns == 40 {
                    out.done(());
                    return Ok(());
                }
                if let Some(timer) = timer.take() {
                    assert!(timer.cancel().is_some(), "it has not been shown");
                }
                wanted = turns;
                let delay = Duration::from_micros(turns % 3);
                timer = Some(ctx.send_after(delay, ctx.pid(), "n", wanted));
                if turns % 2 == 0 {
                    out.step_again();
                }
                Ok(())
            }));
            assert!(rt.wait(process.unwrap()).is_done());
        });
    }
}

// pins: T2
#[test]
fn a_message_to_a_process_that_has_ended_is_counted() {
    sim(7).run(|rt| {
        let ends = rt.spawn(process_fn(|_, _, out| {
            out.done(());
            Ok(())
        }));
        let ends = ends.unwrap();
        let pid = ends.pid();
        let _ = timers(rt).send_after(ms(1), Envelope::new(None, pid, "n", 1_u64));
        assert!(rt.wait(ends).is_done());
        rt.settle();
        assert_eq!((stats(rt).fired, stats(rt).refused), (1, 1));
    });
}

//! What is left when a scheduler halts, and timers that a scheduler does not have.

use ganger_proc_api::{Context, Envelope, Event, Events, Payload, StepOutput, process_fn};
use ganger_sched::{DeadLetter, DeadLetters, DeadReason, Scheduler};
use ganger_time::{KeyedTimers, StateTimeout, TimerOutput, Timers};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3_600);

/// Its destructor panics.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

// pins: T6
#[test]
fn a_destructor_that_panics_keeps_no_other_timer() {
    let timers = Arc::new(Timers::new());
    let builder = Scheduler::builder().workers(1).source(timers.clone());
    let scheduler = builder.build().unwrap();
    scheduler.start().unwrap();
    let held = Arc::new(());
    // One at the worker's seat, and one at the seat of all other threads.
    let (its, own) = (Arc::clone(&timers), Arc::clone(&held));
    let process = scheduler.spawn(process_fn(move |ctx: &Context, _: &mut Events<'_>, out| {
        let payload = Payload::any(Arc::clone(&own));
        let _ = its.send_after(LONG, Envelope::new(None, ctx.pid(), "held", payload));
        out.done(());
        Ok(())
    }));
    let process = process.unwrap();
    let pid = process.pid();
    assert!(process.wait().is_done());
    for _ in 0..2 {
        let _ = timers.send_after(LONG, Envelope::new(None, pid, "bomb", Payload::any(Bomb)));
    }
    assert_eq!((timers.stats().pending, Arc::strong_count(&held)), (3, 2));
    scheduler.stop(Duration::ZERO).unwrap();
    drop(scheduler);
    while Arc::strong_count(&held) > 1 {
        std::thread::yield_now();
    }
    let stats = timers.stats();
    assert_eq!((stats.pending, stats.cancelled), (0, 3));
}

/// What has become of a process that sleeps in that way, where no timers are.
fn without_timers(
    mut step: impl FnMut(Option<Event>, &mut StepOutput) -> bool + Send + 'static,
) -> String {
    let scheduler = Scheduler::start_default().unwrap();
    let process = scheduler.spawn(process_fn(move |_, events, out| {
        if step(events.next(), out) {
            out.done("a timeout");
        }
        Ok(())
    }));
    process.unwrap().wait().to_string()
}

// pins: T2
#[test]
fn a_timer_that_has_failed_is_no_timeout() {
    let mut keyed = KeyedTimers::new(100);
    let mut state = StateTimeout::new(1);
    let ends = [
        without_timers(move |event, out| match event {
            Some(Event::Completion(it)) => keyed.fired(&it).is_some(),
            _ => {
                keyed.start("key", LONG, out);
                false
            }
        }),
        without_timers(move |event, out| match event {
            Some(Event::Completion(it)) => state.is_over(&it),
            _ => {
                state.enter(LONG, out);
                false
            }
        }),
        without_timers(move |event, out| match event {
            Some(Event::Completion(it)) => match it.result {
                Err(error) => panic!("a timer has failed: {error}"),
                Ok(_) => true,
            },
            _ => {
                out.sleep(LONG, 1);
                false
            }
        }),
    ];
    for end in ends {
        assert!(end.contains("a timer has failed"), "{end}");
        assert!(
            end.contains("the crate `ganger`"),
            "it says what to do: {end}"
        );
    }
}

/// Notes the reasons and topics of dead letters.
struct Noted(mpsc::Sender<(DeadReason, String)>);

impl DeadLetters for Noted {
    fn dead_letter(&self, letter: &DeadLetter) {
        let topic = letter.topic.as_str().to_owned();
        self.0.send((letter.reason, topic)).unwrap();
    }
}

// pins: L8, T2
#[test]
fn a_message_that_is_refused_when_it_is_due_is_a_dead_letter() {
    let timers = Arc::new(Timers::new());
    let (noted, letters) = mpsc::channel();
    let builder = Scheduler::builder().workers(1).mailbox_limit(1);
    let builder = builder.source(timers.clone());
    let scheduler = builder
        .dead_letters(Arc::new(Noted(noted)))
        .build()
        .unwrap();
    let waits = || process_fn(|_, _, _| Ok(()));
    let ended = scheduler.spawn(waits()).unwrap();
    let pid = ended.pid();
    scheduler.terminate(pid).unwrap();
    scheduler.start().unwrap();
    ended.wait();
    let _timer = timers.send_after(Duration::ZERO, Envelope::new(None, pid, "late", ()));
    let letter = letters.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(letter, (DeadReason::LateEnded, "late".to_owned()));
    assert!(letters.try_recv().is_err());
}

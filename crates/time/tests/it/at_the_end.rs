//! The timers left when a scheduler halts.

use ganger_proc_api::{Context, Envelope, Events, Payload, process_fn};
use ganger_sched::{DeadLetter, DeadLetters, DeadReason, Scheduler};
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
    let scheduler = Scheduler::builder().workers(1).start().unwrap();
    let timers = scheduler.timers().clone();
    let held = Arc::new(());
    // A timer at the worker's shard, and a timer at the shard of all other threads.
    let (its, own) = (timers.clone(), Arc::clone(&held));
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
    let (noted, letters) = mpsc::channel();
    let builder = Scheduler::builder().workers(1).mailbox_limit(1);
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
    let _timer = scheduler.send_after(Duration::ZERO, Envelope::new(None, pid, "late", ()));
    let letter = letters.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(letter, (DeadReason::LateEnded, "late".to_owned()));
    assert!(letters.try_recv().is_err());
}

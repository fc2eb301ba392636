//! A step whose thread sleeps, by the system's word, under a clock that stands still until it is
//! set.

use super::Hands;
use crate::Scheduler;
use crate::blocking::monitor::Monitor;
use crate::noop_process::NoopProcess;
use crate::policy::LONGEST_LOOK;
use ganger_os::ThreadFiles;
use std::cell::Cell;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// Returns how long a step blocks the only worker until the monitor replaces it. All steps before
/// it were short, it begins `phase` after a look, and a process waits.
fn noticed_after(phase: Duration) -> Duration {
    let scheduler = Scheduler::builder()
        .workers(1)
        .max_spares(1)
        .build()
        .unwrap();
    let shared = &scheduler.shared;
    let mut deques = shared.start.take_deques().unwrap();
    let spare = deques.pop().unwrap();
    shared.worker_slots.set_free([(1, spare)].into_iter());
    let waiting = scheduler.submit(NoopProcess, "main", ()).unwrap();

    let (release, released) = mpsc::channel::<()>();
    let (entered, has_entered) = mpsc::channel();
    let worker = {
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            shared.worker_slots.enter(0);
            shared.worker_slots.set_looking(0, false);
            entered.send(()).unwrap();
            // The wait ends with the disconnection.
            let _released = released.recv();
            shared.worker_slots.exit(0);
        })
    };
    has_entered.recv().unwrap();
    let mut files = ThreadFiles::default();
    while files.is_asleep(shared.worker_slots.thread(0).unwrap()) != Some(true) {
        thread::yield_now();
    }

    let now = Cell::new(Duration::from_secs(1));
    let mut monitor = Monitor::new(shared, Hands(&now));
    let turns = &shared.counters.of(Some(0)).turns;
    let mut last_look = now.get();
    while monitor.interval < LONGEST_LOOK {
        turns.bump();
        monitor.look();
        assert!(!shared.worker_slots.is_replaced(0), "its steps were short");
        last_look = now.get();
        now.set(last_look + monitor.interval);
    }
    let begun = last_look + phase;
    turns.bump();
    loop {
        monitor.look();
        if shared.worker_slots.is_replaced(0) {
            break;
        }
        assert!(now.get() < begun + Duration::from_secs(1), "not noticed");
        now.set(now.get() + monitor.interval);
    }
    drop(release);
    worker.join().unwrap();
    assert!(waiting.wait().is_done());
    now.get() - begun
}

/// Tries ten places of the step between two looks.
// pins: G6
#[test]
fn a_step_that_blocks_is_noticed_within_the_time_that_is_promised() {
    const PROMISED: Duration = Duration::from_micros(4_500);
    for tenth in 0..10 {
        let phase = LONGEST_LOOK * tenth / 10;
        let noticed = noticed_after(phase);
        assert!(noticed <= PROMISED, "{noticed:?}, {phase:?} after a look");
        assert!(noticed >= Duration::from_millis(1), "that is no long step");
    }
}

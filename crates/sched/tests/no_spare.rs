//! The warning that no spare is left to take a worker's place, and a subscriber waiting for a
//! step's resource.
#![cfg(not(ganger_loom))]

#[path = "it/support/mod.rs"]
mod support;

use ganger_sched::Scheduler;
use std::fs;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use support::on_event::{on_event, text_of};
use support::{PATIENCE, exit_number, process};
use tracing::Level;

type Act = Box<dyn FnOnce() + Send>;

/// Keeps a scheduler's only worker in a step until the subscriber has done its act, with a process
/// queued behind it.
fn while_a_step_keeps_the_only_worker(
    act: Arc<Mutex<Option<Act>>>,
    with: impl FnOnce(&Scheduler, Sender<()>) -> Act,
) {
    let builder = Scheduler::builder().workers(1).max_spares(0);
    // The warning comes as often as the monitor sees the cause.
    let builder = builder.report_interval(Duration::ZERO).thread_name("t");
    let scheduler = builder.build().unwrap();
    let (release, released) = channel();
    *act.lock().unwrap() = Some(with(&scheduler, release));
    scheduler.start().unwrap();
    let keeps = process(move |_, _, out| {
        released.recv_timeout(PATIENCE)?;
        out.done(1);
        Ok(())
    });
    let keeps = scheduler.submit(keeps, "keeps", ()).unwrap();
    let waits = process(|_, _, out| {
        out.done(2);
        Ok(())
    });
    // A quick subscriber may have stopped the scheduler already.
    let waits = scheduler.submit(waits, "waits", ()).ok();
    assert_eq!(exit_number(keeps), 1);
    drop(waits);
    drop(scheduler);
}

/// Returns the number of threads that write warnings, where the system tells.
fn threads_that_warn() -> Option<usize> {
    let threads = fs::read_dir("/proc/self/task").ok()?;
    let names =
        threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    Some(
        names
            .filter(|name| name.trim_end().ends_with("-warning"))
            .count(),
    )
}

// pins: G6, D3
#[test]
fn is_said_on_a_thread_of_its_own() {
    let act = Arc::<Mutex<Option<Act>>>::default();
    let taken = Arc::clone(&act);
    let subscriber = on_event(Level::WARN, move |event| {
        if text_of(event).contains("max_spares=0")
            && let Some(act) = taken.lock().unwrap().take()
        {
            act();
        }
    });
    tracing::subscriber::set_global_default(subscriber).unwrap();

    // The subscriber stops the scheduler. A stop that waited for its own thread would not end in an
    // hour.
    let (tell, told) = channel();
    while_a_step_keeps_the_only_worker(Arc::clone(&act), |scheduler, release| {
        let handle = scheduler.handle();
        Box::new(move || {
            release.send(()).unwrap();
            tell.send(handle.stop(Duration::from_secs(3_600)).unwrap())
                .unwrap();
        })
    });
    assert!(told.recv_timeout(PATIENCE).unwrap().stuck.is_empty());

    let (tell, told) = channel();
    while_a_step_keeps_the_only_worker(Arc::clone(&act), |scheduler, release| {
        let handle = scheduler.handle();
        Box::new(move || {
            let name = thread::current().name().map(str::to_owned);
            // The monitor sees it again meanwhile, and says nothing.
            thread::sleep(Duration::from_millis(50));
            assert!(threads_that_warn().is_none_or(|threads| threads == 1));
            tell.send((name, handle.stats().live)).unwrap();
            release.send(()).unwrap();
        })
    });
    let (name, live) = told.recv_timeout(PATIENCE).unwrap();
    assert_eq!(live, 2);
    assert!(name.unwrap().ends_with("-warning"));
    assert!(act.lock().unwrap().is_none());
}

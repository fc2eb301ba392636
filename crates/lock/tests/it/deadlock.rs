//! Reports of deadlocks.

use ganger_lock::{DeadlockKind, DeadlockReport, DeadlockWatch, Mutex, Notify, Party};
use ganger_sched::{ProcessHandle, Scheduler};
use ganger_task::{Cx, SpawnTask};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

fn watched() -> (Scheduler, ganger_lock::Watch, Receiver<DeadlockReport>) {
    let scheduler = Scheduler::builder().workers(2).build().unwrap();
    scheduler.start().unwrap();
    let (sender, receiver) = channel();
    let watch = DeadlockWatch::new(Duration::from_millis(20)).on_report(move |report| {
        let _gone = sender.send(report.clone());
    });
    let watch = watch.start(&scheduler.handle()).unwrap();
    (scheduler, watch, receiver)
}

/// The next report of that kind that is about these.
fn next(
    reports: &Receiver<DeadlockReport>,
    kind: DeadlockKind,
    of: &[&ProcessHandle],
) -> DeadlockReport {
    let of: HashSet<_> = of.iter().map(|it| Party::Process(it.pid())).collect();
    loop {
        let report = reports
            .recv_timeout(Duration::from_secs(60))
            .expect("there is a report");
        let parties: HashSet<_> = report.waits.iter().map(|it| it.party).collect();
        if report.kind == kind && parties == of {
            return report;
        }
    }
}

/// Two tasks that take two locks, the other way round.
fn embrace(scheduler: &Scheduler) -> [ProcessHandle; 2] {
    let locks = Arc::new([Mutex::new(()), Mutex::new(())]);
    let meet = Arc::new(ganger_lock::Barrier::new(2));
    [0, 1].map(|own| {
        let (locks, meet) = (Arc::clone(&locks), Arc::clone(&meet));
        let body = async move |cx: Cx| {
            let _first = locks[own].lock().await.map_err(|it| it.to_string())?;
            meet.wait().await;
            let second = cx.until_cancelled(locks[1 - own].lock()).await?;
            drop(second);
            Ok(())
        };
        scheduler.spawn_task(body).unwrap()
    })
}

// pins: K9
#[test]
fn a_cycle_is_named_while_others_go_on() {
    let (scheduler, _watch, reports) = watched();
    let busy = scheduler.spawn_task(async |cx: Cx| {
        while !cx.is_cancelled() {
            cx.yield_now().await;
        }
        Ok(())
    });
    let [one, other] = embrace(&scheduler);
    let report = next(&reports, DeadlockKind::Cycle, &[&one, &other]);
    let text = report.to_string();
    let line = format!("{} waits for the mutex", one.pid());
    assert!(text.contains(&line), "{text}");
    assert!(
        text.contains(&format!("which {} has", other.pid())),
        "{text}"
    );
    // One of them gives up, and the other one goes on.
    scheduler.cancel(one.pid(), "a deadlock").unwrap();
    drop(one.wait());
    assert!(other.wait().is_done());
    let busy = busy.unwrap();
    scheduler.cancel(busy.pid(), "enough").unwrap();
    drop(busy.wait());
}

// pins: K9
#[test]
fn all_asleep_is_reported_with_what_they_wait_for() {
    let (scheduler, _watch, reports) = watched();
    let notify = Arc::new(Notify::new());
    let own = Arc::clone(&notify);
    let sleeper = scheduler.spawn_task(async move |_: Cx| {
        own.notified().await;
        Ok(())
    });
    let sleeper: ProcessHandle = sleeper.unwrap();
    let report = next(&reports, DeadlockKind::AllAsleep, &[&sleeper]);
    assert!(
        report.to_string().contains("waits for the notify"),
        "{report}"
    );
    notify.notify_one();
    assert!(sleeper.wait().is_done());
}

// pins: K9
#[test]
fn a_wait_for_a_thread_is_no_deadlock() {
    let (scheduler, watch, reports) = watched();
    let mutex = Arc::new(Mutex::new(()));
    let guard = mutex.lock_blocking().unwrap();
    let own = Arc::clone(&mutex);
    let waiter = scheduler.spawn_task(async move |_: Cx| {
        drop(own.lock().await);
        Ok(())
    });
    let waiter = waiter.unwrap();
    let of_waiter = |report: &DeadlockReport| {
        let mut waits = report.waits.iter();
        waits.any(|it| it.party == Party::Process(waiter.pid()))
    };
    // Long enough for several looks.
    let found = std::iter::from_fn(|| reports.recv_timeout(Duration::from_millis(200)).ok());
    assert_eq!(found.filter(of_waiter).count(), 0);
    drop(guard);
    assert!(waiter.wait().is_done());
    drop(watch);
    assert!(reports.recv().is_err(), "its thread has ended");
}

//! Reports of deadlocks.

use ganger_lock::{
    CancellationToken, DeadlockKind, DeadlockReport, DeadlockWatch, Mutex, Notify, Party, RwLock,
    Until,
};
use ganger_proc_api::{Actor, Completion, Context, Pid, Reply, StepOutput, StepResult};
use ganger_sched::{Address, ProcessHandle, Scheduler};
use ganger_task::{Cx, SpawnTask};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

fn watched() -> (Scheduler, ganger_lock::Watch, Receiver<DeadlockReport>) {
    // A host of its own: all tests of this program watch each other's processes.
    static HOSTS: AtomicUsize = AtomicUsize::new(0);
    // Ordering: Relaxed, because only the number counts.
    let host = format!("watched-{}", HOSTS.fetch_add(1, Ordering::Relaxed));
    let scheduler = Scheduler::builder().host(host).workers(2).build().unwrap();
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
    let of: Vec<_> = of.iter().map(|it| Party::Process(it.pid())).collect();
    next_of(reports, kind, &of)
}

/// The next report of that kind that is about these parties.
fn next_of(reports: &Receiver<DeadlockReport>, kind: DeadlockKind, of: &[Party]) -> DeadlockReport {
    let of: HashSet<_> = of.iter().copied().collect();
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

enum Say {
    /// Asks that one.
    Ask(Address<Say>),
    /// Is asked, and answers when it can.
    Answer(Reply<()>),
}

/// Answers when it has its own answer, or that lock.
#[derive(Default)]
struct Answers {
    lock: Option<Arc<Mutex<()>>>,
    replies: Vec<Reply<()>>,
}

impl Actor for Answers {
    type Message = Say;

    fn receive(&mut self, _: &Context, message: Say, out: &mut StepOutput) -> StepResult {
        match message {
            Say::Ask(other) => drop(out.ask(other.call(Say::Answer), 1)),
            Say::Answer(reply) => {
                self.replies.push(reply);
                if let Some(lock) = self.lock.clone() {
                    let locked = async move { drop(lock.lock().await) };
                    out.ask(Until::new(locked), 2);
                }
            }
        }
        Ok(())
    }

    fn completed(&mut self, _: &Context, _: Completion, _: &mut StepOutput) -> StepResult {
        self.replies.drain(..).for_each(|it| it.complete(()));
        Ok(())
    }
}

fn waits_for_answer(asker: Pid, of: Pid) -> String {
    format!("{asker} waits for the answer of {of}")
}

// pins: K9
#[test]
fn processes_that_ask_each_other_are_a_cycle() {
    let (scheduler, _watch, reports) = watched();
    let [one, other] = [(); 2].map(|()| scheduler.spawn_actor(Answers::default()).unwrap());
    one.send(Say::Ask(other.address().clone())).unwrap();
    other.send(Say::Ask(one.address().clone())).unwrap();
    let of = [one.pid(), other.pid()].map(Party::Process);
    let report = next_of(&reports, DeadlockKind::Cycle, &of);
    let text = report.to_string();
    for line in [
        waits_for_answer(one.pid(), other.pid()),
        waits_for_answer(other.pid(), one.pid()),
    ] {
        assert!(text.contains(&line), "{text}");
    }
}

// pins: K9
#[test]
fn a_cycle_goes_through_locks_calls_and_threads() {
    let (scheduler, _watch, reports) = watched();
    let lock = Arc::new(Mutex::new(()));
    let answers = Answers {
        lock: Some(Arc::clone(&lock)),
        ..Answers::default()
    };
    let answers = scheduler.spawn_actor(answers).unwrap();
    // A task has the lock, and asks one that waits for it.
    let (own, address) = (Arc::clone(&lock), answers.address().clone());
    let asks = scheduler.spawn_task(async move |cx: Cx| {
        let _guard = own.lock().await.map_err(|it| it.to_string())?;
        cx.until_cancelled(cx.ask(address.call(Say::Answer)))
            .await??;
        Ok(())
    });
    let asks: ProcessHandle = asks.unwrap();
    let of = [asks.pid(), answers.pid()].map(Party::Process);
    let report = next_of(&reports, DeadlockKind::Cycle, &of);
    let text = report.to_string();
    assert!(
        text.contains(&waits_for_answer(asks.pid(), answers.pid())),
        "{text}"
    );
    scheduler.cancel(asks.pid(), "a deadlock").unwrap();
    drop(asks.wait());
    // So does a thread.
    let (own, address) = (Arc::clone(&lock), answers.address().clone());
    let thread = std::thread::spawn(move || {
        let _guard = own.lock_blocking().unwrap();
        address.call(Say::Answer).wait()
    });
    let of = [
        Party::Thread(thread.thread().id()),
        Party::Process(answers.pid()),
    ];
    next_of(&reports, DeadlockKind::Cycle, &of);
    scheduler.terminate(answers.pid()).unwrap();
    assert!(thread.join().unwrap().is_err());
}

// pins: K9
#[test]
fn a_cycle_is_found_behind_a_reader_that_is_in_none() {
    let (scheduler, _watch, reports) = watched();
    let (lock, mutex) = (Arc::new(RwLock::new(())), Arc::new(Mutex::new(())));
    let begun = Arc::new(ganger_lock::Barrier::new(3));
    let never = Arc::new(Notify::new());
    let (own, meet, word) = (Arc::clone(&lock), Arc::clone(&begun), Arc::clone(&never));
    let innocent = scheduler.spawn_task(async move |_: Cx| {
        let _read = own.read().await;
        meet.wait().await;
        word.notified().await;
        Ok(())
    });
    let (own, its, meet) = (Arc::clone(&lock), Arc::clone(&mutex), Arc::clone(&begun));
    let reader = scheduler.spawn_task(async move |cx: Cx| {
        let _read = own.read().await;
        meet.wait().await;
        drop(cx.until_cancelled(its.lock()).await?);
        Ok(())
    });
    let writer = scheduler.spawn_task(async move |_: Cx| {
        let _guard = mutex.lock().await;
        begun.wait().await;
        drop(lock.write().await);
        Ok(())
    });
    let (innocent, reader, writer) = (innocent.unwrap(), reader.unwrap(), writer.unwrap());
    next(&reports, DeadlockKind::Cycle, &[&reader, &writer]);
    scheduler.cancel(reader.pid(), "a deadlock").unwrap();
    drop(reader.wait());
    never.notify_one();
    assert!(innocent.wait().is_done() && writer.wait().is_done());
}

// pins: K9
#[test]
fn one_that_waits_to_be_told_to_stop_is_no_deadlock() {
    let (scheduler, watch, reports) = watched();
    let stop = CancellationToken::new();
    let own = stop.clone();
    let server = scheduler.spawn_task(async move |_: Cx| {
        own.cancelled().await;
        Ok(())
    });
    let server: ProcessHandle = server.unwrap();
    let of_server = |report: &DeadlockReport| {
        let mut waits = report.waits.iter();
        waits.any(|it| it.party == Party::Process(server.pid()))
    };
    // Long enough for several looks.
    let found = std::iter::from_fn(|| reports.recv_timeout(Duration::from_millis(200)).ok());
    assert_eq!(found.filter(of_server).count(), 0);
    stop.cancel("over");
    assert!(server.wait().is_done());
    drop(watch);
}

//! Reports of deadlocks.

use ganger_lock::{
    CancellationToken, DeadlockKind, DeadlockReport, DeadlockWatch, Mutex, Notify, Party, RwLock,
    Semaphore, Until,
};
use ganger_proc_api::{
    Actor, Completion, Context, Event, Pid, Process, Reply, StepOutput, StepResult, process_fn,
};
use ganger_sched::{Address, Builder, Driver, ProcessHandle, Scheduler};
use ganger_task::Cx;
use std::collections::HashSet;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar};
use std::thread::ThreadId;
use std::time::Duration;

pub(crate) type Watched = (Scheduler, ganger_lock::Watch, Receiver<DeadlockReport>);

pub(crate) fn watched() -> Watched {
    watched_with(|it| it)
}

fn watched_with(set: impl FnOnce(Builder) -> Builder) -> Watched {
    // A host of its own: all tests of this program watch each other's processes.
    static HOSTS: AtomicUsize = AtomicUsize::new(0);
    // Ordering: Relaxed, because only the number counts.
    let host = format!("watched-{}", HOSTS.fetch_add(1, Ordering::Relaxed));
    let builder = set(Scheduler::builder().host(host).workers(2));
    let scheduler = builder.build().unwrap();
    scheduler.start().unwrap();
    let (sender, receiver) = channel();
    let watch = DeadlockWatch::new(Duration::from_millis(20)).on_report(move |report| {
        let _gone = sender.send(report.clone());
    });
    let watch = watch.start(&scheduler.handle()).unwrap();
    (scheduler, watch, receiver)
}

/// Returns the next report of `kind` about these processes.
pub(crate) fn next(
    reports: &Receiver<DeadlockReport>,
    kind: DeadlockKind,
    of: &[&ProcessHandle],
) -> DeadlockReport {
    let of: Vec<_> = of.iter().map(|it| Ok(it.pid())).collect();
    next_of(reports, kind, &of)
}

/// A process or a thread.
type Who = Result<Pid, ThreadId>;

fn who(party: Party) -> Who {
    match party {
        Party::Process(pid, _) => Ok(pid),
        Party::Thread(id) => Err(id),
    }
}

/// Returns the next report of `kind` about these parties.
fn next_of(reports: &Receiver<DeadlockReport>, kind: DeadlockKind, of: &[Who]) -> DeadlockReport {
    let of: HashSet<_> = of.iter().copied().collect();
    loop {
        let report = reports
            .recv_timeout(Duration::from_secs(60))
            .expect("there is a report");
        let parties: HashSet<_> = report.waits.iter().map(|it| who(it.party)).collect();
        if report.kind == kind && parties == of {
            return report;
        }
    }
}

/// Asserts that no report has a wait of `process`, for the time of several looks.
fn none_is_about(reports: &Receiver<DeadlockReport>, process: Pid) {
    let is_about = |it: &DeadlockReport| {
        let mut waits = it.waits.iter();
        waits.any(|it| who(it.party) == Ok(process))
    };
    let found = std::iter::from_fn(|| reports.recv_timeout(Duration::from_millis(200)).ok());
    assert_eq!(found.filter(is_about).count(), 0);
}

/// Formats the waits of a report, with PIDs alone.
pub(crate) fn plain(report: &DeadlockReport) -> String {
    let waits = report.waits.iter().map(ToString::to_string);
    waits.collect::<Vec<_>>().join("\n")
}

/// Starts two tasks that take two locks in opposite orders.
fn embrace(scheduler: &Scheduler) -> [ProcessHandle; 2] {
    embrace_with(scheduler, &Arc::default())
}

fn embrace_with(scheduler: &Scheduler, locks: &Arc<[Mutex<()>; 2]>) -> [ProcessHandle; 2] {
    let meet = Arc::new(ganger_lock::Barrier::new(2));
    [0, 1].map(|own| {
        let (locks, meet) = (Arc::clone(locks), Arc::clone(&meet));
        let body = async move |cx: Cx| {
            let _first = locks[own].lock().await.map_err(|it| it.to_string())?;
            meet.wait().await;
            let second = cx.until_cancelled(locks[1 - own].lock()).await?;
            drop(second);
            Ok(())
        };
        scheduler.spawn(body).unwrap()
    })
}

// pins: K9
#[test]
fn a_cycle_is_named_while_others_go_on() {
    let (scheduler, _watch, reports) = watched();
    let busy = scheduler.spawn(async |cx: Cx| {
        while !cx.is_cancelled() {
            cx.yield_now().await;
        }
        Ok(())
    });
    let [one, other] = embrace(&scheduler);
    let report = next(&reports, DeadlockKind::Cycle, &[&one, &other]);
    let text = plain(&report);
    let line = format!("{} waits for the mutex", one.pid());
    assert!(text.contains(&line), "{text}");
    assert!(
        text.contains(&format!("which {} has", other.pid())),
        "{text}"
    );
    // A task gives up, and the other task goes on.
    scheduler.cancel(one.pid(), "a deadlock").unwrap();
    drop(one.wait());
    assert!(other.wait().is_done());
    let busy = busy.unwrap();
    scheduler.cancel(busy.pid(), "enough").unwrap();
    drop(busy.wait());
}

/// Has the lock, or waits for it, until it is cancelled.
fn wants(lock: &Arc<Mutex<()>>) -> impl Process {
    let mut wanted = Some(Arc::clone(lock));
    let mut guard = None;
    process_fn(move |_, events, out| {
        if let Some(lock) = wanted.take() {
            out.ask(Until::new(lock.lock_owned()), 1);
        }
        for event in events {
            if let Event::Completion(taken) = event {
                guard = Some(taken);
            }
        }
        let _ = &guard;
        Ok(())
    })
}

/// Has a process lock, and another process wait, in each of two schedulers. The waiter of the first
/// scheduler has the PID of the owner in the second.
// pins: K9, P17
#[test]
fn processes_of_two_schedulers_with_one_host_name_are_not_taken_for_each_other() {
    let [one, other] = [(); 2].map(|()| {
        let builder = Scheduler::builder().host("twins").workers(1);
        let scheduler = builder.build().unwrap();
        scheduler.start().unwrap();
        scheduler
    });
    let (sender, reports) = channel();
    let watch = DeadlockWatch::new(Duration::from_millis(20)).on_report(move |report| {
        let _gone = sender.send(report.clone());
    });
    let _watch = watch.start(&one.handle()).unwrap();
    let [first, second] = [1, 2].map(|id| Pid::new(one.host_name(), id));
    let is_asleep = |scheduler: &Scheduler, pid| loop {
        let state = scheduler.process(pid).unwrap().state;
        if state == ganger_sched::ProcessState::Blocked {
            return;
        }
        std::thread::yield_now();
    };
    let cross = [(&other, first, second), (&one, second, first)];
    for (scheduler, owner, waiter) in cross {
        let lock = Arc::new(Mutex::new(()));
        drop(scheduler.submit_as(owner, wants(&lock), "main", ()));
        while lock.try_lock().is_ok() {
            std::thread::yield_now();
        }
        drop(scheduler.submit_as(waiter, wants(&lock), "main", ()));
        is_asleep(scheduler, waiter);
    }
    // Cycles are looked for before.
    let is_about = |it: &DeadlockReport| {
        let mut parties = it.waits.iter().map(|it| who(it.party));
        parties.any(|it| it == Ok(first))
    };
    let mut own = reports.iter().filter(is_about);
    let report = own.next().unwrap();
    assert_eq!(report.kind, DeadlockKind::AllAsleep, "{report}");
    assert_eq!(report.waits.len(), 1, "{report}");
}

// pins: K9
#[test]
fn a_cycle_is_told_once_also_where_others_wait_behind_it() {
    let (scheduler, watch, reports) = watched();
    let locks = Arc::new([Mutex::new(()), Mutex::new(())]);
    let [one, other] = embrace_with(&scheduler, &locks);
    let own = Arc::clone(&locks);
    let behind = scheduler.spawn(async move |_: Cx| {
        drop(own[0].lock().await);
        Ok(())
    });
    let behind: ProcessHandle = behind.unwrap();
    next(&reports, DeadlockKind::Cycle, &[&one, &other]);
    none_is_about(&reports, one.pid());
    scheduler.cancel(one.pid(), "a deadlock").unwrap();
    drop(one.wait());
    assert!(other.wait().is_done() && behind.wait().is_done());
    drop(watch);
}

// pins: K9
#[test]
fn a_report_has_the_names_of_processes_and_otherwise_their_types() {
    let (scheduler, _watch, reports) = watched();
    let [one, other] = [(); 2].map(|()| scheduler.spawn(Answers::default()).unwrap());
    scheduler.register_name("teller", one.pid()).unwrap();
    one.send(Say::Ask(other.address().clone())).unwrap();
    other.send(Say::Ask(one.address().clone())).unwrap();
    let of = [one.pid(), other.pid()].map(Ok);
    let text = next_of(&reports, DeadlockKind::Cycle, &of).to_string();
    let names = [
        format!("{} \"teller\"", one.pid()),
        format!("{} ({})", other.pid(), std::any::type_name::<Answers>()),
    ];
    let line = |asker: usize| {
        let of = &names[1 - asker];
        format!("\n  {} waits for the answer of {of}", names[asker])
    };
    assert!(text.contains(&line(0)) && text.contains(&line(1)), "{text}");
}

// pins: K9
#[test]
fn permits_of_one_owner_are_part_of_a_cycle() {
    let (scheduler, _watch, reports) = watched();
    let (permits, mutex) = (Arc::new(Semaphore::new(2)), Arc::new(Mutex::new(())));
    let meet = Arc::new(ganger_lock::Barrier::new(2));
    let (its, own, met) = (Arc::clone(&permits), Arc::clone(&mutex), Arc::clone(&meet));
    let one = scheduler.spawn(async move |cx: Cx| {
        let _permits = its.acquire(2).await?;
        met.wait().await;
        drop(cx.until_cancelled(own.lock()).await?);
        Ok(())
    });
    let other = scheduler.spawn(async move |_: Cx| {
        let _guard = mutex.lock().await;
        meet.wait().await;
        drop(permits.acquire(1).await?);
        Ok(())
    });
    let (one, other) = (one.unwrap(), other.unwrap());
    let report = next(&reports, DeadlockKind::Cycle, &[&one, &other]);
    let text = plain(&report);
    assert!(text.contains("waits for the semaphore 0x"), "{text}");
    scheduler.cancel(one.pid(), "a deadlock").unwrap();
    drop(one.wait());
    assert!(other.wait().is_done());
}

// pins: K9
#[test]
fn permits_that_went_back_have_no_owner() {
    let (scheduler, watch, reports) = watched();
    let permits = Arc::new(Semaphore::new(1));
    // This thread has had it: it is in the way of a report while it has it.
    drop(permits.acquire_blocking(1).unwrap());
    Arc::clone(&permits).try_acquire_owned(1).unwrap().forget();
    let own = Arc::clone(&permits);
    let waiter = scheduler.spawn(async move |_: Cx| {
        drop(own.acquire(1).await?);
        Ok(())
    });
    let waiter: ProcessHandle = waiter.unwrap();
    let report = next(&reports, DeadlockKind::AllAsleep, &[&waiter]);
    assert!(report.waits[0].owners.is_empty(), "{report}");
    permits.add_permits(1);
    assert!(waiter.wait().is_done());
    drop(watch);
}

// pins: K9
#[test]
fn all_asleep_is_reported_with_what_they_wait_for() {
    let (scheduler, _watch, reports) = watched();
    let notify = Arc::new(Notify::new());
    let own = Arc::clone(&notify);
    let sleeper = scheduler.spawn(async move |_: Cx| {
        own.notified().await;
        Ok(())
    });
    let sleeper: ProcessHandle = sleeper.unwrap();
    let report = next(&reports, DeadlockKind::AllAsleep, &[&sleeper]);
    assert!(plain(&report).contains("waits for the notify"), "{report}");
    notify.notify_one();
    assert!(sleeper.wait().is_done());
}

/// A driver in which nothing becomes ready. Processes wait for it, or not.
struct Quiet {
    is_awaited: Arc<AtomicBool>,
    parker: (std::sync::Mutex<bool>, Condvar),
}

impl Driver for Quiet {
    fn wait(&self, timeout: Option<Duration>) {
        let (is_over, changed) = &self.parker;
        let timeout = timeout.unwrap_or(Duration::from_secs(60));
        let waited = changed.wait_timeout_while(is_over.lock().unwrap(), timeout, |it| !*it);
        *waited.unwrap().0 = false;
    }

    fn interrupt(&self) {
        *self.parker.0.lock().unwrap() = true;
        self.parker.1.notify_all();
    }

    fn is_awaited(&self) -> bool {
        // Ordering: Relaxed, because nothing goes with it.
        self.is_awaited.load(Ordering::Relaxed)
    }
}

// pins: K9
#[test]
fn a_wait_for_what_comes_by_the_driver_is_no_deadlock() {
    let is_awaited = Arc::new(AtomicBool::new(true));
    let quiet = Quiet {
        is_awaited: Arc::clone(&is_awaited),
        parker: Default::default(),
    };
    let (scheduler, _watch, reports) = watched_with(|it| it.driver(quiet));
    let notify = Arc::new(Notify::new());
    let own = Arc::clone(&notify);
    let sleeper = scheduler.spawn(async move |_: Cx| {
        own.notified().await;
        Ok(())
    });
    let sleeper: ProcessHandle = sleeper.unwrap();
    none_is_about(&reports, sleeper.pid());
    // Ordering: Relaxed, because nothing goes with it.
    is_awaited.store(false, Ordering::Relaxed);
    next(&reports, DeadlockKind::AllAsleep, &[&sleeper]);
    notify.notify_one();
    assert!(sleeper.wait().is_done());
}

/// Starts this test program again: the report ends the second program.
// pins: K9
#[test]
fn a_report_ends_the_program_where_that_is_wanted() {
    const ENDS: &str = "GANGER_TEST_ENDS_BY_A_DEADLOCK";
    if std::env::var_os(ENDS).is_some() {
        let scheduler = Scheduler::start_default().unwrap();
        let watch = DeadlockWatch::new(Duration::from_millis(20)).end_program();
        let _watch = watch.start(&scheduler.handle()).unwrap();
        let [one, other] = embrace(&scheduler);
        drop((one.wait(), other.wait()));
        return;
    }
    let name = "deadlock::a_report_ends_the_program_where_that_is_wanted";
    let ended = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(ENDS, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{text}");
    assert!(
        text.contains("deadlock: these wait for each other\n"),
        "{text}"
    );
}

// pins: K9
#[test]
fn a_wait_for_a_thread_is_no_deadlock() {
    let (scheduler, watch, reports) = watched();
    let mutex = Arc::new(Mutex::new(()));
    let guard = mutex.lock_blocking().unwrap();
    let own = Arc::clone(&mutex);
    let waiter = scheduler.spawn(async move |_: Cx| {
        drop(own.lock().await);
        Ok(())
    });
    let waiter = waiter.unwrap();
    none_is_about(&reports, waiter.pid());
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

/// Answers when it has its own answer, or `lock`.
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
    let [one, other] = [(); 2].map(|()| scheduler.spawn(Answers::default()).unwrap());
    one.send(Say::Ask(other.address().clone())).unwrap();
    other.send(Say::Ask(one.address().clone())).unwrap();
    let of = [one.pid(), other.pid()].map(Ok);
    let report = next_of(&reports, DeadlockKind::Cycle, &of);
    let text = plain(&report);
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
    let answers = scheduler.spawn(answers).unwrap();
    // A task has the lock, and asks a process, which waits for the lock.
    let (own, address) = (Arc::clone(&lock), answers.address().clone());
    let asks = scheduler.spawn(async move |cx: Cx| {
        let _guard = own.lock().await.map_err(|it| it.to_string())?;
        cx.until_cancelled(cx.ask(address.call(Say::Answer)))
            .await??;
        Ok(())
    });
    let asks: ProcessHandle = asks.unwrap();
    let of = [asks.pid(), answers.pid()].map(Ok);
    let report = next_of(&reports, DeadlockKind::Cycle, &of);
    let text = plain(&report);
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
    let of = [Err(thread.thread().id()), Ok(answers.pid())];
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
    let innocent = scheduler.spawn(async move |_: Cx| {
        let _read = own.read().await;
        meet.wait().await;
        word.notified().await;
        Ok(())
    });
    let (own, its, meet) = (Arc::clone(&lock), Arc::clone(&mutex), Arc::clone(&begun));
    let reader = scheduler.spawn(async move |cx: Cx| {
        let _read = own.read().await;
        meet.wait().await;
        drop(cx.until_cancelled(its.lock()).await?);
        Ok(())
    });
    let writer = scheduler.spawn(async move |_: Cx| {
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
    let server = scheduler.spawn(async move |_: Cx| {
        own.cancelled().await;
        Ok(())
    });
    let server: ProcessHandle = server.unwrap();
    none_is_about(&reports, server.pid());
    stop.cancel("over");
    assert!(server.wait().is_done());
    drop(watch);
}

//! The threads that fire timers, and their times.

use crate::support::{PATIENCE, exit, exit_number, process, until, until_state};
use ganger_proc_api::{Command, CommandId, Envelope, Event, ExitReason, Payload, process_fn};
use ganger_sched::{Instant, ProcessState, Scheduler, Timers};
use ganger_time::internal::{NotSet, OnTime};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{TryRecvError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

type Call = Box<dyn FnOnce(Instant) + Send>;

/// Calls at moments, with the time of each call.
struct Calls {
    timers: Timers,
    /// The number of calls to come.
    pending: Arc<AtomicUsize>,
}

/// A single call.
struct Once {
    timers: Timers,
    at: Instant,
    call: Mutex<Option<Call>>,
    pending: Arc<AtomicUsize>,
}

impl OnTime for Once {
    fn fire(self: Arc<Self>) {
        let now = self.timers.now();
        assert!(now >= self.at, "called too early");
        self.pending.fetch_sub(1, Ordering::SeqCst);
        let call = self.call.lock().unwrap().take();
        call.unwrap()(now);
    }
}

impl Calls {
    fn of(scheduler: &Scheduler) -> Arc<Self> {
        Arc::new(Self {
            timers: scheduler.timers().clone(),
            pending: Arc::default(),
        })
    }

    fn at(&self, at: Instant, call: impl FnOnce(Instant) + Send + 'static) {
        self.pending.fetch_add(1, Ordering::SeqCst);
        let once = Arc::new(Once {
            timers: self.timers.clone(),
            at,
            call: Mutex::new(Some(Box::new(call))),
            pending: Arc::clone(&self.pending),
        });
        let mut at = at;
        // A thread of the scheduler makes the call, also when it is due by now.
        while let Err(NotSet::Due) = self.timers.call_at(at, once.clone()) {
            at = self.timers.now().after(Duration::from_micros(10));
        }
    }

    fn after(&self, time: Duration, call: impl FnOnce(Instant) + Send + 'static) {
        self.at(self.timers.now().after(time), call);
    }
}

fn start(workers: usize) -> (Scheduler, Arc<Calls>) {
    let builder = Scheduler::builder().workers(workers);
    #[cfg(feature = "check")]
    let builder = builder.check_promises();
    let scheduler = builder.start().unwrap();
    let calls = Calls::of(&scheduler);
    (scheduler, calls)
}

fn sleeping(scheduler: &Scheduler) -> impl Fn() -> bool {
    let scheduler = scheduler.handle();
    move || {
        let workers = scheduler.dump().workers;
        workers.iter().all(|worker| worker.running.is_none())
    }
}

// pins: T1
#[test]
fn an_idle_scheduler_calls_at_the_moment_and_not_before() {
    for workers in [1, 2] {
        let (scheduler, calls) = start(workers);
        let (sender, receiver) = channel();
        // The later moment first: the second makes a sleeping thread wake earlier.
        for millis in [40, 10, 25] {
            until("all sleep", sleeping(&scheduler));
            let sender = sender.clone();
            let due = calls.timers.now().after(Duration::from_millis(millis));
            calls.at(due, move |now| sender.send((millis, now >= due)).unwrap());
        }
        let order: Vec<_> = (0..3)
            .map(|_| receiver.recv_timeout(PATIENCE).unwrap())
            .collect();
        assert_eq!(order, [(10, true), (25, true), (40, true)]);
    }
}

/// Sets a call up from inside a step, for a waiting process.
// pins: T1
#[test]
fn a_process_is_woken_by_what_its_step_has_set_up() {
    let (scheduler, calls) = start(2);
    let mut due = None;
    let process = process(move |ctx, _, out| {
        let now = calls.timers.now();
        match due {
            None => {
                let at = now.after(Duration::from_millis(3));
                let waker = ctx.waker();
                due = Some(at);
                calls.at(at, move |_| waker.wake());
            }
            Some(at) => out.done(u64::from(now >= at)),
        }
        Ok(())
    });
    assert_eq!(exit_number(scheduler.spawn(process).unwrap()), 1);
}

/// Keeps each worker inside a step that waits for a call at its own shard.
// pins: T4
#[test]
fn workers_that_are_stuck_in_steps_delay_nothing_at_their_shards() {
    const WORKERS: usize = 2;
    let (scheduler, calls) = start(WORKERS);
    let stuck: Vec<_> = (0..WORKERS)
        .map(|_| {
            let calls = Arc::clone(&calls);
            let stuck = process(move |_, _, out| {
                let (sender, receiver) = channel();
                for millis in [1, 20] {
                    let sender = sender.clone();
                    calls.after(Duration::from_millis(millis), move |_| {
                        sender.send(millis).unwrap();
                    });
                }
                let first: u64 = receiver.recv_timeout(PATIENCE)?;
                out.done(first + receiver.recv_timeout(PATIENCE)?);
                Ok(())
            });
            scheduler.spawn(stuck).unwrap()
        })
        .collect();
    for handle in stuck {
        assert_eq!(exit_number(handle), 21);
    }
}

/// Keeps the only worker in a step, without a spare: processes woken by the monitor's delivery stay
/// there.
// pins: P15
#[test]
fn a_dump_says_how_many_timers_have_woken() {
    let builder = Scheduler::builder().workers(1).max_spares(0);
    let scheduler = builder.start().unwrap();
    let calls = Calls::of(&scheduler);
    let mut steps = 0;
    let woken = process(move |_, _, out| {
        steps += 1;
        if steps == 2 {
            out.done(7_u64);
        }
        Ok(())
    });
    let woken = scheduler.spawn(woken).unwrap();
    until_state(&scheduler, woken.pid(), ProcessState::Idle);
    let (release, is_over) = channel::<()>();
    let (inside, is_inside) = channel();
    let stuck = scheduler.spawn(process(move |_, _, out| {
        inside.send(())?;
        // The step ends with the disconnection.
        let _over = is_over.recv();
        out.done(());
        Ok(())
    }));
    is_inside.recv_timeout(PATIENCE).unwrap();
    assert_eq!(scheduler.dump().arrivals_queue, 0);
    let waker = woken.address().waker();
    calls.after(Duration::ZERO, move |_| waker.wake());
    until("it is in the lane", || scheduler.dump().arrivals_queue == 1);
    let text = scheduler.dump().to_string();
    assert!(text.contains(" 0 urgent, 1 woken by timers\n"), "{text}");
    drop(release);
    assert!(exit(stuck.unwrap()).is_done());
    assert_eq!(exit_number(woken), 7);
}

/// Keeps all workers stuck until a process woken by a call has run. Only the monitor is free for
/// the call, and only a spare for the process.
// pins: T4, G6
#[test]
fn what_is_woken_beside_stuck_workers_runs() {
    let (scheduler, calls) = start(2);
    let (sender, receiver) = channel();
    let woken = scheduler.spawn(process({
        let mut steps = 0;
        move |_, _, out| {
            steps += 1;
            if steps == 2 {
                sender.send(())?;
                sender.send(())?;
                out.done(());
            }
            Ok(())
        }
    }));
    let woken = woken.unwrap();
    until_state(&scheduler, woken.pid(), ProcessState::Idle);
    let receiver = Arc::new(Mutex::new(receiver));
    let is_set = Arc::new(AtomicBool::new(false));
    let stuck: Vec<_> = (0..2)
        .map(|_| {
            let (calls, receiver) = (Arc::clone(&calls), Arc::clone(&receiver));
            let (waker, is_set) = (woken.address().waker(), Arc::clone(&is_set));
            let stuck = process(move |_, _, out| {
                if !is_set.swap(true, Ordering::SeqCst) {
                    let waker = waker.clone();
                    calls.after(Duration::from_millis(30), move |_| waker.wake());
                }
                receiver.lock().unwrap().recv_timeout(PATIENCE)?;
                out.done(());
                Ok(())
            });
            scheduler.spawn(stuck).unwrap()
        })
        .collect();
    for handle in stuck.into_iter().chain([woken]) {
        assert!(exit(handle).is_done());
    }
}

/// Gives the workers only processes without an end.
// pins: T4
#[test]
fn calls_come_beside_processes_that_always_go_on() {
    let (scheduler, calls) = start(2);
    let is_over = Arc::new(AtomicBool::new(false));
    let busy: Vec<_> = (0..4)
        .map(|_| {
            let is_over = Arc::clone(&is_over);
            let busy = process(move |_, _, out| {
                if is_over.load(Ordering::SeqCst) {
                    out.done(());
                } else {
                    out.step_again();
                }
                Ok(())
            });
            scheduler.spawn(busy).unwrap()
        })
        .collect();
    let (sender, receiver) = channel();
    let own = Arc::clone(&calls);
    let inside = sender.clone();
    let arming = scheduler.spawn(process(move |_, _, out| {
        let inside = inside.clone();
        own.after(Duration::from_millis(15), move |_| inside.send(()).unwrap());
        out.done(());
        Ok(())
    }));
    assert!(exit(arming.unwrap()).is_done());
    for millis in [0, 1, 7, 15] {
        let sender = sender.clone();
        calls.after(Duration::from_millis(millis), move |_| {
            sender.send(()).unwrap();
        });
    }
    for _ in 0..5 {
        receiver.recv_timeout(PATIENCE).unwrap();
    }
    is_over.store(true, Ordering::SeqCst);
    for handle in busy {
        assert!(exit(handle).is_done());
    }
}

/// Sets calls from several threads and from steps, so shards, timer waiters and sleepers change all
/// the time.
// pins: T1
#[test]
fn each_of_many_calls_comes_once() {
    const EACH: usize = 500;
    let (scheduler, calls) = start(2);
    let made = Arc::new(AtomicUsize::new(0));
    let set = move |calls: &Calls, nth: usize| {
        let made = Arc::clone(&made);
        let micros = (nth * 7919) % 20_000;
        calls.after(Duration::from_micros(micros as u64), move |_| {
            made.fetch_add(1, Ordering::SeqCst);
        });
        nth
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for nth in 0..EACH {
                    set(&calls, nth);
                    if nth.is_multiple_of(16) {
                        thread::yield_now();
                    }
                }
            });
        }
    });
    let steps: Vec<_> = (0..4)
        .map(|_| {
            let (calls, set) = (Arc::clone(&calls), set.clone());
            let mut nth = 0;
            let steps = process(move |ctx, _, out| {
                nth = set(&calls, nth) + 1;
                let waker = ctx.waker();
                if nth == EACH {
                    out.done(());
                } else if nth.is_multiple_of(50) {
                    calls.after(Duration::from_micros(300), move |_| waker.wake());
                } else {
                    out.step_again();
                }
                Ok(())
            });
            scheduler.spawn(steps).unwrap()
        })
        .collect();
    for handle in steps {
        assert!(exit(handle).is_done());
    }
    drop(set);
    until("all are made", || calls.pending.load(Ordering::SeqCst) == 0);
}

// pins: T1
#[test]
fn a_call_that_panics_is_contained_and_others_come() {
    let (scheduler, calls) = start(1);
    calls.after(Duration::from_millis(1), |_| panic!("on purpose: a call"));
    until("it is counted", || scheduler.stats().total.panics == 1);
    let (sender, receiver) = channel();
    calls.after(Duration::from_millis(2), move |_| sender.send(()).unwrap());
    receiver.recv_timeout(PATIENCE).unwrap();
    assert_eq!(scheduler.stats().total.panics, 1);
}

// pins: T6
#[test]
fn timers_go_when_the_scheduler_has_halted() {
    let (scheduler, calls) = start(2);
    let kept = Arc::new(());
    let held = Arc::clone(&kept);
    calls.after(Duration::from_secs(3600), move |_| drop(held));
    let waits = scheduler.spawn(process(|_, _, _| Ok(()))).unwrap();
    until_state(&scheduler, waits.pid(), ProcessState::Idle);
    scheduler.stop(Duration::ZERO).unwrap();
    assert!(matches!(
        exit(waits),
        ExitReason::Terminated | ExitReason::Cancelled(_)
    ));
    until("the timers are gone", || Arc::strong_count(&kept) == 1);
    let late = calls.timers.now().after(Duration::from_secs(3600));
    let once = Arc::new(Once {
        timers: calls.timers.clone(),
        at: late,
        call: Mutex::default(),
        pending: Arc::default(),
    });
    assert_eq!(
        calls.timers.call_at(late, once).unwrap_err(),
        NotSet::Halted
    );
}

/// Checks that no thread wakes for a timer due in an hour, except for the thread that waits until
/// then.
// pins: T5, G7
#[test]
fn what_is_due_later_wakes_no_thread() {
    let (scheduler, calls) = start(2);
    calls.after(Duration::from_secs(3600), |_| ());
    let sleeps = || scheduler.stats().total.sleeps;
    until("all sleep", sleeping(&scheduler));
    let mut before = sleeps();
    let mut since = std::time::Instant::now();
    until("no worker has woken for a while", || {
        let now = sleeps();
        if now != before {
            (before, since) = (now, std::time::Instant::now());
        }
        since.elapsed() > Duration::from_millis(100)
    });
}

/// Checks the bound of the documentation, next to processes that timers wake again and again.
// pins: G4
#[test]
fn everybody_starts_within_the_bound_beside_arrivals() {
    // `A + 1` times the bound without them, with four others before it.
    const BOUND: u64 = (256 + 1) * (2 + 1) * (4 + 1 + 2);
    let builder = Scheduler::builder().workers(1).max_spares(0);
    let scheduler = builder.rotation(2).global_batch(1).build().unwrap();
    let calls = Calls::of(&scheduler);
    let picks = Arc::new(AtomicU64::new(0));
    let hogs: Vec<_> = [true, true, false, false]
        .into_iter()
        .map(|is_woken| {
            let (picks, calls) = (Arc::clone(&picks), Arc::clone(&calls));
            let hog = process(move |ctx, _, out| {
                // The test ends here even if they starve the other process.
                if picks.fetch_add(1, Ordering::SeqCst) > 4 * BOUND {
                    out.done(0_u64);
                } else if is_woken {
                    let waker = ctx.waker();
                    calls.after(Duration::ZERO, move |_| waker.wake());
                } else {
                    out.step_again();
                }
                Ok(())
            });
            scheduler.submit(hog, "main", ()).unwrap()
        })
        .collect();
    let counter = Arc::clone(&picks);
    let probe = process(move |_, _, out| {
        out.done(counter.load(Ordering::SeqCst));
        Ok(())
    });
    let probe = scheduler.submit(probe, "main", ()).unwrap();
    scheduler.start().unwrap();
    let waited = exit_number(probe);
    assert!((1..=BOUND).contains(&waited), "{waited} picks");
    hogs.into_iter().for_each(|handle| drop(exit(handle)));
    assert!(scheduler.stats().total.arrival_picks > 100);
}

// pins: T6
#[test]
fn a_scheduler_that_was_never_started_drops_its_timers_at_the_stop() {
    let scheduler = Scheduler::builder().build().unwrap();
    let (dropped, is_dropped) = channel::<()>();
    let value = Payload::any((dropped, scheduler.handle()));
    let target = scheduler.spawn(process_fn(|_, _, _| Ok(()))).unwrap();
    let _timer = scheduler.send_after(
        Duration::from_secs(3_600),
        Envelope::new(None, target.pid(), "late", value),
    );
    scheduler.stop(Duration::ZERO).unwrap_err();
    // The sender of the channel went with the envelope.
    assert!(
        is_dropped
            .try_recv()
            .is_err_and(|it| it == TryRecvError::Disconnected)
    );
}

/// Panics when it is dropped, unless the thread panics already.
struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        assert!(thread::panicking(), "on purpose: destructor");
    }
}

// pins: P8
#[test]
fn a_value_that_a_sleep_does_not_expect_may_panic_in_its_destructor() {
    let scheduler = Scheduler::builder().workers(1).start().unwrap();
    let mut has_slept = false;
    let sleeps = process_fn(move |_, events, out| {
        let Some(event) = events.next() else {
            let values = [Payload::from(1_000_000_u64), Payload::any(PanicsOnDrop)];
            out.yield_command(Command::new(CommandId::SLEEP, values), 1);
            return Ok(());
        };
        has_slept |= matches!(event, Event::Completion(_));
        out.done(has_slept);
        Ok(())
    });
    let end = scheduler.spawn(sleeps).unwrap().wait();
    assert_eq!(end.into_result().unwrap().as_bool(), Some(true));
    scheduler.stop(PATIENCE).unwrap();
}

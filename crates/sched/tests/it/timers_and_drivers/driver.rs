//! A driver: where the scheduler's threads wait for the system.

use crate::support::{PATIENCE, exit, exit_number, process, quiet_panics, until, until_state};
use ganger_proc_api::{Reply, actor_fn, process_fn};
use ganger_sched::internal::may_block;
use ganger_sched::{Driver, Handle, ProcessHandle, ProcessState, Scheduler, StopError};
use ganger_time::internal::{NotSet, OnTime};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

type Call = Box<dyn FnOnce() + Send>;

/// Calls posted by threads from outside, and carried out in the driver.
#[derive(Clone, Default)]
struct Posted(Arc<State>);

#[derive(Default)]
struct State {
    inbox: Mutex<Inbox>,
    changed: Condvar,
    /// Threads in a wait, waits without a limit, and all other waits.
    inside: AtomicUsize,
    waits: AtomicUsize,
    looks: AtomicUsize,
    workers: AtomicUsize,
    is_detached: AtomicBool,
}

#[derive(Default)]
struct Inbox {
    calls: Vec<Call>,
    is_interrupted: bool,
}

impl Posted {
    fn post(&self, call: impl FnOnce() + Send + 'static) {
        self.0.inbox.lock().unwrap().calls.push(Box::new(call));
        self.0.changed.notify_all();
    }

    fn waits(&self) -> usize {
        self.0.waits.load(Ordering::SeqCst)
    }

    fn looks(&self) -> usize {
        self.0.looks.load(Ordering::SeqCst)
    }

    fn is_waited_in(&self) -> bool {
        self.0.inside.load(Ordering::SeqCst) == 1
    }
}

impl Driver for Posted {
    fn wait(&self, timeout: Option<Duration>) {
        let State {
            inbox,
            changed,
            inside,
            ..
        } = &*self.0;
        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two at a time");
        let count = match timeout {
            Some(Duration::ZERO) => &self.0.looks,
            _ => &self.0.waits,
        };
        count.fetch_add(1, Ordering::SeqCst);
        let is_quiet = |inbox: &mut Inbox| inbox.calls.is_empty() && !inbox.is_interrupted;
        let mut inbox = inbox.lock().unwrap();
        inbox = match timeout {
            None => changed.wait_while(inbox, is_quiet).unwrap(),
            Some(timeout) => {
                changed
                    .wait_timeout_while(inbox, timeout, is_quiet)
                    .unwrap()
                    .0
            }
        };
        inbox.is_interrupted = false;
        let calls = std::mem::take(&mut inbox.calls);
        drop(inbox);
        // Before the calls: a call may panic.
        inside.fetch_sub(1, Ordering::SeqCst);
        calls.into_iter().for_each(|call| call());
    }

    fn interrupt(&self) {
        self.0.inbox.lock().unwrap().is_interrupted = true;
        self.0.changed.notify_all();
    }

    fn with_worker(&self, work: &mut dyn FnMut()) {
        self.0.workers.fetch_add(1, Ordering::SeqCst);
        work();
        self.0.workers.fetch_sub(1, Ordering::SeqCst);
    }

    fn detach(&self) {
        self.0.is_detached.store(true, Ordering::SeqCst);
    }
}

/// A timer with a message to the test when it fires.
struct Fires(std::sync::mpsc::Sender<()>);

impl OnTime for Fires {
    fn fire(self: Arc<Self>) {
        // The step may be over after a failure.
        let _ = self.0.send(());
    }
}

fn start(workers: usize) -> (Scheduler, Posted) {
    let posted = Posted::default();
    let builder = Scheduler::builder().workers(workers);
    #[cfg(feature = "check")]
    let builder = builder.check_promises();
    let scheduler = builder.driver(posted.clone()).build().unwrap();
    scheduler.start().unwrap();
    (scheduler, posted)
}

/// Starts a process that is done with `number` once the returned function has woken it.
fn start_waiting(handle: &Handle, number: u64) -> (ProcessHandle, impl FnOnce() + Send + use<>) {
    let is_ready = Arc::new(AtomicBool::new(false));
    let wait = {
        let is_ready = Arc::clone(&is_ready);
        process(move |_, _, out| {
            if is_ready.load(Ordering::SeqCst) {
                out.done(number);
            }
            Ok(())
        })
    };
    let handle = handle.submit(wait, "main", ()).unwrap();
    let waker = handle.address().waker();
    let wake = move || {
        is_ready.store(true, Ordering::SeqCst);
        waker.wake();
    };
    (handle, wake)
}

// pins: I1
#[test]
fn what_becomes_ready_in_the_driver_wakes_its_process() {
    for workers in 1..3 {
        let (scheduler, posted) = start(workers);
        for number in 0..200 {
            let (handle, wake) = start_waiting(&scheduler, number);
            if number % 2 == 0 {
                until_state(&scheduler, handle.pid(), ProcessState::Idle);
            }
            posted.post(wake);
            assert_eq!(exit_number(handle), number);
        }
    }
}

/// Interrupts the wait between the posted calls by other work of the scheduler.
// pins: I1
#[test]
fn a_wait_and_other_work_lose_nothing_of_each_other() {
    let (scheduler, posted) = start(2);
    let poster = {
        let (handle, posted) = (scheduler.handle(), posted.clone());
        thread::spawn(move || {
            for number in 0..2000 {
                let (process, wake) = start_waiting(&handle, number);
                posted.post(wake);
                assert_eq!(exit_number(process), number);
            }
        })
    };
    for number in 0..2000 {
        let (handle, wake) = start_waiting(&scheduler, number);
        wake();
        assert_eq!(exit_number(handle), number);
    }
    poster.join().unwrap();
}

/// Wakes a process by the call in the driver, and checks its place: it is ready, and in no queue
/// open to workers.
// pins: I1
#[test]
fn what_is_woken_in_the_driver_begins_when_the_wait_is_over() {
    let (scheduler, posted) = start(2);
    let begun = Arc::new(AtomicBool::new(false));
    let mut steps = 0;
    let woken = {
        let begun = Arc::clone(&begun);
        process(move |_, _, out| {
            steps += 1;
            if steps == 2 {
                begun.store(true, Ordering::SeqCst);
                out.done(7_u64);
            }
            Ok(())
        })
    };
    let handle = scheduler.submit(woken, "main", ()).unwrap();
    until_state(&scheduler, handle.pid(), ProcessState::Idle);
    until("a thread waits", || posted.is_waited_in());
    let (waker, looks) = (handle.address().waker(), scheduler.handle());
    let (result, seen) = channel();
    posted.post(move || {
        waker.wake();
        let dump = looks.dump();
        let deques = dump.workers.iter().map(|it| it.queued).sum::<usize>();
        let queued = dump.stats.global_queue + dump.arrivals_queue + dump.urgent_queue + deques;
        let states: Vec<_> = dump.processes.iter().map(|it| it.info.state).collect();
        let begun = begun.load(Ordering::SeqCst);
        result.send((begun, queued, states)).unwrap();
    });
    let seen = seen.recv_timeout(PATIENCE).unwrap();
    assert_eq!(seen, (false, 0, vec![ProcessState::Ready]));
    assert_eq!(exit_number(handle), 7);
}

/// Keeps the only worker in a step until the driver has been looked at several times, and until a
/// process made ready there has run on a spare.
// pins: I2
#[test]
fn a_driver_is_looked_at_while_all_workers_are_in_long_steps() {
    let (scheduler, posted) = start(1);
    let (ready, wake) = start_waiting(&scheduler, 7);
    until_state(&scheduler, ready.pid(), ProcessState::Idle);
    let is_over = Arc::new(AtomicBool::new(false));
    let (inside, is_inside) = channel();
    let long = {
        let is_over = Arc::clone(&is_over);
        process_fn(move |_, _, out| {
            inside.send(())?;
            while !is_over.load(Ordering::SeqCst) {
                std::hint::spin_loop();
            }
            out.done(());
            Ok(())
        })
    };
    let long = scheduler.submit(long, "main", ()).unwrap();
    is_inside.recv_timeout(PATIENCE).unwrap();
    let before = posted.looks() + posted.waits();
    until("the monitor looks, or waits", || {
        posted.looks() + posted.waits() >= before + 3 || posted.is_waited_in()
    });
    posted.post(wake);
    assert_eq!(exit_number(ready), 7);
    assert!(!long.is_finished());
    is_over.store(true, Ordering::SeqCst);
    assert!(exit(long).is_done());
}

/// Checks a long step after short steps: it lasts until a timer has fired, for which its worker may
/// have waited. The other worker is idle.
// pins: T4
#[test]
fn a_step_that_is_long_for_once_delays_no_timer_for_long() {
    let (scheduler, posted) = start(2);
    for _ in 0..20 {
        for number in 0..10 {
            let (handle, wake) = start_waiting(&scheduler, number);
            until_state(&scheduler, handle.pid(), ProcessState::Idle);
            posted.post(wake);
            assert_eq!(exit_number(handle), number);
        }
        let (fired, has_fired) = channel();
        let mut steps = 0;
        let long = process(move |_, _, out| {
            steps += 1;
            if steps == 2 {
                has_fired.recv_timeout(PATIENCE)?;
                out.done(7_u64);
            }
            Ok(())
        });
        let long = scheduler.submit(long, "main", ()).unwrap();
        until_state(&scheduler, long.pid(), ProcessState::Idle);
        let waker = long.address().waker();
        // The call comes from the thread that fires the timer.
        let timer = Arc::new(Fires(fired));
        let at = scheduler.timers().now() + Duration::from_millis(1);
        match scheduler.timers().call_at(at, Arc::clone(&timer) as _) {
            Err(NotSet::Due) => timer.fire(),
            set => assert!(set.is_ok(), "the scheduler runs"),
        }
        posted.post(move || waker.wake());
        assert_eq!(exit_number(long), 7);
    }
}

/// Keeps one of two workers in short steps at any time.
// pins: I2
#[test]
fn busy_workers_do_not_keep_the_driver_waiting() {
    for workers in 1..3 {
        let (scheduler, posted) = start(workers);
        let is_over = Arc::new(AtomicBool::new(false));
        let busy = (0..workers).map(|_| {
            let is_over = Arc::clone(&is_over);
            let busy = process(move |_, _, out| {
                if is_over.load(Ordering::SeqCst) {
                    out.done(());
                } else {
                    out.step_again();
                }
                Ok(())
            });
            scheduler.submit(busy, "main", ()).unwrap()
        });
        let busy: Vec<_> = busy.collect();
        for number in 0..50 {
            let (handle, wake) = start_waiting(&scheduler, number);
            until_state(&scheduler, handle.pid(), ProcessState::Idle);
            posted.post(wake);
            assert_eq!(exit_number(handle), number);
        }
        is_over.store(true, Ordering::SeqCst);
        for handle in busy {
            assert!(exit(handle).is_done());
        }
    }
}

// pins: I4
#[test]
fn a_stop_ends_the_wait() {
    for _ in 0..50 {
        let (scheduler, posted) = start(2);
        let workers = || posted.0.workers.load(Ordering::SeqCst);
        until("a thread waits", || posted.is_waited_in() && workers() == 2);
        let report = scheduler.stop(PATIENCE).unwrap();
        assert!(report.stuck.is_empty());
        drop(scheduler);
        until("all is over", || {
            posted.0.is_detached.load(Ordering::SeqCst)
        });
        assert_eq!(workers(), 0);
    }
}

// pins: I1
#[test]
fn a_panic_in_the_driver_is_contained() {
    quiet_panics();
    let (scheduler, posted) = start(1);
    until("a thread waits", || posted.is_waited_in());
    posted.post(|| panic!("on purpose"));
    until("it is counted", || scheduler.stats().total.panics == 1);
    let (handle, wake) = start_waiting(&scheduler, 7);
    posted.post(wake);
    assert_eq!(exit_number(handle), 7);
}

/// Holds a call in the driver until it is dropped.
type Held = std::sync::mpsc::Sender<()>;

/// Posts a call for a worker in the driver, which lasts until the result is dropped. `before` runs
/// before the post and `after` behind it: they make a worker the next thread in the driver, as a
/// rule. Where the monitor came, both are called again.
fn hold_a_worker(posted: &Posted, mut before: impl FnMut(), mut after: impl FnMut()) -> Held {
    loop {
        before();
        let (held, is_over) = channel::<()>();
        let (inside, is_inside) = channel();
        posted.post(move || {
            let thread = thread::current();
            let is_worker = (thread.name()).is_some_and(|it| !it.ends_with("-monitor"));
            inside.send(is_worker).unwrap();
            if is_worker {
                // The call ends with the disconnection.
                let _over = is_over.recv();
            }
        });
        after();
        if is_inside.recv_timeout(PATIENCE).unwrap() {
            return held;
        }
    }
}

/// Starts a process whose step lasts until the result is dropped.
fn start_step(scheduler: &Handle) -> (ProcessHandle, Held) {
    let (held, is_over) = channel::<()>();
    let (inside, is_inside) = channel();
    let step = process_fn(move |_, _, out| {
        inside.send(())?;
        let _over = is_over.recv();
        out.done(());
        Ok(())
    });
    let step = scheduler.submit(step, "main", ()).unwrap();
    is_inside.recv_timeout(PATIENCE).unwrap();
    (step, held)
}

fn submit_number(scheduler: &Handle, number: u64) -> ProcessHandle {
    let done = process_fn(move |_, _, out| {
        out.done(number);
        Ok(())
    });
    scheduler.submit(done, "main", ()).unwrap()
}

fn start_without_spares() -> (Scheduler, Posted) {
    let posted = Posted::default();
    let builder = Scheduler::builder().workers(2).max_spares(0);
    let scheduler = builder.driver(posted.clone()).build().unwrap();
    scheduler.start().unwrap();
    (scheduler, posted)
}

/// Checks a worker waiting in the driver that is in a long call there when it is woken for the
/// first process. The other worker takes the process, and sleeps again.
// pins: G2
#[test]
fn a_worker_that_is_woken_in_a_long_call_is_not_relied_on() {
    let (scheduler, posted) = start_without_spares();
    let sleeping = || scheduler.stats().sleeping;
    let all_sleep = || until("all sleep", || sleeping() == 2 && posted.is_waited_in());
    let held = hold_a_worker(&posted, all_sleep, || ());
    let (step, step_held) = start_step(&scheduler);
    let first = submit_number(&scheduler, 7);
    drop(step_held);
    assert!(exit(step).is_done());
    assert_eq!(exit_number(first), 7);
    until("the other one sleeps", || sleeping() == 1);
    assert_eq!(exit_number(submit_number(&scheduler, 8)), 8);
    drop(held);
}

/// Checks a searching worker that polls the driver, and is in a long call there. The other worker
/// falls asleep afterwards.
// pins: G2
#[test]
fn a_worker_that_searches_in_the_driver_is_not_relied_on() {
    let (scheduler, posted) = start_without_spares();
    let steps = RefCell::new(Vec::new());
    let start_steps = || {
        // Steps of the last round hold a worker.
        steps.borrow_mut().clear();
        let started = [(); 2].map(|()| start_step(&scheduler));
        *steps.borrow_mut() = Vec::from(started);
    };
    let end_one = || {
        let (one, its) = steps.borrow_mut().pop().unwrap();
        drop(its);
        assert!(exit(one).is_done());
    };
    let held = hold_a_worker(&posted, start_steps, end_one);
    drop(steps);
    until("the other one sleeps", || scheduler.stats().sleeping == 1);
    assert_eq!(exit_number(submit_number(&scheduler, 7)), 7);
    drop(held);
}

/// Checks a refused wait: a process started in the driver begins when the call there is over.
// pins: I1
#[test]
fn a_wait_in_the_driver_is_refused() {
    quiet_panics();
    let (scheduler, posted) = start(2);
    let (result, results) = channel();
    let handle = scheduler.handle();
    posted.post(move || {
        let refused = |wait: &dyn Fn(ProcessHandle)| {
            let process = submit_number(&handle, 7);
            let address = process.address().clone();
            let unwound = catch_unwind(AssertUnwindSafe(|| wait(process)));
            let message = *unwound.unwrap_err().downcast::<&str>().unwrap();
            assert!(message.contains("`.await` it"), "{message}");
            address
        };
        let answers = actor_fn(|_, reply: Reply<u64>, _| {
            reply.complete(7);
            Ok(())
        });
        let answers = handle.spawn(answers).unwrap();
        let answer = answers.call(|reply| reply).wait();
        let text = answer.unwrap_err().to_string();
        assert!(text.contains("`.await`"), "{text}");
        assert!(!may_block("a test", "nothing"));
        assert!(matches!(
            handle.stop(Duration::ZERO),
            Err(StopError::Inside)
        ));
        let started = [
            refused(&|it| drop(it.wait())),
            refused(&|it| drop(it.wait_timeout(PATIENCE))),
        ];
        result.send((started, submit_number(&handle, 8))).unwrap();
    });
    let (started, last) = results.recv_timeout(PATIENCE).unwrap();
    assert_eq!(exit_number(last), 8);
    until("the others end as well", || {
        started
            .iter()
            .all(|it| scheduler.process(it.pid()).is_none())
    });
}

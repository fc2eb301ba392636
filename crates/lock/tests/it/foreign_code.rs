//! Panicking wakers, and waits inside of waits.

use crate::support::{Counts, poll, poll_by};
use ganger_lock::{
    CancellationToken, Mutex, Notify, RwLock, SingleFlight, Until, block_on, block_on_for,
};
use ganger_proc_api::{ExitReason, process_fn};
use ganger_sched::Scheduler;
use std::future::{pending, poll_fn};
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak, mpsc};
use std::task::{Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker panics");
    }
}

// pins: K7
#[test]
fn a_wait_inside_of_a_wait_takes_none_of_its_wake_ups() {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let notify = Notify::new();
        let mut is_first = true;
        block_on(async {
            let mut outer = pin!(notify.notified());
            poll_fn(|context| {
                let polled = outer.as_mut().poll(context);
                if std::mem::take(&mut is_first) {
                    notify.notify_one();
                    assert!(block_on_for(Duration::from_millis(5), pending::<()>()).is_none());
                }
                polled
            })
            .await;
        });
        sender.send(()).unwrap();
    });
    receiver.recv_timeout(Duration::from_secs(60)).unwrap();
}

// pins: K1
#[test]
fn a_long_line_of_yields_that_lock_and_unlock_takes_little_stack() {
    const LINE: u64 = 20_000;
    let scheduler = Scheduler::start_default().unwrap();
    let mutex = Arc::new(Mutex::new(0));
    let waits = Arc::new(AtomicU64::new(0));
    let guard = mutex.try_lock().unwrap();
    let begin = |_| {
        let (mutex, waits) = (Arc::clone(&mutex), Arc::clone(&waits));
        let process = process_fn(move |_, events, out| {
            match events.next() {
                None => {
                    let mutex = Arc::clone(&mutex);
                    let add = async move { *mutex.lock().await.unwrap() += 1 };
                    out.ask(Until::new(add), 1);
                    waits.fetch_add(1, Ordering::Relaxed);
                }
                Some(_) => out.done(()),
            }
            Ok(())
        });
        scheduler.spawn(process).unwrap()
    };
    let processes: Vec<_> = (0..LINE).map(begin).collect();
    while waits.load(Ordering::Relaxed) < LINE {
        thread::yield_now();
    }
    drop(guard);
    for process in processes {
        assert!(process.wait().is_done());
    }
    assert_eq!(*mutex.try_lock().unwrap(), LINE);
}

/// Terminates the process, once by a call and once by a stop; other processes have their turns
/// meanwhile.
// pins: G1, K1, K4, P9
#[test]
fn a_yield_whose_future_wakes_itself_ends_with_its_process() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    scheduler.start().unwrap();
    let restless = || {
        let process = process_fn(|_, events, out| {
            if events.next().is_none() {
                let future = poll_fn::<(), _>(|context| {
                    context.waker().wake_by_ref();
                    std::task::Poll::Pending
                });
                out.ask(Until::new(future), 1);
            }
            Ok(())
        });
        scheduler.spawn(process).unwrap()
    };
    let (first, _second) = (restless(), restless());
    for _ in 0..100 {
        let other = process_fn(|_, _, out| {
            out.done(());
            Ok(())
        });
        assert!(scheduler.spawn(other).unwrap().wait().is_done());
    }
    scheduler.terminate(first.pid()).unwrap();
    assert!(matches!(first.wait(), ExitReason::Terminated));
    let report = scheduler.stop(Duration::from_secs(60)).unwrap();
    assert!(report.stuck.is_empty(), "{report:?}");
}

// pins: K4
#[test]
fn a_waker_that_panics_leaves_none_of_the_others_asleep() {
    let lock = RwLock::new(());
    let guard = lock.try_write().unwrap();
    let mut waits = [(); 3].map(|()| lock.read());
    let (count, counts) = Counts::waker();
    let wakers = [Waker::noop().clone(), Waker::from(Arc::new(Panics)), counts];
    for (wait, waker) in waits.iter_mut().zip(&wakers) {
        assert!(poll_by(wait, waker).is_pending());
    }
    assert!(catch_unwind(AssertUnwindSafe(|| drop(guard))).is_err());
    assert_eq!(count.get(), 1);
}

// pins: K8
#[test]
fn a_waker_that_panics_leaves_no_child_uncancelled() {
    let root = CancellationToken::new();
    let child = root.child();
    let mut wait = root.cancelled();
    let waker = Waker::from(Arc::new(Panics));
    assert!(poll_by(&mut wait, &waker).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| root.cancel("it is over"))).is_err());
    assert!(root.is_cancelled() && child.is_cancelled());
}

type Flights = SingleFlight<Asks, Arc<Asks>>;

/// Uses its flights, as their key or value, in each function of the user.
struct Asks {
    number: u64,
    flights: Weak<Flights>,
}

impl Asks {
    fn new(flights: &Arc<Flights>, number: u64) -> Self {
        let flights = Arc::downgrade(flights);
        Self { number, flights }
    }

    fn ask(&self) {
        if let Some(flights) = self.flights.upgrade() {
            assert!(flights.len() <= 2 && format!("{flights:?}").contains("under_way"));
        }
    }
}

impl Hash for Asks {
    fn hash<H: Hasher>(&self, _: &mut H) {
        // All have the same hash, so all are compared.
        self.ask();
    }
}

impl PartialEq for Asks {
    fn eq(&self, other: &Self) -> bool {
        self.ask();
        self.number == other.number
    }
}

impl Eq for Asks {}

impl Drop for Asks {
    fn drop(&mut self) {
        self.ask();
    }
}

// pins: K10
#[test]
fn a_key_may_use_its_flights_when_it_is_hashed_compared_and_dropped() {
    let (sender, receiver) = mpsc::channel();
    let runs = thread::spawn(move || {
        let flights = Arc::new(Flights::new());
        let gate = Notify::new();
        let fly = |number| {
            let (flights, gate) = (&flights, &gate);
            Box::pin(flights.run(Asks::new(flights, number), async move || {
                gate.notified().await;
                Arc::new(Asks::new(flights, number))
            }))
        };
        let mut calls = [fly(1), fly(2), fly(1), fly(2)];
        assert!(calls.iter_mut().all(|it| poll(it).is_pending()));
        assert_eq!(flights.len(), 2);
        gate.notify_all();
        for (call, number) in calls.iter_mut().zip([1, 2, 1, 2]) {
            match poll(call) {
                Poll::Ready(value) => assert_eq!(value.number, number),
                Poll::Pending => panic!("its work is done"),
            }
        }
        assert!(flights.is_empty());
        // A call is given up: nothing is left behind either.
        let mut call = fly(3);
        assert!(poll(&mut call).is_pending());
        drop(call);
        assert!(flights.is_empty());
        sender.send(()).unwrap();
    });
    let ended = receiver.recv_timeout(Duration::from_secs(30));
    assert!(ended != Err(mpsc::RecvTimeoutError::Timeout), "it hangs");
    runs.join().unwrap();
}

// pins: K10
#[test]
fn threads_with_keys_of_one_hash_do_the_work_of_each_once_at_a_time() {
    const THREADS: u64 = 4;
    let flights = Arc::new(Flights::new());
    let under_way = [const { AtomicU64::new(0) }; 2];
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (flights, under_way) = (&flights, &under_way);
            scope.spawn(move || {
                for turn in 0..500 {
                    let number = (thread + turn) % 2;
                    let of_key = &under_way[number as usize];
                    let work = async || {
                        assert_eq!(of_key.fetch_add(1, Ordering::SeqCst), 0, "key {number}");
                        thread::yield_now();
                        of_key.fetch_sub(1, Ordering::SeqCst);
                        Arc::new(Asks::new(flights, number))
                    };
                    let value = block_on(flights.run(Asks::new(flights, number), work));
                    assert_eq!(value.number, number);
                }
            });
        }
    });
    assert!(flights.is_empty());
}

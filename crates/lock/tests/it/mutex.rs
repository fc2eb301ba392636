//! Mutexes: their three faces, failing owners, leaving waiters, starvation.

use crate::support::{Counts, poll, poll_by, start};
use ganger_lock::{Locked, Mutex, Until};
use ganger_proc_api::{Event, Process, process_fn};
use ganger_sim::{Rt, Sim};
use ganger_task::Cx;
use std::sync::{Arc, TryLockError};
use std::time::Duration;

/// Adds 1, `times` times, by yields.
fn adds(mutex: &Arc<Mutex<u64>>, times: u32) -> impl Process {
    let mutex = Arc::clone(mutex);
    let mut left = times;
    process_fn(move |_, events, out| {
        if let Some(Event::Completion(it)) = events.next() {
            *it.take::<Locked<u64>>()?? += 1;
            left -= 1;
        }
        if left == 0 {
            out.done(());
        } else {
            out.ask(Until::new(Arc::clone(&mutex).lock_owned()), 1);
        }
        Ok(())
    })
}

// pins: K1
#[test]
fn processes_tasks_and_threads_share_a_value() {
    const TIMES: u32 = 500;
    let scheduler = start(2);
    let mutex = Arc::new(Mutex::new(0_u64));
    let processes = [(); 4].map(|()| scheduler.spawn(adds(&mutex, TIMES)).unwrap());
    let tasks = [(); 4].map(|()| {
        let mutex = Arc::clone(&mutex);
        let body = async move |cx: Cx| {
            for _ in 0..TIMES {
                let mut value = mutex.lock().await.map_err(|it| it.to_string())?;
                // Across a wait.
                cx.yield_now().await;
                *value += 1;
            }
            Ok(())
        };
        scheduler.spawn(body).unwrap()
    });
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..TIMES).for_each(|_| *mutex.lock_blocking().unwrap() += 1));
        }
    });
    for process in processes {
        assert!(process.wait().is_done());
    }
    for task in tasks {
        assert!(task.wait().is_done());
    }
    let value = Arc::into_inner(mutex).unwrap().into_inner().unwrap();
    assert_eq!(value, u64::from(TIMES) * 10);
}

// pins: K1
#[test]
fn the_queue_is_in_order() {
    let mutex = Mutex::new(());
    let guard = mutex.try_lock().unwrap();
    assert!(matches!(mutex.try_lock(), Err(TryLockError::WouldBlock)));
    let mut waits = [(); 3].map(|()| mutex.lock());
    assert!(waits.iter_mut().all(|it| poll(it).is_pending()));
    drop(guard);
    // Only the first is awake: only the first gets the lock.
    assert!(poll(&mut waits[1]).is_pending());
    let first = poll(&mut waits[0]);
    assert!(first.is_ready() && poll(&mut waits[1]).is_pending());
    drop(first);
    assert!(poll(&mut waits[1]).is_ready());
    assert!(poll(&mut waits[2]).is_ready());
}

/// Locks go by the time of a simulation: the wait is of over a millisecond.
fn pass(rt: &Rt<'_>) {
    rt.run_for(Duration::from_millis(2));
}

// pins: K2
#[test]
fn a_loser_waits_at_the_front_and_then_is_handed_the_lock() {
    Sim::new(0).run(|rt| {
        let mutex = Mutex::new(());
        let guard = mutex.try_lock().unwrap();
        let mut waits = [(); 2].map(|()| mutex.lock());
        assert!(waits.iter_mut().all(|it| poll(it).is_pending()));
        drop(guard);
        // A newcomer is faster than the woken waiter.
        let barger = mutex.try_lock().unwrap();
        pass(rt);
        // The waiter has waited for more than a millisecond: from now on the lock is handed over.
        assert!(poll(&mut waits[0]).is_pending());
        drop(barger);
        assert!(matches!(mutex.try_lock(), Err(TryLockError::WouldBlock)));
        let mut newcomer = mutex.lock();
        assert!(poll(&mut newcomer).is_pending() && poll(&mut waits[1]).is_pending());
        assert!(poll(&mut waits[0]).is_ready());
        assert!(poll(&mut newcomer).is_pending());
        assert!(poll(&mut waits[1]).is_ready());
        assert!(poll(&mut newcomer).is_ready());
        // The last waiter has ended starvation mode: a newcomer gets the free lock.
        drop(mutex.try_lock().unwrap());
    });
}

// pins: K2
#[test]
fn a_loser_that_has_not_waited_for_long_loses_to_newcomers_again() {
    Sim::new(0).run(|rt| {
        let mutex = Mutex::new(());
        let guard = mutex.try_lock().unwrap();
        let mut wait = mutex.lock();
        assert!(poll(&mut wait).is_pending());
        drop(guard);
        let barger = mutex.try_lock().unwrap();
        rt.run_for(Duration::from_micros(999));
        assert!(poll(&mut wait).is_pending());
        drop(barger);
        drop(mutex.try_lock().unwrap());
        assert!(poll(&mut wait).is_ready());
    });
}

// pins: K4
#[test]
fn a_wait_that_is_dropped_passes_its_turn_on() {
    for is_starving in [false, true] {
        Sim::new(0).run(|rt| {
            let mutex = Mutex::new(());
            let mut guard = Some(mutex.try_lock().unwrap());
            let mut first = mutex.lock();
            let (woken, waker) = Counts::waker();
            let mut second = mutex.lock();
            assert!(poll(&mut first).is_pending());
            assert!(poll_by(&mut second, &waker).is_pending());
            if is_starving {
                drop(guard.take());
                guard = Some(mutex.try_lock().unwrap());
                pass(rt);
                assert!(poll(&mut first).is_pending());
            }
            drop(guard);
            // The first is the owner, or awake.
            drop(first);
            assert_eq!(woken.get(), 1);
            assert!(poll(&mut second).is_ready());
            drop(mutex.try_lock().unwrap());
        });
    }
}

// pins: K4
#[test]
fn a_process_that_ends_while_it_waits_is_passed_over() {
    let scheduler = start(2);
    let mutex = Arc::new(Mutex::new(0));
    let guard = mutex.lock_blocking().unwrap();
    let waiter = scheduler.spawn(adds(&mutex, 1)).unwrap();
    let next = scheduler.spawn(adds(&mutex, 1)).unwrap();
    scheduler.terminate(waiter.pid()).unwrap();
    drop(waiter.wait());
    drop(guard);
    assert!(next.wait().is_done());
    assert_eq!(*mutex.lock_blocking().unwrap(), 1);
    assert_eq!(Arc::strong_count(&mutex), 1, "nothing of them is left");
}

// pins: K4
#[test]
fn a_yield_that_is_taken_back_leaves_no_trace() {
    let scheduler = start(2);
    let mutex = Arc::new(Mutex::new(0));
    let guard = mutex.lock_blocking().unwrap();
    let own = Arc::clone(&mutex);
    let mut steps = 0;
    let process = process_fn(move |_, _, out| {
        steps += 1;
        if steps == 1 {
            out.ask(Until::new(Arc::clone(&own).lock_owned()), 1);
            out.step_again();
        } else {
            out.cancel(1);
            out.done(());
        }
        Ok(())
    });
    assert!(scheduler.spawn(process).unwrap().wait().is_done());
    drop(guard);
    assert!(mutex.try_lock().is_ok());
}

// pins: K1
#[test]
fn a_look_that_never_blocks_gives_guards_that_keep_the_lock_alive() {
    let mutex = Arc::new(Mutex::new(7));
    let mut guard = Arc::clone(&mutex).try_lock_owned().unwrap();
    *guard += 1;
    let refused = Arc::clone(&mutex).try_lock_owned();
    assert!(matches!(refused, Err(TryLockError::WouldBlock)));
    drop(guard);
    let mut alone = Arc::into_inner(mutex).expect("nothing of the guards is left");
    *alone.get_mut().unwrap() += 1;
    assert_eq!(alone.into_inner().unwrap(), 9);
}

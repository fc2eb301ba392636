//! The waiting jobs of a pool: places of callers after their leave, and the order of age.

use crate::pools::{divide, stop, why};
use crate::support::*;
use ganger_proc_api::{Actor, Context, StepOutput, StepResult};
use ganger_sim::Rt;
use ganger_supervise::{Overload, Pool, PoolError, PoolRemote};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

/// Checks that a caller's leave makes room for another caller.
// pins: W4, W5
#[test]
fn callers_that_have_left_give_their_places_up() {
    sim(46).check_seeds(40, |rt| {
        let overload = match rt.choose(2) {
            0 => Overload::RefuseNewest,
            _ => Overload::RefuseOldest,
        };
        let pool = Pool::new(2, divide).queue(2, overload).start(rt).unwrap();
        pool.suspend();
        let call = |by| match rt.choose(2) {
            0 => pool.call(by),
            _ => pool.call_by(by, by),
        };
        let first = call(1).begin();
        let leaves = call(2).begin();
        drop(leaves);
        // Callers leave again and again, before and after a look at the queue.
        for by in 3..10 {
            let leaves = call(by).begin();
            assert!(!leaves.is_ready(), "{by}: there is a place");
            drop(leaves);
        }
        let last = call(10).begin();
        rt.settle();
        assert!(!first.is_ready() && !last.is_ready());
        assert_eq!((pool.stats().queued, pool.stats().left), (2, 8));
        pool.resume();
        rt.settle();
        assert_eq!((first.wait().unwrap(), last.wait().unwrap()), (100, 10));
        stop(rt, pool);
    });
}

/// Has a job in the pool as long as it lives.
struct Asks(PoolRemote<u32, u32>);

impl Actor for Asks {
    type Message = bool;

    fn receive(&mut self, _: &Context, asks: bool, out: &mut StepOutput) -> StepResult {
        match asks {
            true => _ = out.ask(self.0.call(7), 1),
            false => out.cancel(1),
        }
        Ok(())
    }
}

// pins: W4, W5
#[test]
fn a_process_that_ends_or_takes_its_question_back_gives_its_place_up() {
    sim(47).check_seeds(40, |rt| {
        let pool = Pool::new(1, divide).queue(1, Overload::RefuseNewest);
        let pool = pool.start(rt).unwrap();
        pool.suspend();
        let full = || why(&rt.answer(pool.call(1)).unwrap_err()).cloned();
        for takes_back in [true, false, rt.choose(2) == 0] {
            let process = rt.spawn(Asks(pool.remote())).unwrap();
            process.send(true).unwrap();
            rt.settle();
            assert_eq!(full(), Some(PoolError::Full { queued: 1 }));
            match takes_back {
                true => process.send(false).unwrap(),
                false => rt.terminate(process.pid()).unwrap(),
            }
            rt.settle();
            assert_eq!(pool.stats().queued, 0);
            rt.terminate(process.pid()).ok();
            rt.settle();
        }
        assert_eq!(pool.stats().left, 3);
        stop(rt, pool);
    });
}

// pins: W4
#[test]
fn a_job_that_waits_too_long_is_answered_in_time() {
    sim(48).check_seeds(40, |rt| {
        let handled = Arc::new(Mutex::new(Vec::new()));
        let theirs = Arc::clone(&handled);
        let pool = Pool::new(2, divide)
            .time_to_live(secs(2))
            .on_refused(move |job, error| theirs.lock().unwrap().push((job, error.clone())));
        let pool = match rt.choose(3) {
            0 => pool,
            1 => pool.lazy(secs(60)),
            _ => pool.adaptive(1, ms(10), secs(60)),
        };
        let pool = pool.start(rt).unwrap();
        rt.settle();
        pool.suspend();
        let call = |by| match rt.choose(2) {
            0 => pool.call(by),
            _ => pool.call_by(by, by),
        };
        let first = call(1).begin();
        rt.run_for(secs(1));
        let second = call(2).begin();
        rt.run_for(ms(900));
        assert!(!first.is_ready());
        rt.run_for(ms(200));
        assert!(first.is_ready() && !second.is_ready());
        assert_eq!(why(&first.wait().unwrap_err()), Some(&PoolError::Expired));
        rt.run_for(secs(1));
        assert_eq!(why(&second.wait().unwrap_err()), Some(&PoolError::Expired));
        let expired = |job| (job, PoolError::Expired);
        assert_eq!(*handled.lock().unwrap(), [expired(1), expired(2)]);
        assert_eq!((pool.stats().queued, pool.stats().expired), (0, 2));
        // A job comes after a time without jobs.
        rt.run_for(secs(30));
        let third = call(4).begin();
        rt.run_for(ms(2_100));
        assert!(third.is_ready());
        stop(rt, pool);
    });
}

/// Checks that the pool refuses the older jobs before a job with a retry.
// pins: W4
#[test]
fn a_job_that_waits_for_its_retry_is_as_old_as_it_is() {
    let mut rounds = 0;
    for seed in 0..60 {
        sim(seed).run(|rt| rounds += u32::from(retries_late(rt)));
    }
    assert!(rounds > 0, "in no run an older job waits");
}

/// Returns whether an older job waits while the pool puts a job off for its retry.
fn retries_late(rt: &Rt<'_>) -> bool {
    let remote: Arc<Mutex<Option<PoolRemote<u32, u32>>>> = Arc::default();
    let theirs = Arc::clone(&remote);
    let work = move || {
        let remote = Arc::clone(&theirs);
        move |job: u32| {
            if job == 9 {
                let remote = remote.lock().unwrap().take();
                remote.inspect(PoolRemote::suspend);
                panic!("on purpose");
            }
            Ok(job)
        }
    };
    let pool = Pool::new(2, work)
        .retries(1)
        .queue(2, Overload::RefuseOldest);
    let pool = pool.start(rt).unwrap();
    *remote.lock().unwrap() = Some(pool.remote());
    assert_eq!(rt.answer(pool.call(1)).unwrap(), 1);
    let [older, retried] = [1, 9].map(|job| pool.call_by(rt.choose(9), job).begin());
    rt.settle();
    let waits = !older.is_ready();
    if waits {
        assert_eq!((pool.stats().retried, pool.stats().queued), (1, 2));
        let next = pool.call(3).begin();
        rt.settle();
        assert!(!retried.is_ready(), "the other one is older");
        assert!(older.is_ready() && !next.is_ready());
    }
    stop(rt, pool);
    waits
}

// pins: W1, W5, W6
#[test]
fn new_jobs_are_passed_over_or_wait_as_others_do() {
    sim(44).check_seeds(40, |rt| {
        let begun = Arc::new(Mutex::new(Vec::new()));
        let note = Arc::clone(&begun);
        let work = move || {
            let note = Arc::clone(&note);
            move |job: u32| {
                note.lock().unwrap().push(job);
                Ok(())
            }
        };
        let pool = Pool::new(1, work).start(rt).unwrap();
        // No worker has looked at a job when its caller leaves.
        let first = pool.call(1).begin();
        drop(pool.call(2).begin());
        let third = pool.call(3).begin();
        rt.settle();
        assert!(first.is_ready() && third.is_ready());
        assert_eq!(std::mem::take(&mut *begun.lock().unwrap()), [1, 3]);
        assert_eq!((pool.stats().left, pool.stats().served), (1, 2));
        // Jobs of a suspended pool wait in lines after it, and later jobs behind them.
        pool.suspend();
        pool.send(4).unwrap();
        pool.send(5).unwrap();
        rt.settle();
        assert!(begun.lock().unwrap().is_empty());
        assert_eq!((pool.stats().queued, pool.stats().in_flight), (2, 0));
        pool.resume();
        pool.send(6).unwrap();
        assert_eq!(pool.stats().queued, 3);
        rt.settle();
        assert_eq!(*begun.lock().unwrap(), [4, 5, 6]);
        assert_eq!((pool.stats().queued, pool.stats().served), (0, 5));
        stop(rt, pool);
    });
}

/// Keeps a worker away, with a job in its line. The other worker takes the new jobs.
// pins: W1, W3
#[test]
fn a_free_worker_takes_new_jobs_while_another_ones_job_waits() {
    sim(45).check_seeds(40, |rt| {
        let has_panicked = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&has_panicked);
        let made = AtomicUsize::new(0);
        let make = move || {
            // The first replacement of a function fails.
            assert_ne!(made.fetch_add(1, Ordering::SeqCst), 2, "on purpose");
            let has_panicked = Arc::clone(&theirs);
            move |job: u32| {
                let panics = job == 0 && !has_panicked.swap(true, Ordering::SeqCst);
                assert!(!panics, "on purpose");
                Ok(job)
            }
        };
        let pool = Pool::new(2, make).retries(1).back_off(secs(60));
        let pool = pool.start(rt).unwrap();
        rt.run_for(ms(1));
        let again = pool.call(0).begin();
        rt.run_for(ms(1));
        assert_eq!((again.is_ready(), pool.stats().queued), (false, 1));
        for job in 1..4 {
            let answer = pool.call(job).begin();
            rt.run_for(ms(1));
            assert!(answer.is_ready(), "{job}: a worker is free");
            assert_eq!(answer.wait().unwrap(), job);
        }
        assert_eq!((pool.stats().queued, pool.stats().idle), (1, 1));
        rt.run_for(secs(70));
        assert_eq!(again.wait().unwrap(), 0);
        stop(rt, pool);
    });
}

/// Checks that jobs that come right after each other wake a worker each.
// pins: W1
#[test]
fn each_idle_worker_is_woken_for_a_job_of_its_own() {
    let scheduler = start(2);
    let (begins, begun) = mpsc::channel();
    let (end, ends) = mpsc::channel::<()>();
    let ends = Arc::new(Mutex::new(ends));
    let make = move || {
        let (begins, ends) = (begins.clone(), Arc::clone(&ends));
        move |job: u32| {
            begins.send(job)?;
            // Until the test drops the other end.
            let _ = ends.lock().unwrap().recv();
            Ok(job)
        }
    };
    let pool = Pool::new(3, make).start(&scheduler).unwrap();
    until("all workers are idle", || pool.stats().idle == 3);
    let calls = [1, 2, 3].map(|job| pool.call(job).begin());
    let seen: BTreeSet<_> = calls
        .iter()
        .map_while(|_| begun.recv_timeout(secs(10)).ok())
        .collect();
    assert_eq!(seen, BTreeSet::from([1, 2, 3]), "each has a worker");
    drop(end);
    assert_eq!(calls.map(|it| it.wait().unwrap()), [1, 2, 3]);
    pool.stop();
}

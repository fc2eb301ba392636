//! The places of a pool's workers: each has a single worker at a time, however slow its function
//! is.

use crate::pools::{stop, why};
use crate::support::*;
use ganger_supervise::{Pool, PoolError};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// The number of threads in a call: now, and at the peak.
#[derive(Default)]
struct AtOnce {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl AtOnce {
    fn during<R>(&self, f: impl FnOnce() -> R) -> R {
        let now = 1 + self.now.fetch_add(1, Ordering::SeqCst);
        self.most.fetch_max(now, Ordering::SeqCst);
        let result = f();
        self.now.fetch_sub(1, Ordering::SeqCst);
        result
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

/// Makes the function of a worker slowly. Meanwhile no other worker takes its place.
// pins: W1, W6, W7, W8
#[test]
fn a_worker_that_is_replaced_slowly_has_its_place_alone() {
    let scheduler = start(2);
    for is_lazy in [true, false] {
        let (made, served) = (Arc::new(AtOnce::default()), Arc::new(AtOnce::default()));
        let (makes, serves) = (Arc::clone(&made), Arc::clone(&served));
        let work = move || {
            makes.during(|| thread::sleep(ms(10)));
            let serves = Arc::clone(&serves);
            move |job: u32| {
                let panics = serves.during(|| {
                    thread::sleep(ms(10));
                    job.is_multiple_of(3)
                });
                assert!(!panics, "on purpose");
                Ok(job)
            }
        };
        let pool = Pool::new(2, work);
        let pool = match is_lazy {
            true => pool.lazy(secs(10)),
            false => pool.adaptive(1, ms(1), secs(10)),
        };
        let pool = pool.start(&scheduler).unwrap();
        let calls = [0, 1, 2, 3, 4].map(|job| pool.call_by("one key", job).begin());
        for (job, call) in (0_u32..).zip(calls) {
            assert_eq!(call.wait().is_ok(), !job.is_multiple_of(3), "{job}");
        }
        assert_eq!(served.most(), 1, "jobs of one key at once");
        assert!(made.most() <= 2, "workers of 2 places at once");
        assert!(matches!(
            pool.stop(),
            ganger_proc_api::ExitReason::Cancelled(_)
        ));
    }
}

/// Fails to make the function for a while. The pool lives on, and jobs wait.
// pins: W13
#[test]
fn a_pool_whose_functions_can_not_be_made_waits_longer_each_time() {
    for kind in 0..3 {
        sim(44).check_seeds(20, |rt| {
            let broken = Arc::new(AtomicUsize::new(0));
            let tries = Arc::new(AtomicUsize::new(0));
            let (theirs, count) = (Arc::clone(&broken), Arc::clone(&tries));
            let work = move || {
                count.fetch_add(1, Ordering::SeqCst);
                assert_eq!(
                    theirs.load(Ordering::SeqCst),
                    0,
                    "no connection, on purpose"
                );
                |by: u32| Ok(100 / by)
            };
            let pool = match kind {
                0 => Pool::new(2, work),
                1 => Pool::new(2, work).lazy(secs(60)),
                _ => Pool::new(2, work).adaptive(1, ms(5), secs(60)),
            };
            let pool = pool.start(rt).unwrap();
            broken.store(1, Ordering::SeqCst);
            let panics = pool.call_by("key", 0).begin();
            rt.run_for(ms(1));
            let waits = pool.call_by("key", 5).begin();
            rt.run_for(secs(10));
            if kind != 1 {
                let error = panics.wait().unwrap_err();
                assert!(matches!(why(&error), Some(PoolError::Panicked(_))));
            }
            assert!(!waits.is_ready());
            // After 0.1, 0.2, 0.4, 0.8, 1.6, 3.2 seconds, of up to two workers.
            let tried = tries.load(Ordering::SeqCst);
            assert!((5..=20).contains(&tried), "tried {tried} times");
            broken.store(0, Ordering::SeqCst);
            rt.run_for(secs(12));
            assert_eq!(waits.wait().unwrap(), 20);
            stop(rt, pool);
        });
    }
}

/// Ends the pool before the second try of a job, for which no worker is left.
// pins: W2, W3
#[test]
fn a_job_that_panics_after_the_end_of_its_pool_is_refused() {
    let scheduler = start(2);
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let work = move || {
        let gate = Arc::clone(&gate);
        move |(): ()| -> Result<(), _> {
            gate.lock().unwrap().recv().unwrap();
            panic!("on purpose");
        }
    };
    let pool = Pool::new(1, work).retries(1).start(&scheduler).unwrap();
    let call = pool.call(()).begin();
    until("the job is begun", || pool.stats().in_flight == 1);
    scheduler
        .terminate(pool.tree().child("front").unwrap())
        .unwrap();
    until("the pool is over", || pool.send(()).is_err());
    open.send(()).unwrap();
    let error = call.wait_timeout(PATIENCE).unwrap_err();
    assert_eq!(why(&error), Some(&PoolError::Stopping));
    let stats = pool.stats();
    assert_eq!((stats.queued, stats.retried), (0, 1));
}

/// Checks that the stop does not wait, as no job waits.
// pins: W2, W13
#[test]
fn a_pool_stops_while_a_worker_waits_for_its_function() {
    sim(50).check_seeds(20, |rt| {
        let broken = Arc::new(AtomicUsize::new(0));
        let theirs = Arc::clone(&broken);
        let work = move || {
            assert_eq!(theirs.load(Ordering::SeqCst), 0, "on purpose");
            |by: u32| Ok(100 / by)
        };
        let pool = Pool::new(2, work);
        let pool = match rt.choose(2) {
            0 => pool,
            _ => pool.adaptive(1, ms(5), secs(60)),
        };
        let pool = pool.start(rt).unwrap();
        broken.store(1, Ordering::SeqCst);
        let panics = pool.call(0).begin();
        rt.run_for(secs(3));
        assert!(panics.is_ready());
        let before = rt.now();
        stop(rt, pool);
        assert!(rt.now() < before + ms(1));
    });
}

/// Panics with jobs are no reason to wait.
// pins: W13
#[test]
fn a_worker_that_panics_with_jobs_is_replaced_at_once() {
    sim(45).check_seeds(10, |rt| {
        let pool = Pool::new(1, || |by: u32| Ok(100 / by));
        let pool = pool.back_off(secs(60)).start(rt).unwrap();
        let calls = [0, 0, 0, 0, 4].map(|by| pool.call(by).begin());
        rt.run_for(ms(1));
        let [.., last] = calls;
        assert!(last.is_ready());
        assert_eq!(last.wait().unwrap(), 25);
        stop(rt, pool);
    });
}

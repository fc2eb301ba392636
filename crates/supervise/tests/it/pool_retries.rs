//! Waits of pools before a further try of a job.

use crate::pools::{stop, why};
use crate::support::*;
use ganger_proc_api::BoxError;
use ganger_sim::Rt;
use ganger_supervise::{BackOff, Overload, Pool, PoolError, PoolHandle};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A job, and the number of its failures: panics for an odd job, errors for an even job.
type Job = (u64, u32);

/// The begun tries, with their times since the start of the pool.
#[derive(Clone, Default)]
struct Tries(Arc<Mutex<Vec<(u64, Duration)>>>);

impl Tries {
    fn of(&self, job: u64) -> Vec<Duration> {
        let tries = self.0.lock().unwrap();
        let own = tries.iter().filter(|it| it.0 == job);
        own.map(|it| it.1).collect()
    }
}

fn exact(first: Duration) -> BackOff {
    BackOff::from(first).jitter(0.0)
}

fn flaky(
    rt: &Rt<'_>,
    tries: &Tries,
    pool: impl FnOnce(Pool<Job, u64>) -> Pool<Job, u64>,
) -> PoolHandle<Job, u64> {
    let (tries, clock) = (tries.clone(), rt.clock());
    let work = move || {
        let (tries, clock) = (tries.clone(), clock.clone());
        move |(job, fails): Job| {
            let before = tries.of(job).len();
            tries.0.lock().unwrap().push((job, clock.now()));
            if before >= fails as usize {
                return Ok(job);
            }
            assert!(job.is_multiple_of(2), "on purpose");
            Err(BoxError::from("no network"))
        }
    };
    let pool = pool(Pool::new(2, work)).start(rt).unwrap();
    rt.settle();
    pool
}

/// Checks that the tries are this number of milliseconds apart, except for the time of turns.
#[track_caller]
fn assert_apart(tries: &[Duration], millis: &[u64]) {
    let apart: Vec<_> = tries.windows(2).map(|it| it[1] - it[0]).collect();
    assert_eq!(apart.len(), millis.len(), "{apart:?}");
    for (apart, millis) in apart.iter().zip(millis) {
        assert!((ms(*millis)..ms(*millis + 2)).contains(apart), "{apart:?}");
    }
}

// pins: W15
#[test]
fn a_job_that_fails_is_tried_again_after_waits_that_grow() {
    sim(111).check_seeds(40, |rt| {
        let tries = Tries::default();
        let pool = flaky(rt, &tries, |it| match rt.choose(3) {
            0 => it.retries(4).retry(exact(ms(100))),
            1 => it.retry(exact(ms(100))).retries(4).lazy(ms(50)),
            _ => it
                .retry(exact(ms(100)))
                .retries(4)
                .adaptive(1, ms(1), ms(50)),
        });
        let calls = [(0, 3), (1, 3)].map(|job| pool.call_by(job.0, job).begin());
        rt.run_for(ms(1));
        assert_eq!((pool.stats().queued, pool.stats().in_flight), (2, 0));
        // A new job does not wait for the retries.
        assert_eq!(rt.answer(pool.call((2, 0))).unwrap(), 2);
        rt.run_for(ms(1_000));
        for (job, call) in (0..).zip(calls) {
            assert_eq!(call.wait().unwrap(), job);
            assert_apart(&tries.of(job), &[100, 200, 400]);
        }
        let stats = pool.stats();
        assert_eq!((stats.queued, stats.retried, stats.served), (0, 6, 3));
        stop(rt, pool);
    });
}

// pins: W15
#[test]
fn the_last_failure_is_the_answer() {
    sim(112).check_seeds(20, |rt| {
        let tries = Tries::default();
        // Without a number it is three times.
        let pool = flaky(rt, &tries, |it| it.retry(exact(ms(10))));
        let calls = [(0, 9), (1, 9)].map(|job| pool.call(job).begin());
        rt.run_for(ms(200));
        let [failed, panicked] = calls.map(|it| it.wait().unwrap_err());
        assert!(failed.to_string().contains("no network"), "{failed}");
        assert!(matches!(why(&panicked), Some(PoolError::Panicked(_))));
        for job in [0, 1] {
            assert_apart(&tries.of(job), &[10, 20, 40]);
        }
        let stats = pool.stats();
        assert_eq!((stats.retried, stats.served, stats.panicked), (6, 1, 1));
        stop(rt, pool);
    });
}

// pins: W15
#[test]
fn a_job_that_has_been_tried_does_not_expire() {
    sim(115).check_seeds(10, |rt| {
        let tries = Tries::default();
        let pool = flaky(rt, &tries, |it| {
            it.retry(exact(ms(100))).time_to_live(ms(50))
        });
        assert_eq!(rt.answer(pool.call((0, 2))).unwrap(), 0);
        assert_apart(&tries.of(0), &[100, 200]);
        stop(rt, pool);
    });
}

// pins: W3
#[test]
fn without_a_wait_an_error_is_the_answer() {
    sim(113).check_seeds(10, |rt| {
        let tries = Tries::default();
        let pool = flaky(rt, &tries, |it| it.retries(3));
        let error = rt.answer(pool.call((0, 1))).unwrap_err();
        assert!(error.to_string().contains("no network"), "{error}");
        assert_eq!(rt.answer(pool.call((1, 2))).unwrap(), 1);
        assert_eq!((tries.of(0).len(), tries.of(1).len()), (1, 3));
        stop(rt, pool);
    });
}

// pins: W15, W5
#[test]
fn a_job_that_waits_for_its_next_try_has_a_place_until_its_caller_leaves() {
    sim(114).check_seeds(40, |rt| {
        let tries = Tries::default();
        let overload = [Overload::RefuseNewest, Overload::RefuseOldest][rt.choose(2)];
        let pool = flaky(rt, &tries, |it| {
            it.retry(exact(secs(10))).queue(1, overload)
        });
        let fails = pool.call((0, 9)).begin();
        rt.run_for(ms(1));
        assert_eq!(pool.stats().queued, 1);
        let refused = rt.answer(pool.call((2, 0))).unwrap_err();
        assert_eq!(why(&refused), Some(&PoolError::Full { queued: 1 }));
        drop(fails);
        rt.settle();
        assert_eq!((pool.stats().queued, pool.stats().left), (0, 1));
        assert_eq!(rt.answer(pool.call((2, 0))).unwrap(), 2);
        rt.run_for(secs(60));
        assert_eq!(tries.of(0).len(), 1);
        stop(rt, pool);
    });
}

// pins: W15, W2
#[test]
fn a_stop_waits_for_no_next_try() {
    sim(115).check_seeds(40, |rt| {
        let tries = Tries::default();
        let pool = flaky(rt, &tries, |it| it.retries(2).retry(exact(secs(1_000))));
        let calls = [(0, 2), (1, 1), (2, 9)].map(|job| pool.call(job).begin());
        rt.run_for(ms(rt.choose(3) as u64));
        let begin = rt.now();
        stop(rt, pool);
        assert!(rt.now() - begin < secs(1));
        let [a, b, c] = calls.map(|it| it.wait());
        assert_eq!((a.unwrap(), b.unwrap()), (0, 1));
        assert!(c.is_err());
        assert_eq!(tries.of(2).len(), 3);
    });
}

// pins: W15, W9
#[test]
fn an_inline_pool_tries_again_at_once() {
    sim(116).run(|rt| {
        let calls = Mutex::new(0);
        let work = Arc::new(move |fails: u32| {
            let mut calls = calls.lock().unwrap();
            *calls += 1;
            match *calls <= fails {
                true => Err(BoxError::from("no network")),
                false => Ok(*calls),
            }
        });
        let make = move || {
            let work = Arc::clone(&work);
            move |fails| work(fails)
        };
        let pool = Pool::inline(make).retry(exact(secs(9))).start(rt).unwrap();
        assert_eq!(pool.call(3).wait().unwrap(), 4);
        stop(rt, pool);
    });
}

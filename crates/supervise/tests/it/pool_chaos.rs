//! Pools of all kinds under panics, leaving callers and failing factories.

use crate::pools::{stop, why};
use crate::support::*;
use ganger_supervise::{BackOff, Overload, Pool, PoolError, Routing};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The numbers of living functions of workers: now, and at the peak.
#[derive(Default)]
struct Functions {
    now: AtomicUsize,
    most: AtomicUsize,
    /// The number of calls of the factory that fail from now on.
    fail: AtomicUsize,
}

/// Counts a worker's function, as a part of the function.
struct Counted(Arc<Functions>);

impl Counted {
    fn new(functions: &Arc<Functions>) -> Self {
        let fewer = |it: usize| it.checked_sub(1);
        let fails = functions
            .fail
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer);
        assert!(fails.is_err(), "it can't be made, on purpose");
        let now = 1 + functions.now.fetch_add(1, Ordering::SeqCst);
        functions.most.fetch_max(now, Ordering::SeqCst);
        Self(Arc::clone(functions))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The end of a job, by its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Fate {
    Served,
    Panicked,
    Refused,
    Left,
}

// pins: W1, W2, W3, W4, W5, W6, W7, W8, W9, W10, W14, W15
#[test]
fn whatever_the_pool_is_like_each_job_has_one_fate_and_the_counts_agree() {
    let factor = std::env::var("GANGER_STRESS").map_or(1, |text| text.parse().unwrap());
    sim(43).check_seeds(400 * factor, |rt| {
        let begun = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::new(Mutex::new(Vec::new()));
        let (note, tell) = (Arc::clone(&begun), Arc::clone(&told));
        let functions = Arc::new(Functions::default());
        let theirs = Arc::clone(&functions);
        let work = move || {
            let begun = Arc::clone(&note);
            let counted = Counted::new(&theirs);
            move |job: u64| {
                let _its = &counted;
                begun.lock().unwrap().push(job);
                assert_ne!(job % 5, 4, "on purpose");
                Ok(job)
            }
        };
        let routes = [
            Routing::Free,
            Routing::RoundRobin,
            Routing::Random,
            Routing::LeastLoaded,
        ];
        let overloads = [
            Overload::Wait,
            Overload::RefuseNewest,
            Overload::RefuseOldest,
        ];
        let retries = u32::try_from(rt.choose(3)).unwrap();
        let (kind, most) = (rt.choose(4), 1 + rt.choose(6));
        let pool = match kind {
            0 => Pool::inline(work),
            1 => Pool::new(3, work),
            2 => Pool::new(3, work).lazy(ms(50)),
            _ => Pool::new(3, work).adaptive(1, ms(1), ms(50)),
        };
        let pool = pool
            .routing(routes[rt.choose(4)])
            .queue(most, overloads[rt.choose(3)])
            .retries(retries)
            .priorities(1 + rt.choose(3))
            .intensity(u32::MAX, secs(5))
            .on_refused(move |job, _| tell.lock().unwrap().push(job));
        let pool = match retries > 0 && rt.choose(2) == 0 {
            true => pool.retry(BackOff::from(ms(20))),
            false => pool,
        };
        let pool = pool.start(rt).unwrap();
        let mut calls = Vec::new();
        for job in 0..20 + rt.choose(20) as u64 {
            let pool_at = pool.with_priority(rt.choose(3));
            let call = match rt.choose(2) {
                0 => pool_at.call(job),
                _ => pool_at.call_by(job % 3, job),
            };
            calls.push(Some(call.begin()));
            match rt.choose(12) {
                0 => drop(calls.last_mut().and_then(Option::take)),
                1 => pool.suspend(),
                2 => pool.resume(),
                3 => rt.run_for(ms(rt.choose(100) as u64)),
                4 if kind > 0 => functions.fail.store(rt.choose(4), Ordering::SeqCst),
                _ => {}
            }
            for _ in 0..rt.choose(12) {
                rt.step();
            }
        }
        pool.resume();
        let remote = pool.remote();
        match rt.choose(3) {
            0 => rt.settle(),
            1 => drop(pool.tree().cancel("enough")),
            _ => {}
        }
        stop(rt, pool);
        let fates = calls
            .into_iter()
            .map(|call| match call.map(|it| it.wait()) {
                Some(Ok(_)) => Fate::Served,
                Some(Err(error)) => match why(&error) {
                    Some(PoolError::Panicked(_)) => Fate::Panicked,
                    Some(PoolError::Full { .. } | PoolError::Stopping) => Fate::Refused,
                    other => panic!("{other:?}"),
                },
                None => Fate::Left,
            });
        let fates: Vec<_> = fates.collect();
        let (begun, told) = (begun.lock().unwrap(), told.lock().unwrap());
        let stats = remote.stats();
        let most = functions.most.load(Ordering::SeqCst);
        assert!(kind == 0 || most <= 3, "{most} workers of 3");
        assert_eq!((stats.queued, stats.in_flight, stats.workers), (0, 0, 0));
        for (job, fate) in fates.iter().enumerate() {
            let times = |all: &[u64]| all.iter().filter(|it| **it == job as u64).count();
            let is = (times(&begun), times(&told));
            let tries = 1 + retries as usize;
            match fate {
                Fate::Served => assert_eq!(is, (1, 0), "{job}"),
                Fate::Panicked => assert_eq!(is, (tries, 0), "{job}"),
                // The pool may refuse a job after its panic.
                Fate::Refused if job % 5 == 4 => assert!(is.0 < tries && is.1 == 1, "{job}"),
                Fate::Refused => assert_eq!(is, (0, 1), "{job}"),
                Fate::Left => assert!(is.0 <= tries && is.1 <= 1, "{job}"),
            }
        }
        let ends = stats.served + stats.panicked + stats.refused + stats.left;
        assert_eq!((ends, stats.expired), (fates.len() as u64, 0));
        assert_eq!(stats.refused, told.len() as u64);
        assert_eq!(
            stats.served + stats.panicked + stats.retried,
            begun.len() as u64
        );
    });
}

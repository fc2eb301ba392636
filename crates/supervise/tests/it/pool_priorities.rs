//! Pools whose jobs have priorities.

use crate::pools::{stop, why};
use crate::support::*;
use ganger_sim::Rt;
use ganger_supervise::{Overload, Pool, PoolError, PoolHandle, Refused};
use std::sync::{Arc, Mutex};

type Jobs = Arc<Mutex<Vec<u64>>>;

/// Starts a pool of one worker, which notes the jobs that it begins, and the refused jobs.
fn noting(rt: &Rt<'_>, pool: impl FnOnce(Pool<u64, u64>) -> Pool<u64, u64>) -> Noting {
    let [begun, refused] = [0; 2].map(|_| Jobs::default());
    let (notes, refuses) = (Arc::clone(&begun), Arc::clone(&refused));
    let work = move || {
        let notes = Arc::clone(&notes);
        move |job| {
            notes.lock().unwrap().push(job);
            Ok(job)
        }
    };
    let new = Pool::new(1, work).on_refused(move |job, _| refuses.lock().unwrap().push(job));
    let pool = pool(new).start(rt).unwrap();
    rt.settle();
    Noting {
        pool,
        begun,
        refused,
    }
}

struct Noting {
    pool: PoolHandle<u64, u64>,
    begun: Jobs,
    refused: Jobs,
}

/// A model of a pool in which all jobs wait: a list of priority and job, in the order of admission.
struct Plain {
    most: usize,
    overload: Overload,
    waits: Vec<(usize, u64)>,
    refused: Vec<u64>,
}

impl Plain {
    fn admit(&mut self, priority: usize, job: u64) {
        self.waits.push((priority, job));
        if self.waits.len() <= self.most || self.overload == Overload::Wait {
            return;
        }
        let lowest = self.waits.iter().map(|it| it.0).min();
        let mut of_lowest = self.waits.iter().map(|it| Some(it.0) == lowest);
        let victim = match self.overload {
            Overload::RefuseOldest => of_lowest.position(|it| it),
            _ => of_lowest.rposition(|it| it),
        };
        self.refused.push(self.waits.remove(victim.unwrap()).1);
    }

    fn order(mut self) -> Vec<u64> {
        self.waits.sort_by_key(|it| std::cmp::Reverse(it.0));
        self.waits.into_iter().map(|it| it.1).collect()
    }
}

// pins: W14
#[test]
fn jobs_of_a_higher_priority_come_first_and_the_lowest_give_way() {
    sim(101).check_seeds(200, |rt| {
        let overloads = [
            Overload::Wait,
            Overload::RefuseNewest,
            Overload::RefuseOldest,
        ];
        let overload = overloads[rt.choose(3)];
        let (priorities, most) = (1 + rt.choose(4), 1 + rt.choose(6));
        let noting = noting(rt, |it| it.priorities(priorities).queue(most, overload));
        let pool = &noting.pool;
        let mut plain = Plain {
            most,
            overload,
            waits: Vec::new(),
            refused: Vec::new(),
        };
        pool.suspend();
        let mut calls = Vec::new();
        for job in 0..rt.choose(20) as u64 {
            // A priority above the highest counts as the highest.
            let priority = rt.choose(priorities + 1);
            plain.admit(priority.min(priorities - 1), job);
            let remote = pool.with_priority(priority);
            match rt.choose(3) {
                0 => {
                    if let Err(Refused { job, error }) = remote.send(job) {
                        assert_eq!(error, PoolError::Full { queued: most });
                        noting.refused.lock().unwrap().push(job);
                    }
                }
                1 => calls.push((job, remote.call(job).begin())),
                _ => calls.push((job, remote.call_by(job, job).begin())),
            }
        }
        rt.settle();
        assert_eq!(pool.stats().queued, plain.waits.len());
        pool.resume();
        rt.settle();
        assert_eq!(*noting.refused.lock().unwrap(), plain.refused);
        for (job, call) in calls {
            match call.wait() {
                Ok(answer) => assert_eq!(answer, job),
                Err(error) => {
                    assert_eq!(why(&error), Some(&PoolError::Full { queued: most }));
                    assert!(plain.refused.contains(&job));
                }
            }
        }
        assert_eq!(pool.stats().queued, 0);
        let begun = noting.begun.lock().unwrap().clone();
        // Within a priority, the worker takes its own jobs before the common jobs. The test has
        // both.
        let mut order = plain.order();
        let mut sorted = begun.clone();
        sorted.sort_unstable();
        order.sort_unstable();
        assert_eq!(sorted, order);
        stop(rt, noting.pool);
    });
}

// pins: W14
#[test]
fn within_a_priority_jobs_are_begun_in_the_order_of_their_calls() {
    sim(102).check_seeds(60, |rt| {
        let noting = noting(rt, |it| it.priorities(3));
        noting.pool.suspend();
        let is_keyed = rt.choose(2) == 0;
        let mut plain = Plain {
            most: usize::MAX,
            overload: Overload::Wait,
            waits: Vec::new(),
            refused: Vec::new(),
        };
        let mut calls = Vec::new();
        for job in 0..20 {
            let priority = rt.choose(3);
            plain.admit(priority, job);
            let remote = noting.pool.with_priority(priority);
            match is_keyed {
                true => calls.push(remote.call_by("key", job).begin()),
                false => remote.send(job).unwrap(),
            }
        }
        noting.pool.resume();
        rt.settle();
        assert_eq!(*noting.begun.lock().unwrap(), plain.order());
        stop(rt, noting.pool);
    });
}

// pins: W14, W6
#[test]
fn a_worker_takes_an_urgent_job_of_all_before_its_own() {
    sim(104).check_seeds(20, |rt| {
        let noting = noting(rt, |it| it.priorities(2));
        let (pool, urgent) = (&noting.pool, noting.pool.with_priority(1));
        pool.suspend();
        pool.send(1).unwrap();
        let own = pool.call_by("key", 2).begin();
        urgent.send(3).unwrap();
        let urgent = urgent.call_by("key", 4).begin();
        pool.resume();
        rt.settle();
        assert_eq!(*noting.begun.lock().unwrap(), [4, 3, 2, 1]);
        assert!(own.is_ready() && urgent.is_ready());
        stop(rt, noting.pool);
    });
}

// pins: W14, W2
#[test]
fn a_stop_carries_out_jobs_of_all_priorities() {
    sim(103).check_seeds(40, |rt| {
        let noting = noting(rt, |it| it.priorities(2).lazy(secs(1)));
        noting.pool.suspend();
        for job in 0..10 {
            let remote = noting.pool.with_priority(rt.choose(2));
            remote.send(job).unwrap();
        }
        let Noting { pool, begun, .. } = noting;
        stop(rt, pool);
        let mut begun = begun.lock().unwrap().clone();
        begun.sort_unstable();
        assert_eq!(begun, (0..10).collect::<Vec<_>>());
    });
}

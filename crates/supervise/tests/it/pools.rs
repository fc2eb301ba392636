//! Pools.

use crate::support::*;
use ganger_proc_api::{BoxError, CommandError, ExitReason};
use ganger_sched::{NotStarted, Scheduler};
use ganger_sim::Rt;
use ganger_supervise::{Overload, Pool, PoolError, PoolHandle, PoolRemote, Refused, Routing};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

pub(crate) fn why(error: &CommandError) -> Option<&PoolError> {
    match error {
        CommandError::Failed(error) => error.downcast_ref(),
        _ => None,
    }
}

/// Ends with 100 divided by the job; a job of 0 panics.
pub(crate) fn divide() -> impl FnMut(u32) -> Result<u32, BoxError> + Send + 'static {
    |by| {
        if by == 13 {
            Err("no 13".into())
        } else {
            Ok(100 / by)
        }
    }
}

// pins: W1
#[test]
fn a_pool_answers_and_a_worker_that_panics_is_replaced() {
    sim(30).check_seeds(40, |rt| {
        let pool = Pool::new(2, divide).start(rt).unwrap();
        let calls: Vec<_> = [1, 2, 0, 4, 13, 5].map(|by| pool.call(by).begin()).into();
        rt.settle();
        let answers: Vec<_> = calls
            .into_iter()
            .map(|it| it.wait().map_err(|it| it.to_string()))
            .collect();
        let is = |index: usize, answer| assert_eq!(answers[index], Ok::<u32, String>(answer));
        is(0, 100);
        is(1, 50);
        is(3, 25);
        is(5, 20);
        assert!(answers[2].as_ref().unwrap_err().contains("panicked"));
        assert!(answers[4].as_ref().unwrap_err().contains("no 13"));
        let stats = pool.stats();
        assert_eq!((stats.served, stats.panicked, stats.workers), (5, 1, 2));
        assert_eq!((stats.queued, stats.in_flight, stats.idle), (0, 0, 2));
        pool.begin_stop();
        let end = rt.wait(pool.into_tree().into_handle());
        assert!(matches!(end, ExitReason::Cancelled(_)), "{end}");
    });
}

// pins: F1
#[test]
fn a_caller_is_told_that_the_scheduler_of_the_pool_was_never_started() {
    let scheduler = Scheduler::builder().workers(1);
    let scheduler = scheduler.build().unwrap();
    let pool = Pool::new(2, divide).start(&scheduler).unwrap();
    let Err(CommandError::Failed(error)) = pool.call(7).wait() else {
        panic!("nothing runs");
    };
    assert!(error.is::<NotStarted>(), "{error}");
    let answer = pool.call(7).begin();
    scheduler.start().unwrap();
    assert_eq!(answer.wait().unwrap(), 14);
}

// pins: W2
#[test]
fn a_stop_serves_what_was_admitted_and_refuses_the_rest() {
    sim(31).check_seeds(100, |rt| {
        let done = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&done);
        let work = move || {
            let count = Arc::clone(&count);
            move |panics: bool| {
                count.fetch_add(1, Ordering::Relaxed);
                assert!(!panics, "on purpose");
                Ok(())
            }
        };
        let pool = Pool::new(2, work).start(rt).unwrap();
        let mut calls = Vec::new();
        let stop = rt.choose(20);
        for number in 0..20 {
            if number == stop {
                for _ in 0..rt.choose(30) {
                    rt.step();
                }
                pool.begin_stop();
            }
            calls.push(pool.call(number % 7 == 3).begin());
        }
        let end = rt.wait(pool.into_tree().into_handle());
        assert!(matches!(end, ExitReason::Cancelled(_)), "{end}");
        let (mut served, mut refused) = (0, 0);
        for call in calls {
            match call.wait() {
                Ok(()) => served += 1,
                Err(error) => match why(&error) {
                    Some(PoolError::Panicked(_)) => served += 1,
                    Some(PoolError::Stopping) => refused += 1,
                    other => panic!("{other:?}"),
                },
            }
        }
        assert_eq!(
            (served, served + refused),
            (done.load(Ordering::Relaxed), 20)
        );
    });
}

// pins: W3
#[test]
fn a_job_that_panics_is_tried_again_and_what_waits_for_the_worker_stays() {
    sim(32).check_seeds(40, |rt| {
        let tries = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&tries);
        let work = move || {
            let count = Arc::clone(&count);
            move |(number, fails): (usize, usize)| {
                if fails > 0 {
                    let tried = count.fetch_add(1, Ordering::Relaxed);
                    assert!(tried >= fails, "on purpose");
                }
                Ok(number)
            }
        };
        let pool = Pool::new(1, work).retries(2).start(rt).unwrap();
        let calls = [(0, 0), (1, 2), (2, 0)].map(|job| pool.call_by("key", job).begin());
        rt.settle();
        for (index, call) in calls.into_iter().enumerate() {
            assert_eq!(call.wait().unwrap(), index);
        }
        assert_eq!(
            (tries.load(Ordering::Relaxed), pool.stats().retried),
            (3, 2)
        );
        pool.begin_stop();
        rt.wait(pool.into_tree().into_handle());
    });
}

// pins: W4
#[test]
fn too_many_jobs_are_refused_by_the_policy_and_old_ones_are_not_begun() {
    for (overload, expected) in [
        (Overload::RefuseNewest, [true, true, false, false]),
        (Overload::RefuseOldest, [false, false, true, true]),
        (Overload::Wait, [true; 4]),
    ] {
        sim(33).check_seeds(20, |rt| {
            let pool = Pool::new(1, divide).queue(2, overload).start(rt).unwrap();
            pool.suspend();
            let calls = [1, 2, 3, 4].map(|by| pool.call(by).begin());
            rt.settle();
            pool.resume();
            rt.settle();
            let got = calls.map(|call| call.wait());
            for (index, got) in got.iter().enumerate() {
                match got {
                    Ok(_) => assert!(expected[index], "{overload:?} {index}"),
                    Err(error) => {
                        assert!(!expected[index], "{overload:?} {index}");
                        assert_eq!(why(error), Some(&PoolError::Full { queued: 2 }));
                    }
                }
            }
            pool.begin_stop();
            rt.wait(pool.into_tree().into_handle());
        });
    }
    sim(34).check_seeds(20, |rt| {
        let pool = Pool::new(1, divide)
            .time_to_live(secs(1))
            .start(rt)
            .unwrap();
        pool.suspend();
        let old = pool.call(1).begin();
        rt.settle();
        rt.run_for(secs(2));
        let new = pool.call(1).begin();
        rt.run_for(ms(1));
        pool.resume();
        rt.settle();
        assert_eq!(why(&old.wait().unwrap_err()), Some(&PoolError::Expired));
        assert_eq!(new.wait().unwrap(), 100);
        pool.begin_stop();
        rt.wait(pool.into_tree().into_handle());
    });
}

// pins: W5
#[test]
fn a_caller_that_leaves_passes_its_turn_on() {
    sim(35).check_seeds(40, |rt| {
        let pool = Pool::new(1, divide).start(rt).unwrap();
        pool.suspend();
        let leaves = pool.call(0).begin();
        let stays = pool.call(2).begin();
        rt.settle();
        drop(leaves);
        pool.resume();
        rt.settle();
        assert_eq!(stays.wait().unwrap(), 50);
        let stats = pool.stats();
        assert_eq!((stats.left, stats.panicked, stats.served), (1, 0, 1));
        pool.begin_stop();
        rt.wait(pool.into_tree().into_handle());
    });
}

// pins: W6
#[test]
fn a_key_leads_to_one_worker_and_the_others_share() {
    sim(36).check_seeds(20, |rt| {
        let next = AtomicUsize::new(0);
        // Each worker answers with its number.
        let make = move || {
            let number = next.fetch_add(1, Ordering::Relaxed);
            move |(): ()| Ok(number)
        };
        let pool = Pool::new(4, make)
            .routing(Routing::RoundRobin)
            .start(rt)
            .unwrap();
        let answer = |call: ganger_sched::Call<usize>| rt.answer(call).unwrap();
        for key in 0..20 {
            let first = answer(pool.call_by(key, ()));
            assert_eq!(answer(pool.call_by(key, ())), first);
        }
        let all: HashSet<_> = (0..4).map(|_| answer(pool.call(()))).collect();
        assert_eq!(all.len(), 4);
        stop(rt, pool);
        let next = AtomicUsize::new(0);
        let make = move || {
            let number = next.fetch_add(1, Ordering::Relaxed);
            move |(): ()| Ok(number)
        };
        let pool = Pool::new(4, make).routing(Routing::Random);
        let pool = pool.start(rt).unwrap();
        let mut counts = [0; 4];
        for _ in 0..200 {
            counts[rt.answer(pool.call(())).unwrap()] += 1;
        }
        assert!(
            counts.iter().all(|count| (20..90).contains(count)),
            "{counts:?}"
        );
        stop(rt, pool);
    });
}

// pins: W7
#[test]
fn a_lazy_pool_has_workers_while_there_are_jobs() {
    sim(37).check_seeds(40, |rt| {
        let pool = Pool::new(3, divide).lazy(secs(30)).start(rt).unwrap();
        assert_eq!(pool.stats().workers, 0);
        let calls = [1, 2, 0, 4, 5].map(|by| pool.call(by).begin());
        rt.run_for(secs(1));
        assert_eq!(pool.stats().served, 4);
        let workers = pool.stats().workers;
        assert!((1..=3).contains(&workers), "{workers}");
        drop(calls);
        rt.run_for(secs(40));
        assert_eq!((pool.stats().workers, pool.stats().idle), (0, 0));
        assert_eq!(rt.answer(pool.call(4)).unwrap(), 25);
        pool.begin_stop();
        rt.wait(pool.into_tree().into_handle());
    });
}

/// Checks that the worker of a key in a pool tells nothing of its worker in another pool.
// pins: W6
#[test]
fn the_worker_of_a_key_differs_from_pool_to_pool() {
    let scheduler = start(2);
    let worker = |_| {
        let made = AtomicUsize::new(0);
        let work = move || {
            let number = made.fetch_add(1, Ordering::Relaxed);
            move |(): ()| Ok(number)
        };
        let pool = Pool::new(8, work).start(&scheduler).unwrap();
        let answers = [(); 3].map(|()| pool.call_by("key", ()).wait().unwrap());
        assert_eq!(answers, [answers[0]; 3]);
        pool.stop();
        answers[0]
    };
    let workers: HashSet<_> = (0..20).map(worker).collect();
    assert!(workers.len() > 1, "{workers:?}");
}

// pins: W2, D2
#[test]
fn a_lazy_pool_carries_out_in_a_stop_of_the_scheduler_what_it_has_admitted() {
    sim(42).check_seeds(40, |rt| {
        let pool = Pool::new(3, divide).lazy(secs(30)).start(rt).unwrap();
        rt.settle();
        let calls = [1, 2, 4, 5].map(|by| pool.call(by).begin());
        assert_eq!(rt.stop(secs(10)).forced, 0);
        for call in calls {
            call.wait().unwrap();
        }
    });
}

/// Has the pool stop, and goes on until it has.
pub(crate) fn stop<J: Send + 'static, A: Send + 'static>(rt: &Rt<'_>, pool: PoolHandle<J, A>) {
    pool.begin_stop();
    let end = rt.wait(pool.into_tree().into_handle());
    assert!(matches!(end, ExitReason::Cancelled(_)), "{end}");
}

// pins: W8
#[test]
fn an_adaptive_pool_grows_while_jobs_wait_and_shrinks_when_workers_are_idle() {
    sim(38).check_seeds(40, |rt| {
        let pool = Pool::new(4, divide)
            .adaptive(1, ms(100), secs(30))
            .start(rt)
            .unwrap();
        let workers = || pool.stats().workers;
        rt.settle();
        assert_eq!(workers(), 1);
        // A short burst starts no worker.
        let burst: Vec<_> = (1..50).map(|by| pool.call(by).begin()).collect();
        rt.settle();
        assert!(burst.iter().all(ganger_sched::Answer::is_ready));
        assert_eq!(workers(), 1);
        // The workers take no job: a worker more starts each 100 ms, up to four.
        let suspended = rt.choose(2) == 0;
        if suspended {
            pool.suspend();
            let waits = pool.call(1).begin();
            rt.run_for(secs(1));
            assert_eq!(workers(), 1, "a suspended pool does not grow");
            pool.resume();
            rt.settle();
            drop(waits);
        }
        rt.run_for(secs(60));
        assert_eq!((workers(), pool.stats().idle), (1, 1));
        stop(rt, pool);
    });
}

// pins: W8
#[test]
fn an_adaptive_pool_whose_workers_are_busy_has_more_of_them() {
    let scheduler = start(2);
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let work = move || {
        let gate = Arc::clone(&gate);
        move |(): ()| Ok(gate.lock().unwrap().recv()?)
    };
    let pool = Pool::new(3, work)
        .adaptive(1, ms(1), ms(1))
        .start(&scheduler)
        .unwrap();
    let calls: Vec<_> = (0..10).map(|_| pool.call(()).begin()).collect();
    until("all workers are started", || pool.stats().in_flight == 3);
    assert_eq!(pool.stats().workers, 3);
    for _ in 0..10 {
        open.send(()).unwrap();
    }
    for call in calls {
        call.wait().unwrap();
    }
    until("one worker is left", || pool.stats().workers == 1);
    assert!(matches!(pool.stop(), ExitReason::Cancelled(_)));
}

/// Takes the second pool as the clock of the first: the first pool would have had the time for the
/// same starts.
// pins: W8
#[test]
fn an_adaptive_pool_has_patience() {
    let scheduler = start(2);
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let work = move || {
        let gate = Arc::clone(&gate);
        move |(): ()| Ok(gate.lock().unwrap().recv()?)
    };
    let [patient, hasty] = [secs(3_600), ms(1)].map(|patience| {
        let pool = Pool::new(3, work.clone()).adaptive(1, patience, secs(30));
        pool.start(&scheduler).unwrap()
    });
    let calls = |pool: &PoolHandle<(), ()>| [(); 5].map(|()| pool.call(()).begin());
    let patient_calls = calls(&patient);
    until("a job is carried out", || patient.stats().in_flight == 1);
    let hasty_calls = calls(&hasty);
    until("all workers are started", || hasty.stats().in_flight == 3);
    assert_eq!(patient.stats().workers, 1);
    for _ in 0..10 {
        open.send(()).unwrap();
    }
    for call in patient_calls.into_iter().chain(hasty_calls) {
        call.wait().unwrap();
    }
    for pool in [patient, hasty] {
        assert!(matches!(pool.stop(), ExitReason::Cancelled(_)));
    }
}

// pins: W9
#[test]
fn an_inline_pool_carries_jobs_out_where_they_are_called() {
    sim(39).check_seeds(20, |rt| {
        let (tell, refused) = std::sync::mpsc::channel();
        // A job calls the pool with the job below it.
        let own = Arc::new(Mutex::new(None::<PoolRemote<u32, u32>>));
        let theirs = Arc::clone(&own);
        let work = move || {
            let own = Arc::clone(&theirs);
            move |job: u32| match job {
                0 => Ok(0),
                7 => panic!("on purpose"),
                _ => {
                    let own = own.lock().unwrap().clone().ok_or("not yet")?;
                    Ok(1 + own.call(job - 1).wait()?)
                }
            }
        };
        let pool = Pool::inline(work)
            .queue(4, Overload::RefuseNewest)
            .retries(1)
            .on_refused(move |job, error| tell.send((job, error.clone())).unwrap())
            .start(rt)
            .unwrap();
        *own.lock().unwrap() = Some(pool.remote());
        // Nothing else runs meanwhile.
        assert_eq!(pool.call(3).wait().unwrap(), 3);
        let error = pool.call(4).wait().unwrap_err();
        assert!(error.to_string().contains("full: 4"), "{error}");
        let full = PoolError::Full { queued: 4 };
        assert_eq!(refused.try_iter().collect::<Vec<_>>(), [(0, full)]);
        let error = pool.call(7).wait().unwrap_err();
        assert!(matches!(why(&error), Some(PoolError::Panicked(_))));
        // The refused call had five jobs, of which four came to an end.
        let stats = pool.stats();
        assert_eq!((stats.served, stats.retried, stats.panicked), (8, 1, 1));
        assert_eq!((stats.in_flight, stats.workers), (0, 0));
        let remote = pool.remote();
        stop(rt, pool);
        let error = PoolError::Stopping;
        assert_eq!(remote.send(2), Err(Refused { job: 2, error }));
        // The function and the pool own each other.
        *own.lock().unwrap() = None;
    });
}

// pins: W4
#[test]
fn a_job_that_is_refused_comes_back_to_the_sender_or_to_the_handler() {
    sim(40).check_seeds(20, |rt| {
        let (tell, told) = std::sync::mpsc::channel();
        let pool = Pool::new(1, divide)
            .queue(1, Overload::RefuseNewest)
            .on_refused(move |job, error| tell.send((job, error.clone())).unwrap())
            .start(rt)
            .unwrap();
        pool.suspend();
        pool.send(1).unwrap();
        let error = PoolError::Full { queued: 1 };
        let refused = pool.send(2).unwrap_err();
        assert_eq!((refused.job, refused.error), (2, error.clone()));
        assert_eq!(why(&rt.answer(pool.call(3)).unwrap_err()), Some(&error));
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [(3, error)]);
        stop(rt, pool);
    });
}

// pins: W1, W2
#[test]
fn many_callers_on_threads_get_their_own_answers() {
    let scheduler = start(2);
    let seen = Arc::new(Mutex::new(HashSet::new()));
    let theirs = Arc::clone(&seen);
    let work = move || {
        let seen = Arc::clone(&theirs);
        move |job: u64| {
            assert!(
                seen.lock().unwrap().insert(job),
                "a job is carried out once"
            );
            Ok(job * 2)
        }
    };
    let pool = Pool::new(4, work).start(&scheduler).unwrap();
    thread::scope(|scope| {
        for caller in 0..4_u64 {
            let remote = pool.remote();
            scope.spawn(move || {
                for number in 0..500 {
                    let job = caller * 1_000 + number;
                    assert_eq!(remote.call(job).wait().unwrap(), 2 * job);
                }
            });
        }
    });
    assert_eq!(
        (seen.lock().unwrap().len(), pool.stats().served),
        (2_000, 2_000)
    );
    assert!(matches!(pool.stop(), ExitReason::Cancelled(_)));
}

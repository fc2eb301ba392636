//! Pools as children of a supervisor.

use crate::pools::{divide, why};
use crate::support::*;
use ganger_supervise::{Pool, PoolError, Supervisor};

// pins: W10
#[test]
fn a_pool_is_a_child_with_its_place_in_the_stop_order() {
    sim(41).check_seeds(60, |rt| {
        let log = Log::default();
        let note = log.clone();
        let work = move || {
            let log = note.clone();
            move |job: u32| {
                assert_ne!(job, 7, "on purpose");
                log.note(job.to_string());
                Ok(())
            }
        };
        let mut pool = Pool::new(2, work).intensity(0, secs(1));
        if rt.choose(2) == 0 {
            pool = pool.lazy(secs(1));
        }
        let (child, pool) = pool.into_child("pool");
        assert_eq!(pool.send(0).unwrap_err().error, PoolError::Stopping);
        let tree = Supervisor::one_for_one()
            .child("first", log.child("first"))
            .with(child)
            .child("last", log.child("last"))
            .start(rt)
            .unwrap();
        // Its workers fail too often, and it is restarted. The handle for jobs stays.
        let before = tree.child("pool").unwrap();
        let error = rt.answer(pool.call(7)).unwrap_err();
        assert!(matches!(why(&error), Some(PoolError::Panicked(_))));
        rt.run_for(secs(2));
        if pool.stats().workers > 0 {
            assert_ne!(tree.child("pool"), Some(before));
        }
        let _ = log.take();
        // The pool does the admitted jobs before the earlier child stops.
        let calls: Vec<_> = (1..5).map(|job| pool.call(job).begin()).collect();
        tree.cancel("enough").unwrap();
        end_of(rt, tree);
        for call in calls {
            call.wait().unwrap();
        }
        let mut ends = log.take();
        assert_eq!(ends.pop().unwrap(), "-first");
        ends.sort();
        assert_eq!(ends, ["-last", "1", "2", "3", "4"]);
        assert_eq!(pool.send(8).unwrap_err().job, 8);
    });
}

// pins: W10
#[test]
fn a_stop_resumes_a_pool_that_is_suspended() {
    sim(42).check_seeds(40, |rt| {
        let (child, pool) = Pool::new(1, divide).into_child("pool");
        let tree = Supervisor::one_for_one()
            .with(child.stop_within(secs(2)))
            .start(rt)
            .unwrap();
        pool.suspend();
        let calls: Vec<_> = (1..5).map(|job| pool.call(job).begin()).collect();
        rt.settle();
        // A stop resumes it, and then each job is carried out.
        tree.cancel("enough").unwrap();
        end_of(rt, tree);
        assert!(calls.into_iter().all(|it| it.wait().is_ok()));
    });
}

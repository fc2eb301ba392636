//! Limits, chosen PIDs, and settings.

use crate::support::*;
use ganger_proc_api::{Pid, SubmitErrorKind};
use ganger_sched::{ProcessState, Scheduler};
use std::sync::atomic::Ordering;
use std::thread;

// pins: P13
#[test]
fn max_processes_is_exact_under_concurrent_submits() {
    const LIMIT: usize = 50;
    let scheduler = Scheduler::builder()
        .workers(2)
        .max_processes(LIMIT)
        .build()
        .unwrap();
    scheduler.start().unwrap();
    for _ in 0..20 {
        let handles: Vec<_> = thread::scope(|scope| {
            let submitters: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let results = (0..LIMIT).map(|_| scheduler.submit(waiter(), "main", ()));
                        let (accepted, refused): (Vec<_>, Vec<_>) =
                            results.partition(Result::is_ok);
                        for error in refused.into_iter().filter_map(Result::err) {
                            let kind = &error.kind;
                            assert!(matches!(kind, SubmitErrorKind::LimitReached { max: LIMIT }));
                            assert!(error.into_process().is_some());
                        }
                        accepted
                            .into_iter()
                            .filter_map(Result::ok)
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            submitters
                .into_iter()
                .flat_map(|submitter| submitter.join().unwrap())
                .collect()
        });
        assert_eq!(handles.len(), LIMIT);
        for handle in handles {
            scheduler.cancel(handle.pid(), "next round").unwrap();
            exit(handle);
        }
    }
    // Once a handle has reported the end, the place is free.
    for _ in 0..LIMIT * 2 {
        let handle = scheduler.submit(
            process(|_, _, out| {
                out.done(());
                Ok(())
            }),
            "main",
            (),
        );
        exit(handle.unwrap());
    }
}

// pins: P14
#[test]
fn a_duplicate_pid_is_refused_and_the_first_process_untouched() {
    let scheduler = start(2);
    let pid: Pid = "{main|7}".parse().unwrap();
    let calls = Calls::new();
    let first = scheduler
        .submit_as(pid, stubborn(&calls), "main", ())
        .unwrap();
    assert_eq!(first.pid(), pid);
    until_state(&scheduler, pid, ProcessState::Idle);

    let (second, steps) = (Calls::new(), calls.steps());
    let error = scheduler
        .submit_as(pid, stubborn(&second), "main", ())
        .unwrap_err();
    assert!(matches!(error.kind, SubmitErrorKind::AlreadyExists(existing) if existing == pid));
    assert_eq!(second.inits.load(Ordering::SeqCst), 0, "init did not run");
    assert!(error.into_process().is_some());
    assert_eq!((calls.steps(), calls.closes()), (steps, 0));

    scheduler.terminate(pid).unwrap();
    exit(first);
    let again = scheduler.submit_as(pid, waiter(), "main", ()).unwrap();
    scheduler.cancel(pid, "done").unwrap();
    exit(again);

    for (text, why) in [
        ("{other|7}", "the host is not this scheduler"),
        ("{elsewhere@main|7}", "the node is not this scheduler's"),
        ("{main|4294967296}", "the id must be below 2^32"),
    ] {
        let error = scheduler
            .submit_as(text.parse().unwrap(), waiter(), "main", ())
            .unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
}

// pins: P14
#[test]
fn of_concurrent_submits_under_one_pid_one_wins() {
    let scheduler = start(2);
    for id in 0..200_u64 {
        let pid = Pid::new(scheduler.host_name(), id);
        let results: Vec<_> = thread::scope(|scope| {
            let submit = || scheduler.submit_as(pid, waiter(), "main", ());
            let submitters: Vec<_> = (0..3).map(|_| scope.spawn(submit)).collect();
            submitters
                .into_iter()
                .map(|submitter| submitter.join().unwrap())
                .collect()
        });
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
        scheduler.cancel(pid, "done").unwrap();
        results
            .into_iter()
            .filter_map(Result::ok)
            .for_each(|handle| drop(exit(handle)));
    }
    assert_eq!(scheduler.stats().live, 0);
}

#[test]
fn settings_out_of_range_say_what_is_in_range() {
    let errors = [
        Scheduler::builder().workers(0).build(),
        Scheduler::builder().workers(5000).build(),
        Scheduler::builder().max_processes(0).build(),
        Scheduler::builder().mailbox_limit(0).build(),
        Scheduler::builder().rotation(0).build(),
        Scheduler::builder().event_batch(0).build(),
        Scheduler::builder().deque_capacity(0).build(),
        Scheduler::builder().host("a b").build(),
        Scheduler::builder().node("").build(),
        Scheduler::builder().thread_name("a\0b").build(),
    ];
    let expected = [
        "workers is 0; it must be from 1 to 4096",
        "workers is 5000; it must be from 1 to 4096",
        "max_processes is 0",
        "mailbox_limit is 0",
        "rotation is 0",
        "event_batch is 0",
        "deque_capacity is 0",
        "invalid host name \"a b\"",
        "invalid node name \"\"",
        "invalid thread_name \"a\\0b\"",
    ];
    for (error, expected) in errors.into_iter().zip(expected) {
        let message = error.unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn starting_twice_is_an_error() {
    let scheduler = start(1);
    assert!(
        scheduler
            .start()
            .unwrap_err()
            .to_string()
            .contains("already")
    );
    scheduler.stop(std::time::Duration::ZERO).unwrap();
    assert!(
        scheduler
            .start()
            .unwrap_err()
            .to_string()
            .contains("stopped")
    );
}

// pins: D1
#[test]
fn a_refused_submit_gives_the_process_and_its_input_back() {
    let scheduler = start(1);
    scheduler.stop(std::time::Duration::ZERO).unwrap();
    let error = scheduler.submit(waiter(), "main", 7_u64).unwrap_err();
    let (_, input) = error.into_parts().unwrap();
    assert_eq!(input.into_first().as_u64(), Some(7));
}

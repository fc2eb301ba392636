//! The texts of the scheduler's errors: true, and stated once.

use crate::support::*;
use ganger_proc_api::{CommandId, Pid, UpgradeRequest};
use ganger_sched::{BuildError, Scheduler, StartError, StopError};
use std::error::Error;
use std::io;

#[test]
fn errors_that_show_what_they_hold_do_not_return_it_as_well() {
    let scheduler = start(1);
    let nobody: Pid = "{nobody|1}".parse().unwrap();
    let request = UpgradeRequest::process(waiter(), "main", ());
    let handler = |_, _| Ok(());
    let full = || io::Error::other("disk on fire");
    let errors: Vec<Box<dyn Error>> = vec![
        Box::new(BuildError::Affinity(full())),
        Box::new(BuildError::Backtraces(full())),
        Box::new(Scheduler::builder().host("").build().unwrap_err()),
        Box::new(StartError::Monitor(full())),
        Box::new(StartError::Spawn {
            worker: 1,
            error: full(),
        }),
        Box::new(scheduler.start().unwrap_err()),
        Box::new(StopError::Inside),
        Box::new(scheduler.cancel(nobody, "end").unwrap_err()),
        Box::new(scheduler.upgrade(nobody, request).unwrap_err()),
        Box::new(
            scheduler
                .register(CommandId::new(256), "late", handler)
                .unwrap_err(),
        ),
    ];
    for error in errors {
        assert!(error.source().is_none(), "{error}");
    }
}

// pins: P13
#[test]
fn a_limit_of_nothing_is_refused_with_the_limits_that_there_may_be() {
    let error = Scheduler::builder().mailbox_limit(0).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "mailbox_limit is 0; it must be from 1 to 2147483647"
    );
    for limit in [1, 2_147_483_647, usize::MAX] {
        assert!(Scheduler::builder().mailbox_limit(limit).build().is_ok());
    }
}

// pins: D3
#[test]
fn a_refused_stop_says_what_may_be_called_there() {
    let text = StopError::Inside.to_string();
    assert!(text.contains("use `begin_stop(deadline)`"), "{text}");
}

//! Processes of other nodes.

use crate::support::{PATIENCE, exit, puppet};
use ganger_link::LinkContext as _;
use ganger_proc_api::{ExitCause, ExitReason};
use ganger_sched::Scheduler;
use std::sync::mpsc::channel;

// pins: B12
#[test]
fn a_process_that_ends_for_a_lost_connection_is_reported_where_nothing_watches_it() {
    let (tell, told) = channel();
    let scheduler = Scheduler::builder()
        .workers(1)
        .on_failure(move |report| drop(tell.send(report.to_string())))
        .start()
        .unwrap();
    let (seen, unseen) = (puppet(&scheduler), puppet(&scheduler));
    let seen_pid = seen.pid();
    let last = unseen.pid();
    drop(unseen);
    let cuts = puppet(&scheduler);
    cuts.have(move |ctx, _| {
        ctx.exit(seen_pid, ExitCause::NoConnection)?;
        Ok(ctx.exit(last, ExitCause::NoConnection)?)
    });
    let reason = exit(seen.handle);
    assert!(matches!(
        reason,
        ExitReason::Exited(ExitCause::NoConnection)
    ));
    let line = told.recv_timeout(PATIENCE).unwrap();
    assert!(
        line.contains(&last.to_string()) && line.ends_with("no connection to its node"),
        "{line}"
    );
    assert!(told.try_recv().is_err());
}

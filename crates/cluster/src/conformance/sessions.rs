//! The end of a connection, and of a node.

use super::parts::Strings;
use super::{Ground as _, Harness};
use ganger_link::LinkContext as _;
use ganger_proc_api::ExitCause;
use std::time::Duration;

/// Loses a connection: each monitor and each link across is told so, once, at both sides. There are
/// ten thousand monitors, and a hundred thousand in a full run.
pub fn the_end_of_the_connection_is_told_once<H: Harness>(ground: H::Ground) {
    let many = ground.count(10_000, 100_000);
    let harness = H::start(ground);
    if harness.is_one() {
        return;
    }
    let near = Strings::start(harness.near());
    let far = Strings::start(harness.far());
    let (near_pid, far_pid) = (harness.near_pid(near.pid()), harness.far_pid(far.pid()));
    let linked = Strings::start(harness.far());
    let linked_pid = harness.far_pid(linked.pid());
    near.done(move |ctx, _| {
        ctx.trap_exits(42);
        for tag in 0..many {
            ctx.monitor(far_pid, tag)?;
        }
        Ok(ctx.link(linked_pid)?)
    });
    far.done(move |ctx, _| Ok(ctx.monitor(near_pid, 7)?));
    // All has arrived.
    let witness = Strings::start(harness.far());
    harness.far().terminate(witness.pid()).expect("it lives");
    let witness_pid = harness.far_pid(witness.pid());
    drop(witness.wait());
    near.act(move |ctx, _| {
        let _here = ctx.monitor(witness_pid, 7);
        Ok(())
    });
    assert_eq!(near.exit(), (witness_pid, 7, ExitCause::NotFound));
    if !harness.cut() {
        return;
    }
    let mut of_monitors = 0;
    for _ in 0..=many {
        let (pid, _, cause) = near.exit();
        assert_eq!(cause, ExitCause::NoConnection);
        assert!(pid == far_pid || pid == linked_pid);
        of_monitors += u64::from(pid == far_pid);
    }
    assert_eq!(of_monitors, many);
    assert_eq!(far.exit(), (near_pid, 7, ExitCause::NoConnection));
    drop(linked.wait());
    assert!(near.is_quiet() && far.is_quiet());
    assert!(!far.handle.is_finished(), "a process lives on");
}

/// Starts a node again, which has none of its processes of before, nor others in their place.
pub fn a_stale_pid_is_not_found<H: Harness>(ground: H::Ground) {
    let mut harness = H::start(ground);
    let before = Strings::start(harness.far());
    let pid = harness.far_pid(before.pid());
    let near = Strings::start(harness.near());
    near.done(move |ctx, _| Ok(ctx.monitor(pid, 1)?));
    ground.send_all(&harness.near(), pid, [1]);
    assert_eq!(before.number(), 1);
    if !harness.restart_far() {
        return;
    }
    assert_eq!(near.exit(), (pid, 1, ExitCause::NoConnection));
    let after: Vec<_> = (0..100).map(|_| Strings::start(harness.far())).collect();
    near.done(move |ctx, _| Ok(ctx.monitor(pid, 2)?));
    assert_eq!(near.exit(), (pid, 2, ExitCause::NotFound));
    ground.send_all(&harness.near(), pid, [1]);
    for it in &after {
        ground.send_all(&harness.near(), harness.far_pid(it.pid()), [2]);
        assert_eq!(it.number(), 2);
        assert!(it.is_quiet());
    }
}

/// Stops a node whose processes send in their last steps: the messages arrive, and the stop ends in
/// time.
pub fn a_stop_carries_the_last_messages<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    if harness.is_one() {
        return;
    }
    let near = Strings::start(harness.near());
    let to = harness.near_pid(near.pid());
    let far = Strings::start(harness.far());
    far.done(move |ctx, _| {
        for number in 0..1_000_u64 {
            ctx.send(to, "number", number)?;
        }
        Ok(())
    });
    harness.far().stop(Duration::from_secs(30));
    for number in 0..1_000 {
        assert_eq!(near.number(), number);
    }
    ground.eventually("the farewell comes", || near.is_quiet());
}

//! The end of a node whose peer takes nothing, and tables after ends.

use super::ends::arrived;
use super::parts::Strings;
use super::{Ground as _, Harness};
use ganger_link::{LinkContext as _, Registry as _};
use ganger_proc_api::{Envelope, ExitCause};
use std::time::Duration;

/// Stops the near node, which has messages for a paused far node. The stop is over at its deadline,
/// and the far node is told when it goes on.
pub fn a_stop_ends_in_time_though_the_peer_takes_nothing<H: Harness>(ground: H::Ground) {
    let Some(harness) = H::start_frail(ground, Duration::from_secs(4)) else {
        return;
    };
    let near = Strings::start(harness.near());
    let far = Strings::start(harness.far());
    let (near_pid, far_pid) = (harness.near_pid(near.pid()), harness.far_pid(far.pid()));
    far.done(move |ctx, _| Ok(ctx.monitor(near_pid, 7)?));
    arrived(&harness);
    harness.pause_far(true);
    for _ in 0..100 {
        let envelope = Envelope::new(None, far_pid, "bytes", vec![7; 10_000]);
        harness.near().send(envelope).expect("it is sent");
    }
    harness.near().stop(Duration::from_secs(1));
    harness.pause_far(false);
    loop {
        match far.next() {
            // Messages under way at the stop.
            super::parts::Seen::Message(message) => assert_eq!(message.topic, "bytes"),
            super::parts::Seen::Exit(pid, tag, cause) => {
                assert_eq!((pid, tag), (near_pid, 7));
                // The process's own end may have come before the farewell.
                let is_end = matches!(
                    cause,
                    ExitCause::NoConnection | ExitCause::Cancelled(_) | ExitCause::Terminated
                );
                break assert!(is_end, "{cause:?}");
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Uses monitors, watches, links, requests, large messages, ends and unknown processes: at last no
/// table has an entry. Then the same with a lost connection.
pub fn nothing_is_left_in_the_tables<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    if harness.entries().is_none() {
        return;
    }
    let near = Strings::start(harness.near());
    near.done(|ctx, _| {
        ctx.trap_exits(42);
        Ok(())
    });
    for _ in 0..10 {
        let far: Vec<_> = (0..4).map(|_| Strings::start(harness.far())).collect();
        let pids: Vec<_> = far.iter().map(|it| harness.far_pid(it.pid())).collect();
        let own = harness.near_pid(near.pid());
        let all = pids.clone();
        near.done(move |ctx, _| {
            for pid in all {
                ctx.monitor(pid, 1)?;
                ctx.monitor(pid, 2)?;
                ctx.demonitor(pid, 2);
                ctx.link(pid)?;
                ctx.send(pid, "bytes", vec![7; 200_000])?;
            }
            Ok(())
        });
        for it in &far {
            it.done(move |ctx, _| Ok(ctx.monitor(own, 3)?));
        }
        let end = harness.near().end_of(pids[0]).expect("it is asked");
        arrived(&harness);
        for it in far {
            assert_eq!(it.message().topic, "bytes");
            it.done(move |ctx, _| {
                ctx.demonitor(own, 3);
                Ok(())
            });
            harness.far().terminate(it.pid()).expect("it lives");
            drop(it.wait());
        }
        for _ in 0..8 {
            assert_eq!(near.exit().2, ExitCause::Terminated);
        }
        ground.eventually("the end is told", || end.cause().is_some());
    }
    eventually_empty(&harness);
    let far = Strings::start(harness.far());
    let pid = harness.far_pid(far.pid());
    near.done(move |ctx, _| {
        ctx.monitor(pid, 1)?;
        Ok(ctx.link(pid)?)
    });
    arrived(&harness);
    if let Some([near, far]) = harness.entries() {
        assert!(near >= 2 && far >= 1, "{near} and {far} entries");
    }
    if harness.cut() {
        for _ in 0..2 {
            assert_eq!(near.exit().2, ExitCause::NoConnection);
        }
        eventually_empty(&harness);
    }
}

/// Ends a thousand processes that monitor another. Their monitors don't stay until its end.
pub fn monitors_end_with_their_watchers<H: Harness>(ground: H::Ground) {
    const MANY: usize = 1_000;
    let harness = H::start(ground);
    if harness.entries().is_none() {
        return;
    }
    let far = Strings::start(harness.far());
    let pid = harness.far_pid(far.pid());
    for _ in 0..MANY {
        let near = Strings::start(harness.near());
        near.done(move |ctx, _| Ok(ctx.monitor(pid, 1)?));
        harness.near().terminate(near.pid()).expect("it lives");
        drop(near.wait());
    }
    ground.eventually("the tables are swept", || {
        harness
            .entries()
            .is_some_and(|all| all.iter().all(|it| *it < MANY / 2))
    });
    assert!(!far.handle.is_finished());
}

fn eventually_empty<H: Harness>(harness: &H) {
    harness.ground().eventually("the tables are empty", || {
        harness.entries().is_none_or(|all| all == [0, 0])
    });
}

//! Pauses of a node, and ways that are cut. In a full run sessions end after the usual time.

use super::ends::arrived;
use super::parts::Strings;
use super::{Ground, Harness, is_full};
use ganger_link::Registry as _;
use ganger_proc_api::{Envelope, ExitCause, SendErrorKind};
use std::time::Duration;

/// Returns the time after which sessions end: 2 s, and 7 s in a full run. A busy machine pauses a
/// node for a while.
fn dead() -> Duration {
    millis(2_000, 7_000)
}

fn millis(gate: u64, full: u64) -> Duration {
    Duration::from_millis(if is_full() { full } else { gate })
}

/// Pauses a node for a third of the time after which a session ends; 5 s of 7 in a full run. All
/// messages accepted meanwhile arrive in order.
pub fn a_short_pause_loses_nothing<H: Harness>(ground: H::Ground) {
    let Some(harness) = H::start_frail(ground, dead()) else {
        return;
    };
    let near = Strings::start(harness.near());
    let far = Strings::start(harness.far());
    let (near_pid, far_pid) = (harness.near_pid(near.pid()), harness.far_pid(far.pid()));
    near.done(move |ctx, _| Ok(ctx.monitor(far_pid, 1)?));
    far.done(move |ctx, _| Ok(ctx.monitor(near_pid, 2)?));
    arrived(&harness);
    harness.pause_far(true);
    let mut sent = 0;
    for number in 0..ground.count(20_000, 20_000) {
        let envelope = Envelope::new(None, far_pid, "number", number);
        match harness.near().send(envelope) {
            Ok(()) => sent = number + 1,
            Err(refused) => {
                assert_eq!(refused.kind, SendErrorKind::Full);
                break;
            }
        }
    }
    ground.rest(millis(700, 5_000));
    harness.pause_far(false);
    for number in 0..sent {
        assert_eq!(far.number(), number);
    }
    arrived(&harness);
    assert!(near.is_quiet() && far.is_quiet());
}

/// Pauses a node for twice the time after which a session ends; 15 s of 7 in a full run. Both sides
/// are told once, processes live on, and the next session carries messages.
pub fn a_long_pause_is_told_to_both<H: Harness>(ground: H::Ground) {
    let Some(harness) = H::start_frail(ground, dead()) else {
        return;
    };
    told_to_both(&harness, || {
        harness.pause_far(true);
        ground.rest(millis(4_000, 15_000));
        harness.pause_far(false);
    });
}

/// Drops the frames of the near node, while the far node is heard.
pub fn a_cut_of_one_way_is_told_to_both<H: Harness>(ground: H::Ground) {
    let Some(harness) = H::start_frail(ground, dead()) else {
        return;
    };
    told_to_both(&harness, || {
        harness.cut_way(true);
        // Without messages the near node alone could go on.
        let end = harness.near().end_of(harness.far_pid(fresh(&harness)));
        let end = end.expect("it is asked");
        ground.eventually("the near side learns it", || {
            end.cause() == Some(ExitCause::NoConnection)
        });
        harness.cut_way(false);
    });
}

/// Starts a far process without a watcher.
fn fresh<H: Harness>(harness: &H) -> ganger_proc_api::Pid {
    let process = Strings::start(harness.far());
    process.pid()
}

fn told_to_both<H: Harness>(harness: &H, separate: impl FnOnce()) {
    let near = Strings::start(harness.near());
    let far = Strings::start(harness.far());
    let (near_pid, far_pid) = (harness.near_pid(near.pid()), harness.far_pid(far.pid()));
    near.done(move |ctx, _| Ok(ctx.monitor(far_pid, 1)?));
    far.done(move |ctx, _| Ok(ctx.monitor(near_pid, 2)?));
    arrived(harness);
    separate();
    assert_eq!(near.exit(), (far_pid, 1, ExitCause::NoConnection));
    assert_eq!(far.exit(), (near_pid, 2, ExitCause::NoConnection));
    // Both processes live, and reach each other again. Messages sent meanwhile may be lost with the
    // sessions that fail to open.
    let mut number = 0;
    let first = loop {
        let sent = harness
            .near()
            .send(Envelope::new(None, far_pid, "number", number));
        if sent.is_ok() {
            number += 1;
        }
        if let Some(first) = far.number_within(Duration::from_millis(20)) {
            break first;
        }
        assert!(number < 20_000, "no message arrives");
    };
    for next in first + 1..number {
        assert_eq!(far.number(), next);
    }
    near.done(move |ctx, _| Ok(ctx.monitor(far_pid, 3)?));
    arrived(harness);
    harness.far().terminate(far.pid()).expect("it lives");
    assert_eq!(near.exit(), (far_pid, 3, ExitCause::Terminated));
    drop(far.wait());
    assert!(near.is_quiet());
}

//! Ends beside requests: a single notice, in either order.

use super::ends::arrived;
use super::parts::{Begun, Strings};
use super::{Ground, Harness};
use ganger_link::LinkContext as _;
use ganger_proc_api::ExitCause;

const ROUNDS: u64 = 60;

/// Ends a process while its monitor is taken back.
pub fn a_monitor_taken_back_beside_the_end_is_told_at_most_once<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let watcher = Strings::start(harness.near());
    for round in 0..ROUNDS {
        let target = Strings::start(harness.far());
        let pid = harness.far_pid(target.pid());
        watcher.done(move |ctx, _| Ok(ctx.monitor(pid, round)?));
        arrived(&harness);
        let take_back = || {
            watcher.begin(move |ctx, _| {
                ctx.demonitor(pid, round);
                Ok(())
            })
        };
        beside(&harness, round, &target, take_back);
        drop(target.wait());
        arrived(&harness);
        // The watcher has shown all notices by now.
        watcher.done(|_, _| Ok(()));
        let notices = watcher.exits();
        assert!(notices.len() <= 1, "{notices:?}");
        for notice in &notices {
            assert_eq!(*notice, (pid, round, ExitCause::Terminated));
        }
        match round % 3 {
            0 => assert_eq!(notices.len(), 1, "the end came first"),
            1 => assert_eq!(notices, [], "the monitor was taken back before the end"),
            _ => {}
        }
    }
}

/// Ends the process, and begins the other act: the end first, the act first, or both at once.
///
/// All are told behind the end: what the far node sends from now on comes behind the notices.
fn beside<H: Harness>(
    harness: &H,
    round: u64,
    target: &Strings<H::Ground>,
    other: impl Fn() -> Begun<H::Ground>,
) {
    let end = || harness.far().terminate(target.pid()).expect("it lives");
    let ended = || {
        let has_ended = || target.handle.is_finished();
        harness.ground().eventually("the process ends", has_ended);
    };
    match round % 6 {
        0 | 3 => {
            end();
            ended();
            arrived(harness);
            other().wait();
        }
        1 | 4 => {
            other().wait();
            arrived(harness);
            end();
            ended();
        }
        2 => {
            end();
            let begun = other();
            ended();
            begun.wait();
        }
        _ => {
            let begun = other();
            end();
            begun.wait();
            ended();
        }
    }
}

/// Ends processes while the connection is lost.
pub fn an_end_beside_the_end_of_the_connection_is_told_once<H: Harness>(ground: H::Ground) {
    const MANY: usize = 300;
    let harness = H::start(ground);
    if harness.is_one() {
        return;
    }
    let watcher = Strings::start(harness.near());
    let targets: Vec<_> = (0..MANY).map(|_| Strings::start(harness.far())).collect();
    let pids: Vec<_> = targets.iter().map(|it| harness.far_pid(it.pid())).collect();
    let watched = pids.clone();
    watcher.done(move |ctx, _| {
        for (tag, pid) in (0..).zip(watched) {
            ctx.monitor(pid, tag)?;
        }
        Ok(())
    });
    arrived(&harness);
    let mut is_cut = false;
    for (number, target) in targets.iter().enumerate() {
        if number == MANY / 4 {
            is_cut = harness.cut();
        }
        harness.far().terminate(target.pid()).expect("it lives");
        ground.breathe();
    }
    let mut told = [false; MANY];
    for _ in 0..MANY {
        let (pid, tag, cause) = watcher.exit();
        let place = usize::try_from(tag).expect("it is small");
        assert_eq!(pid, pids[place]);
        assert!(!std::mem::replace(&mut told[place], true), "{tag} twice");
        match cause {
            ExitCause::Terminated => {}
            ExitCause::NoConnection if is_cut => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(watcher.is_quiet());
}

/// Links two processes to each other at the same time; then one takes the link back, or ends.
pub fn links_of_both_sides_at_once_are_one<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    for round in 0..ROUNDS / 2 {
        let near = Strings::start(harness.near());
        let far = Strings::start(harness.far());
        let (near_pid, far_pid) = (harness.near_pid(near.pid()), harness.far_pid(far.pid()));
        let here = near.begin(move |ctx, _| Ok(ctx.link(far_pid)?));
        let there = far.begin(move |ctx, _| Ok(ctx.link(near_pid)?));
        here.wait();
        there.wait();
        arrived(&harness);
        if round % 2 == 0 {
            near.done(move |ctx, _| Ok(ctx.unlink(far_pid)?));
            arrived(&harness);
            harness.far().terminate(far.pid()).expect("it lives");
            drop(far.wait());
            arrived(&harness);
            near.done(|ctx, _| {
                assert_eq!(ctx.links(), []);
                Ok(())
            });
        } else {
            harness.far().terminate(far.pid()).expect("it lives");
            drop((far.wait(), near.wait()));
        }
    }
}

/// Takes a link back while the other process ends. The next link of the process is not touched.
pub fn a_link_taken_back_beside_the_end_is_told_at_most_once<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let near = Strings::start(harness.near());
    let friend = Strings::start(harness.far());
    let friend_pid = harness.far_pid(friend.pid());
    near.done(move |ctx, _| {
        ctx.trap_exits(42);
        Ok(ctx.link(friend_pid)?)
    });
    for round in 0..ROUNDS {
        let far = Strings::start(harness.far());
        let pid = harness.far_pid(far.pid());
        near.done(move |ctx, _| Ok(ctx.link(pid)?));
        arrived(&harness);
        let take_back = || near.begin(move |ctx, _| Ok(ctx.unlink(pid)?));
        beside(&harness, round, &far, take_back);
        drop(far.wait());
        arrived(&harness);
        near.done(|_, _| Ok(()));
        let notices = near.exits();
        match round % 3 {
            0 => assert_eq!(notices, [(pid, 42, ExitCause::Terminated)]),
            1 => assert_eq!(notices, [], "the link was taken back before the end"),
            // The notice may be on its way while the link is taken back.
            _ => {
                let told = (pid, 42, ExitCause::Terminated);
                assert!(notices.len() <= 1 && notices.iter().all(|it| *it == told));
            }
        }
    }
    harness.far().terminate(friend.pid()).expect("it lives");
    assert_eq!(near.exit(), (friend_pid, 42, ExitCause::Terminated));
    drop(friend.wait());
    assert!(near.is_quiet());
}

//! Ends beside requests: a single notice, in either order.

use super::ends::arrived;
use super::parts::Strings;
use super::{Harness, PATIENCE, eventually};
use ganger_link::LinkContext as _;
use ganger_proc_api::ExitCause;
use std::thread;

const ROUNDS: u64 = 60;

/// The order of two calls in a round: the end first, the other call first, or both at once.
fn order(round: u64) -> [bool; 2] {
    match round % 3 {
        0 => [true, false],
        1 => [false, true],
        _ => [true, true],
    }
}

/// A process ends while its monitor is taken back.
pub fn a_monitor_taken_back_beside_the_end_is_told_at_most_once<H: Harness>() {
    let harness = H::start();
    let watcher = Strings::start(harness.near());
    for round in 0..ROUNDS {
        let target = Strings::start(harness.far());
        let pid = harness.far_pid(target.pid());
        watcher.done(move |ctx, _| Ok(ctx.monitor(pid, round)?));
        arrived(&harness);
        let end = || end(&harness, &target);
        let take_back = || {
            watcher.done(move |ctx, _| {
                ctx.demonitor(pid, round);
                Ok(())
            });
        };
        beside(&harness, order(round), end, take_back);
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

/// Ends a process. All are told behind it: what the far node sends from now on comes behind the
/// notices.
fn end<H: Harness>(harness: &H, target: &Strings) {
    harness.far().terminate(target.pid()).expect("it lives");
    eventually("the process ends", || target.handle.is_finished());
}

/// Has the end, and the other call, come in this order.
fn beside<H: Harness>(
    harness: &H,
    [end_early, other_early]: [bool; 2],
    end: impl Fn() + Sync,
    other: impl Fn() + Sync,
) {
    if end_early && other_early {
        thread::scope(|scope| {
            scope.spawn(&end);
            other();
        });
        return;
    }
    let (first, second): (&dyn Fn(), &dyn Fn()) = match end_early {
        true => (&end, &other),
        false => (&other, &end),
    };
    first();
    arrived(harness);
    second();
}

/// Processes end while the connection is lost.
pub fn an_end_beside_the_end_of_the_connection_is_told_once<H: Harness>() {
    const MANY: usize = 300;
    let harness = H::start();
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
    let is_cut = thread::scope(|scope| {
        scope.spawn(|| {
            for target in &targets {
                harness.far().terminate(target.pid()).expect("it lives");
                thread::yield_now();
            }
        });
        harness.cut()
    });
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

/// Two processes ask for a link to each other at the same time, and one takes it back, or ends.
pub fn links_of_both_sides_at_once_are_one<H: Harness>() {
    let harness = H::start();
    for round in 0..ROUNDS / 2 {
        let near = Strings::start(harness.near());
        let far = Strings::start(harness.far());
        let (near_pid, far_pid) = (harness.near_pid(near.pid()), harness.far_pid(far.pid()));
        thread::scope(|scope| {
            scope.spawn(|| near.done(move |ctx, _| Ok(ctx.link(far_pid)?)));
            far.done(move |ctx, _| Ok(ctx.link(near_pid)?));
        });
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

/// A link is taken back while the other process ends. The next link of the process is not touched.
pub fn a_link_taken_back_beside_the_end_is_told_at_most_once<H: Harness>() {
    let harness = H::start();
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
        let end = || end(&harness, &far);
        let take_back = || near.done(move |ctx, _| Ok(ctx.unlink(pid)?));
        beside(&harness, order(round), end, take_back);
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
    let ended = friend.handle.wait_timeout(PATIENCE);
    assert!(ended.is_ok() && near.is_quiet());
}

//! Monitors, links and requests.

use super::parts::Strings;
use super::{Ground as _, Harness, PATIENCE};
use ganger_link::{Lane, LinkContext as _, Registry as _};
use ganger_proc_api::{BoxError, CancelReason, Event, ExitCause, process_fn};

type End<G> = fn(&Strings<G>);
type IsRight = fn(&ExitCause) -> bool;

/// Monitors processes that are done, fail, panic, are cancelled or terminated.
pub fn a_monitor_has_the_cause<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let watcher = Strings::start(harness.near());
    let far = harness.far();
    let ends: [(End<H::Ground>, IsRight); 3] = [
        (
            |it| {
                it.act(|_, out| {
                    out.done(());
                    Ok(())
                });
            },
            |it| *it == ExitCause::Done,
        ),
        (
            |it| it.act(|_, _| Err(BoxError::from("no disk"))),
            |it| *it == ExitCause::Failed("no disk".into()),
        ),
        (
            |it| it.act(|_, _| std::panic::resume_unwind(Box::new("on purpose"))),
            |it| *it == ExitCause::Panicked("on purpose".into()),
        ),
    ];
    for (end, is_right) in ends {
        let target = Strings::start(&far);
        let pid = harness.far_pid(target.pid());
        watcher.done(move |ctx, _| Ok(ctx.monitor(pid, 7)?));
        arrived(&harness);
        end(&target);
        let (of, tag, cause) = watcher.exit();
        assert_eq!((of, tag), (pid, 7));
        assert!(is_right(&cause), "{cause:?}");
    }
    let target = Strings::start(&far);
    let pid = harness.far_pid(target.pid());
    watcher.done(move |ctx, _| Ok(ctx.monitor(pid, 8)?));
    arrived(&harness);
    far.terminate(target.pid()).expect("it lives");
    assert_eq!(watcher.exit(), (pid, 8, ExitCause::Terminated));
    let target = Strings::start(&far);
    let pid = harness.far_pid(target.pid());
    watcher.done(move |ctx, _| Ok(ctx.monitor(pid, 9)?));
    arrived(&harness);
    far.cancel(target.pid(), "enough").expect("it lives");
    let cause = ExitCause::Cancelled("enough".into());
    assert_eq!(watcher.exit(), (pid, 9, cause));
    assert!(watcher.is_quiet());
}

/// Monitors an ended process, and a PID without a process.
pub fn a_monitor_of_what_is_not_there_says_so<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let watcher = Strings::start(harness.near());
    let gone = Strings::start(harness.far());
    let pid = harness.far_pid(gone.pid());
    harness.far().terminate(gone.pid()).expect("it lives");
    drop(gone.wait());
    let never = ganger_proc_api::Pid::new(pid.host(), 7).with_node(pid.node());
    for pid in [pid, never] {
        watcher.act(move |ctx, _| {
            // Within a node the caller may learn it at once.
            let _here = ctx.monitor(pid, 7);
            Ok(())
        });
        assert_eq!(watcher.exit(), (pid, 7, ExitCause::NotFound));
    }
    assert!(watcher.is_quiet());
}

/// Takes a monitor back before the end: nothing is told.
pub fn a_monitor_taken_back_is_silent<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let watcher = Strings::start(harness.near());
    let [first, second] = [(); 2].map(|()| Strings::start(harness.far()));
    let pids = [&first, &second].map(|it| harness.far_pid(it.pid()));
    watcher.done(move |ctx, _| {
        for pid in pids {
            ctx.monitor(pid, 7)?;
        }
        ctx.demonitor(pids[0], 7);
        Ok(())
    });
    arrived(&harness);
    for it in [first, second] {
        harness.far().terminate(it.pid()).expect("it lives");
        drop(it.wait());
    }
    assert_eq!(watcher.exit(), (pids[1], 7, ExitCause::Terminated));
    assert!(watcher.is_quiet());
}

/// Sets ten thousand monitors of a process that ends, and a hundred thousand in a full run.
pub fn of_many_monitors_each_is_told_once<H: Harness>(ground: H::Ground) {
    let many = ground.count(10_000, 100_000);
    let harness = H::start(ground);
    let watcher = Strings::start(harness.near());
    let target = Strings::start(harness.far());
    let pid = harness.far_pid(target.pid());
    watcher.done(move |ctx, _| {
        for tag in 0..many {
            ctx.monitor(pid, tag)?;
        }
        Ok(())
    });
    arrived(&harness);
    harness.far().terminate(target.pid()).expect("it lives");
    let mut tags = vec![false; usize::try_from(many).expect("it is small")];
    for _ in 0..many {
        let (of, tag, cause) = watcher.exit();
        assert_eq!((of, cause), (pid, ExitCause::Terminated));
        let place = usize::try_from(tag).expect("it is small");
        assert!(!std::mem::replace(&mut tags[place], true), "{tag} twice");
    }
    assert!(watcher.is_quiet());
}

/// Watches in order: the notice comes behind all messages of the process.
pub fn a_notice_in_order_is_behind_the_messages<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let watcher = Strings::start(harness.near());
    let target = Strings::start(harness.far());
    let pid = harness.far_pid(target.pid());
    watcher.done(move |ctx, _| {
        ctx.watch(pid, 7, Lane::InOrder)?;
        Ok(())
    });
    arrived(&harness);
    let to = harness.near_pid(watcher.pid());
    target.act(move |ctx, out| {
        for number in 0..50_u64 {
            ctx.send(to, "number", number)?;
        }
        out.done(());
        Ok(())
    });
    for number in 0..50 {
        assert_eq!(watcher.number(), number);
    }
    assert_eq!(watcher.exit(), (pid, 7, ExitCause::Done));
}

/// Ends either side of a link: the other ends, and a process that traps exits is told.
pub fn links_end_both_sides<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    for ends_far in [true, false] {
        let near = Strings::start(harness.near());
        let far = Strings::start(harness.far());
        let pid = harness.far_pid(far.pid());
        near.done(move |ctx, _| Ok(ctx.link(pid)?));
        if ends_far {
            arrived(&harness);
            harness.far().terminate(far.pid()).expect("it lives");
            drop((near.wait(), far.wait()));
        } else {
            arrived(&harness);
            harness.near().terminate(near.pid()).expect("it lives");
            drop((far.wait(), near.wait()));
        }
    }
    let near = Strings::start(harness.near());
    let far = Strings::start(harness.far());
    let pid = harness.far_pid(far.pid());
    near.done(move |ctx, _| {
        ctx.trap_exits(42);
        Ok(ctx.link(pid)?)
    });
    arrived(&harness);
    harness.far().terminate(far.pid()).expect("it lives");
    let (of, _, cause) = near.exit();
    assert_eq!((of, cause), (pid, ExitCause::Terminated));
}

/// Takes a link back by `unlink`: afterwards neither end counts for the other.
pub fn a_link_taken_back_is_over<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let near = Strings::start(harness.near());
    let far = Strings::start(harness.far());
    let pid = harness.far_pid(far.pid());
    near.done(move |ctx, _| {
        ctx.link(pid)?;
        ctx.unlink(pid)?;
        Ok(())
    });
    arrived(&harness);
    harness.near().terminate(near.pid()).expect("it lives");
    drop(near.wait());
    arrived(&harness);
    assert!(!far.handle.is_finished());
}

/// Has all requests so far arrive at the far side: the question for an end comes behind these.
pub(super) fn arrived<H: Harness>(harness: &H) {
    let gone = Strings::start(harness.far());
    let pid = harness.far_pid(gone.pid());
    harness.far().terminate(gone.pid()).expect("it lives");
    drop(gone.wait());
    let end = harness.near().end_of(pid).expect("it is asked");
    harness.ground().eventually("the answer comes", || {
        end.cause() == Some(ExitCause::NotFound)
    });
}

/// Cancels and terminates processes, also of the past: the caller is told, or nothing happens.
pub fn processes_are_cancelled_and_terminated<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let (tell, told) = std::sync::mpsc::channel();
    let polite = harness.far().spawn(process_fn(move |_, events, _| {
        for event in events {
            if let Event::Cancel(reason) = event {
                drop(tell.send(reason));
            }
        }
        Ok(())
    }));
    let polite = polite.expect("the process starts");
    let pid = harness.far_pid(polite.pid());
    harness.near().cancel(pid, "enough").expect("it is asked");
    let reason = ground.next(&told, PATIENCE).expect("it is told");
    assert_eq!(reason, CancelReason::from("enough"));
    drop(ground.end(polite));
    let far = Strings::start(harness.far());
    let pid = harness.far_pid(far.pid());
    harness.near().terminate(pid).expect("it is asked");
    drop(far.wait());
    let asked = harness.near().terminate(pid);
    assert_eq!(asked.is_err(), harness.is_one());
    // An end, for a thread.
    let far = Strings::start(harness.far());
    let end = harness.near().end_of(harness.far_pid(far.pid()));
    let end = end.expect("it is asked");
    arrived(&harness);
    harness.far().terminate(far.pid()).expect("it lives");
    ground.eventually("the end is told", || {
        end.cause() == Some(ExitCause::Terminated)
    });
}

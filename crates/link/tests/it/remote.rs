//! Processes of other nodes.

mod codecs;
mod references;
mod typed;
mod wire;

use crate::support::{PATIENCE, Strings, exit, failed, puppet};
use ganger_link::{
    Lane, LinkContext as _, LookupError, Registry as _, RemoteLinks as _, TargetError,
};
use ganger_proc_api::{ExitCause, ExitReason, Message, Pid, SendErrorKind, Tag};
use ganger_sched::{RemoteLink, Scheduler};
use std::sync::Arc;
use std::sync::mpsc::channel;
use wire::{Wire, start, two};

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

fn nodes() -> (Arc<Wire>, [Scheduler; 2]) {
    two([("alpha", "main"), ("beta", "main")])
}

/// Returns the PID as other nodes know the process.
fn far(scheduler: &Scheduler, process: &Strings) -> Pid {
    scheduler.absolute(process.pid())
}

/// Lets all notices under way come.
fn told(wire: &Arc<Wire>, process: &Strings) -> Vec<(Pid, Tag, ExitCause)> {
    wire.settle();
    process.have(|_, _| Ok(()));
    process.told()
}

/// Ends a process of the scheduler.
type EndOf = fn(&Scheduler, &Strings);

/// Returns the ways to end, and the cause that each tells.
fn ends() -> [(EndOf, ExitCause); 5] {
    [
        (
            |_, it| {
                assert!(it.tell(|_, out| {
                    out.done(());
                    Ok(())
                }));
            },
            ExitCause::Done,
        ),
        (
            |_, it| assert!(it.tell(|_, _| Err("oh".into()))),
            failed("oh"),
        ),
        (
            |_, it| assert!(it.tell(|_, _| panic!("ah"))),
            ExitCause::Panicked("ah".into()),
        ),
        (
            |at, it| at.cancel(it.pid(), "enough").unwrap(),
            ExitCause::Cancelled("enough".into()),
        ),
        (
            |at, it| at.terminate(it.pid()).unwrap(),
            ExitCause::Terminated,
        ),
    ]
}

// pins: B13
#[test]
fn a_monitor_of_another_nodes_process_has_one_notice_with_its_cause() {
    let (wire, [here, there]) = nodes();
    for (end, cause) in ends() {
        let (watcher, target) = (puppet(&here), puppet(&there));
        let pid = far(&there, &target);
        let (kept, ended) = (puppet(&here), puppet(&here));
        watcher.have(move |ctx, _| {
            ctx.monitor(pid, 1)?;
            ctx.watch(pid, 2, Lane::InOrder)?;
            ctx.watch(pid, 3, Lane::Overtaking)?.end();
            ctx.demonitor(pid, 9);
            Ok(())
        });
        kept.have(move |ctx, _| {
            ctx.monitor(pid, 4)?;
            ctx.demonitor(pid, 4);
            Ok(())
        });
        ended.have(move |ctx, _| Ok(ctx.monitor(pid, 5)?));
        here.terminate(ended.pid()).unwrap();
        exit(ended.handle);
        let end_of = here.end_of(pid).unwrap();
        end(&there, &target);
        exit(target.handle);
        let told_of = vec![(pid, 1, cause.clone()), (pid, 2, cause.clone())];
        assert_eq!(told(&wire, &watcher), told_of, "{cause}");
        assert_eq!(told(&wire, &kept), []);
        assert_eq!(end_of.wait_timeout(PATIENCE), Some(cause));
        // The process is gone.
        watcher.have(move |ctx, _| Ok(ctx.monitor(pid, 6)?));
        assert_eq!(told(&wire, &watcher), [(pid, 6, ExitCause::NotFound)]);
    }
    assert_eq!(wire.kept(), [(0, 0), (0, 0)]);
}

// pins: B13
#[test]
fn a_cut_is_told_once_and_what_comes_later_is_ignored() {
    let (wire, [here, there]) = nodes();
    let (watcher, target) = (puppet(&here), puppet(&there));
    let (linked, peer) = (puppet(&here), puppet(&there));
    let (traps, trapped) = (puppet(&here), puppet(&there));
    let pid = far(&there, &target);
    watcher.have(move |ctx, _| Ok(ctx.monitor(pid, 1)?));
    let end_of = here.end_of(pid).unwrap();
    for (one, other) in [(&linked, &peer), (&traps, &trapped)] {
        let other = far(&there, other);
        one.have(move |ctx, _| Ok(ctx.link(other)?));
    }
    traps.have(|ctx, _| {
        ctx.trap_exits(7);
        Ok(())
    });
    wire.settle();
    // The end of the target is under way when the connection goes.
    wire.hold();
    there.terminate(target.pid()).unwrap();
    exit(target.handle);
    wire.cut();
    wire.release();
    let lost = ExitCause::NoConnection;
    assert_eq!(told(&wire, &watcher), [(pid, 1, lost.clone())]);
    assert_eq!(end_of.wait_timeout(PATIENCE), Some(lost.clone()));
    assert_eq!(
        told(&wire, &traps),
        [(far(&there, &trapped), 7, lost.clone())]
    );
    let far_traps = far(&here, &traps);
    for process in [linked, peer, trapped] {
        let reason = exit(process.handle);
        assert!(matches!(reason, ExitReason::Exited(ref cause) if *cause == lost));
    }
    // Without a connection each is told at once, and a request is refused.
    let new = puppet(&there);
    let pid = far(&there, &new);
    watcher.have(move |ctx, _| {
        ctx.trap_exits(8);
        ctx.monitor(pid, 2)?;
        ctx.link(pid)?;
        let refused = [
            ctx.cancel(pid, "enough").is_err(),
            ctx.terminate(pid).is_err(),
            ctx.exit(pid, ExitCause::Terminated).is_err(),
        ];
        assert_eq!(refused, [true; 3]);
        let error = ctx.send(pid, "kept", 7_u64).unwrap_err();
        assert_eq!(error.kind, SendErrorKind::NoConnection);
        assert_eq!(error.into_envelope().message.topic, "kept");
        Ok(())
    });
    assert_eq!(
        told(&wire, &watcher),
        [(pid, 2, lost.clone()), (pid, 8, lost)]
    );
    // Nothing of the former connection counts after it.
    wire.mend();
    new.have(move |ctx, _| Ok(ctx.monitor(far_traps, 3)?));
    here.terminate(traps.pid()).unwrap();
    exit(traps.handle);
    let causes: Vec<_> = told(&wire, &new).into_iter().map(|it| it.2).collect();
    assert_eq!(causes, [ExitCause::Terminated]);
    assert_eq!(told(&wire, &watcher), []);
    assert_eq!(wire.kept(), [(0, 0), (0, 0)]);
}

// pins: B13
#[test]
fn requests_and_names_reach_processes_of_other_nodes_and_hosts() {
    let hosts = [("alpha", "left"), ("alpha", "right")];
    for names in [[("alpha", "main"), ("beta", "main")], hosts] {
        let (wire, [here, there]) = two(names);
        let asks = puppet(&here);
        let targets = [(); 4].map(|()| puppet(&there));
        let pids = targets.each_ref().map(|it| far(&there, it));
        there.register_name("shop", pids[3]).unwrap();
        asks.have(move |ctx, _| {
            ctx.cancel(pids[0], "enough")?;
            ctx.terminate(pids[1])?;
            ctx.exit(pids[2], failed("so"))?;
            assert!(ctx.whereis("none").is_none());
            ctx.watch("shop", 1, Lane::Overtaking)?;
            Ok(ctx.terminate(ctx.whereis("shop").ok_or("no shop")?)?)
        });
        let reasons = targets.map(|it| exit(it.handle).to_string());
        let expected = [
            "cancelled: enough",
            "terminated",
            "failed: so",
            "terminated",
        ];
        assert_eq!(reasons, expected);
        let told: Vec<_> = told(&wire, &asks).into_iter().map(|it| it.2).collect();
        assert_eq!(told, [ExitCause::Terminated]);
        let error = here.lookup::<u64>("shop").unwrap_err();
        assert!(matches!(error, LookupError::NoSuchName(_)));
    }
}

/// Has a process link again while the connection holds the acts of the peer back. The connection
/// still holds them back at the return.
fn linked_anew(done: impl FnOnce(&Strings, Pid)) -> (Arc<Wire>, [Scheduler; 2], [Strings; 2]) {
    let (wire, [here, there]) = nodes();
    let (one, other) = (puppet(&here), puppet(&there));
    let (own, peer) = (far(&here, &one), far(&there, &other));
    one.have(move |ctx, _| Ok(ctx.link(peer)?));
    wire.settle();
    wire.hold();
    done(&other, own);
    one.have(move |ctx, _| {
        ctx.unlink(peer)?;
        Ok(ctx.link(peer)?)
    });
    (wire, [here, there], [one, other])
}

// pins: B14
#[test]
fn an_unlink_of_a_former_link_leaves_the_link_that_has_come_after_it() {
    let unlinks = |other: &Strings, own| other.have(move |ctx, _| Ok(ctx.unlink(own)?));
    let (wire, _nodes, [one, other]) = linked_anew(unlinks);
    wire.release();
    other.tell(|_, _| Err("both".into()));
    exit(other.handle);
    let reason = exit(one.handle);
    assert!(matches!(reason, ExitReason::Exited(cause) if cause == failed("both")));
}

// pins: B14
#[test]
fn a_signal_of_a_former_link_is_not_one_of_the_link_that_has_come_after_it() {
    let ends = |other: &Strings, _| {
        other.tell(|_, _| Err("before".into()));
        let ended = || other.handle.is_finished();
        let since = std::time::Instant::now();
        while !ended() {
            assert!(since.elapsed() < PATIENCE);
            std::thread::yield_now();
        }
    };
    let (wire, _nodes, [one, _other]) = linked_anew(ends);
    wire.let_one_pass(0);
    one.have(|_, _| Ok(()));
    wire.release();
    let reason = exit(one.handle);
    assert!(matches!(reason, ExitReason::Exited(ExitCause::NotFound)));
}

// pins: B14
#[test]
fn a_link_that_is_not_of_this_scheduler_is_not_kept() {
    let (wire, [here, there]) = nodes();
    let (one, other) = (puppet(&there), puppet(&there));
    let link = RemoteLink::new(far(&there, &one), far(&there, &other), 7);
    here.link_arrived(link);
    wire.settle();
    assert_eq!(wire.kept(), [(0, 0), (0, 0)]);
    for process in [one, other] {
        process.have(|_, _| Ok(()));
    }
}

// pins: B14
#[test]
fn links_between_nodes_end_both_and_an_unlink_by_either_ends_the_link() {
    let (wire, [here, there]) = nodes();
    for turned in [false, true] {
        let of = |turned: bool| if turned { &there } else { &here };
        let link = || {
            let (one, other) = (puppet(of(turned)), puppet(of(!turned)));
            let peer = far(of(!turned), &other);
            one.have(move |ctx, _| {
                ctx.link(peer)?;
                Ok(ctx.link(peer)?)
            });
            wire.settle();
            (one, other)
        };
        // Either may end first.
        for ends_first in [0, 1] {
            let (one, other) = link();
            let (first, second) = if ends_first == 0 {
                (one, other)
            } else {
                (other, one)
            };
            first.tell(|_, _| Err("both".into()));
            exit(first.handle);
            let reason = exit(second.handle);
            assert!(matches!(reason, ExitReason::Exited(cause) if cause == failed("both")));
        }
        // An end by `done` ends the link alone.
        let (one, other) = link();
        one.tell(|_, out| {
            out.done(());
            Ok(())
        });
        exit(one.handle);
        wire.settle();
        other.have(|ctx, _| {
            assert_eq!(ctx.links(), []);
            Ok(())
        });
        // Either may unlink.
        for unlinks in [0, 1] {
            let (one, other) = link();
            let (pid, peer) = (far(of(turned), &one), far(of(!turned), &other));
            if unlinks == 0 {
                one.have(move |ctx, _| Ok(ctx.unlink(peer)?));
            } else {
                other.have(move |ctx, _| Ok(ctx.unlink(pid)?));
            }
            wire.settle();
            one.tell(|_, _| Err("alone".into()));
            exit(one.handle);
            wire.settle();
            other.have(|ctx, _| {
                assert_eq!(ctx.links(), []);
                Ok(())
            });
        }
    }
    // A link to an ended process.
    let (one, gone) = (puppet(&here), puppet(&there));
    let pid = far(&there, &gone);
    there.terminate(gone.pid()).unwrap();
    exit(gone.handle);
    one.have(move |ctx, _| Ok(ctx.link(pid)?));
    let reason = exit(one.handle);
    assert!(matches!(reason, ExitReason::Exited(ExitCause::NotFound)));
    wire.settle();
    assert_eq!(wire.kept(), [(0, 0), (0, 0)]);
}

// pins: B14
#[test]
fn links_asked_for_by_both_at_the_same_time_are_one_link() {
    for (first, unlinks) in [
        (0, None),
        (1, None),
        (0, Some(0)),
        (0, Some(1)),
        (1, Some(0)),
    ] {
        let (wire, [here, there]) = nodes();
        let pair = [puppet(&here), puppet(&there)];
        let pids = [far(&here, &pair[0]), far(&there, &pair[1])];
        wire.hold();
        for (process, peer) in pair.iter().zip([pids[1], pids[0]]) {
            process.have(move |ctx, _| Ok(ctx.link(peer)?));
        }
        if let Some(by) = unlinks {
            let peer = pids[1 - by];
            pair[by].have(move |ctx, _| Ok(ctx.unlink(peer)?));
        }
        wire.let_one_pass(first);
        wire.release();
        let linked = pair.each_ref().map(|it| {
            let (sender, receiver) = channel();
            it.have(move |ctx, _| Ok(sender.send(ctx.links().len())?));
            receiver.recv_timeout(PATIENCE).unwrap()
        });
        assert_eq!(linked[0], linked[1], "{first}, {unlinks:?}");
        if unlinks.is_none() {
            assert_eq!(linked, [1, 1]);
            let [one, other] = pair;
            other.tell(|_, _| Err("both".into()));
            let reason = exit(one.handle);
            assert!(matches!(reason, ExitReason::Exited(cause) if cause == failed("both")));
        }
    }
}

// pins: B15
#[test]
fn a_pid_of_a_restarted_node_is_not_found_and_never_another_process() {
    let (wire, [here, there]) = nodes();
    let watcher = puppet(&here);
    let stale: Vec<_> = (0..100).map(|_| far(&there, &puppet(&there))).collect();
    wire.cut();
    drop(there);
    let there = start(&wire, 1, ("beta", "main"));
    wire.mend();
    let living: Vec<_> = (0..100).map(|_| puppet(&there)).collect();
    for (n, pid) in (0..).zip(stale) {
        let error = here.send(Message::new("late", n).to(pid)).unwrap_err();
        assert_eq!(error.kind, SendErrorKind::NotFound);
        watcher.have(move |ctx, _| {
            ctx.cancel(pid, "late")?;
            ctx.terminate(pid)?;
            ctx.exit(pid, ExitCause::Terminated)?;
            Ok(ctx.monitor(pid, 0)?)
        });
        assert_eq!(told(&wire, &watcher), [(pid, 0, ExitCause::NotFound)]);
        let linked = puppet(&here);
        linked.have(move |ctx, _| Ok(ctx.link(pid)?));
        let reason = exit(linked.handle);
        assert!(matches!(reason, ExitReason::Exited(ExitCause::NotFound)));
    }
    for process in living {
        process.have(|ctx, _| {
            assert!(!ctx.is_cancelled());
            Ok(())
        });
    }
}

#[test]
fn without_a_remote_pids_of_other_nodes_are_refused() {
    let scheduler = Scheduler::builder()
        .workers(1)
        .node("alpha")
        .start()
        .unwrap();
    let one = puppet(&scheduler);
    one.have(|ctx, _| {
        let pid: Pid = "{beta@main|1}".parse()?;
        assert!(ctx.monitor(pid, 1).is_err());
        let elsewhere = TargetError::Elsewhere(pid);
        assert_eq!(ctx.link(pid).unwrap_err(), elsewhere);
        assert_eq!(ctx.unlink(pid).unwrap_err(), elsewhere);
        assert!(ctx.cancel(pid, "no").is_err() && ctx.terminate(pid).is_err());
        ctx.demonitor(pid, 1);
        Ok(())
    });
    let error = scheduler.end_of("{beta@main|1}".parse::<Pid>().unwrap());
    assert!(error.is_err());
}

//! Processes that monitor each other: their choice, and the duration.

use crate::support::puppet::*;
use crate::support::*;
use ganger_proc_api::{
    Context, Event, ExitCause, ExitNotice, Message, Pid, SubmitErrorKind, UpgradeRequest,
};
use ganger_sched::ProcessState;
use std::sync::mpsc::channel;

#[test]
fn who_is_not_there_is_told_of_at_once_and_who_is_elsewhere_is_refused() {
    let scheduler = start(1);
    let watcher = puppet(&scheduler);
    let ended = scheduler.submit(waiter(), "main", ()).unwrap();
    let gone = ended.pid();
    scheduler.terminate(gone).unwrap();
    exit(ended);
    watcher.monitor(gone, 5);
    assert_eq!(watcher.next(), (gone, 5, ExitCause::NotFound));

    let elsewhere: Pid = "{elsewhere|1}".parse().unwrap();
    watcher.have(move |ctx, _| {
        let refused = ctx.monitor(elsewhere, 6).unwrap_err();
        assert_eq!(refused.pid, elsewhere);
        assert!(refused.to_string().contains("{elsewhere|1}"));
        ctx.demonitor(elsewhere, 6);
        Ok(())
    });
    watcher.has_none_but(7);
    let detached = Context::detached(gone);
    assert!(detached.monitor(gone, 1).is_err());
    assert!(detached.cancel(gone, "x").is_err() && detached.terminate(gone).is_err());
}

#[test]
fn each_monitor_is_told_once_but_those_that_were_taken_back() {
    let scheduler = start(2);
    let watchers = [puppet(&scheduler), puppet(&scheduler)];
    let target = puppet(&scheduler);
    let pid = target.pid();
    for watcher in &watchers {
        for tag in [1, 2, 2, 3] {
            watcher.monitor(pid, tag);
        }
    }
    watchers[0].have(move |ctx, _| {
        ctx.demonitor(pid, 2);
        ctx.demonitor(pid, 77);
        Ok(())
    });
    target.tell(|_, out| {
        out.done(());
        Ok(())
    });
    let told = |watcher: &Strings, count| -> Vec<_> {
        let mut tags: Vec<_> = (0..count).map(|_| watcher.next().1).collect();
        tags.sort_unstable();
        watcher.has_none_but(99);
        tags
    };
    assert_eq!(told(&watchers[0], 2), [1, 3]);
    assert_eq!(told(&watchers[1], 4), [1, 2, 2, 3]);
}

// pins: P4
#[test]
fn who_is_monitored_takes_no_step_for_it_and_its_events_stay_in_order() {
    let scheduler = start(1);
    let calls = Calls::new();
    let target = scheduler.submit(stubborn(&calls), "main", ()).unwrap();
    let pid = target.pid();
    until_state(&scheduler, pid, ProcessState::Idle);
    let before = calls.steps();
    let watcher = puppet(&scheduler);
    for tag in 1..=40 {
        watcher.monitor(pid, tag);
    }
    for tag in 1..=20 {
        watcher.have(move |ctx, _| {
            ctx.demonitor(pid, 2 * tag);
            Ok(())
        });
    }
    until_state(&scheduler, pid, ProcessState::Idle);
    assert_eq!(calls.steps(), before);
    scheduler.terminate(pid).unwrap();
    let mut told: Vec<_> = (0..20).map(|_| watcher.next().1).collect();
    told.sort_unstable();
    let odd = (1..=40).step_by(2);
    assert!(told.into_iter().eq(odd));

    // Monitors come among the messages of this process, which keeps every other message for later.
    let (seen, order) = channel();
    let mut last = None;
    let picky = process(move |_, events, _| {
        let number = |event: &Event| event.message().and_then(|it| it.payloads.first()?.as_u64());
        while let Some(event) = events.take_where(|it| number(it).is_some_and(|n| n % 2 == 0)) {
            last = number(&event);
            seen.send(last)?;
        }
        if last == Some(6) {
            events.try_for_each(|event| seen.send(number(&event)))?;
        }
        Ok(())
    });
    let picky = scheduler.submit(picky, "main", ()).unwrap();
    let pid = picky.pid();
    until_state(&scheduler, pid, ProcessState::Idle);
    watcher.have(move |ctx, _| {
        for n in 0..6_u64 {
            ctx.send(pid, "n", n)?;
            ctx.monitor(pid, n)?;
        }
        Ok(())
    });
    let next = || order.recv_timeout(PATIENCE).unwrap().unwrap();
    assert_eq!([(); 3].map(|()| next()), [0, 2, 4]);
    picky.address().send(Message::new("n", 6_u64)).unwrap();
    assert_eq!([(); 4].map(|()| next()), [6, 1, 3, 5]);
    scheduler.terminate(pid).unwrap();
    for n in 0..6 {
        assert_eq!(watcher.next(), (pid, n, ExitCause::Terminated));
    }
}

// pins: P11
#[test]
fn monitors_outlive_upgrades_of_both() {
    let scheduler = start(2);
    let watcher = puppet(&scheduler);
    let target = puppet(&scheduler);
    let pid = target.pid();
    watcher.monitor(pid, 4);
    let (notices, received) = channel();
    let next = Puppet { notices };
    target.have(|_, out| {
        let (notices, _) = channel();
        out.upgrade(UpgradeRequest::process(Puppet { notices }, "main", ()));
        Ok(())
    });
    scheduler
        .upgrade(watcher.pid(), UpgradeRequest::process(next, "main", ()))
        .unwrap();
    // Once from inside, and once from outside.
    let again = || {
        let (notices, _) = channel();
        UpgradeRequest::process(Puppet { notices }, "main", ())
    };
    scheduler.upgrade(pid, again()).unwrap();
    until("both have been upgraded", || {
        scheduler.stats().total.upgrades == 3
    });
    assert!(watcher.notices.try_recv().is_err());
    scheduler.terminate(pid).unwrap();
    let notice = received.recv_timeout(PATIENCE).unwrap();
    assert_eq!(notice, ExitNotice::new(pid, 4, ExitCause::Terminated));
}

#[test]
fn a_context_submits_under_a_pid_cancels_and_terminates() {
    let scheduler = start(1);
    let puppet = puppet(&scheduler);
    let pid = Pid::new(scheduler.host_name(), 5);
    puppet.have(move |ctx, _| {
        ctx.submit_as(pid, waiter(), "main", ())?;
        let refused = ctx.submit_as(pid, waiter(), "main", ()).unwrap_err();
        assert!(matches!(refused.kind, SubmitErrorKind::AlreadyExists(it) if it == pid));
        assert!(refused.into_process().is_some());
        ctx.monitor(pid, 1)?;
        ctx.cancel(pid, "enough")?;
        Ok(())
    });
    assert_eq!(puppet.next(), (pid, 1, ExitCause::Done));
    puppet.have(move |ctx, _| {
        assert_eq!(ctx.cancel(pid, "enough").unwrap_err().pid, pid);
        assert_eq!(ctx.terminate(pid).unwrap_err().pid, pid);
        ctx.submit_as(pid, waiter(), "main", ())?;
        ctx.monitor(pid, 2)?;
        Ok(ctx.terminate(pid)?)
    });
    assert_eq!(puppet.next(), (pid, 2, ExitCause::Terminated));
    // A process may monitor itself.
    puppet.have(|ctx, _| {
        ctx.monitor(ctx.pid(), 3)?;
        Ok(ctx.terminate(ctx.pid())?)
    });
    assert!(matches!(
        exit(puppet.handle),
        ganger_proc_api::ExitReason::Terminated
    ));
}

/// Puts the monitor and its end both into the mailbox of a process in its last step.
#[test]
fn a_monitor_that_is_taken_back_before_the_end_is_not_told() {
    let scheduler = start(2);
    let watcher = puppet(&scheduler);
    let target = puppet(&scheduler);
    let pid = target.pid();
    let (let_go, may_go) = channel::<()>();
    let (is_on, on) = channel();
    target.tell(move |_, out| {
        is_on.send(())?;
        may_go.recv_timeout(PATIENCE)?;
        out.done(());
        Ok(())
    });
    on.recv_timeout(PATIENCE).unwrap();
    watcher.have(move |ctx, _| {
        ctx.monitor(pid, 1)?;
        ctx.monitor(pid, 2)?;
        ctx.demonitor(pid, 1);
        Ok(())
    });
    let_go.send(()).unwrap();
    assert_eq!(watcher.next(), (pid, 2, ExitCause::Done));
    watcher.has_none_but(3);
}

/// Checks a context that outlives its process, whose PID another process has by now.
#[test]
fn who_has_ended_takes_nothing_back_from_its_successor() {
    let scheduler = start(2);
    let target = puppet(&scheduler);
    let target_pid = target.pid();
    let pid = Pid::new(scheduler.host_name(), 77);
    let old = context_of_the_dead(&scheduler, pid);
    let (notices, received) = channel();
    let second = Puppet { notices };
    let handle = scheduler.submit_as(pid, second, "main", ()).unwrap();
    let second = Strings {
        handle,
        notices: received,
    };
    second.monitor(target_pid, 1);
    old.demonitor(target_pid, 1);
    scheduler.terminate(target_pid).unwrap();
    assert_eq!(second.next(), (target_pid, 1, ExitCause::Terminated));
    second.have(|ctx, _| {
        ctx.monitor(ctx.pid(), 2)?;
        Ok(())
    });
    second.has_none_but(3);
}

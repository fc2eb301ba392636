//! Processes that are told of each other's ends.
#![cfg(not(loom))]

mod support;

use ganger_proc_api::{
    BoxError, Event, Events, ExitCause, ExitNotice, Lifecycle, Message, Payload, Payloads, Pid,
    Process, ProcessContext, StepOutput, SubmitErrorKind, Symbol, Tag, UpgradeRequest,
};
use ganger_sched::{Handle, ProcessHandle, ProcessState, Scheduler, WeakHandle};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use support::*;

/// A process that a test leads: it does what it is told, and tells of its notices.
struct Puppet {
    ctx: Option<ProcessContext>,
    notices: Sender<ExitNotice>,
}

/// What a puppet is told to do.
type Act = Box<dyn FnOnce(&ProcessContext, &mut StepOutput) -> StepResult + Send>;

impl Process for Puppet {
    fn init(&mut self, ctx: &ProcessContext, _: &str, _: Payloads) -> Result<(), BoxError> {
        self.ctx = Some(ctx.clone());
        Ok(())
    }

    fn step(&mut self, events: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
        let ctx = self.ctx.as_ref().ok_or("no context")?;
        out.idle();
        for event in events {
            match event {
                Event::Exit(notice) => self.notices.send(*notice)?,
                Event::Message(message) => {
                    let act = message.payloads.into_first().downcast::<Act>();
                    act.map_err(|_| "no act")?(ctx, out)?;
                }
                Event::Cancel(_) => out.done(()),
                _ => {}
            }
        }
        Ok(())
    }
}

struct Strings {
    handle: ProcessHandle,
    notices: Receiver<ExitNotice>,
}

impl Strings {
    fn pid(&self) -> Pid {
        self.handle.pid()
    }

    fn tell(
        &self,
        act: impl FnOnce(&ProcessContext, &mut StepOutput) -> StepResult + Send + 'static,
    ) {
        let act: Act = Box::new(act);
        let payload = Payload::any(act);
        let message = Message::new("do", payload);
        self.handle.address().send(message).unwrap();
    }

    /// As `tell`, and waits until it is done.
    fn have(
        &self,
        act: impl FnOnce(&ProcessContext, &mut StepOutput) -> StepResult + Send + 'static,
    ) {
        let (done, is_done) = channel();
        self.tell(move |ctx, out| {
            act(ctx, out)?;
            Ok(done.send(())?)
        });
        is_done.recv_timeout(PATIENCE).unwrap();
    }

    fn monitor(&self, target: Pid, tag: Tag) {
        self.have(move |ctx, _| Ok(ctx.monitor(target, tag)?));
    }

    fn next(&self) -> (Pid, Tag, ExitCause) {
        let notice = self.notices.recv_timeout(PATIENCE).expect("a notice");
        (notice.pid, notice.tag, notice.cause)
    }

    /// There is no further notice, also none under way: those of one process come in order.
    fn has_none_but(&self, last: Tag) {
        let nobody = Pid::new(self.pid().host(), 4_000_000_000);
        self.monitor(nobody, last);
        assert_eq!(self.next(), (nobody, last, ExitCause::NotFound));
        assert!(self.notices.try_recv().is_err());
    }
}

fn puppet(handle: &Handle) -> Strings {
    let (notices, received) = channel();
    let ctx = None;
    let handle = handle.submit(Puppet { ctx, notices }, "main", ()).unwrap();
    Strings {
        handle,
        notices: received,
    }
}

fn ends_by(error: &'static str) -> impl Process {
    process(move |_, events, out| {
        out.idle();
        if events.count() > 0 {
            match error {
                "done" => out.done(7_u64),
                "panic" => panic!("on purpose: step"),
                "upgrade" => out.upgrade(UpgradeRequest::factory("failing", "main", ())),
                _ => {
                    let cause = std::io::Error::other("the cause");
                    return Err(Box::new(Because(cause)));
                }
            }
        }
        Ok(())
    })
}

#[derive(Debug, thiserror::Error)]
#[error("a failure")]
struct Because(#[source] std::io::Error);

struct Fails;

impl Process for Fails {
    fn init(&mut self, _: &ProcessContext, _: &str, _: Payloads) -> Result<(), BoxError> {
        Err("no init".into())
    }

    fn step(&mut self, _: &mut Events<'_>, _: &mut StepOutput) -> Result<(), BoxError> {
        Ok(())
    }
}

// pins: P5, P13
#[test]
fn each_end_is_told_with_its_cause() {
    quiet_panics();
    let scheduler = start(2);
    scheduler
        .register_factory("failing", || Box::new(Fails) as Box<dyn Process>)
        .unwrap();
    let watcher = puppet(&scheduler);
    let causes = [
        ("done", ExitCause::Done),
        ("error", ExitCause::Failed("a failure: the cause".into())),
        ("panic", ExitCause::Panicked("on purpose: step".into())),
        (
            "upgrade",
            ExitCause::UpgradeFailed("the new process's init failed: no init".into()),
        ),
        ("terminate", ExitCause::Terminated),
    ];
    for (tag, (how, cause)) in (1..).zip(causes) {
        let target = scheduler.submit(ends_by(how), "main", ()).unwrap();
        let pid = target.pid();
        watcher.monitor(pid, tag);
        if how == "terminate" {
            scheduler.terminate(pid).unwrap();
        } else {
            target.address().send(Message::new("end", ())).unwrap();
        }
        assert_eq!(watcher.next(), (pid, tag, cause));
        drop(target);
    }
    watcher.has_none_but(99);
}

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
    let detached = ProcessContext::detached(gone);
    assert!(detached.monitor(gone, 1).is_err());
    assert!(detached.cancel(gone, "x").is_err() && detached.terminate(gone).is_err());
}

// pins: P1
#[test]
fn a_target_that_ends_while_the_watcher_begins_is_told_of() {
    struct Early {
        target: Option<ProcessHandle>,
        notice: Sender<(ExitNotice, usize)>,
        steps: usize,
    }
    impl Process for Early {
        fn init(&mut self, ctx: &ProcessContext, _: &str, _: Payloads) -> Result<(), BoxError> {
            let target = self.target.take().ok_or("no target")?;
            ctx.monitor(target.pid(), 3)?;
            target.address().send(Message::new("end", ()))?;
            exit(target);
            Ok(())
        }
        fn step(&mut self, events: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
            out.idle();
            self.steps += 1;
            for event in events {
                if let Event::Exit(notice) = event {
                    self.notice.send((*notice, self.steps))?;
                }
            }
            Ok(())
        }
    }
    let scheduler = start(1);
    let target = scheduler.submit(ends_by("done"), "main", ()).unwrap();
    let pid = target.pid();
    let (notice, received) = channel();
    let target = Some(target);
    let steps = 0;
    let early = Early {
        target,
        notice,
        steps,
    };
    let watcher = scheduler.submit(early, "main", ()).unwrap();
    let (notice, step) = received.recv_timeout(PATIENCE).unwrap();
    scheduler.terminate(watcher.pid()).unwrap();
    assert_eq!(notice, ExitNotice::new(pid, 3, ExitCause::Done));
    assert_eq!(step, 1, "in its first step");
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

    // One that has monitors among its messages, and keeps every other message for later.
    let (seen, order) = channel();
    let mut last = None;
    let picky = process(move |_, events, out| {
        out.idle();
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

// pins: P13
#[test]
fn no_limit_keeps_a_notice_away() {
    const LIMIT: usize = 4;
    let builder = Scheduler::builder().workers(1).mailbox_limit(LIMIT);
    let scheduler = builder.build().unwrap();
    let (order, seen) = channel();
    let target = scheduler.submit(ends_by("done"), "main", ()).unwrap();
    let target_pid = target.pid();
    let mut is_first = true;
    let watcher = process(move |ctx, events, out| {
        out.idle();
        if is_first {
            is_first = false;
            ctx.monitor(target_pid, 1)?;
            // What fills its mailbox while it runs.
            for _ in 0..LIMIT {
                ctx.send(ctx.pid(), "own", ())?;
            }
            assert!(ctx.send(ctx.pid(), "own", ()).is_err());
            ctx.send(target_pid, "end", ())?;
            ctx.monitor(target_pid, 2)?;
            return Ok(());
        }
        for event in events {
            order.send(matches!(event, Event::Exit(_)))?;
        }
        Ok(())
    });
    let watcher = scheduler.submit(watcher, "main", ()).unwrap();
    scheduler.start().unwrap();
    exit(target);
    let seen: Vec<bool> = (0..LIMIT + 2)
        .map(|_| seen.recv_timeout(PATIENCE).unwrap())
        .collect();
    let notices = seen.iter().filter(|is_notice| **is_notice).count();
    assert_eq!(notices, 2);
    scheduler.terminate(watcher.pid()).unwrap();
}

/// A watcher that is busy until the target has ended, with messages in its mailbox.
#[test]
fn a_notice_is_the_first_event_of_the_next_step() {
    let scheduler = start(2);
    let watcher = puppet(&scheduler);
    let target = scheduler.submit(ends_by("done"), "main", ()).unwrap();
    let pid = target.pid();
    watcher.monitor(pid, 1);
    let (first, is_first) = channel();
    let (go, may_go) = channel::<()>();
    let (is_on, on) = channel::<()>();
    watcher.tell(move |_, _| {
        is_on.send(())?;
        may_go.recv_timeout(PATIENCE)?;
        target.address().send(Message::new("end", ()))?;
        exit(target);
        Ok(())
    });
    // Not a part of the step that is on.
    on.recv_timeout(PATIENCE).unwrap();
    watcher.tell(move |_, _| Ok(first.send(())?));
    go.send(()).unwrap();
    is_first.recv_timeout(PATIENCE).unwrap();
    let notice = watcher.notices.try_recv().expect("before the message");
    assert_eq!(notice, ExitNotice::new(pid, 1, ExitCause::Done));
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
    let next = Puppet { ctx: None, notices };
    target.have(|_, out| {
        let (notices, _) = channel();
        out.upgrade(UpgradeRequest::process(
            Puppet { ctx: None, notices },
            "main",
            (),
        ));
        Ok(())
    });
    scheduler
        .upgrade(watcher.pid(), UpgradeRequest::process(next, "main", ()))
        .unwrap();
    // Once from inside, and once from outside.
    let again = || {
        let (notices, _) = channel();
        UpgradeRequest::process(Puppet { ctx: None, notices }, "main", ())
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

// pins: P12, P13
#[test]
fn whoever_is_told_finds_the_place_and_the_pid_free() {
    const ROUNDS: u64 = 300;
    let builder = Scheduler::builder().workers(2).max_processes(2);
    let scheduler = builder.build().unwrap();
    scheduler.start().unwrap();
    let child = Pid::new(scheduler.host_name(), 77);
    let mut started = 0;
    let supervisor = process(move |ctx, events, out| {
        out.idle();
        let exits = events
            .filter(|event| matches!(event, Event::Exit(_)))
            .count();
        assert!(exits <= 1);
        if started > 0 && exits == 0 {
            return Ok(());
        }
        if started == ROUNDS {
            out.done(started);
            return Ok(());
        }
        started += 1;
        let brief = process(|_, _, out| {
            out.done(());
            Ok(())
        });
        assert_eq!(ctx.submit_as(child, brief, "main", ())?, child);
        Ok(ctx.monitor(child, started)?)
    });
    let supervisor = scheduler.submit(supervisor, "main", ()).unwrap();
    assert_eq!(exit_number(supervisor), ROUNDS);
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
    // Also itself.
    puppet.have(|ctx, _| {
        ctx.monitor(ctx.pid(), 3)?;
        Ok(ctx.terminate(ctx.pid())?)
    });
    assert!(matches!(
        exit(puppet.handle),
        ganger_proc_api::ExitReason::Terminated
    ));
}

/// Refuses every process but puppets, and has one monitor those that it refuses.
#[derive(Default)]
struct Refuses(OnceLock<(WeakHandle, Pid)>);

impl Lifecycle for Refuses {
    fn on_start(&self, pid: Pid, method: Symbol) -> Result<(), BoxError> {
        if method == "main" {
            return Ok(());
        }
        let (handle, watcher) = self.0.get().ok_or("nobody")?;
        let handle = handle.upgrade().ok_or("no scheduler")?;
        let (done, is_done) = channel();
        let act: Act = Box::new(move |ctx, _| {
            ctx.monitor(pid, 8)?;
            Ok(done.send(())?)
        });
        let act = Payload::any(act);
        let address = handle.address(*watcher).ok_or("no watcher")?;
        address.send(Message::new("do", act))?;
        is_done.recv_timeout(PATIENCE)?;
        Err("not that one".into())
    }
}

// pins: P1
#[test]
fn one_that_was_not_started_after_all_has_never_been() {
    let hooks = Arc::new(Refuses::default());
    let builder = Scheduler::builder()
        .workers(1)
        .lifecycle(Arc::clone(&hooks));
    let scheduler = builder.build().unwrap();
    scheduler.start().unwrap();
    let watcher = puppet(&scheduler);
    assert!(hooks.0.set((scheduler.downgrade(), watcher.pid())).is_ok());
    let calls = Calls::new();
    let refused = scheduler.submit(stubborn(&calls), "other", ());
    assert!(matches!(
        refused.unwrap_err().kind,
        SubmitErrorKind::StartRefused(_)
    ));
    let (_, tag, cause) = watcher.next();
    assert_eq!((tag, cause), (8, ExitCause::NotFound));
    watcher.has_none_but(9);
}

/// Everybody monitors everybody, while all of them end in all ways: who is still there is told once of each.
// pins: P12
#[test]
fn in_a_crowd_each_monitor_is_told_once() {
    const CROWD: u64 = 60;
    const ROUNDS: u64 = 40;
    let scheduler = start(2);
    for round in 0..ROUNDS {
        let (notices, received) = channel();
        let pids: Arc<OnceLock<Vec<Pid>>> = Arc::default();
        let members: Vec<_> = (0..CROWD)
            .map(|member| {
                let (pids, notices) = (Arc::clone(&pids), notices.clone());
                let mut has_begun = false;
                let process = process(move |ctx, events, out| {
                    out.idle();
                    let pids = pids.get().ok_or("nobody")?;
                    for event in events {
                        if let Event::Exit(notice) = event {
                            notices.send((member, notice.pid, notice.tag))?;
                        }
                    }
                    if has_begun {
                        return Ok(());
                    }
                    has_begun = true;
                    for (tag, pid) in (0..).zip(pids) {
                        ctx.monitor(*pid, tag)?;
                    }
                    // A third each stays, ends by itself, and is ended by the one before.
                    match (member + round) % 3 {
                        0 => {}
                        1 => out.done(()),
                        _ => {
                            let before = usize::try_from((member + CROWD - 1) % CROWD)?;
                            let _ended = ctx.terminate(pids[before]);
                        }
                    }
                    Ok(())
                });
                scheduler.submit(process, "main", ()).unwrap()
            })
            .collect();
        pids.set(members.iter().map(ProcessHandle::pid).collect())
            .unwrap();
        drop(notices);
        // They have stepped without each other's PIDs, and failed, if they were too early.
        for member in &members {
            let _ended = member.address().send(Message::new("go", ()));
        }
        // Who is on the way out has told everybody when it does not count any more.
        until("all is quiet", || {
            let live = scheduler.stats().live;
            let listed = scheduler.processes();
            listed.len() == live && listed.iter().all(|it| it.state == ProcessState::Idle)
        });
        let left: Vec<u64> = (0..)
            .zip(&members)
            .filter(|(_, it)| scheduler.process(it.pid()).is_some())
            .map(|(member, _)| member)
            .collect();
        let mut told = std::collections::HashMap::new();
        for (member, pid, tag) in received.try_iter() {
            assert_eq!(pid, members[usize::try_from(tag).unwrap()].pid());
            assert!(told.insert((member, tag), ()).is_none(), "told twice");
        }
        for member in &left {
            for target in 0..CROWD {
                let is_told = told.contains_key(&(*member, target));
                assert_eq!(
                    is_told,
                    !left.contains(&target),
                    "round {round}: {member} of {target}"
                );
            }
        }
        for member in members {
            let _ended = scheduler.terminate(member.pid());
            exit(member);
        }
    }
}

/// Its `close` says that it has begun, and takes until it is let go.
struct SlowClose {
    closing: Sender<()>,
    go: Receiver<()>,
}

impl Process for SlowClose {
    fn step(&mut self, events: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
        out.idle();
        if events.count() > 0 {
            out.done(());
        }
        Ok(())
    }

    fn close(&mut self) {
        let _ = self.closing.send(());
        let _ = self.go.recv_timeout(PATIENCE);
    }
}

// pins: P12
#[test]
fn a_target_that_is_on_its_way_out_is_told_of_when_it_is_gone() {
    let scheduler = start(2);
    let watcher = puppet(&scheduler);
    for pid in [7, 8].map(|id| Pid::new(scheduler.host_name(), id)) {
        let (closing, is_closing) = channel();
        let (let_go, go) = channel();
        let slow = SlowClose { closing, go };
        let target = scheduler.submit_as(pid, slow, "main", ()).unwrap();
        watcher.monitor(pid, 1);
        target.address().send(Message::new("end", ())).unwrap();
        is_closing.recv_timeout(PATIENCE).unwrap();
        // Its mailbox is closed.
        watcher.have(move |ctx, _| {
            ctx.monitor(pid, 2)?;
            ctx.monitor(pid, 3)?;
            ctx.demonitor(pid, 1);
            ctx.demonitor(pid, 3);
            assert!(ctx.submit_as(pid, waiter(), "main", ()).is_err());
            Ok(())
        });
        assert!(watcher.notices.try_recv().is_err(), "it is there still");
        let_go.send(()).unwrap();
        assert_eq!(watcher.next(), (pid, 2, ExitCause::Done));
        watcher.have(move |ctx, _| {
            ctx.submit_as(pid, waiter(), "main", ())?;
            Ok(())
        });
        watcher.has_none_but(9);
        exit(target);
    }
}

/// Both are in the mailbox of a process that ends in the step that it is in.
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

/// A context that somebody has kept of a process whose PID another one has by now.
#[test]
fn who_has_ended_takes_nothing_back_from_its_successor() {
    let scheduler = start(2);
    let target = puppet(&scheduler);
    let target_pid = target.pid();
    let pid = Pid::new(scheduler.host_name(), 77);
    let (kept, old) = channel();
    let first = process(move |ctx, _, out| {
        kept.send(ctx.clone())?;
        out.done(());
        Ok(())
    });
    exit(scheduler.submit_as(pid, first, "main", ()).unwrap());
    let old = old.recv_timeout(PATIENCE).unwrap();
    let (notices, received) = channel();
    let second = Puppet { ctx: None, notices };
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

//! The notices to the monitors of a process, and their times.

use crate::support::puppet::*;
use crate::support::*;
use ganger_proc_api::{
    BoxError, Context, Event, Events, ExitCause, ExitNotice, Lifecycle, Message, Payload, Payloads,
    Pid, Process, StepOutput, StepResult, SubmitErrorKind, Symbol, UpgradeRequest,
};
use ganger_sched::{ProcessHandle, ProcessState, Scheduler, WeakHandle};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;

fn ends_by(error: &'static str) -> impl Process {
    process(move |_, events, out| {
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
    fn init(&mut self, _: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        Err("no init".into())
    }

    fn step(&mut self, _: &Context, _: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
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

// pins: P1
#[test]
fn a_target_that_ends_while_the_watcher_begins_is_told_of() {
    struct Early {
        target: Option<ProcessHandle>,
        notice: Sender<(ExitNotice, usize)>,
        steps: usize,
    }
    impl Process for Early {
        fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
            let target = self.target.take().ok_or("no target")?;
            ctx.monitor(target.pid(), 3)?;
            target.address().send(Message::new("end", ()))?;
            exit(target);
            Ok(())
        }
        fn step(&mut self, _: &Context, events: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
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
    let watcher = process(move |ctx, events, _| {
        if is_first {
            is_first = false;
            ctx.monitor(target_pid, 1)?;
            // Fills the mailbox while the process runs.
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

/// Keeps a watcher busy until the target has ended, with messages in its mailbox.
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
    // Waits for the present step, so later acts are for the next step.
    on.recv_timeout(PATIENCE).unwrap();
    watcher.tell(move |_, _| Ok(first.send(())?));
    go.send(()).unwrap();
    is_first.recv_timeout(PATIENCE).unwrap();
    let notice = watcher.notices.try_recv().expect("before the message");
    assert_eq!(notice, ExitNotice::new(pid, 1, ExitCause::Done));
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

/// A hook refuses every process but puppets, and has a puppet monitor the refused processes.
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
    // A monitor may also come while the process is being closed.
    let (closing, is_closing) = channel();
    let (let_go, go) = channel();
    let slow = SlowClose { closing, go };
    let pid = Pid::new(scheduler.host_name(), 7);
    thread::scope(|scope| {
        scope.spawn(|| assert!(scheduler.submit_as(pid, slow, "other", ()).is_err()));
        is_closing.recv_timeout(PATIENCE).unwrap();
        watcher.have(move |ctx, _| {
            ctx.monitor(pid, 10)?;
            ctx.monitor(pid, 11)?;
            ctx.demonitor(pid, 11);
            Ok(())
        });
        assert!(watcher.notices.try_recv().is_err(), "it is there still");
        let_go.send(()).unwrap();
    });
    assert_eq!(watcher.next(), (pid, 8, ExitCause::NotFound), "by the hook");
    assert_eq!(watcher.next(), (pid, 10, ExitCause::NotFound));
    watcher.has_none_but(12);
}

/// Has every process monitor every other, while they end in all ways. Each surviving process is
/// notified once of each end.
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
                    // A third of them stay, a third end by themselves, and the member before ends
                    // the others.
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
        // A member has failed if it has stepped too early, without the others' PIDs.
        for member in &members {
            let _ended = member.address().send(Message::new("go", ()));
        }
        // A process that ceases to count as live has notified its monitors.
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

/// Its `close` announces its begin, and waits until it may return.
struct SlowClose {
    closing: Sender<()>,
    go: Receiver<()>,
}

impl Process for SlowClose {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
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
    let chosen = [7, 8].map(|id| Some(Pid::new(scheduler.host_name(), id)));
    for pid in chosen.into_iter().chain([None, None]) {
        let (closing, is_closing) = channel();
        let (let_go, go) = channel();
        let slow = SlowClose { closing, go };
        let target = match pid {
            Some(pid) => scheduler.submit_as(pid, slow, "main", ()).unwrap(),
            None => scheduler.submit(slow, "main", ()).unwrap(),
        };
        let pid = target.pid();
        watcher.monitor(pid, 1);
        target.address().send(Message::new("end", ())).unwrap();
        is_closing.recv_timeout(PATIENCE).unwrap();
        // The mailbox of the target is closed by now.
        watcher.have(move |ctx, _| {
            ctx.monitor(pid, 2)?;
            ctx.monitor(pid, 3)?;
            ctx.demonitor(pid, 1);
            ctx.demonitor(pid, 3);
            assert!(ctx.submit_as(pid, waiter(), "main", ()).is_err());
            Ok(ctx.monitor(pid, 3)?)
        });
        assert!(watcher.notices.try_recv().is_err(), "it is there still");
        let_go.send(()).unwrap();
        assert_eq!(watcher.next(), (pid, 2, ExitCause::Done));
        assert_eq!(watcher.next(), (pid, 3, ExitCause::Done));
        if pid.id() < 10 {
            watcher.have(move |ctx, _| {
                ctx.submit_as(pid, waiter(), "main", ())?;
                Ok(())
            });
        }
        watcher.has_none_but(9);
        exit(target);
    }
}

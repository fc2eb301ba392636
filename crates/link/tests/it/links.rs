//! Links, rule by rule. Their model is in `ganger-model`.

use crate::support::*;
use ganger_link::{Lane, LinkContext, LinkSpawner, TargetError};
use ganger_proc_api::{
    BoxError, Context, Events, ExitCause, ExitReason, Payloads, Pid, Process, StepOutput,
    StepResult, SubmitErrorKind, process_fn,
};
use ganger_sched::{ContextExt, Failure, Scheduler};
use std::sync::mpsc::channel;
use std::time::Instant;

const TAG: u64 = 77;

/// Its `init` fails or panics.
struct Fails(bool);

impl Process for Fails {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        assert_eq!(ctx.links().len(), 1);
        assert!(!self.0, "on purpose: init");
        Err("no init".into())
    }

    fn step(&mut self, _: &Context, _: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
        Ok(())
    }
}

// pins: F2
#[test]
fn of_linked_processes_that_fail_together_the_last_is_reported() {
    let (tell, told) = channel();
    let builder = Scheduler::builder().workers(1);
    let builder = builder.on_failure(move |report| tell.send(report.clone()).unwrap());
    let scheduler = builder.start().unwrap();
    let parent = puppet(&scheduler);
    let pid = parent.handle.pid();
    parent.tell(|ctx, _| {
        let child = process_fn(|_, _, _| Err("soon".into()));
        ctx.linked().spawn(child)?;
        Ok(())
    });
    drop(parent);
    let report = told.recv_timeout(PATIENCE).unwrap();
    assert_eq!(
        (report.pid, &report.failure),
        (pid, &Failure::Exited(failed("soon")))
    );
    assert!(told.try_recv().is_err());
    assert!(
        report
            .to_string()
            .ends_with("no process monitors it: failed: soon"),
        "{report}"
    );
}

// pins: F2
#[test]
fn of_linked_processes_that_fail_each_by_itself_one_is_reported() {
    let (tell, told) = channel();
    let builder = Scheduler::builder().workers(2);
    let builder = builder.on_failure(move |report| tell.send(report.clone()).unwrap());
    let scheduler = builder.start().unwrap();
    let (fail, may_fail) = channel::<()>();
    let (begin, begun) = channel();
    let parent = puppet(&scheduler);
    parent.tell(move |ctx, _| {
        let child = process_fn(move |_, _, _| {
            begin.send(()).unwrap();
            may_fail.recv().unwrap();
            Err("by itself".into())
        });
        ctx.linked().spawn(child)?;
        Ok(())
    });
    begun.recv_timeout(PATIENCE).unwrap();
    // The child is inside of its step when the parent ends.
    parent.tell(|_, _| Err("first".into()));
    assert!(matches!(exit(parent.handle), ExitReason::Failed(_)));
    fail.send(()).unwrap();
    let report = told.recv_timeout(PATIENCE).unwrap();
    assert!(report.to_string().ends_with("by itself"), "{report}");
}

// pins: L1, L4
#[test]
fn a_child_is_linked_from_its_first_moment_on_however_soon_it_ends() {
    let scheduler = start(2);
    for _ in 0..100 {
        let parent = puppet(&scheduler);
        parent.tell(|ctx, _| {
            ctx.linked()
                .spawn(process_fn(|_, _, _| Err("soon".into())))?;
            Ok(())
        });
        let reason = exit(parent.handle);
        assert!(
            matches!(&reason, ExitReason::Exited(it) if *it == failed("soon")),
            "{reason}"
        );
    }
}

// pins: L4
#[test]
fn a_child_that_is_linked_to_the_dead_takes_its_parent_along() {
    let scheduler = start(1);
    let parent = puppet(&scheduler);
    parent.tell(|ctx, _| {
        let nobody = Pid::new(ctx.pid().host(), 4_000_000_000);
        let child = process_fn(move |ctx, _, _| Ok(ctx.link(nobody)?));
        ctx.linked().spawn(child)?;
        Ok(())
    });
    let reason = exit(parent.handle);
    assert!(
        matches!(reason, ExitReason::Exited(ExitCause::NotFound)),
        "{reason}"
    );
}

// pins: L1
#[test]
fn a_child_whose_init_fails_is_an_error_and_no_signal() {
    let scheduler = start(1);
    let parent = puppet(&scheduler);
    parent.have(|ctx, _| {
        ctx.trap_exits(TAG);
        for panics in [false, true] {
            let spawner = ctx.linked().linked();
            let spawner = spawner.watched(1, ganger_link::Lane::InOrder);
            let error = spawner.spawn(Fails(panics)).unwrap_err();
            let is_panic = matches!(error.kind, SubmitErrorKind::InitPanicked(_));
            assert_eq!(is_panic, panics);
            assert_eq!(ctx.links(), []);
        }
        Ok(())
    });
    // After two more steps, all sent notices have come.
    parent.have(|_, out| {
        out.step_again();
        Ok(())
    });
    parent.have(|_, _| Ok(()));
    assert_eq!(parent.told(), []);
    assert_eq!(scheduler.stats().live, 1);
}

/// Links itself in its `init`, which fails or panics.
struct LinksAndFails(Pid, bool);

impl Process for LinksAndFails {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        ctx.link(self.0)?;
        assert!(!self.1, "on purpose: init");
        Err("no init".into())
    }

    fn step(&mut self, _: &Context, _: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
        Ok(())
    }
}

// pins: L1, L4
#[test]
fn a_peer_that_was_linked_in_an_init_that_fails_gets_the_cause() {
    let scheduler = start(1);
    let peer = puppet(&scheduler);
    peer.have(|ctx, _| {
        ctx.trap_exits(TAG);
        Ok(())
    });
    let panicked = ExitCause::Panicked("on purpose: init".into());
    for (panics, cause) in [(false, failed("no init")), (true, panicked)] {
        drop(
            scheduler
                .spawn(LinksAndFails(peer.pid(), panics))
                .unwrap_err(),
        );
        peer.have(|_, _| Ok(()));
        let told: Vec<_> = peer.told().into_iter().map(|it| it.2).collect();
        assert_eq!(told, [cause]);
    }
    // Without a trap of exits, a peer ends with the process.
    peer.have(|ctx, _| {
        ctx.end_trap();
        Ok(())
    });
    drop(
        scheduler
            .spawn(LinksAndFails(peer.pid(), false))
            .unwrap_err(),
    );
    let reason = exit(peer.handle);
    assert!(
        matches!(&reason, ExitReason::Exited(it) if *it == failed("no init")),
        "{reason}"
    );
}

// pins: L6
#[test]
fn a_link_to_the_dead_is_a_signal_and_kill_can_not_be_trapped() {
    let scheduler = start(1);
    let (one, other, gone) = (puppet(&scheduler), puppet(&scheduler), puppet(&scheduler));
    let dead = gone.pid();
    scheduler.terminate(dead).unwrap();
    exit(gone.handle);
    other.have(move |ctx, _| {
        ctx.trap_exits(TAG);
        ctx.link(dead)?;
        ctx.link(dead)?;
        ctx.unlink(dead)?;
        ctx.link(dead)?;
        Ok(())
    });
    let its_pid = other.pid();
    one.have(move |ctx, _| {
        ctx.link(its_pid)?;
        ctx.link(its_pid)?;
        assert_eq!(ctx.links(), [its_pid]);
        assert!(matches!(
            ctx.link("nobody"),
            Err(TargetError::NoSuchName(_))
        ));
        let elsewhere: Pid = "{elsewhere|1}".parse().unwrap();
        assert!(matches!(
            ctx.link(elsewhere),
            Err(TargetError::Elsewhere(_))
        ));
        Ok(())
    });
    other.have(|_, _| Ok(()));
    assert_eq!(other.told(), [(dead, TAG, ExitCause::NotFound)]);
    // The process traps exits, and is terminated all the same. Its peer ends with the same cause.
    scheduler.terminate(its_pid).unwrap();
    assert!(matches!(exit(other.handle), ExitReason::Terminated));
    let reason = exit(one.handle);
    assert!(
        matches!(reason, ExitReason::Exited(ExitCause::Terminated)),
        "{reason}"
    );
    let detached = Context::detached(dead);
    assert_eq!(detached.link(dead), Err(TargetError::Detached));
    assert!(detached.exit(dead, ExitCause::Done).is_err());
    assert!(detached.linked().spawn(Fails(false)).is_err());
    assert!(detached.scheduler().is_none());
}

// pins: L5
#[test]
fn after_an_unlink_in_a_step_a_notice_that_waits_is_not_shown() {
    let scheduler = start(1);
    let other = puppet(&scheduler);
    let its_pid = other.pid();
    let (linked, is_linked) = std::sync::mpsc::channel();
    let one = scheduler.spawn(process_fn({
        let mut is_first = true;
        move |ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput| {
            if std::mem::take(&mut is_first) {
                ctx.trap_exits(TAG);
                ctx.link(its_pid)?;
                linked.send(())?;
            } else if !events.is_empty() {
                // The notice has arrived, and is not taken.
                ctx.unlink(its_pid)?;
                assert!(events.next().is_none());
                out.done(());
            }
            Ok(())
        }
    }));
    is_linked.recv_timeout(PATIENCE).unwrap();
    scheduler.terminate(its_pid).unwrap();
    assert!(matches!(exit(other.handle), ExitReason::Terminated));
    let reason = exit(one.unwrap());
    assert!(reason.is_done(), "{reason}");
}

// pins: L4
#[test]
fn many_that_are_linked_end_together() {
    const MANY: usize = 20_000;
    let scheduler = start(2);
    let parent = puppet(&scheduler);
    parent.have(|ctx, _| {
        for _ in 0..MANY {
            ctx.linked().spawn(process_fn(|_, _, _| Ok(())))?;
        }
        assert_eq!(ctx.links().len(), MANY);
        Ok(())
    });
    let pid = parent.pid();
    let last = puppet(&scheduler);
    last.have(move |ctx, _| Ok(ctx.link(pid)?));
    parent.tell(|_, _| Err("boom".into()));
    assert!(matches!(exit(last.handle), ExitReason::Exited(it) if it == failed("boom")));
    let begin = std::time::Instant::now();
    while scheduler.stats().live > 0 {
        assert!(begin.elapsed() < PATIENCE);
        std::thread::yield_now();
    }
}

// pins: P12
#[test]
fn a_child_that_ends_by_a_link_to_the_dead_has_been_started_and_is_told_of() {
    let scheduler = start(2);
    let gone = scheduler.spawn(process_fn(|_, _, out| {
        out.done(());
        Ok(())
    }));
    let gone = gone.unwrap();
    let dead = gone.pid();
    exit(gone);
    let parent = puppet(&scheduler);
    parent.have(move |ctx, _| {
        ctx.trap_exits(1);
        let spawner = ctx.linked().watched(2, Lane::Overtaking).monitored(3);
        spawner.spawn(process_fn(move |ctx, _, _| Ok(ctx.link(dead)?)))?;
        Ok(())
    });
    let begin = Instant::now();
    let mut told = Vec::new();
    while told.len() < 3 && begin.elapsed() < PATIENCE {
        parent.have(|_, _| Ok(()));
        told.extend(parent.told());
    }
    let mut told: Vec<_> = told.into_iter().map(|it| (it.1, it.2)).collect();
    told.sort_unstable_by_key(|it| it.0);
    assert_eq!(told, [1, 2, 3].map(|tag| (tag, ExitCause::NotFound)));
}

#[test]
fn an_unlink_withdraws_each_notice_of_a_peer_that_was_linked_to_anew() {
    let scheduler = start(1);
    let gone = scheduler.spawn(process_fn(|_, _, out| {
        out.done(());
        Ok(())
    }));
    let gone = gone.unwrap();
    let dead = gone.pid();
    exit(gone);
    let told = scheduler.spawn(process_fn({
        let mut step = 0;
        move |ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput| {
            step += 1;
            match step {
                1 => ctx.trap_exits(1),
                // The notice of the first link is left.
                2 | 3 => ctx.link(dead)?,
                4 => {
                    assert_eq!(events.len(), 2);
                    ctx.unlink(dead)?;
                    assert!(events.next().is_none());
                    out.done(());
                    return Ok(());
                }
                _ => return Err("too many steps".into()),
            }
            out.step_again();
            Ok(())
        }
    }));
    assert!(exit(told.unwrap()).is_done());
}

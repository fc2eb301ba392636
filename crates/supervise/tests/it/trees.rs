//! The behaviours of supervisors.

use crate::support::*;
use ganger_proc_api::{
    Actor, BoxError, CommandError, Completion, Context, EndKind, ExitNotice, ExitReason, Lifecycle,
    Pid, Process, SendErrorKind, StepOutput, StepResult, Symbol, actor_fn, process_fn,
};
use ganger_sched::Builder;
use ganger_supervise::{
    AddressError, AutoShutdown, ChildSpec, ChildState, SuperviseError, Supervisor, Tree,
};
use ganger_task::Cx;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

// pins: S1, S4, S5
#[test]
fn a_group_is_stopped_backwards_and_started_forwards() {
    sim(1).check_seeds(40, |rt| {
        let log = Log::default();
        let tree = Supervisor::rest_for_one()
            .child("a", log.child("a"))
            .child("b", log.child("b"))
            .child("c", log.child("c"))
            .start(rt)
            .unwrap();
        assert_eq!(log.take(), ["+a", "+b", "+c"]);
        send(rt, &tree, "b", Do::Fail);
        rt.settle();
        assert_eq!(log.take(), ["-b", "-c", "+b", "+c"]);
        assert_eq!(tree.count(), Ok((3, 3)));
        tree.cancel("enough").unwrap();
        let end = end_of(rt, tree);
        assert!(matches!(end, ExitReason::Cancelled(_)), "{end}");
        assert_eq!(log.take(), ["-c", "-b", "-a"]);
    });
}

// pins: F4
#[test]
fn an_order_to_a_supervisor_that_is_gone_says_so_with_its_pid() {
    let scheduler = start(1);
    let tree = Supervisor::one_for_one().start(&scheduler).unwrap();
    let (other, pid) = (Tree::clone(&tree), tree.pid());
    tree.stop();
    let error = other.stop_child("a").wait().unwrap_err();
    let CommandError::Failed(error) = &error else {
        panic!("{error}");
    };
    let text = format!("the supervisor {pid} has ended: the process has ended: it was cancelled");
    assert_eq!(error.to_string(), text);
    let kind = SendErrorKind::Ended(EndKind::Cancelled);
    let error = error.downcast_ref::<SuperviseError>();
    assert!(
        matches!(error, Some(SuperviseError::Gone { supervisor, kind: it })
        if *supervisor == pid && *it == kind)
    );
}

// pins: F2
#[test]
fn the_failures_of_children_are_not_reported_and_that_of_the_supervisor_is() {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&reports);
    let noting = move |builder: Builder| {
        let noted = Arc::clone(&noted);
        builder.on_failure(move |it| noted.lock().unwrap().push(it.to_string()))
    };
    sim(3).builder(noting).check_seeds(20, |rt| {
        let log = Log::default();
        let supervisor = Supervisor::one_for_one().intensity(1, secs(60));
        let tree = supervisor.child("a", log.child("a")).start(rt).unwrap();
        send(rt, &tree, "a", Do::Fail);
        rt.settle();
        assert_eq!(*reports.lock().unwrap(), [] as [String; 0]);
        send(rt, &tree, "a", Do::Fail);
        rt.settle();
        // Its handle may be looked at.
        assert_eq!(*reports.lock().unwrap(), [] as [String; 0]);
        drop(tree);
        let reports = std::mem::take(&mut *reports.lock().unwrap());
        assert_eq!(reports.len(), 1, "{reports:?}");
        assert!(
            reports[0].contains("failed, and no process monitors it"),
            "{reports:?}"
        );
    });
}

// pins: S4
#[test]
fn a_child_that_does_not_start_stops_those_before_it_and_fails_the_supervisor() {
    sim(2).check_seeds(40, |rt| {
        let log = Log::default();
        let broken = log.child("c");
        let error = Supervisor::one_for_one()
            .child("a", log.child("a"))
            .child("b", log.child("b"))
            .child("c", move || Noting {
                init: Err("broken"),
                ..broken()
            })
            .child("d", log.child("d"))
            .start(rt)
            .unwrap_err();
        let text = error.to_string();
        assert!(text.contains("\"c\"") && text.contains("broken"), "{text}");
        rt.settle();
        assert_eq!(log.take(), ["+a", "+b", "-b", "-a"]);
    });
}

// pins: S4
#[test]
fn a_factory_that_fails_or_panics_is_a_start_that_fails() {
    let scheduler = start(1);
    let failing =
        Supervisor::one_for_one().child("x", || -> Result<Noting, &str> { Err("no disk") });
    let error = failing.start(&scheduler).unwrap_err().to_string();
    assert!(error.contains("no disk"), "{error}");
    let panicking = Supervisor::one_for_one().child("x", || -> Noting { panic!("no memory") });
    let error = panicking.start(&scheduler).unwrap_err().to_string();
    assert!(error.contains("no memory"), "{error}");
}

// pins: S2, S3
#[test]
fn a_supervisor_restarts_after_each_kind_of_failure_and_gives_up_after_too_many() {
    let scheduler = start(2);
    let log = Log::default();
    let tree = Supervisor::one_for_one()
        .intensity(2, secs(600))
        .child("a", log.child("a"))
        .child("b", log.child("b"))
        .start(&scheduler)
        .unwrap();
    for (restarts, what) in [(1, Do::Panic), (2, Do::Fail)] {
        send(&scheduler, &tree, "b", what);
        until("restart", || tree.children()[1].restarts == restarts);
    }
    let info = tree.children();
    assert_eq!(
        info[1].last.as_ref().unwrap().to_string(),
        "failed: no luck"
    );
    assert_eq!((info[0].restarts, info[0].state), (0, ChildState::Runs));
    send(&scheduler, &tree, "b", Do::Fail);
    let ExitReason::Failed(error) = tree.wait() else {
        panic!("it fails")
    };
    let error = error.downcast_ref::<SuperviseError>().unwrap();
    assert!(
        matches!(error, SuperviseError::GaveUp { child, .. } if &**child == "b"),
        "{error}"
    );
    // And not why its sibling ended after it.
    assert!(error.to_string().ends_with("failed: no luck"), "{error}");
    assert_eq!(log.take(), ["+a", "+b", "-b", "+b", "-b", "+b", "-b", "-a"]);
}

// pins: S2
#[test]
fn a_child_that_ends_at_once_has_its_own_cause() {
    // A monitor of a child after its end would report `NotFound`.
    sim(3).check_seeds(60, |rt| {
        let starts = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&starts);
        let tree = Supervisor::one_for_one()
            .with(
                ChildSpec::new("done", move || {
                    count.fetch_add(1, Ordering::Relaxed);
                    process_fn(|_, _, out| {
                        out.done(());
                        Ok(())
                    })
                })
                .transient(),
            )
            .start(rt)
            .unwrap();
        rt.settle();
        assert_eq!(starts.load(Ordering::Relaxed), 1);
        assert_eq!(tree.children()[0].state, ChildState::Stopped);
        tree.cancel("enough").unwrap();
        end_of(rt, tree);
    });
}

// pins: S5
#[test]
fn a_child_that_does_not_stop_is_terminated_after_its_own_time() {
    sim(4).check_seeds(40, |rt| {
        let log = Log::default();
        let tree = Supervisor::one_for_one()
            .child("a", log.child("a"))
            .with(stubborn(&log, "b", secs(2)))
            .start(rt)
            .unwrap();
        let begin = rt.now();
        tree.cancel("enough").unwrap();
        let looks = Tree::clone(&tree);
        end_of(rt, tree);
        let took = rt.now() - begin;
        assert!(took >= secs(2) && took < ms(2_100), "{took:?}");
        assert_eq!(log.take(), ["+a", "+b", "-b", "-a"]);
        assert_eq!(looks.slow(), ["b"]);
    });
}

// pins: S6
#[test]
fn children_are_started_stopped_and_restarted_at_run_time() {
    sim(5).check_seeds(40, |rt| {
        let log = Log::default();
        let tree = Supervisor::one_for_all().max_children(2).start(rt).unwrap();
        let a = rt
            .answer(tree.start_child(ChildSpec::new("a", log.child("a"))))
            .unwrap();
        assert_eq!(tree.child("a"), Some(a));
        let taken = rt.answer(tree.start_child(ChildSpec::new("a", log.child("a"))));
        assert!(taken.unwrap_err().to_string().contains("named"));
        rt.answer(tree.start_child(ChildSpec::new("b", log.child("b"))))
            .unwrap();
        let full = rt.answer(tree.start_child(ChildSpec::new("c", log.child("c"))));
        assert!(full.unwrap_err().to_string().contains("max_children"));
        rt.answer(tree.stop_child("a")).unwrap();
        assert_eq!((tree.child("a"), tree.count()), (None, Ok((2, 1))));
        let again = rt.answer(tree.restart_child("a")).unwrap();
        assert!(again != a && tree.child("a") == Some(again));
        let other = rt.answer(tree.restart_child(again)).unwrap();
        assert_eq!(tree.child("a"), Some(other));
        rt.answer(tree.remove_child("b")).unwrap();
        assert_eq!(tree.count(), Ok((1, 1)));
        assert!(rt.answer(tree.stop_child("b")).is_err());
        assert_eq!(log.take(), ["+a", "+b", "-a", "+a", "-a", "+a", "-b"]);
        tree.cancel("enough").unwrap();
        end_of(rt, tree);
    });
}

// pins: S9
#[test]
fn supervisors_below_escalate_and_print_themselves() {
    sim(6).check_seeds(40, |rt| {
        let log = Log::default();
        let below = log.clone();
        let tree = Supervisor::one_for_one()
            .label("top")
            .child("below", move || {
                Supervisor::one_for_one()
                    .intensity(0, secs(5))
                    .child("x", below.child("x"))
                    .child("y", below.child("y"))
            })
            .child("z", log.child("z"))
            .start(rt)
            .unwrap();
        assert_eq!(
            tree.to_string(),
            "top (one for one)\n├─ below runs:\n│  ├─ x runs.\n│  └─ y runs.\n└─ z runs."
        );
        let first = tree.child("below").unwrap();
        send(rt, &tree, "below/x", Do::Fail);
        rt.settle();
        assert!(tree.child("below").unwrap() != first && tree.child("below/y").is_some());
        assert_eq!(log.take(), ["+x", "+y", "+z", "-x", "-y", "+x", "+y"]);
        tree.cancel("enough").unwrap();
        end_of(rt, tree);
        assert_eq!(log.take(), ["-z", "-y", "-x"]);
    });
}

// pins: S10
#[test]
fn children_go_when_their_supervisor_is_terminated() {
    sim(7).check_seeds(60, |rt| {
        let log = Log::default();
        let tree = Supervisor::one_for_one()
            .child("a", log.child("a"))
            .with(stubborn(&log, "b", secs(1)))
            .start(rt)
            .unwrap();
        rt.terminate(tree.pid()).unwrap();
        assert!(matches!(end_of(rt, tree), ExitReason::Terminated));
        rt.settle();
        rt.run_for(secs(2));
        assert_eq!(log.take(), ["+a", "+b", "-b", "-a"]);
        assert_eq!(rt.processes().len(), 0);
    });
}

// pins: S8
#[test]
fn a_significant_child_takes_its_supervisor_along_when_it_is_done() {
    let scheduler = start(2);
    let log = Log::default();
    let tree = Supervisor::one_for_one()
        .auto_shutdown(AutoShutdown::Any)
        .child("a", log.child("a"))
        .with(
            ChildSpec::new("main", log.child("main"))
                .transient()
                .significant(),
        )
        .start(&scheduler)
        .unwrap();
    send(&scheduler, &tree, "main", Do::Finish);
    assert!(tree.wait().is_done());
    assert_eq!(log.take(), ["+a", "+main", "-main", "-a"]);
}

// pins: S12
#[test]
fn actors_tasks_state_machines_and_results_are_children() {
    let scheduler = start(2);
    let tree = Supervisor::one_for_one()
        .child("actor", || actor_fn(|_, _: u8, _| Ok(())))
        .child("machine", || process_fn(|_, _, _| Ok(())))
        .child("task", || {
            ganger_task::process(async |cx: Cx<u16>| {
                let number = cx.recv().await.ok_or("cancelled")?;
                Err::<(), _>(format!("{number} is too much").into())
            })
        })
        .with(
            ChildSpec::new("result", || Ok::<_, &str>(actor_fn(|_, _: u32, _| Ok(()))))
                .registered(),
        )
        .start(&scheduler)
        .unwrap();
    assert!(tree.address::<u8>("actor").is_ok());
    assert!(tree.address::<u16>("actor").is_err());
    assert_eq!(scheduler.whereis("result"), tree.child("result"));
    let before = tree.child("task");
    tree.address::<u16>("task").unwrap().send(7).unwrap();
    until("restart", || {
        tree.child("task").is_some_and(|it| Some(it) != before)
    });
    let last = tree.children()[2].last.clone().unwrap().to_string();
    assert_eq!(last, "failed: 7 is too much");
    assert!(matches!(tree.stop().reason, ExitReason::Cancelled(_)));
}

// pins: S10
#[test]
fn a_supervisor_is_started_again_when_its_orphans_have_ended() {
    sim(12).check_seeds(60, |rt| {
        let log = Log::default();
        let below = log.clone();
        let tree = Supervisor::one_for_one()
            .child("s", move || {
                let lowest = below.clone();
                let lower = move || Supervisor::one_for_one().child("z", lowest.child("z"));
                Supervisor::one_for_one()
                    .with(stubborn(&below, "x", secs(1)))
                    .child("t", lower)
            })
            .start(rt)
            .unwrap();
        assert_eq!(log.take(), ["+x", "+z"]);
        rt.terminate(tree.child("s").unwrap()).unwrap();
        if rt.choose(2) == 0 {
            // The supervisor below ends as well.
            drop(rt.terminate(tree.child("s/t").unwrap()));
        }
        rt.settle();
        rt.run_for(secs(2));
        assert_eq!(log.take(), ["-z", "-x", "+x", "+z"]);
        tree.cancel("enough").unwrap();
        end_of(rt, tree);
        assert_eq!(log.take(), ["-z", "-x"]);
    });
}

/// Hooks that keep the last process that was started to stop orphans.
#[derive(Clone, Default)]
struct Guardians(Arc<Mutex<Option<Pid>>>);

impl Lifecycle for Guardians {
    fn on_start(&self, pid: Pid, method: Symbol) -> Result<(), BoxError> {
        if method.as_str() == "orphans" {
            *self.0.lock().unwrap() = Some(pid);
        }
        Ok(())
    }
}

/// Checks the same where the process that stops the orphans fails, too.
// pins: S10
#[test]
fn a_supervisor_without_a_guardian_is_started_again_when_its_orphans_have_ended() {
    let guardians = Guardians::default();
    let hooks = guardians.clone();
    let sim = sim(13).builder(move |builder| builder.lifecycle(hooks.clone()));
    sim.check_seeds(60, |rt| {
        let log = Log::default();
        let below = log.clone();
        let tree = Supervisor::one_for_one()
            .child("s", move || {
                Supervisor::one_for_one().with(stubborn(&below, "x", secs(1)))
            })
            .start(rt)
            .unwrap();
        assert_eq!(log.take(), ["+x"]);
        rt.terminate(tree.child("s").unwrap()).unwrap();
        let guardian = loop {
            rt.step();
            if let Some(guardian) = guardians.0.lock().unwrap().take() {
                break guardian;
            }
        };
        rt.terminate(guardian).unwrap();
        rt.settle();
        assert_eq!(log.take(), ["-x", "+x"]);
        tree.cancel("enough").unwrap();
        end_of(rt, tree);
        assert_eq!(log.take(), ["-x"]);
    });
}

// pins: S6
#[test]
fn addresses_and_subtrees_say_why_there_are_none() {
    sim(15).check_seeds(10, |rt| {
        let log = Log::default();
        let below = log.clone();
        let web = move || Supervisor::one_for_one().child("cache", below.child("cache"));
        let tree = Supervisor::one_for_one()
            .child("web", web)
            .with(ChildSpec::new("log", log.child("log")).named("the log"))
            .start(rt)
            .unwrap();
        assert_eq!(rt.whereis("the log"), tree.child("log"));
        let web = tree.subtree("web").unwrap();
        assert_eq!(web.child("cache"), tree.child("web/cache"));
        let text = |error: AddressError| error.to_string();
        let error = text(tree.address::<Do>("wbe").unwrap_err());
        assert_eq!(error, r#"no child "wbe"; the supervisor has "web", "log""#);
        let error = text(tree.address::<u8>("web/cache").unwrap_err());
        assert!(error.contains("u8") && error.contains("Do"), "{error}");
        assert!(tree.subtree("log").is_err());
        rt.answer(tree.stop_child("log")).unwrap();
        let error = text(tree.address::<Do>("log").unwrap_err());
        assert_eq!(error, r#"the child "log" is not running: it stopped"#);
        tree.cancel("enough").unwrap();
        end_of(rt, tree);
    });
}

// pins: S6
#[test]
fn a_supervisor_in_a_box_is_seen_with_its_children() {
    sim(16).check_seeds(10, |rt| {
        let log = Log::default();
        let below = log.clone();
        let web = move || -> Box<dyn Process> {
            let supervisor = Supervisor::one_for_one().child("cache", below.child("cache"));
            Box::new(supervisor)
        };
        let tree = Supervisor::one_for_one().child("web", web);
        let tree = tree.start(rt).unwrap();
        assert!(tree.child("web/cache").is_some());
        assert_eq!(tree.subtree("web").unwrap().count(), Ok((1, 1)));
        tree.cancel("enough").unwrap();
        end_of(rt, tree);
    });
}

/// Starts a child, and hears of its end.
struct Asker(Tree, Log, Stops);

impl Actor for Asker {
    type Message = ();

    fn receive(&mut self, ctx: &Context, (): (), out: &mut StepOutput) -> StepResult {
        let init: Result<(), &str> = match self.2 {
            Stops::AtOnce => Ok(()),
            _ => Err("no luck"),
        };
        let ends = process_fn(|_, _, _| Err("no luck".into()));
        let ends = std::sync::Mutex::new(Some(ends));
        let make = move || -> Result<_, BoxError> {
            init?;
            Ok(ends.lock().unwrap().take().ok_or("once")?)
        };
        let child = ChildSpec::new("child", make).temporary();
        out.ask(self.0.start_child_monitored(ctx, child, 7), 1);
        Ok(())
    }

    fn completed(&mut self, _: &Context, it: Completion, _: &mut StepOutput) -> StepResult {
        self.1.note(format!("started: {}", it.result.is_ok()));
        Ok(())
    }

    fn exited(&mut self, _: &Context, notice: ExitNotice, _: &mut StepOutput) -> StepResult {
        self.1.note(format!("{}: {}", notice.tag, notice.cause));
        Ok(())
    }
}

// pins: S6
#[test]
fn the_process_that_has_a_child_started_is_told_of_its_end() {
    sim(16).check_seeds(60, |rt| {
        let log = Log::default();
        let tree = Supervisor::dynamic().start(rt).unwrap();
        let fails = rt.choose(2) == 0;
        let stops = if fails { Stops::Never } else { Stops::AtOnce };
        let asker = Asker(Tree::clone(&tree), log.clone(), stops);
        let asker = rt.spawn(asker).unwrap();
        asker.send(()).unwrap();
        rt.settle();
        let mut notes = log.take();
        notes.sort();
        match fails {
            true => assert_eq!(notes, ["started: false"]),
            false => assert_eq!(notes, ["7: failed: no luck", "started: true"]),
        }
        tree.cancel("enough").unwrap();
        end_of(rt, tree);
        rt.cancel(asker.pid(), "enough").unwrap();
        rt.wait(asker);
    });
}

// pins: S6
#[test]
fn a_hundred_thousand_children_come_and_go() {
    let scheduler = start(2);
    let tree = Supervisor::dynamic()
        .intensity(u32::MAX, secs(5))
        .start(&scheduler)
        .unwrap();
    let all = 100_000;
    // A look at each for each would take ten milliards of steps.
    let calls: Vec<_> = (0..all)
        .map(|number| {
            let child = ChildSpec::new(number.to_string(), move || {
                actor_fn(|_, (): (), out| {
                    out.done(());
                    Ok(())
                })
            });
            tree.start_child(child.transient()).begin()
        })
        .collect();
    for call in calls {
        call.wait().unwrap();
    }
    assert_eq!(tree.count(), Ok((all, all)));
    for number in 0..all / 2 {
        tree.address::<()>(&number.to_string())
            .unwrap()
            .send(())
            .unwrap();
    }
    let calls = (all / 2..all * 3 / 4).map(|number| tree.stop_child(number.to_string()).begin());
    for call in calls.collect::<Vec<_>>() {
        call.wait().unwrap();
    }
    until("half of them are done", || {
        tree.count().unwrap().0 == all / 4
    });
    assert!(matches!(tree.stop().reason, ExitReason::Cancelled(_)));
}

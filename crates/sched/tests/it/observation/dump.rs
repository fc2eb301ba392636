//! The view of an idle scheduler.

use crate::support::*;
use ganger_proc_api::{
    BoxError, Command, CommandId, Completer, Context, Events, Message, Payloads, Process,
    StepOutput, StepResult, UpgradeRequest, process_fn,
};
use ganger_sched::{ContextExt, Dump, ProcessDump, ProcessInfo, ProcessState, Scheduler};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const KEPT: CommandId = CommandId::new(256);

fn of(dump: &Dump, method: &str) -> ProcessDump {
    let mut found = dump.processes.iter().filter(|it| it.info.method == method);
    let process = found.next().expect("it is alive").clone();
    assert!(found.next().is_none());
    process
}

/// Creates a process that stays in its step until it may continue.
fn stays(until_told: &Arc<AtomicBool>) -> impl Process {
    let is_told = Arc::clone(until_told);
    process(move |_, _, out| {
        until("the step is told to end", || is_told.load(Ordering::SeqCst));
        out.done(());
        Ok(())
    })
}

// pins: P15
#[test]
fn a_dump_says_who_runs_what_and_what_waits_for_whom() {
    let scheduler = Scheduler::builder()
        .workers(1)
        .max_spares(0)
        .mailbox_limit(8)
        .build()
        .unwrap();
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&kept);
    let handler = move |_: Command, completer: Completer| {
        keep.lock().unwrap().push(completer);
        Ok(())
    };
    scheduler.register(KEPT, "kept", handler).unwrap();
    assert!(!scheduler.is_started() && !scheduler.dump().is_started);
    assert!(scheduler.dump().to_string().contains(", not started: "));
    scheduler.start().unwrap();
    assert!(scheduler.is_started() && !scheduler.is_stopping());
    let asks = process(|_, events, out| {
        if events.count() == 0 {
            out.yield_command(Command::new(KEPT, ()), 0);
        }
        out.defer_cancel();
        Ok(())
    });
    let asks = scheduler.submit(asks, "asks", ()).unwrap();
    let idle = scheduler
        .submit(stubborn(&Calls::new()), "idle", ())
        .unwrap();
    until_state(&scheduler, asks.pid(), ProcessState::Blocked);
    until_state(&scheduler, idle.pid(), ProcessState::Idle);

    let dump = scheduler.dump();
    assert_eq!(of(&dump, "asks").info.state, ProcessState::Blocked);
    let quiet = of(&dump, "idle");
    assert_eq!(
        (quiet.has_mail, quiet.info.queued, quiet.system_events),
        (false, Some(0), 0)
    );

    let is_told = Arc::new(AtomicBool::new(false));
    let stays = scheduler.submit(stays(&is_told), "stays", ()).unwrap();
    until_state(&scheduler, stays.pid(), ProcessState::Running);
    // The only worker is in this step: later messages and processes wait.
    idle.send(Message::new("one", ())).unwrap();
    idle.send(Message::new("two", ())).unwrap();
    idle.send_control(Message::new("three", ())).unwrap();
    scheduler.cancel(asks.pid(), "a test").unwrap();
    let later = scheduler.submit(waiter(), "later", ()).unwrap();

    let dump = scheduler.dump();
    let worker = &dump.workers[0];
    assert_eq!((dump.workers.len(), worker.running), (1, Some(stays.pid())));
    assert!(!worker.is_looking && worker.turns >= 3);
    assert_eq!(worker.thread.is_some(), cfg!(target_os = "linux"));
    let woken = of(&dump, "idle");
    assert_eq!(woken.info.state, ProcessState::Ready);
    assert_eq!((woken.info.queued, woken.system_events), (Some(2), 1));
    assert!(
        woken.has_mail,
        "what came after the first is in the mailbox"
    );
    let cancelled = of(&dump, "asks");
    assert!(cancelled.info.is_cancelled && cancelled.has_mail);
    assert_eq!((dump.urgent_queue, dump.stats.global_queue), (1, 2));
    assert_eq!(dump.stats.ready, 3);
    assert_eq!(dump.stats.live, dump.processes.len());

    let text = dump.to_string();
    assert!(dump.is_started && !text.contains("not started") && !text.ends_with('\n'));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1 + 1 + 4, "{text}");
    assert!(lines[1].contains(&format!("worker 0: runs {}", stays.pid())));
    for (pid, method, state, rest) in [
        (
            asks.pid(),
            "asks",
            "Ready",
            " ago, has mail, cancelled, 0 messages, 1 system events",
        ),
        (
            idle.pid(),
            "idle",
            "Ready",
            " ago, has mail, 2 messages, 1 system events",
        ),
        (stays.pid(), "stays", "Running", " ago, 0 messages"),
        (later.pid(), "later", "Ready", ", has not run, 0 messages"),
    ] {
        let begin = format!("  {pid} ({method} of ");
        let line = lines.iter().find(|line| line.starts_with(&begin));
        let line = line.unwrap_or_else(|| panic!("{begin} is not in {text}"));
        assert!(line.contains(&format!("): {state}, ")), "{line}");
        assert!(line.ends_with(rest), "{line}");
    }

    is_told.store(true, Ordering::SeqCst);
    exit(stays);
    kept.lock().unwrap().clear();
    // A process with untaken messages would be found running.
    for waits in [&asks, &idle, &later] {
        until_state(&scheduler, waits.pid(), ProcessState::Idle);
    }
    until("the worker has found nothing more", || {
        scheduler.dump().workers[0].is_looking
    });
    assert_eq!(scheduler.dump().workers[0].running, None);
    drop((asks, idle, later));
    scheduler.stop(Duration::ZERO).unwrap();
}

/// Starts a child in its step, and leaves its messages.
#[derive(Default)]
struct Parent {
    took: bool,
}

impl Process for Parent {
    fn init(&mut self, ctx: &Context, method: &str, _: Payloads) -> Result<(), BoxError> {
        if method == "early" {
            ctx.spawn(process_fn(|_, _, _| Ok(())))?;
        }
        ctx.register_name("a parent")?;
        ctx.register_name("of one")?;
        Ok(())
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
        if events.is_empty() {
            ctx.submit(waiter(), "child", ())?;
        }
        if events.len() == 3 && !mem::replace(&mut self.took, true) {
            events.next();
        }
        if events.len() == 4 {
            events.for_each(drop);
        }
        Ok(())
    }
}

// pins: P15
#[test]
fn a_look_says_of_what_type_a_process_is_and_where_it_comes_from() {
    let scheduler = start(1);
    let look = |pid| scheduler.process(pid).unwrap();
    let parent = scheduler.submit(Parent::default(), "main", ()).unwrap();
    let child = || {
        scheduler
            .processes()
            .into_iter()
            .find(|it| it.method == "child")
    };
    until("it has a child", || child().is_some());
    let child = child().unwrap();
    assert_eq!((child.parent, child.left), (Some(parent.pid()), 0));
    assert!(child.names.is_empty() && child.queued.is_none());
    until_state(&scheduler, parent.pid(), ProcessState::Idle);
    let seen = look(parent.pid());
    assert_eq!((seen.parent, seen.left), (None, 0));
    assert!(seen.type_name.ends_with("::Parent"), "{}", seen.type_name);
    assert_eq!(*seen.names, ["a parent".into(), "of one".into()]);
    // The third step takes an event, and leaves two.
    for left in [1, 2, 2, 3] {
        parent.send(Message::new("left", ())).unwrap();
        until("it has left them", || look(parent.pid()).left == left);
        until_state(&scheduler, parent.pid(), ProcessState::Idle);
    }
    let line = look(parent.pid());
    assert!(line.ran_before.is_some());
    let text = scheduler.dump().to_string();
    assert!(
        text.contains(" \"a parent\" \"of one\" (main of "),
        "{text}"
    );
    assert!(
        text.contains(&format!(", started by {}", parent.pid())),
        "{text}"
    );
    assert!(text.contains(" ago, has left 3"), "{text}");
    // The type of the heir, which takes the names.
    scheduler.unregister_name("a parent").unwrap();
    scheduler.unregister_name("of one").unwrap();
    scheduler
        .upgrade(
            child.pid,
            UpgradeRequest::process(Parent::default(), "heir", ()),
        )
        .unwrap();
    until("it is another", || {
        look(child.pid).type_name == seen.type_name
    });
    // The step takes all four.
    parent.send(Message::new("the last", ())).unwrap();
    until("it has left nothing", || look(parent.pid()).left == 0);
    scheduler.terminate(parent.pid()).unwrap();
    drop(exit(parent));
    assert_eq!(look(child.pid).parent, child.parent);
}

// pins: P15
#[test]
fn what_an_init_starts_has_the_new_process_as_its_parent() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let parent = scheduler.submit(Parent::default(), "early", ()).unwrap();
    let of = |info: &ProcessInfo| info.parent == Some(parent.pid());
    assert_eq!(scheduler.processes().iter().filter(|it| of(it)).count(), 1);
    assert_eq!(scheduler.process(parent.pid()).unwrap().ran_before, None);
}

/// Checks the time of a step after a silence: the clock of the looks stands still while all sleep.
// pins: P15
#[test]
fn a_process_that_is_woken_after_a_silence_has_run_just_now() {
    let scheduler = start(1);
    let echo = scheduler.submit(waiter(), "main", ()).unwrap();
    let ran_before = || scheduler.process(echo.pid()).unwrap().ran_before;
    let silence = Duration::from_millis(300);
    until("it has been silent", || {
        ran_before().is_some_and(|before| before > silence)
    });
    until("the worker sleeps", || scheduler.stats().sleeping == 1);
    echo.send(Message::new("wake", ())).unwrap();
    until("it has run again", || ran_before().unwrap() < silence);
}

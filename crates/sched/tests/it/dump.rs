//! What can be seen of a scheduler that stands still.

use crate::support::*;
use ganger_proc_api::{Command, CommandId, Completer, Message, Process};
use ganger_sched::{Dump, ProcessDump, ProcessState, Scheduler};
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

/// A process that stays in its step until it is told to go on.
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
        (quiet.has_mail, quiet.messages, quiet.system_events),
        (false, Some(0), 0)
    );

    let is_told = Arc::new(AtomicBool::new(false));
    let stays = scheduler.submit(stays(&is_told), "stays", ()).unwrap();
    until_state(&scheduler, stays.pid(), ProcessState::Running);
    // The only worker is in that step: what is sent and submitted now waits.
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
    assert_eq!((woken.messages, woken.system_events), (Some(2), 1));
    assert!(
        woken.has_mail,
        "what came after the first is in the mailbox"
    );
    let cancelled = of(&dump, "asks");
    assert!(cancelled.info.is_cancelled && cancelled.has_mail);
    assert_eq!((dump.urgent_queue, dump.stats.global_queue), (1, 2));
    assert_eq!(dump.stats.live, dump.processes.len());

    let text = dump.to_string();
    assert!(dump.is_started && !text.contains("not started") && !text.ends_with('\n'));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1 + 1 + 4, "{text}");
    assert!(lines[1].contains(&format!("worker 0: runs {}", stays.pid())));
    for (pid, said) in [
        (
            asks.pid(),
            "(asks): Ready, has mail, cancelled, 0 messages, 1 system events",
        ),
        (
            idle.pid(),
            "(idle): Ready, has mail, 2 messages, 1 system events",
        ),
        (stays.pid(), "(stays): Running, 0 messages"),
        (later.pid(), "(later): Ready, 0 messages"),
    ] {
        let line = format!("  {pid} {said}");
        assert!(lines.contains(&line.as_str()), "{line} is not in {text}");
    }

    is_told.store(true, Ordering::SeqCst);
    exit(stays);
    kept.lock().unwrap().clear();
    // A process that is still to take what it has been sent would be found running.
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

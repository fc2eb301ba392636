//! A scheduler on threads.

use super::{Shown, Slice, argument, instants, seen, slices};
use ganger_observe::{NotRecording, Observer};
use ganger_proc_api::{
    Command, CommandId, Completer, Context, Event, Events, Process, StepOutput, StepResult,
    actor_fn, process_fn,
};
use ganger_sched::{ContextExt, Recorder, Scheduler, mark};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

fn recorded(workers: usize) -> Scheduler {
    let recorder = Recorder::new().bytes(4 << 20);
    let builder = Scheduler::builder().workers(workers).record(recorder);
    builder.start().unwrap()
}

/// Waits until no turn is underway, and returns the file: the end of a turn comes after that of its
/// process.
fn at_rest(scheduler: &Scheduler) -> Shown {
    loop {
        let shown = seen(scheduler);
        let goes_on = |it: &&Slice| it.arguments.contains_key("goes on");
        if !slices(&shown, "turn").iter().any(goes_on) {
            return shown;
        }
        thread::yield_now();
    }
}

const ASK: CommandId = CommandId::new(300);

/// Asks, and ends with the answer.
struct Asker;

impl Process for Asker {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if events.any(|event| matches!(event, Event::Completion(_))) {
            out.done(());
        } else {
            out.yield_command(Command::new(ASK, ()), 7);
        }
        Ok(())
    }
}

// pins: V15
#[test]
fn a_message_is_seen_from_its_send_to_its_receipt() {
    let recorder = Recorder::new().bytes(4 << 20);
    let builder = Scheduler::builder().workers(1).max_spares(0);
    let scheduler = builder.record(recorder).start().unwrap();
    let echo = actor_fn(|_, back: mpsc::Sender<()>, _| Ok(back.send(())?));
    let echo = scheduler.spawn(echo).unwrap();
    let target = echo.address().clone();
    let sender = actor_fn(move |_, (back, last): (mpsc::Sender<()>, bool), out| {
        if last {
            mark("on its way", 42);
            out.done(());
        }
        Ok(target.send(back)?)
    });
    let sender = scheduler.spawn(sender).unwrap();
    let (back, answers) = mpsc::channel();
    // After the first answer both wait, or will before the only worker takes the next message.
    for last in [false, true] {
        sender.send((back.clone(), last)).unwrap();
        answers.recv().unwrap();
    }
    let (from, to) = (sender.pid().to_string(), echo.pid().to_string());
    assert!(sender.wait().is_done());
    let shown = at_rest(&scheduler);

    let sends = instants(&shown, "message");
    let sent = |it: &&&Slice| {
        argument(it, "by").ends_with(&from) && argument(it, "process").ends_with(&to)
    };
    let sent = sends.iter().rfind(sent).expect("the sender has sent");
    assert!(sent.name.starts_with("sends ") && sent.track == "worker 0");
    let taken = sent.name.replace("sends", "takes");
    let takes = |it: &&&Slice| it.name == taken && argument(it, "process").ends_with(&to);
    let takes = sends.iter().rfind(takes).expect("the receiver has taken");
    assert!(takes.begin >= sent.begin);
    assert!(shown.flows.contains(&(sent.name.clone(), taken)));

    let wakes = instants(&shown, "wake");
    let woken = |it: &&&Slice| argument(it, "by").ends_with(&from);
    let woken = wakes.iter().rfind(woken).expect("the receiver is woken");
    assert_eq!(argument(woken, "cause"), "message");
    let mark = shown.only("on its way");
    assert_eq!(argument(mark, "value"), "42");
    assert!(argument(mark, "process").ends_with(&from));

    let turns = slices(&shown, "turn");
    let own = |it: &&&Slice| argument(it, "process").ends_with(&from);
    // The first message may have had a turn after that of the start.
    let own = turns.iter().rfind(own).expect("the sender has a turn");
    assert!(own.begin <= mark.begin && mark.begin <= sent.begin && sent.begin <= own.end);
    assert_eq!(
        (argument(own, "after"), argument(own, "steps")),
        ("ended", "1")
    );
    let life = slices(&shown, "life");
    let life = life
        .iter()
        .find(|it| it.name.ends_with(&from))
        .expect("it has lived");
    assert_eq!(argument(life, "end"), "done");
}

// pins: V15
#[test]
fn a_command_lasts_from_the_yield_to_its_answer() {
    let recorder = Recorder::new().bytes(1 << 20);
    let scheduler = Scheduler::builder().workers(1).record(recorder).build();
    let scheduler = scheduler.unwrap();
    let (asked, completers) = mpsc::channel::<Completer>();
    let ask = move |_: Command, completer: Completer| Ok(asked.send(completer)?);
    scheduler.register(ASK, "ask", ask).unwrap();
    let asker = scheduler.submit(Asker, "main", ()).unwrap();
    scheduler.start().unwrap();
    let completer = completers.recv().unwrap();
    // The end of the turn comes with the sleep of the worker.
    while slices(&seen(&scheduler), "sleep").is_empty() {
        thread::yield_now();
    }
    // Between the two the command is underway.
    let shown = seen(&scheduler);
    let underway = shown.only("ask");
    assert_eq!(
        (underway.category.as_str(), argument(underway, "tag")),
        ("yield", "7")
    );
    assert!(underway.arguments.contains_key("goes on"));
    completer.complete(());
    assert!(asker.wait().is_done());
    let shown = at_rest(&scheduler);
    let over = shown.only("ask");
    assert!(!over.arguments.contains_key("goes on"));
    let waits = shown.only("waits for ask");
    assert!(over.begin <= waits.begin && over.end == waits.end);
    let woken = instants(&shown, "wake");
    assert!(woken.iter().any(|it| argument(it, "cause") == "completion"));
    let turns = slices(&shown, "turn");
    let afters: Vec<_> = turns.iter().map(|it| argument(it, "after")).collect();
    assert_eq!(afters, ["waits", "ended"]);
}

// pins: V15
#[test]
fn timers_are_seen_with_the_processes_that_they_wake() {
    let scheduler = recorded(1);
    let sleeper = process_fn(|ctx, events, out| {
        if events.next().is_some() {
            out.done(());
        } else {
            let _rings = ctx.send_after(Duration::from_millis(1), ctx.pid(), "ring", ());
        }
        Ok(())
    });
    let sleeper = scheduler.submit(sleeper, "main", ()).unwrap();
    let pid = sleeper.pid().to_string();
    assert!(sleeper.wait().is_done());
    let shown = seen(&scheduler);
    let timers = instants(&shown, "timer");
    assert_eq!(timers.len(), 1, "{timers:#?}");
    assert!(argument(timers[0], "process").ends_with(&pid));
    assert!(argument(timers[0], "late (ns)").parse::<u64>().is_ok());
    let woken = instants(&shown, "wake");
    assert!(woken.iter().any(|it| argument(it, "cause") == "timer"));
    // On a busy machine the timer is due before the worker sleeps.
    while slices(&seen(&scheduler), "sleep").is_empty() {
        thread::yield_now();
    }
}

// pins: V15
#[test]
fn a_blocked_step_is_a_long_turn_beside_a_spare_that_runs_the_others() {
    let scheduler = recorded(1);
    let (release, released) = mpsc::channel::<()>();
    let (begun, begins) = mpsc::channel();
    let blocker = actor_fn(move |_, (): (), out| {
        begun.send(())?;
        released.recv()?;
        out.done(());
        Ok(())
    });
    let blocker = scheduler.spawn(blocker).unwrap();
    blocker.send(()).unwrap();
    begins.recv().unwrap();
    let other = scheduler
        .spawn(actor_fn(|_, (): (), out| {
            out.done(());
            Ok(())
        }))
        .unwrap();
    other.send(()).unwrap();
    let pids = (blocker.pid(), other.pid());
    assert!(other.wait().is_done());
    // The trace of a stuck program, before the blocker's step is over.
    let shown = seen(&scheduler);
    let turns = slices(&shown, "turn");
    let of = |pid: ganger_proc_api::Pid| {
        let pid = pid.to_string();
        let mut turns = turns
            .iter()
            .filter(move |it| argument(it, "process").ends_with(&pid));
        // A start before the message has a turn of its own.
        turns.next_back().expect("it has a turn")
    };
    assert!(of(pids.0).arguments.contains_key("goes on"));
    assert_eq!(
        (&*of(pids.0).track, &*of(pids.1).track),
        ("worker 0", "spare 1")
    );
    let spares = instants(&shown, "spare");
    assert_eq!((spares.len(), argument(spares[0], "worker")), (1, "0"));
    release.send(()).unwrap();
    assert!(blocker.wait().is_done());
}

// pins: V15
#[test]
fn a_parent_and_the_way_of_an_end_are_seen() {
    let scheduler = recorded(2);
    let parent = actor_fn(|ctx: &Context, (): (), out| {
        let child = ctx.spawn(actor_fn(|_, (): (), _| -> StepResult {
            panic!("on purpose")
        }))?;
        child.send(())?;
        out.done(());
        Ok(())
    });
    let parent = scheduler.spawn(parent).unwrap();
    parent.send(()).unwrap();
    let pid = parent.pid().to_string();
    assert!(parent.wait().is_done());
    let ends = || {
        let shown = seen(&scheduler);
        let lives = slices(&shown, "life");
        lives
            .iter()
            .map(|it| argument(it, "end").to_owned())
            .collect::<Vec<_>>()
    };
    while ends().iter().any(String::is_empty) || ends().len() < 2 {
        thread::yield_now();
    }
    let mut ends = ends();
    ends.sort();
    assert_eq!(ends, ["done", "panicked"]);
    let shown = seen(&scheduler);
    let spawns = |it: &Slice| argument(it, "parent").ends_with(&pid);
    assert!(instants(&shown, "process").into_iter().any(spawns));
}

#[test]
fn a_scheduler_without_a_recorder_says_so() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    assert!(!scheduler.is_recording());
    scheduler.mark("unheard", 1);
    let error = Observer::of(&scheduler).trace(None).unwrap_err();
    assert_eq!(error, NotRecording);
    assert!(error.to_string().contains("Builder::record"));
}

#[test]
fn alarms_are_seen_with_what_they_are_about() {
    let scheduler = recorded(1);
    let process = scheduler.spawn(actor_fn(|_, (): (), _| Ok(()))).unwrap();
    scheduler.mark_alarm("mailbox", Some(process.pid()), 100_000);
    scheduler.mark_alarm("timers late", None, 7);
    // Its processes have the same numbers.
    let other = Scheduler::builder().workers(1).host("elsewhere");
    let other = other.start().unwrap();
    let foreign = other.spawn(actor_fn(|_, (): (), _| Ok(()))).unwrap();
    scheduler.mark_alarm("of another", Some(foreign.pid()), 3);
    let shown = seen(&scheduler);
    assert_eq!(argument(shown.only("of another"), "process"), "");
    let (mailbox, timers) = (shown.only("mailbox"), shown.only("timers late"));
    assert!(argument(mailbox, "process").ends_with(&process.pid().to_string()));
    assert_eq!(
        (argument(mailbox, "value"), &*mailbox.track),
        ("100000", "other threads")
    );
    assert_eq!(
        (argument(timers, "process"), &*timers.category),
        ("", "alarm")
    );
}

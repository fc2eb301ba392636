//! Turns of several steps: a process that waits for already present answers is stepped again.

use crate::support::*;
use ganger_proc_api::{Command, CommandId, Completer, Event, Message, StepOutput};
use ganger_sched::{Builder, ProcessState, Scheduler};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A command with an immediate answer.
const NOW: CommandId = CommandId::new(256);

/// Builds a scheduler without starting it, with a handler for immediate answers.
fn answering(builder: Builder) -> Scheduler {
    let scheduler = builder.build().unwrap();
    let answer = |_: Command, completer: Completer| {
        completer.complete(());
        Ok(())
    };
    scheduler.register(NOW, "now", answer).unwrap();
    scheduler
}

fn text(event: Event) -> String {
    match event {
        Event::Completion(completion) => completion.tag.to_string(),
        Event::Message(message) => {
            let number = message.payloads.into_first().as_u64().expect("a number");
            format!("{} {number}", message.topic)
        }
        other => panic!("{other:?}"),
    }
}

/// Returns the text in a process's result.
fn exit_text(handle: ganger_sched::ProcessHandle) -> String {
    let result = exit(handle).into_result().unwrap();
    result.into_string().unwrap()
}

/// Yields again, with `left` as the tag. The last time it ends with the number of steps.
fn ask_again(left: u64, steps: u64, out: &mut StepOutput) {
    if left == 0 {
        out.done(steps);
    } else {
        out.yield_command(Command::new(NOW, ()), left);
    }
}

// pins: P6, P15
#[test]
fn answers_that_are_there_are_taken_in_the_same_turn() {
    const STEPS: u64 = 100;
    let scheduler = answering(Scheduler::builder().workers(1).max_spares(0));
    scheduler.start().unwrap();
    let mut left = STEPS;
    let asker = process(move |_, events, out| {
        left -= 1;
        assert!(events.all(|event| text(event) == (left + 1).to_string()));
        ask_again(left, STEPS, out);
        Ok(())
    });
    let asker = scheduler.submit(asker, "main", ()).unwrap();
    assert_eq!(exit_number(asker), STEPS);
    let stats = scheduler.stats().total;
    // Sixteen a turn.
    assert_eq!((stats.steps, stats.turns), (STEPS, 7));
}

/// Checks that each step is a pick then, so the bound in picks holds for every waiting process.
// pins: G4
#[test]
fn answers_are_taken_in_turns_of_their_own_while_others_wait() {
    const STEPS: u64 = 20;
    let scheduler = answering(Scheduler::builder().workers(1).max_spares(0));
    let mut left = STEPS;
    let asker = process(move |_, events, out| {
        left -= 1;
        events.for_each(drop);
        ask_again(left, STEPS, out);
        Ok(())
    });
    let asker = scheduler.submit(asker, "main", ()).unwrap();
    // In the worker's deque, below the asker, up to the first rotation.
    let other = process(|_, _, out| {
        out.done(1);
        Ok(())
    });
    let other = scheduler.submit(other, "main", ()).unwrap();
    scheduler.start().unwrap();
    assert_eq!((exit_number(asker), exit_number(other)), (STEPS, 1));
    let stats = scheduler.stats().total;
    assert_eq!((stats.steps, stats.turns), (STEPS + 1, STEPS + 1));
}

// pins: P6, P10, P15
#[test]
fn a_message_that_is_left_does_not_make_turns_short() {
    const STEPS: u64 = 100;
    let scheduler = answering(Scheduler::builder().workers(1).max_spares(0));
    let mut left = STEPS;
    let asker = process(move |_, events, out| {
        left -= 1;
        let answer = events.take_where(|event| matches!(event, Event::Completion(_)));
        assert_eq!((answer.is_some(), events.len()), (left + 1 < STEPS, 1));
        ask_again(left, STEPS, out);
        Ok(())
    });
    let asker = scheduler.submit(asker, "main", ()).unwrap();
    asker.send(Message::new("left", 0_u64)).unwrap();
    scheduler.start().unwrap();
    assert_eq!(exit_number(asker), STEPS);
    let stats = scheduler.stats().total;
    assert_eq!((stats.steps, stats.turns), (STEPS, 7));
}

// pins: G4
#[test]
fn a_chain_of_answers_does_not_keep_others_from_their_turn() {
    let builder = Scheduler::builder().workers(1).max_spares(0);
    let scheduler = answering(builder);
    let may_end = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&may_end);
    let endless = process(move |_, events, out| {
        events.for_each(drop);
        if is_over.load(Ordering::SeqCst) {
            out.done(1);
        } else {
            out.yield_command(Command::new(NOW, ()), 1);
        }
        Ok(())
    });
    let endless = scheduler.submit(endless, "main", ()).unwrap();
    let other = process(move |_, _, out| {
        may_end.store(true, Ordering::SeqCst);
        out.done(2);
        Ok(())
    });
    let other = scheduler.submit(other, "main", ()).unwrap();
    scheduler.start().unwrap();
    assert_eq!(exit_number(other), 2);
    assert_eq!(exit_number(endless), 1);
}

// pins: P9
#[test]
fn no_step_follows_after_a_handler_that_terminates_the_process() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let weak = scheduler.downgrade();
    let terminate = move |_: Command, completer: Completer| {
        let pid = completer.pid().unwrap();
        // The order matters: an answer behind something else is not inline.
        completer.complete(());
        Ok(weak.upgrade().unwrap().terminate(pid)?)
    };
    scheduler.register(NOW, "terminate", terminate).unwrap();
    scheduler.start().unwrap();
    let calls = Calls::new();
    let asker = counted(&calls, |_, events, out| {
        events.for_each(drop);
        out.yield_command(Command::new(NOW, ()), 1);
        Ok(())
    });
    let reason = exit(scheduler.submit(asker, "main", ()).unwrap());
    assert!(matches!(reason, ganger_proc_api::ExitReason::Terminated));
    assert_eq!((calls.steps(), calls.closes()), (1, 1));
}

// pins: D3
#[test]
fn no_step_follows_after_one_that_lasts_longer_than_the_scheduler() {
    let scheduler = answering(Scheduler::builder().workers(2));
    scheduler.start().unwrap();
    let calls = Calls::new();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let lasts = counted(&calls, move |_, events, out| {
        events.for_each(drop);
        let _released = released.recv();
        out.yield_command(Command::new(NOW, ()), 1);
        Ok(())
    });
    let lasts = scheduler.submit(lasts, "main", ()).unwrap();
    until_state(&scheduler, lasts.pid(), ProcessState::Running);
    let report = scheduler.stop(Duration::from_millis(20)).unwrap();
    assert!(report.stuck.iter().map(|it| it.pid).eq([lasts.pid()]));
    drop(release);
    let reason = exit(lasts);
    assert_eq!((calls.steps(), calls.closes()), (1, 1), "{reason}");
}

// pins: P4
#[test]
fn answers_keep_their_order_among_themselves_and_with_messages() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let weak = scheduler.downgrade();
    // Answers, and then sends the process something.
    let answer = move |_: Command, completer: Completer| {
        let (pid, tag) = (completer.pid().unwrap(), completer.tag());
        completer.complete(());
        let address = weak.upgrade().unwrap().address(pid).unwrap();
        Ok(address.send(Message::new("after", tag))?)
    };
    scheduler.register(NOW, "answer and send", answer).unwrap();
    scheduler.start().unwrap();
    for waits in [false, true] {
        let mut first = true;
        let asker = process(move |_, events, out| {
            if std::mem::take(&mut first) {
                (1..=3).for_each(|tag| out.yield_command(Command::new(NOW, ()), tag));
                if !waits {
                    out.step_again();
                }
            } else {
                out.done(events.map(text).collect::<Vec<_>>().join(", "));
            }
            Ok(())
        });
        let order = exit_text(scheduler.submit(asker, "main", ()).unwrap());
        assert_eq!(order, "1, after 1, 2, after 2, 3, after 3");
    }
}

// pins: P4
#[test]
fn answers_that_were_not_waited_for_come_in_order_in_the_next_turn() {
    let scheduler = answering(Scheduler::builder().workers(1).max_spares(0));
    scheduler.start().unwrap();
    let mut first = true;
    let asker = process(move |_, events, out| {
        if std::mem::take(&mut first) {
            (1..=3).for_each(|tag| out.yield_command(Command::new(NOW, ()), tag));
            out.step_again();
        } else {
            out.done(events.map(text).collect::<Vec<_>>().join(", "));
        }
        Ok(())
    });
    let order = exit_text(scheduler.submit(asker, "main", ()).unwrap());
    assert_eq!(order, "1, 2, 3");
}

// pins: P4
#[test]
fn a_batch_of_answers_is_bounded() {
    let builder = Scheduler::builder().workers(1).event_batch(4);
    let scheduler = answering(builder);
    scheduler.start().unwrap();
    let (mut first, mut seen) = (true, Vec::new());
    let asker = process(move |_, events, out| {
        if std::mem::take(&mut first) {
            (1..=10).for_each(|tag| out.yield_command(Command::new(NOW, ()), tag));
            return Ok(());
        }
        let batch: Vec<_> = events.map(text).collect();
        assert!(batch.len() <= 4, "{batch:?}");
        seen.extend(batch);
        if seen.len() == 10 {
            out.done(seen.join(" "));
        }
        Ok(())
    });
    let order = exit_text(scheduler.submit(asker, "main", ()).unwrap());
    assert_eq!(order, "1 2 3 4 5 6 7 8 9 10");
}

// pins: P6
#[test]
fn an_answer_to_an_earlier_command_is_not_taken_for_the_one_under_way() {
    /// Its handler keeps the completer for the next command.
    const LATER: CommandId = CommandId::new(257);
    /// Its handler answers the kept command, then its own.
    const BOTH: CommandId = CommandId::new(258);
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let kept = Arc::new(Mutex::new(None::<Completer>));
    let keep = Arc::clone(&kept);
    let later = move |_: Command, completer: Completer| {
        *keep.lock().unwrap() = Some(completer);
        Ok(())
    };
    scheduler.register(LATER, "later", later).unwrap();
    let both = move |_: Command, completer: Completer| {
        let earlier = kept.lock().unwrap().take().ok_or("nothing kept")?;
        earlier.complete("earlier");
        completer.complete("own");
        Ok(())
    };
    scheduler.register(BOTH, "both", both).unwrap();
    scheduler.start().unwrap();
    let (mut first, mut seen) = (true, Vec::new());
    let asker = process(move |_, events, out| {
        if std::mem::take(&mut first) {
            out.yield_command(Command::new(LATER, ()), 1);
            out.yield_command(Command::new(BOTH, ()), 2);
        }
        for event in events {
            let Event::Completion(completion) = event else {
                continue;
            };
            let answer = completion.result.unwrap().into_string().unwrap();
            seen.push(format!("{}: {answer}", completion.tag));
        }
        if seen.len() == 2 {
            out.done(seen.join(", "));
        }
        Ok(())
    });
    let order = exit_text(scheduler.submit(asker, "main", ()).unwrap());
    assert_eq!(order, "1: earlier, 2: own");
}

//! A step takes its events in their places: each once, whatever else it does.

use crate::support::*;
use ganger_proc_api::{Command, CommandId, Completer, Event, Events, ExitReason, Message, Payload};
use ganger_sched::{ProcessState, Scheduler};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::{mem, ptr};

/// Creates a message whose end the test sees.
fn counted_message(count: &Arc<()>, number: u64) -> Message {
    let mut message = Message::new("n", number);
    message.payloads.push(Payload::any(Arc::clone(count)));
    message
}

fn number(event: &Event) -> u64 {
    match event {
        Event::Message(message) => message.payloads.first().unwrap().as_u64().unwrap(),
        Event::Completion(completion) => 1_000 + completion.tag,
        other => panic!("{other:?}"),
    }
}

/// Shows messages 0 to 9 to the first step, and calls `first` with them. Returns the numbers found
/// by the second step. Checks that all messages are gone in the end, and each taken message has
/// made room.
fn left_by(
    limit: Option<usize>,
    mut first: impl FnMut(&mut Events<'_>) + Send + 'static,
) -> Vec<u64> {
    let builder = Scheduler::builder().workers(1);
    let builder = match limit {
        Some(limit) => builder.mailbox_limit(limit),
        None => builder,
    };
    let scheduler = builder.build().unwrap();
    let (count, mut is_first) = (Arc::new(()), true);
    let process = process(move |_, events, out| {
        if mem::take(&mut is_first) {
            first(events);
            return Ok(());
        }
        // The messages that test the room wake the process, too. The messages left by the first
        // step must stay until the cancel event.
        if !matches!(events.peek(), Some(Event::Cancel(_))) {
            return Ok(());
        }
        let is_message = |event: &Event| matches!(event, Event::Message(_));
        let left: Vec<_> = (events.filter(is_message).map(|event| number(&event))).collect();
        out.done(left);
        Ok(())
    });
    let handle = scheduler.submit(process, "main", ()).unwrap();
    for n in 0..10 {
        handle.send(counted_message(&count, n)).unwrap();
    }
    scheduler.start().unwrap();
    until_state(&scheduler, handle.pid(), ProcessState::Idle);
    let room = limit.map(|limit| {
        let sends = (0..limit).map(|_| handle.send(Message::new("n", 100_u64)));
        sends.filter(Result::is_ok).count()
    });
    scheduler.cancel(handle.pid(), "enough").unwrap();
    let left = exit(handle).into_result().unwrap().downcast::<Vec<u64>>();
    let mut left = left.unwrap();
    drop(scheduler);
    assert_eq!(Arc::strong_count(&count), 1);
    if room.is_some() {
        left.retain(|number| *number < 10);
        assert_eq!(room, Some(10 - left.len()));
    }
    left
}

/// The addresses of leaked queues.
static KEPT: Mutex<Vec<usize>> = Mutex::new(Vec::new());

const LIMITS: [Option<usize>; 2] = [None, Some(10)];

// pins: P4, P13
#[test]
fn each_way_of_taking_leaves_the_others() {
    for limit in LIMITS {
        let left = left_by(limit, |events| {
            let first: Vec<_> = events
                .by_ref()
                .take(3)
                .map(|event| number(&event))
                .collect();
            assert_eq!(first, [0, 1, 2]);
            assert_eq!(events.peek().map(number), Some(3));
            let taken = events.take_where(|event| number(event) == 5);
            assert_eq!(taken.as_ref().map(number), Some(5));
            assert_eq!(events.next().as_ref().map(number), Some(3));
            assert_eq!(events.next().as_ref().map(number), Some(4));
            assert_eq!(events.take_where(|_| false).as_ref().map(number), None);
            assert_eq!(events.next().as_ref().map(number), Some(6));
            // A notice among them may be taken back before it is shown.
            assert_eq!((events.len(), events.size_hint()), (3, (0, Some(3))));
            let seen = format!("{events:?}");
            assert_eq!(seen.matches("topic").count(), 3, "{seen}");
        });
        assert_eq!(left, [7, 8, 9]);
    }
}

// pins: P4, P13
#[test]
fn what_is_taken_by_way_of_other_hands_is_taken() {
    for limit in LIMITS {
        let left = left_by(limit, |events| {
            let mine: &mut VecDeque<Event> = Box::leak(Box::default());
            // The queue stays within reach, so no leak checker reports it.
            KEPT.lock()
                .unwrap()
                .push(ptr::from_mut(mine).expose_provenance());
            mine.push_back(Event::Message(Message::new("mine", 77_u64)));
            let mut others = Events::new(mine);
            mem::swap(events, &mut others);
            assert_eq!((others.len(), events.len()), (10, 1));
            assert_eq!(others.by_ref().take(4).count(), 4);
            assert_eq!(events.next().as_ref().map(number), Some(77));
            assert!(events.next().is_none());
            // The scheduler has the left messages all the same.
        });
        assert_eq!(left, [4, 5, 6, 7, 8, 9]);
    }
}

// pins: P4, P13
#[test]
fn a_look_that_panics_leaves_the_event() {
    quiet_panics();
    for limit in LIMITS {
        let left = left_by(limit, |events| {
            assert_eq!(events.by_ref().take(2).count(), 2);
            let looked = catch_unwind(AssertUnwindSafe(|| {
                events.take_where(|event| {
                    assert!(number(event) < 4, "enough seen");
                    false
                })
            }));
            assert!(looked.is_err());
            assert_eq!(events.next().as_ref().map(number), Some(2));
        });
        assert_eq!(left, [3, 4, 5, 6, 7, 8, 9]);
    }
}

/// Checks the events of a step that panics: the taken events belong to the step. The left events
/// are dropped with the process.
// pins: P8
#[test]
fn a_step_that_panics_has_taken_what_it_has_taken() {
    quiet_panics();
    for takes in [0, 1, 2, 5, 10] {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        let (count, kept) = (Arc::new(()), Arc::new(Mutex::new(Vec::new())));
        let keeps = Arc::clone(&kept);
        let process = process(move |_, events, _| {
            keeps.lock().unwrap().extend(events.take(takes));
            panic!("enough");
        });
        let handle = scheduler.submit(process, "main", ()).unwrap();
        for n in 0..10 {
            handle.send(counted_message(&count, n)).unwrap();
        }
        scheduler.start().unwrap();
        assert!(matches!(exit(handle), ExitReason::Panicked(_)));
        let undelivered = scheduler.stats().total.undelivered;
        drop(scheduler);
        let kept = mem::take(&mut *kept.lock().unwrap());
        assert_eq!((kept.len(), undelivered), (takes, 10 - takes as u64));
        assert_eq!(Arc::strong_count(&count), 1 + takes);
        assert!(kept.iter().map(number).eq(0..takes as u64));
        drop(kept);
        assert_eq!(Arc::strong_count(&count), 1);
    }
}

const AT_ONCE: CommandId = CommandId::new(256);

/// Checks that a single immediate answer, and several, are taken like other events.
// pins: P4, P6
#[test]
fn answers_at_once_are_taken_like_the_others() {
    for (answers, takes) in [(1, 0), (1, 1), (3, 0), (3, 1), (3, 2), (3, 3)] {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        let handler = |_: Command, completer: Completer| {
            completer.complete(5_u64);
            Ok(())
        };
        scheduler.register(AT_ONCE, "at once", handler).unwrap();
        scheduler.start().unwrap();
        let mut steps = 0;
        let asker = process(move |_, events, out| {
            steps += 1;
            match steps {
                1 => (0..answers).for_each(|tag| {
                    out.yield_command(Command::new(AT_ONCE, ()), tag);
                }),
                2 => {
                    assert_eq!(events.len() as u64, answers);
                    assert_eq!(events.peek().map(number), Some(1_000));
                    let taken = events.by_ref().take(takes).map(|event| number(&event));
                    assert!(taken.eq(1_000..1_000 + takes as u64));
                    out.yield_command(Command::new(AT_ONCE, ()), answers);
                }
                _ => {
                    let left: Vec<_> = events.map(|event| number(&event) - 1_000).collect();
                    out.done(left);
                }
            }
            Ok(())
        });
        let asker = scheduler.submit(asker, "main", ()).unwrap();
        let left = exit(asker).into_result().unwrap().downcast::<Vec<u64>>();
        let expected: Vec<u64> = (takes as u64..=answers).collect();
        assert_eq!(left.unwrap(), expected);
    }
}

// pins: V6
#[test]
fn system_events_that_no_step_takes_are_shown_as_left() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let process = process(|_, events, out| {
        if let Some(Event::Message(_)) = events.find(|it| matches!(it, Event::Message(_))) {
            out.done(());
        }
        Ok(())
    });
    // Without the message, a step is shown them and takes none.
    let idle = ganger_proc_api::process_fn(|_, _, _| Ok(()));
    let keeps = scheduler.submit(idle, "main", ()).unwrap();
    let takes = scheduler.submit(process, "main", ()).unwrap();
    for handle in [&keeps, &takes] {
        for n in 0..3_u64 {
            handle.send_control(Message::new("n", n)).unwrap();
        }
    }
    scheduler.start().unwrap();
    let left = |pid| scheduler.process(pid).unwrap().left;
    for handle in [&keeps, &takes] {
        until_state(&scheduler, handle.pid(), ProcessState::Idle);
    }
    assert_eq!((left(keeps.pid()), left(takes.pid())), (3, 0));
    keeps.send_control(Message::new("n", 3_u64)).unwrap();
    until("the fourth is left, too", || left(keeps.pid()) == 4);
}

//! Messages, completions, batches and mailboxes.

use crate::support::*;
use ganger_proc_api::{
    Command, CommandId, Completer, EndKind, Envelope, Event, Message, Pid, SendErrorKind,
};
use ganger_sched::{ProcessState, Scheduler};
use std::sync::{Arc, Mutex, mpsc};

fn number(event: Event) -> u64 {
    match event {
        Event::Message(message) => message.payloads.into_first().as_u64().unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Submits before the start, so all messages are there at the first step.
fn unstarted() -> Scheduler {
    Scheduler::builder().workers(1).build().unwrap()
}

// pins: P4
#[test]
fn events_arrive_in_order_in_bounded_batches() {
    let scheduler = Scheduler::builder()
        .workers(1)
        .event_batch(10)
        .build()
        .unwrap();
    let mut expected = 0;
    let process = process(move |_, events, out| {
        assert!(events.len() <= 10);
        for event in events {
            assert_eq!(number(event), expected);
            expected += 1;
        }
        if expected == 95 {
            out.done(expected);
        }
        Ok(())
    });
    let handle = scheduler.submit(process, "main", ()).unwrap();
    for n in 0..95_u64 {
        handle.send(Message::new("n", n)).unwrap();
    }
    scheduler.start().unwrap();
    assert_eq!(exit_number(handle), 95);
    assert_eq!(
        scheduler.stats().total.steps,
        10,
        "nine full batches and a half"
    );
}

// pins: P4
#[test]
fn the_default_batch_is_256() {
    let scheduler = unstarted();
    let process = process(|_, events, out| {
        out.done(events.len());
        Ok(())
    });
    let handle = scheduler.submit(process, "main", ()).unwrap();
    for n in 0..1_000_u64 {
        handle.send(Message::new("n", n)).unwrap();
    }
    scheduler.start().unwrap();
    assert_eq!(exit_number(handle), 256);
    assert_eq!(scheduler.stats().total.undelivered, 1_000);
}

// pins: P4
#[test]
fn what_a_step_leaves_comes_before_the_next_batch() {
    let scheduler = unstarted();
    let (report, reports) = mpsc::channel();
    let process = process(move |_, events, _| {
        report
            .send((events.len(), events.next().map(number)))
            .unwrap();
        Ok(())
    });
    let handle = scheduler.submit(process, "main", ()).unwrap();
    for n in 0..3_u64 {
        handle.send(Message::new("n", n)).unwrap();
    }
    scheduler.start().unwrap();
    assert_eq!(reports.recv().unwrap(), (3, Some(0)));
    // Each message wakes it once; it sees the two left messages and the new one, and takes the
    // oldest.
    for n in 1..10_u64 {
        until_state(&scheduler, handle.pid(), ProcessState::Idle);
        handle.send(Message::new("n", n + 2)).unwrap();
        assert_eq!(reports.recv().unwrap(), (3, Some(n)));
    }
    scheduler.terminate(handle.pid()).unwrap();
    exit(handle);
    assert_eq!(scheduler.stats().total.undelivered, 2);
}

// pins: P4
#[test]
fn selective_receive_keeps_the_rest_in_order_and_does_not_spin() {
    let scheduler = start(1);
    let (report, reports) = mpsc::channel();
    let process = process(move |_, events, out| {
        let wanted = |event: &Event| matches!(event, Event::Message(m) if m.topic == "reply");
        match events.take_where(wanted) {
            Some(_) => {
                let rest: Vec<_> = events.map(number).collect();
                out.done(rest);
            }
            None => report.send(events.len()).unwrap(),
        }
        Ok(())
    });
    let handle = scheduler.submit(process, "main", ()).unwrap();
    assert_eq!(reports.recv().unwrap(), 0);
    for n in 1..=5_u64 {
        until_state(&scheduler, handle.pid(), ProcessState::Idle);
        let steps = scheduler.stats().total.steps;
        handle.send(Message::new("noise", n)).unwrap();
        assert_eq!(
            reports.recv().unwrap() as u64,
            n,
            "what was left, and the new one"
        );
        until_state(&scheduler, handle.pid(), ProcessState::Idle);
        assert_eq!(
            scheduler.stats().total.steps,
            steps + 1,
            "leaving events wakes nobody"
        );
    }
    handle.send(Message::new("reply", 0_u64)).unwrap();
    let rest = exit(handle)
        .into_result()
        .unwrap()
        .downcast::<Vec<u64>>()
        .unwrap();
    assert_eq!(rest, [1, 2, 3, 4, 5]);
}

const LATER: CommandId = CommandId::new(256);

type Completers = Arc<Mutex<Vec<Completer>>>;

/// Creates a handler that keeps its completers for the test to use.
fn keeper() -> (
    Completers,
    impl Fn(Command, Completer) -> ganger_proc_api::StepResult + Send + Sync,
) {
    let kept = Completers::default();
    let keep = Arc::clone(&kept);
    (kept, move |_: Command, completer: Completer| {
        keep.lock().unwrap().push(completer);
        Ok(())
    })
}

// pins: P3, P5
#[test]
fn any_event_wakes_a_blocked_and_an_idle_process() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let (kept, handler) = keeper();
    scheduler.register(LATER, "later", handler).unwrap();
    scheduler.start().unwrap();
    for blocked in [false, true] {
        for way in ["message", "completion", "cancel"] {
            if way == "completion" && !blocked {
                continue;
            }
            let mut first = true;
            let process = process(move |_, events, out| {
                if std::mem::take(&mut first) {
                    if blocked {
                        out.yield_command(Command::new(LATER, ()), 1);
                    }
                } else {
                    out.done(match events.next().expect("woken without an event") {
                        Event::Message(_) => "message",
                        Event::Completion(_) => "completion",
                        Event::Cancel(_) => "cancel",
                        _ => "other",
                    });
                }
                Ok(())
            });
            let handle = scheduler.submit(process, "main", ()).unwrap();
            let state = if blocked {
                ProcessState::Blocked
            } else {
                ProcessState::Idle
            };
            until_state(&scheduler, handle.pid(), state);
            let completer = kept.lock().unwrap().pop();
            assert_eq!(completer.is_some(), blocked);
            match way {
                "message" => handle.send(Message::new("m", ())).unwrap(),
                "cancel" => scheduler.cancel(handle.pid(), "c").unwrap(),
                _ => completer.unwrap().complete(()),
            }
            let result = exit(handle).into_result().unwrap();
            assert_eq!(result.as_str(), Some(way));
        }
    }
}

// pins: P3
#[test]
fn continue_steps_again_without_events() {
    let scheduler = start(2);
    let mut steps = 0_u64;
    let process = process(move |_, events, out| {
        assert!(events.is_empty());
        steps += 1;
        if steps == 1_000 {
            out.done(steps);
        } else {
            out.step_again();
        }
        Ok(())
    });
    assert_eq!(
        exit_number(scheduler.submit(process, "main", ()).unwrap()),
        1_000
    );
}

// pins: P13, R2
#[test]
fn a_full_mailbox_gives_the_envelope_back_and_takes_system_events() {
    const LIMIT: usize = 3;
    let scheduler = Scheduler::builder()
        .workers(1)
        .mailbox_limit(LIMIT)
        .build()
        .unwrap();
    let (kept, handler) = keeper();
    scheduler.register(LATER, "later", handler).unwrap();
    let (mut seen, mut is_cancelled) = (0_u64, false);
    let process = process(move |_, events, out| {
        for event in events {
            match event {
                Event::Message(_) => seen += 1,
                Event::Cancel(_) => {
                    is_cancelled = true;
                    out.defer_cancel();
                }
                Event::Completion(_) => seen += 100,
                _ => {}
            }
        }
        if seen == 3 {
            out.yield_command(Command::new(LATER, ()), 1);
        } else if is_cancelled && seen > 100 {
            out.done(seen);
        }
        Ok(())
    });
    let handle = scheduler.submit(process, "main", ()).unwrap();
    let sender: Pid = "{main|99}".parse().unwrap();
    let envelope = |n: u64| Envelope::new(sender, handle.pid(), "n", n);
    for n in 0..3 {
        scheduler.send(envelope(n)).unwrap();
    }
    for error in [
        scheduler.send(envelope(3)).unwrap_err(),
        handle.send(envelope(3).message).unwrap_err(),
    ] {
        assert_eq!(error.kind, SendErrorKind::Full);
        assert!(
            error.to_string().ends_with("the mailbox is full"),
            "{error}"
        );
        let envelope = error.into_envelope();
        assert_eq!(
            (envelope.target, envelope.message.source),
            (handle.pid(), Some(sender))
        );
        assert_eq!(envelope.message.payloads.into_first().as_u64(), Some(3));
    }
    scheduler.start().unwrap();
    until("the command was yielded", || {
        !kept.lock().unwrap().is_empty()
    });
    until_state(&scheduler, handle.pid(), ProcessState::Blocked);
    // The mailbox has room again. Once it is full of messages, completions and cancellations come
    // in all the same.
    let completer = kept.lock().unwrap().pop().unwrap();
    for n in 3..6 {
        scheduler.send(envelope(n)).unwrap();
    }
    completer.complete(());
    scheduler.cancel(handle.pid(), "enough").unwrap();
    assert_eq!(exit_number(handle), 106);
}

// pins: P13
#[test]
fn a_mailbox_limit_is_exact_under_concurrent_sends() {
    const LIMIT: usize = 100;
    let scheduler = Scheduler::builder()
        .workers(1)
        .mailbox_limit(LIMIT)
        .build()
        .unwrap();
    let handle = scheduler.submit(waiter(), "main", ()).unwrap();
    let accepted: usize = std::thread::scope(|scope| {
        let send = || {
            (0..LIMIT)
                .filter(|_| handle.send(Message::new("m", ())).is_ok())
                .count()
        };
        let senders: Vec<_> = (0..4).map(|_| scope.spawn(send)).collect();
        senders
            .into_iter()
            .map(|sender| sender.join().unwrap())
            .sum()
    });
    assert_eq!(accepted, LIMIT);
}

// pins: R2, R4
#[test]
fn sends_that_reach_nobody_give_the_envelope_back() {
    let scheduler = start(1);
    let ended = scheduler.submit(waiter(), "main", ()).unwrap();
    let address = ended.address().clone();
    scheduler.cancel(ended.pid(), "end").unwrap();
    exit(ended);
    let to = |text: &str| Message::new("m", 7_u64).to(text.parse().unwrap());
    let errors = [
        (
            address.send(Message::new("m", 7_u64)),
            SendErrorKind::Ended(EndKind::Done),
        ),
        (
            scheduler.send(Message::new("m", 7_u64).to(address.pid())),
            SendErrorKind::NotFound,
        ),
        (scheduler.send(to("{main|123}")), SendErrorKind::NotFound),
        (scheduler.send(to("{other|1}")), SendErrorKind::HostNotFound),
        (
            scheduler.send(to("{far@main|1}")),
            SendErrorKind::NodeNotFound,
        ),
    ];
    for (result, kind) in errors {
        let error = result.unwrap_err();
        assert_eq!(error.kind, kind);
        assert_eq!(
            error.into_envelope().message.payloads.into_first().as_u64(),
            Some(7)
        );
    }
    scheduler.stop(std::time::Duration::ZERO).unwrap();
    let error = scheduler.send(to("{main|123}")).unwrap_err();
    assert_eq!(error.kind, SendErrorKind::Stopping);
}

// pins: P13, R2
#[test]
fn a_full_mailbox_of_an_ended_process_is_closed_not_full() {
    let scheduler = Scheduler::builder()
        .workers(1)
        .mailbox_limit(1)
        .build()
        .unwrap();
    scheduler.start().unwrap();
    let idler = process(|_, _, _| Ok(()));
    let idler = scheduler.submit(idler, "main", ()).unwrap();
    let address = idler.address().clone();
    address.send(Message::new("m", ())).unwrap();
    scheduler.terminate(idler.pid()).unwrap();
    exit(idler);
    let error = address.send(Message::new("m", ())).unwrap_err();
    assert_eq!(error.kind, SendErrorKind::Ended(EndKind::Terminated));
}

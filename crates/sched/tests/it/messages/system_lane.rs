//! System events overtake the others in a mailbox, and do not starve them.

use crate::support::*;
use ganger_proc_api::{
    Command, CommandId, Completer, Envelope, EnvelopeReceiver, Event, Message, Pid, SendErrorKind,
    receiver_fn,
};
use ganger_relay::{Node, Router};
use ganger_sched::{ProcessState, Scheduler};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::task::{Context, Poll, Waker};

/// The events of a step, without their values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Message(u64),
    Control(u64),
    Cancel,
}

fn number(message: Message) -> u64 {
    message.payloads.into_first().as_u64().unwrap()
}

fn seen(event: Event) -> Seen {
    match event {
        Event::Message(message) => Seen::Message(number(message)),
        Event::Control(message) => Seen::Control(number(*message)),
        Event::Cancel(_) => Seen::Cancel,
        other => panic!("{other:?}"),
    }
}

fn message(n: u64) -> Message {
    Message::new("n", n)
}

/// Creates a process that collects its events, batch by batch, and ends when it has `until` of
/// them.
fn collector(until: usize) -> (Arc<Mutex<Vec<Vec<Seen>>>>, impl ganger_proc_api::Process) {
    let batches = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&batches);
    let mut count = 0;
    let process = process(move |_, events, out| {
        let batch: Vec<_> = events.map(seen).collect();
        count += batch.len();
        log.lock().unwrap().push(batch);
        out.defer_cancel();
        if count == until {
            out.done(());
        }
        Ok(())
    });
    (batches, process)
}

// pins: P4, P10, R4
#[test]
fn cancel_and_control_messages_overtake_ten_thousand_messages() {
    const CROWD: u32 = 10_000;
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let (batches, process) = collector(2 * CROWD as usize + 4);
    let handle = scheduler.submit(process, "main", ()).unwrap();
    let send_crowd = |from: u32| {
        for n in from..from + CROWD {
            handle.send(message(n.into())).unwrap();
        }
    };
    send_crowd(0);
    handle.send_control(message(1)).unwrap();
    scheduler.cancel(handle.pid(), "now").unwrap();
    let envelope = message(2).to(handle.pid());
    scheduler.send_control(envelope).unwrap();
    send_crowd(CROWD);
    handle.address().send_control(message(3)).unwrap();
    scheduler.start().unwrap();
    assert!(exit(handle).is_done());

    let batches = batches.lock().unwrap();
    let system = [
        Seen::Control(1),
        Seen::Cancel,
        Seen::Control(2),
        Seen::Control(3),
    ];
    assert_eq!(batches[0][..4], system);
    assert!(batches.iter().all(|batch| batch.len() <= 256));
    let rest = batches.iter().flatten().skip(4).copied();
    assert!(
        rest.eq((0..2 * u64::from(CROWD)).map(Seen::Message)),
        "each once, in order"
    );
}

// pins: P4
#[test]
fn a_system_event_overtakes_what_has_left_the_mailbox() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let mut log = Vec::new();
    let process = process(move |ctx, events, out| {
        let is_first = log.is_empty();
        // The mailbox has more than a batch: the step takes some events, leaves some, and is not
        // shown the rest.
        log.extend(events.by_ref().take(3).map(seen));
        if is_first {
            ctx.send_control(ctx.pid(), "n", 7_u64)?;
            ctx.send_control(ctx.pid(), "n", 8_u64)?;
        } else {
            out.done(std::mem::take(&mut log));
        }
        Ok(())
    });
    let handle = scheduler.submit(process, "main", ()).unwrap();
    for n in 0..600 {
        handle.send(message(n)).unwrap();
    }
    scheduler.start().unwrap();
    let log = exit(handle).into_result().unwrap();
    let expected = [0, 1, 2].map(Seen::Message).into_iter();
    let expected = expected.chain([Seen::Control(7), Seen::Control(8), Seen::Message(3)]);
    assert!(
        log.downcast::<Vec<Seen>>()
            .unwrap()
            .into_iter()
            .eq(expected)
    );
}

// pins: P4
#[test]
fn a_flood_of_control_messages_leaves_room_for_the_others() {
    for batch in [1_usize, 2, 256] {
        let builder = Scheduler::builder().workers(1).event_batch(batch);
        let scheduler = builder.build().unwrap();
        let mut batches = 0_u64;
        // The process floods itself: a whole batch of control messages follows each step.
        let process = process(move |ctx, events, out| {
            batches += 1;
            for event in events {
                if let Seen::Message(_) = seen(event) {
                    out.done(batches);
                    return Ok(());
                }
            }
            for n in 0..batch as u64 {
                ctx.send_control(ctx.pid(), "n", n)?;
            }
            Ok(())
        });
        let handle = scheduler.submit(process, "main", ()).unwrap();
        for n in 0..batch as u64 {
            handle.send_control(message(n)).unwrap();
        }
        handle.send(message(0)).unwrap();
        scheduler.start().unwrap();
        let shown_in = exit_number(handle);
        assert_eq!(
            shown_in, 9,
            "with {batch} events a batch: after eight in a row"
        );
    }
}

// pins: P13, P4
#[test]
fn control_messages_have_an_allowance_of_their_own() {
    const LIMIT: u8 = 3;
    let builder = Scheduler::builder()
        .workers(1)
        .mailbox_limit(usize::from(LIMIT));
    let scheduler = builder.build().unwrap();
    let (batches, process) = collector(4 * usize::from(LIMIT));
    let handle = scheduler.submit(process, "main", ()).unwrap();
    let fill = || {
        for n in 0..u64::from(LIMIT) {
            handle.send(message(n)).unwrap();
        }
        let refused = handle.send(message(9)).unwrap_err();
        assert_eq!(refused.kind, SendErrorKind::Full);
        // A mailbox full of messages takes as many control messages.
        for n in 0..u64::from(LIMIT) {
            handle.send_control(message(n)).unwrap();
        }
        let refused = handle.send_control(message(9)).unwrap_err();
        assert_eq!(refused.kind, SendErrorKind::Full);
        assert_eq!(number(refused.into_envelope().message), 9);
    };
    fill();
    scheduler.start().unwrap();
    until_state(&scheduler, handle.pid(), ProcessState::Idle);
    assert_eq!(batches.lock().unwrap()[0].len(), 2 * usize::from(LIMIT));
    // Each kind has its room back, no more and no less, also while messages arrive.
    for n in 0..u64::from(LIMIT) {
        until_state(&scheduler, handle.pid(), ProcessState::Idle);
        handle.send_control(message(n)).unwrap();
        until_state(&scheduler, handle.pid(), ProcessState::Idle);
        handle.send(message(n)).unwrap();
    }
    let pid = handle.pid();
    exit(handle);
    let refused = scheduler.send_control(message(1).to(pid)).unwrap_err();
    assert_eq!(refused.kind, SendErrorKind::NotFound);
}

// pins: P13, P4
#[test]
fn a_control_message_passes_those_who_wait_for_room() {
    let builder = Scheduler::builder().workers(1).mailbox_limit(1);
    let scheduler = builder.build().unwrap();
    let (batches, process) = collector(4);
    let handle = scheduler.submit(process, "main", ()).unwrap();
    handle.send(message(0)).unwrap();
    let mut waits = handle.address().send_async(message(1));
    let mut poll = || Pin::new(&mut waits).poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll().is_pending());
    handle.send_control(message(2)).unwrap();
    assert!(handle.send_control(message(9)).is_err());
    scheduler.start().unwrap();
    until("all have been taken", || {
        batches.lock().unwrap().concat().len() == 3
    });
    assert!(matches!(poll(), Poll::Ready(Ok(()))));
    handle.send(message(3)).unwrap();
    exit(handle);
    let expected = [
        Seen::Control(2),
        Seen::Message(0),
        Seen::Message(1),
        Seen::Message(3),
    ];
    assert_eq!(batches.lock().unwrap().concat(), expected);
}

// pins: P2, P4
#[test]
fn what_nobody_will_see_is_counted() {
    let scheduler = Scheduler::builder()
        .workers(1)
        .event_batch(2)
        .build()
        .unwrap();
    let process = process(|_, events, out| {
        assert_eq!(events.len(), 2);
        out.done(());
        Ok(())
    });
    let handle = scheduler.submit(process, "main", ()).unwrap();
    for n in 0..5 {
        handle.send_control(message(n)).unwrap();
        handle.send(message(n)).unwrap();
    }
    let address = handle.address().clone();
    scheduler.start().unwrap();
    assert!(exit(handle).is_done());
    assert_eq!(scheduler.stats().total.undelivered, 10);
    let refused = address.send_control(message(9)).unwrap_err();
    assert_eq!(rough(refused.kind), ENDED);
}

const NOW: CommandId = CommandId::new(256);

// pins: P4
#[test]
fn answers_at_once_do_not_keep_a_system_event_waiting() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let pid = Arc::new(OnceLock::<Pid>::new());
    // An address would keep the scheduler, which keeps the handler.
    let (own, target) = (scheduler.downgrade(), Arc::clone(&pid));
    scheduler
        .register(NOW, "now", move |command: Command, completer: Completer| {
            completer.complete(());
            if command.payloads.into_first().as_u64() == Some(2) {
                own.send_control(message(7).to(*target.get().unwrap()))?;
            }
            Ok(())
        })
        .unwrap();
    let mut steps = 0_u64;
    let process = process(move |_, events, out| {
        if events.any(|event| matches!(event, Event::Control(_))) {
            out.done(steps);
        } else {
            out.yield_command(Command::new(NOW, steps), steps);
            steps += 1;
        }
        Ok(())
    });
    let handle = scheduler.submit(process, "main", ()).unwrap();
    pid.set(handle.pid()).unwrap();
    scheduler.start().unwrap();
    assert_eq!(
        exit_number(handle),
        3,
        "the step after the one that it was sent in"
    );
}

// pins: R2, R3
#[test]
fn a_control_message_stays_one_behind_routers_and_nodes() {
    let node = Arc::new(Node::new("alpha".parse().unwrap()));
    let router = Arc::new(Router::new(Arc::clone(&node)));
    let built = |host: &str| {
        let router = Arc::clone(&router);
        let builder = Scheduler::builder().workers(1).node("alpha").host(host);
        let scheduler = builder.router(router).build().unwrap();
        let host = Arc::new(scheduler.downgrade());
        node.add_host(scheduler.host_name(), host).unwrap();
        scheduler
    };
    let (here, there) = (built("here"), built("there"));
    let (batches, process) = collector(3);
    let handle = there.submit(process, "main", ()).unwrap();
    here.send(message(1).to(handle.pid())).unwrap();
    here.send_control(message(2).to(handle.pid())).unwrap();
    let target = handle.pid();
    let sender = crate::support::process(move |ctx, _, out| {
        ctx.send_control(target, "n", 3_u64)?;
        out.done(());
        Ok(())
    });
    here.start().unwrap();
    exit(here.submit(sender, "main", ()).unwrap());
    there.start().unwrap();
    exit(handle);
    let expected = [Seen::Control(2), Seen::Control(3), Seen::Message(1)];
    assert_eq!(batches.lock().unwrap().concat(), expected);

    // A receiver without control messages takes the control message as a message, and nothing is
    // lost.
    let (taken, takes) = mpsc::channel();
    let sink = receiver_fn(move |envelope: Envelope| {
        taken.send(number(envelope.message)).unwrap();
        Ok(())
    });
    node.add_host("sink".parse().unwrap(), Arc::new(sink))
        .unwrap();
    let target: Pid = "{sink|1}".parse().unwrap();
    here.send_control(message(4).to(target)).unwrap();
    assert_eq!(takes.recv().unwrap(), 4);
    let nowhere: Pid = "{nowhere|1}".parse().unwrap();
    let refused = here.send_control(message(5).to(nowhere)).unwrap_err();
    assert_eq!(refused.kind, SendErrorKind::HostNotFound);
}

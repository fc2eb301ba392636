//! Messages and results.

use crate::support::{ByHand, exit, number, start, until};
use ganger_proc_api::{
    BoxError, Envelope, Event, ExitReason, Message, Outcome, SendErrorKind, UpgradeRequest,
};
use ganger_sched::ContextExt;
use ganger_task::{Cx, process};

// pins: A1
#[test]
fn messages_are_received_in_order_and_the_result_is_the_process_s() {
    let scheduler = start(2);
    let task = scheduler
        .spawn(async |cx: Cx<u64>| {
            let mut digits = 0;
            for _ in 0..5 {
                digits = digits * 10 + cx.recv().await.ok_or("cancelled")?;
            }
            Ok(digits)
        })
        .unwrap();
    (1..=5).for_each(|it| task.send(it).unwrap());
    assert_eq!(number(task), 12_345);
}

// pins: A1
#[test]
fn an_error_ends_the_process_as_failed_and_a_panic_as_panicked() {
    let scheduler = start(1);
    let fails = scheduler.spawn(async |_: Cx| -> Result<(), BoxError> {
        let number: u64 = "seven".parse()?;
        unreachable!("{number}");
    });
    let failed = exit(fails.unwrap());
    assert!(matches!(failed, ExitReason::Failed(it) if it.to_string().contains("digit")));
    let panics = scheduler.spawn(async |cx: Cx| -> Result<(), BoxError> {
        cx.yield_now().await;
        panic!("on purpose: task");
    });
    let panicked = exit(panics.unwrap());
    assert!(matches!(panicked, ExitReason::Panicked(it) if it.contains("on purpose: task")));
}

// pins: A1, P13
#[test]
fn a_message_of_another_type_is_refused_at_the_send() {
    let scheduler = start(1);
    let task = scheduler.spawn(async |cx: Cx<u64>| Ok(cx.recv().await.unwrap_or(0)));
    let task = task.unwrap();
    let refused = scheduler.send(Envelope::new(None, task.pid(), "", "seven"));
    assert!(matches!(
        refused.unwrap_err().kind,
        SendErrorKind::WrongType(_)
    ));
    task.send(7).unwrap();
    assert_eq!(number(task), 7);
}

// pins: A1
#[test]
fn a_message_of_another_type_that_came_before_is_dropped() {
    let mut task = ByHand::new(process(async |cx: Cx<u64>| {
        Ok(cx.recv().await.unwrap_or(0))
    }));
    task.send("early".to_owned());
    task.send(7_u64);
    let outcome = task.step().unwrap().outcome;
    assert!(matches!(outcome, Outcome::Done(it) if it.as_u64() == Some(7)));
}

// pins: A2
#[test]
fn a_selective_receive_leaves_the_others_in_order() {
    let scheduler = start(1);
    let task = scheduler
        .spawn(async |cx: Cx<u64>| {
            let even = cx.recv_where(|it| it % 2 == 0).await.unwrap_or(0);
            let large = cx.recv_where(|it| *it > 90).await.unwrap_or(0);
            let mut all = vec![even, large];
            while let Some(next) = cx.try_recv() {
                all.push(next);
            }
            Ok(all)
        })
        .unwrap();
    for number in [1, 3, 2, 5, 7] {
        task.send(number).unwrap();
    }
    task.send(99).unwrap();
    let ExitReason::Done(all) = exit(task) else {
        panic!("it has not finished");
    };
    assert_eq!(all.downcast::<Vec<u64>>().unwrap(), [2, 99, 1, 3, 5, 7]);
}

/// Polls a wait again after steps without a poll, in which messages came.
// pins: A2
#[test]
fn a_selective_receive_sees_what_came_while_it_was_not_polled() {
    let scheduler = start(1);
    let task = scheduler.spawn(async |cx: Cx<u64>| {
        let mut nine = cx.recv_where(|it| *it == 9);
        assert!(futures_util::poll!(&mut nine).is_pending());
        let five = cx.recv_where(|it| *it == 5).await;
        assert_eq!(five, Some(5));
        Ok(nine.await.unwrap_or(0))
    });
    let task = task.unwrap();
    for (steps, message) in [(1, 1), (2, 9), (3, 5)] {
        until("it has stepped", || scheduler.stats().total.steps == steps);
        task.send(message).unwrap();
    }
    assert_eq!(number(task), 9);
}

// pins: A1
#[test]
fn control_messages_are_messages_that_overtake() {
    let mut task = ByHand::new(process(async |cx: Cx| {
        let first = cx.recv().await.ok_or("cancelled")?;
        Ok(first.payloads.into_first())
    }));
    let control = Event::Control(Box::new(Message::new("now", 1)));
    task.events.push_back(control);
    task.events
        .push_back(Event::Message(Message::new("later", 2)));
    let outcome = task.step().unwrap().outcome;
    assert!(matches!(outcome, Outcome::Done(it) if it.as_u64() == Some(1)));
}

// pins: A1
#[test]
fn tasks_start_tasks_and_send_to_them() {
    let scheduler = start(2);
    let parent = scheduler.spawn(async |cx: Cx<u64>| {
        let own = cx.pid();
        let child = cx.spawn(async move |cx: Cx<u64>| {
            let number = cx.recv().await.ok_or("cancelled")?;
            Ok(cx.send(own, number + 1)?)
        })?;
        child.send(41)?;
        Ok(cx.recv().await.unwrap_or(0))
    });
    assert_eq!(number(parent.unwrap()), 42);
}

// pins: A1, P11
#[test]
fn a_task_takes_the_place_of_another_process() {
    let scheduler = start(1);
    let task = || process(async |cx: Cx<u64>| Ok(cx.recv().await.unwrap_or(0)));
    scheduler.register_factory("task", task).unwrap();
    let old = scheduler.spawn(async |cx: Cx<u64>| Ok(cx.recv().await.unwrap_or(1)));
    let old = old.unwrap();
    scheduler
        .upgrade(old.pid(), UpgradeRequest::factory("task", "main", ()))
        .unwrap();
    old.send(7).unwrap();
    assert_eq!(number(old), 7);
}

//! Exit signals, notices in order, and withdrawn notices.

use crate::support::puppet::puppet;
use crate::support::*;
use ganger_proc_api::{
    Event, Events, ExitCause, ExitNotice, ExitReason, Message, Pid, UpgradeRequest, Withdrawal,
};
use ganger_sched::{Arrived, ExitSignal, Scheduler, SystemEvent};
use std::sync::mpsc::channel;

const MANY: u64 = 1_000;

/// Returns this decision on arrival; panics without a decision.
#[derive(Debug)]
struct Does(Option<Arrived>);

impl ExitSignal for Does {
    fn arrive(self: Box<Self>) -> Arrived {
        self.0.expect("on purpose: signal")
    }
}

fn does(arrived: Arrived) -> SystemEvent {
    SystemEvent::Signal(Box::new(Does(Some(arrived))))
}

fn notice(pid: Pid, tag: u64) -> ExitNotice {
    ExitNotice::new(pid, tag, ExitCause::Done)
}

fn numbers(events: &mut Events<'_>) -> Vec<u64> {
    let number = |event| match event {
        Event::Exit(exit) => Some(exit.tag),
        Event::Message(message) => message.payloads.into_first().as_u64(),
        Event::Control(message) => message.payloads.into_first().as_u64(),
        _ => None,
    };
    events.filter_map(number).collect()
}

fn message(number: u64) -> Message {
    Message::new("n", number)
}

// pins: P4, P8
#[test]
fn what_a_signal_says_takes_its_place_among_the_system_events() {
    quiet_panics();
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let (seen, told) = channel();
    let watcher = process(move |_, events, _| Ok(seen.send(numbers(events))?));
    let watcher = scheduler.submit(watcher, "main", ()).unwrap();
    let (address, pid) = (watcher.address(), watcher.pid());
    address.send(message(5)).unwrap();
    let in_order = SystemEvent::Exit(notice(pid, 6).in_order());
    address.send_system(in_order).unwrap();
    address.send(message(7)).unwrap();
    address.send_control(message(0)).unwrap();
    address.send_system(does(Arrived::Nothing)).unwrap();
    let panics = SystemEvent::Signal(Box::new(Does(None)));
    address.send_system(panics).unwrap();
    for tag in [1, 2] {
        let signal = does(Arrived::Notice(notice(pid, tag)));
        address.send_system(signal).unwrap();
    }
    address.send_control(message(3)).unwrap();
    address
        .send_system(SystemEvent::Exit(notice(pid, 4)))
        .unwrap();
    scheduler.start().unwrap();
    let mut all = Vec::new();
    while all.len() < 8 {
        all.extend(told.recv_timeout(PATIENCE).unwrap());
    }
    assert!((0..8).eq(all.iter().copied()), "{all:?}");
    assert_eq!(scheduler.stats().total.panics, 1);
}

// pins: P4
#[test]
fn notices_of_signals_come_in_batches_that_are_bounded() {
    let scheduler = Scheduler::builder().workers(1).event_batch(8);
    let scheduler = scheduler.build().unwrap();
    let (seen, told) = channel();
    let watcher = process(move |_, events, _| Ok(seen.send(numbers(events))?));
    let watcher = scheduler.submit(watcher, "main", ()).unwrap();
    for tag in 0..MANY {
        let signal = does(Arrived::Notice(notice(watcher.pid(), tag)));
        watcher.address().send_system(signal).unwrap();
    }
    scheduler.start().unwrap();
    let mut all = Vec::new();
    while (all.len() as u64) < MANY {
        let batch = told.recv_timeout(PATIENCE).unwrap();
        assert!(batch.len() <= 16, "{}", batch.len());
        all.extend(batch);
    }
    assert!((0..MANY).eq(all.iter().copied()));
}

// pins: P11
#[test]
fn an_upgrade_waits_for_the_notice_of_an_earlier_signal() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let (seen, told) = channel();
    let its = seen.clone();
    let old = process(move |_, events, _| Ok(its.send((1, numbers(events)))?));
    let watcher = scheduler.submit(old, "main", ()).unwrap();
    let (address, pid) = (watcher.address(), watcher.pid());
    let signal = does(Arrived::Notice(notice(pid, 7)));
    address.send_system(signal).unwrap();
    let new = process(move |_, events, _| Ok(seen.send((2, numbers(events)))?));
    let upgrade = UpgradeRequest::process(new, "main", ());
    scheduler.upgrade(pid, upgrade).unwrap();
    scheduler.start().unwrap();
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), (1, vec![7]));
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), (2, vec![]));
}

// pins: P12
#[test]
fn a_signal_ends_its_process_and_monitors_learn_the_cause() {
    let scheduler = start(2);
    let watcher = puppet(&scheduler);
    let target = scheduler.submit(waiter(), "main", ()).unwrap();
    let pid = target.pid();
    watcher.monitor(pid, 1);
    let cause = ExitCause::Failed("of another".into());
    let signal = does(Arrived::End(cause.clone()));
    scheduler.send_system(pid, signal).unwrap();
    assert_eq!(watcher.next(), (pid, 1, cause.clone()));
    let reason = exit(target);
    assert_eq!(reason.to_string(), "failed: of another");
    assert!(matches!(reason, ExitReason::Exited(it) if it == cause));
    let late = scheduler.send_system(pid, does(Arrived::Nothing));
    assert!(matches!(*late.unwrap_err().event, SystemEvent::Signal(_)));
}

// pins: P12
#[test]
fn no_step_is_shown_a_notice_that_has_been_withdrawn() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let withdrawals: Vec<_> = (0..4).map(|_| Withdrawal::default()).collect();
    let all = withdrawals.clone();
    let mut left_over = false;
    let watcher = process(move |_, events, out| {
        if !left_over {
            // The first two are queued in the same batch. The step takes the first alone.
            let first = events.next();
            assert!(matches!(first, Some(Event::Exit(exit)) if exit.tag == 0));
            all[1].withdraw();
            assert!(
                events
                    .take_where(|it| matches!(it, Event::Exit(_)))
                    .is_some()
            );
            all[3].withdraw();
            left_over = true;
            out.step_again();
            return Ok(());
        }
        let numbers = numbers(events);
        assert_eq!(numbers, [9]);
        out.done(());
        Ok(())
    });
    let watcher = scheduler.submit(watcher, "main", ()).unwrap();
    let pid = watcher.pid();
    for (tag, withdrawal) in (0..).zip(&withdrawals) {
        let notice = notice(pid, tag).withdrawn_by(withdrawal);
        let notice = if tag == 3 { notice.in_order() } else { notice };
        watcher
            .address()
            .send_system(SystemEvent::Exit(notice))
            .unwrap();
    }
    watcher.send(message(9)).unwrap();
    scheduler.start().unwrap();
    assert!(exit(watcher).is_done());
}

#[test]
fn a_queue_of_events_passes_withdrawn_ones_over_as_well() {
    let pid: Pid = "{test|7}".parse().unwrap();
    let withdrawal = Withdrawal::default();
    let exit = |tag| Event::Exit(Box::new(notice(pid, tag).withdrawn_by(&withdrawal)));
    let mut queue = std::collections::VecDeque::from([exit(1), exit(2)]);
    let mut events = Events::new(&mut queue);
    let mut shown = std::collections::VecDeque::from([exit(3)]);
    assert_eq!(numbers(&mut Events::new(&mut shown)), [3]);
    withdrawal.withdraw();
    assert!(events.take_where(|_| true).is_none());
    assert!(events.next().is_none() && events.is_empty());
}

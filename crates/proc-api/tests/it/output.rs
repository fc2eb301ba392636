//! `StepOutput` and `Events` against plain models.

use ganger_proc_api::internal::RunnerOutput as _;
use ganger_proc_api::{
    Command, CommandId, Event, Events, Message, Outcome, Payload, StepOutput, UpgradeRequest, Yield,
};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug, Clone)]
enum Write {
    Yield(u16, u64),
    StepAgain,
    Wait,
    Done(u64),
    Upgrade,
    Clear,
}

fn write() -> impl Strategy<Value = Write> {
    prop_oneof![
        4 => (any::<u16>(), any::<u64>()).prop_map(|(id, tag)| Write::Yield(id, tag)),
        1 => Just(Write::StepAgain),
        1 => Just(Write::Wait),
        1 => any::<u64>().prop_map(Write::Done),
        1 => Just(Write::Upgrade),
        1 => Just(Write::Clear),
    ]
}

fn describe(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done(payload) => format!("done {}", payload.as_u64().unwrap()),
        Outcome::Upgrade(_) => "upgrade".to_owned(),
        other => format!("{other:?}"),
    }
}

proptest! {
    // pins: P3
    #[test]
    fn yields_stay_in_order_and_an_end_is_final(
        writes in proptest::collection::vec(write(), 0..40),
    ) {
        let mut out = StepOutput::new();
        let mut yields = Vec::new();
        let mut outcome = "Wait".to_owned();
        for write in writes {
            let is_end = outcome.starts_with("done") || outcome == "upgrade";
            let said = match write {
                Write::Yield(id, tag) => {
                    out.yield_command(Command::new(CommandId::new(id), tag), tag);
                    yields.push((id, tag));
                    continue;
                }
                Write::Clear => {
                    out.clear();
                    yields.clear();
                    outcome = "Wait".into();
                    continue;
                }
                Write::StepAgain => "StepAgain".into(),
                Write::Wait => "Wait".into(),
                Write::Done(n) => format!("done {n}"),
                Write::Upgrade => "upgrade".into(),
            };
            let is_mistake = is_end && !(outcome.starts_with("done") && said.starts_with("done"));
            let returned = catch_unwind(AssertUnwindSafe(|| match write {
                Write::StepAgain => out.step_again(),
                Write::Wait => out.wait(),
                Write::Done(n) => out.done(n),
                _ => out.upgrade(UpgradeRequest::factory("next", "main", ())),
            }));
            prop_assert_eq!(returned.is_err(), is_mistake && cfg!(debug_assertions));
            if !is_end {
                outcome = said;
            }
            prop_assert_eq!(out.yields().len(), yields.len());
        }
        prop_assert_eq!(describe(out.outcome()), outcome.clone());
        prop_assert_eq!(describe(&out.take_outcome()), outcome);
        prop_assert!(matches!(out.outcome(), Outcome::Wait));
        let drained: Vec<_> = out
            .drain_yields()
            .map(|y| {
                let value = y.command.payloads.first().and_then(Payload::as_u64);
                assert_eq!(value, Some(y.tag));
                (y.command.id.get(), y.tag)
            })
            .collect();
        prop_assert_eq!(drained, yields);
        prop_assert!(out.yields().is_empty());
    }

    // pins: P4
    #[test]
    fn what_a_step_leaves_stays_in_order(
        count in 0..20_u64,
        takes in proptest::collection::vec(proptest::option::of(0..20_u64), 0..20),
    ) {
        let message = |n: u64| Event::Message(Message::new("n", n));
        let number = |event: &Event| match event {
            Event::Message(m) => m.payloads.first().and_then(Payload::as_u64).unwrap(),
            other => panic!("{other:?}"),
        };
        let mut queue: VecDeque<_> = (0..count).map(message).collect();
        let mut model: VecDeque<_> = (0..count).collect();
        let mut events = Events::new(&mut queue);
        for take in takes {
            let (got, expected) = match take {
                None => (events.next(), model.pop_front()),
                Some(wanted) => {
                    let at = model.iter().position(|&n| n == wanted);
                    let expected = at.and_then(|at| model.remove(at));
                    (events.take_where(|event| number(event) == wanted), expected)
                }
            };
            prop_assert_eq!(got.as_ref().map(number), expected);
            prop_assert_eq!(events.len(), model.len());
        }
        let left: Vec<_> = queue.iter().map(number).collect();
        prop_assert_eq!(left, Vec::from(model));
    }
}

/// Counts how often it is dropped. Panics when it is dropped if the flag is set.
struct Counted(Arc<AtomicUsize>, bool);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        assert!(!self.1, "on purpose: destructor");
    }
}

/// Creates a buffer with `commands` commands. The command with the tag `panics` panics when it is
/// dropped.
fn full(commands: u64, panics: Option<u64>) -> (StepOutput, Arc<AtomicUsize>) {
    let dropped = Arc::new(AtomicUsize::new(0));
    let mut out = StepOutput::new();
    for tag in 0..commands {
        let value = Counted(Arc::clone(&dropped), panics == Some(tag));
        let command = Command::new(CommandId::new(256), Payload::any(value));
        out.yield_command(command, tag);
    }
    (out, dropped)
}

/// Creates a result that counts its drops. Panics when it is dropped if `panics` is set.
fn result(panics: bool) -> (Payload, Arc<AtomicUsize>) {
    let dropped = Arc::new(AtomicUsize::new(0));
    (Payload::any(Counted(Arc::clone(&dropped), panics)), dropped)
}

#[test]
fn a_result_that_is_cleared_or_taken_is_dropped_once() {
    for clear in [StepOutput::clear, |out: &mut StepOutput| {
        drop(out.take_outcome());
    }] {
        for is_upgrade in [false, true] {
            let (input, dropped) = result(false);
            let mut out = StepOutput::new();
            if is_upgrade {
                out.upgrade(UpgradeRequest::factory("next", "main", input));
            } else {
                out.done(input);
            }
            assert_eq!(dropped.load(Ordering::SeqCst), 0);
            clear(&mut out);
            assert_eq!(dropped.load(Ordering::SeqCst), 1);
            assert!(out.waits());
            clear(&mut out);
            drop(out);
            assert_eq!(dropped.load(Ordering::SeqCst), 1);
        }
    }
}

// pins: P3
#[test]
fn the_first_result_counts_and_the_second_is_dropped_though_its_destructor_panics() {
    let ((first, kept), (second, dropped)) = (result(false), result(true));
    let mut out = StepOutput::new();
    out.done(first);
    assert!(catch_unwind(AssertUnwindSafe(|| out.done(second))).is_err());
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    assert_eq!(kept.load(Ordering::SeqCst), 0);
    assert!(matches!(out.take_outcome(), Outcome::Done(_)));
    assert_eq!(kept.load(Ordering::SeqCst), 1);
    assert!(out.waits());
}

// pins: P3
#[test]
#[cfg(debug_assertions)]
fn an_outcome_after_an_end_is_a_mistake_that_says_what_to_do() {
    let upgrade = |out: &mut StepOutput| out.upgrade(UpgradeRequest::factory("next", "main", ()));
    for again in [StepOutput::step_again, StepOutput::wait, upgrade] {
        let mut out = StepOutput::new();
        out.done(7_u64);
        let panic = catch_unwind(AssertUnwindSafe(|| again(&mut out))).unwrap_err();
        let text = panic.downcast_ref::<&str>().unwrap();
        assert!(text.contains("return from the step after `done`"), "{text}");
        assert!(matches!(out.outcome(), Outcome::Done(it) if it.as_u64() == Some(7)));
    }
}

#[test]
fn a_result_that_stays_is_dropped_with_the_buffer() {
    let (payload, dropped) = result(false);
    let mut out = StepOutput::new();
    out.done(payload);
    drop(out);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

#[test]
fn commands_are_taken_in_order_and_the_others_are_dropped() {
    for commands in [1, 2, 3, 7] {
        let (mut out, dropped) = full(commands, None);
        let count = || dropped.load(Ordering::SeqCst);
        let mut yields = out.drain_yields();
        let Yield { command, tag } = yields.next().unwrap();
        assert_eq!((command.id, tag, count()), (CommandId::new(256), 0, 0));
        drop(command);
        assert_eq!(count(), 1);
        let untaken = yields.next().map(|it| it.tag);
        assert_eq!(untaken, (commands > 1).then_some(1));
        assert_eq!(yields.next().map(|it| it.tag), (commands > 2).then_some(2));
        drop(yields);
        assert_eq!(count() as u64, commands);
        assert!(out.yields().is_empty());
        out.yield_command(Command::new(CommandId::new(257), 5), 9);
        assert_eq!(out.yields()[0].tag, 9);
    }
}

#[test]
fn the_only_command_is_taken_alone() {
    for commands in [0, 1, 2] {
        let (mut out, dropped) = full(commands, None);
        let only = out.only_yield().take();
        assert_eq!(only.is_some(), commands == 1);
        assert_eq!(out.yields().is_empty(), commands < 2);
        out.clear();
        drop(only);
        assert_eq!(dropped.load(Ordering::SeqCst) as u64, commands);
    }
}

#[test]
fn a_destructor_that_panics_costs_the_other_commands_nothing() {
    let (mut out, dropped) = full(5, Some(1));
    let panicked = catch_unwind(AssertUnwindSafe(|| drop(out.drain_yields())));
    assert!(panicked.is_err());
    assert_eq!(dropped.load(Ordering::SeqCst), 5);
    assert!(out.yields().is_empty());
}

#[test]
fn commands_whose_iterator_is_forgotten_are_gone() {
    for commands in [2, 5] {
        let (mut out, dropped) = full(commands, None);
        std::mem::forget(out.drain_yields());
        assert!(out.yields().is_empty());
        let (mut others, dropped_later) = full(commands + 1, None);
        others
            .drain_yields()
            .for_each(|it| out.yield_command(it.command, it.tag));
        let yields = out.drain_yields();
        assert_eq!(yields.len() as u64, commands + 1);
        drop(yields);
        assert_eq!(dropped.load(Ordering::SeqCst), 0);
        assert_eq!(dropped_later.load(Ordering::SeqCst) as u64, commands + 1);
    }
}

#[test]
fn a_command_is_dropped_once_though_its_taker_panics_or_forgets_it() {
    let (mut out, dropped) = full(4, Some(3));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let mut yields = out.drain_yields();
        std::mem::forget(yields.next());
        let _taken = yields.next();
        panic!("on purpose: taker");
    }));
    assert_eq!(
        panicked.unwrap_err().downcast_ref(),
        Some(&"on purpose: taker")
    );
    // The forgotten command is leaked, and the rest is dropped.
    assert_eq!(dropped.load(Ordering::SeqCst), 3);
    assert!(out.yields().is_empty());
}

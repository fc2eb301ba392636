//! `StepOutput` and `Events` against plain models.

use ganger_proc_api::{
    Command, CommandId, Event, Events, Message, Outcome, Payload, StepOutput, UpgradeRequest,
};
use proptest::prelude::*;
use std::collections::VecDeque;

#[derive(Debug, Clone)]
enum Write {
    Yield(u16, u64),
    GoOn,
    Idle,
    Wait,
    Done(u64),
    Upgrade,
    Clear,
}

fn write() -> impl Strategy<Value = Write> {
    prop_oneof![
        4 => (any::<u16>(), any::<u64>()).prop_map(|(id, tag)| Write::Yield(id, tag)),
        1 => Just(Write::GoOn),
        1 => Just(Write::Idle),
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
    fn yields_stay_in_order_and_the_last_outcome_counts(
        writes in proptest::collection::vec(write(), 0..40),
    ) {
        let mut out = StepOutput::new();
        let mut yields = Vec::new();
        let mut outcome = "Continue".to_owned();
        for write in writes {
            match write {
                Write::Yield(id, tag) => {
                    out.yield_command(Command::new(CommandId::new(id), tag), tag);
                    yields.push((id, tag));
                }
                Write::GoOn => { out.go_on(); outcome = "Continue".into(); }
                Write::Idle => { out.idle(); outcome = "Idle".into(); }
                Write::Wait => { out.wait_for_yields(); outcome = "WaitForYields".into(); }
                Write::Done(n) => { out.done(n); outcome = format!("done {n}"); }
                Write::Upgrade => {
                    out.upgrade(UpgradeRequest::factory("next", "main", ()));
                    outcome = "upgrade".into();
                }
                Write::Clear => {
                    out.clear();
                    yields.clear();
                    outcome = "Continue".into();
                }
            }
            prop_assert_eq!(out.yields().len(), yields.len());
        }
        prop_assert_eq!(describe(out.outcome()), outcome.clone());
        prop_assert_eq!(describe(&out.take_outcome()), outcome);
        prop_assert!(matches!(out.outcome(), Outcome::Continue));
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

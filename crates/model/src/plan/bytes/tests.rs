//! What bytes mean.

use super::*;

#[test]
fn every_sequence_of_bytes_is_a_plan_and_zeros_are_the_simplest() {
    let nothing = Plan::from_bytes(&[]);
    assert_eq!((nothing.workers, nothing.batch), (1, 256));
    assert_eq!((nothing.mailbox, nothing.processes), (None, None));
    assert!(nothing.ops.is_empty());
    assert_eq!(Plan::from_bytes(&[0; 3]), nothing);
    assert_eq!(Plan::from_bytes(&[0; 11]).ops, [Op::Settle]);
    assert_eq!(Plan::from_bytes(&[255; 4_096]).ops.len(), MOST);
}

#[test]
fn there_is_a_byte_for_each_operation_and_each_act() {
    let record = |op, what, how| Op::from_record([op, 0, what, how]);
    let ops: Vec<_> = (0..=255).map(|op| record(op, 0, 0)).collect();
    let has = |wanted: fn(&Op) -> bool| assert!(ops.iter().any(wanted));
    has(|op| matches!(op, Op::Settle));
    has(|op| matches!(op, Op::Move(_)));
    has(|op| matches!(op, Op::Submit { .. }));
    has(|op| matches!(op, Op::Send { control: true, .. }));
    has(|op| matches!(op, Op::Cancel(_)));
    has(|op| matches!(op, Op::Terminate(_)));
    has(|op| matches!(op, Op::Upgrade(..)));
    has(|op| matches!(op, Op::Complete(..)));
    has(|op| matches!(op, Op::Stop(_)));
    has(|op| matches!(op, Op::Wait(..)));
    has(|op| matches!(op, Op::GiveUp(_)));
    has(|op| matches!(op, Op::Volley { .. }));
    has(|op| matches!(op, Op::Far(..)));
    has(|op| matches!(op, Op::Place(..)));
    has(|op| matches!(op, Op::Crowd { .. }));
    has(|op| matches!(op, Op::Press { .. }));
    let acts = (0..=255).flat_map(|what| (0..=255).map(move |how| Act::from_bytes(what, how)));
    let mut kinds: Vec<_> = acts
        .filter_map(|act| match act {
            Act::Ask(kind) => Some(format!("{kind:?}")),
            Act::Pass(..) => Some("Pass".to_owned()),
            Act::Wait(..) => Some("Wait".to_owned()),
            Act::Far(_) => Some("Far".to_owned()),
            Act::Spawn(..) => Some("Spawn".to_owned()),
            Act::Monitor(_) => Some("Monitor".to_owned()),
            Act::Demonitor(_) => Some("Demonitor".to_owned()),
            _ => None,
        })
        .collect();
    kinds.sort();
    kinds.dedup();
    assert_eq!(kinds.len(), KINDS.len() + 6);
}

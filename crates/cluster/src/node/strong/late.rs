//! Creations carried out late, when their claims are gone.

use super::machine::{Machine, Todo};
use crate::store::{Entry, LeaseId, Revision, StoreAnswer, StoreChange, StoreError, StoreOp};
use ganger_proc_api::Instant;
use std::time::Duration;

const LEASE: LeaseId = LeaseId(1);

fn at(seconds: u64) -> Instant {
    Instant::from_nanos(0) + Duration::from_secs(seconds)
}

/// Returns the only operation of the machine.
fn asked(machine: &mut Machine) -> (u64, StoreOp) {
    let mut todo = machine.todo();
    todo.retain(|it| !matches!(it, Todo::Granted(_)));
    match (todo.pop(), todo.is_empty()) {
        (Some(Todo::Ask(number, op)), true) => (number, op),
        other => panic!("{other:?} and {todo:?}"),
    }
}

fn put(value: &[u8], revision: u64) -> StoreChange {
    StoreChange::Put(Entry {
        key: "strong/name/billing".into(),
        value: value.to_vec(),
        revision: Revision(revision),
        lease: Some(LEASE),
    })
}

fn gone(revision: u64) -> StoreChange {
    StoreChange::Gone {
        key: "strong/name/billing".into(),
        revision: Revision(revision),
    }
}

/// Returns a machine with a name, and with another, created at the second attempt and given up.
/// Also returns the number of its deletion, revision 4 of the store.
fn given_up() -> (Machine, u64) {
    let mut machine = Machine::new(Duration::from_secs(10));
    machine.name(1, "kept", vec![1], at(0));
    let (grant, _) = asked(&mut machine);
    machine.answered(grant, Ok(StoreAnswer::Lease(LEASE)), at(0));
    let (create, _) = asked(&mut machine);
    machine.answered(create, Ok(StoreAnswer::Written(Revision(2))), at(0));
    machine.name(2, "billing", vec![2], at(0));
    let (create, _) = asked(&mut machine);
    machine.answered(create, Err(StoreError::Unknown), at(0));
    machine.tick(at(1));
    let (create, _) = asked(&mut machine);
    machine.answered(create, Ok(StoreAnswer::Written(Revision(3))), at(1));
    machine.release(2, at(1));
    let (delete, op) = asked(&mut machine);
    assert!(matches!(
        op,
        StoreOp::Delete {
            revision: Revision(3),
            ..
        }
    ));
    let snapshot = StoreChange::Snapshot {
        entries: vec![Entry {
            key: "strong/name/kept".into(),
            value: vec![1],
            revision: Revision(2),
            lease: Some(LEASE),
        }],
        revision: Revision(2),
    };
    for change in [snapshot, put(&[2], 3), gone(4)] {
        machine.changed(change, at(1));
    }
    assert!(!machine.has_todo());
    (machine, delete)
}

// pins: B33
#[test]
fn an_entry_that_comes_late_is_deleted() {
    let (mut machine, delete) = given_up();
    machine.answered(delete, Ok(StoreAnswer::Deleted(Revision(4))), at(1));
    assert!(!machine.has_todo());
    // Of another claim, and then the creation whose answer was lost.
    machine.changed(put(&[3], 5), at(1));
    machine.changed(gone(6), at(1));
    assert!(!machine.has_todo());
    machine.changed(put(&[2], 7), at(1));
    let (delete, op) = asked(&mut machine);
    assert!(matches!(
        op,
        StoreOp::Delete {
            revision: Revision(7),
            ..
        }
    ));
    // A deletion without an answer is tried again.
    machine.answered(delete, Err(StoreError::Unknown), at(1));
    let due = machine.next_due().unwrap();
    assert!(due < at(2), "{due:?}");
    machine.tick(due);
    let (delete, op) = asked(&mut machine);
    assert!(matches!(
        op,
        StoreOp::Delete {
            revision: Revision(7),
            ..
        }
    ));
    machine.changed(gone(8), due);
    machine.answered(delete, Ok(StoreAnswer::Deleted(Revision(8))), due);
    machine.tick(at(2) - Duration::from_millis(1));
    assert!(!machine.has_todo());
}

// pins: B33
#[test]
fn an_entry_that_comes_before_the_answer_to_its_deletion_is_deleted() {
    let (mut machine, delete) = given_up();
    machine.changed(put(&[2], 5), at(1));
    assert!(!machine.has_todo());
    machine.answered(delete, Ok(StoreAnswer::Deleted(Revision(4))), at(1));
    let (_, op) = asked(&mut machine);
    assert!(matches!(
        op,
        StoreOp::Delete {
            revision: Revision(5),
            ..
        }
    ));
}

//! Links, monitors, names and groups, compared with their specification.

use crate::cases;
use ganger_model::{EndAct, Ends, NAMES, PROCESSES, Spawn, play_ends};
use proptest::collection::vec;
use proptest::prelude::*;

/// Returns the number of a process, perhaps of a later process.
fn process() -> impl Strategy<Value = usize> {
    0..PROCESSES + 2
}

fn ends() -> impl Strategy<Value = Ends> {
    prop_oneof![
        Just(Ends::Done),
        Just(Ends::Fails),
        Just(Ends::Panics),
        Just(Ends::Cancelled),
        Just(Ends::Terminated),
    ]
}

fn spawn() -> impl Strategy<Value = Spawn> {
    let named = proptest::option::weighted(0.4, 0..NAMES);
    let ends = proptest::option::weighted(0.4, ends());
    (any::<bool>(), any::<Option<bool>>(), named, ends).prop_map(
        |(linked, watched, named, ends)| Spawn {
            linked,
            watched,
            named,
            ends,
        },
    )
}

fn act() -> impl Strategy<Value = EndAct> {
    let one = process;
    let some = || 0..NAMES;
    prop_oneof![
        4 => (one(), spawn()).prop_map(|(a, how)| EndAct::Spawn(a, how)),
        8 => (one(), one()).prop_map(|(a, b)| EndAct::Link(a, b)),
        2 => (one(), one()).prop_map(|(a, b)| EndAct::Unlink(a, b)),
        2 => (one(), any::<bool>()).prop_map(|(a, on)| EndAct::Trap(a, on)),
        2 => (one(), ends()).prop_map(|(a, ends)| EndAct::End(a, ends)),
        3 => (one(), one(), 1..4_u64, ends())
            .prop_map(|(a, b, numbers, ends)| EndAct::Farewell(a, b, numbers, ends)),
        1 => (one(), one(), any::<bool>()).prop_map(|(a, b, on)| EndAct::Exit(a, b, on)),
        5 => (one(), one(), any::<bool>()).prop_map(|(a, b, on)| EndAct::Watch(a, b, on)),
        1 => one().prop_map(EndAct::EndWatch),
        2 => (one(), some()).prop_map(|(a, name)| EndAct::Name(a, name)),
        4 => (one(), some()).prop_map(|(a, group)| EndAct::Join(a, group)),
        2 => (one(), some()).prop_map(|(a, group)| EndAct::Leave(a, group)),
        2 => (one(), some()).prop_map(|(a, group)| EndAct::Broadcast(a, group)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(300)))]

    // pins: L1, L2, L3, L4, L5, L6, N1, N3, N5
    #[test]
    fn each_end_has_its_cause_and_is_told_as_the_specification_says(
        seed in any::<u64>(),
        acts in vec(act(), 0..40),
    ) {
        play_ends(seed, &acts);
    }
}

/// Ends several linked processes by a single act. A peer among them may be told before or after the
/// process linked to the peer.
#[test]
fn what_those_are_told_that_end_by_one_act_is_true_in_any_order() {
    let acts = [
        EndAct::End(3, Ends::Terminated),
        EndAct::Watch(0, 1, false),
        EndAct::Link(3, 0),
        EndAct::Link(2, 1),
        EndAct::Watch(5, 2, false),
        EndAct::Link(1, 0),
        EndAct::Link(0, 5),
        EndAct::End(1, Ends::Fails),
    ];
    (0..u64::from(cases(100))).for_each(|seed| play_ends(seed, &acts));
}

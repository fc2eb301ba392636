//! Supervisors, compared with their specification.

use crate::cases;
use ganger_model::{ChildPlan, How, TreeAct, TreePlan, play_tree};
use ganger_supervise::{AutoShutdown, Restart, Strategy as Restarts};
use proptest::collection::vec;
use proptest::prelude::*;

fn child(below: BoxedStrategy<Option<TreePlan>>) -> impl Strategy<Value = ChildPlan> {
    let restart = prop_oneof![
        3 => Just(Restart::Permanent),
        2 => Just(Restart::Transient),
        1 => Just(Restart::Temporary),
    ];
    let marks = (any::<bool>(), proptest::bool::weighted(0.3));
    (restart, marks, below).prop_map(|(restart, (significant, in_place), below)| ChildPlan {
        restart,
        significant,
        in_place,
        below,
    })
}

fn leaf() -> impl Strategy<Value = ChildPlan> {
    child(Just(None).boxed())
}

fn tree(child: impl Strategy<Value = ChildPlan>, most: usize) -> impl Strategy<Value = TreePlan> {
    let strategy = prop_oneof![
        Just(Restarts::OneForOne),
        Just(Restarts::OneForAll),
        Just(Restarts::RestForOne),
        Just(Restarts::Dynamic),
    ];
    let auto = prop_oneof![
        4 => Just(AutoShutdown::Never),
        1 => Just(AutoShutdown::Any),
        1 => Just(AutoShutdown::All),
    ];
    let children = vec(child, 0..most);
    (strategy, auto, 0..4_u32, children).prop_map(|(strategy, auto, most, children)| TreePlan {
        strategy,
        auto,
        most,
        children,
    })
}

fn two_levels() -> impl Strategy<Value = TreePlan> {
    let below = prop_oneof![3 => Just(None), 1 => tree(leaf(), 4).prop_map(Some)];
    tree(child(below.boxed()), 5)
}

fn act() -> impl Strategy<Value = TreeAct> {
    let one = || 0..6_usize;
    let how = prop_oneof![
        1 => Just(How::Done),
        3 => Just(How::Fail),
        2 => Just(How::Panic),
        1 => Just(How::Cancel),
        2 => Just(How::Terminate),
    ];
    let below = proptest::option::weighted(0.7, 0..3_usize);
    prop_oneof![
        12 => (one(), below, how).prop_map(|(child, below, how)| TreeAct::End(child, below, how)),
        2 => one().prop_map(TreeAct::Stop),
        1 => one().prop_map(TreeAct::Remove),
        2 => one().prop_map(TreeAct::Restart),
        1 => leaf().prop_map(TreeAct::Add),
        1 => one().prop_map(TreeAct::Break),
        2 => Just(TreeAct::Mend),
        6 => Just(TreeAct::Wait),
        1 => prop_oneof![Just(TreeAct::StopAll), Just(TreeAct::Terminate)],
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(300)))]

    // pins: S1, S2, S3, S4, S5, S6, S8, S9, S10, S13
    #[test]
    fn a_supervisor_does_what_its_specification_says(
        seed in any::<u64>(),
        plan in two_levels(),
        broken in proptest::option::weighted(0.1, 0..5_usize),
        acts in vec(act(), 0..30),
    ) {
        play_tree(seed, &plan, broken, &acts);
    }
}

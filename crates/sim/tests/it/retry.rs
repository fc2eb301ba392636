//! A client, which asks again when no answer comes. The faulty version loses a reply, and the
//! simulation finds it; the mended version does not.

#[path = "../../examples/lost_reply/ask.rs"]
mod ask;

use ask::ask;
use ganger_sim::{Faults, Sim, Strategy};
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn a_client_that_takes_any_answer_gets_it() {
    Sim::check(300, |rt| ask(rt, true));
    let strategy = Strategy::Priorities {
        changes: 3,
        moves: 100,
    };
    let sim = Sim::new(0).workers(3).faults(Faults::some());
    sim.strategy(strategy).check_seeds(100, |rt| ask(rt, true));
}

#[test]
fn a_reply_that_is_lost_after_a_retry_is_found_and_can_be_repeated() {
    let check = || Sim::check(300, |rt| ask(rt, false));
    let panic = catch_unwind(AssertUnwindSafe(check)).unwrap_err();
    let report = panic.downcast_ref::<String>().unwrap();
    assert!(
        report.contains("has not ended, and nothing moves any more"),
        "{report}"
    );
    let after = |mark: &str| {
        let rest = &report[report.find(mark).unwrap() + mark.len()..];
        rest[..rest.find(' ').unwrap()].to_owned()
    };
    let sim = Sim::new(after("GANGER_SIM_SEED=").parse().unwrap()).faults(Faults::some());
    let again = || sim.run(|rt| ask(rt, false));
    assert!(catch_unwind(AssertUnwindSafe(again)).is_err());
    let decisions = after("GANGER_SIM_DECISIONS=");
    let decisions: Vec<u32> = decisions.split(',').map(|it| it.parse().unwrap()).collect();
    let shorter = || sim.replay(&decisions, |rt| ask(rt, false));
    assert!(catch_unwind(AssertUnwindSafe(shorter)).is_err());
    // Without faults no reply is lost.
    Sim::new(0).check_seeds(100, |rt| ask(rt, false));
}

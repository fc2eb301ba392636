use super::*;
use crate::Scheduler;
use crate::still::Still;
use std::process::Command;

// pins: G3, G4
#[test]
fn the_lane_is_passed_over_only_for_something_else() {
    const URGENT: u32 = 3 * URGENT_STREAK;
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let submit = |_| scheduler.submit(Still, "main", ()).unwrap();
    let handles: Vec<_> = (0..=URGENT).map(submit).collect();
    let shared = &scheduler.shared;
    let ordinary = shared.global.pop().unwrap();
    for token in std::iter::from_fn(|| shared.global.pop()) {
        shared.urgent.push(token);
    }
    let deque = shared.take_deques().unwrap().remove(0);
    let queue = LocalQueue::new(Arc::clone(shared), 0, deque);
    let mut worker = Worker::new(&queue);
    let pick = |worker: &mut Worker<'_>| assert!(worker.look().is_some());
    // There is nothing else that it could be passed over for.
    (0..=URGENT_STREAK).for_each(|_| pick(&mut worker));
    let urgent_picks = &worker.counters.urgent_picks;
    assert_eq!(urgent_picks.get(), u64::from(URGENT_STREAK) + 1);
    shared.global.push(ordinary);
    (URGENT_STREAK..URGENT).for_each(|_| pick(&mut worker));
    assert_eq!(urgent_picks.get(), u64::from(URGENT));
    assert!(worker.look().is_none());
    drop(handles);
    // Nobody has their tokens any more: there is nothing that would end them.
    std::mem::forget(scheduler);
}

/// Runs itself again, to see the program end.
#[test]
fn a_search_that_panics_ends_the_program_with_a_message() {
    const CHILD: &str = "GANGER_TEST_PANICS_IN_A_SEARCH";
    if std::env::var_os(CHILD).is_some() {
        let _bomb = AbortOnPanic;
        panic!("no membarrier");
    }
    let name = "worker::tests::a_search_that_panics_ends_the_program_with_a_message";
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{stderr}");
    assert!(stderr.contains("no membarrier") && stderr.contains("aborting"));
}

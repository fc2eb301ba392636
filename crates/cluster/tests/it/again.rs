//! A question asked again after a cut is done once.

use ganger_cluster::NodeId;
use ganger_cluster::conformance::{Harness as _, PATIENCE, Pay, Threads, Twins, account, pay};
use ganger_sched::Address;

// pins: C6, C7
#[test]
fn a_question_is_asked_again_after_a_cut_and_done_once() {
    let twins = Twins::start(Threads);
    let (near, far) = (twins.near(), twins.far());
    let to: Address<Pay> = {
        let pid = twins.far_pid(account(&far));
        near.address(pid).unwrap().typed().unwrap()
    };
    let names = ["near", "far"].map(|name| NodeId::new(name).unwrap());
    let cut = |is_cut: bool| {
        for (one, other) in [(0, 1), (1, 0)] {
            match is_cut {
                true => twins.twin().cut(&names[one], &names[other]),
                false => twins.twin().heal(&names[one], &names[other]),
            }
        }
    };
    let mut numbers = ganger_again::Numbers::new();
    let amounts = [(); 3].map(|()| numbers.once(7));
    for (amount, sum) in amounts[..2].iter().zip([7, 14]) {
        let answer = pay(&near, &to, amount, PATIENCE).wait_timeout(PATIENCE);
        assert_eq!(answer.unwrap(), sum);
    }
    // The account keeps the third reply until the next question.
    let third = pay(&near, &to, &amounts[2], PATIENCE).begin();
    while to.call(Pay::Added).wait_timeout(PATIENCE).unwrap() < 3 {}
    cut(true);
    while !twins.nodes().iter().all(|node| node.nodes().is_empty()) {
        std::thread::yield_now();
    }
    cut(false);
    assert_eq!(third.wait_timeout(PATIENCE).unwrap(), 21);
    for (amount, sum) in amounts.iter().zip([7, 14, 21]) {
        let again = pay(&near, &to, amount, PATIENCE).wait_timeout(PATIENCE);
        assert_eq!(again.unwrap(), sum);
    }
    let added = to.call(Pay::Added).wait_timeout(PATIENCE);
    assert_eq!(added.unwrap(), 3);
}

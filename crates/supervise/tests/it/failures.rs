//! Reports of failures.

use crate::support::*;
use ganger_supervise::{ChildSpec, Supervisor};

// pins: S2
#[test]
fn each_failure_of_a_process_is_told_of_once_before_the_restart() {
    sim(41).check_seeds(40, |rt| {
        let (log, told) = (Log::default(), Log::default());
        let (its, starts) = (told.clone(), log.clone());
        let tree = Supervisor::one_for_one()
            .intensity(9, secs(5))
            .on_failure(move |it| {
                its.note(format!("{}: {it} {:?}", it.name(), starts.take()));
                panic!("a handler that panics");
            })
            .label("top")
            .child("a", log.child("a"))
            .with(ChildSpec::new("b", log.child("b")).in_place())
            .start(rt)
            .unwrap();
        let [a, b] = ["a", "b"].map(|it| tree.child(it).unwrap());
        for (child, what) in [("a", Do::Fail), ("b", Do::Fail), ("b", Do::Panic)] {
            log.take();
            send(rt, &tree, child, what);
            rt.settle();
        }
        // Neither is a failure.
        send(rt, &tree, "a", Do::Finish);
        rt.settle();
        rt.cancel(b, "enough").unwrap();
        rt.settle();
        let failed = "failed: no luck";
        let panicked = "panicked: a panic on purpose";
        assert_eq!(
            told.take(),
            [
                format!("a: a of top, {a}, restarted 0 times, {failed} [\"-a\"]"),
                format!("b: b of top, {b}, restarted 0 times, {failed} []"),
                format!("b: b of top, {b}, restarted 1 times, {panicked} []"),
            ]
        );
        tree.cancel("enough").unwrap();
        end_of(rt, tree);
    });
}

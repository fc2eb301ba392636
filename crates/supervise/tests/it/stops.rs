//! Stops of a scheduler with trees.

use crate::support::*;
use ganger_proc_api::ExitReason;
use ganger_supervise::{ChildSpec, Supervisor, Tree};
use std::time::Duration;

// pins: S11
#[test]
fn a_stop_of_the_scheduler_walks_the_tree() {
    sim(8).check_seeds(60, |rt| {
        let log = Log::default();
        let below = log.clone();
        let _tree = Supervisor::one_for_one()
            .child("a", log.child("a"))
            .child("s", move || {
                Supervisor::one_for_one()
                    .child("x", below.child("x"))
                    .child("y", below.child("y"))
            })
            .child("b", log.child("b"))
            .start(rt)
            .unwrap();
        log.take();
        let report = rt.stop(secs(10));
        assert_eq!(report.forced, 0);
        assert_eq!(log.take(), ["-b", "-y", "-x", "-a"]);
    });
}

/// Fails a child while its supervisor waits for its own stop, behind a slow child.
// pins: S11
#[test]
fn a_child_that_fails_in_a_stop_of_the_scheduler_is_not_restarted() {
    sim(9).check_seeds(60, |rt| {
        let log = Log::default();
        let below = log.clone();
        let tree = Supervisor::one_for_one()
            .child("s", move || {
                Supervisor::one_for_one().child("x", below.child("x"))
            })
            .with(stubborn(&log, "slow", secs(1)))
            .start(rt)
            .unwrap();
        rt.settle();
        log.take();
        tree.address::<Do>("s/x").unwrap().send(Do::Fail).unwrap();
        let report = rt.stop(secs(100));
        assert_eq!(report.forced, 0);
        let noted = log.take();
        assert!(!noted.iter().any(|it| it == "+x"), "{noted:?}");
    });
}

// pins: S11
#[test]
fn a_stop_shares_its_time_and_the_tree_says_which_child_was_slow() {
    let scheduler = start(2);
    let log = Log::default();
    let below = log.clone();
    let tree = Supervisor::one_for_one()
        .child("a", log.child("a"))
        .child("s", move || {
            Supervisor::one_for_one()
                .child("w", below.child("w"))
                .with(stubborn(&below, "x", secs(600)))
        })
        .start(&scheduler)
        .unwrap();
    log.take();
    let report = scheduler.stop(ms(900)).unwrap();
    // Only the slow child was terminated, and each other child has had its turn.
    assert_eq!(report.stuck, []);
    assert_eq!(log.take(), ["-x", "-w", "-a"]);
    assert_eq!(tree.slow(), ["s/x"]);
}

// pins: S10, S11
#[test]
fn orphans_of_a_stop_have_its_time_to_finish() {
    sim(13).check_seeds(60, |rt| {
        let log = Log::default();
        let tree = Supervisor::one_for_one()
            .child("a", log.child("a"))
            .child("b", log.child("b"))
            .start(rt)
            .unwrap();
        let pid = tree.pid();
        rt.begin_stop(secs(10));
        // The supervisor takes no step any more, so no child is asked to finish.
        drop(rt.terminate(pid));
        let report = rt.stop(secs(10));
        assert_eq!((report.forced, report.stuck.len()), (0, 0));
        let mut ends = log.take();
        ends.sort();
        assert_eq!(ends, ["+a", "+b", "-a", "-b"]);
    });
}

// pins: S10, S11
#[test]
fn a_stop_of_the_scheduler_shortens_that_of_orphans() {
    sim(18).check_seeds(40, |rt| {
        let log = Log::default();
        let tree = Supervisor::one_for_one()
            .with(slow(&log, "a", ms(200)))
            .with(stubborn(&log, "x", secs(600)))
            .start(rt)
            .unwrap();
        log.take();
        rt.terminate(tree.pid()).unwrap();
        rt.run_for(ms(10));
        let report = rt.stop(secs(10));
        assert_eq!((report.terminated, report.forced), (1, 0));
        assert_eq!(log.take(), ["-x", "clean a", "-a"]);
    });
}

// pins: S11
#[test]
fn a_stop_says_which_children_were_too_slow() {
    sim(14).check_seeds(40, |rt| {
        let log = Log::default();
        let [below, other] = [(); 2].map(|()| stubborn(&log, "x", secs(1)));
        let below = std::sync::Mutex::new(Some(below));
        let tree = Supervisor::one_for_one()
            .child("s", move || {
                let child = below.lock().unwrap().take().ok_or("once")?;
                Ok::<_, &str>(Supervisor::dynamic().with(child))
            })
            .with(other.temporary())
            .child("b", log.child("b"))
            .start(rt)
            .unwrap();
        if rt.choose(2) == 0 {
            let mut slow = rt.answer(tree.stop_all()).unwrap();
            slow.sort();
            assert_eq!(slow, ["s/x", "x"]);
        } else {
            let report = rt.stop(secs(60));
            assert_eq!((report.terminated, report.forced), (2, 0));
        }
        let tree_now = Tree::clone(&tree);
        let end = end_of(rt, tree);
        assert!(matches!(end, ExitReason::Cancelled(_)), "{end}");
        let mut slow = tree_now.slow();
        slow.sort();
        assert_eq!(slow, ["s/x", "x"]);
        let text = tree_now.to_string();
        assert!(
            text.starts_with("supervisor (one for one), has ended"),
            "{text}"
        );
        assert!(!text.contains("runs"), "{text}");
    });
}

/// Creates a child that needs this time to clean up when the child is asked to stop.
fn slow(log: &Log, name: &'static str, time: Duration) -> ChildSpec {
    let make = log.child(name);
    ChildSpec::new(name, move || Noting {
        stops: Stops::After(time),
        ..make()
    })
}

// pins: S11
#[test]
fn a_child_that_needs_time_gets_it_whatever_the_number_of_its_siblings() {
    sim(15).check_seeds(6, |rt| {
        let log = Log::default();
        let (place, is_below) = (rt.choose(200), rt.choose(2) == 0);
        let mut tree = Supervisor::one_for_one().child("first", log.child("a"));
        for sibling in 0..200 {
            if sibling == place {
                tree = if is_below {
                    let log = log.clone();
                    tree.child("below", move || {
                        let below =
                            (0..20).map(|it| ChildSpec::new(format!("{it}"), log.child("x")));
                        let below = below.fold(Supervisor::one_for_one(), Supervisor::with);
                        below.with(slow(&log, "slow", ms(500)))
                    })
                } else {
                    tree.with(slow(&log, "slow", secs(1)))
                };
            }
            tree = tree.with(ChildSpec::new(format!("sibling {sibling}"), log.child("x")));
        }
        let _tree = tree.start(rt).unwrap();
        log.take();
        let report = rt.stop(secs(2));
        assert_eq!((report.terminated, report.forced), (0, 0));
        let noted = log.take();
        assert!(noted.iter().any(|it| it == "clean slow"), "{noted:?}");
        assert_eq!(noted.last().map(String::as_str), Some("-a"));
    });
}

// pins: S11
#[test]
fn children_that_need_time_one_after_the_other_get_it_while_it_is_enough_for_all() {
    sim(16).check_seeds(20, |rt| {
        let log = Log::default();
        let siblings = (0..20).map(|it| ChildSpec::new(format!("{it}"), log.child("a")));
        let _tree = siblings
            .fold(Supervisor::one_for_one(), Supervisor::with)
            .with(slow(&log, "b", ms(400)))
            .with(slow(&log, "c", ms(400)))
            .with(slow(&log, "d", ms(400)))
            .child("e", log.child("e"))
            .start(rt)
            .unwrap();
        log.take();
        let report = rt.stop(secs(2));
        assert_eq!((report.terminated, report.forced), (0, 0));
        let expected = ["-e", "clean d", "-d", "clean c", "-c", "clean b", "-b"];
        assert_eq!(log.take()[..7], expected);
    });
}

// pins: S11
#[test]
fn a_stop_of_the_scheduler_shortens_one_that_is_under_way() {
    sim(17).check_seeds(40, |rt| {
        let log = Log::default();
        let below = log.clone();
        let stubborn = std::sync::Mutex::new(Some(stubborn(&log, "x", secs(600))));
        let tree = Supervisor::one_for_one()
            .with(slow(&log, "a", ms(200)))
            .child("s", move || {
                let child = stubborn.lock().unwrap().take().ok_or("once")?;
                let below = slow(&below, "w", ms(200));
                Ok::<_, &str>(Supervisor::one_for_one().with(below).with(child))
            })
            .start(rt)
            .unwrap();
        log.take();
        tree.cancel("enough").unwrap();
        rt.run_for(ms(10));
        let report = rt.stop(secs(10));
        assert_eq!((report.terminated, report.forced), (1, 0));
        assert_eq!(log.take(), ["-x", "clean w", "-w", "clean a", "-a"]);
        assert_eq!(tree.slow(), ["s/x"]);
    });
}

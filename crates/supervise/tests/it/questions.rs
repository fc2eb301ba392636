//! Questions to a supervisor: each has one answer, whatever overtakes it.

use crate::support::*;
use ganger_proc_api::{
    Actor, BoxError, CancelReason, Completion, Context, ExitReason, StepOutput, StepResult,
};
use ganger_supervise::{ChildSpec, Supervisor, Tree};
use ganger_task::{Cx, process};
use std::sync::{Arc, Mutex, OnceLock};

/// Takes 100 ms to finish when it is asked to.
struct Slow;

impl Actor for Slow {
    type Message = ();

    fn receive(&mut self, _: &Context, (): (), _: &mut StepOutput) -> StepResult {
        Err("no luck".into())
    }

    fn cancelled(&mut self, _: &Context, _: CancelReason, out: &mut StepOutput) -> StepResult {
        out.defer_cancel();
        out.sleep(ms(100), 1);
        Ok(())
    }

    fn completed(&mut self, _: &Context, _: Completion, out: &mut StepOutput) -> StepResult {
        out.done(());
        Ok(())
    }
}

fn text(answer: Result<impl Sized, impl ToString>) -> String {
    answer.err().expect("an error").to_string()
}

// pins: S6, C1
#[test]
fn a_restart_that_is_overtaken_fails_at_once_and_what_overtakes_it_is_answered() {
    sim(60).check_seeds(60, |rt| {
        for case in 0..5 {
            let tree = Supervisor::one_for_one()
                .with(ChildSpec::new("c", || Slow))
                .start(rt)
                .unwrap();
            let restart = tree.restart_child("c").begin();
            rt.run_for(ms(10));
            assert!(!restart.is_ready());
            let stop = match case {
                0 => tree.stop_child("c"),
                1 => tree.remove_child("c"),
                _ => tree.stop_child("nobody"),
            };
            let stop = stop.begin();
            let all = (case == 2).then(|| tree.stop_all().begin());
            if case == 3 {
                tree.cancel("enough").unwrap();
            }
            if case == 4 {
                rt.terminate(tree.pid()).unwrap();
            }
            rt.run_for(ms(10));
            assert!(restart.is_ready(), "case {case}");
            let why = text(restart.wait());
            match case {
                0 | 1 => assert!(
                    why.contains("a stop of it was requested meanwhile"),
                    "{why}"
                ),
                2 | 3 => assert!(why.contains("is stopping"), "{why}"),
                _ => assert!(why.contains("terminated"), "{why}"),
            }
            rt.run_for(ms(200));
            match case {
                0 | 1 => stop.wait().unwrap(),
                _ => assert!(stop.wait().is_err()),
            }
            if let Some(all) = all {
                assert!(all.wait().unwrap().is_empty());
            }
            if case == 0 {
                assert_eq!(tree.count(), Ok((1, 0)));
                // Neither question keeps the child from being started.
                let again = rt.answer(tree.restart_child("c")).unwrap();
                assert_eq!(tree.child("c"), Some(again));
            }
            if case == 1 {
                assert_eq!(tree.count(), Ok((0, 0)));
            }
            let _ended = tree.cancel("enough");
            end_of(rt, tree);
        }
    });
}

// pins: S6, C1
#[test]
fn restarts_and_stops_of_a_child_that_stops_are_all_answered() {
    sim(61).check_seeds(60, |rt| {
        let tree = Supervisor::one_for_one()
            .with(ChildSpec::new("c", || Slow))
            .start(rt)
            .unwrap();
        let before = tree.child("c").unwrap();
        let stops = [
            tree.stop_child("c").begin(),
            tree.stop_child(before).begin(),
        ];
        rt.run_for(ms(10));
        let restarts = [(); 2].map(|()| tree.restart_child("c").begin());
        rt.run_for(ms(200));
        for stop in stops {
            stop.wait().unwrap();
        }
        let [one, other] = restarts.map(|it| it.wait().unwrap());
        assert_eq!(one, other);
        assert!(one != before && tree.child("c") == Some(one));
        // A child does not come back during its removal.
        let remove = tree.remove_child("c").begin();
        rt.run_for(ms(10));
        let restart = tree.restart_child("c").begin();
        rt.run_for(ms(10));
        assert!(text(restart.wait()).contains("a stop of it was requested meanwhile"));
        rt.run_for(ms(200));
        remove.wait().unwrap();
        assert_eq!(tree.count(), Ok((0, 0)));
        tree.cancel("enough").unwrap();
        end_of(rt, tree);
    });
}

// pins: S6, C1
#[test]
fn a_start_that_waits_is_answered_when_it_is_not_to_be_any_more() {
    sim(62).check_seeds(60, |rt| {
        for case in 0..4 {
            // The group restarts during the restart of a temporary child.
            let most = if case == 1 { 0 } else { 9 };
            let log = Log::default();
            let tree = Supervisor::one_for_all()
                .intensity(most, secs(5))
                .with(ChildSpec::new("c", || Slow).temporary())
                .with(ChildSpec::new("d", log.child("d")))
                .start(rt)
                .unwrap();
            let restart = tree.restart_child("c").begin();
            rt.run_for(ms(10));
            let start = tree
                .start_child(ChildSpec::new("e", log.child("e")))
                .begin();
            rt.run_for(ms(10));
            assert!(!start.is_ready(), "it waits for the end of the others");
            match case {
                0 | 1 => send(rt, &tree, "d", Do::Fail),
                2 => rt.answer(tree.stop_child("e")).unwrap(),
                _ => tree.cancel("enough").unwrap(),
            }
            rt.run_for(ms(10));
            match case {
                0 => assert!(!start.is_ready()),
                1 | 3 => {
                    assert!(text(restart.wait()).contains("is stopping"));
                    assert!(text(start.wait()).contains("is stopping"));
                    end_of(rt, tree);
                    continue;
                }
                _ => assert!(start.is_ready() && !restart.is_ready()),
            }
            rt.run_for(ms(200));
            if case == 0 {
                assert!(text(restart.wait()).contains("a stop of it was requested meanwhile"));
                assert_eq!(start.wait().ok(), tree.child("e"));
            } else {
                assert_eq!(restart.wait().ok(), tree.child("c"));
                assert!(text(start.wait()).contains("a stop of it was requested meanwhile"));
            }
            tree.cancel("enough").unwrap();
            end_of(rt, tree);
        }
    });
}

// pins: S6, C1
#[test]
fn a_task_does_not_wait_for_its_own_end() {
    sim(63).check_seeds(60, |rt| {
        for case in 0..6 {
            let place: Arc<OnceLock<Tree>> = Arc::default();
            let errors: Arc<Mutex<Vec<String>>> = Arc::default();
            let (theirs, noted) = (Arc::clone(&place), Arc::clone(&errors));
            let task = move || {
                let (place, errors) = (Arc::clone(&theirs), Arc::clone(&noted));
                process(async move |cx: Cx<()>| {
                    if cx.recv().await.is_some() {
                        let tree = place.get().ok_or("no tree")?;
                        let below = || tree.subtree("below").map_err(|it| it.to_string());
                        let asked = match case {
                            0 => tree.stop_all().await.map(drop).map_err(BoxError::from),
                            1 => below()?.stop_all().await.map(drop).map_err(Into::into),
                            2 => tree.stop_child("below").await.map_err(Into::into),
                            3 => (below()?.restart_child(cx.pid()).await)
                                .map(drop)
                                .map_err(Into::into),
                            4 => below()?.remove_child("task").await.map_err(Into::into),
                            _ => (cx.ask(tree.restart_child("below")).await)
                                .map(drop)
                                .map_err(Into::into),
                        };
                        errors.lock().unwrap().push(text(asked));
                    }
                    Ok::<(), BoxError>(())
                })
            };
            let below = move || Supervisor::one_for_one().child("task", task.clone());
            let tree = Supervisor::one_for_one()
                .child("below", below)
                .start(rt)
                .unwrap();
            assert!(place.set(Tree::clone(&tree)).is_ok());
            let pid = tree.child("below/task").unwrap();
            tree.address::<()>("below/task").unwrap().send(()).unwrap();
            // Before the time of any child to stop is over.
            rt.run_for(secs(1));
            let errors = errors.lock().unwrap().clone();
            assert_eq!(errors.len(), 1, "case {case}");
            assert!(errors[0].contains("its own end"), "{errors:?}");
            // The tree does the asked act.
            assert!(tree.slow().is_empty());
            match case {
                0 => {}
                3 | 5 => assert!(tree.child("below/task").is_some_and(|it| it != pid)),
                _ => assert_eq!(tree.child("below/task"), None),
            }
            let _ended = tree.cancel("enough");
            assert!(matches!(end_of(rt, tree), ExitReason::Cancelled(_)));
        }
    });
}

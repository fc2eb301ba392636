//! Restarts in place.

use crate::support::*;
use ganger_proc_api::{
    Actor, BoxError, CommandError, Context, ExitCause, ExitReason, Reply, StepOutput, StepResult,
    actor_fn, process_fn,
};
use ganger_supervise::{BackOff, ChildSpec, Poison, Supervisor};
use ganger_sync::failing;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// Receives numbers, and fails with some of them.
#[derive(Clone)]
struct Receiver {
    got: Arc<Mutex<Vec<u32>>>,
    /// How often the number 13 is still too much.
    bad: Arc<AtomicU32>,
    panics: bool,
    /// The number of later starts that fail: the first start never does.
    broken: Arc<AtomicU32>,
}

impl Receiver {
    fn new(bad: u32, panics: bool) -> Self {
        Self {
            got: Arc::default(),
            bad: Arc::new(AtomicU32::new(bad)),
            panics,
            broken: Arc::default(),
        }
    }

    fn got(&self) -> Vec<u32> {
        self.got.lock().unwrap().clone()
    }
}

impl Actor for Receiver {
    type Message = u32;

    fn init(&mut self, ctx: &Context) -> Result<(), BoxError> {
        let is_first = ctx.whereis("receiver-was-here").is_none();
        if is_first {
            ctx.register_name("receiver-was-here")?;
            return Ok(());
        }
        let is_broken = |left: u32| left.checked_sub(1);
        match self
            .broken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_broken)
        {
            Ok(_) => Err("broken".into()),
            Err(_) => Ok(()),
        }
    }

    fn receive(&mut self, _: &Context, number: u32, _: &mut StepOutput) -> StepResult {
        let is_bad = |left: u32| left.checked_sub(1);
        if number == 13
            && (self
                .bad
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_bad))
            .is_ok()
        {
            assert!(!self.panics, "a panic on purpose");
            return Err("13".into());
        }
        self.got.lock().unwrap().push(number);
        Ok(())
    }
}

// pins: S13
#[test]
fn the_next_incarnation_has_the_pid_the_mailbox_in_order_and_the_names() {
    sim(20).check_seeds(60, |rt| {
        for panics in [false, true] {
            let receiver = Receiver::new(1, panics);
            let make = receiver.clone();
            let child = ChildSpec::new("r", move || make.clone())
                .in_place()
                .registered();
            let tree = Supervisor::one_for_one().with(child).start(rt).unwrap();
            let address = tree.address::<u32>("r").unwrap();
            for number in 10..20 {
                address.send(number).unwrap();
            }
            rt.settle();
            assert_eq!(receiver.got(), [10, 11, 12, 14, 15, 16, 17, 18, 19]);
            assert_eq!(
                (tree.child("r"), rt.whereis("r")),
                (Some(address.pid()), Some(address.pid()))
            );
            let info = &tree.children()[0];
            assert_eq!(info.restarts, 1);
            assert!(info.last.as_ref().unwrap().to_string().contains(if panics {
                "purpose"
            } else {
                "13"
            }));
            address.send(20).unwrap();
            rt.settle();
            assert_eq!(receiver.got().last(), Some(&20));
            tree.cancel("enough").unwrap();
            end_of(rt, tree);
        }
    });
}

// pins: S13
#[test]
fn the_message_that_kills_is_tried_again_and_then_is_a_dead_letter() {
    sim(21).check_seeds(40, |rt| {
        for (bad, dead) in [(2, false), (3, true)] {
            let receiver = Receiver::new(bad, false);
            let make = receiver.clone();
            let letters: Arc<Mutex<Vec<(u32, String)>>> = Arc::default();
            let theirs = Arc::clone(&letters);
            let poison = Poison::retry(2).dead_letter(move |it, cause: &str| {
                theirs.lock().unwrap().push((it, cause.into()));
            });
            let tree = Supervisor::one_for_one()
                .with(ChildSpec::poison("r", poison, move || make.clone()))
                .start(rt)
                .unwrap();
            let address = tree.address::<u32>("r").unwrap();
            for number in [12, 13, 14] {
                address.send(number).unwrap();
            }
            rt.settle();
            let (got, letter) = if dead {
                (vec![12, 14], vec![(13, "failed: 13".to_owned())])
            } else {
                (vec![12, 13, 14], vec![])
            };
            assert_eq!((receiver.got(), &*letters.lock().unwrap()), (got, &letter));
            tree.cancel("enough").unwrap();
            end_of(rt, tree);
        }
    });
}

// pins: S13
#[test]
fn restarts_in_place_wait_count_and_end_in_the_supervisor() {
    sim(22).check_seeds(40, |rt| {
        let receiver = Receiver::new(100, false);
        let make = receiver.clone();
        let child = ChildSpec::new("r", move || make.clone())
            .in_place()
            .back_off(BackOff::from(secs(1)).jitter(0.0));
        let tree = Supervisor::one_for_one()
            .intensity(2, secs(60))
            .with(child)
            .start(rt)
            .unwrap();
        let address = tree.address::<u32>("r").unwrap();
        let begin = rt.now();
        for number in [13, 1, 13, 2, 13, 3] {
            address.send(number).unwrap();
        }
        let end = end_of(rt, tree);
        let took = rt.now() - begin;
        assert!(took >= secs(3) && took < ms(3_100), "{took:?}");
        assert!(end.to_string().contains("gave up"), "{end}");
        assert_eq!(receiver.got(), [1, 2]);
    });
}

// pins: S13
#[test]
fn an_incarnation_that_does_not_start_is_tried_again_and_keeps_the_mailbox() {
    sim(23).check_seeds(40, |rt| {
        let receiver = Receiver::new(1, false);
        receiver.broken.store(2, Ordering::Relaxed);
        let make = receiver.clone();
        let child = ChildSpec::new("r", move || make.clone()).in_place();
        let tree = Supervisor::one_for_one().with(child).start(rt).unwrap();
        let address = tree.address::<u32>("r").unwrap();
        for number in [13, 1, 2] {
            address.send(number).unwrap();
        }
        rt.settle();
        assert_eq!(receiver.got(), [1, 2]);
        assert_eq!(tree.child("r"), Some(address.pid()));
        tree.cancel("enough").unwrap();
        end_of(rt, tree);
    });
}

// pins: S13
#[test]
fn one_that_is_asked_to_finish_is_not_restarted_in_place() {
    let scheduler = start(1);
    let child = ChildSpec::new("fails", || {
        process_fn(|_, events, _| {
            if events.any(|it| matches!(it, ganger_proc_api::Event::Cancel(_))) {
                return Err("at the end".into());
            }
            Ok(())
        })
    });
    let tree = Supervisor::one_for_one()
        .with(child.in_place())
        .start(&scheduler)
        .unwrap();
    let seen = ganger_supervise::Tree::clone(&tree);
    assert!(matches!(tree.stop().reason, ExitReason::Cancelled(_)));
    let info = &seen.children()[0];
    assert_eq!(
        (
            info.restarts,
            info.last.as_ref().unwrap().to_string().as_str()
        ),
        (0, "failed: at the end")
    );
}

#[test]
fn a_supervisor_is_not_restarted_in_place() {
    let scheduler = start(1);
    let child = ChildSpec::new("below", Supervisor::one_for_all).in_place();
    let error = Supervisor::one_for_one()
        .with(child)
        .start(&scheduler)
        .unwrap_err();
    assert!(error.to_string().contains("in place"), "{error}");
}

// pins: S13
#[test]
fn a_caller_hears_the_cause_of_a_failure_in_place() {
    sim(26).check_seeds(40, |rt| {
        type Question = (u32, Reply<u32>);
        let letters = Arc::new(Mutex::new(Vec::new()));
        let theirs = Arc::clone(&letters);
        let divide = || {
            let mut kept = Vec::new();
            actor_fn(move |_, (by, reply): Question, _| {
                if by == 1 {
                    kept.push(reply);
                } else {
                    reply.complete(100 / by);
                }
                Ok(())
            })
        };
        let dead_letter = move |by: u32, cause: &str| {
            theirs.lock().unwrap().push((by, cause.to_owned()));
        };
        let child = ChildSpec::dead_letter("d", |it: &Question| it.0, dead_letter, divide);
        let tree = Supervisor::one_for_one().with(child).start(rt).unwrap();
        let address = tree.address::<Question>("d").unwrap();
        // The incarnation keeps the first question in its state, and fails with the second.
        let calls = [1, 0, 4].map(|by| address.call(move |reply| (by, reply)).begin());
        rt.settle();
        let [kept, fails, works] = calls.map(|it| it.wait());
        for error in [kept.unwrap_err(), fails.unwrap_err()] {
            let is_cause = matches!(&error, CommandError::Ended(ExitCause::Panicked(_)));
            assert!(
                is_cause && error.to_string().contains("divide by zero"),
                "{error}"
            );
        }
        assert_eq!(works.unwrap(), 25);
        let letters = letters.lock().unwrap();
        assert!(letters.len() == 1 && letters[0].0 == 0 && letters[0].1.contains("divide"));
        tree.cancel("enough").unwrap();
        end_of(rt, tree);
    });
}

/// Notes at its drop whether its process has failed, as the guards of locks do.
struct Probe(Log);

impl Drop for Probe {
    fn drop(&mut self) {
        self.0.note(failing::is_failing().to_string());
    }
}

// pins: K3, S13
#[test]
fn what_a_failed_incarnation_has_is_known_to_have_failed() {
    sim(27).check_seeds(20, |rt| {
        let log = Log::default();
        let make = log.clone();
        let child = ChildSpec::new("holder", move || {
            let probe = Probe(make.clone());
            actor_fn(move |_, fails: bool, out| {
                let _held = &probe;
                if fails {
                    return Err("on purpose".into());
                }
                out.done(());
                Ok(())
            })
        });
        let child = child.in_place().transient();
        let tree = Supervisor::one_for_one().with(child).start(rt).unwrap();
        let address = tree.address::<bool>("holder").unwrap();
        address.send(true).unwrap();
        rt.settle();
        assert_eq!(log.take(), ["true"]);
        address.send(false).unwrap();
        rt.settle();
        assert_eq!(log.take(), ["false"]);
        drop(tree);
    });
}

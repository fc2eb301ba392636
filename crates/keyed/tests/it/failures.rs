//! Starts that fail.

use crate::support::*;
use ganger_keyed::Kinds;
use ganger_proc_api::Actor;
use ganger_proc_api::{BoxError, CommandError, Context, ExitCause, Reply, StepOutput, StepResult};
use ganger_sync::sync::{Mutex, lock};
use ganger_task::Cx;
use std::sync::Arc;
use std::time::Duration;

/// The moments of the tried starts, and the number of failures to come.
#[derive(Default)]
struct Tries {
    at: Vec<Duration>,
    failures: usize,
    panics: bool,
}

type Shared = Arc<Mutex<Tries>>;

struct Fails(Shared, ganger_sim::SimClock);

impl Actor for Fails {
    type Message = Reply<u64>;

    fn init(&mut self, _: &Context) -> Result<(), BoxError> {
        let mut tries = lock(&self.0);
        tries.at.push(self.1.now());
        let fails = tries.at.len() <= tries.failures;
        let panics = tries.panics;
        drop(tries);
        if fails && panics {
            panic!("no luck");
        }
        if fails { Err("no luck".into()) } else { Ok(()) }
    }

    fn receive(&mut self, _: &Context, reply: Reply<u64>, _: &mut StepOutput) -> StepResult {
        reply.complete(7);
        Ok(())
    }
}

fn ms(time: Duration) -> u128 {
    time.as_millis()
}

// pins: E4
#[test]
fn a_start_that_fails_answers_all_that_wait_and_the_next_ones_wait_longer() {
    for panics in [false, true] {
        steady().check_seeds(20, |rt| {
            let failures = 4;
            let tries = Shared::default();
            *lock(&tries) = Tries {
                at: Vec::new(),
                failures,
                panics,
            };
            let (its, clock) = (Arc::clone(&tries), rt.clock());
            let kind = rt.kind::<Reply<u64>>("fails");
            let kind = kind.start(move |_, _| Fails(Arc::clone(&its), clock.clone()));
            let fails = kind.idle_after(IDLE).build();
            let ann = fails.of("ann");
            for nth in 0..failures {
                let asked = [(); 3].map(|()| ann.call(|it| it).begin());
                for answer in asked {
                    while !answer.is_ready() {
                        assert!(rt.step());
                    }
                    let cause = match answer.wait() {
                        Err(CommandError::Ended(cause)) => cause,
                        other => panic!("{other:?}"),
                    };
                    let is_cause = match &cause {
                        ExitCause::Failed(it) => !panics && &**it == "no luck",
                        ExitCause::Panicked(it) => panics && &**it == "no luck",
                        _ => false,
                    };
                    assert!(is_cause, "{cause}");
                }
                assert_eq!(lock(&tries).at.len(), nth + 1);
            }
            assert_eq!(rt.answer(ann.call(|it| it)).unwrap(), 7);
            let at = lock(&tries).at.clone();
            let waits: Vec<_> = at
                .windows(2)
                .map(|it| ms(it[1] - it[0]) / 10 * 10)
                .collect();
            assert_eq!(waits, [100, 200, 400, 800]);
            rt.settle();
            assert!(fails.is_empty());
        });
    }
}

// pins: E4
#[test]
fn a_failed_start_that_no_message_follows_leaves_nothing() {
    steady().check_seeds(20, |rt| {
        let tries = Shared::default();
        lock(&tries).failures = 1;
        let (its, clock) = (Arc::clone(&tries), rt.clock());
        let kind = rt.kind::<Reply<u64>>("fails");
        let kind = kind.start(move |_, _| Fails(Arc::clone(&its), clock.clone()));
        let fails = kind.build();
        assert!(rt.answer(fails.of("ann").call(|it| it)).is_err());
        // The next process waits, to be started when a message has come.
        rt.run_for(Duration::from_millis(50));
        assert_eq!(fails.len(), 1);
        rt.run_for(Duration::from_millis(100));
        assert!(fails.is_empty());
        assert_eq!((lock(&tries).at.len(), rt.stats().live), (1, 0));
    });
}

/// Checks that the work of a task before its first message is its start.
// pins: E4
#[test]
fn a_task_that_fails_before_its_first_message_has_not_started() {
    steady().check_seeds(20, |rt| {
        let tries = Shared::default();
        lock(&tries).failures = 2;
        let (its, clock) = (Arc::clone(&tries), rt.clock());
        let kind = rt.kind::<Act>("fails").start(move |_, _| {
            let (tries, clock) = (Arc::clone(&its), clock.clone());
            async move |cx: Cx<Act>| {
                cx.sleep(Duration::from_millis(1)).await?;
                let fails = {
                    let mut tries = lock(&tries);
                    tries.at.push(clock.now());
                    tries.at.len() <= tries.failures
                };
                if fails {
                    return Err("no luck".into());
                }
                while let Some(act) = cx.recv().await {
                    match act {
                        Act::Count(reply) => reply.complete(1),
                        Act::Fail => return Err("told to".into()),
                        _ => {}
                    }
                }
                Ok(())
            }
        });
        let fails = kind.idle_after(IDLE).build();
        let ann = fails.of("ann");
        for _ in 0..2 {
            let failed = rt.answer(ann.call(Act::Count));
            assert!(matches!(
                failed,
                Err(CommandError::Ended(ExitCause::Failed(_)))
            ));
        }
        assert_eq!(rt.answer(ann.call(Act::Count)).unwrap(), 1);
        // A failure after the first message is no failure of a start: the next process waits for
        // nothing.
        let before = rt.now();
        ann.send(Act::Fail).unwrap();
        while ann.find().is_some() {
            assert!(rt.step());
        }
        assert_eq!(rt.answer(ann.call(Act::Count)).unwrap(), 1);
        assert!(rt.now() - before < Duration::from_millis(50));
        let at = lock(&tries).at.clone();
        let waits: Vec<_> = at
            .windows(2)
            .map(|it| ms(it[1] - it[0]) / 10 * 10)
            .collect();
        assert_eq!(waits[..2], [100, 200]);
    });
}

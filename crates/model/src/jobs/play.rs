//! Plays the acts of the specification with a pool in a simulation.

use super::spec::{Answer, Counts, Job, PoolAct, PoolPlan, Spec, TIME_TO_LIVE};
use ganger_proc_api::{BoxError, CommandError, ExitReason};
use ganger_sim::{Rt, Sim};
use ganger_supervise::{Pool, PoolError, PoolRemote};
use ganger_sync::sync::{Mutex, lock};
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

/// A job with its number.
type Numbered = (usize, Job);

/// The notes of the workers and the handler.
#[derive(Default)]
struct Notes {
    begun: Vec<usize>,
    handled: Vec<(usize, Answer)>,
}

/// Starts a pool, plays all acts with it, each after the end of the act before, and stops it.
///
/// # Panics
/// When a job is carried out or answered otherwise than the specification says.
pub fn play_pool(seed: u64, plan: &PoolPlan, acts: &[PoolAct]) {
    let sim = Sim::new(seed).workers(2).must_free();
    sim.run(|rt| play(rt, plan, acts));
}

fn work(notes: &Mutex<Notes>, (number, job): Numbered) -> Result<usize, BoxError> {
    let mut notes = lock(notes);
    notes.begun.push(number);
    let tries = notes.begun.iter().filter(|it| **it == number).count();
    drop(notes);
    match job {
        Job::Works => Ok(number),
        Job::Fails => Err("on purpose".into()),
        // Without a report.
        Job::Panics(times) if tries <= times as usize => resume_unwind(Box::new("on purpose")),
        Job::Panics(_) => Ok(number),
    }
}

fn pool(plan: &PoolPlan, notes: &Arc<Mutex<Notes>>) -> Pool<Numbered, usize> {
    let (its, handled) = (Arc::clone(notes), Arc::clone(notes));
    let make = move || {
        let notes = Arc::clone(&its);
        move |job| work(&notes, job)
    };
    let pool = Pool::new(plan.workers, make)
        .routing(plan.routing)
        .queue(plan.most, plan.overload)
        .retries(plan.retries)
        .intensity(1_000, Duration::from_secs(5))
        .on_refused(move |(number, _), error| {
            lock(&handled).handled.push((number, refused(error)));
        });
    match plan.expires {
        true => pool.time_to_live(Duration::from_secs(TIME_TO_LIVE)),
        false => pool,
    }
}

fn refused(error: &PoolError) -> Answer {
    match error {
        PoolError::Full { queued } => Answer::Full(*queued),
        PoolError::Expired => Answer::Expired,
        PoolError::Panicked(_) => Answer::Panicked,
        _ => Answer::Stopping,
    }
}

fn answered(answer: Result<usize, CommandError>) -> Answer {
    match answer {
        Ok(number) => Answer::Done(number),
        Err(CommandError::Failed(error)) => error.downcast_ref().map_or(Answer::Failed, refused),
        Err(error) => panic!("{error}"),
    }
}

fn counts<J: Send + 'static, A: Send + 'static>(pool: &PoolRemote<J, A>) -> Counts {
    let stats = pool.stats();
    Counts {
        queued: stats.queued,
        served: stats.served,
        panicked: stats.panicked,
        retried: stats.retried,
        refused: stats.refused,
        expired: stats.expired,
        left: stats.left,
    }
}

fn play(rt: &Rt<'_>, plan: &PoolPlan, acts: &[PoolAct]) {
    let notes = Arc::default();
    let pool = self::pool(plan, &notes).start(rt).unwrap();
    let remote = pool.remote();
    let mut spec = Spec::new(plan);
    let has_key = |it: &PoolAct| matches!(it, PoolAct::Call(_, Some(_)));
    let is_ordered = plan.workers == 1 && !acts.iter().any(has_key);
    let (mut calls, mut next) = (BTreeMap::new(), 0..);
    for &act in acts.iter().chain([&PoolAct::Stop]) {
        let mut back = None;
        match act {
            PoolAct::Call(job, key) => {
                let job = (next.next().unwrap_or_default(), job);
                let call = match key {
                    Some(key) => remote.call_by(key, job),
                    None => remote.call(job),
                };
                calls.insert(job.0, call.begin());
            }
            PoolAct::Send(job) => {
                let sent = remote.send((next.next().unwrap_or_default(), job));
                back = sent.err().map(|it| refused(&it.error));
            }
            PoolAct::Leave(number) => {
                if calls.get(&number).is_some_and(|it| !it.is_ready()) {
                    calls.remove(&number);
                }
            }
            PoolAct::Wait => rt.run_for(Duration::from_secs(3)),
            PoolAct::Suspend => remote.suspend(),
            PoolAct::Resume => remote.resume(),
            PoolAct::Stop => pool.begin_stop(),
        }
        // Jobs take no time. Waiting jobs have a timer, which needs time to fire.
        rt.run_for(Duration::from_millis(1));
        assert_eq!(back, spec.act(act), "{act:?}");
        assert_eq!(counts(&remote), spec.counts, "{act:?}");
        let mut notes = lock(&notes);
        for both in [&mut notes.handled, &mut spec.handled] {
            both.sort();
        }
        assert_eq!(notes.handled, spec.handled, "{act:?}");
        let (mut begun, mut expected) = (notes.begun.clone(), spec.begun.clone());
        if !is_ordered {
            begun.sort_unstable();
            expected.sort_unstable();
        }
        assert_eq!(begun, expected, "{act:?}");
        drop(notes);
        let ready: Vec<_> = calls.extract_if(.., |_, it| it.is_ready()).collect();
        let ready = ready
            .into_iter()
            .map(|(number, it)| (number, answered(it.wait())));
        assert_eq!(
            ready.collect::<BTreeMap<_, _>>(),
            std::mem::take(&mut spec.answers),
            "{act:?}"
        );
    }
    assert!(calls.is_empty(), "{} calls have no answer", calls.len());
    let end = rt.wait(pool.into_tree().into_handle());
    assert!(matches!(end, ExitReason::Cancelled(_)), "{end}");
}

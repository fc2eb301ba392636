//! Tasks among state machines: late jobs that are tried again, children, cancellations.

use ganger_proc_api::{
    Actor, BoxError, Context, ExitReason, Message, Pid, StepOutput, StepResult, TypedCommand,
};
use ganger_sched::ContextExt;
use ganger_sim::{Faults, Rt, Sim, Strategy};
use ganger_task::{Cx, Either, WaitError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const JOBS: u64 = 12;
const WORKERS: u64 = 3;

/// A number to be squared, and where the square goes.
#[derive(Debug)]
struct Job(u64, Pid);

struct Square(u64);

impl TypedCommand for Square {
    type Answer = u64;
}

fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// Returns the number of seeds, unless the environment sets it.
fn seeds(of: u64) -> u64 {
    let seeds = std::env::var("GANGER_SEEDS").ok();
    seeds.and_then(|it| it.parse().ok()).unwrap_or(of)
}

/// Squares take from 0 to 14 ms.
fn register(rt: &Rt<'_>) {
    let (clock, asked) = (rt.clock(), AtomicU64::new(0));
    rt.register_for(move |Square(number), completer| {
        // Ordering: Relaxed: a simulation has one thread.
        let delay = asked.fetch_add(1, Ordering::Relaxed) * 7 % 15;
        clock.after(ms(delay), move || completer.complete(number * number));
        Ok(())
    })
    .unwrap();
}

/// Squares until it is cancelled. A late or failed command is tried again.
async fn worker(cx: Cx<Job>) -> Result<u64, BoxError> {
    let mut tries = 0_u64;
    while let Some(Job(number, to)) = cx.recv().await {
        let square = loop {
            tries += 1;
            match cx.timeout(ms(10), cx.command(Square(number))).await {
                Ok(Ok(square)) => break square,
                Ok(Err(WaitError::Command(_))) | Err(WaitError::TimedOut) => {}
                Ok(Err(error)) | Err(error) => return Err(error.into()),
            }
        };
        cx.send(to, square)?;
    }
    Ok(tries)
}

/// A state machine that has the jobs done, and ends with the sum.
struct Boss {
    workers: Vec<Pid>,
    left: u64,
    sum: u64,
}

impl Actor for Boss {
    type Message = u64;

    fn init(&mut self, ctx: &Context) -> Result<(), BoxError> {
        for _ in 0..WORKERS {
            self.workers.push(ctx.spawn(worker)?.pid());
        }
        for (number, &worker) in (1..=JOBS).zip(self.workers.iter().cycle()) {
            ctx.send_envelope(Message::of(Job(number, ctx.pid())).to(worker))?;
        }
        Ok(())
    }

    fn receive(&mut self, ctx: &Context, square: u64, out: &mut StepOutput) -> StepResult {
        self.sum += square;
        self.left -= 1;
        if self.left == 0 {
            for &worker in &self.workers {
                ctx.cancel(worker, "no more jobs")?;
            }
            out.done(self.sum);
        }
        Ok(())
    }
}

fn jobs(rt: &Rt<'_>) {
    register(rt);
    let boss = Boss {
        workers: Vec::new(),
        left: JOBS,
        sum: 0,
    };
    let sum = rt.wait(rt.spawn(ganger_proc_api::ActorProcess::new(boss)).unwrap());
    let expected = (1..=JOBS).map(|it| it * it).sum();
    assert!(
        matches!(&sum, ExitReason::Done(it) if it.as_u64() == Some(expected)),
        "{sum:?}"
    );
    rt.settle();
    assert_eq!(rt.stats().live, 0);
}

// pins: A1, A3, A4, A5
#[test]
fn a_queue_of_jobs_with_retries_does_each_job_once() {
    Sim::new(0).must_free().check_seeds(seeds(300), jobs);
    let strategy = Strategy::Priorities {
        changes: 3,
        moves: 200,
    };
    let sim = Sim::new(0).workers(3).strategy(strategy);
    sim.check_seeds(seeds(150), jobs);
}

/// Answers are late, are lost, or are errors.
// pins: A3, A4
#[test]
fn a_queue_of_jobs_does_each_job_once_whatever_goes_wrong_with_its_commands() {
    let faults = Faults {
        handler_drops: 10,
        handler_fails: 10,
        handler_is_late: 30,
        ..Faults::default()
    };
    Sim::new(0).faults(faults).check_seeds(seeds(150), jobs);
}

/// Runs a scope whose children work in turn with the parent, and cancels the parent at any moment.
/// No child is left in any case.
fn family(rt: &Rt<'_>) {
    register(rt);
    let ends = Arc::new(AtomicU64::new(0));
    let its_ends = Arc::clone(&ends);
    let parent = rt.spawn(async move |cx: Cx| {
        let sum = cx.scope(async |scope| {
            let group = scope.group();
            for number in 1..=4_u64 {
                let ends = Arc::clone(&its_ends);
                group.spawn(async move |cx| {
                    let _counts = Counts(ends);
                    match cx
                        .select((cx.command(Square(number)), cx.sleep(ms(9))))
                        .await
                    {
                        Either::A(square) => Ok(square?),
                        Either::B(slept) => Err(slept.err().map_or("late".into(), Into::into)),
                    }
                })?;
            }
            let mut sum = 0;
            while let Some(square) = group.next().await {
                sum += square?;
            }
            Ok(sum)
        });
        let sum = sum.await;
        // Ordering: Relaxed: a simulation has one thread.
        assert_eq!(
            its_ends.load(Ordering::Relaxed),
            4,
            "a child has outlived its scope"
        );
        sum
    });
    let parent = parent.unwrap();
    let is_cancelled = rt.choose(2) == 1;
    if is_cancelled {
        for _ in 0..rt.choose(60) {
            rt.step();
        }
        let _ended = rt.cancel(parent.pid(), "enough");
    }
    match rt.wait(parent) {
        ExitReason::Done(sum) => assert_eq!(sum.as_u64(), Some(30)),
        ExitReason::Failed(error) => assert!(error.to_string().contains("late"), "{error}"),
        ExitReason::Cancelled(reason) => assert!(is_cancelled, "{reason}"),
        other => panic!("{other:?}"),
    }
    rt.settle();
    assert_eq!(rt.stats().live, 0);
}

/// Counts when it is dropped.
struct Counts(Arc<AtomicU64>);

impl Drop for Counts {
    fn drop(&mut self) {
        // Ordering: Relaxed: a simulation has one thread.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

// pins: A5, A7
#[test]
fn no_child_outlives_its_scope_whenever_the_parent_is_cancelled() {
    Sim::new(0).must_free().check_seeds(seeds(400), family);
    Sim::new(0).workers(3).check_seeds(seeds(200), family);
}

/// Runs a set of children with failures and cancellations, under a limit; the parent may be
/// cancelled at any moment. Each child has a single end, and none is left.
fn tolerant(rt: &Rt<'_>) {
    register(rt);
    let now = Arc::new(AtomicU64::new(0));
    let its_now = Arc::clone(&now);
    let which = rt.choose(12);
    let parent = rt.spawn(async move |cx: Cx| {
        cx.scope(async |scope| {
            let set = scope.task_set().limit(3);
            let mut ids = Vec::new();
            for number in 0..12_u64 {
                let now = Arc::clone(&its_now);
                ids.push(set.spawn(async move |cx| {
                    // Ordering: Relaxed: a simulation has one thread.
                    assert!(
                        now.fetch_add(1, Ordering::Relaxed) < 3,
                        "too many run at once"
                    );
                    let _counts = Leaves(now);
                    let square = cx.command(Square(number)).await?;
                    if number % 4 == 3 {
                        return Err("no luck".into());
                    }
                    Ok(square)
                })?);
            }
            let mut ended = Vec::new();
            while let Some((id, _)) = set.next_with_id().await {
                ended.push(id);
                if ended.len() == 4 {
                    set.cancel(ids[which]);
                }
            }
            ended.sort();
            assert_eq!(ended, ids, "each child has one end");
            Ok(ended.len())
        })
        .await
    });
    let parent = parent.unwrap();
    if rt.choose(2) == 1 {
        for _ in 0..rt.choose(80) {
            rt.step();
        }
        let _ended = rt.cancel(parent.pid(), "enough");
    }
    match rt.wait(parent) {
        ExitReason::Done(ended) => assert_eq!(ended.as_u64(), Some(12)),
        ExitReason::Cancelled(_) => {}
        other => panic!("{other:?}"),
    }
    // No child outlives the scope. Ordering: Relaxed: a simulation has one thread.
    assert_eq!(now.load(Ordering::Relaxed), 0);
    rt.settle();
    assert_eq!(rt.stats().live, 0);
}

struct Leaves(Arc<AtomicU64>);

impl Drop for Leaves {
    fn drop(&mut self) {
        // Ordering: Relaxed: a simulation has one thread.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

// pins: A11
#[test]
fn each_child_of_a_set_has_one_end_whatever_fails_or_is_cancelled() {
    Sim::new(0).must_free().check_seeds(seeds(200), tolerant);
    Sim::new(0).workers(3).check_seeds(seeds(100), tolerant);
}

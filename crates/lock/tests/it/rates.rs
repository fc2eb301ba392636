//! Rate limiters, in simulations and on threads.

use ganger_lock::{RateLimitError, RateLimiter};
use ganger_proc_api::{Actor, CommandError, Completion, Context, StepOutput, StepResult, actor_fn};
use ganger_sched::{Answer, ContextExt, Scheduler, Timers};
use ganger_sim::Sim;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The time after which a wait of a test fails.
const PATIENCE: Duration = Duration::from_secs(60);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn start(workers: usize) -> (Scheduler, Timers) {
    let scheduler = Scheduler::builder().workers(workers).start().unwrap();
    let timers = scheduler.timers().clone();
    (scheduler, timers)
}

fn sim(seed: u64) -> Sim {
    Sim::new(seed).workers(3).must_free()
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not in time");
        thread::yield_now();
    }
}

fn ready<const N: usize>(answers: [&Answer<()>; N]) -> [bool; N] {
    answers.map(Answer::is_ready)
}

fn wait_of(result: Result<(), RateLimitError>) -> Duration {
    match result.unwrap_err() {
        RateLimitError::Exceeded { wait } => wait,
        other => panic!("{other}"),
    }
}

// pins: T9
#[test]
fn requests_are_served_in_their_order_and_none_overtakes_them() {
    sim(1).check_seeds(20, |rt| {
        let limiter = RateLimiter::new(rt, 100, 3);
        assert_eq!(limiter.available(), 3);
        limiter.try_acquire(3).unwrap();
        assert_eq!(wait_of(limiter.try_acquire(1)), ms(10));
        // Due after 10, 40, 50 and 60 ms.
        let [a, b, c, d] = [1, 3, 1, 1].map(|tokens| limiter.acquire(tokens).begin());
        assert_eq!(wait_of(limiter.try_acquire(1)), ms(70));
        rt.run_for(ms(9));
        assert_eq!(ready([&a, &b, &c, &d]), [false; 4]);
        rt.run_for(ms(2));
        assert_eq!(ready([&a, &b, &c, &d]), [true, false, false, false]);
        // The limiter has two tokens, for the request of three.
        rt.run_for(ms(25));
        assert_eq!(limiter.available(), 2);
        assert!(limiter.try_acquire(1).is_err());
        assert_eq!(ready([&b, &c, &d]), [false; 3]);
        rt.run_for(ms(6));
        assert_eq!(ready([&b, &c, &d]), [true, false, false]);
        rt.run_for(ms(9));
        assert_eq!(ready([&c, &d]), [true, false]);
        rt.run_for(ms(10));
        assert_eq!(ready([&d]), [true]);
        for answer in [a, b, c, d] {
            answer.wait().unwrap();
        }
        rt.run_for(ms(100));
        assert_eq!(limiter.available(), 3);
    });
}

// pins: T9
#[test]
fn a_wait_that_is_dropped_gives_its_place_back() {
    sim(2).check_seeds(20, |rt| {
        let limiter = RateLimiter::new(rt, 100, 3);
        limiter.try_acquire(3).unwrap();
        let [a, b, c, d] = [3, 3, 1, 2].map(|tokens| limiter.acquire(tokens).begin());
        rt.run_for(ms(15));
        drop(b);
        assert_eq!(wait_of(limiter.try_acquire(1)), ms(70 - 15));
        // The next request gets a token, although it was not the first.
        drop(a);
        assert_eq!(ready([&c, &d]), [true, false]);
        rt.run_for(ms(10));
        assert_eq!(ready([&d]), [false]);
        rt.run_for(ms(6));
        assert_eq!(ready([&d]), [true]);
        // The last is gone, too.
        let e = limiter.acquire(3).begin();
        drop(e);
        rt.run_for(ms(100));
        limiter.try_acquire(3).unwrap();
    });
}

/// The times of served requests, and their tokens.
type Given = Arc<Mutex<Vec<(Duration, u32)>>>;

/// Asks for tokens, `left` times in turn.
struct Asks {
    limiter: RateLimiter,
    tokens: u32,
    left: u32,
    given: Given,
}

impl Actor for Asks {
    /// Has the process take its question back, and ask again.
    type Message = ();

    fn started(&mut self, _: &Context, out: &mut StepOutput) -> StepResult {
        out.ask(self.limiter.acquire(self.tokens), 7);
        Ok(())
    }

    fn receive(&mut self, ctx: &Context, (): (), out: &mut StepOutput) -> StepResult {
        out.cancel(7);
        self.started(ctx, out)
    }

    fn completed(&mut self, ctx: &Context, it: Completion, out: &mut StepOutput) -> StepResult {
        it.result?;
        let now = Duration::from_nanos(ctx.now().as_nanos());
        self.given.lock().unwrap().push((now, self.tokens));
        self.left -= 1;
        match self.left {
            0 => out.done(()),
            _ => drop(out.ask(self.limiter.acquire(self.tokens), 7)),
        }
        Ok(())
    }
}

// pins: T9
#[test]
fn processes_share_the_rate_whatever_others_of_them_do() {
    sim(3).check_seeds(60, |rt| {
        let limiter = RateLimiter::new(rt, 1_000, 4);
        let given = Given::default();
        let process = |tokens| {
            let (limiter, given) = (limiter.clone(), Arc::clone(&given));
            let left = 5;
            rt.spawn(Asks {
                limiter,
                tokens,
                left,
                given,
            })
            .unwrap()
        };
        let processes: Vec<_> = [1, 2, 4, 1, 3].map(process).into();
        let ends: Vec<_> = [2, 4].map(process).into();
        for process in &ends {
            rt.run_for(ms(rt.choose(5) as u64));
            rt.terminate(process.pid()).unwrap();
        }
        processes[rt.choose(5)].send(()).unwrap();
        let start = given.lock().unwrap().len();
        // Some 55 tokens, and the tokens of two ended processes.
        rt.run_for(ms(150));
        for process in processes {
            assert!(rt.wait(process).is_done());
        }
        let given = given.lock().unwrap();
        assert!(start < given.len());
        let mut sum = 0;
        for (now, tokens) in given.iter() {
            sum += tokens;
            assert!(
                f64::from(sum) <= 4.0 + now.as_secs_f64() * 1_000.0,
                "{given:?}"
            );
        }
    });
}

// pins: T9, T6
#[test]
fn what_waits_when_the_scheduler_stops_is_told() {
    let (scheduler, _) = start(1);
    let limiter = RateLimiter::new(&scheduler, 0.001, 1);
    limiter.acquire(1).wait().unwrap();
    let waits = limiter.acquire(1).begin();
    let waiter = thread::spawn(move || waits.wait_timeout(PATIENCE));
    scheduler.stop(Duration::ZERO).unwrap();
    until("the waiter is told", || waiter.is_finished());
    let error = waiter.join().unwrap().unwrap_err().to_string();
    assert!(error.contains("has stopped"), "{error}");
    let late = limiter.acquire(1).begin();
    assert!(late.is_ready());
    let late = late.wait().unwrap_err().to_string();
    assert!(late.contains("has stopped"), "{late}");
}

// pins: T9
#[test]
fn what_can_never_be_is_an_error_at_once() {
    let (scheduler, _) = start(1);
    let limiter = RateLimiter::new(&scheduler, 5, 2);
    let burst = 2;
    let error = limiter.try_acquire(3).unwrap_err();
    assert_eq!(error, RateLimitError::AboveBurst { burst });
    let Err(CommandError::Failed(failed)) = limiter.acquire(3).wait() else {
        panic!("there are never three at once");
    };
    assert_eq!(failed.downcast_ref(), Some(&error));
    limiter.acquire(2).wait().unwrap();
    assert_eq!(RateLimiter::new(&scheduler, 5, 0).available(), 1);
}

// pins: T9
#[test]
fn a_wait_where_nothing_runs_is_an_error() {
    let scheduler = Scheduler::builder().workers(1);
    let scheduler = scheduler.build().unwrap();
    let limiter = RateLimiter::new(&scheduler, 5, 1);
    limiter.acquire(1).wait().unwrap();
    let error = limiter.acquire(1).wait().unwrap_err().to_string();
    assert!(error.contains("start"), "{error}");
}

// pins: T9
#[test]
fn many_threads_have_the_rate_and_no_more() {
    let (scheduler, timers) = start(2);
    let limiter = RateLimiter::new(&scheduler, 2_000, 5);
    let begin = timers.now();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    limiter.acquire(1).wait_timeout(PATIENCE).unwrap();
                }
            });
        }
    });
    // A hundred tokens, five of them from the start.
    assert!(timers.now().since(begin) >= Duration::from_micros(47_500));
    let counts = actor_fn(|_, (): (), _: &mut StepOutput| Ok(()));
    drop(scheduler.spawn(counts).unwrap());
}

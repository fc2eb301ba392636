//! Circuit breakers.

use crate::support::*;
use ganger_proc_api::{
    Actor, BoxError, CommandError, Completion, Context, Reply, StepOutput, StepResult, actor_fn,
};
use ganger_sched::{Address, ContextExt, Instant};
use ganger_supervise::{BackOff, Breaker};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn breaker(failures: u32) -> Breaker {
    Breaker::new(failures, BackOff::from(secs(1)).jitter(0.0))
}

// pins: W12
#[test]
fn a_breaker_opens_after_failures_in_a_row_and_lets_one_probe_after_each_wait() {
    let breaker = breaker(3);
    let mut now = Instant::from_nanos(5);
    let fail = |now| breaker.admit(now).unwrap().failed(now);
    fail(now);
    fail(now);
    breaker.admit(now).unwrap().succeeded();
    fail(now);
    fail(now);
    assert!(!breaker.is_open(), "they were not three in a row");
    fail(now);
    for wait in [1, 2, 4, 8] {
        let until = now.after(secs(wait));
        assert!(breaker.is_open());
        assert_eq!(breaker.admit(now).unwrap_err().until, until);
        assert!(breaker.admit(now.after(secs(wait) - ms(1))).is_err());
        now = until;
        let probe = breaker.admit(now).unwrap();
        assert!(breaker.admit(now).is_err(), "one probe at a time");
        probe.failed(now);
    }
    now = now.after(secs(16));
    breaker.admit(now).unwrap().succeeded();
    assert!(!breaker.is_open());
    // All waits begin anew.
    (0..3).for_each(|_| fail(now));
    assert_eq!(breaker.admit(now).unwrap_err().until, now.after(secs(1)));
}

// pins: W12
#[test]
fn what_was_tried_before_says_nothing_and_a_probe_without_a_result_is_followed_by_another() {
    let breaker = breaker(1);
    let now = Instant::from_nanos(5);
    let [early, late] = [(); 2].map(|()| breaker.admit(now).unwrap());
    breaker.admit(now).unwrap().failed(now);
    early.succeeded();
    assert!(breaker.is_open());
    late.failed(now.after(secs(9)));
    let later = now.after(secs(1));
    drop(breaker.admit(later).unwrap());
    let probe = breaker.admit(later).unwrap();
    assert!(breaker.clone().admit(later).is_err());
    probe.succeeded();
    assert!(!breaker.is_open());
}

/// Asks a service every 100 ms, through a breaker.
struct Client {
    service: Address<Reply<()>>,
    breaker: Breaker,
    attempt: Option<ganger_supervise::Attempt>,
    asked: Arc<AtomicU64>,
}

/// The tag of the timer; 2 is the question's.
const TICK: u64 = 1;

impl Actor for Client {
    type Message = ();

    fn receive(&mut self, ctx: &Context, (): (), out: &mut StepOutput) -> StepResult {
        if let Ok(attempt) = self.breaker.admit(ctx.now()) {
            self.attempt = Some(attempt);
            self.asked.fetch_add(1, Ordering::Relaxed);
            out.ask(self.service.call(|reply| reply), 2);
        }
        out.sleep(ms(100), TICK);
        Ok(())
    }

    fn completed(&mut self, ctx: &Context, it: Completion, out: &mut StepOutput) -> StepResult {
        if it.tag == TICK {
            return self.receive(ctx, (), out);
        }
        let attempt = self.attempt.take().ok_or("nothing was tried")?;
        match it.take::<()>() {
            Ok(()) => attempt.succeeded(),
            Err(CommandError::Failed(_)) => attempt.failed(ctx.now()),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// Checks that a process sleeps until the given time without waking in vain.
// pins: W12
#[test]
fn what_is_refused_during_a_probe_is_told_of_a_moment_to_come() {
    for wait in [ms(0), secs(1)] {
        let breaker = Breaker::new(1, BackOff::from(wait).jitter(0.0));
        let now = Instant::from_nanos(5);
        breaker.admit(now).unwrap().failed(now);
        let now = now.after(secs(5));
        let probe = breaker.admit(now).unwrap();
        for later in [ms(0), secs(1), secs(60)].map(|it| now.after(it)) {
            let until = breaker.admit(later).unwrap_err().until;
            assert_eq!(until, later.after(wait.max(ms(1))));
        }
        // Its end without a result, and its failure, count from where they did.
        drop(probe);
        breaker.admit(now).unwrap().failed(now);
        assert_eq!(breaker.admit(now).is_err(), wait > ms(0));
    }
}

// pins: W12
#[test]
fn a_process_leaves_a_service_alone_that_fails() {
    sim(40).check_seeds(10, |rt| {
        let works = Arc::new(AtomicBool::new(false));
        let its = Arc::clone(&works);
        let service = actor_fn(move |_, reply: Reply<()>, _| -> StepResult {
            match its.load(Ordering::Relaxed) {
                true => reply.complete(()),
                false => reply.fail(BoxError::from("overloaded")),
            }
            Ok(())
        });
        let service = rt.spawn(service).unwrap();
        let asked = Arc::new(AtomicU64::new(0));
        let client = Client {
            service: service.address().clone(),
            breaker: breaker(2),
            attempt: None,
            asked: Arc::clone(&asked),
        };
        let client = rt.spawn(client).unwrap();
        client.send(()).unwrap();
        rt.run_for(secs(10));
        // Twice, and then after waits of 1, 2, and 4 seconds.
        assert_eq!(asked.load(Ordering::Relaxed), 5);
        works.store(true, Ordering::Relaxed);
        rt.run_for(secs(10));
        assert!(asked.load(Ordering::Relaxed) > 30);
        rt.terminate(client.pid()).unwrap();
        rt.terminate(service.pid()).unwrap();
        rt.settle();
    });
}

//! Batches of values, in virtual time.

use crate::support::*;
use ganger_proc_api::{Actor, Completion, Context, StepOutput, StepResult};
use ganger_sched::internal::HandleInternals as _;
use ganger_sim::SimClock;
use ganger_supervise::Batch;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const TAG: u64 = 9;
const MOST: usize = 4;
const WAIT: Duration = ms(10);

/// The batches, with their ages: how long the first value of each has waited.
type Done = Arc<Mutex<Vec<(Vec<u32>, Duration)>>>;

struct Collector {
    batch: Batch<u32>,
    /// When the first value of the batch came.
    since: Duration,
    clock: SimClock,
    done: Done,
}

impl Collector {
    fn note(&self, values: Vec<u32>) {
        let age = self.clock.now() - self.since;
        self.done.lock().unwrap().push((values, age));
    }
}

impl Actor for Collector {
    type Message = Option<u32>;

    fn receive(&mut self, _: &Context, value: Option<u32>, out: &mut StepOutput) -> StepResult {
        let Some(value) = value else {
            let rest = self.batch.take(out);
            self.note(rest);
            return Ok(());
        };
        if self.batch.is_empty() {
            self.since = self.clock.now();
        }
        if let Some(values) = self.batch.push(value, out) {
            assert!(self.batch.is_empty());
            self.note(values);
        }
        Ok(())
    }

    fn completed(&mut self, _: &Context, it: Completion, _: &mut StepOutput) -> StepResult {
        let before = self.batch.len();
        if let Some(values) = self.batch.completed(&it) {
            assert_eq!(values.len(), before);
            self.note(values);
        }
        Ok(())
    }
}

// pins: W11
#[test]
fn a_batch_is_full_or_its_first_value_has_waited_and_no_value_is_lost() {
    for seed in 0..50 {
        sim(seed).run(|rt| {
            let done = Done::default();
            let collector = Collector {
                batch: Batch::new(MOST, WAIT, TAG),
                since: Duration::ZERO,
                clock: rt.clock(),
                done: Arc::clone(&done),
            };
            let collector = rt.spawn(collector).unwrap();
            let mut random = fastrand::Rng::with_seed(seed);
            for value in 0..40 {
                collector.send(Some(value)).unwrap();
                if random.u8(..3) == 0 {
                    rt.run_for(ms(random.u64(1..15)));
                }
            }
            // All timers fire.
            rt.settle();
            collector.send(None).unwrap();
            rt.settle();
            let mut done = done.lock().unwrap().clone();
            let (rest, _) = done.pop().unwrap();
            assert!(rest.is_empty(), "all have been due");
            for (values, age) in &done {
                assert!((1..=MOST).contains(&values.len()), "{values:?}");
                assert!(
                    values.len() == MOST || *age >= WAIT,
                    "{values:?} after {age:?}"
                );
                // From the first value on, however many come after it.
                assert!(*age < WAIT + ms(1), "{values:?} after {age:?}");
            }
            let values = done.into_iter().flat_map(|(values, _)| values);
            assert!(values.eq(0..40));
            rt.terminate(collector.pid()).unwrap();
        });
    }
}

// pins: W11
#[test]
fn a_batch_that_was_taken_has_no_timer_and_the_next_one_has_its_own() {
    sim(1).run(|rt| {
        let done = Done::default();
        let collector = Collector {
            batch: Batch::new(MOST, WAIT, TAG),
            since: Duration::ZERO,
            clock: rt.clock(),
            done: Arc::clone(&done),
        };
        let collector = rt.spawn(collector).unwrap();
        let all = |values: &[u32]| {
            for value in values {
                collector.send(Some(*value)).unwrap();
            }
            rt.run_for(ms(1));
        };
        all(&[1]);
        collector.send(None).unwrap();
        all(&[]);
        assert!(!rt.waits_for_time());
        rt.run_for(ms(9));
        all(&[2, 3]);
        rt.run_for(ms(8));
        assert_eq!(done.lock().unwrap().len(), 1);
        rt.run_for(ms(2));
        let last = done.lock().unwrap().last().unwrap().0.clone();
        assert_eq!(last, [2, 3]);
        all(&[4, 5, 6, 7, 8]);
        let last = done.lock().unwrap().last().unwrap().0.clone();
        assert_eq!(last, [4, 5, 6, 7]);
        rt.terminate(collector.pid()).unwrap();
    });
}

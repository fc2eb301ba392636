//! Trees under faults of the simulation: no process is left behind.

use crate::support::*;
use ganger_proc_api::{Actor, BoxError, CancelReason, Context, StepOutput, StepResult};
use ganger_sim::Faults;
use ganger_supervise::{ChildSpec, Supervisor};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// A child that fails at its start, at a message, or at its end, by turns.
struct Wild {
    turn: u64,
    name: usize,
    alive: Arc<[AtomicI64]>,
}

impl Actor for Wild {
    type Message = u64;

    fn init(&mut self, _: &Context) -> Result<(), BoxError> {
        if self.turn % 5 == 4 {
            return Err("it does not start".into());
        }
        let before = self.alive[self.name].fetch_add(1, Ordering::SeqCst);
        assert_eq!(before, 0, "two incarnations of {} run", self.name);
        Ok(())
    }

    fn receive(&mut self, _: &Context, what: u64, out: &mut StepOutput) -> StepResult {
        match what % 4 {
            0 => return Err("a failure".into()),
            1 => panic!("a panic"),
            2 => out.done(()),
            _ => {}
        }
        Ok(())
    }

    fn cancelled(&mut self, _: &Context, _: CancelReason, out: &mut StepOutput) -> StepResult {
        match self.turn % 3 {
            0 => out.defer_cancel(),
            1 => return Err("a failure at the end".into()),
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self) {
        self.alive[self.name].fetch_sub(1, Ordering::SeqCst);
    }
}

fn seeds() -> u64 {
    let number = |name| Some(std::env::var(name).ok()?.parse::<u64>().unwrap());
    number("GANGER_SEEDS").unwrap_or_else(|| 300 * number("GANGER_STRESS").unwrap_or(1))
}

// pins: S1, S3, S5, S10, S11
#[test]
fn whatever_fails_no_child_runs_twice_and_none_is_left() {
    chaos(seeds(), 5);
}

/// Fails a supervisor together with the helper process for its orphans.
// pins: S1, S10
#[test]
fn where_most_fails_no_child_runs_twice_either() {
    chaos(seeds(), 60);
}

/// Runs trees whose steps panic `step_panics` times out of a thousand.
fn chaos(seeds: u64, step_panics: u32) {
    let faults = Faults {
        step_panics,
        clock_jumps: 0,
        ..Faults::some()
    };
    sim(50).faults(faults).check_seeds(seeds, |rt| {
        let alive: Arc<[AtomicI64]> = (0..4).map(|_| AtomicI64::new(0)).collect();
        let turns = Arc::new(AtomicU64::new(0));
        let offset = rt.choose(5) as u64;
        let child = |name: usize| {
            let (alive, turns) = (Arc::clone(&alive), Arc::clone(&turns));
            move || Wild {
                turn: offset + turns.fetch_add(1, Ordering::SeqCst),
                name,
                alive: Arc::clone(&alive),
            }
        };
        let supervisor = match rt.choose(3) {
            0 => Supervisor::one_for_one(),
            1 => Supervisor::one_for_all(),
            _ => Supervisor::rest_for_one(),
        };
        let (one, two) = (child(2), child(3));
        let below = move || {
            let (one, two) = (one.clone(), two.clone());
            Supervisor::one_for_all()
                .intensity(1, secs(5))
                .with(ChildSpec::new("c", one).stop_within(ms(10)))
                .with(ChildSpec::new("d", two).stop_within(ms(10)).in_place())
        };
        let started = supervisor
            .intensity(6, secs(5))
            .with(
                ChildSpec::new("a", child(0))
                    .stop_within(ms(10))
                    .back_off(ms(1)),
            )
            .with(
                ChildSpec::new("b", child(1))
                    .stop_within(ms(10))
                    .transient()
                    .in_place(),
            )
            .child("below", below)
            .start(rt);
        if let Ok(tree) = &started {
            for _ in 0..rt.choose(12) {
                let path = ["a", "b", "below/c", "below/d"][rt.choose(4)];
                if let Ok(address) = tree.address::<u64>(path) {
                    // A child refuses if it has just ended.
                    let _ = address.send(rt.choose(4) as u64);
                }
                for _ in 0..rt.choose(40) {
                    rt.step();
                }
            }
            match rt.choose(4) {
                0 => drop(rt.terminate(tree.pid())),
                1 => drop(tree.cancel("enough")),
                _ => {}
            }
        }
        if rt.choose(2) == 0 {
            rt.settle();
        }
        let report = rt.stop(secs(10));
        // An orphan may not finish on request: then the stop of the scheduler ends it.
        assert_eq!(report.stuck.len(), 0);
        for (name, alive) in alive.iter().enumerate() {
            assert_eq!(
                alive.load(Ordering::SeqCst),
                0,
                "{name} is not closed once a start"
            );
        }
    });
}

//! Many processes, which wake one another: hard cases for the promises checked after every move.

use ganger_proc_api::{Context, Event, Events, Message, Pid, Process, StepOutput, StepResult};
use ganger_sched::{Handle, ProcessHandle};
use ganger_sim::{Faults, Sim, Strategy};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Answers each message with two messages of half its number, to other members.
struct Member {
    place: usize,
    crowd: Arc<Crowd>,
}

#[derive(Default)]
struct Crowd {
    pids: OnceLock<Vec<Pid>>,
    handled: AtomicU64,
}

impl Process for Member {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        let pids = self.crowd.pids.get().ok_or("alone")?;
        for event in events {
            let Event::Message(message) = event else {
                if matches!(event, Event::Cancel(_)) {
                    out.done(());
                }
                continue;
            };
            self.crowd.handled.fetch_add(1, Ordering::SeqCst);
            let number = message.payloads.first().and_then(|it| it.as_u64());
            let half = number.ok_or("no number")? / 2;
            for step in [1, 3].into_iter().filter(|_| half > 0) {
                ctx.send(pids[(self.place + step) % pids.len()], "half", half)?;
            }
        }
        Ok(())
    }
}

fn crowd(handle: &Handle, members: usize) -> (Arc<Crowd>, Vec<ProcessHandle>) {
    let crowd = Arc::new(Crowd::default());
    let start = |place| {
        let crowd = Arc::clone(&crowd);
        handle.submit(Member { place, crowd }, "main", ()).unwrap()
    };
    let all: Vec<_> = (0..members).map(start).collect();
    crowd
        .pids
        .set(all.iter().map(|it| it.pid()).collect())
        .unwrap();
    (crowd, all)
}

// pins: G1, G2
#[test]
fn messages_from_outside_at_any_moment_leave_nobody_beside_a_sleeper() {
    for workers in 1..=4 {
        let strategies = [
            Strategy::Random,
            Strategy::Priorities {
                changes: 4,
                moves: 400,
            },
        ];
        for strategy in strategies {
            let sim = Sim::new(0).workers(workers).strategy(strategy);
            let sim = sim.faults(Faults::some());
            sim.check_seeds(100, |rt| {
                let (crowd, members) = crowd(rt, 6);
                let mut expected = 0;
                for _ in 0..12 {
                    // Often enough for a sleep of all workers at times.
                    (0..rt.choose(60)).for_each(|_| _ = rt.step());
                    members[rt.choose(6)]
                        .send(Message::new("go", 4_u64))
                        .unwrap();
                    expected += 7;
                }
                rt.settle();
                assert_eq!(crowd.handled.load(Ordering::SeqCst), expected);
            });
        }
    }
}

// pins: G2
#[test]
fn who_does_not_sleep_after_all_wakes_somebody_for_what_it_does_not_take() {
    for workers in 2..=3 {
        let sim = Sim::new(0).workers(workers).faults(Faults::some());
        sim.check_seeds(200, |rt| {
            let (_, members) = crowd(rt, 3);
            for nth in 0..30 {
                (0..rt.choose(30)).for_each(|_| _ = rt.step());
                // The two processes wait in different queues.
                let message = || Message::new("go", 1_u64);
                members[nth % 3].send(message()).unwrap();
                _ = members[(nth + 1) % 3].send_control(message());
            }
            rt.settle();
        });
    }
}

/// Goes on for ever, or until it is cancelled, and counts its steps.
#[derive(Default)]
struct Hog(Arc<AtomicU64>);

impl Process for Hog {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        self.0.fetch_add(1, Ordering::SeqCst);
        if events.any(|event| matches!(event, Event::Cancel(_))) {
            out.done(());
        } else {
            out.step_again();
        }
        Ok(())
    }
}

// pins: G4
#[test]
fn whoever_waits_beside_hogs_has_its_turn_within_the_bound() {
    for workers in 1..=3 {
        Sim::new(0).workers(workers).check_seeds(4, |rt| {
            let hogs: Vec<_> = (0..3)
                .map(|_| rt.submit(Hog::default(), "main", ()).unwrap())
                .collect();
            let (crowd, members) = crowd(rt, 8);
            for member in &members {
                member.send(Message::new("go", 2_u64)).unwrap();
            }
            let handled = || crowd.handled.load(Ordering::SeqCst);
            // The simulation checks the bound itself, in picks, after every move. This bound ends a
            // run in which a process waits for ever.
            let moves = Cell::new(0);
            while handled() < 24 {
                assert!(rt.step());
                moves.set(moves.get() + 1);
                assert!(moves.get() < 100_000, "{} of 24 are handled", handled());
            }
            hogs.iter()
                .for_each(|hog| rt.cancel(hog.pid(), "enough").unwrap());
            hogs.into_iter()
                .for_each(|hog| assert!(rt.wait(hog).is_done()));
        });
    }
}

/// Checks the shares of more hogs than workers. A worker with work does not steal, so without
/// balancing two of three hogs would share a worker for ever.
// pins: G4
#[test]
fn workers_that_never_run_out_give_all_processes_the_same_share() {
    for (workers, hogs) in [(2, 3), (3, 5)] {
        Sim::new(0).workers(workers).check_seeds(2, |rt| {
            let counts: Vec<_> = (0..hogs).map(|_| Arc::default()).collect();
            let start = |count| rt.submit(Hog(Arc::clone(count)), "main", ()).unwrap();
            let all: Vec<_> = counts.iter().map(start).collect();
            let steps = || counts.iter().map(|it| it.load(Ordering::SeqCst));
            while steps().sum::<u64>() < 20_000 * hogs {
                assert!(rt.step());
            }
            let (least, most) = (steps().min().unwrap(), steps().max().unwrap());
            assert!(most * 2 < least * 3, "from {least} to {most} steps");
            all.iter()
                .for_each(|hog| rt.cancel(hog.pid(), "enough").unwrap());
            all.into_iter()
                .for_each(|hog| assert!(rt.wait(hog).is_done()));
        });
    }
}

/// Checks that the audits of the other tests really take place.
#[test]
fn there_are_moments_in_which_all_is_checked() {
    let audits = |seed| {
        let sim = Sim::new(seed).workers(3).faults(Faults::some());
        let report = sim.run(|rt| {
            let (_, members) = crowd(rt, 6);
            for member in &members {
                (0..30).for_each(|_| _ = rt.step());
                member.send(Message::new("go", 4_u64)).unwrap();
            }
            rt.settle();
        });
        report.audits
    };
    let audits: u64 = (0..10).map(audits).sum();
    assert!(audits > 20, "{audits} in ten runs");
}

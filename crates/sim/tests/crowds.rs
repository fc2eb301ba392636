//! Many processes that wake one another, so that each promise which is checked after every move has
//! something that it could fail for.

use ganger_proc_api::{
    BoxError, Event, Events, Message, Payloads, Pid, Process, ProcessContext, StepOutput,
};
use ganger_sched::{Handle, ProcessHandle};
use ganger_sim::{Faults, Sim, Strategy};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Sends two messages of half the number for each that it gets, to others.
struct Member {
    ctx: Option<ProcessContext>,
    place: usize,
    crowd: Arc<Crowd>,
}

#[derive(Default)]
struct Crowd {
    pids: OnceLock<Vec<Pid>>,
    handled: AtomicU64,
}

impl Process for Member {
    fn init(&mut self, ctx: &ProcessContext, _: &str, _: Payloads) -> Result<(), BoxError> {
        self.ctx = Some(ctx.clone());
        Ok(())
    }

    fn step(&mut self, events: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
        out.idle();
        let (ctx, pids) = (
            self.ctx.as_ref().ok_or("not started")?,
            self.crowd.pids.get(),
        );
        let pids = pids.ok_or("alone")?;
        for event in events {
            let Event::Message(message) = event else {
                out.done(());
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
        let (ctx, crowd) = (None, Arc::clone(&crowd));
        handle
            .submit(Member { ctx, place, crowd }, "main", ())
            .unwrap()
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
                    // Long enough to be asleep at times.
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

/// Goes on for ever, or until it is cancelled.
struct Hog;

impl Process for Hog {
    fn step(&mut self, events: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
        if events.any(|event| matches!(event, Event::Cancel(_))) {
            out.done(());
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
                .map(|_| rt.submit(Hog, "main", ()).unwrap())
                .collect();
            let (crowd, members) = crowd(rt, 8);
            for member in &members {
                member.send(Message::new("go", 2_u64)).unwrap();
            }
            let handled = || crowd.handled.load(Ordering::SeqCst);
            // The bound itself is checked in picks, after every move; this is to end when it is broken
            // for ever.
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

/// Else nothing would be checked.
#[test]
fn there_are_moments_in_which_all_is_checked() {
    let report = Sim::new(5).workers(3).faults(Faults::some()).run(|rt| {
        let (_, members) = crowd(rt, 6);
        for member in &members {
            (0..30).for_each(|_| _ = rt.step());
            member.send(Message::new("go", 4_u64)).unwrap();
        }
        rt.settle();
    });
    assert!(report.audits > 5, "{report:?}");
}

/// Waits, and ends when it is cancelled.
struct Waits;

impl Process for Waits {
    fn step(&mut self, events: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
        out.idle();
        if events.any(|event| matches!(event, Event::Cancel(_))) {
            out.done(());
        }
        Ok(())
    }
}

// pins: G2
#[test]
fn who_does_not_sleep_after_all_sees_to_what_it_leaves() {
    for seed in 0..400 {
        Sim::new(seed).run(|rt| {
            let [first, second] = [(); 2].map(|()| rt.submit(Waits, "main", ()).unwrap());
            rt.settle();
            // The one is urgent, the other is not; a worker that is about to sleep may be all that searches.
            first.send(Message::new("wake", ())).unwrap();
            (0..20 + rt.choose(40)).for_each(|_| _ = rt.step());
            rt.cancel(first.pid(), "enough").unwrap();
            second.send(Message::new("wake", ())).unwrap();
            rt.settle();
        });
    }
}

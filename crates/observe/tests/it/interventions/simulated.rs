//! Calls of suspend and resume at any move of a simulation.

use ganger_proc_api::{Pid, actor_fn};
use ganger_sched::{Address, ContextExt as _, ProcessHandle, Suspended};
use ganger_sim::{Faults, Rt, Sim};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

const PROCESSES: usize = 3;
const MESSAGES: u64 = 20;
const HANDS: usize = 60;

/// A process, its taken numbers, and their count at its stop.
struct Watched {
    process: ProcessHandle<u64>,
    taken: Arc<Mutex<Vec<u64>>>,
    stood: Cell<Option<usize>>,
}

impl Watched {
    /// Spawns a process that takes numbers, and sends each on to itself once: so the process is
    /// often in a queue.
    fn spawn(rt: &Rt<'_>) -> Self {
        let taken: Arc<Mutex<Vec<u64>>> = Arc::default();
        let takes = Arc::clone(&taken);
        let actor = actor_fn(move |ctx, number: u64, _| {
            takes.lock().unwrap().push(number);
            if number < MESSAGES {
                let own: Address<u64> = ctx.address()?;
                own.send(number + MESSAGES)?;
            }
            Ok(())
        });
        Self {
            process: rt.spawn(actor).unwrap(),
            taken,
            stood: Cell::new(None),
        }
    }

    fn pid(&self) -> Pid {
        self.process.pid()
    }

    fn taken(&self) -> usize {
        self.taken.lock().unwrap().len()
    }

    /// Has taken nothing while it stands.
    fn check(&self) {
        if let Some(stood) = self.stood.get() {
            assert_eq!(self.taken(), stood, "it stands, and has taken a message");
        }
    }

    fn suspend(&self, rt: &Rt<'_>) {
        let suspended = rt.handle().suspend(self.pid()).unwrap();
        assert!(self.stood.get().is_none() || suspended == Suspended::Stands);
        if suspended == Suspended::Stands {
            self.stood.set(Some(self.taken()));
        }
    }

    fn resume(&self, rt: &Rt<'_>) {
        self.stood.set(None);
        let _was_suspended = rt.handle().resume(self.pid()).unwrap();
    }
}

fn sim(seed: u64) -> Sim {
    let sim = Sim::new(seed).workers(2);
    sim.builder(|it| it.allow_interventions())
}

// pins: V18
#[test]
fn what_stands_takes_nothing_and_what_is_resumed_takes_all_in_order() {
    let stood = Rc::new(Cell::new(0));
    for seed in 0..300 {
        sim(seed).run(|rt| {
            let all = [(); PROCESSES].map(|()| Watched::spawn(rt));
            let mut sent = [0; PROCESSES];
            for _ in 0..HANDS {
                let one = rt.choose(PROCESSES);
                match rt.choose(4) {
                    0 => all[one].suspend(rt),
                    1 => all[one].resume(rt),
                    _ if sent[one] < MESSAGES => {
                        all[one].process.send(sent[one]).unwrap();
                        sent[one] += 1;
                    }
                    _ => {}
                }
                for _ in 0..rt.choose(4) {
                    let _moved = rt.step();
                    all.iter().for_each(Watched::check);
                }
                stood.set(stood.get() + all.iter().filter(|it| it.stood.get().is_some()).count());
            }
            all.iter().for_each(|it| it.resume(rt));
            rt.settle();
            for (it, sent) in all.iter().zip(sent) {
                let taken = it.taken.lock().unwrap();
                let (firsts, seconds): (Vec<_>, Vec<_>) =
                    taken.iter().partition(|it| **it < MESSAGES);
                assert!(firsts.into_iter().copied().eq(0..sent), "{taken:?}");
                assert!(seconds.into_iter().copied().eq(MESSAGES..MESSAGES + sent));
                rt.handle().terminate(it.pid()).unwrap();
            }
        });
    }
    assert!(
        stood.get() > 1_000,
        "processes stood at {} moves",
        stood.get()
    );
}

/// Stops the scheduler at the end, with faults: nothing stays behind.
// pins: V18
#[test]
fn a_stop_ends_all_that_stands() {
    for seed in 0..100 {
        sim(seed).faults(Faults::some()).must_free().run(|rt| {
            let all = [(); PROCESSES].map(|()| Watched::spawn(rt));
            for _ in 0..HANDS {
                let one = &all[rt.choose(PROCESSES)];
                // A fault may have ended it.
                let _suspended = rt.handle().suspend(one.pid());
                let _sent = one.process.send(0);
                let _moved = rt.step();
            }
            let report = rt.stop(std::time::Duration::from_secs(1));
            assert_eq!(report.forced, 0, "of seed {seed}: {report:?}");
        });
    }
}

//! Several machines under one seed and one clock, and acts of a test on them.

use ganger_proc_api::{BoxError, Envelope, EnvelopeReceiver as _, Pid, actor_fn};
use ganger_sched::{ContextExt as _, WeakHandle};
use ganger_sim::{Arrival, Carrier, Change, Faults, Rt, Sim, World};
use ganger_task::Cx;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// The acts of the machines, in order.
type Log = Arc<Mutex<Vec<String>>>;

/// Creates a simulation whose clock does not jump, as each second counts.
fn sim(seed: u64) -> Sim {
    Sim::new(seed).faults(Faults {
        clock_jumps: 0,
        ..Faults::some()
    })
}

fn said(log: &Log) -> Vec<String> {
    std::mem::take(&mut *log.lock().unwrap())
}

/// Starts a machine, which writes a line to the log each second.
fn ticks(world: &World<'_>, name: &'static str, log: &Log) {
    let log = Arc::clone(log);
    world.start(name, move |machine| {
        let log = Arc::clone(&log);
        let ticks = machine.spawn(async move |cx: Cx| -> Result<(), BoxError> {
            loop {
                cx.sleep(SECOND).await?;
                let now = cx.now().as_nanos() / 1_000_000_000;
                log.lock().unwrap().push(format!("{name} at {now}"));
            }
        });
        drop(ticks.unwrap());
    });
}

// pins: B40
#[test]
fn machines_take_turns_and_a_seed_repeats_them() {
    let run = |seed: u64| {
        let log = Log::default();
        let own = Arc::clone(&log);
        let report = sim(seed).run_world(move |world| {
            ticks(world, "alpha", &own);
            ticks(world, "beta", &own);
            world.run_for(3 * SECOND);
            world.crash("alpha");
            world.run_for(SECOND);
            world.restart("alpha");
            world.run_for(2 * SECOND);
        });
        (report, said(&log))
    };
    let (first, second) = (run(3), run(3));
    assert_eq!(first.1, second.1);
    assert_eq!(first.0.trace.to_string(), second.0.trace.to_string());
    assert_eq!(first.0.decisions, second.0.decisions);
    let orders: std::collections::BTreeSet<_> = (0..20).map(|seed| run(seed).1).collect();
    assert!(orders.len() > 1, "all seeds have the same order");
    let text = first.0.trace.to_string();
    assert!(text.contains("alpha worker 0: "), "{text}");
    assert!(text.contains("beta worker 0: "), "{text}");
    assert!(text.contains("world: alpha crashes"), "{text}");
}

/// Counts its drops.
struct Loud(Arc<AtomicUsize>);

impl Drop for Loud {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

// pins: B40
#[test]
fn what_crashes_does_nothing_more_and_its_pids_are_nobodys() {
    let drops = Arc::new(AtomicUsize::new(0));
    let dropped = || drops.load(Ordering::Relaxed);
    Sim::new(0).must_free().check_worlds(20, |world| {
        let (log, before) = (&Log::default(), dropped());
        ticks(world, "alpha", log);
        world.run_for(2 * SECOND + SECOND / 2);
        let alpha = world.machine("alpha");
        let loud = Loud(Arc::clone(&drops));
        let process = actor_fn(move |_, (): (), _| {
            let _kept = &loud;
            Ok(())
        });
        let pid = alpha.spawn(process).unwrap().pid();
        assert_eq!(said(log), ["alpha at 1", "alpha at 2"]);
        world.crash("alpha");
        assert!(!world.is_up("alpha"));
        world.run_for(10 * SECOND);
        assert_eq!(said(log), [""; 0], "a crashed machine acts");
        world.restart("alpha");
        let after = world.machine("alpha");
        assert!(after.process(pid).is_none());
        let again = after.spawn(actor_fn(|_, (): (), _| Ok(()))).unwrap();
        assert_ne!(again.pid(), pid);
        world.run_for(2 * SECOND);
        assert_eq!(said(log).len(), 1);
        assert_eq!(dropped(), before, "a crashed machine closes");
    });
    assert_eq!(dropped(), 20, "its memory is freed at the end");
}

#[test]
fn a_paused_machine_stands_still_while_time_goes_on() {
    sim(0).check_worlds(20, |world| {
        let log = Log::default();
        ticks(world, "alpha", &log);
        ticks(world, "beta", &log);
        world.pause("alpha", 5 * SECOND);
        world.run_for(4 * SECOND);
        let before = said(&log);
        assert!(before.iter().all(|it| it.starts_with("beta")), "{before:?}");
        assert!(!before.is_empty());
        world.run_for(3 * SECOND);
        assert!(said(&log).iter().any(|it| it.starts_with("alpha")));
        world.pause("alpha", 100 * SECOND);
        world.resume("alpha");
        world.run_for(2 * SECOND);
        assert!(said(&log).iter().any(|it| it.starts_with("alpha")));
    });
}

#[test]
fn a_slow_clock_is_late_and_a_fast_one_early() {
    Sim::new(0).check_worlds(20, |world| {
        let log = Log::default();
        for name in ["right", "slow", "fast"] {
            ticks(world, name, &log);
        }
        world.clock_rate("slow", 0.5);
        world.clock_rate("fast", 2.0);
        world.run_for(10 * SECOND + SECOND / 2);
        let said = said(&log);
        let of = |name: &str| said.iter().filter(|it| it.starts_with(name)).count();
        assert_eq!((of("right"), of("slow"), of("fast")), (10, 5, 20));
    });
}

/// Carries envelopes, each for a tenth of a second.
#[derive(Clone, Default)]
struct Post(Rc<RefCell<Bags>>);

#[derive(Default)]
struct Bags {
    now: Duration,
    moving: VecDeque<(Duration, &'static str, Envelope)>,
    machines: Vec<(&'static str, WeakHandle)>,
    cut: bool,
    arrived: usize,
}

impl Post {
    fn serve(&self, name: &'static str, machine: &Rt<'_>) {
        let mut bags = self.0.borrow_mut();
        bags.machines.retain(|it| it.0 != name);
        bags.machines.push((name, machine.downgrade()));
    }

    fn send(&self, to: &'static str, pid: Pid, number: u64) {
        let mut bags = self.0.borrow_mut();
        if !bags.cut {
            let at = bags.now + SECOND / 10;
            let envelope = Envelope::new(None, pid, "number", number);
            bags.moving.push_back((at, to, envelope));
        }
    }
}

impl Carrier for Post {
    fn set_now(&self, now: Duration) {
        self.0.borrow_mut().now = now;
    }

    fn next_due(&self) -> Option<Duration> {
        self.0.borrow().moving.front().map(|it| it.0)
    }

    fn take_due(&self) -> Option<Arrival> {
        let mut bags = self.0.borrow_mut();
        let (_, to, envelope) = bags.moving.pop_front()?;
        let machine = bags.machines.iter().find(|it| it.0 == to)?.1.clone();
        let own = Rc::clone(&self.0);
        Some(Arrival {
            to: to.into(),
            act: Box::new(move || {
                own.borrow_mut().arrived += 1;
                drop(machine.send(envelope));
            }),
        })
    }

    fn changed(&self, change: Change<'_>) {
        match change {
            Change::Cut("alpha", "beta") => self.0.borrow_mut().cut = true,
            Change::Healed("alpha", "beta") => self.0.borrow_mut().cut = false,
            _ => {}
        }
    }
}

#[test]
fn what_is_carried_arrives_in_its_time_unless_it_is_cut_or_its_machine_is_gone() {
    sim(0).check_worlds(20, |world| {
        let (post, log) = (Post::default(), Log::default());
        world.carrier(post.clone());
        world.start("alpha", |_| {});
        let (own, written) = (post.clone(), Arc::clone(&log));
        world.start("beta", move |machine| {
            own.serve("beta", machine);
            let log = Arc::clone(&written);
            let reader = actor_fn(move |_, number: u64, _| {
                log.lock().unwrap().push(number.to_string());
                Ok(())
            });
            machine.spawner().named("reader").spawn(reader).unwrap();
        });
        let reader = |world: &World<'_>| world.machine("beta").whereis("reader").unwrap();
        let first = reader(world);
        post.send("beta", first, 1);
        world.cut("alpha", "beta");
        post.send("beta", first, 2);
        world.heal("alpha", "beta");
        post.send("beta", first, 3);
        world.run_until(SECOND, || log.lock().unwrap().len() == 2);
        world.run_for(SECOND);
        assert_eq!(said(&log), ["1", "3"]);
        post.send("beta", first, 4);
        world.crash("beta");
        world.run_for(SECOND);
        assert_eq!(post.0.borrow().arrived, 2, "nothing arrives at the dead");
        post.send("beta", first, 5);
        world.restart("beta");
        post.send("beta", reader(world), 6);
        world.run_for(SECOND);
        assert_eq!(said(&log), ["6"], "a PID of before finds nobody");
    });
}

#[test]
fn a_bug_between_machines_is_found_made_simpler_and_shown() {
    // The machine forgets at its start what it has promised before.
    let failed = Sim::new(0).try_worlds(50, |world| {
        let given = Arc::new(Mutex::new(0));
        let own = Arc::clone(&given);
        world.start("shop", move |machine| {
            let given = Arc::clone(&own);
            let mut left = 3;
            let clerk = actor_fn(move |_, (): (), _| -> Result<(), BoxError> {
                if left > 0 {
                    left -= 1;
                    *given.lock().unwrap() += 1;
                }
                Ok(())
            });
            machine.spawner().named("clerk").spawn(clerk).unwrap();
        });
        for _ in 0..1 + world.choose(20) {
            match world.choose(4) {
                0 => world.restart("shop"),
                _ => {
                    let shop = world.machine("shop");
                    let clerk = shop.whereis("clerk").unwrap();
                    shop.send(Envelope::new(None, clerk, "buy", ())).unwrap();
                }
            }
            world.settle();
        }
        assert!(*given.lock().unwrap() <= 3, "more is given than there was");
    });
    let text = failed.unwrap_err().to_string();
    assert!(text.contains("more is given than there was"), "{text}");
    assert!(text.contains("Repeat it: GANGER_SIM_SEED="), "{text}");
    assert!(
        text.contains("The simplest run that fails like this"),
        "{text}"
    );
    let starts = text.matches("world: shop starts again").count();
    assert_eq!(starts, 1, "one restart is enough:\n{text}");
}

#[test]
fn a_wait_that_is_in_vain_names_the_call() {
    let failed = Sim::new(0).try_worlds(1, |world| {
        world.start("alpha", |_| {});
        world.run_until(SECOND, || false);
    });
    let text = failed.unwrap_err().to_string();
    assert!(text.contains("has not come within 1s"), "{text}");
    assert!(text.contains("worlds.rs:"), "{text}");
}

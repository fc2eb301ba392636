//! How long ready processes wait in mixes of short, long, continuing, woken, stolen and urgent
//! processes, in virtual time, compared with the same mix in a plain queue with as many workers.
//!
//! A step lasts for a while and acts at its end. The seed alone decides the acts of each step of
//! each process, so both run the same mix.

mod ledger;
mod mix;
mod plain;

use self::ledger::{Ledger, Send};
use self::mix::{Kind, Mix};
use ganger_proc_api::{Context, Events, Message, Pid, Process, StepOutput, StepResult};
use ganger_sched::internal::sim::{self, Did, Driver, Machine};
use ganger_sched::{Address, Handle, Scheduler};
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

/// A process may wait for ten times as long as in a plain queue, and for this many microseconds for
/// each process of the mix: a process that is before another elsewhere waits for a slice of the
/// processes that the worker has woken itself.
const SLICE: u64 = 100;

/// The further allowance, in microseconds, for a worker whose steps are short for a while, and then
/// long: the worker goes by its old knowledge until the monitor has looked.
const LOOK: u64 = 2_000;

/// The further allowance, in microseconds, of mixes of the nights. Each has steps of a millisecond,
/// and a slice ends with a step only: see docs/LIMITS.md.
const LONG_SLICES: [(u64, u64); 3] = [(196, 4_000), (387, 15_000), (746, 3_000)];

/// Makes the decisions by chance, and decides how long the next step lasts.
struct Chance {
    random: fastrand::Rng,
    lasts: Rc<Cell<usize>>,
}

impl Driver for Chance {
    fn choose(&mut self, what: &'static str, of: usize) -> usize {
        if what == "user" {
            return self.lasts.get();
        }
        self.random.usize(..of)
    }

    fn happens(&mut self, what: &'static str) -> bool {
        what == "step blocks"
    }
}

/// The shared state of the processes of a mix.
struct World {
    ledger: Mutex<Ledger>,
    addresses: OnceLock<Vec<Address>>,
}

impl World {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap()
    }

    fn send(&self, Send { to, is_urgent }: Send) {
        let is_ready = self.ledger().reach(to);
        let address = &self.addresses.get().unwrap()[to];
        let message = Message::new("wake", ());
        if is_urgent {
            address.send_control(message).unwrap();
        } else if is_ready {
            address.send(message).unwrap();
        }
    }
}

struct Actor {
    number: usize,
    world: Arc<World>,
}

impl Process for Actor {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        events.for_each(drop);
        let end = self.world.ledger().end(self.number);
        match end {
            None => out.done(()),
            Some((_, true)) => out.step_again(),
            Some((_, false)) => {}
        }
        for send in end.into_iter().flat_map(|(sends, _)| sends) {
            self.world.send(send);
        }
        Ok(())
    }
}

/// A mix under way.
struct Run<'a, 'b> {
    machine: &'a Machine<'b>,
    world: Arc<World>,
    numbers: HashMap<Pid, usize>,
    random: fastrand::Rng,
    lasts: Rc<Cell<usize>>,
    /// For how long each worker's next step lasts.
    next: Vec<usize>,
}

impl Run<'_, '_> {
    /// Makes all moves of this moment; then the next moment comes.
    fn pass(&mut self, latest: u64) {
        loop {
            let workers = 0..self.machine.workers();
            let mut able: Vec<_> = workers.filter(|&it| self.machine.can_move(it)).collect();
            if self.machine.monitor_can_move() {
                able.push(usize::MAX);
            }
            let Some(&actor) = self.random.choice(&able) else {
                break;
            };
            if actor == usize::MAX {
                self.machine.advance_monitor();
                continue;
            }
            self.lasts.set(self.next[actor]);
            if let Did::TookUp(pid) = self.machine.advance(actor) {
                let lasts = self.world.ledger().begin(self.numbers[&pid]);
                self.next[actor] = usize::try_from(lasts).unwrap();
            }
        }
        assert_eq!(sim::violation(), None);
        let due = self.machine.next_due().map_or(u64::MAX, micros);
        if due == u64::MAX && latest == u64::MAX {
            return;
        }
        let next = Duration::from_micros(due.min(latest)).max(self.machine.now());
        self.machine.set_now(next);
        self.world.ledger().now = micros(next);
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap()
}

/// Returns the longest wait, in microseconds.
fn longest_wait(mix: &Mix) -> u64 {
    let builder = Scheduler::builder().workers(mix.workers).max_spares(0);
    let scheduler = builder.check_promises().build().unwrap();
    let lasts = Rc::new(Cell::new(0));
    let chance = Chance {
        random: fastrand::Rng::with_seed(mix.seed),
        lasts: Rc::clone(&lasts),
    };
    let world = Arc::new(World {
        ledger: Mutex::new(Ledger::new(mix)),
        addresses: OnceLock::new(),
    });
    sim::drive(Box::new(chance), || {
        sim::run(&scheduler, |handle, machine| {
            let addresses = submit(handle, &world);
            let pids = addresses.iter().map(Address::pid);
            let next = vec![0; machine.slots()];
            let mut run = Run {
                numbers: pids.zip(0..).collect(),
                machine,
                world: Arc::clone(&world),
                random: fastrand::Rng::with_seed(!mix.seed),
                lasts: Rc::clone(&lasts),
                next,
            };
            assert!(world.addresses.set(addresses).is_ok());
            for arrival in mix.arrivals() {
                while world.ledger().now < arrival.at {
                    run.pass(arrival.at);
                }
                world.send(arrival.send);
            }
            let longest = world.ledger().longest();
            world.ledger().is_over = true;
            run.machine.begin_stop();
            while run.machine.live() > 0 {
                run.pass(u64::MAX);
            }
            run.machine.halt();
            while !run.machine.is_over() {
                run.pass(u64::MAX);
            }
            longest
        })
    })
    .unwrap()
}

fn submit(handle: &Handle, world: &Arc<World>) -> Vec<Address> {
    let processes = 0..world.ledger().processes();
    let submit = |number| {
        let world = Arc::clone(world);
        let process = handle.submit(Actor { number, world }, "main", ());
        process.unwrap().address().clone()
    };
    processes.map(submit).collect()
}

/// Runs the mixes; fails when a process of a mix has waited for too long.
fn check(mixes: impl Iterator<Item = Mix>, allowance: impl Fn(&Mix) -> u64) {
    let too_long: Vec<_> = mixes
        .filter_map(|mix| {
            let (ours, plain) = (longest_wait(&mix), plain::longest_wait(&mix));
            let allowed = 10 * plain + allowance(&mix);
            (ours > allowed).then(|| format!("{ours} us, in a plain queue {plain}: {mix:?}"))
        })
        .collect();
    let list = too_long.join("\n");
    assert!(too_long.is_empty(), "processes have waited for\n{list}");
}

// pins: G4
#[test]
fn no_ready_process_waits_much_longer_than_in_one_plain_queue() {
    let slices = |mix: &Mix| SLICE * mix.kinds.len() as u64;
    // `GANGER_STRESS=10` tries ten times as many.
    let factor = std::env::var("GANGER_STRESS").map_or(1, |text| text.parse().unwrap());
    let further = |mix: &Mix| {
        let mut known = LONG_SLICES.into_iter();
        known.find_map(|(seed, further)| (seed == mix.seed).then_some(further))
    };
    check((0..40 * factor).map(Mix::random), |mix| {
        slices(mix) + LOOK + further(mix).unwrap_or(0)
    });
}

/// Runs seven processes that compute; one of them wakes a hundred sleepers now and then, all on the
/// same worker.
// pins: G4
#[test]
fn what_a_step_wakes_is_not_buried_by_those_that_continue() {
    let mix = |lasts| {
        let mut kinds = vec![Kind::busy(lasts); 7];
        (kinds[0].sends_every, kinds[0].sends) = (10, 100);
        kinds.extend(vec![Kind::sleeper(1); 100]);
        Mix::of(2, kinds, 0)
    };
    check([10, 100, 1_000].into_iter().map(mix), |_| 0);
    // With short steps a rotation comes after 127 steps of each process that continues.
    check([1].into_iter().map(mix), |_| 7 * 127);
}

/// Runs seven processes that compute, and wakes a waiting process from outside.
// pins: G4
#[test]
fn what_is_woken_from_outside_waits_for_few_steps() {
    let mix = |lasts| {
        let mut kinds = vec![Kind::busy(lasts); 7];
        kinds.push(Kind::sleeper(1));
        Mix::of(2, kinds, 700)
    };
    check([10, 100, 1_000].into_iter().map(mix), |_| 0);
}

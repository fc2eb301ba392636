//! Relieved workers: the threads that relieve, against workers that end their steps and spares that
//! wait.
//!
//! Workers end steps and stand down as `worker.rs` does it, on loom's threads. A thread that the system
//! would start is one of these, or is only counted. Checked: at any moment as many workers are active
//! as were asked for, each in a place of its own. A spare that becomes active knows its place. A spare
//! that leaves does not become active, and its slot is free once. No thread waits after the halt. A
//! lost wake-up leaves a spare waiting for ever, and the model for the spare, which loom reports.

use crate::crew::{Crew, Next};
use crate::idle::{Idle, Woken};
use crate::token::Token;
use ganger_deque::Worker as Deque;
use ganger_sync::atomic::{AtomicBool, Ordering};
use ganger_sync::sync::Arc;
use ganger_sync::{Parker, model, thread};
// Notes of what has happened, which order nothing.
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

struct World {
    crew: Crew,
    is_halted: AtomicBool,
    notes: Mutex<Notes>,
    /// There is a new note.
    noted: Parker,
}

#[derive(Default)]
struct Notes {
    /// How many times a thread has tried to relieve a worker.
    tried: usize,
    /// The places of the workers that were relieved.
    relieved: Vec<usize>,
    /// The places of the spares that have become active, as they know them.
    came: Vec<usize>,
    /// Slots for which a thread was started.
    hired: Vec<usize>,
}

impl World {
    /// With as many workers, and free slots up to `slots`.
    fn new(workers: usize, slots: usize) -> Arc<Self> {
        let crew = Crew::new(workers, slots, None);
        crew.set_free((workers..slots).map(|slot| (slot, Deque::new())));
        Arc::new(Self {
            crew,
            is_halted: AtomicBool::new(false),
            notes: Mutex::default(),
            noted: Parker::new(),
        })
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap()
    }

    /// Relieves a worker; a thread that is started begins with `starts`.
    fn relieve(&self, index: usize, starts: impl FnOnce(usize, Deque<Token>)) -> bool {
        let hire = |slot, deque| {
            self.notes().hired.push(slot);
            starts(slot, deque);
            Ok(())
        };
        let note = || {
            assert!(!self.crew.is_relieved(index), "it may say that it is over");
        };
        let place = self.crew.place(index);
        let is_relieved = self.crew.replace(index, hire, note).unwrap_or(false);
        let mut notes = self.notes();
        notes.tried += 1;
        notes.relieved.extend(is_relieved.then_some(place));
        drop(notes);
        self.noted.unpark();
        is_relieved
    }

    /// As `relieve`, where the threads that the system starts never come to anything.
    fn relieve_alone(&self, index: usize) -> bool {
        self.relieve(index, |slot, _| self.come(slot))
    }

    /// A spare becomes active.
    fn come(&self, index: usize) {
        let place = self.crew.place(index);
        self.notes().came.push(place);
        self.noted.unpark();
    }

    /// A worker's step is over; `false` when it is to leave.
    fn end_step(&self, index: usize, keep: Duration) -> bool {
        if self.crew.is_relieved(index) {
            // Ordering: SeqCst, as the flag that halts the real workers.
            let is_halted = || self.is_halted.load(Ordering::SeqCst);
            if self.crew.stand_down(index, keep, is_halted) == Next::Leave {
                return false;
            }
            if self.crew.is_on_duty(index) {
                self.come(index);
            }
        }
        true
    }

    /// As many are active as were asked for, each in a place of its own.
    fn assert_manned(&self) {
        let mut places = self.crew.places();
        places.sort_unstable();
        assert!(places.into_iter().eq(0..self.crew.workers()));
    }

    /// Waits until so many have tried to relieve a worker, and each spare that was called has come.
    fn wait_for(&self, tried: usize) {
        let is_done =
            |notes: &Notes| notes.tried == tried && notes.came.len() == notes.relieved.len();
        while !is_done(&self.notes()) {
            self.noted.park();
        }
    }

    fn halt(&self) {
        // Ordering: SeqCst, as the flag that halts the real workers.
        self.is_halted.store(true, Ordering::SeqCst);
        self.crew.wake_all();
    }

    /// In the end, a spare has come for each relieved worker, and has known its place.
    fn assert_came(&self) {
        let Notes {
            mut came,
            mut relieved,
            ..
        } = std::mem::take(&mut *self.notes());
        came.sort_unstable();
        relieved.sort_unstable();
        assert_eq!(came, relieved);
    }
}

/// A thread that does that in the world.
fn spawn(
    world: &Arc<World>,
    run: impl FnOnce(&Arc<World>) -> bool + Send + 'static,
) -> thread::JoinHandle<bool> {
    let world = Arc::clone(world);
    thread::spawn(move || run(&world))
}

/// The monitor relieves a worker, whose step ends. The spare that has come is about to block: so the
/// first is called back if it waits by then.
// pins: G6
#[test]
fn a_worker_that_is_relieved_and_called_back() {
    model::check(3, || {
        let world = World::new(1, 2);
        let first = spawn(&world, |world| world.end_step(0, HOUR));
        let mut spare = None;
        let start = |slot, _| {
            spare = Some(spawn(&world, move |world| {
                world.come(slot);
                world.relieve(slot, |_, _| unreachable!("there is no free slot"));
                world.end_step(slot, HOUR)
            }));
        };
        assert!(world.relieve(0, start));
        world.wait_for(2);
        world.assert_manned();
        world.halt();
        for thread in [Some(first), spare].into_iter().flatten() {
            assert!(thread.join().unwrap());
        }
        world.assert_came();
    });
}

/// The monitor and the step itself have the worker relieved, while that step ends.
// pins: G6
#[test]
fn two_relieve_the_same_worker() {
    model::check(4, || {
        let world = World::new(1, 3);
        let worker = spawn(&world, |world| world.end_step(0, HOUR));
        let other = spawn(&world, |world| world.relieve_alone(0));
        let by_this = world.relieve_alone(0);
        world.assert_manned();
        assert!(by_this != other.join().unwrap(), "relieved twice, or never");
        world.halt();
        assert!(worker.join().unwrap());
        world.assert_came();
    });
}

/// Slot `spare` has had a thread, whose place worker 0 has taken again: it comes out of its step.
fn with_a_spare_relieved(world: &World, spare: usize) {
    assert!(world.relieve_alone(0));
    assert_eq!(world.notes().hired.pop(), Some(spare));
    world.crew.step_back(0);
    assert!(world.relieve_alone(spare));
    world.come(0);
}

/// A spare that is not needed for as long as it waits; whether it has left.
fn wait_in_vain(world: &World, spare: usize) -> bool {
    let leaves = !world.end_step(spare, Duration::ZERO);
    if leaves {
        world.crew.exit(spare);
        world.crew.leave(spare, Deque::new());
    }
    leaves
}

/// Two workers are relieved when there is one spare, which is about to leave.
// pins: G6
#[test]
fn a_spare_that_leaves_against_two_who_need_it() {
    model::check(4, || {
        let world = World::new(2, 3);
        with_a_spare_relieved(&world, 2);
        let spare = spawn(&world, |world| wait_in_vain(world, 2));
        let other = spawn(&world, |world| world.relieve_alone(1));
        let mut relieved = usize::from(world.relieve_alone(0));
        world.assert_manned();
        relieved += usize::from(other.join().unwrap());
        let has_left = spare.join().unwrap();
        let hired = world.notes().hired.len();
        assert_eq!(
            relieved,
            usize::from(!has_left) + hired,
            "on duty and gone, or neither"
        );
        assert_eq!(world.crew.spares(), relieved);
        // The slot's next thread can take a place that no spare has, once.
        let more = [0, 1].map(|index| world.relieve_alone(index));
        let free = usize::from(has_left) - hired;
        assert_eq!(more.into_iter().filter(|&it| it).count(), free);
        world.assert_manned();
        world.assert_came();
    });
}

/// The monitor relieves a spare for a step that has ended since.
// pins: G6
#[test]
fn who_leaves_is_not_relieved() {
    model::check(4, || {
        let world = World::new(1, 3);
        with_a_spare_relieved(&world, 1);
        let spare = spawn(&world, |world| wait_in_vain(world, 1));
        assert!(!world.relieve_alone(1), "nobody needs it");
        world.assert_manned();
        assert!(spare.join().unwrap());
        assert!(!world.crew.is_relieved(1));
        world.assert_came();
    });
}

/// A worker is relieved after its step, and falls asleep beside another one that searches: it stands
/// down all the same.
// pins: G6
#[test]
fn who_is_relieved_does_not_stay_asleep() {
    model::check(5, || {
        let world = World::new(2, 3);
        let idle = Arc::new(Idle::new(2, 3));
        assert!(idle.begin_search());
        let worker = {
            let (world, idle) = (Arc::clone(&world), Arc::clone(&idle));
            thread::spawn(move || {
                let is_relieved = || world.crew.is_relieved(1);
                while !is_relieved() {
                    if idle.sleep(1, false, is_relieved, || false, || ()) == Woken::Notified {
                        idle.end_search(|| false);
                    }
                }
            })
        };
        assert!(world.relieve_alone(1));
        idle.wake(1);
        worker.join().unwrap();
        idle.end_search(|| false);
        let now = idle.snapshot();
        assert_eq!((now.searching, now.sleeping), (0, 0));
        world.assert_came();
    });
}

/// The scheduler halts while a worker stands down, and while it is called back.
// pins: D4
#[test]
fn nobody_waits_after_the_halt() {
    model::check(4, || {
        let world = World::new(1, 2);
        assert!(world.relieve_alone(0));
        let worker = spawn(&world, |world| world.end_step(0, HOUR));
        let monitor = spawn(&world, |world| world.relieve_alone(1));
        world.halt();
        assert!(worker.join().unwrap());
        monitor.join().unwrap();
        world.assert_came();
    });
}

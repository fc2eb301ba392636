//! Replaced workers: the replacing threads, against workers at the end of their steps and waiting
//! spares.
//!
//! Workers end steps and retire as `worker/mod.rs` does, on loom's threads. A thread for the system
//! to start is one of these, or is only counted. A lost wake-up leaves a spare waiting for ever,
//! and the model for the spare, and loom reports it. Checked:
//! - At any moment as many workers are active as were asked for, each in a place of its own.
//! - A spare knows its place when it becomes active.
//! - A spare that leaves does not become active, and its slot is free once.
//! - No thread waits after the halt.

use crate::queues::idle::{Idle, Woken};
use crate::runtime::spares::Next;
use crate::runtime::token::Token;
use crate::runtime::worker_slots::WorkerSlots;
use ganger_deque::Worker as Deque;
use ganger_sync::atomic::{AtomicBool, Ordering};
use ganger_sync::sync::Arc;
use ganger_sync::{Parker, model, thread};
// Notes of past events; their lock orders nothing in the model.
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

struct World {
    worker_slots: WorkerSlots,
    is_halted: AtomicBool,
    notes: Mutex<Notes>,
    /// Unparked by each new note.
    noted: Parker,
}

#[derive(Default)]
struct Notes {
    /// How many times a thread has tried to replace a worker.
    tried: usize,
    /// The places of the replaced workers.
    replaced: Vec<usize>,
    /// The places of newly active spares, as they know them.
    came: Vec<usize>,
    /// Slots with a started thread.
    spawned: Vec<usize>,
}

impl World {
    /// Creates a world with this many workers, and free slots up to `slots`.
    fn new(workers: usize, slots: usize) -> Arc<Self> {
        let worker_slots = WorkerSlots::new(workers, slots, None);
        worker_slots.set_free((workers..slots).map(|slot| (slot, Deque::new())));
        Arc::new(Self {
            worker_slots,
            is_halted: AtomicBool::new(false),
            notes: Mutex::default(),
            noted: Parker::new(),
        })
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap()
    }

    /// Relieves a worker; a started thread begins with `starts`.
    fn replace(&self, index: usize, starts: impl FnOnce(usize, Deque<Token>)) -> bool {
        let spawn = |slot, deque| {
            self.notes().spawned.push(slot);
            starts(slot, deque);
            Ok(())
        };
        let note = || {
            assert!(
                !self.worker_slots.is_replaced(index),
                "it may say that it is over"
            );
        };
        let place = self.worker_slots.place(index);
        let is_replaced = self
            .worker_slots
            .replace(index, spawn, note)
            .unwrap_or(false);
        let mut notes = self.notes();
        notes.tried += 1;
        notes.replaced.extend(is_replaced.then_some(place));
        drop(notes);
        self.noted.unpark();
        is_replaced
    }

    /// Replaces a worker as `replace` does, but counts threads and starts none.
    fn replace_alone(&self, index: usize) -> bool {
        self.replace(index, |slot, _| self.come(slot))
    }

    /// Notes a spare when it becomes active.
    fn come(&self, index: usize) {
        let place = self.worker_slots.place(index);
        self.notes().came.push(place);
        self.noted.unpark();
    }

    /// Ends a worker's step; `false` when the worker leaves.
    fn end_step(&self, index: usize, keep: Duration) -> bool {
        if self.worker_slots.is_replaced(index) {
            // Ordering: SeqCst, as the flag that halts the real workers.
            let is_halted = || self.is_halted.load(Ordering::SeqCst);
            if self.worker_slots.retire(index, keep, is_halted) == Next::Leave {
                return false;
            }
            if self.worker_slots.is_active(index) {
                self.come(index);
            }
        }
        true
    }

    /// Checks that as many workers are active as were asked for, each in a place of its own.
    fn assert_manned(&self) {
        let mut places = self.worker_slots.places();
        places.sort_unstable();
        assert!(places.into_iter().eq(0..self.worker_slots.workers()));
    }

    /// Waits until `tried` threads have tried to replace a worker, and each called spare has come.
    fn wait_for(&self, tried: usize) {
        let is_done =
            |notes: &Notes| notes.tried == tried && notes.came.len() == notes.replaced.len();
        while !is_done(&self.notes()) {
            self.noted.park();
        }
    }

    fn halt(&self) {
        // Ordering: SeqCst, as the flag that halts the real workers.
        self.is_halted.store(true, Ordering::SeqCst);
        self.worker_slots.wake_all();
    }

    /// Checks that, in the end, a spare has come for each replaced worker, and has known its place.
    fn assert_came(&self) {
        let Notes {
            mut came,
            mut replaced,
            ..
        } = std::mem::take(&mut *self.notes());
        came.sort_unstable();
        replaced.sort_unstable();
        assert_eq!(came, replaced);
    }
}

/// Starts a thread for `run` in the world.
fn spawn(
    world: &Arc<World>,
    run: impl FnOnce(&Arc<World>) -> bool + Send + 'static,
) -> thread::JoinHandle<bool> {
    let world = Arc::clone(world);
    thread::spawn(move || run(&world))
}

/// Lets the monitor replace a worker whose step ends. The spare is about to block, so the worker is
/// called back if it waits by then.
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
                world.replace(slot, |_, _| unreachable!("there is no free slot"));
                world.end_step(slot, HOUR)
            }));
        };
        assert!(world.replace(0, start));
        world.wait_for(2);
        world.assert_manned();
        world.halt();
        for thread in [Some(first), spare].into_iter().flatten() {
            assert!(thread.join().unwrap());
        }
        world.assert_came();
    });
}

/// Lets the monitor and the step itself have the worker replaced, while the step ends.
// pins: G6
#[test]
fn two_relieve_the_same_worker() {
    model::check(4, || {
        let world = World::new(1, 3);
        let worker = spawn(&world, |world| world.end_step(0, HOUR));
        let other = spawn(&world, |world| world.replace_alone(0));
        let by_this = world.replace_alone(0);
        world.assert_manned();
        assert!(by_this != other.join().unwrap(), "replaced twice, or never");
        world.halt();
        assert!(worker.join().unwrap());
        world.assert_came();
    });
}

/// Puts a thread in slot `spare` into the place of worker 0, which takes the place back. The thread
/// stands down after its step.
fn with_a_spare_replaced(world: &World, spare: usize) {
    assert!(world.replace_alone(0));
    assert_eq!(world.notes().spawned.pop(), Some(spare));
    world.worker_slots.mark_spare(0);
    assert!(world.replace_alone(spare));
    world.come(0);
}

/// Waits as a spare that is not needed, and returns whether the spare has left.
fn wait_in_vain(world: &World, spare: usize) -> bool {
    let leaves = !world.end_step(spare, Duration::ZERO);
    if leaves {
        world.worker_slots.exit(spare);
        world.worker_slots.leave(spare, Deque::new());
    }
    leaves
}

/// Replaces two workers while the only spare is about to leave.
// pins: G6
#[test]
fn a_spare_that_leaves_against_two_who_need_it() {
    model::check(4, || {
        let world = World::new(2, 3);
        with_a_spare_replaced(&world, 2);
        let spare = spawn(&world, |world| wait_in_vain(world, 2));
        let other = spawn(&world, |world| world.replace_alone(1));
        let mut replaced = usize::from(world.replace_alone(0));
        world.assert_manned();
        replaced += usize::from(other.join().unwrap());
        let has_left = spare.join().unwrap();
        let spawned = world.notes().spawned.len();
        assert_eq!(
            replaced,
            usize::from(!has_left) + spawned,
            "on duty and gone, or neither"
        );
        assert_eq!(world.worker_slots.spares(), replaced);
        // A free slot serves a further replacement, but not two.
        let more = [0, 1].map(|index| world.replace_alone(index));
        let free = usize::from(has_left) - spawned;
        assert_eq!(more.into_iter().filter(|&it| it).count(), free);
        world.assert_manned();
        world.assert_came();
    });
}

/// Asks for the replacement of a spare whose step has ended since.
// pins: G6
#[test]
fn who_leaves_is_not_relieved() {
    model::check(4, || {
        let world = World::new(1, 3);
        with_a_spare_replaced(&world, 1);
        let spare = spawn(&world, |world| wait_in_vain(world, 1));
        assert!(!world.replace_alone(1), "nobody needs it");
        world.assert_manned();
        assert!(spare.join().unwrap());
        assert!(!world.worker_slots.is_replaced(1));
        world.assert_came();
    });
}

/// Replaces a worker after its step, which falls asleep while another worker searches: the worker
/// stands down all the same.
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
                let is_replaced = || world.worker_slots.is_replaced(1);
                while !is_replaced() {
                    if idle.sleep(1, false, is_replaced, || false, || None) == Woken::Notified {
                        idle.end_search(|| false);
                    }
                }
            })
        };
        assert!(world.replace_alone(1));
        idle.wake(1);
        worker.join().unwrap();
        idle.end_search(|| false);
        let now = idle.snapshot();
        assert_eq!((now.searching, now.sleeping), (0, 0));
        world.assert_came();
    });
}

/// Halts the scheduler while a worker retires, and while the worker is called back.
// pins: D4
#[test]
fn nobody_waits_after_the_halt() {
    model::check(4, || {
        let world = World::new(1, 2);
        assert!(world.replace_alone(0));
        let worker = spawn(&world, |world| world.end_step(0, HOUR));
        let monitor = spawn(&world, |world| world.replace_alone(1));
        world.halt();
        assert!(worker.join().unwrap());
        monitor.join().unwrap();
        world.assert_came();
    });
}

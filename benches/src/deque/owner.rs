//! The speed of an owner while thieves steal from it.
//!
//! The owner has the first processor, the thieves share the rest. Every run measures the owner
//! alone first, in the same deque, so that "times solo" compares measurements that are close in
//! time.
//!
//! The fewer turns thieves get, the faster is the owner. If other load takes their processors away,
//! the minimum over many figures is wrong. So a run in which an owner or a thief had to wait is
//! repeated, and after a few attempts it has no figures.

use super::solo::{cycle, pushed};
use super::{Deque, Workload};
use crate::contest::{
    Run,
    cpu::{self, Clocks},
    nanoseconds,
};
use std::hint;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// How many pairs the owner does between two looks at the clock.
const PAIRS: u64 = 4_096;

/// The share of their processors that owner and thieves must have had for a run to count.
const ENOUGH: f64 = 0.95;

/// How many times it is tried.
const ATTEMPTS: usize = 5;

/// The endless work of the thieves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prowl {
    /// Take the oldest item of the owner.
    Steal,
    /// Look whether the owner has any, and take nothing.
    Look,
}

/// The owner's time for a push and a pop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    /// How many items are in the deque at most.
    pub(super) depth: u64,
    /// How many thieves.
    pub(super) thieves: usize,
    /// What they do.
    pub(super) prowl: Prowl,
    /// How long the owner is measured alone, and then with the thieves.
    pub(super) time: Duration,
}

impl Workload for Owner {
    fn metrics(&self) -> &'static [&'static str] {
        match self.prowl {
            Prowl::Steal => &["CPU ns", "wall ns", "CPU, times solo", "stolen of 10^6"],
            Prowl::Look => &["CPU ns", "wall ns", "CPU, times solo"],
        }
    }

    fn prepare<D: Deque>(&self) -> Run {
        let owner = *self;
        let metrics = self.metrics().len();
        Box::new(move || {
            let counts = |attempt: &Attempt| attempt.share >= ENOUGH;
            let attempt = (0..ATTEMPTS).map(|_| owner.attempt::<D>()).find(counts);
            attempt.map_or_else(
                || vec![f64::NAN; metrics],
                |Attempt { mut figures, .. }| {
                    figures.truncate(metrics);
                    figures
                },
            )
        })
    }
}

/// A run, which counts if its share is large enough.
struct Attempt {
    figures: Vec<f64>,
    /// The owner's share of its processor, or the thieves' share of their processors: the smaller
    /// of both.
    share: f64,
}

/// The owner's work in a stretch of time.
struct Stretch {
    rounds: u64,
    /// The sum of the popped items.
    popped: u64,
    wall: Duration,
    cpu: Duration,
}

/// Tells the thieves to stop when the owner does, whether it returns or panics.
struct Last<'a>(&'a AtomicBool);

impl Drop for Last<'_> {
    fn drop(&mut self) {
        // Ordering: Relaxed, because joining the thieves orders everything else.
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The loot of a thief.
#[derive(Default)]
struct Loot {
    items: u64,
    sum: u64,
    cpu: Duration,
}

impl Owner {
    fn attempt<D: Deque>(&self) -> Attempt {
        let _pinned = cpu::pin(0);
        // Twice the depth: the items that a suspended thief is taking still have their places.
        let room = usize::try_from(2 * self.depth).expect("a depth that fits memory");
        let deque = D::with_room(room);
        let solo = self.stretch(&deque);
        assert_eq!(solo.popped, pushed(self.depth, solo.rounds));
        let (disturbed, loot) = self.disturbed(&deque);
        assert_eq!(
            disturbed.popped + loot.sum,
            pushed(self.depth, disturbed.rounds)
        );
        let each = |time, stretch: &Stretch| nanoseconds(time, stretch.rounds * self.depth);
        let cpu = each(disturbed.cpu, &disturbed);
        let pairs = disturbed.rounds * self.depth;
        let figures = vec![
            cpu,
            each(disturbed.wall, &disturbed),
            cpu / each(solo.cpu, &solo),
            loot.items as f64 * 1e6 / pairs as f64,
        ];
        let of_wall = |cpu: Duration| cpu.as_secs_f64() / disturbed.wall.as_secs_f64();
        let share = match self.thieves.min(cpu::count() - 1) {
            0 => of_wall(disturbed.cpu),
            others => of_wall(disturbed.cpu).min(of_wall(loot.cpu) / others as f64),
        };
        Attempt { figures, share }
    }

    fn disturbed<D: Deque>(&self, deque: &D) -> (Stretch, Loot) {
        let (started, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            let thief = |nth| {
                let (stealer, prowl) = (deque.stealer(), self.prowl);
                let (started, stop) = (&started, &stop);
                scope.spawn(move || {
                    let _pinned = cpu::pin(1 + nth % (cpu::count() - 1).max(1));
                    let own = D::with_room(1);
                    // Ordering: Relaxed, because it only tells the owner when to begin.
                    started.fetch_add(1, Ordering::Relaxed);
                    prowl_until::<D>(stop, &stealer, &own, prowl)
                })
            };
            let thieves: Vec<_> = (0..self.thieves).map(thief).collect();
            // Ordering: see above.
            while started.load(Ordering::Relaxed) < self.thieves {
                thread::yield_now();
            }
            let last = Last(&stop);
            let stretch = self.stretch(deque);
            drop(last);
            let loot = thieves.into_iter().fold(Loot::default(), |all, thief| {
                let loot = thief.join().expect("a thief does not panic");
                Loot {
                    items: all.items + loot.items,
                    sum: all.sum + loot.sum,
                    cpu: all.cpu + loot.cpu,
                }
            });
            (stretch, loot)
        })
    }

    fn stretch<D: Deque>(&self, deque: &D) -> Stretch {
        let rounds = PAIRS.div_ceil(self.depth);
        let (mut laps, mut popped) = (0, 0);
        let clocks = Clocks::start();
        while clocks.wall() < self.time {
            popped += cycle(deque, self.depth, rounds);
            laps += 1;
        }
        Stretch {
            rounds: laps * rounds,
            popped,
            wall: clocks.wall(),
            cpu: clocks.thread(),
        }
    }
}

/// Steals until `stop`.
fn prowl_until<D: Deque>(stop: &AtomicBool, stealer: &D::Stealer, own: &D, prowl: Prowl) -> Loot {
    let mut loot = Loot::default();
    let clocks = Clocks::start();
    // Ordering: Relaxed; see `Last`.
    while !stop.load(Ordering::Relaxed) {
        match prowl {
            Prowl::Steal => {
                if let Some(item) = D::steal(stealer, own) {
                    loot.items += 1;
                    loot.sum += item;
                }
            }
            Prowl::Look => {
                hint::black_box(D::is_empty(stealer, own));
            }
        }
        hint::spin_loop();
    }
    loot.cpu = clocks.thread();
    loot
}

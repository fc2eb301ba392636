//! A thief takes 32 of 64 items. Many victims are filled, and then all are stolen from. Only the
//! stealing is measured, with a single pair of clock readings for all of them.

use super::{BATCH, Deque, Workload};
use crate::contest::{Run, cpu, nanoseconds};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Enough to make reading the clock cheap, and few enough for the cache of a core.
const VICTIMS: usize = 64;

/// How many items a victim is given.
const ITEMS: u64 = 2 * BATCH as u64;

/// The time for each stolen item.
#[derive(Clone, Copy, Debug)]
pub(super) struct StealHalf {
    /// Whether a thread on another core fills the victims, in place of the thread that steals.
    pub(super) is_far: bool,
    /// Whether the victims are made ready for thieves.
    pub(super) exposed: bool,
    /// How many times all victims are filled and stolen from.
    pub(super) rounds: u64,
}

impl Workload for StealHalf {
    fn prepare<D: Deque>(&self) -> Run {
        let Self {
            is_far,
            exposed,
            rounds,
        } = *self;
        let full = move |victims: Vec<D>| {
            victims.iter().for_each(|victim| fill(victim, exposed));
            victims
        };
        let far = is_far.then(|| Far::new(full));
        let deques = || (0..VICTIMS).map(|_| D::with_room(2 * BATCH)).collect();
        let (mut victims, thieves): (Vec<D>, Vec<D>) = (deques(), deques());
        let stealers: Vec<_> = victims.iter().map(D::stealer).collect();
        Box::new(move || {
            let _pinned = cpu::pin(0);
            let mut time = Duration::ZERO;
            for _ in 0..rounds {
                let empty = std::mem::take(&mut victims);
                victims = match &far {
                    None => full(empty),
                    Some(far) => far.call(empty),
                };
                let start = Instant::now();
                let successes = steal_all(&stealers, &thieves);
                time += start.elapsed();
                assert_eq!(successes, VICTIMS);
                thieves.iter().for_each(check);
            }
            vec![nanoseconds(time, rounds * (VICTIMS * BATCH) as u64)]
        })
    }
}

#[inline(never)]
fn steal_all<D: Deque>(stealers: &[D::Stealer], thieves: &[D]) -> usize {
    let pairs = stealers.iter().zip(thieves);
    pairs
        .filter(|(stealer, own)| D::steal_half(stealer, own))
        .count()
}

/// Empties the victim and gives it the numbers from 1 to 64.
fn fill<D: Deque>(victim: &D, exposed: bool) {
    while victim.pop().is_some() {}
    for item in 1..=ITEMS {
        victim.push(item);
    }
    if exposed {
        victim.expose();
    }
}

/// Empties the thief's deque, in which the 32 oldest must be.
fn check<D: Deque>(own: &D) {
    for item in (1..=BATCH as u64).rev() {
        assert_eq!(own.pop(), Some(item));
    }
    assert_eq!(own.pop(), None);
}

/// A thread on another core that works on each victim, and sends it back.
struct Far<T> {
    to: Sender<T>,
    back: Receiver<T>,
}

impl<T: Send + 'static> Far<T> {
    fn new(f: impl Fn(T) -> T + Send + 'static) -> Self {
        let (to, jobs) = channel();
        let (results, back) = channel();
        // The thread ends when the sender is dropped.
        thread::spawn(move || {
            let _pinned = cpu::pin(1);
            for job in jobs {
                if results.send(f(job)).is_err() {
                    break;
                }
            }
        });
        Self { to, back }
    }

    fn call(&self, job: T) -> T {
        let gone = "the other thread has panicked";
        assert!(self.to.send(job).is_ok(), "{gone}");
        self.back.recv().expect(gone)
    }
}

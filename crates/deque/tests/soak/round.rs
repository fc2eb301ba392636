//! One round of the soak: an owner, its thieves, and the account at the end.
//!
//! **No thread waits for an item**, so a lost item is reported. Thieves go on until the owner has
//! finished, or a thread has panicked. The owner waits in one place: it stands still until thieves
//! have emptied its deque. It gives up after [`owner::MOST_YIELDS`] yields in a row without a
//! shorter deque.

mod owner;
pub(crate) mod plan;
pub(crate) mod tally;
mod thief;

use ganger_deque::{Stealer, Worker};
use ganger_soak::load::{Kind, Load, Nothing, Wide, Word};
use ganger_soak::{Item, Ledger, message};
use plan::Plan;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use tally::Tally;

/// The shared state of a round's threads.
struct Round<'a, L> {
    ledger: &'a Ledger,
    /// The deque of the owner, then the deques of the thieves.
    victims: Vec<Stealer<L>>,
    yields: u32,
    start: Barrier,
    /// How many items the owner has pushed. Shared, because a thread that panics returns nothing.
    pushed: AtomicUsize,
    over: AtomicBool,
}

/// Ends the round when its thread ends, or only if its thread panics.
struct Ends<'r, 'a, L> {
    round: &'r Round<'a, L>,
    always: bool,
}

/// Runs a round. Returns an error if any check fails.
pub(crate) fn run(plan: &Plan) -> Result<Tally, String> {
    let ids = if plan.kind.has_ids() { plan.items } else { 0 };
    let ledger = Ledger::new(ids);
    match plan.kind {
        Kind::Word => run_with::<Word>(plan, &ledger),
        Kind::Boxed => run_with::<Item<'_>>(plan, &ledger),
        Kind::Wide => run_with::<Wide<'_>>(plan, &ledger),
        Kind::Nothing => run_with::<Nothing>(plan, &ledger),
    }
}

fn run_with<'a, L: Load<'a>>(plan: &Plan, ledger: &'a Ledger) -> Result<Tally, String> {
    let worker = Worker::with_capacity(plan.capacity);
    let capacities = plan.thieves.iter().map(|thief| thief.capacity);
    let owned: Vec<Worker<L>> = capacities.map(Worker::with_capacity).collect();
    let round = Round {
        ledger,
        victims: [&worker]
            .into_iter()
            .chain(&owned)
            .map(Worker::stealer)
            .collect(),
        yields: plan.yields,
        start: Barrier::new(1 + owned.len()),
        pushed: AtomicUsize::new(0),
        over: AtomicBool::new(false),
    };
    let mut panics = false;
    let mut sum = Tally::default();
    thread::scope(|scope| {
        let round = &round;
        let mut threads = vec![scope.spawn(move || owner::run(round, plan, worker))];
        for (plan, own) in plan.thieves.iter().zip(owned) {
            threads.push(scope.spawn(move || thief::run(round, plan, own)));
        }
        for thread in threads {
            match thread.join() {
                Ok(tally) => sum += tally,
                Err(panic) => {
                    panics = true;
                    ledger.fault(format!("a panic: {}", message(&*panic)));
                }
            }
        }
    });
    // Ordering: Relaxed, because the threads have been joined.
    sum.pushed = round.pushed.load(Ordering::Relaxed);
    if !panics {
        round.check_end(&sum);
    }
    let made = if plan.kind.has_ids() { sum.pushed } else { 0 };
    ledger.settle(0..made).map(|()| sum)
}

impl<'a, L: Load<'a>> Round<'a, L> {
    fn is_over(&self) -> bool {
        // Ordering: Relaxed, because it only tells others when to stop.
        self.over.load(Ordering::Relaxed)
    }

    /// Checks the rest, outside of the ledger: the number of items without an id, and the deques.
    fn check_end(&self, sum: &Tally) {
        if !L::ENTERS_ITSELF && sum.taken != sum.pushed {
            let what = format!("{} items pushed and {} taken", sum.pushed, sum.taken);
            self.ledger.fault(what);
        }
        for victim in &self.victims {
            if !victim.is_empty() || !victim.steal().is_empty() {
                self.ledger
                    .fault(format!("its worker is gone, and still: {victim:?}"));
            }
        }
    }
}

impl<L> Drop for Ends<'_, '_, L> {
    fn drop(&mut self) {
        if self.always || thread::panicking() {
            // Ordering: Relaxed, because it only tells others when to stop.
            self.round.over.store(true, Ordering::Relaxed);
        }
    }
}

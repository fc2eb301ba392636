//! Queues from many threads to a single thread, side by side: a trait, an implementation for each,
//! and workloads that are generic over the trait and over the message, for the row `mailbox` of
//! `cargo xtask bench`.

mod bounded;
mod counting;
mod peers;
mod producers;
mod solo;

pub use counting::Counting;

use crate::contest::{Contest, Run};
use bounded::Bounded;
use ganger_mpsc::Batch;
use peers::{AsyncChannel, Concurrent, Crossbeam, Flume, Ganger, Kanal, Queued, Seg, Std, Tokio};
use producers::{Blocking, Producers, PushAll};
use solo::{Drain, Heap, ITEMS, OneThread};

/// The consumer's side of an unbounded queue of `P`.
trait Mailbox<P>: Sized + 'static {
    /// Its name in the tables: the name of its package.
    const NAME: &'static str;

    /// The producers' side.
    type Sender: Clone + Send + 'static;

    /// Creates an empty queue.
    fn channel() -> (Self::Sender, Self);

    /// Adds an item as the newest.
    ///
    /// # Panics
    /// When the consumer is gone.
    fn send(sender: &Self::Sender, item: P);

    /// Takes the oldest item, if any.
    fn try_recv(&mut self) -> Option<P>;

    /// Frees the calling thread's cached memory of dropped queues, if the queue has such a cache.
    fn forget() {}
}

/// A queue whose consumer can sleep.
trait Waits<P>: Mailbox<P> {
    /// Takes the oldest item, and sleeps until an item comes; `None` if the queue is empty and all
    /// producers are gone.
    fn recv(&mut self) -> Option<P>;
}

/// A queue with a call for all its items at once.
trait Drains<P>: Mailbox<P> {
    /// Takes everything.
    fn drain(&mut self) -> Batch<P>;
}

/// A message with a number.
trait Payload: Copy + Send + 'static {
    /// Its name in the tables.
    const NAME: &'static str;

    /// Returns a message with a number.
    fn of(number: u64) -> Self;

    /// Returns a value to which every word contributes, so that no queue is spared copying all
    /// words: the number times [`Payload::WORDS`].
    fn weight(self) -> u64;

    /// The number of words.
    const WORDS: u64;
}

/// Words; a single word is as good as a number.
impl<const N: usize> Payload for [u64; N] {
    const NAME: &'static str = if N == 1 { "u64" } else { "48 bytes" };
    const WORDS: u64 = N as u64;

    #[inline]
    fn of(number: u64) -> Self {
        [number; N]
    }

    #[inline]
    fn weight(self) -> u64 {
        self.iter().sum()
    }
}

/// Returns the weight of a message for each number from 1 to `last`.
fn weight_to<P: Payload>(last: u64) -> u64 {
    P::WORDS * (last * (last + 1) / 2)
}

/// A workload of queues.
trait Workload<P: Payload> {
    /// Returns its metrics, with units. Of every figure, less is better.
    fn metrics(&self) -> &'static [&'static str] {
        &["ns"]
    }

    /// Does the unmeasured part.
    fn prepare<M: Mailbox<P>>(&self) -> Run;
}

fn entrant<P: Payload, M: Mailbox<P>>(workload: &impl Workload<P>) -> (&'static str, Run) {
    (M::NAME, workload.prepare::<M>())
}

/// Returns the workload with all queues. Its `name` in the tables has its size, but no payload.
fn contest<P: Payload>(name: &str, workload: &impl Workload<P>) -> Contest {
    let entrants = vec![
        entrant::<P, Ganger<P>>(workload),
        entrant::<P, Std<P>>(workload),
        entrant::<P, Crossbeam<P>>(workload),
        entrant::<P, Flume<P>>(workload),
        entrant::<P, Kanal<P>>(workload),
        entrant::<P, Tokio<P>>(workload),
        entrant::<P, AsyncChannel<P>>(workload),
        entrant::<P, Concurrent<P>>(workload),
        entrant::<P, Seg<P>>(workload),
    ];
    Contest::new(title::<P>(name), workload.metrics(), entrants)
}

/// Returns the name in the tables of a workload with such payloads.
fn title<P: Payload>(workload: &str) -> String {
    format!("{workload}, {}", P::NAME)
}

/// Returns the workloads with all queues, ready to run. `quick` makes them small: enough to see
/// that they work, too little to say how fast.
pub(crate) fn contests(quick: bool) -> Vec<Contest> {
    let scale = if quick { 1 } else { 100 };
    let mut contests = heap();
    // Both payloads of a workload follow each other.
    for (few, many) in contests_of::<[u64; 1]>(scale)
        .into_iter()
        .zip(contests_of::<[u64; 6]>(scale))
    {
        contests.extend(few);
        contests.extend(many);
    }
    contests.extend(bounded(if quick { 4_000 } else { 400_000 }));
    contests
}

/// Returns the contests of memory and allocations: counts are the same for any number of rounds.
fn heap() -> Vec<Contest> {
    fn of<P: Payload>() -> Contest {
        let (burst, rounds) = (100, 100);
        let heap = Heap { burst, rounds };
        contest::<P>("heap", &heap).and("ganger-mpsc, Queue", heap.of_queue::<P>())
    }
    vec![of::<[u64; 1]>(), of::<[u64; 6]>()]
}

/// Returns the contests of each workload with a payload.
fn contests_of<P: Payload>(scale: u64) -> [Vec<Contest>; 5] {
    let (burst, rounds) = (100, 50 * scale);
    let one_thread = OneThread { burst, rounds };
    let producers = |producers| {
        let each = 4_000 * scale / producers as u64;
        let workload = Producers { producers, each };
        contest::<P>(&format!("{producers} producers, polling"), &workload)
            .and("ganger-mpsc, drain", workload.draining::<P, Ganger<P>>())
    };
    let queue = entrant::<P, Queued<P>>(&one_thread);
    let one_thread = contest::<P>(&format!("one thread, bursts of {burst}"), &one_thread);
    let (two, each) = (2, 1_600 * scale);
    let two = Producers {
        producers: two,
        each,
    };
    let messages = 1_500 * scale;
    [
        vec![one_thread.and(queue.0, queue.1)],
        vec![drain::<P>(4 * scale)],
        vec![producers(2), producers(4)],
        vec![PushAll(two).contest::<P>()],
        vec![Blocking { messages }.contest::<P>()],
    ]
}

/// Returns the contests of as many strings through channels of every size.
fn bounded(strings: usize) -> Vec<Contest> {
    let sizes = [16, 1_024, 16_384].map(|capacity| {
        [1, 2, 8].map(|producers| Bounded {
            capacity,
            producers,
            each: strings / producers,
        })
    });
    sizes.into_iter().flatten().map(Bounded::contest).collect()
}

/// Returns the contest of taking many items. Ganger's own way is to drain; Ganger can receive as
/// its peers do, too.
fn drain<P: Payload>(rounds: u64) -> Contest {
    let workload = Drain { rounds };
    contest::<P>(&format!("take {ITEMS} that wait, an item"), &workload)
        .and("ganger-mpsc, drain", workload.at_once::<P, Ganger<P>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::tests::check;

    #[test]
    fn every_workload_works_with_every_queue() {
        check(contests(true), |_, metric| {
            (false, metric.ends_with("million messages"))
        });
    }

    #[test]
    fn in_steady_state_ganger_does_not_allocate_and_others_do() {
        for contest in heap() {
            let outcome = contest.run(1);
            let steady = |name: &str| {
                let row = outcome.rows.iter().find(|row| row.name == name);
                *row.unwrap().samples.last().unwrap().last().unwrap()
            };
            assert!(steady("ganger-mpsc") < 1e-9);
            assert!(steady("ganger-mpsc, Queue") < 1e-9);
            assert!(steady("std") > 1e4, "one for 31 messages");
        }
    }
}

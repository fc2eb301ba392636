//! The items that a consumer has received. Checks their order, and the operations of batches.

use super::Round;
use super::tally::Tally;
use fastrand::Rng;
use ganger_mpsc::Batch;
use ganger_soak::Load;
use ganger_soak::chance::one_in;
use std::collections::VecDeque;
use std::mem;

/// The number of kept items above which `tend` ends some.
const MOST_KEPT: usize = 5_000;

pub(super) struct Intake<'r, 'a, L> {
    round: &'r Round<'a>,
    /// The number that each producer's next item must have.
    next: Vec<usize>,
    /// Items that are received, and not yet ended.
    kept: Batch<L>,
    /// The ids of the items in `kept`, the oldest first.
    ids: VecDeque<Option<usize>>,
    pub(super) tally: Tally,
}

impl<'r, 'a, L: Load<'a>> Intake<'r, 'a, L> {
    pub(super) fn new(round: &'r Round<'a>) -> Self {
        Self {
            round,
            next: vec![0; round.plan.producers.len()],
            kept: Batch::new(),
            ids: VecDeque::new(),
            tally: Tally::default(),
        }
    }

    /// Returns how many items have been received.
    pub(super) fn received(&self) -> usize {
        self.tally.received
    }

    /// Ends a received item.
    pub(super) fn take(&mut self, item: L) {
        self.arrive(item.id());
        item.end(self.round.ledger);
        self.tally.received += 1;
    }

    /// Ends the items of a drain, or keeps them for later.
    pub(super) fn take_batch(&mut self, batch: Batch<L>) {
        if self.round.plan.consumer.keeps {
            self.keep(batch);
        } else {
            self.tally.received += self.end(batch);
        }
    }

    /// Ends the items of a close.
    pub(super) fn take_closed(&mut self, batch: Batch<L>) {
        self.tally.closed += self.end(batch);
    }

    /// Performs a random operation on the kept items.
    pub(super) fn tend(&mut self, random: &mut Rng) {
        if self.kept.len() > MOST_KEPT {
            self.pop(random.usize(1..=MOST_KEPT));
        } else if !self.kept.is_empty() {
            match random.u32(0..8) {
                0 | 1 => self.pop(random.usize(1..=self.kept.len().min(20))),
                2 => self.look(random.usize(0..=self.kept.len().min(50))),
                3 => self.put_back(),
                4 if L::ENTERS_ITSELF && one_in(random, 20) => {
                    self.ids.clear();
                    drop(mem::take(&mut self.kept));
                }
                5 if one_in(random, 20) => self.take_some(random.usize(0..=self.kept.len())),
                _ => {}
            }
        }
    }

    /// Ends all kept items.
    pub(super) fn finish(&mut self) {
        self.look(usize::MAX);
        self.pop(usize::MAX);
    }

    fn keep(&mut self, batch: Batch<L>) {
        let before = self.ids.len();
        for item in &batch {
            self.arrive(item.id());
            self.ids.push_back(item.id());
        }
        self.check_len(&batch, self.ids.len() - before);
        self.tally.received += batch.len();
        self.kept.append(batch);
    }

    /// Ends all items of a batch, and returns their number.
    fn end(&mut self, batch: Batch<L>) -> usize {
        let (len, mut count) = (batch.len(), 0);
        for item in batch {
            self.arrive(item.id());
            item.end(self.round.ledger);
            count += 1;
        }
        if count != len {
            self.round
                .fault(format!("{count} items in a batch of {len}"));
        }
        count
    }

    /// Checks that the numbers of each producer come without a gap.
    fn arrive(&mut self, id: Option<usize>) {
        let Some(id) = id else {
            return;
        };
        let (producer, number) = (id / self.round.plan.items, id % self.round.plan.items);
        let Some(next) = self.next.get_mut(producer) else {
            self.round.fault(format!("item {id} is of no producer"));
            return;
        };
        if number != *next {
            let what = format!("item {number} of producer {producer} instead of {next}");
            self.round.fault(what);
        }
        *next = number + 1;
    }

    fn pop(&mut self, count: usize) {
        for _ in 0..count {
            let (item, id) = (self.kept.pop_front(), self.ids.pop_front());
            let Some(item) = item else {
                if let Some(id) = id {
                    self.round.fault(format!("item {id:?} is not in its batch"));
                }
                return;
            };
            self.check_kept(&item, id);
            item.end(self.round.ledger);
        }
    }

    /// Checks the `count` oldest items.
    fn look(&self, count: usize) {
        self.check_len(&self.kept, self.ids.len());
        for (item, id) in self.kept.iter().zip(&self.ids).take(count) {
            self.check_kept(item, Some(*id));
        }
    }

    /// Takes the oldest item, and puts it in front again.
    fn put_back(&mut self) {
        if let Some(item) = self.kept.pop_front() {
            self.kept.push_front(item);
        }
    }

    /// Takes `count` items by value, and drops the iterator with the rest.
    fn take_some(&mut self, count: usize) {
        let mut items = mem::take(&mut self.kept).into_iter();
        for item in items.by_ref().take(count) {
            let id = self.ids.pop_front();
            self.check_kept(&item, id);
            item.end(self.round.ledger);
        }
        if L::ENTERS_ITSELF {
            self.ids.clear();
        } else {
            // Items without a destructor would be lost.
            self.kept = items.collect();
        }
    }

    fn check_kept(&self, item: &L, id: Option<Option<usize>>) {
        if id != Some(item.id()) {
            let (found, expected) = (item.id(), id.flatten());
            let what = format!("item {found:?} in a batch instead of {expected:?}");
            self.round.fault(what);
        }
    }

    fn check_len(&self, batch: &Batch<L>, expected: usize) {
        if batch.len() != expected || batch.is_empty() != (expected == 0) {
            let what = format!("a batch of {expected} has {} items", batch.len());
            self.round.fault(what);
        }
    }
}

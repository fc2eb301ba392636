//! The waiters at each end of a channel, first come first served.
//!
//! **Protocol.** All entries of a channel are in one table, guarded by the channel's lock. The
//! entries of waiters are linked; the other entries keep an outcome until their owner takes it. A
//! served waiter's waker leaves its entry at once, under the lock, as the thread wakes it later.

use crate::claim::{Claim, Claimed};
use ganger_sync::{WaitList, WaitTable};
use std::sync::Arc;
use std::task::Waker;

/// The number of an entry in the table.
pub(crate) type Key = u32;

/// The waiter to be woken when a wait is over.
#[derive(Debug)]
pub(crate) enum WakeTarget {
    /// A wait at this channel alone.
    One(Waker),
    /// A select that waits here for the case with this number.
    Select(Arc<Claim>, usize),
}

/// The state of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The entry is linked, and its waiter is woken at the end.
    Waiting,
    /// The sender's value has been taken, or the receiver's value has come.
    Met,
    /// The channel is closed. The entry still has the value of a sender.
    Closed,
    /// Another case of its select has been chosen.
    TooLate,
}

/// A wait. Its fields are written and read in their place: a move of an entry stalls.
pub(crate) struct WaiterEntry<T> {
    pub(crate) stage: Stage,
    /// The waker, unless a select waits.
    waker: Option<Waker>,
    /// The select that waits, with the number of its case.
    select: Option<Arc<Claim>>,
    case: usize,
    /// The value of a waiting sender; of a served receiver, the received value, with its number.
    pub(crate) value: Option<T>,
    pub(crate) number: u64,
}

/// The contents of an entry that are dropped without the lock.
#[must_use = "it is dropped without the lock"]
pub(crate) struct Remains {
    _waker: Option<Waker>,
    _select: Option<Arc<Claim>>,
}

/// All entries of a channel.
pub(crate) struct Entries<T>(WaitTable<WaiterEntry<T>>);

impl<T> Entries<T> {
    pub(crate) const fn new() -> Self {
        Self(WaitTable::new())
    }

    #[inline]
    pub(crate) fn at(&mut self, key: Key) -> &mut WaiterEntry<T> {
        match self.0.get_mut(key) {
            Some(entry) => entry,
            None => unreachable!("its owner takes it once"),
        }
    }

    /// Adds an entry at the end of the list. O(1), amortised.
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        list: &mut WaitList,
        target: WakeTarget,
        value: Option<T>,
    ) -> Key {
        let (waker, select, case) = match target {
            WakeTarget::One(waker) => (Some(waker), None, 0),
            WakeTarget::Select(select, case) => (None, Some(select), case),
        };
        let entry = WaiterEntry {
            stage: Stage::Waiting,
            waker,
            select,
            case,
            value,
            number: 0,
        };
        self.0.push_back(list, entry)
    }

    /// Serves the first waiter of the list that can be served: its next stage is `next`. Returns
    /// the waker, too, to be woken without the lock.
    #[inline]
    pub(crate) fn serve(&mut self, list: &mut WaitList, next: Stage) -> Option<(Key, Wake)> {
        let key = list.first()?;
        let entry = self.at(key);
        if entry.select.is_some() {
            return self.serve_selects(list, next);
        }
        entry.stage = next;
        let waker = entry.waker.take();
        self.0.unlink(list, key);
        Some((key, Wake(waker)))
    }

    /// As [`serve`](Self::serve), if the first waiter is a select.
    fn serve_selects(&mut self, list: &mut WaitList, next: Stage) -> Option<(Key, Wake)> {
        let mut first = list.first();
        while let Some(key) = first {
            let entry = self.at(key);
            let claimed = match &entry.select {
                Some(claim) => claim.try_claim(entry.case),
                None => Claimed::Yes,
            };
            match claimed {
                Claimed::Yes => {
                    entry.stage = next;
                    let waker = match &entry.select {
                        Some(claim) => claim.take_waker(),
                        None => entry.waker.take(),
                    };
                    self.0.unlink(list, key);
                    return Some((key, Wake(waker)));
                }
                Claimed::Busy => first = self.0.after(key),
                Claimed::TooLate => {
                    // Its waiter is not woken here: the thread that chose the other case has its
                    // waker.
                    entry.stage = Stage::TooLate;
                    first = self.0.after(key);
                    self.0.unlink(list, key);
                }
            }
        }
        None
    }

    /// Returns `None` if the wait is over, and otherwise whether `waker` is woken at its end.
    #[inline]
    pub(crate) fn still_waits(&mut self, key: Key, waker: &Waker) -> Option<bool> {
        let entry = self.at(key);
        if entry.stage != Stage::Waiting {
            return None;
        }
        let is_same = entry.waker.as_ref().map(|its| its.will_wake(waker));
        Some(is_same.unwrap_or(true))
    }

    /// Sets the waker of a wait, if it goes on. Returns the waker to be dropped.
    pub(crate) fn change_waker(&mut self, key: Key, waker: Waker) -> Result<Option<Waker>, Waker> {
        let entry = self.at(key);
        if entry.stage != Stage::Waiting || entry.select.is_some() {
            return Err(waker);
        }
        Ok(entry.waker.replace(waker))
    }

    /// Removes an entry in any stage. Returns its contents.
    #[inline(always)]
    pub(crate) fn take(&mut self, list: &mut WaitList, key: Key) -> (Remains, Option<T>, u64) {
        let entry = self.at(key);
        let remains = Remains {
            _waker: entry.waker.take(),
            _select: entry.select.take(),
        };
        let (value, number) = (entry.value.take(), entry.number);
        self.0.discard(list, key);
        (remains, value, number)
    }
}

/// A waiter to be woken, once the lock is free.
#[must_use = "the waiter must be woken"]
#[derive(Debug)]
pub(crate) struct Wake(Option<Waker>);

impl Wake {
    #[inline]
    pub(crate) fn wake(self) {
        if let Some(waker) = self.0 {
            waker.wake();
        }
    }
}

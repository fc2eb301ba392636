//! The waiters at each end of a channel, first come first served.
//!
//! **Protocol.** All entries of a channel are in one table, guarded by the channel's lock. The
//! entries of waiters are linked; the other entries keep an outcome until their owner takes it.

use crate::claim::{Claim, Claimed};
use ganger_sync::{WaitList, WaitTable};
use std::mem;
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
#[derive(Debug)]
pub(crate) enum Stage {
    /// The entry is linked, and `WakeTarget` is woken at the end.
    Waiting(WakeTarget),
    /// The sender's value has been taken, or the receiver's value has come.
    Met,
    /// The channel is closed. The entry still has the value of a sender.
    Closed,
    /// Another case of its select has been chosen.
    TooLate,
}

pub(crate) struct WaiterEntry<T> {
    pub(crate) stage: Stage,
    /// The value of a waiting sender; of a served receiver, the received value, with its number.
    pub(crate) value: Option<T>,
    pub(crate) number: u64,
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
    #[inline]
    pub(crate) fn push(
        &mut self,
        list: &mut WaitList,
        target: WakeTarget,
        value: Option<T>,
    ) -> Key {
        let entry = WaiterEntry {
            stage: Stage::Waiting(target),
            value,
            number: 0,
        };
        self.0.push_back(list, entry)
    }

    /// Serves the first waiter of the list that can be served: its next stage is `next()`.
    #[inline]
    pub(crate) fn serve(
        &mut self,
        list: &mut WaitList,
        next: fn() -> Stage,
    ) -> Option<(Key, WakeTarget)> {
        let mut first = list.first();
        while let Some(key) = first {
            let entry = self.at(key);
            let claimed = match &entry.stage {
                Stage::Waiting(WakeTarget::Select(claim, case)) => claim.try_claim(*case),
                _ => Claimed::Yes,
            };
            match claimed {
                Claimed::Yes => {
                    let before = mem::replace(&mut entry.stage, next());
                    self.0.unlink(list, key);
                    return match before {
                        Stage::Waiting(target) => Some((key, target)),
                        _ => unreachable!("only waiters are in a list"),
                    };
                }
                Claimed::Busy => first = self.0.after(key),
                Claimed::TooLate => {
                    // Its target is not woken here: the select has another waker, or the claiming
                    // thread has it.
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
        match &self.at(key).stage {
            Stage::Waiting(WakeTarget::One(its)) => Some(its.will_wake(waker)),
            Stage::Waiting(WakeTarget::Select(..)) => Some(true),
            _ => None,
        }
    }

    /// Removes an entry in any stage. Returns its contents.
    #[inline]
    pub(crate) fn take(&mut self, list: &mut WaitList, key: Key) -> (Stage, Option<T>, u64) {
        match self.0.remove(list, key) {
            Some(entry) => (entry.stage, entry.value, entry.number),
            None => unreachable!("its owner takes it once"),
        }
    }
}

//! Histories of a strong name or a lock.

use crate::linear::{Called, Object, is_linearizable};
use crate::node::FencingToken;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The observations of owners and askers of a strong name or a lock, each with the times of the
/// call and of its answer. All times are of one clock, or are numbers in the order of the acts.
///
/// ```
/// use ganger_cluster::{FencingToken, conformance::OwnerHistory};
///
/// let mut history = OwnerHistory::default();
/// history.granted(FencingToken(7), 1..=3);
/// history.used(FencingToken(7), 6..=6);
/// history.granted(FencingToken(9), 2..=8);
/// assert_eq!(history.check(), Ok(2));
/// history.used(FencingToken(7), 10..=11); // behind the next owner
/// assert!(history.check().is_err());
/// ```
#[derive(Debug, Clone, Default)]
pub struct OwnerHistory {
    calls: Vec<Called<Turn>>,
    /// The first and the last use of each owner.
    uses: BTreeMap<FencingToken, [RangeInclusive<u64>; 2]>,
}

/// An act of an owner, or a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Take(FencingToken),
    Use(FencingToken),
    /// The owner gives up, or has crashed, or its lease is over.
    Leave(FencingToken),
    Found(Option<FencingToken>),
}

/// A name or a lock, by its turns one after the other.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Turns {
    owner: Option<FencingToken>,
    /// The greatest token so far.
    last: Option<FencingToken>,
}

impl Object for Turns {
    type Op = Turn;

    fn after(&self, turn: &Turn, _: bool) -> Option<Self> {
        let is_owner = |token| self.owner == Some(token);
        let is_free = self.owner.is_none();
        match *turn {
            Turn::Take(token) => (is_free && self.last < Some(token)).then_some(Self {
                owner: Some(token),
                last: Some(token),
            }),
            Turn::Use(token) => is_owner(token).then(|| self.clone()),
            Turn::Leave(token) => is_owner(token).then_some(Self {
                owner: None,
                last: self.last,
            }),
            Turn::Found(None) => is_free.then(|| self.clone()),
            Turn::Found(Some(token)) if is_owner(token) => Some(self.clone()),
            // The entry of an owner that has given up, or does not know of its entry.
            Turn::Found(token) => (is_free && self.last <= token).then_some(Self {
                owner: None,
                last: token,
            }),
        }
    }
}

impl OwnerHistory {
    /// Notes the answer to a claim: the claimant is the owner.
    pub fn granted(&mut self, token: FencingToken, time: RangeInclusive<u64>) {
        self.note(Turn::Take(token), &time);
    }

    /// Notes that an owner has looked, and still was the owner by its own clock.
    pub fn used(&mut self, token: FencingToken, time: RangeInclusive<u64>) {
        // A token is taken once, so the first and the last use say as much as all.
        let uses = self.uses.entry(token);
        let [first, last] = uses.or_insert_with(|| [time.clone(), time.clone()]);
        if time.end() < first.end() {
            *first = time.clone();
        }
        if last.start() < time.start() {
            *last = time;
        }
    }

    /// Notes an answer of the store: this owner has the name, or none has. A refused claim is such
    /// an answer.
    pub fn found(&mut self, owner: Option<FencingToken>, time: RangeInclusive<u64>) {
        self.note(Turn::Found(owner), &time);
    }

    fn note(&mut self, op: Turn, time: &RangeInclusive<u64>) {
        self.calls.push(Called {
            op,
            called: *time.start(),
            returned: Some(*time.end()),
        });
    }

    /// Looks for an order of all calls. In the order at most one owner exists at a time, each token
    /// is greater than all before, and each answer is right. Claims without a known answer need no
    /// note: an entry of an unknown owner is allowed where no known owner is. Returns the number of
    /// owners.
    ///
    /// # Errors
    /// The history has no such order: the text has the first calls without an order.
    pub fn check(&self) -> Result<usize, String> {
        let mut calls = self.calls.clone();
        let mut taken = BTreeMap::new();
        for call in &self.calls {
            if let Turn::Take(token) = call.op {
                taken.insert(token, call.called);
            }
        }
        for (token, [first, last]) in &self.uses {
            // The answer to the claim is not known.
            if !taken.contains_key(token) {
                calls.push(Called {
                    op: Turn::Take(*token),
                    called: 0,
                    returned: Some(*first.end()),
                });
            }
            let sure = taken.entry(*token).or_default();
            *sure = (*last.start()).max(*sure);
            calls.push(Called {
                op: Turn::Use(*token),
                called: *last.start(),
                returned: Some(*last.end()),
            });
        }
        let owners = taken.len();
        calls.extend(taken.into_iter().map(|(token, called)| Called {
            op: Turn::Leave(token),
            called,
            returned: None,
        }));
        match has_order(&calls) {
            true => Ok(owners),
            false => Err(first_without_order(calls)),
        }
    }
}

fn has_order(calls: &[Called<Turn>]) -> bool {
    let begin = Turns {
        owner: None,
        last: None,
    };
    is_linearizable(&begin, calls)
}

/// Returns the last calls of the shortest beginning that has no order.
fn first_without_order(mut calls: Vec<Called<Turn>>) -> String {
    const SHOWN: usize = 12;
    calls.sort_by_key(|it| it.called);
    let until = |end: u64| {
        let begun = calls.iter().filter(|it| it.called <= end).cloned();
        let begun = begun.map(|mut call| {
            call.returned = call.returned.filter(|at| *at <= end);
            call
        });
        begun.collect::<Vec<_>>()
    };
    let mut ends: Vec<_> = calls.iter().filter_map(|it| it.returned).collect();
    ends.sort_unstable();
    let first = ends.partition_point(|end| has_order(&until(*end)));
    let mut shown = ends.get(first).map_or_else(Vec::new, |end| until(*end));
    let skipped = shown.len().saturating_sub(SHOWN);
    shown.drain(..skipped);
    let shown: Vec<_> = shown.iter().map(|it| format!("{it:?}")).collect();
    format!(
        "{skipped} calls, and these, have no order:\n{}",
        shown.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    type Note = fn(&mut OwnerHistory);

    const fn token(number: u64) -> FencingToken {
        FencingToken(number)
    }

    /// Returns a history with an owner from 1 to 20 at least, and the next from 30 on.
    fn two() -> OwnerHistory {
        let mut history = OwnerHistory::default();
        history.granted(token(5), 1..=2);
        history.used(token(5), 20..=21);
        history.used(token(5), 10..=11);
        history.granted(token(8), 3..=30);
        history.used(token(8), 40..=41);
        history
    }

    #[test]
    fn right_histories_have_an_order() {
        let rights: [Note; 8] = [
            |_| {},
            |it| it.found(Some(token(5)), 4..=5),
            // The store keeps an entry for longer than its owner, and has it before.
            |it| it.found(Some(token(5)), 22..=23),
            |it| it.found(Some(token(8)), 22..=23),
            |it| it.found(None, 22..=29),
            // Entries whose owners know nothing.
            |it| it.found(Some(token(6)), 22..=23),
            |it| it.found(Some(token(9)), 50..=51),
            // The look overlaps the change.
            |it| it.used(token(5), 28..=70),
        ];
        for (number, right) in rights.iter().enumerate() {
            let mut history = two();
            right(&mut history);
            assert_eq!(history.check(), Ok(2), "{number}");
        }
        let mut history = two();
        history.used(token(6), 25..=26);
        assert_eq!(history.check(), Ok(3));
    }

    #[test]
    fn wrong_histories_have_none() {
        let wrongs: [Note; 9] = [
            // Two owners at a time.
            |it| it.used(token(5), 31..=32),
            |it| it.granted(token(9), 33..=34),
            // Tokens used again, or out of order.
            |it| it.granted(token(8), 50..=51),
            |it| it.granted(token(7), 50..=51),
            |it| it.granted(token(5), 0..=60),
            // Old answers, or early answers.
            |it| it.found(Some(token(5)), 31..=32),
            |it| it.found(None, 12..=13),
            |it| it.found(Some(token(8)), 12..=13),
            // A claim with an unknown answer is an owner's, once it is used.
            |it| it.used(token(6), 31..=32),
        ];
        for (number, wrong) in wrongs.iter().enumerate() {
            let mut history = two();
            wrong(&mut history);
            assert!(history.check().is_err(), "{number}");
        }
    }

    #[test]
    fn the_report_ends_with_the_first_call_that_is_wrong() {
        let mut history = two();
        history.granted(token(7), 50..=51);
        history.granted(token(10), 60..=61);
        let report = history.check().unwrap_err();
        assert!(!report.contains("61"), "{report}");
        assert!(report.contains("Take(FencingToken(7))"), "{report}");
    }
}

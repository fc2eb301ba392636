//! The account of a run: what nodes say of messages, of ended sessions, and of monitors.
//!
//! Each sender numbers its messages to a receiving process, from 0, once they are accepted. A
//! receiver says the numbers as they come. So
//!
//! 1. the numbers of a sender and a receiver only grow: in order, and once;
//! 2. a gap is a part of a session that has ended: there are no more gaps than ends, and no more
//!    messages in these than the ends have counted;
//! 3. at most one node owns a name or a lock at a time, and later owners have greater numbers: the
//!    history of each is linearizable;
//! 4. a node that is killed says no more, so what was sent to it, or what its last words were, has
//!    no end.

use ganger_cluster::FencingToken;
use ganger_cluster::conformance::OwnerHistory;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

/// A run of a node: its name, and the number of its incarnation.
pub(crate) type Run = (String, u64);

/// The messages of a sender to a receiver.
#[derive(Debug, Default)]
struct Pair {
    /// The next number, if all before have come.
    next: u64,
    received: u64,
    gaps: u64,
    missing: u64,
}

/// The ended sessions of a node with a run of another.
#[derive(Debug, Default)]
struct Ends {
    times: u64,
    undelivered: u64,
}

/// The words of all nodes, and the faults among these.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// By the sender's run, and the PID of the receiver.
    pairs: BTreeMap<(Run, u64), Pair>,
    /// By the run of the side that was told, and the other run. Incarnation 0 is where no session
    /// came about.
    ends: BTreeMap<(Run, Run), Ends>,
    monitors: [u64; 2],
    /// By the name or the lock.
    owners: BTreeMap<String, OwnerHistory>,
    faults: Vec<String>,
}

/// The figures of a run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// Received messages.
    pub received: u64,
    /// Lost messages, whose session's end was told, between programs that were not killed.
    pub lost: u64,
    /// Ended sessions.
    pub ends: u64,
    /// Monitors: each was told once.
    pub monitors: u64,
    /// Owners of names and locks, whose history is linearizable.
    pub owners: u64,
    /// Events of the plan.
    pub events: u64,
    /// Killed programs.
    pub kills: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            received,
            lost,
            ends,
            monitors,
            owners,
            events,
            kills,
        } = self;
        write!(
            f,
            "{events} events, {kills} kills: {received} messages received, {lost} lost with \
             notice, {ends} ends told, {monitors} monitors told once, {owners} owners of names \
             and locks one after the other"
        )
    }
}

impl Account {
    /// Notes a fault that a node has found itself.
    pub(crate) fn fault(&mut self, what: impl Into<String>) {
        if self.faults.len() < 20 {
            self.faults.push(what.into());
        }
    }

    pub(crate) fn faults(&self) -> &[String] {
        &self.faults
    }

    /// Notes the numbers from `first` to `last`, which a receiver has got.
    pub(crate) fn got(&mut self, sender: &Run, receiver: u64, first: u64, last: u64) {
        let pair = self.pairs.entry((sender.clone(), receiver)).or_default();
        if first < pair.next || last < first {
            let next = pair.next;
            return self.fault(format!(
                "{sender:?} to {receiver}: {first} to {last} after {next}: twice, or out of order"
            ));
        }
        pair.gaps += u64::from(first > pair.next);
        pair.missing += first - pair.next;
        pair.received += last - first + 1;
        pair.next = last + 1;
    }

    /// Notes the end of a session, of which a node was told.
    pub(crate) fn ended(&mut self, node: &Run, other: &Run, undelivered: u64) {
        let ends = self.ends.entry((node.clone(), other.clone())).or_default();
        ends.times += 1;
        ends.undelivered += undelivered;
    }

    /// Adds the `set` monitors of the watcher of a node, and its `told` notices.
    pub(crate) fn monitors(&mut self, set: u64, told: u64) {
        self.monitors[0] += set;
        self.monitors[1] += told;
    }

    /// Notes with its token that a node has a name or a lock, uses it, or has asked for its owner.
    pub(crate) fn owner(&mut self, of: &str, what: &str, token: u64, time: RangeInclusive<u64>) {
        let history = self.owners.entry(of.to_owned()).or_default();
        let token = FencingToken(token);
        match what {
            "held" => history.granted(token, time),
            "used" => history.used(token, time),
            _ => history.found((token.0 > 0).then_some(token), time),
        }
    }

    /// Checks, at the end, the count of numbers that a sender says it sent to a receiver; both
    /// live.
    pub(crate) fn sent(&mut self, sender: &Run, receiver_run: &Run, receiver: u64, count: u64) {
        let pair = self.pairs.entry((sender.clone(), receiver)).or_default();
        let (next, gaps, missing) = (pair.next, pair.gaps, pair.missing);
        let mut times = 0;
        let mut undelivered = 0;
        for other in [receiver_run.clone(), (receiver_run.0.clone(), 0)] {
            if let Some(ends) = self.ends.get(&(sender.clone(), other)) {
                times += ends.times;
                undelivered += ends.undelivered;
            }
        }
        if next != count {
            self.fault(format!(
                "{sender:?} to {receiver_run:?}: {count} sent, and the last that came is before \
                 {next}"
            ));
        }
        if gaps > times || missing > undelivered {
            self.fault(format!(
                "{sender:?} to {receiver_run:?}: {missing} messages in {gaps} gaps are missing, \
                 and {times} ends have told of {undelivered}"
            ));
        }
    }

    /// Returns the figures at the end.
    pub(crate) fn tally(&mut self) -> Tally {
        let [set, told] = self.monitors;
        if set != told {
            self.fault(format!("{set} monitors were set up, and {told} were told"));
        }
        let mut owners = 0;
        for (of, history) in std::mem::take(&mut self.owners) {
            match history.check() {
                Ok(count) => owners += count as u64,
                Err(why) => self.fault(format!("the history of {of:?} is not linearizable: {why}")),
            }
        }
        Tally {
            owners,
            received: self.pairs.values().map(|it| it.received).sum(),
            lost: self.pairs.values().map(|it| it.missing).sum(),
            ends: self.ends.values().map(|it| it.times).sum(),
            monitors: told,
            ..Tally::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, number: u64) -> Run {
        (name.to_owned(), number)
    }

    #[test]
    fn an_account_with_an_end_for_each_gap_is_right() {
        let mut account = Account::default();
        let (alpha, beta) = (run("alpha", 1), run("beta", 2));
        account.got(&alpha, 9, 0, 4);
        account.got(&alpha, 9, 7, 7);
        account.ended(&alpha, &beta, 2);
        account.sent(&alpha, &beta, 9, 8);
        account.monitors(3, 3);
        let tally = account.tally();
        assert_eq!((tally.received, tally.lost, tally.ends), (6, 2, 1));
        assert_eq!((tally.monitors, account.faults().len()), (3, 0));
    }

    #[test]
    fn each_fault_is_found() {
        let (alpha, beta) = (run("alpha", 1), run("beta", 2));
        let faults = |play: &dyn Fn(&mut Account)| {
            let mut account = Account::default();
            account.got(&alpha, 9, 0, 4);
            play(&mut account);
            account.tally();
            account.faults().len()
        };
        assert_eq!(faults(&|it| it.got(&alpha, 9, 4, 5)), 1);
        assert_eq!(faults(&|it| it.got(&alpha, 9, 3, 3)), 1);
        // A gap without an end, and one with more than was told.
        let gap = |it: &mut Account| {
            it.got(&alpha, 9, 6, 6);
            it.sent(&alpha, &beta, 9, 7);
        };
        assert_eq!(faults(&gap), 1);
        assert_eq!(faults(&|it| (it.ended(&alpha, &beta, 0), gap(it)).1), 1);
        assert_eq!(faults(&|it| (it.ended(&alpha, &beta, 1), gap(it)).1), 0);
        // An end of another pair tells nothing of this.
        assert_eq!(faults(&|it| (it.ended(&beta, &alpha, 1), gap(it)).1), 1);
        // The last message has not come.
        assert_eq!(faults(&|it| it.sent(&alpha, &beta, 9, 6)), 1);
        assert_eq!(faults(&|it| it.monitors(2, 1)), 1);
        // Two owners at a time, and one behind the other.
        let owners = |it: &mut Account, first: u64| {
            it.owner("till", "held", 3, 0..=1);
            it.owner("till", "used", 3, 4..=5);
            it.owner("till", "held", 7, first..=first + 1);
        };
        assert_eq!(faults(&|it| owners(it, 2)), 1);
        assert_eq!(faults(&|it| owners(it, 6)), 0);
        // Another receiver begins with 0.
        assert_eq!(faults(&|it| it.got(&alpha, 10, 0, 0)), 0);
    }
}

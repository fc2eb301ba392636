//! The account of messages: accepted, by session, and delivered.

use ganger_cluster::{Half, Lane, Undelivered};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::AddAssign;

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Totals {
    pub(super) accepted: u64,
    pub(super) delivered: u64,
    pub(super) lost: u64,
    pub(super) refused: u64,
    pub(super) ends: u64,
    pub(super) monitors: u64,
    pub(super) told_by_exit: u64,
    pub(super) told_by_end: u64,
    pub(super) resent: u64,
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.accepted += other.accepted;
        self.delivered += other.delivered;
        self.lost += other.lost;
        self.refused += other.refused;
        self.ends += other.ends;
        self.monitors += other.monitors;
        self.told_by_exit += other.told_by_exit;
        self.told_by_end += other.told_by_end;
        self.resent += other.resent;
    }
}

/// A lane of a session, at its sender.
#[derive(Debug, Default)]
struct Sent {
    /// Accepted and not delivered, in order.
    under_way: VecDeque<u64>,
    /// Since when nothing has been delivered, though something is under way.
    since: u64,
}

/// A session at one of its sides.
#[derive(Debug, Default)]
struct Side {
    lanes: [Sent; 2],
    is_up: bool,
    /// Unacknowledged and unsent messages, once the session has ended.
    ended: Option<(u64, u64)>,
}

/// All sessions of a run, by the sender's half. Halves of different nodes differ.
#[derive(Debug, Default)]
pub(super) struct Account {
    sides: BTreeMap<Half, Side>,
    /// Halves of crashed nodes: none of their ends is told.
    crashed: BTreeSet<Half>,
    /// The newest session whose messages have come, by sender and receiver.
    newest: BTreeMap<(usize, usize), Half>,
    pub(super) totals: Totals,
}

impl Account {
    pub(super) fn accepted(&mut self, session: Half, lane: Lane, number: u64, now: u64) {
        let side = self.sides.entry(session).or_default();
        assert!(side.ended.is_none(), "{session:?} accepts after its end");
        let sent = &mut side.lanes[lane.index()];
        if sent.under_way.is_empty() {
            sent.since = now;
        }
        sent.under_way.push_back(number);
        self.totals.accepted += 1;
    }

    /// Notes a delivery: the next message of its lane, and no other, may come.
    pub(super) fn delivered(
        &mut self,
        way: (usize, usize),
        sender: Half,
        lane: Lane,
        number: u64,
        now: u64,
    ) {
        let newest = self.newest.entry(way).or_insert(sender);
        assert!(*newest <= sender, "{sender:?} after {newest:?}");
        *newest = sender;
        let side = self.sides.get_mut(&sender);
        let side = side.unwrap_or_else(|| panic!("{sender:?} has sent nothing"));
        let sent = &mut side.lanes[lane.index()];
        let expected = sent.under_way.pop_front();
        assert_eq!(Some(number), expected, "of {sender:?}, {lane:?}");
        sent.since = now;
        self.totals.delivered += 1;
    }

    pub(super) fn up(&mut self, session: Half, now: u64) {
        let side = self.sides.entry(session).or_default();
        let is_new = !side.is_up && side.ended.is_none();
        assert!(is_new, "{session:?} is up twice, or after its end");
        side.is_up = true;
        side.lanes.iter_mut().for_each(|lane| lane.since = now);
    }

    pub(super) fn is_live(&self, session: Half) -> bool {
        let side = self.sides.get(&session);
        side.is_some_and(|side| side.is_up && side.ended.is_none())
    }

    pub(super) fn ended(&mut self, session: Half, undelivered: Undelivered) {
        let side = self.sides.entry(session).or_default();
        let unsent = undelivered
            .unsent
            .into_iter()
            .map(|(_, it)| it.count() as u64);
        let counts = (undelivered.unacknowledged, unsent.sum());
        assert_eq!(side.ended.replace(counts), None, "{session:?} ends twice");
        self.totals.ends += 1;
    }

    pub(super) fn crashed(&mut self, session: Half) {
        self.crashed.insert(session);
    }

    pub(super) fn has_ended(&self, session: Half) -> bool {
        self.sides
            .get(&session)
            .is_some_and(|it| it.ended.is_some())
    }

    /// Checks that nothing of a live session is under way for longer than `most` without a
    /// delivery. Its sender was run since `since`.
    pub(super) fn is_told_in_time(&self, session: Half, since: u64, now: u64, most: u64) {
        let Some(side) = self.sides.get(&session).filter(|it| it.ended.is_none()) else {
            return;
        };
        for lane in &side.lanes {
            let since = lane.since.max(since);
            let is_late = !lane.under_way.is_empty() && now - since > most;
            assert!(
                !is_late,
                "{session:?}: nothing delivered from {since} to {now}"
            );
        }
    }

    /// Returns whether all messages of live sessions are delivered.
    pub(super) fn is_settled(&self) -> bool {
        let live =
            |(half, side): &(&Half, &Side)| side.ended.is_none() && !self.crashed.contains(half);
        let mut lanes = self.sides.iter().filter(live).flat_map(|it| &it.1.lanes);
        lanes.all(|lane| lane.under_way.is_empty())
    }

    /// Checks that each lost message has a session with an end, and the end has counted it.
    pub(super) fn check(mut self) -> Totals {
        for (half, side) in &self.sides {
            let lost = side.lanes.iter().map(|it| it.under_way.len() as u64).sum();
            if self.crashed.contains(half) {
                continue;
            }
            let (unacknowledged, unsent) = side.ended.unwrap_or_default();
            assert!(
                (unsent..=unacknowledged + unsent).contains(&lost),
                "{half:?} has lost {lost}, and says {unacknowledged} + {unsent}"
            );
            self.totals.lost += lost;
        }
        self.totals
    }
}

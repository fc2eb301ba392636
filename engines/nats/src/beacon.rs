//! Beacons of nodes, and the table of their senders.
//!
//! A broker says nothing of the death of another client. So each node sends a beacon
//! in short intervals, with a number of its run, and a farewell when it stops. The table makes
//! hints of them, nothing more: sessions decide.
//!
//! A node may have been deaf for a while: its own connection was away, or the node was paused. Then
//! it judges no other, and gives all nodes a full time again.

use ganger_cluster::NodeId;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The first bytes of a beacon, with the version last.
const MARK: [u8; 3] = *b"gb\x01";

/// The most nodes in the table. Beacons of further nodes are ignored.
const MOST: usize = 4096;

/// A node's words about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Beacon {
    /// A random number for each start of the engine.
    pub(crate) run: u64,
    /// The node is about to stop.
    pub(crate) leaves: bool,
}

impl Beacon {
    pub(crate) fn encode(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..3].copy_from_slice(&MARK);
        bytes[3] = self.leaves.into();
        bytes[4..].copy_from_slice(&self.run.to_le_bytes());
        bytes
    }

    /// Reads a beacon. Later versions may be longer.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MARK)?;
        let (leaves, rest) = rest.split_first()?;
        let run = u64::from_le_bytes(*rest.first_chunk()?);
        Some(Self {
            run,
            leaves: *leaves != 0,
        })
    }
}

/// A hint for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hint {
    Appeared(NodeId),
    Vanished(NodeId),
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    run: u64,
    at: Instant,
}

/// The nodes heard so far.
#[derive(Debug)]
pub(crate) struct Peers {
    /// After so long without a beacon a node has vanished.
    patience: Duration,
    seen: BTreeMap<NodeId, Seen>,
}

impl Peers {
    pub(crate) fn new(patience: Duration) -> Self {
        Self {
            patience,
            seen: BTreeMap::new(),
        }
    }

    /// Notes a beacon. Returns the hints, in order.
    pub(crate) fn heard(&mut self, from: &NodeId, beacon: Beacon, now: Instant) -> Vec<Hint> {
        let Beacon { run, leaves } = beacon;
        let has_room = self.seen.len() < MOST;
        let known = self.seen.get_mut(from);
        if leaves {
            // A late farewell of an earlier run says nothing of the present run.
            let is_present = known.is_some_and(|seen| seen.run == run);
            let gone = is_present.then(|| self.seen.remove(from)).flatten();
            return gone
                .map(|_| Hint::Vanished(from.clone()))
                .into_iter()
                .collect();
        }
        match known {
            Some(seen) if seen.run == run => {
                seen.at = now;
                Vec::new()
            }
            Some(seen) => {
                // The node was started again, and its death was not noticed.
                *seen = Seen { run, at: now };
                vec![Hint::Vanished(from.clone()), Hint::Appeared(from.clone())]
            }
            None if has_room => {
                self.seen.insert(from.clone(), Seen { run, at: now });
                vec![Hint::Appeared(from.clone())]
            }
            None => Vec::new(),
        }
    }

    /// Removes the nodes after too long a silence.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<Hint> {
        let patience = self.patience;
        let is_late = |_: &NodeId, seen: &mut Seen| now.duration_since(seen.at) > patience;
        let late = self.seen.extract_if(.., is_late);
        late.map(|(name, _)| Hint::Vanished(name)).collect()
    }

    /// Gives all nodes their full time again, as this node has not listened. Returns a hint for
    /// each, so that waiting sessions open at once.
    pub(crate) fn forgive(&mut self, now: Instant) -> Vec<Hint> {
        for seen in self.seen.values_mut() {
            seen.at = now;
        }
        self.seen.keys().cloned().map(Hint::Appeared).collect()
    }

    pub(crate) fn names(&self) -> Vec<NodeId> {
        self.seen.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(3500);

    fn name(text: &str) -> NodeId {
        NodeId::new(text).unwrap()
    }

    fn here(run: u64) -> Beacon {
        Beacon { run, leaves: false }
    }

    fn farewell(run: u64) -> Beacon {
        Beacon { run, leaves: true }
    }

    #[test]
    fn a_beacon_survives_its_bytes_and_other_bytes_are_none() {
        for beacon in [here(0), here(u64::MAX), farewell(1 << 40)] {
            let bytes = beacon.encode();
            assert_eq!(Beacon::parse(&bytes), Some(beacon));
            assert_eq!(
                Beacon::parse(&[&bytes[..], b"later"].concat()),
                Some(beacon)
            );
            for length in 0..bytes.len() {
                assert_eq!(Beacon::parse(&bytes[..length]), None, "{length}");
            }
        }
        assert_eq!(Beacon::parse(b"gb\x02\0\0\0\0\0\0\0\0\0"), None);
    }

    #[test]
    fn a_node_appears_once_and_vanishes_once() {
        let (mut peers, start) = (Peers::new(PATIENCE), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        let a = name("a");
        assert_eq!(peers.heard(&a, here(1), at(0)), [Hint::Appeared(a.clone())]);
        assert_eq!(peers.heard(&a, here(1), at(1000)), []);
        assert_eq!(peers.expire(at(4500)), []);
        assert_eq!(peers.expire(at(4501)), [Hint::Vanished(a.clone())]);
        assert_eq!(peers.expire(at(9000)), []);
        assert_eq!(
            peers.heard(&a, here(1), at(9001)),
            [Hint::Appeared(a.clone())]
        );
        assert_eq!(
            peers.heard(&a, farewell(1), at(9002)),
            [Hint::Vanished(a.clone())]
        );
        assert_eq!(peers.heard(&a, farewell(1), at(9003)), []);
    }

    #[test]
    fn a_restart_is_told_and_a_late_farewell_is_not() {
        let (mut peers, now) = (Peers::new(PATIENCE), Instant::now());
        let a = name("a");
        peers.heard(&a, here(1), now);
        let again = [Hint::Vanished(a.clone()), Hint::Appeared(a.clone())];
        assert_eq!(peers.heard(&a, here(2), now), again);
        assert_eq!(peers.heard(&a, farewell(1), now), []);
        assert_eq!(peers.names(), [a]);
    }

    #[test]
    fn a_node_that_did_not_listen_judges_no_other() {
        let (mut peers, start) = (Peers::new(PATIENCE), Instant::now());
        let a = name("a");
        peers.heard(&a, here(1), start);
        let late = start + Duration::from_secs(60);
        assert_eq!(peers.forgive(late), [Hint::Appeared(a.clone())]);
        assert_eq!(peers.expire(late + PATIENCE), []);
        let later = late + PATIENCE + Duration::from_millis(1);
        assert_eq!(peers.expire(later), [Hint::Vanished(a)]);
    }

    #[test]
    fn strangers_are_bounded() {
        let (mut peers, now) = (Peers::new(PATIENCE), Instant::now());
        for number in 0..MOST + 10 {
            peers.heard(&name(&number.to_string()), here(1), now);
        }
        assert_eq!(peers.names().len(), MOST);
        assert_eq!(peers.heard(&name("stranger"), here(1), now), []);
    }
}

//! PIDs between two nodes.
//!
//! A PID crosses as its host and its number. Most are of the sender's node or of the receiver's,
//! and then the node is a single byte. Each side sees its own PIDs without a node, and those of
//! other nodes with it. Names are never freed, so the new names of each peer are bounded.

use crate::wire::{Fields, Known, ReadError, Reader, SymbolKind};
use ganger_proc_api::{HostName, NodeName, ParsePidError, Pid};
use ganger_sync::sync::{Mutex, lock};
use std::collections::BTreeMap;

/// How many names of a peer may be new to this program, in all of the peer's sessions.
const MAX_NEW_NAMES: usize = 1024;

/// How many names of each peer were new. Of the program, as the names are.
static NEW_NAMES: Mutex<BTreeMap<NodeName, usize>> = Mutex::new(BTreeMap::new());

const OF_SENDER: u8 = 0;
const OF_RECEIVER: u8 = 1;
const ELSEWHERE: u8 = 2;

/// The two nodes of a session, as one of them sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places {
    pub(crate) own: NodeName,
    pub(crate) peer: NodeName,
}

impl Places {
    pub(crate) fn write(self, fields: &mut impl Fields, pid: Pid) {
        match pid.node() {
            None => fields.u8(OF_SENDER),
            Some(node) if node == self.own => fields.u8(OF_SENDER),
            Some(node) if node == self.peer => fields.u8(OF_RECEIVER),
            Some(node) => {
                fields.u8(ELSEWHERE);
                fields.symbol(SymbolKind::Host, node.as_str());
            }
        }
        fields.host(pid.host());
        fields.varint(pid.id());
    }

    /// Returns the source of messages by which their order is kept: an own process has no node.
    pub(crate) fn key(self, source: Option<Pid>) -> Option<Pid> {
        source.map(|pid| match pid.node() {
            Some(node) if node == self.own => pid.with_node(None),
            _ => pid,
        })
    }

    pub(crate) fn read(self, reader: &mut Reader, known: &mut Known) -> Result<Pid, ReadError> {
        let node = match reader.u8()? {
            OF_SENDER => Some(self.peer),
            OF_RECEIVER => None,
            ELSEWHERE => {
                let name = reader.symbol(known, SymbolKind::Host)?;
                let node = self.name(NodeName::known, &name)?;
                Some(node).filter(|node| *node != self.own)
            }
            _ => return Err(ReadError::Short),
        };
        let look = |text: &str| self.name(HostName::known, text);
        let (host, _) = reader.find(known, SymbolKind::Host, |it| &mut it.hosts, look)?;
        let id = reader.varint()?;
        Ok(Pid::new(host, id).with_node(node))
    }

    /// Reads the text of a PID inside of a value.
    pub(crate) fn parse(self, text: &str) -> Result<Pid, ParsePidError> {
        Pid::parse_known(text).or_else(|unknown| {
            // A node and a host.
            if self.has_room_for(2) {
                text.parse()
            } else {
                Err(unknown)
            }
        })
    }

    /// Finds a name of the peer, or adds it.
    fn name<N: std::str::FromStr>(
        self,
        known: fn(&str) -> Option<N>,
        text: &str,
    ) -> Result<N, ReadError> {
        if let Some(name) = known(text) {
            return Ok(name);
        }
        let is_bounded = self.has_room_for(1);
        let parsed = is_bounded.then(|| text.parse().ok()).flatten();
        parsed.ok_or(ReadError::Symbol)
    }

    /// Counts new names of the peer. False: they are too many.
    fn has_room_for(self, more: usize) -> bool {
        let mut counts = lock(&NEW_NAMES);
        let count = counts.entry(self.peer).or_default();
        let has_room = *count + more <= MAX_NEW_NAMES;
        *count += if has_room { more } else { 0 };
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Apart;

    // pins: B20
    #[test]
    fn a_peer_adds_a_bounded_number_of_names() {
        let name = |text| NodeName::new(text).unwrap();
        let own = name("own");
        let places = |peer| Places { own, peer };
        let read = |peer, text: &str| {
            let sender = Places {
                own: peer,
                peer: own,
            };
            let mut fields = Apart::default();
            fields.u8(OF_SENDER);
            fields.symbol(SymbolKind::Host, text);
            fields.varint(1);
            let mut reader = Reader::new(fields.finish());
            assert_eq!(sender.peer, own);
            places(peer).read(&mut reader, &mut Known::default())
        };
        let (floods, other) = (name("floods"), name("other"));
        for number in 0..MAX_NEW_NAMES - 2 {
            assert!(read(floods, &format!("flood-{number}")).is_ok());
        }
        assert!(places(floods).parse("{flood-node@flood-host|1}").is_ok());
        assert_eq!(read(floods, "one-too-many"), Err(ReadError::Symbol));
        assert!(places(floods).parse("{one-too-many|1}").is_err());
        assert!(
            HostName::known("one-too-many").is_none(),
            "it takes no place"
        );
        // Known names are free, and another peer has its own.
        assert!(read(floods, "flood-7").is_ok());
        assert!(places(floods).parse("{flood-node@flood-8|1}").is_ok());
        assert!(read(other, "of-another").is_ok());
    }

    // pins: B20
    #[test]
    fn each_side_sees_its_own_processes_without_a_node() {
        let name = |text| NodeName::new(text).unwrap();
        let (alpha, beta) = (name("alpha"), name("beta"));
        let at_alpha = Places {
            own: alpha,
            peer: beta,
        };
        let at_beta = Places {
            own: beta,
            peer: alpha,
        };
        for (sent, seen) in [
            ("{main|1}", "{alpha@main|1}"),
            ("{alpha@main|2}", "{alpha@main|2}"),
            ("{beta@main|3}", "{main|3}"),
            ("{gamma@main|4}", "{gamma@main|4}"),
        ] {
            let mut fields = Apart::default();
            at_alpha.write(&mut fields, sent.parse().unwrap());
            let mut reader = Reader::new(fields.finish());
            let pid = at_beta.read(&mut reader, &mut Known::default()).unwrap();
            assert_eq!(pid.to_string(), seen);
        }
    }
}

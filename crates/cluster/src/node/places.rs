//! PIDs between two nodes.
//!
//! A PID crosses as its host and its number. Most are of the sender's node or of the receiver's,
//! and then the node is a single byte. Each side sees its own PIDs without a node, and those of
//! other nodes with it. Names of strangers are bounded by what parsed texts may add.

use crate::wire::{Fields, Known, ReadError, Reader, SymbolKind};
use ganger_proc_api::{HostName, NodeName, Pid};

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
        fields.symbol(SymbolKind::Host, pid.host().as_str());
        fields.varint(pid.id());
    }

    /// The source of messages by which their order is kept: an own process has no node.
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
                let node = name.parse().map_err(|_| ReadError::Symbol)?;
                Some(node).filter(|node| *node != self.own)
            }
            _ => return Err(ReadError::Short),
        };
        let host = reader.symbol(known, SymbolKind::Host)?;
        let host: HostName = host.parse().map_err(|_| ReadError::Symbol)?;
        let id = reader.varint()?;
        Ok(Pid::new(host, id).with_node(node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Apart;

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

//! Why two nodes have no connection, each reason in a sentence of its own at both sides.

use ganger_cluster::NodeId;
use std::fmt;
use std::net::SocketAddr;

/// Why a connection between two nodes was refused. The text is a sentence for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The cookies differ.
    Cookie,
    /// The clusters differ.
    Cluster,
    /// Both nodes have the same name.
    SameName,
    /// Another live node with the same name is connected.
    NameTaken,
    /// The versions of the protocol between engines differ.
    Version,
    /// The certificate was not issued by this cluster's authority.
    Authority,
    /// The certificate has expired, or is not valid yet by the clock.
    Expired,
    /// The certificate is for another name.
    CertificateName,
    /// The certificate is missing, or can't be used otherwise.
    Certificate,
    /// A single side uses TLS.
    Tls,
    /// The bytes are not of the protocol between nodes.
    Malformed,
    /// The handshake took too long, or the connection broke meanwhile.
    Unfinished,
    /// The node has as many peers as it takes.
    TooMany,
    /// The node is not on loopback, and this node has neither keys nor `insecure`.
    Insecure,
    /// The pair has a connection already. Not a fault.
    Duplicate,
}

/// The number in a refusal of a node that has met itself.
pub(crate) const MYSELF: u8 = 11;

impl Reason {
    /// The number in refusals. A peer may send any.
    const CODES: [(u8, Self); 10] = [
        (1, Self::Cookie),
        (2, Self::Cluster),
        (3, Self::SameName),
        (4, Self::NameTaken),
        (5, Self::Version),
        (6, Self::CertificateName),
        (7, Self::Malformed),
        (8, Self::TooMany),
        (9, Self::Duplicate),
        (10, Self::Tls),
    ];

    /// Returns the number for the peer. TLS has alerts of its own.
    pub(crate) fn code(self) -> Option<u8> {
        let codes = Self::CODES.iter();
        codes
            .copied()
            .find_map(|(code, it)| (it == self).then_some(code))
    }

    pub(crate) fn of_code(code: u8) -> Self {
        let codes = Self::CODES.iter();
        let found = codes
            .copied()
            .find_map(|(it, reason)| (it == code).then_some(reason));
        found.unwrap_or(Self::Malformed)
    }

    /// Returns the sentence about a peer that this node refuses.
    fn of_peer(self) -> &'static str {
        match self {
            Self::Cookie => "its cookie differs from the cookie of this node",
            Self::Cluster => "it belongs to another cluster",
            Self::SameName => "it has the name of this node",
            Self::NameTaken => "another live node has its name and is connected",
            Self::Version => "it speaks another version of the protocol between nodes",
            Self::Authority => "its certificate is not from this node's authority (ca.pem)",
            Self::Expired => "its certificate has expired or is not valid yet: see both clocks",
            Self::CertificateName => "its certificate is not for the name that it says",
            Self::Certificate => "it has no certificate, or not a usable certificate",
            Self::Tls => "only one of the two nodes has keys, and so uses TLS",
            Self::Malformed => "it does not speak the protocol between nodes",
            Self::Unfinished => "it did not finish the handshake",
            Self::TooMany => "this node has as many peers as it takes",
            Self::Insecure => {
                "it is not on loopback, and this node has neither keys nor insecure()"
            }
            Self::Duplicate => "the two nodes have a connection already",
        }
    }

    /// Returns the sentence about a peer that refuses this node.
    fn of_this(self) -> &'static str {
        match self {
            Self::Cookie => "this node's cookie differs from the cookie of the peer",
            Self::Cluster => "this node belongs to another cluster",
            Self::SameName => "this node has the name of the peer",
            Self::NameTaken => "another live node has this node's name, so this node must stop",
            Self::Version => "this node speaks another version of the protocol between nodes",
            Self::Authority => "this node's certificate is not from the peer's authority (ca.pem)",
            Self::Expired => {
                "this node's certificate has expired or is not valid yet: see both clocks"
            }
            Self::CertificateName => "this node's certificate is not for its name",
            Self::Certificate => "this node has no certificate, or not a usable certificate",
            Self::Tls => "only one of the two nodes has keys, and so uses TLS",
            Self::Malformed => "the peer did not understand this node",
            Self::Unfinished => "the peer has left during the handshake",
            Self::TooMany => "the peer has as many peers as it takes",
            Self::Insecure => "this node is not on loopback",
            Self::Duplicate => "the two nodes have a connection already",
        }
    }
}

/// A connection that did not come about, or that was ended for a reason.
///
/// ```
/// use ganger_cluster::NodeId;
/// use ganger_cluster_direct::{Reason, Refused};
///
/// let (address, name) = ("127.0.0.1:7447".parse()?, NodeId::new("beta")?);
/// let refused = Refused::new(address, Some(name), Reason::Cookie, true);
/// assert_eq!(
///     refused.to_string(),
///     "the node \"beta\" at 127.0.0.1:7447 refuses this node: \
///      this node's cookie differs from the cookie of the peer"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// The address of the peer.
    pub address: SocketAddr,
    /// The name that the peer says, if it came so far.
    pub name: Option<NodeId>,
    /// Why.
    pub reason: Reason,
    /// Whether the peer has refused this node; else this node has refused the peer.
    pub by_peer: bool,
}

impl Refused {
    /// Creates a refusal, by the peer or by this node.
    #[must_use]
    pub fn new(address: SocketAddr, name: Option<NodeId>, reason: Reason, by_peer: bool) -> Self {
        Self {
            address,
            name,
            reason,
            by_peer,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let peer = |f: &mut fmt::Formatter<'_>| match &self.name {
            // Escaped: the name of a stranger may have control characters.
            Some(name) => write!(f, "the node {:?} at {}", name.as_str(), self.address),
            None => write!(f, "the peer at {}", self.address),
        };
        if self.by_peer {
            peer(f)?;
            write!(f, " refuses this node: {}", self.reason.of_this())
        } else {
            f.write_str("this node refuses ")?;
            peer(f)?;
            write!(f, ": {}", self.reason.of_peer())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_come_back_and_strange_codes_do_no_harm() {
        for (code, reason) in Reason::CODES {
            assert_eq!(reason.code(), Some(code));
            assert_eq!(Reason::of_code(code), reason);
        }
        assert_eq!(Reason::of_code(255), Reason::Malformed);
        assert_eq!(Reason::Expired.code(), None);
    }
}

//! The handshake of two nodes. Nothing is kept of a peer before its proof.
//!
//! 1. With keys: TLS; both sides show certificates of the authority.
//! 2. The dialer greets; the acceptor looks at the greeting, and greets; the dialer looks.
//! 3. The dialer proves that it has the cookie; then the acceptor finds the connection's place
//!    among the peer's, and proves it, too.
//!
//! A side that refuses says the reason to the other, and lingers, so that the reason arrives.

use super::state::Node;
use crate::link::{Incoming, Pipe, PipeError};
use crate::refusal::{MYSELF, Reason};
use crate::security::codes::FrameCodes;
use crate::security::cookie::{self, Role};
use crate::security::tls;
use crate::wire::{self, Greeting, HEAD, Packet, PacketError, PacketHead, Seal, VERSION};
use bytes::Buf;
use ganger_cluster::NodeId;
use ganger_net::TcpStream;
use std::io;
use std::time::Duration;

/// How long a side that refuses waits for the end of the other.
const LINGER: Duration = Duration::from_secs(1);

/// Why a handshake ended without a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failed {
    /// This side refuses.
    Refused(Reason),
    /// The peer has refused.
    ByPeer(Reason),
    /// This node has met itself.
    Myself,
}

/// A peer that has greeted and, at an acceptor, proven itself.
pub(super) struct Met {
    pub(super) pipe: Pipe,
    pub(super) incoming: Incoming,
    pub(super) greeting: Greeting,
    /// The dialer's number used once.
    pub(super) rank: [u8; 16],
    /// The packet that makes the connection. An acceptor sends it once the place is found.
    pub(super) last: Vec<u8>,
    pub(super) seals: Seals,
}

/// Of the frames of both directions.
pub(super) struct Seals {
    pub(super) own: Seal,
    pub(super) theirs: Seal,
}

/// The result of a handshake.
pub(super) struct Shown {
    greeting: Greeting,
    last: Vec<u8>,
    seals: Seals,
}

/// A handshake under way.
pub(super) struct Handshake<'a> {
    node: &'a Node,
    role: Role,
    pipe: Pipe,
    incoming: Incoming,
    /// The name that the peer says.
    pub(super) name: Option<NodeId>,
    rank: [u8; 16],
}

impl<'a> Handshake<'a> {
    pub(super) fn new(node: &'a Node, role: Role, stream: TcpStream) -> Result<Self, Failed> {
        let tls = node.plan.tls.as_ref().map(|tls| match role {
            Role::Dialer => tls.dial(),
            Role::Acceptor => tls.accept(),
        });
        let tls = tls
            .transpose()
            .map_err(|_| Failed::Refused(Reason::Certificate))?;
        Ok(Self {
            node,
            role,
            pipe: Pipe::new(stream, tls),
            incoming: Incoming::new(),
            name: None,
            rank: [0; 16],
        })
    }

    /// Greets, and lets the peer prove itself. In time, or the caller drops it.
    pub(super) async fn meet(&mut self) -> Result<Shown, Failed> {
        let own = Greeting {
            nonce: cookie::random().map_err(|_| Failed::Refused(Reason::Unfinished))?,
            run: self.node.plan.run,
            cluster: self.node.plan.cluster.clone(),
            name: self.node.plan.me.clone(),
            address: self.node.plan.address.clone(),
        };
        self.rank = own.nonce;
        let own = own.encode();
        let cookie = &self.node.plan.cookie;
        match self.role {
            Role::Dialer => {
                self.write(own.clone()).await?;
                let (theirs, greeting) = self.greeting().await?;
                self.check(&greeting)?;
                let proof = cookie.prove(Role::Dialer, &own, &theirs);
                self.write(wire::proof(&proof)).await?;
                let (_, packet) = self.packet().await?;
                let is_right = matches!(packet, Packet::Proof(proof)
                    if cookie.check(Role::Acceptor, &own, &theirs, &proof));
                if !is_right {
                    return Err(Failed::Refused(Reason::Cookie));
                }
                Ok(Shown {
                    greeting,
                    last: Vec::new(),
                    seals: self.seals(&own, &theirs),
                })
            }
            Role::Acceptor => {
                let (theirs, greeting) = self.greeting().await?;
                self.check(&greeting)?;
                self.rank = greeting.nonce;
                self.write(own.clone()).await?;
                let (_, packet) = self.packet().await?;
                let is_right = matches!(packet, Packet::Proof(proof)
                    if cookie.check(Role::Dialer, &theirs, &own, &proof));
                if !is_right {
                    return Err(Failed::Refused(Reason::Cookie));
                }
                let proof = cookie.prove(Role::Acceptor, &theirs, &own);
                Ok(Shown {
                    greeting,
                    last: wire::proof(&proof),
                    seals: self.seals(&theirs, &own),
                })
            }
        }
    }

    /// Returns the seals of this connection.
    fn seals(&self, dialer: &[u8], acceptor: &[u8]) -> Seals {
        let of = |role| {
            if self.pipe.has_tls() {
                return Seal::absent();
            }
            let key = self.node.plan.cookie.frames(role, dialer, acceptor);
            Seal::by(FrameCodes::new(&key))
        };
        let (own, theirs) = match self.role {
            Role::Dialer => (Role::Dialer, Role::Acceptor),
            Role::Acceptor => (Role::Acceptor, Role::Dialer),
        };
        Seals {
            own: of(own),
            theirs: of(theirs),
        }
    }

    /// Hands the connection on, with its known peer.
    pub(super) fn into_met(self, shown: Shown) -> Met {
        let Shown {
            greeting,
            last,
            seals,
        } = shown;
        Met {
            pipe: self.pipe,
            incoming: self.incoming,
            greeting,
            rank: self.rank,
            last,
            seals,
        }
    }

    /// Says to the peer why it is refused.
    pub(super) async fn refuse(mut self, failed: Failed) {
        let code = match failed {
            Failed::Refused(reason) => reason.code(),
            Failed::Myself => Some(MYSELF),
            Failed::ByPeer(_) => None,
        };
        let said = code.map(wire::refusal).unwrap_or_default();
        // The connection may be broken already.
        let is_said = if failed == Failed::Refused(Reason::Tls) {
            // The other side does not speak as this side does: in clear.
            self.pipe.write_sealed(&said).await.is_ok()
        } else {
            // TLS may have an alert to send.
            self.pipe.write(said).await.is_ok()
        };
        if !is_said {
            return;
        }
        self.pipe.finish(LINGER);
        // The bytes of the peer are read, because otherwise its system drops the reason.
        while let Ok(filled) = self.incoming.fill(&self.pipe).await
            && !filled.is_end
        {
            self.incoming.bytes.clear();
        }
    }

    /// Checks all that a greeting says.
    fn check(&mut self, greeting: &Greeting) -> Result<(), Failed> {
        self.name = Some(greeting.name.clone());
        if greeting.run == self.node.plan.run {
            return Err(Failed::Myself);
        }
        if greeting.cluster != self.node.plan.cluster {
            return Err(Failed::Refused(Reason::Cluster));
        }
        let name = greeting.name.as_str();
        let is_right = self.pipe.with_tls(|it| tls::peer_is(it, name));
        if is_right == Some(false) {
            return Err(Failed::Refused(Reason::CertificateName));
        }
        if greeting.name == self.node.plan.me {
            return Err(Failed::Refused(Reason::SameName));
        }
        Ok(())
    }

    async fn greeting(&mut self) -> Result<(Vec<u8>, Greeting), Failed> {
        match self.packet().await? {
            (bytes, Packet::Greeting(greeting)) => Ok((bytes, greeting)),
            _ => Err(Failed::Refused(Reason::Malformed)),
        }
    }

    /// Reads the next packet, and returns it with its bytes.
    async fn packet(&mut self) -> Result<(Vec<u8>, Packet), Failed> {
        loop {
            if let Some(packet) = self.take_packet()? {
                return Ok(packet);
            }
            let filled = self.incoming.fill(&self.pipe).await;
            let filled = match filled {
                Ok(filled) => filled,
                Err(error) => {
                    let failed = self.failed(&error);
                    return Err(failed);
                }
            };
            if filled.has_output {
                self.write(Vec::new()).await?;
            }
            if filled.is_end {
                // An alert of TLS is shorter than a packet.
                return Err(match *self.incoming.bytes {
                    [0x15 | 0x16, 3, ..] => Failed::Refused(Reason::Tls),
                    _ => Failed::Refused(Reason::Unfinished),
                });
            }
        }
    }

    fn take_packet(&mut self) -> Result<Option<(Vec<u8>, Packet)>, Failed> {
        let bytes = &mut self.incoming.bytes;
        let Some(head) = bytes.first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let head = PacketHead::parse(*head).map_err(|error| match error {
            PacketError::Tls => Failed::Refused(Reason::Tls),
            _ => Failed::Refused(Reason::Malformed),
        })?;
        if head.version != VERSION && !head.is_refusal() {
            return Err(Failed::Refused(Reason::Version));
        }
        let length = HEAD + head.length;
        if bytes.len() < length {
            return Ok(None);
        }
        let whole = bytes[..length].to_vec();
        bytes.advance(length);
        match head.packet(&whole[HEAD..]) {
            Ok(Packet::Refused(MYSELF)) => Err(Failed::Myself),
            Ok(Packet::Refused(code)) => Err(Failed::ByPeer(Reason::of_code(code))),
            Ok(packet) => Ok(Some((whole, packet))),
            Err(_) => Err(Failed::Refused(Reason::Malformed)),
        }
    }

    async fn write(&self, bytes: Vec<u8>) -> Result<(), Failed> {
        match self.pipe.write(bytes).await {
            // A peer that has refused and left: its reason is still to read.
            Err(PipeError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(|error| self.failed(&error)),
        }
    }

    fn failed(&self, error: &PipeError) -> Failed {
        let PipeError::Tls(error) = error else {
            return Failed::Refused(Reason::Unfinished);
        };
        match tls::reason(error) {
            reason if matches!(error, rustls::Error::AlertReceived(_)) => Failed::ByPeer(reason),
            // Before the handshake of TLS is done, the peer may not speak it at all.
            Reason::Malformed
                if self.is_handshaking() && matches!(error, rustls::Error::InvalidMessage(_)) =>
            {
                Failed::Refused(Reason::Tls)
            }
            reason => Failed::Refused(reason),
        }
    }

    fn is_handshaking(&self) -> bool {
        self.pipe.with_tls(|tls| tls.is_handshaking()) == Some(true)
    }
}

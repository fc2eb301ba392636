//! The requests of nodes to each other, beside messages. Each request fits a frame.

use super::causes;
use super::listing::Listing;
use super::places::Places;
use crate::id::Lane;
use crate::wire::{Fields, Known, ReadError, Reader};
use bytes::Bytes;
use ganger_proc_api::{CancelReason, ExitCause, Pid};
use ganger_sched::RemoteLink;
use std::sync::Arc;

/// The kinds of messages in frames.
pub(crate) mod op {
    pub(crate) const MESSAGE: u8 = 1;
    pub(crate) const CHUNK: u8 = 2;
    pub(super) const MONITOR: u8 = 3;
    pub(super) const DEMONITOR: u8 = 4;
    pub(super) const EXIT: u8 = 5;
    pub(super) const LINK: u8 = 6;
    pub(super) const UNLINK: u8 = 7;
    pub(super) const SIGNAL: u8 = 8;
    pub(super) const EXIT_SIGNAL: u8 = 9;
    pub(super) const CANCEL: u8 = 10;
    pub(super) const TERMINATE: u8 = 11;
    pub(super) const WHEREIS: u8 = 12;
    pub(super) const FOUND: u8 = 13;
    pub(super) const ANSWER: u8 = 14;
    pub(super) const UNWANTED: u8 = 15;
    pub(super) const SPAWN: u8 = 16;
    pub(super) const SPAWNED: u8 = 17;
    pub(super) const LISTED: u8 = 18;
    pub(crate) const MULTI: u8 = 19;
    /// A call of a function, as `functions.rs` writes it.
    pub(crate) const CALL: u8 = 20;
}

/// A request, or the answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Request {
    /// Tell of the end of a process, behind its messages if that is wanted.
    Monitor {
        number: u64,
        pid: Pid,
        in_order: bool,
    },
    Demonitor {
        number: u64,
    },
    /// The monitored process has ended. In order: behind the messages of `of`, which the receiver
    /// knows.
    Exit {
        number: u64,
        cause: ExitCause,
        in_order: bool,
        of: Option<Pid>,
    },
    /// As the sender sees the link; as the receiver sees it when it is read.
    Link(RemoteLink),
    Unlink(RemoteLink),
    Signal(RemoteLink, ExitCause),
    ExitSignal {
        target: Pid,
        from: Pid,
        cause: ExitCause,
    },
    Cancel(Pid, CancelReason),
    Terminate(Pid),
    Whereis {
        number: u64,
        name: Arc<str>,
    },
    Found {
        number: u64,
        pid: Option<Pid>,
    },
    /// The answer to a question, as `calls.rs` writes it.
    Answer {
        number: u64,
        body: Bytes,
    },
    /// The answer to this question is unwanted.
    Unwanted {
        number: u64,
    },
    /// Start a process, as `kinds.rs` writes it, and tell of its end by the number of `watch`.
    Spawn {
        number: u64,
        watch: Option<u64>,
        body: Bytes,
    },
    /// The process has started, or why not.
    Spawned {
        number: u64,
        result: Result<Pid, Arc<str>>,
    },
    /// An entry of the sender's directory.
    Listed(Listing),
}

impl Request {
    pub(crate) fn lane(&self) -> Lane {
        match self {
            Self::Exit { in_order: true, .. } => Lane::Data,
            _ => Lane::Control,
        }
    }

    /// Returns the number of bytes of the values inside.
    pub(crate) fn length(&self) -> usize {
        match self {
            Self::Answer { body, .. } | Self::Spawn { body, .. } => body.len(),
            _ => 0,
        }
    }

    pub(crate) fn op(&self) -> u8 {
        match self {
            Self::Monitor { .. } => op::MONITOR,
            Self::Demonitor { .. } => op::DEMONITOR,
            Self::Exit { .. } => op::EXIT,
            Self::Link(_) => op::LINK,
            Self::Unlink(_) => op::UNLINK,
            Self::Signal(..) => op::SIGNAL,
            Self::ExitSignal { .. } => op::EXIT_SIGNAL,
            Self::Cancel(..) => op::CANCEL,
            Self::Terminate(_) => op::TERMINATE,
            Self::Whereis { .. } => op::WHEREIS,
            Self::Found { .. } => op::FOUND,
            Self::Answer { .. } => op::ANSWER,
            Self::Unwanted { .. } => op::UNWANTED,
            Self::Spawn { .. } => op::SPAWN,
            Self::Spawned { .. } => op::SPAWNED,
            Self::Listed(_) => op::LISTED,
        }
    }

    pub(crate) fn write(&self, fields: &mut impl Fields, places: Places) {
        match self {
            Self::Monitor {
                number,
                pid,
                in_order,
            } => {
                fields.varint(*number);
                places.write(fields, *pid);
                fields.u8(u8::from(*in_order));
            }
            Self::Demonitor { number } | Self::Unwanted { number } => fields.varint(*number),
            Self::Answer { number, body } => {
                fields.varint(*number);
                fields.bytes(body);
            }
            Self::Spawn {
                number,
                watch,
                body,
            } => {
                fields.varint(*number);
                // Numbers of monitors begin with 1.
                fields.varint(watch.unwrap_or(0));
                fields.bytes(body);
            }
            Self::Spawned { number, result } => {
                fields.varint(*number);
                match result {
                    Ok(pid) => {
                        fields.u8(1);
                        places.write(fields, *pid);
                    }
                    Err(text) => {
                        fields.u8(0);
                        causes::write_text(fields, text);
                    }
                }
            }
            Self::Exit { number, cause, .. } => {
                fields.varint(*number);
                causes::write(fields, cause);
            }
            Self::Link(link) | Self::Unlink(link) => write_link(fields, places, *link),
            Self::Signal(link, cause) => {
                write_link(fields, places, *link);
                causes::write(fields, cause);
            }
            Self::ExitSignal {
                target,
                from,
                cause,
            } => {
                places.write(fields, *target);
                places.write(fields, *from);
                causes::write(fields, cause);
            }
            Self::Cancel(pid, reason) => {
                places.write(fields, *pid);
                causes::write_reason(fields, reason);
            }
            Self::Terminate(pid) => places.write(fields, *pid),
            Self::Listed(listing) => listing.write(fields, places),
            Self::Whereis { number, name } => {
                fields.varint(*number);
                causes::write_text(fields, name);
            }
            Self::Found { number, pid } => {
                fields.varint(*number);
                fields.u8(u8::from(pid.is_some()));
                if let Some(pid) = pid {
                    places.write(fields, *pid);
                }
            }
        }
    }

    /// Reads a request of the peer.
    pub(crate) fn read(
        op: u8,
        lane: Lane,
        reader: &mut Reader,
        known: &mut Known,
        places: Places,
    ) -> Result<Self, ReadError> {
        Ok(match op {
            op::MONITOR => Self::Monitor {
                number: reader.varint()?,
                pid: places.read(reader, known)?,
                in_order: reader.u8()? != 0,
            },
            op::DEMONITOR => Self::Demonitor {
                number: reader.varint()?,
            },
            op::EXIT => Self::Exit {
                number: reader.varint()?,
                cause: causes::read(reader)?,
                in_order: lane == Lane::Data,
                of: None,
            },
            op::LINK => Self::Link(read_link(reader, known, places)?),
            op::UNLINK => Self::Unlink(read_link(reader, known, places)?),
            op::SIGNAL => Self::Signal(read_link(reader, known, places)?, causes::read(reader)?),
            op::EXIT_SIGNAL => Self::ExitSignal {
                target: places.read(reader, known)?,
                from: places.read(reader, known)?,
                cause: causes::read(reader)?,
            },
            op::CANCEL => {
                let pid = places.read(reader, known)?;
                Self::Cancel(pid, causes::read_reason(reader)?)
            }
            op::LISTED => Self::Listed(Listing::read(reader, known, places)?),
            op::TERMINATE => Self::Terminate(places.read(reader, known)?),
            op::WHEREIS => Self::Whereis {
                number: reader.varint()?,
                name: causes::read_text(reader)?,
            },
            op::FOUND => Self::Found {
                number: reader.varint()?,
                pid: match reader.u8()? {
                    0 => None,
                    _ => Some(places.read(reader, known)?),
                },
            },
            op::ANSWER => Self::Answer {
                number: reader.varint()?,
                body: reader.bytes()?,
            },
            op::UNWANTED => Self::Unwanted {
                number: reader.varint()?,
            },
            op::SPAWN => Self::Spawn {
                number: reader.varint()?,
                watch: Some(reader.varint()?).filter(|it| *it != 0),
                body: reader.bytes()?,
            },
            op::SPAWNED => Self::Spawned {
                number: reader.varint()?,
                result: match reader.u8()? {
                    0 => Err(causes::read_text(reader)?),
                    _ => Ok(places.read(reader, known)?),
                },
            },
            _ => return Err(ReadError::Short),
        })
    }
}

/// Writes a link as the peer sees it.
fn write_link(fields: &mut impl Fields, places: Places, link: RemoteLink) {
    let there = link.seen_by_peer();
    places.write(fields, there.process);
    places.write(fields, there.peer);
    fields.varint(there.number);
}

/// Reads a link, whose PIDs have their nodes at both sides, so both sides have the same key.
fn read_link(
    reader: &mut Reader,
    known: &mut Known,
    places: Places,
) -> Result<RemoteLink, ReadError> {
    let process = places.read(reader, known)?.with_node(Some(places.own));
    let peer = places.read(reader, known)?;
    let link = RemoteLink::new(process, peer, reader.varint()?);
    // A peer links its own processes alone.
    let is_its_own = peer.node() == Some(places.peer);
    is_its_own.then_some(link).ok_or(ReadError::Short)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Apart;
    use ganger_proc_api::NodeName;

    #[test]
    fn each_request_is_read_as_it_was_written() {
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
        let pid = |text: &str| text.parse::<Pid>().unwrap();
        let link = RemoteLink::new(pid("{alpha@main|1}"), pid("{beta@main|2}"), 7);
        let there = pid("{beta@main|2}");
        let requests = [
            Request::Monitor {
                number: 1,
                pid: there,
                in_order: true,
            },
            Request::Demonitor { number: 1 },
            Request::Exit {
                number: 1,
                cause: ExitCause::Done,
                in_order: true,
                of: None,
            },
            Request::Exit {
                number: 1,
                cause: ExitCause::Done,
                in_order: false,
                of: None,
            },
            Request::Link(link),
            Request::Unlink(link),
            Request::Signal(link, ExitCause::Terminated),
            Request::ExitSignal {
                target: there,
                from: there,
                cause: ExitCause::Done,
            },
            Request::Cancel(there, CancelReason::Shutdown),
            Request::Terminate(there),
            Request::Whereis {
                number: 3,
                name: "cart".into(),
            },
            Request::Found {
                number: 3,
                pid: Some(there),
            },
            Request::Found {
                number: 3,
                pid: None,
            },
            Request::Answer {
                number: 4,
                body: Bytes::from_static(b"body"),
            },
            Request::Unwanted { number: 4 },
            Request::Spawn {
                number: 5,
                watch: Some(6),
                body: Bytes::from_static(b"body"),
            },
            Request::Spawned {
                number: 5,
                result: Ok(there),
            },
            Request::Spawned {
                number: 5,
                result: Err("no".into()),
            },
        ];
        for request in requests {
            let mut fields = Apart::default();
            request.write(&mut fields, at_alpha);
            let mut reader = Reader::new(fields.finish());
            let mut known = Known::default();
            let (op, lane) = (request.op(), request.lane());
            let read = Request::read(op, lane, &mut reader, &mut known, at_beta).unwrap();
            assert!(reader.rest().is_empty());
            // PIDs of beta have no node at beta, and links are turned.
            let text = format!("{request:?}").replace("beta@", "");
            match (&request, &read) {
                (Request::Link(_) | Request::Unlink(_) | Request::Signal(..), _) => {
                    let turned = format!("{:?}", link.seen_by_peer());
                    assert!(format!("{read:?}").contains(&turned), "{read:?}");
                }
                _ => assert_eq!(format!("{read:?}"), text),
            }
        }
    }
}

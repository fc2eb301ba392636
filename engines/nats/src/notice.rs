//! Events of the connections, for an operator's log.

use crate::subject::word;
use async_nats::Event;
use ganger_cluster::Lane;
use std::fmt;

/// An event of a connection. Sessions need none of them: they are for a log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notice {
    /// The connection: each lane has its own.
    pub lane: Lane,
    /// The event.
    pub kind: NoticeKind,
}

/// An event of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoticeKind {
    /// A broker has been reached.
    Connected,
    /// The broker has gone, and the engine looks for it, or for another of the list. Sessions wait
    /// for [`dead`](ganger_cluster::Settings::dead).
    Disconnected,
    /// Frames came faster than the node took them, and some were dropped. Sessions ask for them
    /// again.
    SlowConsumer,
    /// The broker is about to stop.
    LameDuck,
    /// The broker has refused something, in its words: a missing right for a subject, for
    /// instance.
    Refused(String),
    /// An attempt to reach a broker has failed.
    Failed(String),
}

impl Notice {
    pub(crate) fn of(lane: Lane, event: &Event) -> Option<Self> {
        let kind = match event {
            Event::Connected => NoticeKind::Connected,
            Event::Disconnected => NoticeKind::Disconnected,
            Event::SlowConsumer(_) => NoticeKind::SlowConsumer,
            Event::LameDuckMode => NoticeKind::LameDuck,
            Event::ServerError(error) => NoticeKind::Refused(error.to_string()),
            Event::ClientError(error) => NoticeKind::Failed(error.to_string()),
            // The engine's own doing.
            Event::Draining | Event::Closed => return None,
        };
        Some(Self { lane, kind })
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NATS, {}: ", word(self.lane))?;
        match &self.kind {
            NoticeKind::Connected => f.write_str("connected"),
            NoticeKind::Disconnected => f.write_str("the broker has gone"),
            NoticeKind::SlowConsumer => f.write_str("frames were dropped, too many have come"),
            NoticeKind::LameDuck => f.write_str("the broker is about to stop"),
            NoticeKind::Refused(why) => write!(f, "refused by the broker: {why}"),
            NoticeKind::Failed(why) => write!(f, "can't connect: {why}"),
        }
    }
}

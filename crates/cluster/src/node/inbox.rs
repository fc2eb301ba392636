//! The engine's calls about a peer, until the link looks.

use crate::wire::HEADER;
use bytes::Bytes;
use std::collections::VecDeque;

/// The most bytes of frames that wait for the link. More are lost, and come again.
const MAX_INBOX: usize = 4 << 20;

/// A call of the engine.
#[derive(Debug)]
pub(crate) enum Told {
    Frame(Bytes),
    Appeared,
    Vanished,
    Writable,
}

#[derive(Debug, Default)]
pub(super) struct Inbox {
    pub(super) told: VecDeque<Told>,
    pub(super) bytes: usize,
    /// The directory has changed.
    pub(super) has_listings: bool,
}

impl Inbox {
    /// Keeps a call. False: the inbox is full.
    pub(super) fn put(&mut self, told: Told) -> bool {
        let has_room = match &told {
            Told::Frame(frame) => self.bytes + frame.len() <= MAX_INBOX,
            _ => self.told.len() <= MAX_INBOX / HEADER,
        };
        if has_room {
            self.bytes += told.length();
            self.told.push_back(told);
        }
        has_room
    }
}

impl Told {
    fn length(&self) -> usize {
        match self {
            Self::Frame(frame) => frame.len(),
            _ => 0,
        }
    }
}

//! Entries of the directory on their way to a peer.

use super::peer::{FEED, Peer};
use super::requests::Request;
use crate::id::{Half, Lane};

/// The most entries of the directory that a step of the link tells.
const LISTINGS: usize = 256;

/// How far the link is with the entries of the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Published {
    /// The peer has been told of all.
    All,
    /// More may go at once.
    Portion,
    /// More may go when frames are acknowledged.
    NoRoom,
}

impl Peer {
    /// Tells the peer of this session of entries of the directory, as far as the control lane takes
    /// them.
    pub(crate) fn publish(&self, half: Half) -> Published {
        self.with(|state, now| {
            for _ in 0..LISTINGS {
                let lane = Lane::Control.index();
                let has_room = state.session().queued(Lane::Control) < FEED.min(state.queue / 2)
                    && state.owed[lane].is_empty();
                if state.session().session() != Some(half) || !has_room {
                    return Published::NoRoom;
                }
                let Some(listing) = self.base.directory.next(half) else {
                    return Published::All;
                };
                state.request(Request::Listed(listing), self.places, now);
            }
            Published::Portion
        })
    }
}

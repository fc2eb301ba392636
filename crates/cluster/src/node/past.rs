//! The remains of ended sessions.

use crate::session::End;

/// The ended sessions with a peer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Past {
    pub(super) ended: u64,
    pub(super) last_end: Option<End>,
    pub(super) undelivered: u64,
}

//! The remains of ended sessions.

use crate::session::End;

/// The sessions with a peer that have ended.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Past {
    pub(super) ended: u64,
    pub(super) last_end: Option<End>,
    pub(super) undelivered: u64,
}

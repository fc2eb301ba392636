//! A session whose node was told of a later run of its own.

use super::{Inner, Session};
use crate::session::event::End;
use ganger_proc_api::Instant;

impl Session {
    /// Opens again where the incarnation of the halves has risen: see
    /// [`Halves::rise_above`](crate::Halves::rise_above). A session in use goes on.
    pub fn renew(&mut self, now: Instant) {
        if let Inner::Opening(opening) = &self.inner
            && opening.half.incarnation < self.halves.incarnation()
        {
            self.end(End::Unreachable, now);
        }
    }
}

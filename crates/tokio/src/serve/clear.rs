//! Connections as they are accepted: the feature `tls` is off.

use ganger_proc_api::CancelSignal;
use ganger_task::Cx;
use std::time::Duration;

/// Of a server, whose connections have none.
#[derive(Clone)]
pub(super) struct Security;

impl Security {
    pub(super) fn none() -> Self {
        Self
    }

    /// Returns the connection as it is.
    pub(super) async fn accept<I>(
        &self,
        _: &Cx,
        io: I,
        _: &mut CancelSignal,
        _: Duration,
    ) -> Option<I> {
        Some(io)
    }
}

//! The state of the endpoint for all connections.

use super::access::Access;
use super::observed::Observed;
use super::stream::{Join, Places};
use super::{maker, passes, windows};
use ganger_sched::Address;
use ganger_sync::TryLock;
use std::sync::Arc;

pub(super) struct Site {
    pub(super) access: Access,
    pub(super) observed: Arc<Observed>,
    pub(super) maker: Address<maker::Ask>,
    pub(super) events: Address<Join>,
    pub(super) streams: Places,
    pub(super) passes: Address<passes::Ask>,
    pub(super) windows: Address<windows::Ask>,
    /// The thread that makes a trace has it.
    pub(super) tracing: Arc<TryLock<()>>,
}

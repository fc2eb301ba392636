//! The state of the endpoint for all connections.

use super::access::Access;
use super::maker::Ask;
use super::observed::Observed;
use ganger_sched::Address;
use std::sync::Arc;

pub(super) struct Site {
    pub(super) access: Access,
    pub(super) observed: Arc<Observed>,
    pub(super) maker: Address<Ask>,
}

//! The state of the endpoint for all connections.

use super::access::Access;
use super::answer::{Refused, refused};
use super::observed::Observed;
use super::stream::{Join, Places};
use super::{maker, passes, windows};
use ganger_sched::Address;
use ganger_sync::TryLock;
use hyper::StatusCode;
use std::sync::Arc;

pub(super) struct Site {
    pub(super) access: Access,
    pub(super) observed: Arc<Observed>,
    pub(super) maker: Address<maker::Ask>,
    pub(super) events: Address<Join>,
    pub(super) streams: Places,
    pub(super) passes: Address<passes::Ask>,
    pub(super) windows: Address<windows::Ask>,
    /// The lock held by the thread of a trace.
    pub(super) tracing: Arc<TryLock<()>>,
}

impl Site {
    /// Checks whether a scheduler has the number, if the query has a number.
    pub(super) fn check_number(&self, scheduler: Option<u64>) -> Result<(), Refused> {
        let all = self.observed.schedulers();
        let is_there = |number| all.iter().any(|it| it.number == number);
        if scheduler.is_none_or(is_there) {
            return Ok(());
        }
        Err(no_scheduler())
    }
}

pub(super) fn no_scheduler() -> Refused {
    let sentence = "no scheduler has that number: /api/v1/snapshot has those that are observed";
    refused(StatusCode::NOT_FOUND, sentence)
}

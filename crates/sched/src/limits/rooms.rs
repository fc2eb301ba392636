//! A scheduler's data for the limits of its mailboxes.

use crate::limits::room::Limit;
use crate::limits::waiters::Waiters;
use crate::limits::waiting_steps::WaitingSteps;
use ganger_proc_api::Message;

pub(crate) struct Rooms {
    /// The limit of a mailbox without a limit of its own.
    pub(crate) limit: Limit,
    /// The senders waiting for room in mailboxes with a limit.
    pub(crate) waiters: Waiters<Message>,
    /// The steps of its processes that wait for room in any mailbox.
    pub(crate) waiting_steps: WaitingSteps,
}

impl Rooms {
    pub(crate) fn new(limit: Option<usize>) -> Self {
        Self {
            limit: limit.map_or(Limit::NONE, Limit::of),
            waiters: Waiters::new(),
            waiting_steps: WaitingSteps::default(),
        }
    }
}

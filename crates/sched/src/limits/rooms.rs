//! What a scheduler keeps for the limits of its mailboxes.

use crate::limits::room::Limit;
use crate::limits::waiters::Waiters;
use crate::limits::waiting_steps::WaitingSteps;
use ganger_proc_api::Message;

pub(crate) struct Rooms {
    /// Of a mailbox, unless its process has one of its own.
    pub(crate) limit: Limit,
    /// The senders that wait for room in mailboxes, where these have a limit.
    pub(crate) waiters: Waiters<Message>,
    /// The steps of its processes that wait for room in whichever mailboxes.
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

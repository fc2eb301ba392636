//! What a source asks of its scheduler.

use super::Handle;
use crate::runtime::sources::{Alarm, Seat};
use ganger_proc_api::{BoxError, Command, Completer, Envelope, Pid, SendError};

impl Alarm {
    /// The scheduler, unless it is gone. The last handle of a scheduler may drop what its users
    /// have left, so a source holds no lock when it drops this one.
    #[must_use]
    pub fn handle(&self) -> Option<Handle> {
        self.shared().map(|shared| Handle { shared })
    }

    /// Sends a message that the source keeps at that seat, and gives to [`take_envelope`] when the
    /// process is about to be shown it. Until then the source may take it back. Nothing is sent
    /// when it has done so before. An envelope for another scheduler is sent as any other, and
    /// can't be taken back. Never blocks.
    ///
    /// [`take_envelope`]: crate::Source::take_envelope
    ///
    /// # Errors
    /// As for [`Handle::send`], with the envelope, which the source keeps no longer.
    pub fn send_held(
        &self,
        scheduler: &Handle,
        target: Pid,
        seat: Seat,
        key: u64,
    ) -> Result<(), SendError> {
        let shared = &scheduler.shared;
        let Some(ticket) = self.ticket(seat, key) else {
            unreachable!("no such worker or source")
        };
        let task = shared.find(target);
        let refused = task.as_ref().and_then(|task| {
            let is_refused = |it: &Envelope| task.accepts.refuses(&it.message).is_some();
            task.accepts.get()?;
            shared.take_held(ticket, is_refused)
        });
        let envelope = match refused {
            None if task.is_some_and(|task| task.deliver_held(ticket)) => None,
            None => shared.take_held(ticket, |_| true),
            refused => refused,
        };
        envelope.map_or(Ok(()), |envelope| scheduler.send(envelope))
    }

    /// Has a command carried out whose answer the completer takes: in a handler of a source.
    ///
    /// # Errors
    /// Those of the command's handler. Where the command has none, the completer is told.
    pub fn carry_out(&self, command: Command, completer: Completer) -> Result<(), BoxError> {
        let shared = self.shared().ok_or("the scheduler is gone")?;
        shared
            .commands
            .carry_out(command, completer, shared.own_counters())
    }
}

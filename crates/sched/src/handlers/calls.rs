//! The one handler of Ganger's own: it carries out calls of processes.

use ganger_proc_api::{BoxError, Command, CommandId, Completer, Handler, Payload};

/// The command that a call is to its caller.
pub(crate) const CALL: CommandId = CommandId::new(40);

/// A call on its way to the process that is called.
pub(crate) struct Delivery {
    /// The process, and what makes the message.
    pub(crate) value: Payload,
    /// Knows their types.
    pub(crate) run: fn(Payload, Completer) -> Result<(), BoxError>,
}

impl Delivery {
    /// Sends the message, with the completer inside.
    pub(crate) fn deliver(self, completer: Completer) -> Result<(), BoxError> {
        (self.run)(self.value, completer)
    }
}

/// Delivers calls.
pub(crate) struct CallHandler;

impl Handler for CallHandler {
    fn handle(&self, command: Command, completer: Completer) -> Result<(), BoxError> {
        command.payloads.take::<Delivery>()?.deliver(completer)
    }
}

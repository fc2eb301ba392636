//! The one handler of Ganger's own: it carries out calls of processes, and what else a process can
//! do through its context.

use ganger_proc_api::{BoxError, Command, CommandId, Completer, Handler, Payload};

/// The command that a call is to its caller.
pub(crate) const CALL: CommandId = CommandId::new(40);

/// The ids of all commands that come as a [`Delivery`].
pub(crate) const OWN: [CommandId; 10] = [
    CommandId::new(1),
    CommandId::new(2),
    CommandId::new(3),
    CommandId::new(4),
    CommandId::new(5),
    CommandId::new(6),
    CommandId::new(7),
    CommandId::new(8),
    CommandId::new(9),
    CALL,
];

/// A command that knows how it is carried out: a call on its way to the process that is called, for
/// instance.
pub(crate) struct Delivery {
    /// Of a call, the process, and what makes the message.
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

//! The only handler of Ganger's own: it carries out calls of processes, and the calls of a context.

pub(crate) use ganger_proc_api::internal::Delivery;
use ganger_proc_api::{BoxError, Command, CommandId, Completer, Handler};

/// The command of a caller's call.
pub(crate) const CALL: CommandId = CommandId::new(40);

/// The ids of all commands that arrive as a [`Delivery`].
pub(crate) const OWN: [CommandId; 11] = [
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
    CommandId::UNTIL,
];

/// Delivers calls.
pub(crate) struct CallHandler;

impl Handler for CallHandler {
    fn handle(&self, command: Command, completer: Completer) -> Result<(), BoxError> {
        command.payloads.take::<Delivery>()?.deliver(completer)
    }
}

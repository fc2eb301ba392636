//! Commands in sequence: answered by their handler at once, or by another process.

use crate::whole::contestant::failed;
use crate::whole::job::Error;
use ganger_proc_api::{
    Command, CommandId, Completer, Context, Event, Events, Message, Payload, Process, StepOutput,
    StepResult,
};
use ganger_sched::Scheduler;

/// Answered by the handler.
pub(super) const ECHO: CommandId = CommandId::new(256);

/// Answered by a process.
pub(super) const ASK: CommandId = CommandId::new(257);

/// Registers the handlers, before the scheduler is started.
pub(super) fn register(scheduler: &Scheduler) -> Result<(), Error> {
    let echo = |command: Command, completer: Completer| {
        completer.complete(command.payloads.into_first());
        Ok(())
    };
    scheduler.register(ECHO, "echo", echo).map_err(failed)?;
    let server = scheduler.submit(Server, "main", ()).map_err(failed)?;
    let server = server.address().clone();
    let ask = move |command: Command, completer: Completer| {
        let request = (command.payloads.into_first(), completer);
        Ok(server.send(Message::new("ask", Payload::any(request)))?)
    };
    scheduler.register(ASK, "ask", ask).map_err(failed)
}

/// Answers each request with its own value. Ends when it is cancelled.
struct Server;

impl Process for Server {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
        for event in events {
            if let Event::Message(message) = event {
                let request = message.payloads.into_first().downcast();
                let (value, completer): (Payload, Completer) = request.expect("a request");
                completer.complete(value);
            }
        }
        Ok(())
    }
}

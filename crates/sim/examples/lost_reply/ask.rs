//! A client that asks a server, and asks again when no answer has come for a while.

use ganger_proc_api::{
    Command, CommandId, Completer, Context, Event, Events, ExitReason, Payloads, Pid, Process,
    StepOutput, StepResult,
};
use ganger_sim::Rt;
use std::collections::HashSet;
use std::time::Duration;

/// A slow look-up.
const LOOK_UP: CommandId = CommandId::new(256);
/// Completes after 50 ms.
const SLEEP: CommandId = CommandId::new(257);

/// Answers each request once, no matter how many clients and attempts ask for it.
#[derive(Default)]
struct Server {
    asked: HashSet<u64>,
    /// The waiting clients, with the numbers of their attempts.
    waiting: Vec<(Pid, u64)>,
}

impl Process for Server {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            match event {
                Event::Message(message) => {
                    let number = |at| message.payloads.get(at).and_then(|it| it.as_u64());
                    let (request, attempt) = number(0).zip(number(1)).ok_or("no request")?;
                    let client = message.source.ok_or("nobody asked")?;
                    if self.asked.insert(request) {
                        self.waiting.push((client, attempt));
                        out.yield_command(Command::new(LOOK_UP, request), request);
                    }
                }
                Event::Completion(_) => {
                    let (client, attempt) = self.waiting.remove(0);
                    // The client may have given up.
                    let _gone = ctx.send(client, "answer", attempt);
                }
                _ => out.done(()),
            }
        }
        Ok(())
    }
}

/// Ends when it has its answer.
struct Client {
    server: Pid,
    attempt: u64,
    takes_any_attempt: bool,
}

impl Process for Client {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        let mut asks = self.attempt == 0;
        for event in events {
            match event {
                Event::Message(answer) => {
                    let attempt = answer.payloads.first().and_then(|it| it.as_u64());
                    if self.takes_any_attempt || attempt == Some(self.attempt) {
                        out.done(self.attempt);
                        return Ok(());
                    }
                }
                // The client gives up after three attempts.
                Event::Completion(_) => asks = self.attempt < 3,
                _ => out.done(()),
            }
        }
        if asks {
            self.attempt += 1;
            let request = [7, self.attempt]
                .map(Into::into)
                .into_iter()
                .collect::<Payloads>();
            ctx.send(self.server, "request", request)?;
            out.yield_command(Command::new(SLEEP, ()), self.attempt);
        }
        Ok(())
    }
}

/// Lets a client ask a server, and end with its answer.
///
/// Both are right on their own. The server answers each request once. The client takes only the
/// answer to its last attempt, unless `takes_any_attempt`. Together they lose a reply that comes
/// after the client has asked again.
pub(crate) fn ask(rt: &Rt<'_>, takes_any_attempt: bool) {
    let look_up = |_: Command, completer: Completer| {
        completer.complete("found");
        Ok(())
    };
    rt.register(LOOK_UP, "look up", look_up).unwrap();
    let clock = rt.clock();
    let sleep = move |_: Command, completer: Completer| {
        clock.after(Duration::from_millis(50), move || completer.complete(()));
        Ok(())
    };
    // Registered at the handle: a sleep must be neither late nor fail here.
    (**rt).register(SLEEP, "sleep", sleep).unwrap();
    let server = rt.spawn(Server::default()).unwrap();
    let client = Client {
        server: server.pid(),
        attempt: 0,
        takes_any_attempt,
    };
    let client = rt.spawn(client).unwrap();
    assert!(matches!(rt.wait(client), ExitReason::Done(_)));
}

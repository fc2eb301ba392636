//! Two processes: they send a number to and fro, and count it down.

use crate::commands::HOLD;
use crate::one_worker::{OneWorker, ended};
use ganger_proc_api::{
    BoxError, Command, Context, Event, Events, Message, Pid, Process, StepOutput, StepResult,
};
use ganger_sched::Address;
use std::sync::{Arc, OnceLock};

/// How the two wait for the number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    Idle,
    /// With an outstanding command, never answered during the act.
    Blocked,
}

pub(crate) fn by_address(worker: &OneWorker, waits: Waits, sends: u64) -> Result<(), BoxError> {
    let [first, second] = [(); 2].map(|()| Arc::new(OnceLock::<Address>::new()));
    let half = |partner: &Arc<OnceLock<Address>>| {
        let partner = Arc::clone(partner);
        worker.submit(Half {
            waits,
            is_held: false,
            send: move |number: u64| {
                let partner = partner.get().ok_or("without a partner")?;
                Ok(partner.send(Message::new("number", number))?)
            },
        })
    };
    let handles = [half(&second)?, half(&first)?];
    for (place, handle) in [first, second].into_iter().zip(&handles) {
        place.get_or_init(|| handle.address().clone());
    }
    handles[0].send(Message::new("number", sends))?;
    handles.into_iter().try_for_each(ended)
}

pub(crate) fn by_pid(worker: &OneWorker, sends: u64) -> Result<(), BoxError> {
    let handles = [worker.submit(Answerer)?, worker.submit(Answerer)?];
    let message = Message::new("number", sends).from_pid(handles[1].pid());
    handles[0].send(message)?;
    handles.into_iter().try_for_each(ended)
}

fn number(message: Message) -> Result<u64, BoxError> {
    Ok(message
        .payloads
        .into_first()
        .as_u64()
        .ok_or("not a number")?)
}

/// Sends each received number, less 1, to its partner, and ends at 1 or 0.
struct Half<F> {
    waits: Waits,
    is_held: bool,
    send: F,
}

impl<F: Fn(u64) -> Result<(), BoxError> + Send + 'static> Process for Half<F> {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if self.waits == Waits::Blocked && !self.is_held {
            self.is_held = true;
            out.yield_command(Command::new(HOLD, ()), 0);
        }
        for event in events {
            let Event::Message(message) = event else {
                continue;
            };
            let left = number(message)?;
            if left > 0 {
                (self.send)(left - 1)?;
            }
            if left <= 1 {
                out.done(());
            }
        }
        Ok(())
    }
}

/// Sends each received number, less 1, back to the sender, and ends at 1 or 0.
struct Answerer;

impl Process for Answerer {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            let Event::Message(message) = event else {
                continue;
            };
            let source: Pid = message.source.ok_or("from nobody")?;
            let left = number(message)?;
            if left > 0 {
                ctx.send(source, "number", left - 1)?;
            }
            if left <= 1 {
                out.done(());
            }
        }
        Ok(())
    }
}

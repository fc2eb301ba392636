//! Two processes that send each other a number, which each of them counts down.

use crate::Gate;
use ganger_proc_api::{
    BoxError, Event, Events, Message, Payloads, Process, ProcessContext, StepOutput,
};
use ganger_sched::{Address, Scheduler};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// How a [`Pair`] reaches its other half.
#[derive(Debug, Clone)]
pub enum Partner {
    /// By its address, without a look-up; set once both are there.
    Address(Arc<OnceLock<Address>>),
    /// By the PID that the message came from.
    Sender,
}

/// One half of a pair.
pub struct Pair {
    partner: Partner,
    gate: Arc<Gate>,
    ctx: Option<ProcessContext>,
}

impl Pair {
    /// A half that hits the gate when it gets, or sends, a zero.
    #[must_use]
    pub fn new(partner: Partner, gate: Arc<Gate>) -> Self {
        Self {
            partner,
            gate,
            ctx: None,
        }
    }
}

impl Process for Pair {
    fn init(&mut self, ctx: &ProcessContext, _: &str, _: Payloads) -> Result<(), BoxError> {
        self.ctx = Some(ctx.clone());
        Ok(())
    }

    fn step(&mut self, events: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
        out.idle();
        let ctx = self.ctx.as_ref().ok_or("not initialised")?;
        for event in events {
            let Event::Message(message) = event else {
                continue;
            };
            let left = message.payloads.first().and_then(|left| left.as_u64());
            let left = left.ok_or("not a number")?;
            if left > 0 {
                match &self.partner {
                    Partner::Address(partner) => {
                        let partner = partner.get().ok_or("no partner yet")?;
                        partner.send(Message::new("ball", left - 1))?;
                    }
                    Partner::Sender => {
                        ctx.send(message.source.ok_or("nobody sent it")?, "ball", left - 1)?;
                    }
                }
            }
            // The two of them see `1` and `0`, and are finished.
            if left <= 1 {
                self.gate.hit();
                out.done(());
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair")
            .field("partner", &self.partner)
            .finish_non_exhaustive()
    }
}

/// Submits a pair that hits the gate twice after that many round trips.
///
/// # Errors
/// When the scheduler refuses a process or a message.
pub fn serve(
    scheduler: &Scheduler,
    by_address: bool,
    round_trips: u64,
    gate: &Arc<Gate>,
) -> Result<(), BoxError> {
    let (white, black) = (Arc::default(), Arc::default());
    let partner = |cell: &Arc<OnceLock<Address>>| match by_address {
        true => Partner::Address(Arc::clone(cell)),
        false => Partner::Sender,
    };
    let submit = |other| scheduler.submit(Pair::new(partner(other), Arc::clone(gate)), "play", ());
    let (first, second) = (submit(&black)?, submit(&white)?);
    white.get_or_init(|| first.address().clone());
    black.get_or_init(|| second.address().clone());
    // The message that serves and the last one, which sees `0`, are half a round trip each.
    let ball = Message::new("ball", 2 * round_trips).from_pid(second.pid());
    Ok(first.send(ball)?)
}

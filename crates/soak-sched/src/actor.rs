//! The process under all workloads. The process keeps the account of its own calls, and leaves its
//! work to a [`Behaviour`].
//!
//! The process counts its events before it looks at them, so that they are counted even if the step
//! panics. The scheduler must make a single call at a time, in order. The process checks this by a
//! swapped flag of its own.

use crate::account::Account;
use crate::commands::Ask;
use crate::faults::Faults;
use crate::parcel::{Lane, Order, Parcel, Sender};
use fastrand::Rng;
use ganger::{
    Address, BoxError, Completion, Context, Event, Events, Payloads, Pid, Process, StepOutput,
    StepResult, Tag, UpgradeRequest,
};
use ganger_soak::chance::one_in;
use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// From this tag on they are of timers.
pub(crate) const FIRST_TIMER: Tag = 1 << 63;

/// The limit of events that a step of an actor takes when it leaves some.
const FEW: usize = 3;

/// An event of a process.
#[derive(Debug)]
pub(crate) enum Mail {
    Parcel(Parcel),
    /// The answer to a command.
    Answer,
    /// A timer has fired.
    Timer(Tag),
    /// A request to finish.
    Cancel,
}

/// How a process goes on after a step.
pub(crate) enum Next {
    GoOn,
    Wait,
    Done(u64),
    Become(Box<dyn Behaviour>),
}

/// The work of a process.
pub(crate) trait Behaviour: Send + 'static {
    /// Takes the new mail. The first turn may have none.
    ///
    /// # Errors
    /// The error that ends the process.
    fn turn(&mut self, mail: Vec<Mail>, turn: &mut Turn<'_>) -> Result<Next, BoxError>;
}

impl Behaviour for Box<dyn Behaviour> {
    fn turn(&mut self, mail: Vec<Mail>, turn: &mut Turn<'_>) -> Result<Next, BoxError> {
        (**self).turn(mail, turn)
    }
}

/// The tools for making actors of an account.
#[derive(Debug, Clone)]
pub(crate) struct Kit {
    pub(crate) account: Arc<Account>,
    pub(crate) faults: Faults,
}

impl Kit {
    /// Creates an actor with this behaviour, and with a random generator of this seed.
    pub(crate) fn actor(&self, behaviour: impl Behaviour, seed: u64) -> Actor {
        self.boxed(Box::new(behaviour), seed, false)
    }

    /// Creates an actor to take another's place.
    pub(crate) fn replacement(&self, behaviour: impl Behaviour, seed: u64) -> Actor {
        self.boxed(Box::new(behaviour), seed, true)
    }

    fn boxed(&self, behaviour: Box<dyn Behaviour>, seed: u64, is_replacement: bool) -> Actor {
        self.account.made.bump();
        Actor {
            kit: self.clone(),
            random: Rng::with_seed(seed),
            behaviour,
            life: Life::New,
            is_inside: AtomicBool::new(false),
            order: Order::default(),
            sender: Sender::new(&self.account),
            asked: HashMap::new(),
            is_replacement,
        }
    }

    /// Returns the same kit without faults.
    pub(crate) fn gentle(&self) -> Self {
        Self {
            account: Arc::clone(&self.account),
            faults: Faults::default(),
        }
    }
}

/// Ids below are chosen by users, and may be chosen again.
const FIRST_COUNTED_ID: u64 = 1 << 32;

/// How far a process is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    New,
    Initialised,
    Closed,
}

/// A process of the soak.
pub(crate) struct Actor {
    kit: Kit,
    random: Rng,
    behaviour: Box<dyn Behaviour>,
    life: Life,
    /// A call is under way; a second call that sees the flag set is an error.
    is_inside: AtomicBool,
    order: Order,
    sender: Sender,
    /// The commands without an answer.
    asked: HashMap<u64, Ask>,
    is_replacement: bool,
}

impl Actor {
    /// Checks that the call is due, and alone.
    fn enter(&self, call: &str, due: Life) {
        // Ordering: AcqRel: pairs with itself and with the store in `leave`.
        let overlaps = self.is_inside.swap(true, Ordering::AcqRel);
        if overlaps || self.life != due {
            let (account, life) = (&self.kit.account, self.life);
            account.fault(format!("{call} when {life:?}, overlapping: {overlaps}"));
        }
    }

    fn leave(&self) {
        // Ordering: Release pairs with the swap in `enter`.
        self.is_inside.store(false, Ordering::Release);
    }

    /// Takes events, all of them or, sometimes, a few. Returns whether some are left.
    fn take(&mut self, events: &mut Events<'_>) -> (Vec<Mail>, bool) {
        let is_hasty = one_in(&mut self.random, self.kit.faults.leave_some);
        let limit = if is_hasty { FEW } else { usize::MAX };
        let taken = events.by_ref().take(limit);
        let mail = taken.filter_map(|event| self.see(event)).collect();
        (mail, !events.is_empty())
    }

    fn see(&mut self, event: Event) -> Option<Mail> {
        let account = &self.kit.account;
        let payloads = match event {
            Event::Message(message) => message.payloads,
            Event::Control(message) => message.payloads,
            Event::Cancel(_) => return Some(Mail::Cancel),
            Event::Completion(completion) => return self.see_answer(completion),
            other => {
                account.fault(format!("an event that nobody knows: {other:?}"));
                return None;
            }
        };
        match Parcel::take(payloads) {
            Ok(parcel) => {
                self.order.check(&parcel);
                Some(Mail::Parcel(parcel))
            }
            Err(what) => {
                account.fault(what);
                None
            }
        }
    }

    fn see_answer(&mut self, completion: Completion) -> Option<Mail> {
        let account = &self.kit.account;
        account.answered.bump();
        if completion.tag >= FIRST_TIMER {
            if let Err(error) = completion.result {
                account.fault(format!("a timer has failed: {error}"));
            }
            return Some(Mail::Timer(completion.tag));
        }
        let Some(ask) = self.asked.remove(&completion.tag) else {
            account.fault(format!("an answer to nothing: {completion:?}"));
            return None;
        };
        if !ask.is_answered_by(completion.tag, &completion.result) {
            account.fault(format!("{ask:?} was answered by {completion:?}"));
        }
        Some(Mail::Answer)
    }

    fn step_inside(
        &mut self,
        ctx: &Context,
        events: &mut Events<'_>,
        out: &mut StepOutput,
    ) -> Result<(), BoxError> {
        let (mail, has_left) = self.take(events);
        self.kit
            .faults
            .in_step(&self.kit.account, &mut self.random)?;
        let mut turn = Turn {
            kit: &self.kit,
            ctx,
            random: &mut self.random,
            sender: &mut self.sender,
            asks: Vec::new(),
            timers: Vec::new(),
            untimed: Vec::new(),
            defers: false,
        };
        let next = self.behaviour.turn(mail, &mut turn);
        // A later step takes the cancellation that this step has left.
        if turn.defers || has_left {
            out.defer_cancel();
        }
        for tag in mem::take(&mut turn.untimed) {
            out.cancel(tag);
        }
        for (tag, time) in mem::take(&mut turn.timers) {
            out.sleep(time, tag);
            self.kit.account.asked.bump();
            self.kit.account.timers.bump();
        }
        // Commands are carried out even if the step that yields them fails.
        for ask in mem::take(&mut turn.asks) {
            let tag = ask.yield_to(out);
            self.kit.account.asked.bump();
            if ask == Ask::Unknown {
                self.kit.account.unknown_commands.bump();
            }
            self.asked.insert(tag, ask);
        }
        match next? {
            // The events left behind would not wake the process.
            Next::GoOn => out.step_again(),
            Next::Wait if has_left => out.step_again(),
            Next::Wait => {}
            Next::Done(result) => out.done(result),
            Next::Become(behaviour) => {
                let next = self.kit.boxed(behaviour, self.random.u64(..), true);
                out.upgrade(UpgradeRequest::process(next, "main", ()));
            }
        }
        Ok(())
    }
}

impl Process for Actor {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        self.enter("init", Life::New);
        let result = self.kit.faults.in_init(&self.kit.account, &mut self.random);
        if result.is_ok() {
            self.life = Life::Initialised;
            let is_heir = self.is_replacement || ctx.pid().id() < FIRST_COUNTED_ID;
            self.order = Order::new(is_heir);
            let account = &self.kit.account;
            account.inits.bump();
            if self.is_replacement {
                account.replacements.bump();
            }
        }
        self.leave();
        result
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        self.enter("step", Life::Initialised);
        let result = self.step_inside(ctx, events, out);
        self.leave();
        result
    }

    fn close(&mut self) {
        // A panicked step has not called `leave`.
        self.leave();
        self.enter("close", Life::Initialised);
        self.life = Life::Closed;
        self.kit.account.closes.bump();
        self.leave();
        self.kit
            .faults
            .in_close(&self.kit.account, &mut self.random);
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let account = &self.kit.account;
        if self.life == Life::Initialised {
            account.fault("a process was dropped that had not been closed");
        }
        account.dropped.bump();
    }
}

/// The tools of a behaviour in its turn.
pub(crate) struct Turn<'a> {
    pub(crate) kit: &'a Kit,
    pub(crate) ctx: &'a Context,
    pub(crate) random: &'a mut Rng,
    sender: &'a mut Sender,
    asks: Vec<Ask>,
    timers: Vec<(Tag, Duration)>,
    untimed: Vec<Tag>,
    /// A cancellation does not end the process: it finishes later.
    pub(crate) defers: bool,
}

impl Turn<'_> {
    /// Sends a parcel by PID; whether it was taken.
    pub(crate) fn send(&mut self, to: Pid, lane: Lane, hops: u32) -> bool {
        let ctx = self.ctx;
        self.sender.send(to, lane, hops, |message| {
            let envelope = message.from_pid(ctx.pid()).to(to);
            match lane {
                Lane::Ordinary => ctx.send_envelope(envelope),
                Lane::Control => {
                    ctx.send_control(to, envelope.message.topic, envelope.message.payloads)
                }
            }
        })
    }

    /// Sends a parcel by address, and waits a moment for room; whether it was taken.
    pub(crate) fn send_or_wait(&mut self, to: &Address, hops: u32) -> bool {
        let patience = std::time::Duration::from_millis(self.random.u64(0..3));
        let send = |message| to.send_timeout(message, patience);
        self.sender.send(to.pid(), Lane::Ordinary, hops, send)
    }

    /// Has a command carried out when the step is over.
    pub(crate) fn ask(&mut self, ask: Ask) {
        self.asks.push(ask);
    }

    /// Sets a timer when the step is over. Its tag is not below [`FIRST_TIMER`].
    pub(crate) fn sleep(&mut self, time: Duration, tag: Tag) {
        self.timers.push((tag, time));
    }

    /// Takes a timer of an earlier step back, whether it has fired or not.
    pub(crate) fn take_back(&mut self, tag: Tag) {
        self.untimed.push(tag);
    }

    /// Submits another process; whether it has started.
    pub(crate) fn spawn(&mut self, behaviour: impl Behaviour) -> bool {
        let actor = self.kit.actor(behaviour, self.random.u64(..));
        let started = self.ctx.submit(actor, "child", ());
        if started.is_err() {
            self.kit.account.refused.bump();
        }
        started.is_ok()
    }
}

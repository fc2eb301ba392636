//! Messages, their receivers, and an actor as a process of Ganger. The type of a message decides
//! whether the process is sent payloads or values of this type.

use super::bell::LAST;
use super::job::Error;
use ganger_proc_api::{
    Actor, Context, Event, Events, Message, Payload, Process, StepOutput, StepResult,
};
use ganger_sched::{Address, OfActor, Scheduler};
use std::fmt::Display;

/// The acts of an actor, the same for all peers.
pub(super) trait Act: Unpin + Send + 'static {
    /// The type of its messages.
    type Load: Load;

    /// Whether the actor acts at its start.
    const STARTS: bool = false;

    /// Whether many messages wait at a time: then a peer with a mailbox of batches takes batches.
    const BATCHES: bool = false;

    /// Begins; returns whether the actor ends at once.
    fn started(&mut self) -> bool {
        false
    }

    /// Takes a message; `pass` sends a message to the next actor of its ring. Returns whether the
    /// actor ends.
    fn heard(&mut self, _load: Self::Load, _pass: impl FnOnce(Self::Load)) -> bool {
        true
    }
}

/// A message with a number.
pub(super) trait Load: Mail + Send + Unpin + 'static {
    /// Creates a message.
    fn new(number: u64) -> Self;

    /// Creates the last message, which has no number.
    fn last() -> Self;

    /// Returns its number; `None` for the last message.
    fn number(&self) -> Option<u64>;

    /// Returns the message with another number.
    #[must_use]
    fn renumbered(self, number: u64) -> Self;
}

impl Load for u64 {
    fn new(number: u64) -> Self {
        number
    }

    fn last() -> Self {
        LAST
    }

    #[inline]
    fn number(&self) -> Option<u64> {
        (*self != LAST).then_some(*self)
    }

    #[inline]
    fn renumbered(self, number: u64) -> Self {
        number
    }
}

/// A message of a type of its own, 40 bytes long.
#[derive(Debug)]
pub(super) enum Packet {
    /// A number, and padding that makes the message large.
    Number([u64; 4]),
    /// The last one.
    End,
}

const _: () = assert!(size_of::<Packet>() == 40);

impl Load for Packet {
    fn new(number: u64) -> Self {
        Self::Number([number, 1, 2, 3])
    }

    fn last() -> Self {
        Self::End
    }

    #[inline]
    fn number(&self) -> Option<u64> {
        match *self {
            Self::Number([number, ..]) => Some(number),
            Self::End => None,
        }
    }

    #[inline]
    fn renumbered(self, number: u64) -> Self {
        match self {
            Self::Number([_, a, b, c]) => Self::Number([number, a, b, c]),
            Self::End => Self::new(number),
        }
    }
}

/// A message as Ganger's processes are sent it.
pub(super) trait Mail: Sized {
    /// The type of the messages.
    type Wire: Send + 'static;

    /// Starts an actor.
    fn start<A: Act<Load = Self>>(
        scheduler: &Scheduler,
        host: Host<A>,
    ) -> Result<Address<Self::Wire>, Error>;

    /// Returns the message.
    fn mail(self) -> Self::Wire;

    /// Returns the message with the address of the next actor of a ring.
    fn next(next: Address<Self::Wire>) -> Self::Wire;
}

impl Mail for u64 {
    type Wire = Message;

    fn start<A: Act<Load = Self>>(scheduler: &Scheduler, host: Host<A>) -> Result<Address, Error> {
        let started = scheduler.submit(host, "main", ()).map_err(refused)?;
        Ok(started.address().clone())
    }

    #[inline]
    fn mail(self) -> Message {
        Message::new("number", self)
    }

    fn next(next: Address) -> Message {
        Message::new("next", Payload::any(next))
    }
}

/// Messages of a type of their own, and the address of the next actor of a ring.
pub(super) enum Wire<M> {
    Load(M),
    Next(Address<Self>),
}

const _: () = assert!(size_of::<Wire<Packet>>() == 40);

impl Mail for Packet {
    type Wire = Wire<Self>;

    fn start<A: Act<Load = Self>>(
        scheduler: &Scheduler,
        host: Host<A>,
    ) -> Result<Address<Wire<Self>>, Error> {
        let started = scheduler.spawn::<OfActor, _>(host).map_err(refused)?;
        Ok(started.address().clone())
    }

    #[inline]
    fn mail(self) -> Wire<Self> {
        Wire::Load(self)
    }

    fn next(next: Address<Wire<Self>>) -> Wire<Self> {
        Wire::Next(next)
    }
}

/// An actor, and the address of the next actor of its ring, in its first message.
pub(super) struct Host<A: Act> {
    act: A,
    next: Option<Address<<A::Load as Mail>::Wire>>,
}

impl<A: Act> Host<A> {
    pub(super) fn new(act: A) -> Self {
        let next = None;
        Self { act, next }
    }

    /// Takes a message, and ends when the actor does.
    #[inline]
    fn heard(&mut self, load: A::Load, out: &mut StepOutput) {
        let next = self.next.as_ref();
        let pass = |load: A::Load| {
            let sent = next.expect("a next one").send(load.mail());
            assert!(sent.is_ok(), "the next one is there");
        };
        if self.act.heard(load, pass) {
            out.done(());
        }
    }
}

impl<A: Act<Load = u64>> Host<A> {
    /// Takes the address of the next actor.
    #[cold]
    fn meet(&mut self, message: Message) {
        self.next = message.payloads.into_first().downcast().ok();
    }
}

impl<A: Act<Load = u64>> Process for Host<A> {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if A::STARTS && events.is_empty() && self.act.started() {
            out.done(());
        }
        for event in events {
            let Event::Message(message) = event else {
                continue;
            };
            let number = message.payloads.first().and_then(|it| it.as_u64());
            match number {
                Some(number) => self.heard(number, out),
                None => self.meet(message),
            }
        }
        Ok(())
    }
}

impl<A: Act<Load = Packet>> Actor for Host<A> {
    type Message = Wire<Packet>;

    fn receive(&mut self, _: &Context, load: Wire<Packet>, out: &mut StepOutput) -> StepResult {
        match load {
            Wire::Load(load) => self.heard(load, out),
            Wire::Next(next) => self.next = Some(next),
        }
        Ok(())
    }
}

fn refused(error: impl Display) -> Error {
    Error::Failed(error.to_string())
}

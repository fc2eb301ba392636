//! Notes of the events within a move, and between two, for the code that shows a run.

use super::who::{self, Who, short};
use super::{Did, Simulation};
use crate::probe::Decide;
use ganger_proc_api::{CommandId, Event, EventQueue, Message, Payload, Payloads, Pid, Symbol, Tag};
use std::any::Any;
use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::{self, Write};

thread_local! {
    static NOTES: RefCell<Vec<Note>> = const { RefCell::new(Vec::new()) };
    /// How messages are shown: the text of a message of a certain type.
    static SHOWS: RefCell<Vec<Show>> = const { RefCell::new(Vec::new()) };
}

type Show = fn(&Payload) -> Option<String>;

/// Of how many messages a note has the names, and of how many answers the tags.
const SHOWN: usize = 8;

/// The actor of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// The worker, or spare, with this number.
    Worker(usize),
    /// The monitor.
    Monitor,
    /// A timer of the simulation.
    Timer,
    /// Acts from outside of the scheduler, at any moment.
    Outside,
}

/// A move, or an event between two moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The machine of the actor, where there are several.
    pub at: &'static str,
    /// The actor of the move.
    pub actor: Actor,
    /// The kind of the move.
    pub did: Did,
    /// The events within it, in order.
    pub notes: Vec<Note>,
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// Another thread has done this, from outside of any worker.
    Outside(Did),
    /// Another actor has moved meanwhile.
    Within(Move),
    /// A step of such a process is about to see these events.
    Steps(Who, Given),
    /// A step has yielded such a command, with its registered name, and a small number for the tag.
    Yields(CommandId, Option<Symbol>, Tag),
    /// Something rarer, in words.
    Told(Box<str>),
}

/// The events given to a step. Its text, by `Display`, is empty without events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    cancels: usize,
    exits: usize,
    /// Messages and control messages, and the topics of the first of them. For a message without a
    /// topic: its [shown](show) text, or its type.
    messages: usize,
    names: Vec<Cow<'static, str>>,
    answers: usize,
    tags: Vec<Tag>,
}

impl Given {
    pub(super) fn of(pid: Pid, events: &impl EventQueue) -> Self {
        let mut given = Self::default();
        events.visit(&mut |event| given.add(pid, event));
        given
    }

    fn add(&mut self, pid: Pid, event: &Event) {
        match event {
            Event::Cancel(_) => self.cancels += 1,
            Event::Completion(completion) => {
                self.answers += 1;
                if self.answers <= SHOWN {
                    self.tags.push(who::tag(pid, completion.tag));
                }
            }
            Event::Message(message) => self.add_message(message),
            Event::Control(message) => self.add_message(message),
            Event::Exit(_) => self.exits += 1,
            _ => {}
        }
    }

    fn add_message(&mut self, message: &Message) {
        self.messages += 1;
        if self.messages <= SHOWN {
            self.names.push(match message.topic.as_str() {
                "" => shown(&message.payloads),
                topic => topic.into(),
            });
        }
    }
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [
            (self.cancels, "cancellation", Vec::new()),
            (self.exits, "exit notice", Vec::new()),
            (self.messages, "message", texts(&self.names)),
            (self.answers, "answer", texts(&self.tags)),
        ];
        let mut is_first = true;
        for (count, what, names) in kinds.into_iter().filter(|&(count, ..)| count > 0) {
            f.write_str(if is_first { "" } else { "; " })?;
            is_first = false;
            write!(f, "{count} {what}{}", if count > 1 { "s" } else { "" })?;
            if !names.is_empty() {
                write!(f, ": {}", names.join(", "))?;
            }
            if names.len() < count && !names.is_empty() {
                f.write_str(", …")?;
            }
        }
        Ok(())
    }
}

/// Has messages of type `M` shown by the first word of their `Debug` text from now on: an enum by
/// its variant.
pub fn show<M: Any + Sync + fmt::Debug>() {
    SHOWS.with_borrow_mut(|shows| {
        shows.push(|message| {
            let mut first = First(String::new());
            // The write ends with an error where the first word ends.
            let _ended = write!(first, "{:?}", message.downcast_ref::<M>()?);
            (!first.0.is_empty()).then_some(first.0)
        });
    });
}

/// The first word of a written text.
struct First(String);

impl Write for First {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let is_of_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        let end = text.find(|letter| !is_of_word(letter));
        self.0 += &text[..end.unwrap_or(text.len())];
        if end.is_some() {
            Err(fmt::Error)
        } else {
            Ok(())
        }
    }
}

/// Shows a message, without its topic.
fn shown(message: &Payloads) -> Cow<'static, str> {
    let shows = SHOWS.with_borrow(Vec::clone);
    let own = message.first().filter(|_| message.len() == 1);
    let text = own.and_then(|message| shows.iter().find_map(|show| show(message)));
    text.unwrap_or_else(|| short(message.type_name())).into()
}

fn texts<T: ToString>(of: &[T]) -> Vec<String> {
    of.iter().map(T::to_string).collect()
}

/// Takes the events since the last call, in order.
#[must_use]
pub fn noted() -> Vec<Note> {
    NOTES.take()
}

/// Lets another actor move in the middle of a move. Events meanwhile are noted as a part of this
/// inner move.
pub fn within(at: &'static str, actor: Actor, advance: impl FnOnce() -> Did) -> Did {
    let before = NOTES.take();
    let did = advance();
    NOTES.with_borrow_mut(|notes| {
        let own = std::mem::replace(notes, before);
        notes.push(Note::Within(Move {
            at,
            actor,
            did,
            notes: own,
        }));
    });
    did
}

/// Notes something in words.
pub fn tell(text: impl Into<Box<str>>) {
    note(|| Note::Told(text.into()));
}

/// Adds a note. Does nothing without a driver.
pub(super) fn note(what: impl FnOnce() -> Note) {
    if Simulation::is_driven() {
        let what = what();
        NOTES.with_borrow_mut(|notes| notes.push(what));
    }
}

/// Forgets all notes, for another simulation to follow.
pub(super) fn forget() {
    NOTES.take();
    SHOWS.take();
    who::forget();
}

//! What happens within a move, and between two, for the code that shows a run.

use super::who::{self, Who, short};
use super::{Did, Simulation};
use crate::probe::Decide;
use ganger_proc_api::{CommandId, Event, EventQueue, Message, Symbol, Tag};
use std::cell::RefCell;
use std::fmt;

thread_local! {
    static NOTES: RefCell<Vec<Note>> = const { RefCell::new(Vec::new()) };
}

/// Of how many messages a note has the names, and of how many answers the tags.
const SHOWN: usize = 8;

/// The actor that moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// The worker, or spare, with that number.
    Worker(usize),
    /// The monitor.
    Monitor,
    /// A timer of the simulation.
    Timer,
    /// What acts from outside of the scheduler, at any moment.
    Outside,
}

/// A move, or something that happens between two moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The actor that has moved.
    pub actor: Actor,
    /// What the move was.
    pub did: Did,
    /// What has happened in it, in order.
    pub notes: Vec<Note>,
}

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// Another thread has done this, from outside of any worker.
    Outside(Did),
    /// Another actor has moved meanwhile.
    Within(Move),
    /// A step of such a process is about to see these events.
    Steps(Who, Given),
    /// A step has yielded such a command, with the name under which it is registered, and a tag.
    Yields(CommandId, Option<Symbol>, Tag),
    /// Something rarer, in words.
    Told(Box<str>),
}

/// What a step is given. Its text, by `Display`, is empty when that is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    cancels: usize,
    exits: usize,
    /// Messages and control messages, and the topics of the first ones. Where there is no topic:
    /// the type.
    messages: usize,
    names: Vec<&'static str>,
    answers: usize,
    tags: Vec<Tag>,
}

impl Given {
    pub(super) fn of(events: &impl EventQueue) -> Self {
        let mut given = Self::default();
        events.visit(&mut |event| given.add(event));
        given
    }

    fn add(&mut self, event: &Event) {
        match event {
            Event::Cancel(_) => self.cancels += 1,
            Event::Completion(completion) => {
                self.answers += 1;
                if self.answers <= SHOWN {
                    self.tags.push(completion.tag);
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
                "" => message.payloads.type_name(),
                topic => topic,
            });
        }
    }
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [
            (self.cancels, "cancellation", Vec::new()),
            (self.exits, "exit notice", Vec::new()),
            (
                self.messages,
                "message",
                self.names.iter().map(|it| short(it)).collect(),
            ),
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

fn texts<T: ToString>(of: &[T]) -> Vec<String> {
    of.iter().map(T::to_string).collect()
}

/// What has happened since the last call, in order.
#[must_use]
pub fn noted() -> Vec<Note> {
    NOTES.take()
}

/// Another actor moves in the middle of a move. What happens meanwhile is noted as a part of that.
pub fn within(actor: Actor, advance: impl FnOnce() -> Did) -> Did {
    let before = NOTES.take();
    let did = advance();
    NOTES.with_borrow_mut(|notes| {
        let own = std::mem::replace(notes, before);
        notes.push(Note::Within(Move {
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

/// Adds a note. Does nothing where there is no driver.
pub(super) fn note(what: impl FnOnce() -> Note) {
    if Simulation::is_driven() {
        let what = what();
        NOTES.with_borrow_mut(|notes| notes.push(what));
    }
}

/// Forgets all notes, so that another simulation may follow.
pub(super) fn forget() {
    NOTES.take();
    who::forget();
}

//! What happens within a move, and between two, for the code that shows a run.

use super::{Did, Simulation};
use crate::probe::Decide;
use ganger_proc_api::{CommandId, Event, EventQueue, Symbol, Tag};
use std::cell::RefCell;
use std::fmt;

thread_local! {
    static NOTES: RefCell<Vec<Note>> = const { RefCell::new(Vec::new()) };
}

/// Of how many messages a note has the topics, and of how many answers the tags.
const SHOWN: usize = 8;

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// Another thread has done this, from outside of any worker.
    Outside(Did),
    /// A step of a process that was submitted with that method is about to see these events.
    Steps(Symbol, Given),
    /// A step has yielded such a command, with that tag.
    Yields(CommandId, Tag),
    /// Something rarer, in words.
    Told(Box<str>),
}

/// What a step is given. Its text, by `Display`, is empty when that is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    cancels: usize,
    exits: usize,
    /// Messages and control messages, and the topics of the first ones.
    messages: usize,
    topics: Vec<Symbol>,
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
            Event::Message(message) => self.add_message(message.topic),
            Event::Control(message) => self.add_message(message.topic),
            Event::Exit(_) => self.exits += 1,
            _ => {}
        }
    }

    fn add_message(&mut self, topic: Symbol) {
        self.messages += 1;
        if self.messages <= SHOWN {
            self.topics.push(topic);
        }
    }
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [
            (self.cancels, "cancellation", Vec::new()),
            (self.exits, "exit notice", Vec::new()),
            (self.messages, "message", texts(&self.topics)),
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
}

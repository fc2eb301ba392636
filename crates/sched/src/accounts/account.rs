//! The account of a process: the events sent to it and not shown, and the answers owed to it.

use crate::probe::Arrival;
use ganger_proc_api::{Event, Message, Pid, Tag};
use std::collections::{HashMap, VecDeque};
use std::fmt::{self, Write};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem;

/// An event, as far as it differs from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    Message(Print),
    Completion(Tag, u64),
    Cancel,
    Control(Print),
    /// With whether it stays behind messages.
    Exit(Pid, Tag, bool),
    Upgrade,
    Signal,
}

/// The visible parts of a message. The receiver can't tell two equal prints from each other either,
/// unless the messages hold values of types known only to users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Print {
    source: Option<Pid>,
    hash: u64,
}

/// The events of a process, or of all processes together, by their fates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    /// Messages and control messages accepted, taken by steps, and dropped with their process.
    pub(super) messages: u64,
    pub(super) handled: u64,
    pub(super) undelivered: u64,
    /// Commands handed to handlers.
    pub(super) yields: u64,
    /// Completions accepted, taken by steps, and dropped because they came too late or twice.
    pub(super) completions: u64,
    pub(super) delivered: u64,
    pub(super) stale: u64,
    pub(super) upgrades: u64,
}

/// A live process.
#[derive(Default)]
pub(super) struct Account {
    /// Events accepted, and not shown to a step: system events, and all others.
    system: VecDeque<Entry>,
    others: VecDeque<Entry>,
    /// Events shown and not taken, system events first.
    left: Vec<Entry>,
    /// The events shown to the running step.
    shown: Option<Vec<Entry>>,
    /// The unanswered yields, with their tags.
    outstanding: HashMap<u64, Tag>,
    next_yield: u64,
    /// How often `init` has returned `Ok`, and `close` has been called.
    opened: u32,
    closed: u32,
    pub(super) tally: Tally,
}

/// The promise, and the finding.
type Violation = (&'static str, String);

fn violation(promise: &'static str, found: impl Into<String>) -> Result<(), Violation> {
    Err((promise, found.into()))
}

impl Entry {
    /// Returns the entry of an event; `None` for an unknown kind.
    pub(super) fn of(arrival: Arrival<'_>) -> Option<Self> {
        match arrival {
            Arrival::Event(event) => Self::of_event(event),
            Arrival::Upgrade => Some(Self::Upgrade),
            Arrival::Signal => Some(Self::Signal),
        }
    }

    pub(super) fn of_event(event: &Event) -> Option<Self> {
        match event {
            Event::Message(message) => Some(Self::Message(Print::of(message))),
            Event::Completion(it) => Some(Self::Completion(it.tag, it.token())),
            Event::Cancel(_) => Some(Self::Cancel),
            Event::Control(message) => Some(Self::Control(Print::of(message))),
            Event::Exit(exit) => Some(Self::Exit(exit.pid, exit.tag, exit.is_in_order())),
            _ => None,
        }
    }

    fn is_system(&self) -> bool {
        matches!(
            self,
            Self::Cancel
                | Self::Control(_)
                | Self::Exit(_, _, false)
                | Self::Upgrade
                | Self::Signal
        )
    }

    fn is_message(&self) -> bool {
        matches!(self, Self::Message(_) | Self::Control(_))
    }

    fn is_completion(&self) -> bool {
        matches!(self, Self::Completion(..))
    }
}

impl Print {
    fn of(message: &Message) -> Self {
        /// Hashes the written text.
        struct Text(DefaultHasher);
        impl Write for Text {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                self.0.write(text.as_bytes());
                Ok(())
            }
        }
        let mut text = Text(DefaultHasher::new());
        message.topic.as_str().hash(&mut text.0);
        for payload in message.payloads.iter() {
            // Calls no user's code: values of users' types share a single text.
            let _infallible = write!(text, "{payload:?};");
        }
        Self {
            source: message.source,
            hash: text.0.finish(),
        }
    }
}

impl Tally {
    pub(super) fn add(&mut self, other: &Self) {
        self.messages += other.messages;
        self.handled += other.handled;
        self.undelivered += other.undelivered;
        self.yields += other.yields;
        self.completions += other.completions;
        self.delivered += other.delivered;
        self.stale += other.stale;
        self.upgrades += other.upgrades;
    }

    /// Returns how many of these are messages, and how many are completions.
    fn count(entries: &[Entry]) -> (u64, u64) {
        let count = |is: fn(&Entry) -> bool| entries.iter().filter(|it| is(it)).count() as u64;
        (count(Entry::is_message), count(Entry::is_completion))
    }
}

impl Account {
    /// Notes a successful `init`.
    pub(super) fn open(&mut self) {
        self.opened += 1;
    }

    /// Notes a call of `close`.
    pub(super) fn close(&mut self) -> Result<(), Violation> {
        self.closed += 1;
        if self.shown.is_some() {
            return violation("P2", "a process is closed while it is stepped");
        }
        if self.closed > self.opened {
            return violation("P2", "a process is closed twice");
        }
        Ok(())
    }

    pub(super) fn accept(&mut self, entry: Entry) {
        self.tally.messages += u64::from(entry.is_message());
        self.tally.completions += u64::from(entry.is_completion());
        let lane = if entry.is_system() {
            &mut self.system
        } else {
            &mut self.others
        };
        lane.push_back(entry);
    }

    /// Accepts an entry in front of all others not seen by a step.
    pub(super) fn accept_next(&mut self, entry: Entry) {
        self.accept(entry);
        self.others.rotate_right(1);
    }

    pub(super) fn begin_yield(&mut self, token: u64, tag: Tag) -> Result<(), Violation> {
        self.tally.yields += 1;
        if token < self.next_yield {
            return violation("P7", format!("the number {token} names two yields"));
        }
        self.next_yield = token + 1;
        self.outstanding.insert(token, tag);
        Ok(())
    }

    /// Notes the events of a step, before the step sees them.
    pub(super) fn show(&mut self, shown: Vec<Entry>) -> Result<(), Violation> {
        if self.shown.is_some() {
            return violation("G1", "a process is stepped while it is stepped");
        }
        let split = |list: &[Entry]| {
            let (system, others): (Vec<_>, Vec<_>) = list.iter().partition(|it| it.is_system());
            (system, others)
        };
        let (system, others) = split(&shown);
        if shown.iter().skip(system.len()).any(Entry::is_system) {
            return violation("P4", "a system event is shown behind others");
        }
        let (old_system, old_others) = split(&mem::take(&mut self.left));
        self.advance(&system, &old_system, true)?;
        self.advance(&others, &old_others, false)?;
        self.shown = Some(shown);
        Ok(())
    }

    /// Shows a lane's left events, and then the oldest of its new ones.
    fn advance(
        &mut self,
        shown: &[Entry],
        left: &[Entry],
        is_system: bool,
    ) -> Result<(), Violation> {
        let Some(new) = shown.strip_prefix(left) else {
            let found = format!("a step has left {left:?}, and the next one sees {shown:?}");
            return violation("P4", found);
        };
        for entry in new {
            let next = self.next(is_system);
            if next != Some(*entry) {
                let found = format!("a step sees {entry:?}, and {next:?} is the next to be seen");
                return violation("R4", found);
            }
        }
        Ok(())
    }

    /// Takes the oldest entry of a lane, to be shown.
    fn next(&mut self, is_system: bool) -> Option<Entry> {
        if is_system {
            return self.system.pop_front();
        }
        loop {
            let entry = self.others.pop_front()?;
            let Entry::Completion(tag, token) = entry else {
                return Some(entry);
            };
            // Else it has come twice, or its yield has been forgotten.
            if self.outstanding.remove(&token) == Some(tag) {
                return Some(entry);
            }
            self.tally.stale += 1;
        }
    }

    /// Notes the events left by the step, after the step.
    pub(super) fn settle(&mut self, left: Vec<Entry>) -> Result<(), Violation> {
        let Some(shown) = self.shown.take() else {
            return violation("P4", "a step is over that has seen nothing");
        };
        let mut rest = left.iter().peekable();
        let taken = shown.iter().filter(|it| rest.next_if_eq(it).is_none());
        let taken: Vec<_> = taken.copied().collect();
        if rest.next().is_some() {
            let found = format!("a step has seen {shown:?}, and {left:?} are left of it");
            return violation("P4", found);
        }
        let (messages, completions) = Tally::count(&taken);
        self.tally.handled += messages;
        self.tally.delivered += completions;
        self.left = left;
        Ok(())
    }

    /// Takes a request for an upgrade out.
    pub(super) fn take_upgrade(&mut self) -> Result<(), Violation> {
        match self.next(true) {
            Some(Entry::Upgrade) => Ok(()),
            next => violation(
                "P4",
                format!("an upgrade begins, and {next:?} is the next to be seen"),
            ),
        }
    }

    /// Asks a signal, whose place the notice takes, or nothing.
    pub(super) fn take_signal(&mut self, notice: Option<Entry>) -> Result<(), Violation> {
        let told = |it: &Entry| matches!(it, Entry::Exit(..));
        let at = self.system.iter().position(|it| !told(it));
        match at.and_then(|at| self.system.get_mut(at)) {
            Some(entry @ Entry::Signal) => {
                match notice {
                    Some(notice) => *entry = notice,
                    None => _ = at.and_then(|at| self.system.remove(at)),
                }
                Ok(())
            }
            next => violation(
                "P4",
                format!("a signal is asked, and {next:?} is the next to be seen"),
            ),
        }
    }

    /// Notes another process in the place of this process.
    pub(super) fn upgrade(&mut self) {
        self.tally.upgrades += 1;
        self.outstanding.clear();
        self.forget_left(|_| true);
    }

    /// Takes back the yields with the tag.
    pub(super) fn take_back(&mut self, tag: Tag) {
        self.outstanding.retain(|_, its| *its != tag);
        self.forget_left(|its| its == tag);
    }

    fn forget_left(&mut self, is_stale: impl Fn(Tag) -> bool) {
        let before = self.left.len();
        let is_stale = |it: &Entry| matches!(it, Entry::Completion(tag, _) if is_stale(*tag));
        self.left.retain(|entry| !is_stale(entry));
        self.tally.stale += (before - self.left.len()) as u64;
    }

    /// Ends the process, with the events dropped at its end.
    pub(super) fn drop_rest(&mut self, dropped: Vec<Entry>) -> Result<(), Violation> {
        let outstanding = mem::take(&mut self.outstanding);
        let mut rest = mem::take(&mut self.left);
        rest.extend(self.system.drain(..));
        let others: Vec<_> = self.others.drain(..).collect();
        // Late entries may have been dropped before.
        let is_due = |entry: &Entry| match entry {
            Entry::Completion(_, token) => outstanding.contains_key(token),
            _ => true,
        };
        let (due, late): (Vec<_>, Vec<_>) = others.into_iter().partition(is_due);
        rest.extend(due);
        let (messages, completions) = Tally::count(&rest);
        self.tally.undelivered += messages;
        self.tally.stale += completions + late.len() as u64;
        let mut unknown = dropped;
        let mut take_out = |entry: &Entry| {
            let place = unknown.iter().position(|it| it == entry);
            place.map(|place| unknown.swap_remove(place)).is_some()
        };
        rest.retain(|entry| !take_out(entry));
        for entry in &late {
            let _was_there = take_out(entry);
        }
        let lost = rest;
        if !lost.is_empty() {
            return violation("R2", format!("with the end of a process {lost:?} are lost"));
        }
        if !unknown.is_empty() {
            let found = format!("a process ends with {unknown:?}, which it had not");
            return violation("R2", found);
        }
        Ok(())
    }

    /// Checks the account at its end, after which nothing comes.
    pub(super) fn end(&self) -> Result<(), Violation> {
        if self.opened != self.closed {
            let found = format!(
                "a process has ended that was initialised {} times and closed {} times",
                self.opened, self.closed
            );
            return violation("P2", found);
        }
        let waiting = self.system.len() + self.others.len() + self.left.len();
        if waiting > 0 {
            return violation("R2", format!("{waiting} events are left of a process"));
        }
        Ok(())
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;

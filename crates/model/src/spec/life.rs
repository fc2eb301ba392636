//! A process, as it must be: its arrived events, and the events that a step may be shown.

use super::Broken;
use crate::notes::{End, Heir, Number, Seen};
use crate::plan::Kind;
use ganger_proc_api::Pid;
use std::collections::{BTreeSet, VecDeque};
use std::mem;

/// After this many batches in a row from which system events have displaced other events, the other
/// events come first.
const STREAK: u32 = 8;

/// An arrived event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrived<T> {
    /// Counted over both lanes.
    nth: u64,
    pub(super) it: T,
}

/// The events in the system lane.
#[derive(Debug, Clone, Copy)]
pub(super) enum System {
    Event(Seen),
    Upgrade(Heir),
}

/// Where a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its `init` has begun, and it has not been started.
    Starting,
    /// The hook has refused it.
    Refused,
    /// The process has been closed after the refusal.
    RolledBack,
    /// Between steps.
    Waits,
    /// Inside of a step.
    Steps,
    /// A step has decided that the process becomes this heir.
    Becomes(Heir),
    /// Its heir is initialised; this process is still to be closed.
    Replaced(Number),
    /// The process must be closed, and have this end.
    Ends(End),
    /// The process is being closed, or has been.
    Closes(End),
}

/// The messages of a sender.
#[derive(Debug)]
pub(super) struct Stream {
    /// The number of messages.
    pub(super) all: usize,
    /// The messages behind the last shown message, in order of their numbers.
    pub(super) offered: VecDeque<Number>,
    pub(super) shown: Vec<Number>,
}

#[derive(Debug)]
pub(super) struct Life {
    pub(super) pid: Pid,
    /// The process of the moment.
    pub(super) process: Number,
    pub(super) phase: Phase,
    pub(super) incarnation: u32,
    pub(super) must_step: bool,
    pub(super) is_cancelled: bool,
    pub(super) is_terminating: bool,
    /// Whether the report of the stop counts the process: it had not ended when the stop began, or
    /// has started since.
    pub(super) is_counted: bool,
    /// The process was started in a stop, which does not ask it to finish.
    pub(super) is_left_alone: bool,
    /// The process was started in a stop, which asks it to finish at some moment of its start.
    pub(super) may_be_told: bool,
    /// A step has been shown the request to finish.
    is_prepared: bool,
    /// Messages in a wait for room.
    pub(super) waiting: VecDeque<Number>,
    /// The messages of each sender, of several that send at once.
    pub(super) streams: Vec<Stream>,
    /// Messages, and control messages, that no step has taken.
    pub(super) places: [usize; 2],
    /// The watchers of its end: their lives, and their tags.
    pub(super) watchers: Vec<(usize, Number)>,
    /// Yields whose completions no step has been shown.
    pub(super) outstanding: BTreeSet<Number>,
    /// Yields of the last step that have not been dispatched.
    pub(super) dispatching: VecDeque<(Number, Kind)>,
    /// The steps so far, of predecessors too, and how many new events they were shown.
    pub(super) steps: u64,
    pub(super) events: u64,
    arrivals: u64,
    system: VecDeque<Arrived<System>>,
    fresh: VecDeque<Arrived<Seen>>,
    /// The events that have been shown and not taken.
    left: Vec<Seen>,
    /// The process is an heir, and no step of its own has been shown the events left.
    shows_left_first: bool,
    /// The end by a cancellation that the running step is the first to be shown.
    pub(super) cancel: Option<End>,
    /// The places of the messages that the running step has taken.
    taken: [usize; 2],
    streak: u32,
}

impl Life {
    pub(super) fn new(pid: Pid, process: Number) -> Self {
        Self {
            pid,
            process,
            phase: Phase::Starting,
            incarnation: 0,
            must_step: true,
            is_cancelled: false,
            is_terminating: false,
            is_counted: false,
            is_left_alone: false,
            may_be_told: false,
            is_prepared: false,
            waiting: VecDeque::new(),
            streams: Vec::new(),
            places: [0; 2],
            watchers: Vec::new(),
            outstanding: BTreeSet::new(),
            dispatching: VecDeque::new(),
            steps: 0,
            events: 0,
            arrivals: 0,
            system: VecDeque::new(),
            fresh: VecDeque::new(),
            left: Vec::new(),
            shows_left_first: false,
            cancel: None,
            taken: [0; 2],
            streak: 0,
        }
    }

    /// Returns whether the mailbox takes anything.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self.phase, Phase::Closes(_) | Phase::RolledBack)
    }

    /// Returns whether a stop comes as no surprise to the process.
    pub(super) fn is_prepared(&self) -> bool {
        self.is_prepared || (self.is_left_alone && !self.is_cancelled)
    }

    fn arrived<T>(&mut self, it: T) -> Arrived<T> {
        self.arrivals += 1;
        let nth = self.arrivals;
        Arrived { nth, it }
    }

    pub(super) fn put(&mut self, seen: Seen) {
        if seen.is_system() {
            let event = self.arrived(System::Event(seen));
            self.system.push_back(event);
        } else {
            let event = self.arrived(seen);
            self.fresh.push_back(event);
        }
    }

    pub(super) fn put_upgrade(&mut self, heir: Heir) {
        let upgrade = self.arrived(System::Upgrade(heir));
        self.system.push_back(upgrade);
    }

    /// Returns the heir of the next system event, if this is an upgrade.
    pub(super) fn next_upgrade(&self) -> Option<Heir> {
        match self.system.front()?.it {
            System::Upgrade(heir) => Some(heir),
            System::Event(_) => None,
        }
    }

    pub(super) fn take_upgrade(&mut self) {
        self.system.pop_front();
        self.streak += 1;
    }

    /// Shows a step these events. Returns the number of completions that must have been dropped
    /// before.
    pub(super) fn show(&mut self, shown: &[Seen], batch: usize) -> Result<u64, Broken> {
        let older = self.left.iter().take_while(|seen| seen.is_system()).count();
        let (older, others) = self.left.split_at(older);
        let behind = shown.strip_prefix(older);
        let system = behind.map_or(0, |it| it.iter().take_while(|it| it.is_system()).count());
        let rest = behind.and_then(|behind| behind[system..].strip_prefix(others));
        let (Some(behind), Some(fresh)) = (behind, rest) else {
            let left = &self.left;
            return Err(format!("{left:?} were left, and are not in front (P4)"));
        };
        let shows_first = if mem::take(&mut self.shows_left_first) {
            older
        } else {
            &[]
        };
        let mut first = shows_first.iter().chain(&behind[..system]);
        self.cancel = first.find_map(|seen| seen.end());
        self.is_prepared |= self.cancel.is_some();
        for &seen in &behind[..system] {
            if seen == Seen::Shutdown && mem::take(&mut self.may_be_told) {
                self.is_cancelled = true;
                continue;
            }
            match self.system.pop_front().map(|it| it.it) {
                Some(System::Event(next)) if next == seen => {}
                next => return Err(format!("{seen:?} is shown where {next:?} is next (P4)")),
            }
        }
        if system + fresh.len() > batch {
            return Err(format!("more than {batch} new events in a batch (P4)"));
        }
        let (mut stale, mut last) = (0, 0);
        for &seen in fresh {
            stale += self.drop_stale();
            if self.take_from_a_stream(seen) {
                continue;
            }
            match self.fresh.pop_front() {
                Some(next) if next.it == seen => last = next.nth,
                next => return Err(format!("{seen:?} is shown where {next:?} is next (P4)")),
            }
            if let Seen::Completion(tag, _) = seen {
                self.outstanding.remove(&tag);
            }
        }
        let overtaken = self.system.front().filter(|it| it.nth < last);
        if let Some(overtaken) = overtaken.filter(|_| self.streak < STREAK) {
            return Err(format!("{overtaken:?} has been overtaken (P4)"));
        }
        if !self.must_step && system + fresh.len() == 0 {
            return Err("it is woken for nothing (P4)".to_owned());
        }
        self.streak = if fresh.is_empty() { self.streak + 1 } else { 0 };
        self.must_step = false;
        self.steps += 1;
        self.events += (system + fresh.len()) as u64;
        self.left = shown.to_vec();
        Ok(stale)
    }

    /// Returns the number of events that have been shown and not taken.
    pub(super) fn events_left(&self) -> u64 {
        self.left.len() as u64
    }

    /// Returns the number of messages that have been shown and not taken.
    pub(super) fn messages_left(&self) -> usize {
        messages_among(&self.left)
    }

    /// Takes a shown event in a step.
    pub(super) fn take(&mut self, seen: Seen) -> Result<(), Broken> {
        let place = self.left.iter().position(|&it| it == seen);
        let place = place.ok_or_else(|| format!("{seen:?} is taken, and was not shown"))?;
        self.left.remove(place);
        match seen {
            Seen::Message(_) => self.taken[0] += 1,
            Seen::Control(_) => self.taken[1] += 1,
            _ => {}
        }
        Ok(())
    }

    /// Ends a step: its taken messages leave room for others.
    pub(super) fn give_places(&mut self) {
        for (places, taken) in self.places.iter_mut().zip(&mut self.taken) {
            *places -= mem::take(taken);
        }
    }

    /// Replaces the process by its heir. Returns how many completions must have been dropped.
    pub(super) fn become_heir(&mut self) -> u64 {
        self.incarnation += 1;
        self.must_step = true;
        self.shows_left_first = true;
        self.outstanding.clear();
        let before = self.left.len();
        self.left.retain(|it| !matches!(it, Seen::Completion(..)));
        (before - self.left.len()) as u64
    }

    /// Drops the next completions for which no yield waits; returns their number.
    pub(super) fn drop_stale(&mut self) -> u64 {
        let mut stale = 0;
        while let Some(next) = self.fresh.front()
            && matches!(next.it, Seen::Completion(tag, _) if !self.outstanding.contains(&tag))
        {
            self.fresh.pop_front();
            stale += 1;
        }
        stale
    }

    /// Returns an event that a step must still be shown, if any.
    pub(super) fn waiting_for_a_step(&self) -> Option<String> {
        if let Some(next) = self.system.front() {
            return Some(format!("{next:?}"));
        }
        if let Some(next) = self.fresh.front() {
            return Some(format!("{next:?}"));
        }
        if let Some(next) = self.next_in_a_stream() {
            return Some(format!("{next}"));
        }
        self.must_step.then(|| "it is to be stepped".to_owned())
    }

    /// Returns the number of messages and completions that no step will be shown.
    pub(super) fn unseen(&self) -> (u64, u64) {
        let system = self.system.iter().filter_map(|it| match it.it {
            System::Event(seen) => Some(seen),
            System::Upgrade(_) => None,
        });
        let fresh = self.fresh.iter().map(|it| it.it);
        let all = self.left.iter().copied().chain(system).chain(fresh);
        all.fold((0, 0), |(messages, completions), seen| match seen {
            Seen::Message(_) | Seen::Control(_) => (messages + 1, completions),
            Seen::Completion(..) => (messages, completions + 1),
            _ => (messages, completions),
        })
    }
}

/// Returns the number of messages among the events.
pub(super) fn messages_among(seen: &[Seen]) -> usize {
    let is_message = |seen: &&Seen| matches!(seen, Seen::Message(_));
    seen.iter().filter(is_message).count()
}

impl Life {
    /// Takes an event out of its stream, with the messages before it (P4, R4).
    fn take_from_a_stream(&mut self, seen: Seen) -> bool {
        let Seen::Message(number) = seen else {
            return false;
        };
        for Stream { offered, shown, .. } in &mut self.streams {
            if let Ok(place) = offered.binary_search(&number) {
                offered.drain(..=place);
                shown.push(number);
                return true;
            }
        }
        false
    }

    /// Returns a message of several senders' that no step has been shown.
    fn next_in_a_stream(&self) -> Option<Number> {
        let mut streams = self.streams.iter();
        streams.find_map(|stream| stream.offered.front().copied())
    }
}

//! What is known of a supervisor's children for those that look at it.
//!
//! The supervisor writes, at each change. Any thread reads. What takes the children over when the
//! supervisor has ended reads as well.

use crate::plan::{ChildId, Restart, State, StopTime, Strategy};
use ganger_proc_api::{ExitCause, Pid};
use ganger_sync::sync::{Mutex, lock};
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::Arc;

pub(crate) struct View {
    pub(crate) label: Arc<str>,
    pub(crate) strategy: Strategy,
    entries: Mutex<BTreeMap<ChildId, Entry>>,
}

#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) name: Arc<str>,
    pub(crate) restart: Restart,
    pub(crate) stop: StopTime,
    /// While it runs.
    pub(crate) pid: Option<Pid>,
    pub(crate) state: ChildState,
    pub(crate) restarts: u64,
    pub(crate) last: Option<ExitCause>,
    pub(crate) was_slow: bool,
    /// Of a supervisor that runs.
    pub(crate) below: Option<Arc<View>>,
}

/// What a child does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChildState {
    /// It runs.
    Runs,
    /// It has been asked to finish.
    Stops,
    /// It has ended, or could not be started, and is to be started.
    Waits,
    /// It has ended, and is not to be started.
    Stopped,
}

/// A child, as it was at some moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChildInfo {
    /// Its name.
    pub name: Arc<str>,
    /// Its process, while there is one.
    pub pid: Option<Pid>,
    /// What it does.
    pub state: ChildState,
    /// When it is restarted.
    pub restart: Restart,
    /// How often it was started anew, as another process or in its place.
    pub restarts: u64,
    /// How it has ended or failed last, if it has.
    pub last: Option<ExitCause>,
    /// Its last process did not finish in the time that it had, and was terminated.
    pub was_slow: bool,
    /// The children of a supervisor; `None` for other children.
    pub children: Option<Vec<ChildInfo>>,
}

impl View {
    pub(crate) fn new(label: Arc<str>, strategy: Strategy) -> Self {
        let entries = Mutex::default();
        Self {
            label,
            strategy,
            entries,
        }
    }

    pub(crate) fn insert(&self, id: ChildId, entry: Entry) {
        lock(&self.entries).insert(id, entry);
    }

    pub(crate) fn remove(&self, id: ChildId) {
        // Dropped outside of the lock: a view below may be large.
        let _entry = lock(&self.entries).remove(&id);
    }

    pub(crate) fn change(&self, id: ChildId, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = lock(&self.entries).get_mut(&id) {
            change(entry);
        }
    }

    pub(crate) fn set(&self, id: ChildId, state: Option<State>, is_due: bool) {
        self.change(id, |entry| {
            entry.state = match state {
                Some(State::Runs) => ChildState::Runs,
                Some(State::Asked) => ChildState::Stops,
                Some(State::Off) if is_due => ChildState::Waits,
                _ => ChildState::Stopped,
            };
        });
    }

    pub(crate) fn name(&self, id: ChildId) -> Arc<str> {
        let entries = lock(&self.entries);
        (entries.get(&id)).map_or_else(|| "".into(), |it| Arc::clone(&it.name))
    }

    /// Whether it has been asked to finish.
    pub(crate) fn is_stopping(&self, id: ChildId) -> bool {
        let entries = lock(&self.entries);
        (entries.get(&id)).is_some_and(|it| it.state == ChildState::Stops)
    }

    pub(crate) fn entries(&self) -> Vec<(ChildId, Entry)> {
        let entries = lock(&self.entries);
        entries.iter().map(|(id, it)| (*id, it.clone())).collect()
    }

    /// How many children there are, and how many of them run.
    pub(crate) fn count(&self) -> (usize, usize) {
        let entries = lock(&self.entries);
        let running = entries.values().filter(|it| it.pid.is_some()).count();
        (entries.len(), running)
    }

    /// The child with that name, or at that path: names with slashes between them.
    pub(crate) fn find(&self, path: &str) -> Option<Entry> {
        let by_name = |name: &str| {
            let entries = lock(&self.entries);
            entries.values().find(|it| &*it.name == name).cloned()
        };
        if let Some(entry) = by_name(path) {
            return Some(entry);
        }
        let (first, rest) = path.split_once('/')?;
        by_name(first)?.below?.find(rest)
    }

    pub(crate) fn children(&self) -> Vec<ChildInfo> {
        let info = |(_, entry): (ChildId, Entry)| ChildInfo {
            children: entry.below.as_deref().map(Self::children),
            name: entry.name,
            pid: entry.pid,
            state: entry.state,
            restart: entry.restart,
            restarts: entry.restarts,
            last: entry.last,
            was_slow: entry.was_slow,
        };
        self.entries().into_iter().map(info).collect()
    }
}

/// The tree, a line a child.
impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.label, name_of(self.strategy))?;
        write_children(f, &self.children(), &mut String::new())
    }
}

fn name_of(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::OneForOne => "one for one",
        Strategy::OneForAll => "one for all",
        Strategy::RestForOne => "rest for one",
        Strategy::Dynamic => "dynamic",
    }
}

fn write_children(
    f: &mut fmt::Formatter<'_>,
    children: &[ChildInfo],
    indent: &mut String,
) -> fmt::Result {
    for (index, child) in children.iter().enumerate() {
        let is_last = index + 1 == children.len();
        let branch = if is_last { "└─ " } else { "├─ " };
        write!(f, "\n{indent}{branch}{child}")?;
        if let Some(below) = &child.children {
            let length = indent.len();
            indent.push_str(if is_last { "   " } else { "│  " });
            write_children(f, below, indent)?;
            indent.truncate(length);
        }
    }
    Ok(())
}

/// One line, without the children below it.
impl fmt::Display for ChildInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match self.state {
            ChildState::Runs => f.write_str(" runs")?,
            ChildState::Stops => f.write_str(" stops")?,
            ChildState::Waits => f.write_str(" waits")?,
            ChildState::Stopped => f.write_str(" stopped")?,
        }
        match self.restarts {
            0 => {}
            1 => f.write_str(", restarted once")?,
            2 => f.write_str(", restarted twice")?,
            times => write!(f, ", restarted {times} times")?,
        }
        if let Some(last) = &self.last {
            write!(f, ", last {last}")?;
        }
        if self.was_slow {
            f.write_str(", too slow to stop")?;
        }
        f.write_char(if self.children.is_some() { ':' } else { '.' })
    }
}

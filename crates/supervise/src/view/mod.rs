//! The public state of a supervisor's children.
//!
//! The supervisor writes, at each change. Any thread reads. The guardian of a dead supervisor's
//! children reads as well, and notes when they are gone: a supervisor above waits for this before
//! it starts the successor.
//!
//! Each change counts, here and in the views above, and wakes the waiters: see `tree/wait.rs`.

mod changed;

use crate::log::contain;
use crate::plan::{ChildId, Restart, ShutdownTimeout, State, Strategy};
use ganger_proc_api::{ExitCause, Pid, Process};
use ganger_sync::sync::{Mutex, lock};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::{self, Write};
use std::mem;
use std::sync::{Arc, OnceLock, Weak};
use std::task::Waker;

pub(crate) struct View {
    pub(crate) label: Arc<str>,
    pub(crate) strategy: Strategy,
    /// The user's handler of failures.
    pub(crate) on_failure: OnceLock<OnFailure>,
    inner: Mutex<Inner>,
}

/// Tells a supervisor from other processes, by its view.
pub(crate) type ViewOf = fn(&dyn Process) -> Option<Arc<View>>;

pub(crate) type OnFailure = Arc<dyn Fn(&ChildFailure<'_>) + Send + Sync>;

#[derive(Default)]
struct Inner {
    entries: BTreeMap<ChildId, Entry>,
    /// How many of the entries have a process.
    running: usize,
    names: HashMap<Arc<str>, BTreeSet<ChildId>>,
    /// A few names of forgotten children that were too slow to stop.
    slow: Vec<Arc<str>>,
    /// The supervisor has ended.
    is_over: bool,
    /// All its children have ended, too.
    is_gone: bool,
    /// The wakers of this end.
    waiting: Vec<Waker>,
    /// How the supervisor has ended.
    end: Option<ExitCause>,
    /// The count of changes, here and below.
    version: u64,
    /// The waiters for the next change, by their seats.
    watchers: BTreeMap<u64, Waker>,
    last_seat: u64,
    /// The view of the supervisor above.
    above: Weak<View>,
}

/// The place of a waiter: none before its first wait.
#[derive(Default)]
pub(crate) struct Seat(Option<u64>);

/// Whether a child is up.
pub(crate) enum Up {
    /// The child runs.
    Is(Pid),
    /// The child waits for its start, or is about to end.
    NotYet,
    /// The child, or a supervisor above it, is stopped.
    Never,
    /// The name is unknown.
    Unknown {
        /// The known names.
        there: String,
    },
}

/// The most names in an error.
const SHOWN: usize = 16;

/// The most names to keep.
const SLOW: usize = 64;

#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) name: Arc<str>,
    pub(crate) restart: Restart,
    pub(crate) stop: ShutdownTimeout,
    /// The process, while the child runs.
    pub(crate) pid: Option<Pid>,
    pub(crate) state: ChildState,
    pub(crate) restarts: u64,
    pub(crate) last: Option<ExitCause>,
    pub(crate) was_slow: bool,
    /// The view of a running supervisor.
    pub(crate) below: Option<Arc<View>>,
}

/// The state of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChildState {
    /// The child runs.
    Runs,
    /// The child was asked to finish.
    Stops,
    /// The child has ended, or has failed to start, and waits for its start.
    Waits,
    /// The child has ended, and stays so.
    Stopped,
}

impl fmt::Display for ChildState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Runs => "runs",
            Self::Stops => "stops",
            Self::Waits => "waits",
            Self::Stopped => "stopped",
        })
    }
}

/// A child at some time.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChildInfo {
    /// Its name.
    pub name: Arc<str>,
    /// Its process, if any.
    pub pid: Option<Pid>,
    /// Its state.
    pub state: ChildState,
    /// Its restart policy.
    pub restart: Restart,
    /// Its restarts, as another process or in place.
    pub restarts: u64,
    /// Its last end or failure, if any.
    pub last: Option<ExitCause>,
    /// Its last process missed its deadline, and was terminated.
    pub was_slow: bool,
    /// The children of a supervisor; `None` for other children.
    pub children: Option<Vec<ChildInfo>>,
}

/// A failure of a child: see [`Supervisor::on_failure`](crate::Supervisor::on_failure).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ChildFailure<'a> {
    /// The name of its supervisor.
    pub supervisor: &'a str,
    /// Its name.
    pub child: &'a str,
    /// Its process.
    pub pid: Pid,
    /// The failure of the process.
    pub cause: &'a ExitCause,
    /// Its earlier restarts.
    pub restarts: u64,
}

impl<'a> ChildFailure<'a> {
    /// Returns the child's name, as given to [`ChildSpec::new`](crate::ChildSpec::new).
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.child
    }
}

impl fmt::Display for ChildFailure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            supervisor,
            child,
            pid,
            cause,
            restarts,
        } = self;
        write!(
            f,
            "{child} of {supervisor}, {pid}, restarted {restarts} times, {cause}"
        )
    }
}

impl View {
    pub(crate) fn new(label: Arc<str>, strategy: Strategy) -> Self {
        let inner = Mutex::default();
        Self {
            label,
            strategy,
            on_failure: OnceLock::new(),
            inner,
        }
    }

    pub(crate) fn insert(&self, id: ChildId, entry: Entry) {
        let mut inner = lock(&self.inner);
        let name = Arc::clone(&entry.name);
        inner.names.entry(name).or_default().insert(id);
        inner.running += usize::from(entry.pid.is_some());
        inner.entries.insert(id, entry);
        let changed = inner.changed();
        drop(inner);
        changed.tell();
    }

    pub(crate) fn remove(&self, id: ChildId) {
        let mut inner = lock(&self.inner);
        let state = &mut *inner;
        // Dropped outside of the lock: a view below may be large.
        let entry = state.entries.remove(&id);
        if let Some(entry) = &entry {
            state.running -= usize::from(entry.pid.is_some());
            if let Some(ids) = state.names.get_mut(&entry.name) {
                ids.remove(&id);
                if ids.is_empty() {
                    state.names.remove(&entry.name);
                }
            }
            if entry.was_slow && state.slow.len() < SLOW {
                state.slow.push(Arc::clone(&entry.name));
            }
        }
        let changed = inner.changed();
        drop(inner);
        drop(entry);
        changed.tell();
    }

    pub(crate) fn change(&self, id: ChildId, change: impl FnOnce(&mut Entry)) {
        let mut inner = lock(&self.inner);
        let state = &mut *inner;
        let Some(entry) = state.entries.get_mut(&id) else {
            return;
        };
        state.running -= usize::from(entry.pid.is_some());
        change(entry);
        state.running += usize::from(entry.pid.is_some());
        let changed = inner.changed();
        drop(inner);
        changed.tell();
    }

    /// Sets the view of the supervisor above, which counts the changes of this view as well.
    pub(crate) fn set_above(&self, above: &Arc<Self>) {
        lock(&self.inner).above = Arc::downgrade(above);
    }

    /// Returns the count of changes, here and below.
    pub(crate) fn version(&self) -> u64 {
        lock(&self.inner).version
    }

    /// Registers a waker for the next change, in place of the seat's earlier waker.
    pub(crate) fn watch(&self, seat: &mut Seat, waker: &Waker) {
        let waker = waker.clone();
        let mut inner = lock(&self.inner);
        let seat = *seat.0.get_or_insert_with(|| {
            inner.last_seat += 1;
            inner.last_seat
        });
        let before = inner.watchers.insert(seat, waker);
        drop(inner);
        drop(before);
    }

    /// Removes the waiter, which leaves.
    pub(crate) fn leave(&self, seat: &mut Seat) {
        if let Some(seat) = seat.0.take() {
            let waker = lock(&self.inner).watchers.remove(&seat);
            drop(waker);
        }
    }

    /// Returns the end of the supervisor, if any.
    pub(crate) fn end_cause(&self) -> Option<ExitCause> {
        lock(&self.inner).end.clone()
    }

    /// Notes that the supervisor has ended, and that its end is public.
    pub(crate) fn set_end(&self, cause: ExitCause) {
        let mut inner = lock(&self.inner);
        inner.end = Some(cause);
        let changed = inner.changed();
        drop(inner);
        changed.tell();
    }

    /// Returns the oldest child of this name.
    pub(crate) fn id_of(&self, name: &str) -> Option<ChildId> {
        lock(&self.inner).names.get(name)?.first().copied()
    }

    /// Returns the view of a child, if the child is a running supervisor.
    pub(crate) fn below(&self, id: ChildId) -> Option<Arc<Self>> {
        lock(&self.inner).entries.get(&id)?.below.clone()
    }

    /// Calls `look` with the children, under the lock.
    pub(crate) fn look(&self, look: impl FnOnce(&BTreeMap<ChildId, Entry>)) {
        look(&lock(&self.inner).entries);
    }

    /// Returns whether a child here or below has this process. O(children).
    pub(crate) fn has(&self, process: Pid) -> bool {
        let inner = lock(&self.inner);
        let entries = inner.entries.values();
        if entries.clone().any(|it| it.pid == Some(process)) {
            return true;
        }
        let below: Vec<_> = entries.filter_map(|it| it.below.clone()).collect();
        drop(inner);
        below.iter().any(|it| it.has(process))
    }

    /// Notes that the supervisor has ended. Returns its living children.
    pub(crate) fn end(&self) -> Vec<(ChildId, Entry)> {
        lock(&self.inner).is_over = true;
        let mut left = self.entries();
        left.retain(|(_, entry)| entry.pid.is_some());
        left
    }

    /// Notes that the supervisor and all its children have ended.
    pub(crate) fn set_gone(&self) {
        let mut inner = lock(&self.inner);
        inner.is_over = true;
        inner.is_gone = true;
        inner.running = 0;
        for entry in inner.entries.values_mut() {
            entry.pid = None;
            entry.state = ChildState::Stopped;
        }
        let waiting = mem::take(&mut inner.waiting);
        let changed = inner.changed();
        drop(inner);
        waiting.into_iter().for_each(Waker::wake);
        changed.tell();
    }

    /// Returns whether the dead supervisor has living children. The last of their ends wakes
    /// `waker`.
    pub(crate) fn has_orphans(&self, waker: impl FnOnce() -> Waker) -> bool {
        let mut inner = lock(&self.inner);
        let has_some = !inner.is_gone && inner.entries.values().any(|it| it.pid.is_some());
        if has_some {
            inner.waiting.push(waker());
        }
        has_some
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
        let inner = lock(&self.inner);
        (inner.entries.get(&id)).map_or_else(|| "".into(), |it| Arc::clone(&it.name))
    }

    /// Returns the last end of a child.
    pub(crate) fn last_of(&self, id: ChildId) -> Option<ExitCause> {
        lock(&self.inner).entries.get(&id)?.last.clone()
    }

    /// Tells the user of a failure.
    pub(crate) fn tell_of_failure(&self, id: ChildId, pid: Pid, cause: &ExitCause) {
        let Some(on_failure) = self.on_failure.get() else {
            return;
        };
        let entry = lock(&self.inner).entries.get(&id).cloned();
        if let Some(entry) = entry {
            let failure = ChildFailure {
                supervisor: &self.label,
                child: &entry.name,
                pid,
                cause,
                restarts: entry.restarts,
            };
            let _ = contain(|| on_failure(&failure));
        }
    }

    /// Returns whether the child was asked to finish.
    pub(crate) fn is_stopping(&self, id: ChildId) -> bool {
        let inner = lock(&self.inner);
        (inner.entries.get(&id)).is_some_and(|it| it.state == ChildState::Stops)
    }

    pub(crate) fn entries(&self) -> Vec<(ChildId, Entry)> {
        let entries = &lock(&self.inner).entries;
        entries.iter().map(|(id, it)| (*id, it.clone())).collect()
    }

    /// Returns the number of children, and of running children. O(1).
    pub(crate) fn count(&self) -> (usize, usize) {
        let inner = lock(&self.inner);
        (inner.entries.len(), inner.running)
    }

    /// Finds a child by its name or path; a path has slashes between names.
    pub(crate) fn find(&self, path: &str) -> Option<Entry> {
        match self.first_of(path)? {
            (entry, None) => Some(entry),
            (entry, Some(rest)) => entry.below?.find(rest),
        }
    }

    /// Finds the first child on a path, and returns also the rest of the path.
    fn first_of<'a>(&self, path: &'a str) -> Option<(Entry, Option<&'a str>)> {
        let by_name = |name: &str| {
            let inner = lock(&self.inner);
            let id = inner.names.get(name)?.first()?;
            inner.entries.get(id).cloned()
        };
        if let Some(entry) = by_name(path) {
            return Some((entry, None));
        }
        let (first, rest) = path.split_once('/')?;
        Some((by_name(first)?, Some(rest)))
    }

    /// Tells whether a child is up, by its name or path.
    pub(crate) fn up(&self, path: &str) -> Up {
        // The supervisor above has not noted the end.
        if self.is_over() {
            return Up::NotYet;
        }
        let Some((entry, rest)) = self.first_of(path) else {
            let there = self.names();
            return Up::Unknown { there };
        };
        match (entry.state, entry.pid, rest) {
            (ChildState::Stopped, _, _) => Up::Never,
            (ChildState::Runs, Some(pid), None) => Up::Is(pid),
            (ChildState::Runs, Some(_), Some(rest)) => match entry.below {
                Some(below) => below.up(rest),
                None => Up::Unknown {
                    there: self.names(),
                },
            },
            _ => Up::NotYet,
        }
    }

    /// Returns the names of some children, for errors.
    pub(crate) fn names(&self) -> String {
        let inner = lock(&self.inner);
        let names = inner.entries.values().map(|it| format!("{:?}", it.name));
        names.take(SHOWN).collect::<Vec<_>>().join(", ")
    }

    /// Returns whether the supervisor has ended.
    pub(crate) fn is_over(&self) -> bool {
        lock(&self.inner).is_over
    }

    /// Returns the paths of the children that were too slow to stop.
    pub(crate) fn slow(&self) -> Vec<String> {
        let mut slow = Vec::new();
        self.add_slow("", &mut slow);
        slow
    }

    fn add_slow(&self, above: &str, slow: &mut Vec<String>) {
        for (_, entry) in self.entries() {
            let path = format!("{above}{}", entry.name);
            if let Some(below) = &entry.below {
                below.add_slow(&format!("{path}/"), slow);
            }
            if entry.was_slow {
                slow.push(path);
            }
        }
        let names = &lock(&self.inner).slow;
        slow.extend(names.iter().map(|name| format!("{above}{name}")));
    }

    pub(crate) fn children(&self) -> Vec<ChildInfo> {
        self.infos(|entry| entry.below.as_deref().map(Self::children))
    }

    /// Returns the children, without those of supervisors below.
    pub(crate) fn own_children(&self) -> Vec<ChildInfo> {
        self.infos(|_| None)
    }

    /// Returns the name of the strategy.
    pub(crate) fn strategy(&self) -> &'static str {
        name_of(self.strategy)
    }

    fn infos(&self, below: impl Fn(&Entry) -> Option<Vec<ChildInfo>>) -> Vec<ChildInfo> {
        let info = |(_, entry): (ChildId, Entry)| ChildInfo {
            children: below(&entry),
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

/// The tree, with a line for each child.
impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.label, name_of(self.strategy))?;
        if self.is_over() {
            f.write_str(", has ended")?;
        }
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

/// A single line, without the children below.
impl fmt::Display for ChildInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        write!(f, " {}", self.state)?;
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

//! The common state of the processes, the handlers, the hooks and the caller outside. They note all
//! events, and the specification judges them.
//!
//! An error is kept until the caller outside looks for it: the scheduler would contain a panic
//! inside of a step.
//!
//! A scheduler with threads has several worlds, each with processes of its own. Each world makes a
//! single call at a time, so that its events have an order.

use crate::notes::{End, Note, Number, Submitted};
use crate::plan::{Act, Nature};
use crate::spec::{Broken, Limits, Spec};
use crate::waiting::Waiting;
use ganger_proc_api::{Completer, Pid, Symbol};
use ganger_sched::{Handle, ProcessHandle, WeakHandle};
use ganger_sim::SimClock;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt::{self, Write as _};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::Duration;

/// How many of the last notes a report shows.
const SHOWN: usize = 60;

/// A submitted process: its PID, and its handle, if it is not detached.
pub(crate) type Submission = (Pid, Option<ProcessHandle>);

/// The worlds of a scheduler, with each process's world and nature.
#[derive(Default)]
pub(crate) struct Hub {
    of: Mutex<HashMap<Pid, (Weak<World>, Nature)>>,
    handle: OnceLock<WeakHandle>,
    clock: OnceLock<SimClock>,
}

/// See the head of this file.
pub(crate) struct World {
    name: usize,
    hub: Arc<Hub>,
    state: Mutex<State>,
    changed: Condvar,
}

pub(crate) struct State {
    pub(crate) spec: Spec,
    /// All events so far, for the report.
    journal: Vec<Box<dyn fmt::Debug + Send>>,
    /// The first error.
    broken: Option<Broken>,
    last: Number,
    /// The PIDs of all started processes.
    pub(crate) pids: Vec<Pid>,
    /// The receiver's act at each message.
    pub(crate) acts: HashMap<Number, Act>,
    pub(crate) kept: Vec<(Number, Completer)>,
    pub(crate) waiting: Vec<Waiting>,
    pub(crate) turns: Turns,
    handles: Vec<ProcessHandle>,
    ends: HashMap<Pid, VecDeque<End>>,
    /// The results of calls, and the ends of processes.
    reached: BTreeSet<String>,
}

/// The turns that an observed scheduler has counted, at the last look.
#[derive(Default)]
pub(crate) struct Turns {
    /// Of each live process.
    pub(crate) of: HashMap<Pid, u64>,
    pub(crate) all: u64,
    /// How many processes had ended.
    pub(crate) ended: u64,
}

/// Gives other threads time to catch up.
pub(crate) fn give_way() {
    (0..5).for_each(|_| thread::yield_now());
}

impl Hub {
    /// Sets the scheduler, and its clock, if it is in a simulation.
    pub(crate) fn connect(&self, handle: &Handle, clock: Option<SimClock>) {
        let is_first = self.handle.set(handle.downgrade()).is_ok();
        assert!(is_first, "worlds have one scheduler");
        if let Some(clock) = clock {
            self.clock.get_or_init(|| clock);
        }
    }

    /// Returns the scheduler, while it exists.
    pub(crate) fn handle(&self) -> Option<Handle> {
        self.handle.get()?.upgrade()
    }

    pub(crate) fn clock(&self) -> Option<&SimClock> {
        self.clock.get()
    }

    /// Returns the world and the nature of a process.
    pub(crate) fn find(&self, pid: Pid) -> Option<(Arc<World>, Nature)> {
        let of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        let (world, nature) = of.get(&pid)?;
        Some((world.upgrade()?, *nature))
    }
}

impl World {
    /// Creates a numbered world among several.
    pub(crate) fn new(hub: &Arc<Hub>, name: usize, limits: Limits) -> Arc<Self> {
        let state = State {
            spec: Spec::new(limits),
            journal: Vec::new(),
            broken: None,
            last: 0,
            pids: Vec::new(),
            acts: HashMap::new(),
            kept: Vec::new(),
            waiting: Vec::new(),
            turns: Turns::default(),
            handles: Vec::new(),
            ends: HashMap::new(),
            reached: BTreeSet::new(),
        };
        Arc::new(Self {
            name,
            hub: Arc::clone(hub),
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }

    /// Makes the process with this PID and this nature a member of this world.
    pub(crate) fn adopt(self: &Arc<Self>, pid: Pid, nature: Nature) {
        let mut of = self.hub.of.lock().unwrap_or_else(PoisonError::into_inner);
        of.insert(pid, (Arc::downgrade(self), nature));
    }

    /// Returns the scheduler, while it exists.
    pub(crate) fn handle(&self) -> Option<Handle> {
        self.hub.handle()
    }

    /// Returns the name of a factory of this world's own.
    pub(crate) fn factory(&self, name: &'static str) -> Symbol {
        let text = format!("{name} in {}", self.name);
        Symbol::intern(&text).unwrap_or(Symbol::new(name))
    }

    fn now(&self) -> Duration {
        self.hub.clock().map_or(Duration::ZERO, SimClock::now)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn number(&self) -> Number {
        let mut state = self.state();
        state.last += 1;
        state.last
    }

    /// Tells the specification of an event.
    pub(crate) fn note(&self, note: Note) {
        let now = self.now();
        let mut state = self.state();
        if let Note::Ended(pid, end) = note {
            state.ends.entry(pid).or_default().push_back(end);
            state.reached.insert(end.name().to_owned());
        }
        let result = state.spec.note(&note, now);
        state.write(note, result);
        drop(state);
        self.changed.notify_all();
    }

    /// Asks the specification something, and notes an error if it finds any; `describe` puts the
    /// question into words.
    pub(crate) fn ask<T: Copy, D: fmt::Debug + Send + 'static>(
        &self,
        describe: impl FnOnce(Option<T>) -> D,
        ask: impl FnOnce(&mut Spec) -> Result<T, Broken>,
    ) -> Option<T> {
        let mut state = self.state();
        let (answer, result) = match ask(&mut state.spec) {
            Ok(answer) => (Some(answer), Ok(())),
            Err(broken) => (None, Err(broken)),
        };
        state.write(describe(answer), result);
        drop(state);
        self.changed.notify_all();
        answer
    }

    /// Tells the specification an event; `what` is its name.
    pub(crate) fn tell(
        &self,
        what: &'static str,
        tell: impl FnOnce(&mut Spec) -> Result<(), Broken>,
    ) {
        self.ask(|_| what, tell);
    }

    /// Notes an error if the result of a call differs from the expected result.
    pub(crate) fn compare<T: fmt::Debug + PartialEq>(
        &self,
        what: &'static str,
        expected: Option<T>,
        found: T,
    ) {
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            let broken = format!("{what}: {found:?}, and it has to be {expected:?}");
            self.state().write(what, Err(broken));
        }
    }

    /// Compares as [`compare`](Self::compare) does, and remembers the result.
    pub(crate) fn reach<T: fmt::Debug + PartialEq>(
        &self,
        what: &'static str,
        expected: Option<T>,
        found: T,
    ) {
        self.state().reached.insert(format!("{what} {found:?}"));
        self.compare(what, expected, found);
    }

    /// Returns whether a submit may have been refused unexpectedly: see `Spec::was_refused`.
    pub(crate) fn was_refused(&self, process: Number, found: Submitted) -> bool {
        let now = self.now();
        self.state().spec.was_refused(process, found, now)
    }

    /// Remembers a result.
    pub(crate) fn come_to(&self, what: &str) {
        self.state().reached.insert(what.to_owned());
    }

    /// Returns the results of calls, and the ends of processes.
    pub(crate) fn reached(&self) -> BTreeSet<String> {
        self.state().reached.clone()
    }

    /// Keeps the PID and the handle of a submitted process.
    pub(crate) fn keep(&self, (pid, handle): Submission) {
        let mut state = self.state();
        state.pids.push(pid);
        state.handles.extend(handle);
    }

    /// Returns the PID of an id that this world chooses: no other world chooses the same PID.
    pub(crate) fn pid(&self, handle: &Handle, id: u64) -> Pid {
        Pid::new(handle.host_name(), 100 * self.name as u64 + id)
    }

    /// Compares the handles of ended processes with the hook's ends; blocks until they agree.
    pub(crate) fn check_handles(&self) {
        let all = std::mem::take(&mut self.state().handles);
        for handle in all {
            let pid = handle.pid();
            if self.state().spec.is_there(pid) {
                self.state().handles.push(handle);
                continue;
            }
            let end = End::of(&handle.wait());
            let told = (self.state().ends.get_mut(&pid)).and_then(VecDeque::pop_front);
            self.compare("an exit reason (P12)", Some((pid, told)), (pid, Some(end)));
        }
    }

    /// Blocks until the specification has nothing to wait for, or an error comes; for schedulers
    /// with threads. A longer wait than `at_most` is an error.
    pub(crate) fn wait_until_settled(&self, at_most: Duration) {
        if !self.wait_until(at_most, Spec::is_settled) {
            self.tell("waited in vain", Spec::settled);
        }
    }

    /// Blocks until `is_so` of the specification, or until something is wrong. Returns `false`
    /// after `at_most`.
    pub(crate) fn wait_until(
        &self,
        at_most: Duration,
        mut is_so: impl FnMut(&mut Spec) -> bool,
    ) -> bool {
        let mut goes_on = |state: &mut State| state.broken.is_none() && !is_so(&mut state.spec);
        let waited = (self.changed).wait_timeout_while(self.state(), at_most, &mut goes_on);
        let (_state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        !waited.timed_out()
    }

    /// Returns whether an error was found.
    pub(crate) fn is_broken(&self) -> bool {
        self.state().broken.is_some()
    }

    /// Asserts that no error was found.
    ///
    /// # Panics
    /// If an error was found. The text has the error, and the events before.
    pub(crate) fn assert_right(&self) {
        let state = self.state();
        let Some(broken) = &state.broken else {
            return;
        };
        let mut text = format!("{broken}\n\nWhat had happened:\n");
        let from = state.journal.len().saturating_sub(SHOWN);
        for entry in &state.journal[from..] {
            let _ = writeln!(text, "{entry:?}");
        }
        drop(state);
        panic!("{text}");
    }
}

impl State {
    /// Notes an event, and its error; ignores everything after the first error.
    pub(crate) fn write(
        &mut self,
        what: impl fmt::Debug + Send + 'static,
        result: Result<(), Broken>,
    ) {
        if self.broken.is_none() {
            self.journal.push(Box::new(what));
            self.broken = result.err();
        }
    }
}

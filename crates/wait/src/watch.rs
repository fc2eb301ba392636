//! The waits of processes, while a program watches for deadlocks.
//!
//! **Problem.** A report of a deadlock names the waiters, the locks and their owners. A program
//! without a watcher should pay nothing, and a program with a watcher should pay only for waits.
//!
//! **Protocol.** Without a watcher each lock reads one flag. With a watcher each sleeping wait is
//! registered until its end, and owners of locks are noted. A question to a process is known until
//! its answer (`watch/questions.rs`). The watcher reads only old waits.

mod cycles;
mod questions;

pub use cycles::{cycle_places, cycles};
pub use questions::{
    Asked, Holds, asked_by, asks, awaits, awaits_beside, awaits_by, goes_on, leaves,
    leaves_messages,
};

use ganger_proc_api::Pid;
use ganger_sync::scoped;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// The count of watchers.
static WATCHERS: AtomicUsize = AtomicUsize::new(0);
/// The count of watches ever begun.
static BEGINS: AtomicU64 = AtomicU64::new(0);
static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    next: 0,
    sleepers: 0,
    waits: BTreeMap::new(),
    owners: None,
});
/// Signals that a wait has begun, or a watch ends.
static CHANGE: Condvar = Condvar::new();
static SURROUNDINGS: OnceLock<Surroundings> = OnceLock::new();

thread_local! {
    /// The process for which this thread polls a wait; `None`: the process of its step, if any.
    static POLLS_FOR: Cell<Option<(Pid, u64)>> = const { Cell::new(None) };
}

/// The functions that the waits of a program call: see [`begin_in`].
#[derive(Debug, Clone, Copy)]
pub struct Surroundings {
    /// The process of the calling thread, with the number of its scheduler.
    pub process: fn() -> Option<(Pid, u64)>,
    /// The time.
    pub now: fn() -> Duration,
    /// The turn of that process: two turns of a process differ.
    pub turn: fn() -> Option<u64>,
}

struct Registry {
    next: u64,
    /// The count of watchers that sleep until a wait begins.
    sleepers: usize,
    waits: BTreeMap<u64, Waiting>,
    /// Keyed by the address of the lock.
    owners: Option<HashMap<usize, Vec<Party>>>,
}

/// A process, or a thread outside of all processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Party {
    /// A process, and the number of its scheduler: two schedulers of a program may use the same
    /// PID.
    Process(Pid, u64),
    /// A thread.
    Thread(ThreadId),
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(pid, _) => pid.fmt(f),
            Self::Thread(id) => write!(f, "{id:?}"),
        }
    }
}

/// The kind of an asker's wait for the answer of another process.
pub const ANSWER: &str = "answer";

/// The kind of a sender's wait for room in the mailbox of a process.
pub const MAILBOX: &str = "mailbox";

/// The kind of a wait for the end of a process.
pub const END: &str = "exit";

/// The kind of a thing in parts: each owner may give back enough for the waiter.
pub const PERMITS: &str = "semaphore";

/// The object of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Thing {
    /// The kind of the thing, as "mutex".
    pub kind: &'static str,
    /// Its address, which differs between things.
    pub address: usize,
}

impl Thing {
    /// Names a thing by its place in memory.
    pub fn of<T>(kind: &'static str, thing: &T) -> Self {
        let address = std::ptr::from_ref(thing).addr();
        Self { kind, address }
    }
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:#x}", self.kind, self.address)
    }
}

/// A wait that has not ended.
#[derive(Debug, Clone)]
pub struct Waiting {
    /// The waiter.
    pub party: Party,
    /// The object of the wait.
    pub thing: Thing,
    /// The known owners of the object.
    pub owners: Vec<Party>,
    /// The start of the wait, by the watcher's clock.
    pub since: Duration,
    /// The thread that began the wait.
    pub on: ThreadId,
    /// The count of watches begun before the wait.
    begin: u64,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(ToString::to_string))
    }
}

impl Waiting {
    /// Returns the text of `Display`, with other names for the parties.
    #[must_use]
    pub fn text(&self, name: impl Fn(&Party) -> String) -> String {
        let (party, owners) = (name(&self.party), self.owners.iter().map(name));
        let owners = owners.collect::<Vec<_>>().join(" and ");
        match self.thing.kind {
            ANSWER => format!("{party} waits for the answer of {owners}"),
            MAILBOX => format!("{party} waits for room in the mailbox of {owners}"),
            END => format!("{party} waits for the end of {owners}"),
            _ if owners.is_empty() => format!("{party} waits for the {}", self.thing),
            _ => format!("{party} waits for the {}, which {owners} has", self.thing),
        }
    }

    /// Returns the parties that must all act before the wait ends.
    #[must_use]
    pub fn needs(&self) -> &[Party] {
        let is_one = self.owners.windows(2).all(|it| it[0] == it[1]);
        if self.thing.kind == PERMITS && !is_one {
            return &[];
        }
        &self.owners
    }
}

/// Registers waits until it is dropped.
#[derive(Debug)]
#[must_use = "without a watcher no wait is registered"]
pub struct Watching {
    /// The count of begun watches, with this watch.
    begin: u64,
}

impl Watching {
    /// Returns the open waits begun on this thread since the start of the watch.
    #[must_use]
    pub fn own_waits(&self) -> Vec<Waiting> {
        let (mut waits, own) = (waits(), thread::current().id());
        waits.retain(|it| it.begin >= self.begin && it.on == own);
        waits
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // The lock keeps new watches from beginning before the registry is cleared.
        let mut registry = registry();
        // Ordering: Relaxed, because the registry has a lock.
        if WATCHERS.fetch_sub(1, Ordering::Relaxed) == 1 {
            registry.owners = None;
            questions::forget();
        }
    }
}

/// Begins a watch. `process` returns the process of the calling thread, with the number of its
/// scheduler; `now` returns the time. The first call fixes the functions.
pub fn begin(process: fn() -> Option<(Pid, u64)>, now: fn() -> Duration) -> Watching {
    begin_in(Surroundings {
        process,
        now,
        turn: || None,
    })
}

/// Begins as [`begin`] does, where waits for ends are told from waits that their process has left.
pub fn begin_in(surroundings: Surroundings) -> Watching {
    SURROUNDINGS.get_or_init(|| surroundings);
    let mut registry = registry();
    registry.owners.get_or_insert_default();
    // Ordering: Relaxed, because the registry has a lock.
    WATCHERS.fetch_add(1, Ordering::Relaxed);
    // Ordering: Relaxed: a wait begun shortly before a watch may count as its own.
    let begin = BEGINS.fetch_add(1, Ordering::Relaxed) + 1;
    Watching { begin }
}

/// Returns the count of watches ever begun.
fn begins() -> u64 {
    // Ordering: Relaxed: a wait begun shortly before a watch may count as its own.
    BEGINS.load(Ordering::Relaxed)
}

/// Returns whether a watcher exists. Costs a load.
#[inline]
#[must_use]
pub fn is_on() -> bool {
    // Ordering: Relaxed: a wait that begins while a watch begins or ends may be missed.
    WATCHERS.load(Ordering::Relaxed) > 0
}

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the process for which this thread works, or the thread.
fn party() -> Party {
    let process = POLLS_FOR.get();
    let process = process.or_else(|| SURROUNDINGS.get().and_then(|it| (it.process)()));
    match process {
        Some((pid, scheduler)) => Party::Process(pid, scheduler),
        None => Party::Thread(thread::current().id()),
    }
}

/// Calls `f`, which polls a wait for `process`.
pub(crate) fn polling_for<R>(process: Option<(Pid, u64)>, f: impl FnOnce() -> R) -> R {
    if !is_on() {
        return f();
    }
    scoped(&POLLS_FOR, process, f)
}

/// Keeps a wait registered until it is dropped. Empty without a watcher.
#[derive(Debug, Default)]
pub struct Registered(Option<u64>);

impl Drop for Registered {
    #[inline]
    fn drop(&mut self) {
        if let Some(number) = self.0 {
            forget(number);
        }
    }
}

#[cold]
fn forget(number: u64) {
    registry().waits.remove(&number);
}

/// Registers a wait of this thread's party, which falls asleep.
#[inline]
pub fn wait(thing: impl FnOnce() -> Thing) -> Registered {
    if !is_on() {
        return Registered(None);
    }
    let (party, thing) = (party(), thing());
    questions::leave_ends(party);
    let mut registry = registry();
    let number = registry.next;
    let waiting = Waiting {
        party,
        thing,
        owners: Vec::new(),
        since: now(),
        on: thread::current().id(),
        begin: begins(),
    };
    registry.waits.insert(number, waiting);
    registry.tell_sleepers();
    Registered(Some(number))
}

/// Notes this thread's party as an owner of the thing.
#[inline]
pub fn took(thing: impl FnOnce() -> Thing) {
    if is_on() {
        let (party, thing) = (party(), thing());
        if let Some(owners) = &mut registry().owners {
            owners.entry(thing.address).or_default().push(party);
        }
    }
}

/// Removes an owner of the thing: this thread's party, or else any owner.
#[inline]
pub fn gave(thing: impl FnOnce() -> Thing) {
    if is_on() {
        let (party, thing) = (party(), thing());
        if let Some(owners) = &mut registry().owners
            && let Some(its) = owners.get_mut(&thing.address)
        {
            let at = its.iter().position(|it| *it == party).unwrap_or_default();
            if at < its.len() {
                its.swap_remove(at);
            }
            if its.is_empty() {
                owners.remove(&thing.address);
            }
        }
    }
}

/// Sleeps as a watcher: until a wait or a question begins after the count `seen`, then for `pause`,
/// so it becomes old. While waits or questions are open, sleeps for `pause` only. A wake-up ends
/// the sleep if `is_over` holds. Returns the new count.
pub fn pause(seen: u64, pause: Duration, is_over: impl Fn() -> bool) -> u64 {
    let is_quiet = questions::wake_at_next();
    let mut registry = registry();
    while is_quiet && registry.next == seen && registry.waits.is_empty() && !is_over() {
        registry.sleepers += 1;
        registry = CHANGE
            .wait(registry)
            .unwrap_or_else(PoisonError::into_inner);
        registry.sleepers -= 1;
    }
    let next = registry.next;
    let waited = CHANGE.wait_timeout_while(registry, pause, |_| !is_over());
    drop(waited);
    next
}

impl Registry {
    /// Counts a new wait or question, and wakes the sleeping watchers.
    fn tell_sleepers(&mut self) {
        self.next += 1;
        if self.sleepers > 0 {
            CHANGE.notify_all();
        }
    }
}

/// Wakes all watchers at the end of a watch, so each checks whether its own has ended.
pub fn wake_watchers() {
    let _registry = registry();
    CHANGE.notify_all();
}

/// Returns the time, by the watcher's clock.
#[must_use]
pub fn now() -> Duration {
    SURROUNDINGS.get().map_or(Duration::ZERO, |it| (it.now)())
}

/// Returns the open waits in the order of their start, with the owners of their things. The
/// returned waits from before this call were all open at the same moment.
#[must_use]
pub fn waits() -> Vec<Waiting> {
    let registry = registry();
    let owners = |thing: &Thing| {
        let owners = registry.owners.as_ref()?.get(&thing.address)?;
        Some(owners.clone())
    };
    let waits = registry.waits.values().cloned();
    let known = waits.map(|it| Waiting {
        owners: owners(&it.thing).unwrap_or_default(),
        ..it
    });
    let mut known: Vec<_> = known.collect();
    drop(registry);
    // Questions are read later: a question open now was open before, too.
    known.extend(questions::open());
    known.sort_by_key(|it| it.since);
    known
}

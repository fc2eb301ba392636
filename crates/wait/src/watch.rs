//! Which process waits for what, while a program watches for deadlocks.
//!
//! **Problem.** A report of a deadlock names the waiters, the locks and their owners. A program
//! that wants no report should not pay for it, and in one that does, only those that wait should
//! pay much.
//!
//! **Protocol.** Without a watcher each lock looks at one flag. With one, a wait that falls asleep
//! is registered until it is over, and owners of locks are noted. A question to a process is known
//! until its answer (`watch/questions.rs`). The watcher looks at waits that are old.

mod cycles;
mod questions;

pub use cycles::cycles;
pub use questions::{Asked, asked_by, asks};

use ganger_proc_api::Pid;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// How many watchers there are.
static WATCHERS: AtomicUsize = AtomicUsize::new(0);
/// How many there have been.
static BEGINS: AtomicU64 = AtomicU64::new(0);
static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    next: 0,
    sleepers: 0,
    waits: BTreeMap::new(),
    owners: None,
});
/// A wait has begun, or a watch ends.
static CHANGE: Condvar = Condvar::new();
static SURROUNDINGS: OnceLock<Surroundings> = OnceLock::new();

thread_local! {
    /// For which process this thread polls a wait, if not for the one whose turn it is in.
    static POLLS_FOR: Cell<Option<(Pid, u64)>> = const { Cell::new(None) };
}

#[derive(Clone, Copy)]
struct Surroundings {
    process: fn() -> Option<(Pid, u64)>,
    now: fn() -> Duration,
}

struct Registry {
    next: u64,
    /// Watchers that sleep until there is a wait.
    sleepers: usize,
    waits: BTreeMap<u64, Waiting>,
    /// By the address of the lock.
    owners: Option<HashMap<usize, Vec<Party>>>,
}

/// A process, or a thread that runs none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Party {
    /// A process, and the number of its scheduler: two schedulers of a program may have processes
    /// with one PID.
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

/// The kind of thing that a process waits for which has asked another one.
const ANSWER: &str = "answer";

/// The kind of thing of which several may have a part, and that one of them may give back enough
/// of.
pub const PERMITS: &str = "semaphore";

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Thing {
    /// What it is: a mutex, for instance.
    pub kind: &'static str,
    /// Where it is, which tells it from others.
    pub address: usize,
}

impl Thing {
    /// That thing, at its place in memory.
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
    /// What waits.
    pub party: Party,
    /// For what.
    pub thing: Thing,
    /// Which have it, as far as is known.
    pub owners: Vec<Party>,
    /// Since when, by the clock of the watcher.
    pub since: Duration,
    /// The thread on which the wait began.
    pub on: ThreadId,
    /// How many watches had begun.
    begin: u64,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(ToString::to_string))
    }
}

impl Waiting {
    /// What its `Display` says, with these names of the parties.
    #[must_use]
    pub fn text(&self, name: impl Fn(&Party) -> String) -> String {
        let (party, owners) = (name(&self.party), self.owners.iter().map(name));
        let owners = owners.collect::<Vec<_>>().join(" and ");
        match self.thing.kind {
            ANSWER => format!("{party} waits for the answer of {owners}"),
            _ if owners.is_empty() => format!("{party} waits for the {}", self.thing),
            _ => format!("{party} waits for the {}, which {owners} has", self.thing),
        }
    }

    /// Those that it waits for, each of which it needs.
    pub(crate) fn needs(&self) -> &[Party] {
        let is_one = self.owners.windows(2).all(|it| it[0] == it[1]);
        if self.thing.kind == PERMITS && !is_one {
            return &[];
        }
        &self.owners
    }
}

/// Waits are registered until this is dropped.
#[derive(Debug)]
#[must_use = "without a watcher no wait is registered"]
pub struct Watching {
    /// How many watches had begun with it.
    begin: u64,
}

impl Watching {
    /// The waits that have begun on this thread since then, and have not ended.
    #[must_use]
    pub fn own_waits(&self) -> Vec<Waiting> {
        let (mut waits, own) = (waits(), thread::current().id());
        waits.retain(|it| it.begin >= self.begin && it.on == own);
        waits
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // With the lock, so that no watch begins between the two.
        let mut registry = registry();
        // Ordering: Relaxed, because the registry has a lock.
        if WATCHERS.fetch_sub(1, Ordering::Relaxed) == 1 {
            registry.owners = None;
            questions::forget();
        }
    }
}

/// Begins to watch. `process` says in which process of which scheduler a thread is, and `now` what
/// time it is; the first call chooses them.
pub fn begin(process: fn() -> Option<(Pid, u64)>, now: fn() -> Duration) -> Watching {
    SURROUNDINGS.get_or_init(|| Surroundings { process, now });
    let mut registry = registry();
    registry.owners.get_or_insert_default();
    // Ordering: Relaxed, because the registry has a lock.
    WATCHERS.fetch_add(1, Ordering::Relaxed);
    // Ordering: Relaxed: what begins a moment before a watcher may count as its own.
    let begin = BEGINS.fetch_add(1, Ordering::Relaxed) + 1;
    Watching { begin }
}

/// How many watches have begun.
fn begins() -> u64 {
    // Ordering: Relaxed, as in `begin`.
    BEGINS.load(Ordering::Relaxed)
}

/// Whether there is a watcher: a load.
#[inline]
#[must_use]
pub fn is_on() -> bool {
    // Ordering: Relaxed: what begins a moment before or after a watcher may be missed.
    WATCHERS.load(Ordering::Relaxed) > 0
}

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// For which process or thread this thread is at work.
fn party() -> Party {
    let process = POLLS_FOR.get();
    let process = process.or_else(|| SURROUNDINGS.get().and_then(|it| (it.process)()));
    match process {
        Some((pid, scheduler)) => Party::Process(pid, scheduler),
        None => Party::Thread(thread::current().id()),
    }
}

/// Calls `f`, which polls a wait for that process.
pub(crate) fn polling_for<R>(process: Option<(Pid, u64)>, f: impl FnOnce() -> R) -> R {
    struct PutBack(Option<(Pid, u64)>);
    impl Drop for PutBack {
        fn drop(&mut self) {
            POLLS_FOR.set(self.0);
        }
    }
    if !is_on() {
        return f();
    }
    let _put_back = PutBack(POLLS_FOR.replace(process));
    f()
}

/// A wait is registered until this is dropped; none is where nothing watches.
#[derive(Debug, Default)]
pub struct Registered(Option<u64>);

impl Drop for Registered {
    fn drop(&mut self) {
        if let Some(number) = self.0 {
            registry().waits.remove(&number);
        }
    }
}

/// A wait for that thing has fallen asleep.
#[inline]
pub fn wait(thing: impl FnOnce() -> Thing) -> Registered {
    if !is_on() {
        return Registered(None);
    }
    let (party, thing) = (party(), thing());
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

/// What this thread is at work for has that thing now.
#[inline]
pub fn took(thing: impl FnOnce() -> Thing) {
    if is_on() {
        let (party, thing) = (party(), thing());
        if let Some(owners) = &mut registry().owners {
            owners.entry(thing.address).or_default().push(party);
        }
    }
}

/// One of the owners gives that thing back: this party, or else any.
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

/// A watcher: sleeps until a wait begins after those that `seen` counts, and then until that one is
/// old, which takes `pause`. While there are waits it sleeps no longer than that. Returns the count
/// of now.
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
    /// Something has begun that is waited for.
    fn tell_sleepers(&mut self) {
        self.next += 1;
        if self.sleepers > 0 {
            CHANGE.notify_all();
        }
    }
}

/// A watch ends: those that sleep look whether it is theirs.
pub fn wake_watchers() {
    let _registry = registry();
    CHANGE.notify_all();
}

/// What time it is for waits.
#[must_use]
pub fn now() -> Duration {
    SURROUNDINGS.get().map_or(Duration::ZERO, |it| (it.now)())
}

/// The waits that have not ended, with the owners of what they are for, in the order in which they
/// began. Those that are older than this call have all been there at one moment.
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
    // Later: one that has no answer yet had none before.
    known.extend(questions::open());
    known.sort_by_key(|it| it.since);
    known
}

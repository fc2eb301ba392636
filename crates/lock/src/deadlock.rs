//! Reports of processes that wait for each other, or for an event that never comes.
//!
//! **Protocol.** A thread of the watch sleeps until a wait begins. When the wait is old, the thread
//! looks at cycles of waits and owners, and whether all processes of the scheduler are asleep. The
//! thread looks again while waits last, more and more seldom.

use crate::cancel::TOKEN;
use ganger_sched::internal::HandleInternals as _;
use ganger_sched::internal::here;
use ganger_sched::{Handle, ProcessState, WeakHandle};
use ganger_wait::watch::{self, Party, Waiting, Watching};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// While waits last, the longest time between two looks, unless `after` is longer.
const SELDOM: Duration = Duration::from_secs(1);

/// A deadlock that a watch has found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DeadlockReport {
    /// The kind of the deadlock.
    pub kind: DeadlockKind,
    /// The waits: of a cycle, in its order; otherwise of the scheduler's processes.
    pub waits: Vec<Waiting>,
    /// The names of the scheduler's processes among the parties: the PID of each with its first
    /// name, or with its type.
    pub names: HashMap<Party, String>,
}

/// The kind of a deadlock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeadlockKind {
    /// Each party waits for a thing of the next party, and the last party for a thing of the first.
    /// Processes outside the cycle may go on.
    ///
    /// A semaphore is part of a cycle while a single party has all the permits that are out. A
    /// party outside the cycle that adds permits may still end the wait.
    Cycle,
    /// No process of the scheduler is ready or runs. None waits for time, for a handler, or for an
    /// event of the driver, such as of sockets. Some wait for locks, channels, answers or notices.
    ///
    /// A thread outside may still send, notify or unlock, and so wake a process. Waits for
    /// cancellations alone are no reason for a report. Neither are waits in cycles or behind them:
    /// a cycle has a report of its own.
    AllAsleep,
}

impl fmt::Display for DeadlockReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            DeadlockKind::Cycle => "deadlock: these wait for each other",
            DeadlockKind::AllAsleep => "deadlock: all processes are asleep",
        })?;
        let name = |it: &Party| {
            self.names
                .get(it)
                .map_or_else(|| it.to_string(), Clone::clone)
        };
        let mut waits = self.waits.iter();
        waits.try_for_each(|it| write!(f, "\n  {}", it.text(name)))
    }
}

/// Watches for deadlocks until the watch is dropped. Meanwhile sleeping waits and the owners of
/// locks are registered. Without a watch a lock pays a load.
///
/// ```
/// use ganger_lock::{DeadlockKind, DeadlockWatch, Mutex};
/// use ganger_sched::Scheduler;
/// use std::time::Duration;
///
/// # let scheduler = Scheduler::start_default()?;
/// let watch = DeadlockWatch::new(Duration::from_millis(100))
///     .on_report(|report| assert_eq!(report.kind, DeadlockKind::Cycle))
///     .start(&scheduler.handle())?;
/// # drop(watch);
/// # Ok::<(), ganger_proc_api::BoxError>(())
/// ```
#[must_use = "a watch that is dropped ends"]
pub struct DeadlockWatch {
    after: Duration,
    on_report: Box<dyn Fn(&DeadlockReport) + Send>,
    ends_program: bool,
}

impl DeadlockWatch {
    /// Creates a watch that looks at waits older than `after`. The watch writes reports as events
    /// of `tracing`.
    pub fn new(after: Duration) -> Self {
        Self {
            after,
            on_report: Box::new(|_| {}),
            ends_program: false,
        }
    }

    /// Has each report given to `call`, on a thread of the watch.
    pub fn on_report(self, call: impl Fn(&DeadlockReport) + Send + 'static) -> Self {
        Self {
            on_report: Box::new(call),
            ..self
        }
    }

    /// Ends the program with the first report, and writes the report to the standard error. For
    /// tests and small programs, in which no thread outside wakes a sleeping process.
    pub fn end_program(self) -> Self {
        Self {
            ends_program: true,
            ..self
        }
    }

    /// Begins to watch the processes of `scheduler`, and all cycles.
    ///
    /// # Errors
    /// The system's error, if it grants no thread.
    pub fn start(self, scheduler: &Handle) -> std::io::Result<Watch> {
        let watching = here::watch();
        let is_over = Arc::new(AtomicBool::new(false));
        let watcher = Watcher {
            options: self,
            scheduler: scheduler.downgrade(),
            is_over: Arc::clone(&is_over),
            told: HashSet::new(),
            turns: None,
        };
        let thread = std::thread::Builder::new().name("ganger-deadlock".into());
        let thread = thread.spawn(move || watcher.run())?;
        Ok(Watch {
            is_over,
            thread: Some(thread),
            _watching: watching,
        })
    }
}

impl fmt::Debug for DeadlockWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadlockWatch")
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}

/// A running watch: see [`DeadlockWatch`].
#[derive(Debug)]
#[must_use = "a watch that is dropped ends"]
pub struct Watch {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    _watching: Watching,
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Ordering: Relaxed, because the registry's lock orders it.
        self.is_over.store(true, Ordering::Relaxed);
        watch::wake_watchers();
        let thread = self.thread.take();
        // In its own callback it would wait for itself.
        if let Some(thread) = thread.filter(|it| it.thread().id() != std::thread::current().id()) {
            let _panicked = thread.join();
        }
    }
}

struct Watcher {
    options: DeadlockWatch,
    scheduler: WeakHandle,
    is_over: Arc<AtomicBool>,
    /// The waits of reports, by their parties and beginnings.
    told: HashSet<(DeadlockKind, Vec<(Party, Duration)>)>,
    /// The turns at the last look, when all was asleep.
    turns: Option<u64>,
}

impl Watcher {
    fn run(mut self) {
        let (mut seen, mut pause) = (0, self.options.after);
        loop {
            // Ordering: Relaxed, because the registry's lock orders it after `Watch::drop`'s store.
            let is_over = || self.is_over.load(Ordering::Relaxed);
            let began = watch::pause(seen, pause, is_over);
            if is_over() {
                return;
            }
            pause = if began == seen {
                (pause * 2).min(SELDOM.max(self.options.after))
            } else {
                self.options.after
            };
            seen = began;
            self.look();
        }
    }

    fn look(&mut self) {
        let mut waits = watch::waits();
        let now = watch::now();
        waits.retain(|it| now.saturating_sub(it.since) >= self.options.after);
        let scheduler = self.scheduler.upgrade();
        let mut stuck = HashSet::new();
        for waits in watch::cycles(&waits) {
            stuck.extend(waits.iter().map(|it| it.party));
            self.report(DeadlockKind::Cycle, waits, scheduler.as_ref());
        }
        if let Some(scheduler) = scheduler {
            let own = scheduler.number();
            waits.retain(|it| matches!(it.party, Party::Process(_, number) if number == own));
            let turns = self.turns_if_asleep(&scheduler, &waits);
            if turns.is_some() && turns == self.turns && !are_behind(&waits, stuck) {
                self.report(DeadlockKind::AllAsleep, waits, Some(&scheduler));
            }
            self.turns = turns;
        }
    }

    /// Returns the number of turns so far, if nothing but the outside can wake a process.
    fn turns_if_asleep(&self, scheduler: &Handle, waits: &[Waiting]) -> Option<u64> {
        if scheduler.waits_for_time() || scheduler.waits_for_driver() {
            return None;
        }
        let dump = scheduler.dump();
        let waits_for_thread = |it: &Waiting| {
            let mut owners = it.owners.iter();
            owners.any(|owner| matches!(owner, Party::Thread(_)))
        };
        let mut of: HashMap<Party, Vec<&Waiting>> = HashMap::new();
        for wait in waits {
            of.entry(wait.party).or_default().push(wait);
        }
        let mut has_wait = false;
        for process in &dump.processes {
            let party = Party::Process(process.info.pid, scheduler.number());
            let waits = of.get(&party).map_or(&[][..], Vec::as_slice);
            // A process that waits for its cancellation has nothing else to do.
            has_wait |= waits.iter().any(|it| it.thing.kind != TOKEN);
            let is_asleep = match process.info.state {
                ProcessState::Idle => true,
                ProcessState::Blocked => !waits.is_empty(),
                _ => false,
            };
            if !is_asleep || waits.iter().any(|it| waits_for_thread(it)) {
                return None;
            }
        }
        has_wait.then(|| dump.workers.iter().map(|it| it.turns).sum())
    }

    fn report(&mut self, kind: DeadlockKind, waits: Vec<Waiting>, scheduler: Option<&Handle>) {
        let mut key: Vec<_> = waits.iter().map(|it| (it.party, it.since)).collect();
        key.sort_by_key(|it| it.1);
        if !self.told.insert((kind, key)) {
            return;
        }
        let parties = waits
            .iter()
            .flat_map(|it| it.owners.iter().chain([&it.party]));
        let names = parties.filter_map(|&it| Some((it, name(it, scheduler?)?)));
        let names = names.collect();
        let report = DeadlockReport { kind, waits, names };
        tracing::error!(target: "ganger::lock", "{report}");
        (self.options.on_report)(&report);
        if self.options.ends_program {
            eprintln!("{report}");
            std::process::exit(2);
        }
    }
}

/// Returns whether each wait, but for waits for a cancellation, belongs to a stuck party or is
/// behind a stuck party.
fn are_behind(waits: &[Waiting], mut stuck: HashSet<Party>) -> bool {
    let mut others: Vec<_> = waits.iter().filter(|it| it.thing.kind != TOKEN).collect();
    loop {
        let before = others.len();
        others.retain(|it| {
            let mut parties = it.owners.iter().chain([&it.party]);
            let is_stuck = parties.any(|party| stuck.contains(party));
            is_stuck.then(|| stuck.insert(it.party)).is_none()
        });
        if others.len() == before {
            return others.is_empty();
        }
    }
}

/// Returns the PID of a process of `scheduler`, with its name or type.
fn name(party: Party, scheduler: &Handle) -> Option<String> {
    let Party::Process(pid, number) = party else {
        return None;
    };
    if number != scheduler.number() {
        return None;
    }
    let info = scheduler.process(pid)?;
    Some(match info.names.first() {
        Some(name) => format!("{pid} {name:?}"),
        None => format!("{pid} ({})", info.type_name),
    })
}

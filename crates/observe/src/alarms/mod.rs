//! Alarms: values beyond a limit, each raised once and ended once.
//!
//! **Problem.** An operator wants a single word before a program falls over, and another when the
//! danger is over. A look at each process at each message would make all processes slow.
//!
//! **Protocol.** A thread looks once a period, at the observer's pace (`sample`). Each kind of
//! alarm has its limits, with hysteresis (`levels`). A change goes to the board of the scheduler
//! (`board`), from which the endpoint and the metrics read; to the log; and to the processes that
//! subscribe.

mod board;
mod deadlocks;
mod kinds;
mod levels;
mod restarts;
mod sample;

pub use board::{Alarm, AlarmChange};
pub(crate) use board::{Board, tell};
pub use kinds::Kind;

use crate::every::Every;
use crate::observer::Observer;
use deadlocks::Deadlocks;
use ganger_proc_api::Pid;
use ganger_sched::{Address, Handle, WeakHandle};
use kinds::{DEADLOCKS, DEFAULTS, rule};
use levels::{Edge, Levels, Rule};
use restarts::Restarts;
use sample::{Before, Sample};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

/// Between two looks.
const PERIOD: Duration = Duration::from_secs(1);

/// The owner of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Of {
    All,
    Process(Pid),
    Type(&'static str),
    /// A child or a cycle, by its number.
    Number(u64),
}

/// A value of the program's own.
type Own = Box<dyn FnMut(&Handle) -> u64 + Send>;

/// The alarms of a scheduler, before they are watched. The defaults just work.
///
/// ```
/// use ganger_observe::{AlarmChange, Alarms, Kind};
/// use ganger_proc_api::actor_fn;
/// use ganger_sched::{Observe, Scheduler};
///
/// let scheduler = Scheduler::builder().observe(Observe::Counts).start()?;
/// let told = scheduler.spawn(actor_fn(|_, change: AlarmChange, _| {
///     println!("{change:?}");
///     Ok(())
/// }))?;
/// let alarms = Alarms::new().limits(Kind::Mailbox, 5_000, 500).tell(&told);
/// let watch = alarms.watch(&scheduler)?;
/// assert!(watch.raised().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// | kind | raised at | for looks | ends below | for looks |
/// |---|---|---|---|---|
/// | `mailbox` | 10,000 | 1 | 1,000 | 1 |
/// | `mailbox_growth` | 1,000 | 30 | 500 | 1 |
/// | `long_step` | 1 | 1 | 1 | 10 |
/// | `workers_busy` | 95 % | 10 | 80 % | 10 |
/// | `processes` | 90 % | 1 | 80 % | 1 |
/// | `timers_late` | 100 ms | 1 | 50 ms | 10 |
/// | `dead_letters` | 100 a second | 1 | 10 a second | 10 |
/// | `failures` | 10 a second | 3 | 1 a second | 10 |
/// | `type_growth` | 1,000 | 300 | 500 | 1 |
/// | `restarts` | 3 in ten looks | 1 | 1 in ten looks | 1 |
/// | `lease` | 50 % have passed | 1 | 50 % | 1 |
/// | `deadlock`, on demand | 1 | 2 | 1 | 1 |
#[must_use = "`watch` begins to look"]
pub struct Alarms {
    rules: BTreeMap<Kind, Rule>,
    severe: Vec<Kind>,
    own: Vec<(Kind, Own)>,
    subscribers: Vec<Address<AlarmChange>>,
    period: Duration,
}

impl Default for Alarms {
    fn default() -> Self {
        Self::new()
    }
}

impl Alarms {
    /// Creates alarms of all kinds but [`Deadlock`](Kind::Deadlock) with their defaults, looked for
    /// once a second.
    pub fn new() -> Self {
        Self {
            rules: DEFAULTS.into_iter().collect(),
            severe: vec![Kind::Processes, Kind::Deadlock],
            own: Vec::new(),
            subscribers: Vec::new(),
            period: PERIOD,
        }
    }

    /// Sets the limits of a kind: its alarm is raised at `on` or above, and ends below `off`.
    pub fn limits(mut self, kind: Kind, on: u64, off: u64) -> Self {
        let before = self.rules.get(&kind).copied();
        let before = before.unwrap_or(rule(on, off, 1, 1));
        self.rules.insert(kind, Rule { on, off, ..before });
        self
    }

    /// Sets the looks of a kind: its alarm is raised after `to_raise` looks in a row beyond its
    /// limit, and ends after `to_end` looks below.
    pub fn looks(mut self, kind: Kind, to_raise: u32, to_end: u32) -> Self {
        if let Some(rule) = self.rules.get_mut(&kind) {
            (rule.looks, rule.calm) = (to_raise, to_end);
        }
        self
    }

    /// Looks for deadlocks, too: cycles of waits for locks, channels, permits, answers, room in
    /// mailboxes and ends, with a process of the scheduler in them. Parties may be threads, and
    /// processes of other schedulers of the program. An alarm is raised when two looks in a row
    /// have seen the same waits.
    ///
    /// The program registers its waits meanwhile, which makes all its schedulers slower: a wait
    /// that sleeps takes a lock of the program twice, and so does a lock that is taken and given
    /// back. A call costs an allocation. Waits and locks from before are not known. So it is not
    /// the default. A `DeadlockWatch` of `ganger-lock` reports in addition when all processes
    /// are asleep.
    pub fn deadlocks(mut self) -> Self {
        self.rules.insert(Kind::Deadlock, DEADLOCKS);
        self
    }

    /// Leaves a kind out.
    pub fn without(mut self, kind: Kind) -> Self {
        self.rules.remove(&kind);
        self.own.retain(|it| it.0 != kind);
        self
    }

    /// Sets whether a kind's alarm is severe: `/readyz` of the endpoint is 503 meanwhile.
    pub fn severe(mut self, kind: Kind, is_severe: bool) -> Self {
        self.severe.retain(|it| *it != kind);
        self.severe.extend(is_severe.then_some(kind));
        self
    }

    /// Adds an alarm on a value of the program's own, such as the length of a queue, or the number
    /// of deadlocks found by a `DeadlockWatch`. The looking thread calls `value`.
    pub fn custom(
        mut self,
        name: &'static str,
        on: u64,
        off: u64,
        value: impl FnMut(&Handle) -> u64 + Send + 'static,
    ) -> Self {
        let kind = Kind::Custom(name);
        self.own.retain(|it| it.0 != kind);
        self.own.push((kind, Box::new(value)));
        self.limits(kind, on, off)
    }

    /// Tells a process of each change. The process misses changes while its mailbox is full.
    pub fn tell(mut self, process: impl Into<Address<AlarmChange>>) -> Self {
        self.subscribers.push(process.into());
        self
    }

    /// Sets the time between two looks. Default: 1 s.
    pub fn every(self, period: Duration) -> Self {
        Self { period, ..self }
    }

    /// Looks at a scheduler once a period, on a thread of its own, which takes a tenth of a core at
    /// most. A scheduler has a single watch; a second watch raises its own alarms.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn watch(self, scheduler: &Handle) -> io::Result<AlarmWatch> {
        let period = self.period;
        let mut looker = self.looker(scheduler);
        let board = Arc::clone(&looker.board);
        let every = Every::start("ganger-alarms", scheduler, period, move |handle| {
            looker.look_at(handle);
        })?;
        Ok(AlarmWatch {
            board,
            _every: every,
        })
    }

    /// Creates a watch without a thread: the caller looks when it likes, as in a simulation.
    pub fn looker(self, scheduler: &Handle) -> AlarmLooker {
        let board = Board::of(scheduler);
        board.watch(self.rules.keys().copied());
        let deadlocks = self.rules.contains_key(&Kind::Deadlock);
        let rules = self.rules.into_iter();
        AlarmLooker {
            scheduler: scheduler.downgrade(),
            levels: rules
                .map(|(kind, rule)| (kind, Levels::new(rule)))
                .collect(),
            numbers: HashMap::new(),
            severe: self.severe,
            own: self.own,
            subscribers: self.subscribers,
            before: Before::default(),
            restarts: Restarts::default(),
            deadlocks: deadlocks.then(Deadlocks::new),
            board,
        }
    }
}

/// Looks for alarms: see [`Alarms::looker`]. The drop ends its alarms without a word.
pub struct AlarmLooker {
    scheduler: WeakHandle,
    levels: BTreeMap<Kind, Levels<Of>>,
    numbers: HashMap<(Kind, Of), u64>,
    severe: Vec<Kind>,
    own: Vec<(Kind, Own)>,
    subscribers: Vec<Address<AlarmChange>>,
    before: Before,
    restarts: Restarts,
    deadlocks: Option<Deadlocks>,
    board: Arc<Board>,
}

impl AlarmLooker {
    /// Looks once, and tells of the changes. O(live processes).
    pub fn look(&mut self) {
        if let Some(handle) = self.scheduler.upgrade() {
            self.look_at(&handle);
        }
    }

    /// Returns the raised alarms of the scheduler, the oldest first.
    #[must_use]
    pub fn raised(&self) -> Vec<Alarm> {
        self.board.raised()
    }

    fn look_at(&mut self, handle: &Handle) {
        let sample = Sample::take(&Observer::of(handle), &mut self.before);
        let own = self.own.iter_mut();
        let own: Vec<_> = own.map(|(kind, value)| (*kind, value(handle))).collect();
        let mut changes = Vec::new();
        for (&kind, levels) in &mut self.levels {
            let rule = levels.rule();
            let numbered =
                |all: HashMap<u64, u64>| all.into_iter().map(|it| (Of::Number(it.0), it.1));
            let values = match (kind, &mut self.deadlocks) {
                (Kind::Restarts, _) => numbered(self.restarts.look(handle)).collect(),
                (Kind::Deadlock, Some(all)) => numbered(all.look(handle)).collect(),
                _ => values(kind, &sample, &own),
            };
            let new = levels.look(&values).into_iter();
            changes.extend(new.map(|(of, edge, value)| (kind, of, edge, value, rule.on)));
        }
        for (kind, of, edge, value, limit) in changes {
            let change = match edge {
                Edge::Raised => {
                    let alarm = self.board.raise(Alarm {
                        number: 0,
                        kind,
                        is_severe: self.severe.contains(&kind),
                        pid: match of {
                            Of::Process(pid) => Some(pid),
                            Of::All | Of::Type(_) | Of::Number(_) => None,
                        },
                        text: match (of, &self.deadlocks) {
                            (Of::Number(it), Some(all)) if kind == Kind::Deadlock => {
                                all.text(it, handle)
                            }
                            (Of::Number(it), _) => {
                                with_limit(&self.restarts.text(it, value), limit)
                            }
                            _ => text(kind, of, value, limit),
                        },
                        value,
                        limit,
                        since: handle.now(),
                    });
                    self.numbers.insert((kind, of), alarm.number);
                    Some(AlarmChange::Raised(alarm))
                }
                Edge::Ended => {
                    let number = self.numbers.remove(&(kind, of));
                    let alarm = number.and_then(|it| self.board.end(it));
                    alarm.map(AlarmChange::Ended)
                }
            };
            if let Some(change) = change {
                tell(&self.subscribers, &change);
            }
        }
    }
}

impl Drop for AlarmLooker {
    fn drop(&mut self) {
        for number in self.numbers.values() {
            let _alarm = self.board.end(*number);
        }
    }
}

/// Returns the values of a kind.
fn values(kind: Kind, sample: &Sample, own: &[(Kind, u64)]) -> HashMap<Of, u64> {
    let one = |value: Option<u64>| value.map(|it| (Of::All, it)).into_iter().collect();
    let of_processes = |all: &HashMap<Pid, u64>| {
        let each = all.iter().map(|(pid, value)| (Of::Process(*pid), *value));
        each.collect()
    };
    match kind {
        Kind::Mailbox => of_processes(&sample.mailboxes),
        Kind::MailboxGrowth => of_processes(&sample.growths),
        Kind::LongStep => one(Some(sample.long_steps)),
        Kind::WorkersBusy => one(sample.busy),
        Kind::Processes => one(sample.processes),
        Kind::TimersLate => one(sample.lateness),
        Kind::DeadLetters => one(Some(sample.undelivered)),
        Kind::Failures => one(Some(sample.failed)),
        Kind::Lease => one(sample.lease),
        Kind::TypeGrowth => {
            let each = sample
                .types
                .iter()
                .map(|(name, value)| (Of::Type(name), *value));
            each.collect()
        }
        // These kinds have values of their own.
        Kind::Restarts | Kind::Deadlock | Kind::TraceFiles => HashMap::new(),
        Kind::Custom(_) => one(own.iter().find(|it| it.0 == kind).map(|it| it.1)),
    }
}

/// Returns a sentence for people.
fn text(kind: Kind, of: Of, value: u64, limit: u64) -> String {
    let of = match of {
        Of::All => String::new(),
        Of::Process(pid) => pid.to_string(),
        Of::Type(name) => name.to_owned(),
        Of::Number(number) => number.to_string(),
    };
    let what = match kind {
        Kind::Mailbox => format!("the mailbox of {of} holds {value} messages"),
        Kind::MailboxGrowth => format!("the mailbox of {of} grows: {value} messages more"),
        Kind::LongStep => format!("{value} long steps have kept processes waiting"),
        Kind::WorkersBusy => format!("the workers are busy for {value} % of the time"),
        Kind::Processes => format!("{value} % of the processes that may be alive are"),
        Kind::TimersLate => format!("timers are {value} ms late"),
        Kind::DeadLetters => format!("{value} dead letters a second"),
        Kind::Lease => format!("{value} % of the lease's time have passed without a renewal"),
        Kind::Failures => format!("{value} processes a second fail or panic"),
        Kind::TypeGrowth => format!("the processes of {of} only grow: {value} more"),
        Kind::Restarts | Kind::Deadlock | Kind::TraceFiles | Kind::Custom(_) => {
            format!("{} is {value}", kind.name())
        }
    };
    with_limit(&what, limit)
}

fn with_limit(what: &str, limit: u64) -> String {
    format!("{what}; the limit is {limit}")
}

/// A thread that looks for alarms, until it is dropped. The drop ends its alarms without a word.
#[must_use = "its drop ends the watch"]
pub struct AlarmWatch {
    board: Arc<Board>,
    _every: Every,
}

impl AlarmWatch {
    /// Returns the raised alarms of the scheduler, the oldest first.
    #[must_use]
    pub fn raised(&self) -> Vec<Alarm> {
        self.board.raised()
    }
}

impl fmt::Debug for Alarms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarms")
            .field("kinds", &self.rules.keys())
            .field("period", &self.period)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for AlarmLooker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlarmLooker")
            .field("raised", &self.numbers.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for AlarmWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let raised = self.raised();
        f.debug_struct("AlarmWatch")
            .field("raised", &raised)
            .finish()
    }
}

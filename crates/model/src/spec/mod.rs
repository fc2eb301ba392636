//! A scheduler as it must be, event by event.
//!
//! **Problem.** A scheduler does many things at once, in any order. A test that knows a single
//! order finds little. A test that waits for quiet misses the events before.
//!
//! **Rejected.** Predicting the order: the specification would be a second scheduler. Comparing the
//! results of calls alone: most promises are about the events that a process sees.
//!
//! **Protocol.** The specification is told every call and every event of a process, in their order
//! (a simulation has a single order).
//! 1. Before a call, `calls` returns the result that the call must have.
//! 2. At an event, `events` checks that it may happen at this moment. If several orders are right,
//!    the event decides between them.
//! 3. When no actor can move any more, no due event may be missing, and all visible results must
//!    agree.
//!
//! Threads that act at once report when all are done (`streams`, `crowd`). The specification leaves
//! the accepted messages and processes open until then, and then checks them.

mod calls;
mod crowd;
mod events;
mod life;
mod routes;
mod streams;
mod waits;

use crate::notes::{Note, Number};
use crate::plan::Kind;
use ganger_proc_api::Pid;
use ganger_sched::{Builder, WorkerStats};
use life::{Life, Phase};
use routes::Routes;
use std::collections::{HashMap, HashSet};
use std::ops::AddAssign;
use std::time::Duration;

/// A broken promise, in words.
pub(crate) type Broken = String;

pub(crate) use crowd::Asked;

/// Limits of the scheduler.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) batch: usize,
    pub(crate) mailbox: Option<usize>,
    pub(crate) processes: Option<usize>,
}

impl Limits {
    /// Sets these limits of a scheduler.
    pub(crate) fn set(self, builder: Builder) -> Builder {
        let builder = builder.event_batch(self.batch);
        let builder = match self.mailbox {
            Some(limit) => builder.mailbox_limit(limit),
            None => builder,
        };
        match self.processes {
            Some(limit) => builder.max_processes(limit),
            None => builder,
        }
    }
}

macro_rules! counts {
    ($($name:ident),+ $(,)?) => {
        /// The counts of a scheduler.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub(crate) struct Counts { $($name: u64,)+ }

        impl From<&WorkerStats> for Counts {
            fn from(stats: &WorkerStats) -> Self {
                Self { $($name: stats.$name,)+ }
            }
        }

        impl AddAssign for Counts {
            fn add_assign(&mut self, other: Self) {
                $(self.$name += other.$name;)+
            }
        }
    };
}

counts! {
    started,
    done,
    cancelled,
    failed,
    panicked,
    terminated,
    upgrades,
    upgrades_failed,
    yields,
    stale_completions,
    undelivered,
    panics,
}

/// How far a process has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The process has been submitted.
    Submitted,
    /// The process has been offered as an heir.
    Offered,
    /// `init` has returned `Ok`: the process belongs to this life.
    Open(usize),
    /// The process has been closed, or will never be opened.
    Over,
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Spec {
    limits: Limits,
    lives: Vec<Life>,
    /// The life of each PID.
    visible: HashMap<Pid, usize>,
    processes: HashMap<Number, Stage>,
    /// Processes submitted while the room is uncertain.
    perhaps_full: HashSet<Number>,
    /// The life of each yield, and its handler's act.
    yields: HashMap<Number, (usize, Kind)>,
    /// The life of each waiting message.
    waits: HashMap<Number, usize>,
    pub(crate) routes: Routes,
    /// The life whose yields are being dispatched.
    dispatching: Option<usize>,
    counts: Counts,
    is_stopping: bool,
    /// Processes submitted by processes since the stop began, and whether the stop leaves them
    /// alone.
    in_the_stop: HashMap<Number, bool>,
    /// When processes may be forced to end.
    deadline: Option<Duration>,
    /// How many processes lived when the stop began, or have started since; how many of them were
    /// forced to end; and how many may have been.
    told: [u64; 3],
    has_halted: bool,
}

impl Spec {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            lives: Vec::new(),
            visible: HashMap::new(),
            processes: HashMap::new(),
            perhaps_full: HashSet::new(),
            yields: HashMap::new(),
            waits: HashMap::new(),
            routes: Routes::default(),
            dispatching: None,
            counts: Counts::default(),
            is_stopping: false,
            in_the_stop: HashMap::new(),
            deadline: None,
            told: [0; 3],
            has_halted: false,
        }
    }

    /// Takes in an event, at this time.
    pub(crate) fn note(&mut self, note: &Note, now: Duration) -> Result<(), Broken> {
        match note {
            Note::Handled(yielded) => return self.handled(*yielded),
            _ => self.end_dispatch()?,
        }
        match note {
            Note::Init(pid, process, start) => self.init(*pid, *process, *start),
            Note::Started(pid) => self.started(*pid),
            Note::Step(pid, process, shown) => self.step(*pid, *process, shown),
            Note::Took(pid, seen) => self.find(*pid)?.take(*seen),
            Note::Stepped(pid, yields, outcome, defers) => {
                self.stepped(*pid, yields, *outcome, *defers)
            }
            Note::Closed(process) => self.closed(*process, now),
            Note::Ended(pid, end) => self.ended(*pid, *end, now),
            Note::Handled(_) => Ok(()),
        }
    }

    /// Checks a state in which no actor can move.
    pub(crate) fn settled(&mut self) -> Result<(), Broken> {
        self.end_dispatch()?;
        self.routes.settled()?;
        let mut there: Vec<_> = self.visible.values().copied().collect();
        there.sort_unstable();
        for nth in there {
            let life = &mut self.lives[nth];
            self.counts.stale_completions += life.drop_stale();
            let pid = life.pid;
            if life.phase != Phase::Waits || life.is_terminating {
                let phase = life.phase;
                return Err(format!("{pid} is still about something: {phase:?}"));
            }
            if let Some(what) = life.waiting_for_a_step() {
                return Err(format!("{pid} sleeps beside {what} (P5, G2)"));
            }
        }
        Ok(())
    }

    /// Returns whether nothing is awaited. With threads, the yields of the last step may still be
    /// on their way.
    pub(crate) fn is_settled(&mut self) -> bool {
        let dispatching = self.dispatching.map(|nth| &self.lives[nth].dispatching);
        let is_known = |&(_, kind): &(Number, Kind)| kind != Kind::Unknown;
        !dispatching.is_some_and(|yields| yields.iter().any(is_known)) && self.settled().is_ok()
    }

    /// Checks that all processes have ended.
    pub(crate) fn over(&self) -> Result<(), Broken> {
        if let Some(pid) = self.visible.keys().min() {
            return Err(format!("{pid} has not ended (D4)"));
        }
        let open = |&(_, stage): &(&Number, &Stage)| matches!(stage, Stage::Open(_));
        match self.processes.iter().find(open) {
            Some((process, _)) => Err(format!("{process} has not been closed (P2)")),
            None => Ok(()),
        }
    }

    /// Returns the live processes of a settled scheduler, by PID: how often each was upgraded,
    /// whether it was cancelled, and whether it has outstanding yields.
    pub(crate) fn living(&self) -> Vec<(Pid, u32, bool, bool)> {
        let lives = self.visible.values().map(|&nth| &self.lives[nth]);
        let mut living: Vec<_> = lives
            .map(|life| {
                let waits = !life.outstanding.is_empty();
                (life.pid, life.incarnation, life.is_cancelled, waits)
            })
            .collect();
        living.sort_unstable();
        living
    }

    /// Returns the number of steps that a live process has begun, and of new events shown to them.
    pub(crate) fn seen_by(&self, pid: Pid) -> Option<(u64, u64)> {
        let life = &self.lives[*self.visible.get(&pid)?];
        Some((life.steps, life.events))
    }

    /// Returns the number of events that the steps of a live process have left.
    pub(crate) fn left_by(&self, pid: Pid) -> Option<u64> {
        Some(self.lives[*self.visible.get(&pid)?].events_left())
    }

    /// Returns the number of steps of all processes so far.
    pub(crate) fn steps(&self) -> u64 {
        self.lives.iter().map(|life| life.steps).sum()
    }

    /// Returns the number of new events of all steps so far.
    pub(crate) fn events(&self) -> u64 {
        self.lives.iter().map(|life| life.events).sum()
    }

    /// Returns whether a process has this PID.
    pub(crate) fn is_there(&self, pid: Pid) -> bool {
        self.visible.contains_key(&pid)
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns the counts that a scheduler must have, once all is settled.
    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }
}

impl Counts {
    /// Returns the number of started processes that have ended.
    pub(crate) fn ended(self) -> u64 {
        let by_themselves = self.done + self.failed + self.panicked;
        by_themselves + self.cancelled + self.terminated + self.upgrades_failed
    }

    /// Checks whether a scheduler has the same counts.
    pub(crate) fn check(self, stats: &WorkerStats) -> Result<(), Broken> {
        let counted = Self::from(stats);
        if counted == self {
            return Ok(());
        }
        Err(format!("counted: {counted:?}, there has to be: {self:?}"))
    }
}

impl Spec {
    fn find(&mut self, pid: Pid) -> Result<&mut Life, Broken> {
        match self.visible.get(&pid) {
            Some(&nth) => Ok(&mut self.lives[nth]),
            None => Err(format!("{pid} is not there")),
        }
    }
}

//! The state shared by all workers and all callers of a scheduler.

use crate::base::clock::MonotonicClock;
use crate::base::stats::AllCounters;
use crate::config::Config;
use crate::handlers::commands::CommandRegistry;
use crate::handlers::factories::Factories;
use crate::handlers::names::Names;
use crate::limits::rooms::Rooms;
use crate::probe::{Active, Carrier, Decide, Decider, Probe, Scheduler};
use crate::process::cancel_signals::CancelSignals;
use crate::process::exit_actions::ExitRequest;
use crate::process::remote::Remote;
use crate::process::revoked::Revoked;
use crate::progress::Progress;
use crate::progress::stopper::Stopper;
use crate::queues::closing_inbox::ClosingInbox;
use crate::queues::idle::Idle;
use crate::queues::timer_waiter::Dues;
use crate::reports::reporting::Reporting;
use crate::runtime::cell::ProcessCell;
use crate::runtime::census::Census;
use crate::runtime::driver::Driver;
use crate::runtime::extensions::Extensions;
use crate::runtime::interventions::Interventions;
use crate::runtime::queues::Queues;
use crate::runtime::start::Start;
use crate::runtime::timing::Timing;
use crate::runtime::token::Token;
use crate::runtime::worker_slots::WorkerSlots;
use ganger_deque::Worker;
use ganger_os::{Pins, Sampler};
use ganger_proc_api::{EnvelopeReceiver, HostName, NodeName, Process};
use ganger_sync::atomic::AtomicBool;
use ganger_time::Timers;
#[cfg(feature = "check")]
use std::any::Any;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, OnceLock, Weak};

/// A question to a process between two steps.
pub(crate) type Question = dyn FnOnce(&dyn Process) + Send;

pub(crate) struct Shared {
    pub(crate) host: HostName,
    pub(crate) node: Option<NodeName>,
    /// Of this scheduler alone, in this program.
    pub(crate) number: u64,
    pub(crate) config: Config,
    pub(crate) commands: CommandRegistry,
    pub(crate) factories: Factories,
    pub(crate) names: Arc<Names>,
    pub(crate) extensions: Extensions,
    /// For the PIDs of other schedulers.
    pub(crate) remote: OnceLock<Arc<dyn Remote>>,
    /// The router of a scheduler that was built without a router.
    pub(crate) late_router: OnceLock<Arc<dyn EnvelopeReceiver>>,
    pub(crate) queues: Queues,
    pub(crate) worker_slots: WorkerSlots,
    pub(crate) timing: Timing,
    pub(crate) census: Census<ProcessCell>,
    pub(crate) counters: AllCounters,
    pub(crate) rooms: Rooms,
    pub(crate) closing_inbox: ClosingInbox<ExitRequest>,
    pub(crate) revoked: Arc<Revoked>,
    pub(crate) cancel_signals: CancelSignals,
    pub(crate) interventions: Interventions<Token, Box<Question>>,
    /// Whether any process has had values for its children.
    pub(crate) has_inherited: AtomicBool,
    pub(crate) reporting: Reporting,
    pub(crate) probe: Active,
    pub(crate) start: Start,
    pub(crate) shutdown: Progress,
    pub(crate) stopper: Stopper,
    /// Ends the processes queued after the halt, for a thread that has queued a process.
    pub(crate) end_queued: fn(&Arc<Self>),
}

/// Draws a number for this scheduler: two random numbers of 64 bits are not the same.
fn draw_number() -> u64 {
    RandomState::new().hash_one(())
}

/// Returns the generation at which ids begin: a random one for each scheduler and run, so that a
/// PID of another scheduler finds no process. Where promises are checked, a simulation decides, so
/// that runs repeat; else the first.
fn first_generation(config: &Config, number: u64) -> u32 {
    if config.is_checked {
        return Decider::first_generation().unwrap_or(1);
    }
    // Most of the generations are left, and PIDs stay short.
    fastrand::Rng::with_seed(number).u32(1..=1 << 30)
}

/// Functions of the layers above.
pub(crate) struct Above {
    /// Ends the processes queued after the halt, for a thread that has queued a process.
    pub(crate) end_queued: fn(&Arc<Shared>),
    /// Makes the timers, in this many shards.
    pub(crate) make_timers: fn(&Weak<Shared>, &Arc<Dues>, MonotonicClock, usize) -> Timers,
}

impl Shared {
    pub(crate) fn new(
        workers: usize,
        (host, node): (HostName, Option<NodeName>),
        config: Config,
        driver: Option<Arc<dyn Driver>>,
        pins: Option<Pins>,
        backtraces: Option<Box<dyn Sampler>>,
        above: Above,
    ) -> Arc<Self> {
        let slots = workers + config.max_spares;
        // Spares' deques are small until they have something to hold.
        let capacity = |slot| {
            if slot < workers {
                config.deque_capacity
            } else {
                1
            }
        };
        let deques: Vec<Worker<Token>> = (0..slots)
            .map(|slot| Worker::with_capacity(capacity(slot)))
            .collect();
        let number = draw_number();
        let idle = Idle::new(workers, slots);
        let shared = Arc::new_cyclic(|shared| {
            let timing = Timing::new(config.clock(), driver, slots, |dues, clock, shards| {
                (above.make_timers)(shared, dues, clock, shards)
            });
            let idle = match &timing.driven {
                Some(driven) => idle.interrupted_by(driven.interrupter()),
                None => idle,
            };
            Self {
                host,
                node,
                number,
                commands: CommandRegistry::new(),
                factories: Factories::default(),
                names: Arc::default(),
                extensions: Extensions::default(),
                remote: OnceLock::new(),
                late_router: OnceLock::new(),
                queues: Queues::new(&deques, idle),
                worker_slots: WorkerSlots::new(workers, slots, pins),
                timing,
                census: Census::new(first_generation(&config, number), slots),
                counters: AllCounters::new(slots),
                rooms: Rooms::new(config.mailbox_limit),
                closing_inbox: ClosingInbox::new(),
                revoked: Arc::default(),
                cancel_signals: CancelSignals::default(),
                interventions: Interventions::default(),
                has_inherited: AtomicBool::new(false),
                reporting: Reporting {
                    backtraces,
                    ..Reporting::default()
                },
                probe: Active::new(&config, slots),
                start: Start::new(deques),
                shutdown: Progress::default(),
                stopper: Stopper::default(),
                end_queued: above.end_queued,
                config,
            }
        });
        shared.attach();
        shared
    }

    /// Returns whether a wait for a process would not end: nothing runs it, and no stop ends it.
    pub(crate) fn is_unstarted(&self) -> bool {
        !self.shutdown.is_stopping() && !self.start.is_tried()
    }
}

impl Scheduler for Arc<Shared> {}

impl Shared {
    /// Returns the probe for causes.
    #[inline(always)]
    pub(crate) fn carrier(&self) -> &Carrier {
        &self.probe.1.0
    }

    /// Returns the scheduler given to a probe.
    #[cfg(feature = "check")]
    pub(crate) fn of(scheduler: &dyn Scheduler) -> &Arc<Self> {
        let shared = (scheduler as &dyn Any).downcast_ref();
        shared.unwrap_or_else(|| unreachable!("there is one kind"))
    }
}

//! The settings of a scheduler.

use crate::base::clock::MonotonicClock;
use crate::base::level::Observe;
use crate::base::recorder::{MAX_BYTES, Recorder};
use crate::base::tracer::StepTracer;
use crate::policy;
use crate::reports::dead_letters::DeadLetters;
use crate::reports::failures::OnFailure;
use crate::reports::life::LifeWatch;
use ganger_os::{PinError, Pinning, Ranges, SamplerError};
use ganger_proc_api::{EnvelopeReceiver, Lifecycle, NameError};
use std::sync::Arc;
use std::time::Duration;

/// The settings; fixed once the scheduler is built.
pub(crate) struct Config {
    pub(crate) deque_capacity: usize,
    pub(crate) event_batch: usize,
    pub(crate) global_batch: usize,
    pub(crate) spin_looks: u32,
    pub(crate) yield_looks: u32,
    pub(crate) rotation: u32,
    pub(crate) chain_limit: Duration,
    pub(crate) hand_off_delay: Duration,
    pub(crate) blocked_step: Duration,
    pub(crate) long_step: Duration,
    pub(crate) report_interval: Duration,
    /// Between two lines; zero for none, and nothing where the environment says it.
    pub(crate) report_every: Option<Duration>,
    pub(crate) long_step_backtraces: bool,
    pub(crate) profiles: bool,
    pub(crate) backtrace_signal: Option<i32>,
    pub(crate) max_spares: usize,
    pub(crate) keep_spares: Duration,
    pub(crate) max_processes: Option<usize>,
    pub(crate) mailbox_limit: Option<usize>,
    pub(crate) shutdown_deadline: Duration,
    pub(crate) thread_name: String,
    pub(crate) stack_size: Option<usize>,
    pub(crate) pinning: Pinning,
    pub(crate) lifecycle: Option<Arc<dyn Lifecycle>>,
    pub(crate) dead_letters: Option<Arc<dyn DeadLetters>>,
    /// Is told of starts and ends.
    pub(crate) life: Option<Arc<dyn LifeWatch>>,
    pub(crate) on_failure: OnFailure,
    pub(crate) router: Option<Arc<dyn EnvelopeReceiver>>,
    /// For the checker, and for simulations, which check and repeat.
    pub(crate) is_checked: bool,
    /// For a count of instructions.
    pub(crate) clock_is_still: bool,
    /// The highest level of counting and measuring.
    #[cfg_attr(
        not(feature = "observe"),
        expect(dead_code, reason = "nothing is observed")
    )]
    pub(crate) observe: Observe,
    /// Traces steps.
    #[cfg_attr(
        not(feature = "observe"),
        expect(dead_code, reason = "nothing is observed")
    )]
    pub(crate) tracer: Option<Arc<dyn StepTracer>>,
    /// Whether processes may be suspended, and looked into.
    #[cfg_attr(
        not(feature = "observe"),
        expect(dead_code, reason = "nothing intervenes")
    )]
    pub(crate) interventions: bool,
    /// Set when events are recorded.
    pub(crate) record: Option<Recorder>,
}

/// The most worker threads of a scheduler.
pub(crate) const MAX_WORKERS: usize = 4096;

/// The largest limit within the bits of either count.
pub(crate) const MAX_LIMIT: usize = (1 << 31) - 1;

/// Why a scheduler can't be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A setting is out of its range.
    #[error("{setting} is {value}; it must be from {min} to {max}")]
    OutOfRange {
        /// The setting.
        setting: &'static str,
        /// Its value.
        value: usize,
        /// The lower bound.
        min: usize,
        /// The upper bound.
        max: usize,
    },
    /// The threads' name contains a NUL, which no system takes.
    #[error("invalid thread_name {0:?}: it must not contain a NUL")]
    ThreadName(String),
    /// The core for a pinned worker does not exist, or the process may not use it.
    #[error(
        "pin_workers: core {core} does not exist or is not allowed; this process may use {}: \
         name one of these, or widen its affinity mask or its cgroup's cpuset",
        Ranges(allowed)
    )]
    Core {
        /// The number of the core.
        core: usize,
        /// The allowed cores, in order.
        allowed: Vec<usize>,
    },
    /// Workers were to be pinned to no core at all.
    #[error("pin_workers: the list of cores is empty; name one, or use `Pinning::RoundRobin`")]
    NoCores,
    /// The system does not tell the cores of the process. Only Linux does.
    #[error("pin_workers: can't pin threads on this system ({0}); use `Pinning::Off`")]
    Affinity(std::io::Error),
    /// This system has no backtraces of long steps and no profiles: only Linux has, on x86-64 and
    /// AArch64.
    #[error(
        "long_step_backtraces and profiles: the system can't interrupt a thread to see where it is \
         ({0}); turn them off"
    )]
    Backtraces(std::io::Error),
    /// The signal for backtraces of long steps and profiles has a handler, or is ignored.
    #[error(
        "long_step_backtraces and profiles: another part of this program handles or ignores signal \
         {signal}; choose another real-time signal with `backtrace_signal`"
    )]
    SignalTaken {
        /// Its number.
        signal: i32,
    },
    /// The host's or the node's name is none.
    #[error("invalid {what} name {name:?}: {error}")]
    Name {
        /// The named object: a host or a node.
        what: &'static str,
        /// The name.
        name: String,
        /// The error in the name.
        error: NameError,
    },
}

impl From<PinError> for BuildError {
    fn from(error: PinError) -> Self {
        match error {
            PinError::Core { core, allowed } => Self::Core { core, allowed },
            PinError::NoCores => Self::NoCores,
            PinError::System(error) => Self::Affinity(error),
        }
    }
}

impl From<SamplerError> for BuildError {
    fn from(error: SamplerError) -> Self {
        let number = |signal| usize::try_from(signal).unwrap_or(0);
        match error {
            SamplerError::NoRealTimeSignal { signal, min, max } => Self::OutOfRange {
                setting: "backtrace_signal",
                value: number(signal),
                min: number(min),
                max: number(max),
            },
            SamplerError::SignalTaken { signal } => Self::SignalTaken { signal },
            SamplerError::System(error) => Self::Backtraces(error),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            deque_capacity: 256,
            event_batch: policy::EVENT_BATCH,
            global_batch: policy::GLOBAL_BATCH,
            spin_looks: policy::SPIN_LOOKS,
            yield_looks: policy::YIELD_LOOKS,
            rotation: policy::ROTATION,
            chain_limit: policy::CHAIN_LIMIT,
            hand_off_delay: policy::HAND_OFF_DELAY,
            blocked_step: policy::BLOCKED_STEP,
            long_step: policy::LONG_STEP,
            report_interval: Duration::from_secs(1),
            report_every: None,
            long_step_backtraces: false,
            profiles: false,
            backtrace_signal: None,
            max_spares: 64,
            keep_spares: Duration::from_secs(10),
            max_processes: None,
            mailbox_limit: None,
            shutdown_deadline: Duration::from_secs(5),
            thread_name: "ganger-worker".to_owned(),
            stack_size: None,
            pinning: Pinning::Off,
            lifecycle: None,
            dead_letters: None,
            life: None,
            on_failure: OnFailure::default(),
            router: None,
            is_checked: false,
            clock_is_still: false,
            observe: Observe::Off,
            tracer: None,
            interventions: false,
            record: None,
        }
    }
}

impl Config {
    pub(crate) fn clock(&self) -> MonotonicClock {
        if self.clock_is_still {
            return MonotonicClock::still();
        }
        MonotonicClock::new()
    }

    pub(crate) fn check(&self) -> Result<(), BuildError> {
        if self.thread_name.contains('\0') {
            return Err(BuildError::ThreadName(self.thread_name.clone()));
        }
        in_range("deque_capacity", self.deque_capacity, 1, 1 << 24)?;
        in_range("event_batch", self.event_batch, 1, 1 << 24)?;
        in_range("global_batch", self.global_batch, 0, 1 << 16)?;
        in_range("rotation", self.rotation as usize, 1, u32::MAX as usize)?;
        let micros = usize::try_from(self.hand_off_delay.as_micros()).unwrap_or(usize::MAX);
        let most = policy::LONGEST_LOOK.as_micros() as usize;
        in_range("hand_off_delay in microseconds", micros, 1, most)?;
        in_range("max_spares", self.max_spares, 0, MAX_WORKERS)?;
        let bytes = self.record.as_ref().map_or(0, |it| it.bytes);
        in_range("Recorder::bytes", bytes, 0, MAX_BYTES)?;
        in_range(
            "max_processes",
            self.max_processes.unwrap_or(1),
            1,
            usize::MAX,
        )?;
        in_range(
            "mailbox_limit",
            self.mailbox_limit.unwrap_or(1),
            1,
            MAX_LIMIT,
        )
    }
}

pub(crate) fn in_range(
    setting: &'static str,
    value: usize,
    min: usize,
    max: usize,
) -> Result<(), BuildError> {
    if (min..=max).contains(&value) {
        Ok(())
    } else {
        Err(BuildError::OutOfRange {
            setting,
            value,
            min,
            max,
        })
    }
}

//! How much a scheduler records.

#[cfg(feature = "observe")]
use std::time::Duration;

/// A flight recorder: it keeps the last events of each thread of the scheduler.
///
/// The events are turns of processes and the places of their picks, wake-ups and their causes,
/// messages, commands and their answers, timers, sleeps, thefts, spares, spawns, ends, marks and
/// alarms. The recorder is always on, and each new event overwrites the oldest of its thread.
///
/// **Memory**: [`bytes`](Self::bytes) in all, in equal rings for each worker and a ring for all
/// other threads, allocated when the scheduler is built; and a worker's share for each spare that
/// has had to take a worker's place. 32 bytes an event: 16 MiB are 500,000 events.
///
/// **Time**: some nanoseconds an event, where the processor has a counter trusted by the kernel
/// (most machines with Linux on x86_64); elsewhere the time of a reading of the system's clock. A
/// message has about five events: it is sent, wakes its receiver, has a turn begin and end, and is
/// taken. After a suspend of the machine times are wrong where the processor's counter is the
/// clock.
///
/// **Not recorded**: that a step takes a control message, or a message that a timer has kept. A
/// message's arrow may be missing behind a wake-up. A send refused by the mailbox of an ended
/// process is recorded as sent.
///
/// ```
/// # #[cfg(feature = "observe")] {
/// use ganger_sched::{Recorder, Scheduler};
/// use std::time::Duration;
///
/// let recorder = Recorder::new().bytes(1 << 20).at_least(Duration::from_secs(10));
/// let scheduler = Scheduler::builder().record(recorder).start()?;
/// scheduler.mark("the config is read", 7);
/// let recording = scheduler.recording(Duration::from_secs(1));
/// assert!(recording.is_some_and(|it| it.scheduler() == "main"));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "observe"),
    expect(unreachable_pub, reason = "the feature makes it public")
)]
pub struct Recorder {
    pub(crate) bytes: usize,
    #[cfg(feature = "observe")]
    pub(crate) at_least: Duration,
}

/// The memory limit of a recorder: more is rather a mistake, and the build of such a scheduler
/// returns an error, where the allocator would end the program.
pub(crate) const MAX_BYTES: usize = match 1_usize.checked_shl(36) {
    Some(bytes) => bytes,
    None => 1 << 30,
};

#[cfg(feature = "observe")]
impl Recorder {
    /// Creates a recorder of 16 MiB, for ten seconds.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            bytes: 16 << 20,
            at_least: Duration::from_secs(10),
        }
    }

    /// Sets how much memory the rings take. At least some 100 bytes a thread are taken, however few
    /// are asked for. More than 64 GiB (1 GiB where addresses have 32 bits) are a
    /// [`BuildError`](crate::BuildError).
    #[must_use]
    pub const fn bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }

    /// Sets how far back a recording without a length of its own goes, as far as the memory
    /// reaches. Older events are left out.
    #[must_use]
    pub const fn at_least(self, length: Duration) -> Self {
        Self {
            at_least: length,
            ..self
        }
    }
}

#[cfg(feature = "observe")]
impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

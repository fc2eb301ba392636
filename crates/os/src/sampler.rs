//! The interface to backtraces of other threads, also on systems without them.

use std::sync::Arc;
use std::{fmt, io};

/// A function that uses a thread's id while the thread can't end; returns whether it succeeded.
pub type WithId<'a> = dyn Fn(u32) -> bool + 'a;

/// Takes backtraces of threads, one thread in each slot.
pub trait Sampler: fmt::Debug + Send + Sync {
    /// Makes the calling thread, which has the slot, available for backtraces until the result is
    /// dropped.
    fn enter(&self, slot: usize) -> Box<dyn Entered + '_>;

    /// Returns the backtrace of the slot's thread: a line for each function, the innermost first.
    ///
    /// Blocks for a while. `None` unless `is_current` returns true before and after, as the step of
    /// interest must still run. `with_thread` calls its argument with the thread's id, while the
    /// thread can't end.
    fn backtrace(
        &self,
        slot: usize,
        is_current: &dyn Fn() -> bool,
        with_thread: &dyn Fn(&WithId<'_>) -> bool,
    ) -> Option<Arc<str>>;
}

/// Keeps a thread available for backtraces: see [`Sampler::enter`].
pub trait Entered: fmt::Debug {}

/// Why backtraces are unavailable.
#[derive(Debug, thiserror::Error)]
pub enum SamplerError {
    /// The signal is not a real-time signal.
    #[error("signal {signal} is not a real-time signal; it must be from {min} to {max}")]
    NoRealTimeSignal {
        /// The signal.
        signal: i32,
        /// The least real-time signal.
        min: i32,
        /// The greatest real-time signal.
        max: i32,
    },
    /// Another part of the program handles or ignores the signal.
    #[error("another part of this program handles or ignores signal {signal}")]
    SignalTaken {
        /// The signal.
        signal: i32,
    },
    /// The system can't interrupt a thread to take its backtrace: it is not Linux on x86-64 or
    /// AArch64, or the crate was built without the feature `backtraces`.
    #[error("the system can't interrupt a thread to see where it is: {0}")]
    System(io::Error),
}

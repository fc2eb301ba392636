//! What a program sees of backtraces of other threads, also where there are none.

use std::sync::Arc;
use std::{fmt, io};

/// What is done with a thread's id, while that thread can't end; it says whether it was done.
pub type WithId<'a> = dyn Fn(u32) -> bool + 'a;

/// Says where threads are: one for each slot.
pub trait Sampler: fmt::Debug + Send + Sync {
    /// The calling thread, which has that slot, can be asked where it is, until the result is
    /// dropped.
    fn enter(&self, slot: usize) -> Box<dyn Entered + '_>;

    /// Where the thread with that slot is: a line for each function, the innermost first.
    ///
    /// Blocks for a while. None unless `is_current` says all the time that what is asked about goes
    /// on. `with_thread` calls what it is given with the thread's id, while the thread can't end.
    fn backtrace(
        &self,
        slot: usize,
        is_current: &dyn Fn() -> bool,
        with_thread: &dyn Fn(&WithId<'_>) -> bool,
    ) -> Option<Arc<str>>;
}

/// See [`Sampler::enter`].
pub trait Entered: fmt::Debug {}

/// Why there are no backtraces.
#[derive(Debug, thiserror::Error)]
pub enum SamplerError {
    /// The signal is no real-time signal.
    #[error("signal {signal} is no real-time signal, which are those from {min} to {max}")]
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
    /// The system can't interrupt a thread to see where it is: it is not Linux on x86-64 or
    /// AArch64, or the crate was built without the feature `backtraces`.
    #[error("the system can't interrupt a thread to see where it is: {0}")]
    System(io::Error),
}

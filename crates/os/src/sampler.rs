//! The interface to backtraces of other threads, also on systems without them.

use std::sync::Arc;
use std::{fmt, io};

/// A function that uses a thread's id while the thread can't end; returns whether it succeeded.
pub type WithId<'a> = dyn Fn(u32) -> bool + 'a;

/// A thread's present act, as a number.
///
/// # Safety
/// `read` only loads from memory: the signal's handler calls it, which may interrupt any code of
/// the same thread.
pub unsafe trait Doing {
    /// Returns the number.
    fn read(&self) -> u64;
}

/// Takes backtraces of threads, a single thread in each slot.
pub trait Sampler: fmt::Debug + Send + Sync {
    /// Calls `f`. Meanwhile the calling thread, which has the slot, is available for backtraces;
    /// each says what the thread was doing at the interruption.
    fn while_available(&self, slot: usize, doing: &dyn Doing, f: &mut dyn FnMut());

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

    /// Prepares many looks, one after the other: copies the unwind tables of the program and its
    /// libraries, some megabytes of a large program. Libraries that are loaded later have none.
    fn stacks(&self) -> Box<dyn Stacks + '_>;

    /// Returns the functions of an address, the innermost first: see [`Functions`]. Slow: some 100
    /// ms for the first address of a large program with debug information. Other threads that look
    /// up symbols by the same library wait meanwhile.
    fn functions(&self, address: u64) -> Functions;
}

/// Looks at the stacks of threads again and again.
pub trait Stacks {
    /// Asks the threads of these slots all at once where they are, and calls `each` with each
    /// answer. Returns the number of asked threads. A thread gives no answer if 10 ms pass, or if
    /// another look asks the thread at the moment.
    ///
    /// Blocks for a while. `with_thread` calls its second argument with the id of the slot's
    /// thread, while the thread can't end.
    fn look(
        &mut self,
        slots: &mut dyn Iterator<Item = usize>,
        with_thread: &dyn Fn(usize, &WithId<'_>) -> bool,
        each: &mut dyn FnMut(Stack<'_>),
    ) -> usize;
}

/// Where a thread was.
#[derive(Debug, Clone, Copy)]
pub struct Stack<'a> {
    /// The slot of the thread.
    pub slot: usize,
    /// The thread's act at this moment: see [`Doing`].
    pub doing: u64,
    /// The addresses of its frames, the innermost first.
    pub frames: &'a [u64],
}

/// A function of the program.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Function {
    /// The name, or the address where the name is not known.
    pub name: String,
    /// The file of the code, if the program has debug information.
    pub file: Option<String>,
    /// The line in this file.
    pub line: Option<u32>,
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let (Some(file), Some(line)) = (&self.file, self.line) {
            write!(f, " at {file}:{line}")?;
        }
        Ok(())
    }
}

/// The functions of an address: an inlined function comes before its caller.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Functions {
    /// The functions, the innermost first, without those from the first end on.
    pub inner: Vec<Function>,
    /// Whether an end was among them, with which a backtrace ends.
    pub is_end: bool,
}

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

//! Where a step is that keeps others waiting: a backtrace of its thread, taken from outside.
//!
//! **Problem.** A report names the process, not the line that blocks or computes. Only the thread itself
//! can be asked for its registers, by a signal, which finds it anywhere: in the allocator, in the dynamic
//! linker, with any lock held. The answer has to be given without any.
//!
//! **Rejected.** Unwinding in the signal's handler, by `_Unwind_Backtrace`: it takes the dynamic linker's
//! lock or allocates, depending on the versions of two libraries. Following frame pointers there: programs
//! are compiled without. Stopping the thread with `ptrace`: a process can't do that to itself.
//!
//! **Protocol.**
//! 1. A thread that enters sets a sample aside, with room for its registers and the innermost part of its
//!    stack, and notes where its stack is (`sample.rs`).
//! 2. The spare that reports a step sees that its turn goes on, and sends the signal (`signal.rs`).
//! 3. The handler copies registers and stack into the thread's sample, by loads and stores alone.
//! 4. The spare waits for that, for [`PATIENCE`] at the most, and sees that the turn still goes on.
//! 5. It unwinds the copy with the unwind tables of the program's modules, which it copies as well
//!    (`unwind.rs`), and looks the symbols up (`symbols.rs`). The thread has long gone on.
//!
//! **Why it is of that very step.** The number of a worker's turns never goes back, and the worker clears
//! what it runs before the turn is over. The handler's last store is a Release, and the spare reads both
//! after the Acquire that pairs with it: what had happened before the copy it sees.

mod sample;
mod signal;
mod symbols;
mod unwind;

use crate::config::{BuildError, Config};
use crate::contain::contain;
use sample::{Copied, Sample};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long the thread has for its answer. A thread that can't be given a processor may take longer.
const PATIENCE: Duration = Duration::from_millis(10);

/// The samples of a scheduler's threads, by their slots.
pub(crate) struct Backtraces {
    signal: i32,
    samples: Box<[Mutex<Option<Arc<Sample>>>]>,
}

impl Backtraces {
    /// What the settings ask for, for that many threads.
    ///
    /// # Errors
    /// When the signal is none to be used, or somebody else uses it.
    pub(crate) fn new(config: &Config, slots: usize) -> Result<Option<Self>, BuildError> {
        if !config.long_step_backtraces {
            return Ok(None);
        }
        let signal = signal::install(config.backtrace_signal)?;
        Ok(Some(Self {
            signal,
            samples: (0..slots).map(|_| Mutex::default()).collect(),
        }))
    }

    /// The calling thread, which has that slot, can be asked where it is, until the guard is dropped.
    pub(crate) fn enter(&self, slot: usize) -> Entered<'_> {
        let sample = Sample::of_this_thread().map(Arc::new);
        signal::set_sample(sample.as_deref());
        let mine = &self.samples[slot];
        *mine.lock().unwrap_or_else(PoisonError::into_inner) = sample;
        Entered(mine)
    }

    /// Where the thread with that slot is, if what it is asked about goes on all the time. Blocks for a
    /// while. `with_thread` calls with the thread's id.
    pub(crate) fn of(
        &self,
        slot: usize,
        is_current: impl Fn() -> bool,
        with_thread: impl FnOnce(&dyn Fn(u32) -> bool) -> bool,
    ) -> Option<Arc<str>> {
        let send = || with_thread(&|id| signal::send(self.signal, id));
        let copied = self.copy(slot, is_current, send)?;
        // It is much code of others that looks at what others have compiled.
        contain(|| text(&copied)).ok().flatten()
    }

    /// What the thread has answered, if what it was asked about went on all the time.
    fn copy(
        &self,
        slot: usize,
        is_current: impl Fn() -> bool,
        send: impl FnOnce() -> bool,
    ) -> Option<Copied> {
        let sample = &self.samples[slot];
        let sample = sample
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()?;
        let asked = sample.ask()?;
        let is_sent = is_current() && send();
        asked
            .answer(if is_sent { PATIENCE } else { Duration::ZERO })
            .filter(|_| is_current())
    }
}

/// One frame a line, the innermost first, without the scheduler's own; none when there would be no line.
fn text(copied: &Copied) -> Option<Arc<str>> {
    let text = symbols::text(&unwind::frames(copied));
    (!text.is_empty()).then(|| text.into())
}

/// See [`Backtraces::enter`].
pub(crate) struct Entered<'a>(&'a Mutex<Option<Arc<Sample>>>);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        // Before the sample may be gone.
        signal::set_sample(None);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(test)]
mod tests;

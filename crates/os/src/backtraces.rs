//! Where another thread is: a backtrace of it, taken from outside.
//!
//! **Problem.** Only the thread itself can be asked for its registers, by a signal, which finds it
//! anywhere: in the allocator, in the dynamic linker, with any lock held. The handler has to answer
//! without taking a lock.
//!
//! **Rejected.** Unwinding in the signal's handler, by `_Unwind_Backtrace`: it takes the dynamic
//! linker's lock or allocates, depending on the versions of two libraries. Following frame pointers
//! there: programs are compiled without. Stopping the thread with `ptrace`: a process can't do that
//! to itself.
//!
//! **Protocol.**
//! 1. A thread that enters sets a sample aside, with room for its registers and the innermost part
//!    of its stack, and notes where its stack is (`sample.rs`).
//! 2. The asker sees that what it asks about goes on, and sends the signal (`signal.rs`).
//! 3. The handler copies registers and stack into the thread's sample, by loads and stores alone.
//! 4. The asker waits for that, for [`PATIENCE`] at most, and sees that what it asks about still
//!    goes on.
//! 5. The asker unwinds the copy with the unwind tables of the program's modules, which it copies
//!    as well (`unwind.rs`), and looks the symbols up (`symbols.rs`). The thread has long gone on.
//!
//! **Why it is of that very step.** The thread writes that a step is over before it begins another.
//! The handler's last store is a Release. The asker looks at the step after the Acquire that pairs
//! with it, and so sees what had happened before the copy was made.

mod sample;
mod signal;
mod symbols;
mod unwind;

use crate::sampler::{Entered, Sampler, SamplerError, WithId};
use sample::{Copied, Sample};
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long the thread has for its answer. A thread that is not given a processor may take longer.
const PATIENCE: Duration = Duration::from_millis(10);

/// Takes backtraces of threads in slots from 0 to below `slots`, by that real-time signal, or by
/// the last but one.
///
/// A backtrace ends at the first function whose name contains one of `ends`. The signal's handler
/// is the whole program's, and it stays.
///
/// # Errors
/// When the signal is no real-time signal, or another part of the program uses it.
pub fn backtraces(
    signal: Option<i32>,
    slots: usize,
    ends: &'static [&'static str],
) -> Result<Box<dyn Sampler>, SamplerError> {
    Ok(Box::new(Backtraces::new(signal, slots, ends)?))
}

/// The samples of threads, by their slots.
struct Backtraces {
    signal: i32,
    samples: Box<[Place]>,
    ends: &'static [&'static str],
}

type Place = Mutex<Option<Arc<Sample>>>;

impl fmt::Debug for Backtraces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backtraces")
            .field("signal", &self.signal)
            .finish_non_exhaustive()
    }
}

impl Backtraces {
    fn new(
        signal: Option<i32>,
        slots: usize,
        ends: &'static [&'static str],
    ) -> Result<Self, SamplerError> {
        Ok(Self {
            signal: signal::install(signal)?,
            samples: (0..slots).map(|_| Mutex::default()).collect(),
            ends,
        })
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

    /// One frame a line, the innermost first; none when there would be no line.
    fn text(&self, copied: &Copied) -> Option<Arc<str>> {
        let text = symbols::text(&unwind::frames(copied), self.ends);
        (!text.is_empty()).then(|| text.into())
    }
}

impl Sampler for Backtraces {
    fn enter(&self, slot: usize) -> Box<dyn Entered + '_> {
        let sample = Sample::of_this_thread().map(Arc::new);
        signal::set_sample(sample.as_deref());
        let place = &self.samples[slot];
        place
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone_from(&sample);
        Box::new(Guard {
            place,
            _sample: sample,
            _on_its_thread: PhantomData,
        })
    }

    fn backtrace(
        &self,
        slot: usize,
        is_current: &dyn Fn() -> bool,
        with_thread: &dyn Fn(&WithId<'_>) -> bool,
    ) -> Option<Arc<str>> {
        let send = || with_thread(&|id| signal::send(self.signal, id));
        self.text(&self.copy(slot, is_current, send)?)
    }
}

/// Keeps the sample for as long as the handler may use it.
struct Guard<'a> {
    place: &'a Place,
    _sample: Option<Arc<Sample>>,
    /// The sample is of the thread that has entered, and removed from there.
    _on_its_thread: PhantomData<*const ()>,
}

impl fmt::Debug for Guard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entered").finish_non_exhaustive()
    }
}

impl Entered for Guard<'_> {}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // Before the sample may be gone.
        signal::set_sample(None);
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(test)]
mod tests;

//! Takes a backtrace of another thread, from outside.
//!
//! **Problem.** Only the thread itself can read its registers, in a signal handler. The signal
//! finds it anywhere: in the allocator, in the dynamic linker, with any lock held. The handler must
//! answer without taking a lock.
//!
//! **Rejected.** Unwinding in the signal handler, by `_Unwind_Backtrace`: it takes the dynamic
//! linker's lock or allocates, depending on the versions of two libraries. Following frame pointers
//! there: programs are compiled without them. Stopping the thread with `ptrace`: a process can't
//! trace itself.
//!
//! **Protocol.**
//! 1. A thread that becomes available sets a sample aside, with room for its registers and the
//!    innermost part of its stack, and notes the bounds of its stack (`sample.rs`).
//! 2. The asker checks that the step still runs, and sends the signal (`signal.rs`), unless the
//!    last signal is still underway.
//! 3. The handler copies registers and stack into the thread's sample, by loads and stores alone.
//! 4. The asker waits for the copy, for at most 10 ms, and checks again that the step still runs.
//!    A profile needs no check: the handler also copies what the thread does, which is exact
//!    however short the step is (`stacks.rs`).
//! 5. The asker unwinds the copy with the unwind tables of the program's modules, which it copies
//!    as well (`unwind.rs`), and looks the symbols up (`symbols.rs`). The thread runs on meanwhile.
//!
//! **Why the copy is of this step.** The thread writes that a step has ended before it begins the
//! next. The handler's last store is a Release. The asker checks the step after the Acquire that
//! pairs with this store, and so sees everything that happened before the copy.

mod sample;
mod signal;
mod stacks;
mod symbols;
mod unwind;

use crate::sampler::{Doing, Functions, Sampler, SamplerError, Stacks, WithId};
use sample::{Copied, Patience, Sample};
use signal::Here;
use stacks::Looker;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use unwind::Tables;

/// Creates a sampler for threads in slots `0..slots`. The sampler uses the real-time signal
/// `signal`, or by default the last but one.
///
/// A backtrace ends before the first function whose name contains an element of `ends`. The
/// signal's handler is installed for the whole program, and stays.
///
/// # Errors
/// If the signal is not a real-time signal, or another part of the program uses it.
pub fn backtraces(
    signal: Option<i32>,
    slots: usize,
    ends: &'static [&'static str],
) -> Result<Box<dyn Sampler>, SamplerError> {
    Ok(Box::new(Backtraces::new(signal, slots, ends)?))
}

/// The samples of threads, by slot.
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

    /// Returns the thread's answer, if `is_current` was true both before the signal and after the
    /// answer.
    fn copy(
        &self,
        slot: usize,
        is_current: impl Fn() -> bool,
        send: impl FnOnce() -> bool,
    ) -> Option<Copied> {
        let sample = self.sample(slot)?;
        let asked = sample.ask_in_turn()?;
        let is_sent = is_current() && asked.signal(send);
        // A question that is not sent is taken back.
        is_sent
            .then(|| asked.answer(&Patience::for_answers()))?
            .filter(|_| is_current())
    }

    /// Returns the sample of the slot's thread, if any.
    fn sample(&self, slot: usize) -> Option<Arc<Sample>> {
        let place = self.samples[slot].lock();
        place.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns a line for each function, the innermost first; `None` if the text is empty.
    fn text(&self, copied: &Copied) -> Option<Arc<str>> {
        let text = symbols::text(&Tables::copy().frames(copied), self.ends);
        (!text.is_empty()).then(|| text.into())
    }
}

impl Sampler for Backtraces {
    fn while_available(&self, slot: usize, doing: &dyn Doing, f: &mut dyn FnMut()) {
        let Some(sample) = Sample::of_this_thread().map(Arc::new) else {
            return f();
        };
        let here = Here {
            sample: &sample,
            doing,
        };
        signal::with_here(&here, || {
            let _listed = Listed::new(&self.samples[slot], &sample);
            f();
        });
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

    fn stacks(&self) -> Box<dyn Stacks + '_> {
        Box::new(Looker::new(self))
    }

    fn functions(&self, address: u64) -> Functions {
        symbols::functions(address, self.ends)
    }
}

/// The sample is among those of the sampler.
struct Listed<'a>(&'a Place);

impl<'a> Listed<'a> {
    fn new(place: &'a Place, sample: &Arc<Sample>) -> Self {
        let sample = Some(Arc::clone(sample));
        *place.lock().unwrap_or_else(PoisonError::into_inner) = sample;
        Self(place)
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(test)]
mod tests;

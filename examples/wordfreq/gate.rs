//! How many files may be on their way at once, and whether to go on at all.
//!
//! A file takes a [`Slot`] when it is submitted. The slot travels with the file's process and then
//! with its report, and is given back wherever the report ends: merged, refused or dropped. So no
//! accident of a process can leave the main thread waiting for it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The main thread's side: it takes slots, and waits for them.
#[derive(Debug)]
pub(crate) struct Gate {
    slots: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// The number of free slots for which the main thread sleeps; 0 when it is awake.
    wanted: usize,
    interrupted: bool,
}

/// The right of a file to be on its way.
#[derive(Debug)]
pub(crate) struct Slot(Arc<Gate>);

/// The user does not want to wait for the rest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Interrupted;

impl Gate {
    /// Makes a gate for this many files at once.
    pub(crate) fn new(slots: usize) -> Arc<Self> {
        let state = State {
            free: slots,
            wanted: 0,
            interrupted: false,
        };
        Arc::new(Self {
            slots,
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }

    /// Waits for a slot, and takes it. A single thread calls this method.
    pub(crate) fn enter(self: &Arc<Self>) -> Result<Slot, Interrupted> {
        let mut state = self.lock();
        if state.free == 0 {
            // For several slots, so that the thread is not woken for each.
            state = self.wait_for(state, self.slots.div_ceil(16));
        }
        if state.interrupted {
            return Err(Interrupted);
        }
        state.free -= 1;
        Ok(Slot(Arc::clone(self)))
    }

    /// Waits until all slots are free. Called by the same thread as `enter`.
    pub(crate) fn wait_until_empty(&self) -> Result<(), Interrupted> {
        let state = self.wait_for(self.lock(), self.slots);
        if state.interrupted {
            return Err(Interrupted);
        }
        Ok(())
    }

    /// Ends all waiting, from now on. Returns whether this was the first time.
    pub(crate) fn interrupt(&self) -> bool {
        let first = !std::mem::replace(&mut self.lock().interrupted, true);
        self.changed.notify_all();
        first
    }

    fn wait_for<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        wanted: usize,
    ) -> MutexGuard<'a, State> {
        state.wanted = wanted;
        let mut state = self
            .changed
            .wait_while(state, |state| state.free < wanted && !state.interrupted)
            .unwrap_or_else(PoisonError::into_inner);
        state.wanted = 0;
        state
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.free += 1;
        if state.wanted > 0 && state.free >= state.wanted {
            self.0.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn no_more_files_than_slots_are_on_their_way() {
        let gate = Gate::new(2);
        let (sender, receiver) = std::sync::mpsc::channel();
        let drops = thread::spawn(move || receiver.into_iter().for_each(drop::<Slot>));
        for _ in 0..1000 {
            let slot = gate.enter().unwrap();
            assert!(gate.lock().free < 2);
            sender.send(slot).unwrap();
        }
        gate.wait_until_empty().unwrap();
        assert_eq!(gate.lock().free, 2);
        drop(sender);
        drops.join().unwrap();
    }

    #[test]
    fn an_interruption_ends_both_kinds_of_waiting() {
        let gate = Gate::new(1);
        let slot = gate.enter().unwrap();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.enter().map(drop));
            assert!(gate.interrupt());
            assert_eq!(waiting.join().unwrap(), Err(Interrupted));
        });
        assert_eq!(gate.wait_until_empty(), Err(Interrupted));
        assert!(!gate.interrupt());
        drop(slot);
        assert!(gate.enter().is_err(), "an interruption is for good");
    }
}

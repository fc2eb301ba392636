//! Processes that ask for a start with a link: what is known of them before the answer
//! (`far_links.rs` has the protocol).

use ganger_link::RemoteLinks as _;
use ganger_proc_api::{BoxError, ExitCause, Pid};
use ganger_sched::{Address, ExitAction, Handle, RemoteLink};
use ganger_sync::sync::{Mutex, lock};
use std::mem;
use std::sync::Arc;

/// The process that asks for a start with a link.
pub(crate) struct Asker {
    /// With its node.
    pub(crate) process: Pid,
    pub(crate) number: u64,
    state: Arc<Mutex<Asking>>,
}

/// Sends the signal of the asker's end.
type Signal = Box<dyn FnOnce(&ExitCause) + Send>;

/// How far a start with a link is.
enum Asking {
    Out,
    /// The asker has ended first.
    Ended(ExitCause),
    Answered(Signal),
    /// The asker's links tell.
    Linked,
}

impl Asker {
    /// Begins to watch the asker.
    ///
    /// # Errors
    /// The process has ended.
    pub(crate) fn new(scheduler: &Handle, process: &Address) -> Result<Self, BoxError> {
        let state = Arc::new(Mutex::new(Asking::Out));
        let ends = AskerEnds(Arc::clone(&state));
        let added = process.add_exit_action(Box::new(ends));
        added.map_err(|_| "the process to be linked to has ended")?;
        Ok(Self {
            process: scheduler.absolute(process.pid()),
            number: scheduler.link_number(),
            state,
        })
    }

    /// Returns the link with the started process.
    pub(crate) fn link(&self, started: Pid) -> RemoteLink {
        RemoteLink::new(self.process, started, self.number)
    }

    /// Notes that the start has been answered, and the link is in the tables. `begin` enters the
    /// link for the asker, unless that has ended; `signal` sends its end.
    pub(crate) fn answered(
        self,
        begin: impl FnOnce() -> bool,
        signal: impl FnOnce(&ExitCause) + Send + 'static,
    ) {
        let mut state = lock(&self.state);
        if let Asking::Ended(cause) = &*state {
            let cause = cause.clone();
            drop(state);
            return signal(&cause);
        }
        *state = Asking::Answered(Box::new(signal));
        drop(state);
        // If it has ended meanwhile, its end is told to the action.
        if begin() {
            *lock(&self.state) = Asking::Linked;
        }
    }
}

struct AskerEnds(Arc<Mutex<Asking>>);

impl ExitAction for AskerEnds {
    fn tell(self: Box<Self>, _: Pid, cause: &ExitCause) {
        let mut state = lock(&self.0);
        match mem::replace(&mut *state, Asking::Ended(cause.clone())) {
            Asking::Answered(signal) => {
                drop(state);
                signal(cause);
            }
            Asking::Out => {}
            before => *state = before,
        }
    }

    /// Returns true: a restart in place breaks links.
    fn ends_with_incarnation(&self) -> bool {
        true
    }

    fn is_over(&self) -> bool {
        match *lock(&self.0) {
            Asking::Linked => true,
            // Nothing else has it: no answer comes.
            Asking::Out => Arc::strong_count(&self.0) == 1,
            _ => false,
        }
    }
}

//! The shortest `main` of a program: run until a signal asks the program to end.

#[cfg(not(unix))]
mod channel;
#[cfg(unix)]
mod pipe;

use crate::api::scheduler::{Scheduler, StartError};
use crate::base::clock::Since;
use crate::progress::report::{StopError, StopReport};
use crate::runtime::frames;
#[cfg(not(unix))]
use channel::{Bell, Rope};
#[cfg(unix)]
use pipe::{Bell, Rope};
use signal_hook_registry::{SigId, register, unregister};
use std::io;
use std::thread::{Builder, Scope, ScopedJoinHandle, scope, yield_now};
use std::time::Duration;

/// SIGINT, sent by Ctrl-C in a terminal, and SIGTERM, sent by systems and containers. All systems
/// give them these numbers.
const SIGNALS: [i32; 2] = [2, 15];

/// A second signal within this time belongs to the same request: a terminal and the parent of the
/// program may each send one.
const SAME_REQUEST: Duration = Duration::from_secs(1);

/// Why a scheduler does not run until a signal comes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The scheduler can't be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The system refuses to report signals.
    #[error("can't wait for signals: {0}")]
    Signals(#[from] io::Error),
    /// The call is made inside the scheduler, whose end it would wait for.
    #[error(transparent)]
    Stop(#[from] StopError),
}

/// Why the bell rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ring {
    /// A signal has come.
    Signal,
    /// The scheduler has halted.
    Halted,
}

impl Ring {
    const fn byte(self) -> u8 {
        match self {
            Self::Signal => 0,
            Self::Halted => 1,
        }
    }

    const fn of(byte: u8) -> Self {
        match byte {
            0 => Self::Signal,
            _ => Self::Halted,
        }
    }
}

/// Rings the bell at each signal, until it is dropped.
struct Listening([SigId; 2]);

impl Listening {
    fn new(bell: &Bell) -> io::Result<Self> {
        let [interrupt, terminate] = SIGNALS;
        let interrupt = listen(interrupt, bell.rope()?)?;
        let terminate = bell.rope().and_then(|rope| listen(terminate, rope));
        match terminate {
            Ok(terminate) => Ok(Self([interrupt, terminate])),
            Err(error) => {
                unregister(interrupt);
                Err(error)
            }
        }
    }
}

fn listen(signal: i32, rope: Rope) -> io::Result<SigId> {
    let act = move || _ = rope.pull(Ring::Signal);
    // SAFETY: `Rope::pull` does only what the action of a signal may do.
    unsafe { register(signal, act) }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.into_iter().for_each(|id| _ = unregister(id));
    }
}

impl Scheduler {
    /// Runs the scheduler until the program is asked to end, and then stops it: the shortest
    /// `main`. Needs the feature `signals`.
    ///
    /// Starts the scheduler unless it is started. Waits for SIGINT, sent by Ctrl-C in a terminal,
    /// or SIGTERM; on Windows for Ctrl-C. Then it acts as [`stop`](crate::Handle::stop) with
    /// `deadline`. Another stop of the scheduler, such as by
    /// [`begin_stop`](crate::Handle::begin_stop) in a step, ends the wait as well.
    ///
    /// A second signal makes the deadline pass at once, when it comes a second after the first or
    /// later. A terminal and the parent of a program may each send a signal.
    ///
    /// From the call on, and after it too, both signals lose their default actions. Other code may
    /// listen to them as well.
    ///
    /// ```no_run
    /// use ganger_proc_api::{BoxError, process_fn};
    /// use ganger_sched::Scheduler;
    /// use std::time::Duration;
    ///
    /// fn main() -> Result<(), BoxError> {
    ///     let scheduler = Scheduler::start_default()?;
    ///     scheduler.spawn(process_fn(|_, _, _| Ok(())))?; // A server, for instance.
    ///     let report = scheduler.run_until_interrupted(Duration::from_secs(10))?;
    ///     println!("{report}");
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`RunError`] when the system refuses threads or signals, the scheduler was stopped before,
    /// or the call is made inside the scheduler. The scheduler is not stopped then, except after a
    /// [`StartError`] whose variant says so.
    ///
    /// # After `fork`
    /// The child shares the pipe for signals with its parent: a signal to the child stops the
    /// parent's scheduler. Call `exec` in the child, as `std::process::Command` does.
    pub fn run_until_interrupted(&self, deadline: Duration) -> Result<StopReport, RunError> {
        if frames::is_inside(&*self.shared) {
            return Err(StopError::Inside.into());
        }
        let bell = Bell::new()?;
        let _listening = Listening::new(&bell)?;
        match self.start() {
            Ok(()) | Err(StartError::AlreadyStarted) => {}
            Err(error) => return Err(error.into()),
        }
        let (halted, over) = (bell.rope()?, bell.rope()?);
        let ring = move || _ = halted.pull(Ring::Halted);
        self.shared.stopper.add_bell(ring);
        // The halt rings the bell after it, or has been before it.
        if self.shared.shutdown.is_halted() {
            self.shared.stopper.ring();
        }
        let ring = bell.wait();
        scope(|threads| {
            let watch = match ring {
                Ring::Signal => self.stop_sooner(threads, &bell),
                Ring::Halted => None,
            };
            let report = self.stop(deadline);
            // While the bell is full of signals, the thread takes them out.
            while watch.as_ref().is_some_and(|it| !it.is_finished()) && !over.pull(Ring::Halted) {
                yield_now();
            }
            Ok(report?)
        })
    }

    /// Makes the deadline of the stop pass when a second signal comes; never where the system
    /// refuses the thread for it.
    fn stop_sooner<'scope>(
        &'scope self,
        threads: &'scope Scope<'scope, '_>,
        bell: &'scope Bell,
    ) -> Option<ScopedJoinHandle<'scope, ()>> {
        let first = Since::before(Duration::ZERO);
        let watch = move || {
            while bell.wait() == Ring::Signal {
                if first.elapsed() >= SAME_REQUEST {
                    return self.begin_stop(Duration::ZERO);
                }
            }
        };
        let name = "ganger-signals".to_owned();
        Builder::new().name(name).spawn_scoped(threads, watch).ok()
    }
}

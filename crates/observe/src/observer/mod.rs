//! Questions to an observed scheduler.
//!
//! **Problem.** A program with a million processes is asked which of them are busy while it is
//! overloaded. An answer with an allocation for each process, or with a sort of all processes,
//! makes the load worse.
//!
//! **Protocol.** An observer goes through the processes one by one, by
//! [`Handle::each_process`], and keeps the best `n` in a heap, by their PIDs. Names, types and
//! labels are looked up for those `n` at the end. After each portion of [`PORTION`] processes the
//! thread sleeps for nine times as long as the portion took. So the observer takes a tenth of a
//! core at most, and the program goes on.

pub(crate) mod groups;
#[cfg(feature = "cluster")]
pub(crate) mod nodes;
pub(crate) mod one;
mod since;
#[cfg(feature = "serve")]
pub(crate) mod sockets;
mod top;
pub(crate) mod tree;
pub(crate) mod waits;

pub use groups::Group;
#[cfg(feature = "cluster")]
pub use nodes::{LeaseLook, NameLook, Nodes, Owners, PeerLook, StoreLook};
pub use one::ProcessDetails;
pub use since::Counters;
#[cfg(feature = "serve")]
pub use sockets::{Socket, SocketKind, SocketWait, Sockets};
pub use top::{By, Top};
pub use tree::{Node, Tree};
pub use waits::{Head, Wait, Waits};

use ganger_sched::internal::here;
use ganger_sched::{Handle, Instant, ProcessLook};
use ganger_wait::watch::Watching;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// So many processes are looked at before the thread looks at its pace.
const PORTION: usize = 4_096;

/// The longest time of a portion, if the thread has a processor.
const LONGEST_PORTION: Duration = Duration::from_millis(10);

/// The share of an observer: a core divided by this number.
const PARTS: u32 = 10;

/// Asks a scheduler built with `Builder::observe`. No question stops a worker, or waits for a
/// worker: the observer answers also while all workers are stuck.
///
/// ```
/// use ganger_observe::{By, Observer};
/// use ganger_proc_api::actor_fn;
/// use ganger_sched::{Observe, Scheduler};
/// use std::time::Duration;
///
/// let scheduler = Scheduler::builder().observe(Observe::Counts).start()?;
/// let echo = scheduler.spawn(actor_fn(|_, (): (), _| Ok(())))?;
/// echo.send(())?;
///
/// let observer = Observer::of(&scheduler);
/// let top = observer.top(10, By::Events, Duration::ZERO);
/// assert_eq!(top[0].pid, echo.pid());
/// assert_eq!(observer.groups().len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Observer {
    handle: Handle,
    is_gentle: bool,
    answers: Arc<since::Answers>,
    /// Keeps the waits of the program registered.
    _watching: Option<Arc<Watching>>,
}

/// Has the waits of the program registered, until it is dropped.
pub(crate) fn watch_waits() -> Watching {
    here::watch()
}

impl Observer {
    /// Creates an observer of the scheduler. The observer keeps the scheduler's memory alive.
    #[must_use]
    pub fn of(handle: &Handle) -> Self {
        Self {
            handle: handle.clone(),
            is_gentle: true,
            answers: Arc::default(),
            _watching: None,
        }
    }

    /// Has the program register its waits for locks, channels, answers, room in mailboxes and ends,
    /// for [`waits`](Self::waits), until this observer and its copies are dropped. Meanwhile a wait
    /// that sleeps takes a lock of the program twice, and a call costs an allocation.
    #[must_use]
    pub fn watch_waits(self) -> Self {
        Self {
            _watching: Some(Arc::new(watch_waits())),
            ..self
        }
    }

    /// Lets the observer take all of a core that it gets: for answers as soon as possible, of a
    /// program that has processors to spare.
    #[must_use]
    pub fn in_haste(self) -> Self {
        Self {
            is_gentle: false,
            ..self
        }
    }

    /// Returns the observed scheduler.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Calls `look` with each live process, at the observer's pace.
    pub(crate) fn each(&self, mut look: impl FnMut(ProcessLook<'_>)) {
        let mut pace = Pace::of(self);
        self.handle.each_process(|process| {
            look(process);
            pace.step();
        });
    }
}

/// Takes a part of the time alone.
struct Pace<'a> {
    observer: &'a Observer,
    left: usize,
    begun: Instant,
}

impl<'a> Pace<'a> {
    fn of(observer: &'a Observer) -> Self {
        Self {
            observer,
            left: PORTION,
            begun: observer.handle.now(),
        }
    }

    /// Counts a process that has been looked at, and rests after a portion.
    fn step(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            self.left = PORTION;
            self.rest();
        }
    }

    #[cold]
    fn rest(&mut self) {
        if self.observer.is_gentle {
            let handle = &self.observer.handle;
            let taken = handle.now() - self.begun;
            // The thread may have waited for a processor meanwhile.
            thread::sleep(taken.min(LONGEST_PORTION) * (PARTS - 1));
            self.begun = handle.now();
        }
    }
}

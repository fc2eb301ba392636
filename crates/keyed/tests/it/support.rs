//! Processes that keep account of their messages.

use ganger_keyed::{Keyed, KindBuilder, Kinds};
use ganger_proc_api::{Actor, BoxError, Context, Pid, Reply, StepOutput, StepResult};
use ganger_sched::{Handle, Scheduler, WeakHandle};
use ganger_sim::{Faults, Sim};
use ganger_sync::sync::{Mutex, lock};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

/// How long a test waits for a certain event before it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How long a process is idle before it is evicted.
pub(crate) const IDLE: Duration = Duration::from_secs(10);

pub(crate) enum Act {
    /// A sender, and the number of the message.
    Note(u32, u64),
    /// The number of messages that this process has taken.
    Count(Reply<u64>),
    Fail,
    Done,
}

/// The acts of all processes of a key.
#[derive(Default, Clone)]
pub(crate) struct Account {
    pub(crate) started: u32,
    pub(crate) closed: u32,
    pub(crate) taken: Vec<(u32, u64)>,
}

/// The accounts by key.
#[derive(Clone, Default)]
pub(crate) struct Book(Arc<Mutex<HashMap<String, Account>>>);

impl Book {
    pub(crate) fn of(&self, key: &str) -> Account {
        lock(&self.0).get(key).cloned().unwrap_or_default()
    }

    pub(crate) fn with(&self, key: &str, f: impl FnOnce(&mut Account)) {
        f(lock(&self.0).entry(key.to_owned()).or_default());
    }
}

/// A process of a key.
pub(crate) struct Clerk {
    pub(crate) key: String,
    pub(crate) book: Book,
    pub(crate) count: u64,
    is_open: bool,
}

impl Clerk {
    pub(crate) fn new(key: &str, book: &Book) -> Self {
        Self {
            key: key.to_owned(),
            book: book.clone(),
            count: 0,
            is_open: false,
        }
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.is_open) {
            self.book.with(&self.key, |it| it.closed += 1);
        }
    }
}

impl Actor for Clerk {
    type Message = Act;

    fn init(&mut self, _: &Context) -> Result<(), BoxError> {
        self.is_open = true;
        self.book.with(&self.key, |it| {
            assert_eq!(it.started, it.closed, "the one before has not ended");
            it.started += 1;
        });
        Ok(())
    }

    fn receive(&mut self, _: &Context, act: Act, out: &mut StepOutput) -> StepResult {
        self.count += 1;
        match act {
            Act::Note(sender, number) => {
                self.book
                    .with(&self.key, |it| it.taken.push((sender, number)));
            }
            Act::Count(reply) => reply.complete(self.count),
            Act::Fail => return Err("told to fail".into()),
            Act::Done => out.done(()),
        }
        Ok(())
    }

    fn close(&mut self) {
        self.end();
    }
}

impl Drop for Clerk {
    fn drop(&mut self) {
        // A terminated start does not call `close`.
        self.end();
    }
}

/// Creates the kind of the clerks, idle after [`IDLE`].
pub(crate) fn kind(scheduler: &Handle, book: &Book) -> KindBuilder<Act> {
    let book = book.clone();
    let kind = scheduler.kind::<Act>("clerk");
    kind.start(move |key, _| Clerk::new(key, &book))
        .idle_after(IDLE)
}

pub(crate) fn clerks(scheduler: &Handle, book: &Book) -> Keyed<Act> {
    kind(scheduler, book).build()
}

pub(crate) fn start(workers: usize) -> Scheduler {
    let builder = Scheduler::builder().workers(workers);
    let scheduler = builder.build().unwrap();
    scheduler.start().unwrap();
    scheduler
}

/// Creates a simulation in which time passes evenly.
pub(crate) fn steady() -> Sim {
    Sim::new(0).faults(Faults {
        clock_jumps: 0,
        delivery_stalls: 0,
        ..Faults::some()
    })
}

/// A key that lets other processes move, in a simulation, when it is compared or cloned: between
/// the look-up of a process and the send to it, for instance, or before a start.
pub(crate) struct Slow {
    pub(crate) id: u64,
    scheduler: WeakHandle,
}

impl Slow {
    pub(crate) fn new(id: u64, scheduler: &Handle) -> Self {
        let scheduler = scheduler.downgrade();
        Self { id, scheduler }
    }

    fn have_others_move(&self) {
        if let Some(scheduler) = self.scheduler.upgrade() {
            let nobody = Pid::new(scheduler.host_name(), 7);
            assert!(scheduler.terminate(nobody).is_err());
        }
    }
}

impl Clone for Slow {
    fn clone(&self) -> Self {
        self.have_others_move();
        let scheduler = self.scheduler.clone();
        Self { scheduler, ..*self }
    }
}

impl Hash for Slow {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl PartialEq for Slow {
    fn eq(&self, other: &Self) -> bool {
        self.have_others_move();
        self.id == other.id
    }
}

impl Eq for Slow {}

//! Subscriptions to the lives of processes.
//!
//! **Problem.** A program reacts to starts and ends that it has not caused: it keeps a list of
//! sessions, or counts crashes by tenant. A worker that ends a process must not wait for it.
//!
//! **Protocol.** Without a subscriber the scheduler reads a count and goes on. With one, the thread
//! that starts, upgrades or ends a process offers the event to each subscriber whose filter it
//! passes, and a supervisor does so in its step. A subscriber has a queue with a bound. An event
//! for a full queue is lost, and counted. So no worker waits for a subscriber: subscribers share a
//! lock that workers take for reading, and that is taken for writing only while a subscription
//! begins or ends.

use ganger_sched::internal::HandleInternals as _;
use ganger_sched::{Builder, Handle, LifeChange, LifeEvent, LifeWatch};
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;

/// Lets a program subscribe to the starts, upgrades and ends of processes: see [`Life`]. A later
/// [`Builder::watch_life`] takes the place of this call.
///
/// Each start and end reads a count while there is no subscriber.
pub fn life(builder: Builder) -> Builder {
    let hub = Arc::new(Hub::default());
    let life = Lives(Arc::clone(&hub));
    let builder = builder.when_built(|scheduler| {
        let _lives = scheduler.extension(|_| life);
    });
    builder.watch_life(hub)
}

/// The lives of the processes of a scheduler that was built with [`life`].
///
/// ```
/// use ganger_observe::{Life, LifeChange, LifeFilter, life};
/// use ganger_proc_api::{BoxError, ExitCause, actor_fn};
/// use ganger_sched::Scheduler;
///
/// let scheduler = life(Scheduler::builder()).start()?;
/// let lives = Life::of(&scheduler).ok_or("it was built with `life`")?;
/// let events = lives.subscribe(LifeFilter::all(), 1_000);
///
/// let actor = scheduler.spawn(actor_fn(|_, (): (), out| Ok(out.done(()))))?;
/// actor.send(())?;
/// assert!(actor.wait().is_done());
///
/// let changes: Vec<_> = events.try_iter().map(|it| it.change).collect();
/// assert_eq!(changes, [LifeChange::Started, LifeChange::Ended(ExitCause::Done)]);
/// assert_eq!(events.lost(), 0);
/// # Ok::<(), BoxError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Life(Arc<Hub>);

impl Life {
    /// Returns the lives of the scheduler's processes; `None` if it was built without [`life`].
    #[must_use]
    pub fn of(scheduler: &Handle) -> Option<Self> {
        let lives = scheduler.find_extension::<Lives>()?;
        Some(Self(Arc::clone(&lives.0)))
    }

    /// Has all changes that pass the filter put into a queue from now on, until the receiver is
    /// dropped. The queue holds `bound` events, at least one, and takes some 130 bytes for each
    /// from the beginning.
    ///
    /// The events of one process are in their order. An end is in the queue before the owner of the
    /// handle gets the reason. Blocks for the calls of other threads that are telling at the
    /// moment.
    #[must_use = "its drop ends the subscription"]
    pub fn subscribe(&self, filter: LifeFilter, bound: usize) -> LifeEvents {
        let (sender, receiver) = sync_channel(bound.max(1));
        let subscriber = Arc::new(Subscriber {
            filter,
            sender,
            lost: AtomicU64::new(0),
        });
        let mut all = self.0.change();
        all.push(Arc::clone(&subscriber));
        // Ordering: Relaxed: a change at this moment may be told or not.
        self.0.count.store(all.len(), Ordering::Relaxed);
        drop(all);
        LifeEvents {
            receiver,
            subscriber,
            hub: Arc::clone(&self.0),
        }
    }
}

/// Chooses events: each condition that is set must hold.
///
/// ```
/// use ganger_observe::{LifeFilter, LifeKind};
///
/// let crashes = LifeFilter::all().kind(LifeKind::Failed).label("tenant-7");
/// # drop(crashes);
/// ```
#[derive(Debug, Clone, Default)]
pub struct LifeFilter {
    type_name: Option<Box<str>>,
    method: Option<Box<str>>,
    label: Option<Box<str>>,
    kinds: Vec<LifeKind>,
}

impl LifeFilter {
    /// Creates a filter for all events.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Limits the events to types whose names contain `part`.
    #[must_use]
    pub fn type_name(self, part: impl Into<Box<str>>) -> Self {
        let type_name = Some(part.into());
        Self { type_name, ..self }
    }

    /// Limits the events to processes submitted with the method.
    #[must_use]
    pub fn method(self, method: impl Into<Box<str>>) -> Self {
        let method = Some(method.into());
        Self { method, ..self }
    }

    /// Limits the events to processes with the label. No process has a label where the scheduler
    /// does not count: see [`Builder::observe`].
    #[must_use]
    pub fn label(self, label: impl Into<Box<str>>) -> Self {
        let label = Some(label.into());
        Self { label, ..self }
    }

    /// Limits the events to the kind. Of several kinds any fits.
    #[must_use]
    pub fn kind(mut self, kind: LifeKind) -> Self {
        self.kinds.push(kind);
        self
    }

    fn passes(&self, event: &LifeEvent) -> bool {
        let is_kind = |it: &LifeKind| it.has(&event.change);
        (self.kinds.is_empty() || self.kinds.iter().any(is_kind))
            && (self.type_name.as_deref()).is_none_or(|it| event.type_name.contains(it))
            && (self.method.as_deref()).is_none_or(|it| event.method.as_str() == it)
            && (self.label.as_deref()).is_none_or(|it| event.label.as_deref() == Some(it))
    }
}

/// A kind of event, for a [`LifeFilter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LifeKind {
    /// Starts.
    Started,
    /// Upgrades.
    Upgraded,
    /// Restarts in place.
    Restarted,
    /// Ends, for any cause.
    Ended,
    /// Ends by a failure, a panic, a failed upgrade or a lost connection to a linked process.
    Failed,
    /// States of supervisors: up, restarts of children with their causes, gave up, stops.
    Supervisor,
}

impl LifeKind {
    fn has(self, change: &LifeChange) -> bool {
        use ganger_proc_api::ExitCause::{Failed, NoConnection, Panicked, UpgradeFailed};
        match self {
            Self::Started => *change == LifeChange::Started,
            Self::Upgraded => *change == LifeChange::Upgraded,
            Self::Restarted => *change == LifeChange::Restarted,
            Self::Ended => matches!(change, LifeChange::Ended(_)),
            Self::Supervisor => matches!(change, LifeChange::Supervisor(_)),
            Self::Failed => matches!(
                change,
                LifeChange::Ended(Failed(_) | Panicked(_) | UpgradeFailed(_) | NoConnection)
            ),
        }
    }
}

/// The receiver of a subscription. Its drop ends the subscription.
///
/// The receiver may outlive the scheduler, and blocks the calling thread: it is for threads outside
/// of the scheduler. A process asks by [`try_recv`](Self::try_recv).
pub struct LifeEvents {
    receiver: Receiver<LifeEvent>,
    subscriber: Arc<Subscriber>,
    hub: Arc<Hub>,
}

impl LifeEvents {
    /// Takes the next event, if there is an event already.
    pub fn try_recv(&self) -> Option<LifeEvent> {
        self.receiver.try_recv().ok()
    }

    /// Waits for the next event; returns `None` if no event has come in time. Blocks.
    pub fn recv_timeout(&self, most: Duration) -> Option<LifeEvent> {
        self.receiver.recv_timeout(most).ok()
    }

    /// Takes the events from the queue.
    pub fn try_iter(&self) -> impl Iterator<Item = LifeEvent> {
        self.receiver.try_iter()
    }

    /// Returns the number of events that pass the filter and have been lost so far, because the
    /// queue was full.
    #[must_use]
    pub fn lost(&self) -> u64 {
        // Ordering: Relaxed: a count alone.
        self.subscriber.lost.load(Ordering::Relaxed)
    }
}

impl Drop for LifeEvents {
    fn drop(&mut self) {
        let mut all = self.hub.change();
        all.retain(|it| !Arc::ptr_eq(it, &self.subscriber));
        // Ordering: Relaxed: a change at this moment may be told or not.
        self.hub.count.store(all.len(), Ordering::Relaxed);
    }
}

/// The scheduler's extension.
struct Lives(Arc<Hub>);

/// All subscribers of a scheduler.
#[derive(Default)]
struct Hub {
    /// Of `subscribers`: changed under their lock.
    count: AtomicUsize,
    subscribers: RwLock<Vec<Arc<Subscriber>>>,
}

struct Subscriber {
    filter: LifeFilter,
    sender: SyncSender<LifeEvent>,
    lost: AtomicU64,
}

impl Hub {
    fn change(&self) -> RwLockWriteGuard<'_, Vec<Arc<Subscriber>>> {
        let all = self.subscribers.write();
        all.unwrap_or_else(PoisonError::into_inner)
    }
}

impl LifeWatch for Hub {
    #[inline]
    fn is_on(&self) -> bool {
        // Ordering: Relaxed: a change at the moment of a subscription may be told or not.
        self.count.load(Ordering::Relaxed) > 0
    }

    fn tell(&self, event: LifeEvent) {
        let all = self.subscribers.read();
        let all = all.unwrap_or_else(PoisonError::into_inner);
        for subscriber in all.iter().filter(|it| it.filter.passes(&event)) {
            match subscriber.sender.try_send(event.clone()) {
                Ok(()) | Err(TrySendError::Disconnected(_)) => {}
                // Ordering: Relaxed: a count alone.
                Err(TrySendError::Full(_)) => {
                    subscriber.lost.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub")
            .field("subscribers", &self.count)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for LifeEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LifeEvents")
            .field("filter", &self.subscriber.filter)
            .field("lost", &self.lost())
            .finish_non_exhaustive()
    }
}

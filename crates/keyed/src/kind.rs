//! How a program describes a kind of processes.

use crate::registry::Keyed;
use crate::shared::{Inner, Key, LiveCount, Make};
use crate::table::Table;
use ganger_proc_api::{Context, Process, Symbol};
use ganger_sched::internal::HandleInternals as _;
use ganger_sched::{Handle, IntoProcess, Startable};
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

/// The methods that this crate adds to the [`Handle`] of a scheduler.
pub trait Kinds {
    /// Begins a kind of processes that take messages of type `M` and are known by keys, texts by
    /// default. The name describes them in logs and lists of processes.
    ///
    /// ```
    /// use ganger_keyed::Kinds;
    /// use ganger_proc_api::{BoxError, Reply, actor_fn};
    /// # use ganger_sched::Scheduler;
    ///
    /// # let scheduler = Scheduler::builder().build()?;
    /// # scheduler.start()?;
    /// let echo = scheduler
    ///     .kind::<Reply<String>>("echo")
    ///     .start(|key, _| {
    ///         let key = key.clone();
    ///         actor_fn(move |_, reply: Reply<String>, _| Ok(reply.complete(key.clone())))
    ///     })
    ///     .build();
    /// assert_eq!(echo.of("ann").call(|reply| reply).wait()?, "ann");
    /// # Ok::<(), BoxError>(())
    /// ```
    fn kind<M: Send + 'static>(&self, name: impl Into<Symbol>) -> NewKind<M>;
}

impl Kinds for Handle {
    fn kind<M: Send + 'static>(&self, name: impl Into<Symbol>) -> NewKind<M> {
        NewKind {
            scheduler: self.clone(),
            name: name.into(),
            types: PhantomData,
        }
    }
}

/// A kind without a way to start its processes.
#[must_use = "a kind does nothing before `start` and `build`"]
pub struct NewKind<M, K = String> {
    scheduler: Handle,
    name: Symbol,
    types: PhantomData<fn(M, K)>,
}

/// A kind with a way to start its processes.
#[must_use = "a kind does nothing before `build`"]
pub struct KindBuilder<M, K = String> {
    pub(crate) scheduler: Handle,
    pub(crate) name: Symbol,
    pub(crate) make: Make<K>,
    /// The name of the type of a process.
    pub(crate) namer: fn() -> &'static str,
    pub(crate) idle: Option<Duration>,
    takes: PhantomData<fn(M)>,
}

impl<M: Send + 'static, K: Key> NewKind<M, K> {
    /// Sets the type of the keys.
    ///
    /// ```
    /// use ganger_keyed::Kinds;
    /// use ganger_proc_api::{BoxError, Reply, actor_fn};
    /// # use ganger_sched::Scheduler;
    ///
    /// # let scheduler = Scheduler::builder().build()?;
    /// # scheduler.start()?;
    /// let double = scheduler
    ///     .kind::<Reply<u64>>("double")
    ///     .keyed_by::<u64>()
    ///     .start(|&key, _| actor_fn(move |_, reply: Reply<u64>, _| Ok(reply.complete(2 * key))))
    ///     .build();
    /// assert_eq!(double.of(21_u64).call(|reply| reply).wait()?, 42);
    /// # Ok::<(), BoxError>(())
    /// ```
    pub fn keyed_by<L: Key>(self) -> NewKind<M, L> {
        NewKind {
            scheduler: self.scheduler,
            name: self.name,
            types: PhantomData,
        }
    }

    /// Sets the code that makes the process of a key: `start` makes an actor, a process or an async
    /// function, as for [`Handle::spawn`].
    ///
    /// A worker calls `start` and [`Actor::init`](ganger_proc_api::Actor::init) in the first step
    /// of the process. Their monitors and names are the process's, and messages to the key wait in
    /// its mailbox meanwhile. The process has not started when `start` or `init` fails or panics:
    /// see [`Keyed`](crate::Keyed).
    ///
    /// An async function has started when it has taken its first message. The code before it is
    /// part of the start, and so is its failure.
    ///
    /// ```
    /// use ganger_keyed::Kinds;
    /// use ganger_proc_api::{BoxError, Reply};
    /// # use ganger_sched::Scheduler;
    /// use ganger_task::Cx;
    ///
    /// # let scheduler = Scheduler::builder().build()?;
    /// # scheduler.start()?;
    /// let tickets = scheduler
    ///     .kind::<Reply<u64>>("tickets")
    ///     .start(|_counter, _| async |cx: Cx<Reply<u64>>| {
    ///         let mut next = 0;
    ///         while let Some(reply) = cx.recv().await {
    ///             next += 1;
    ///             reply.complete(next);
    ///         }
    ///         Ok(())
    ///     })
    ///     .build();
    /// let left = tickets.of("left");
    /// assert_eq!(left.call(|reply| reply).wait()?, 1);
    /// assert_eq!(left.call(|reply| reply).wait()?, 2);
    /// # Ok::<(), BoxError>(())
    /// ```
    pub fn start<Q, W, F>(self, start: F) -> KindBuilder<M, K>
    where
        W: IntoProcess<Q, Message = M>,
        W::Process: Startable,
        F: Fn(&K, &Context) -> W + Send + Sync + 'static,
    {
        let make = move |key: &K, ctx: &Context| -> Box<dyn Process> {
            start(key, ctx).into_process().unstarted().into_box()
        };
        self.made_by(Box::new(make), W::Process::type_name)
    }

    fn made_by(self, make: Make<K>, namer: fn() -> &'static str) -> KindBuilder<M, K> {
        KindBuilder {
            scheduler: self.scheduler,
            name: self.name,
            make,
            namer,
            idle: None,
            takes: PhantomData,
        }
    }
}

impl<M: Send + 'static, K: Key> KindBuilder<M, K> {
    /// Sets how long an idle process stays. A process that has taken no step for this time, and has
    /// no event left, is evicted: after this time at the earliest, and after twice this time at the
    /// latest. By default no process is evicted.
    ///
    /// An eviction cancels the process as [`Context::cancel`] does: an actor gets
    /// [`cancelled`](ganger_proc_api::Actor::cancelled), where it may defer its end and save its
    /// state, and last of all [`close`](ganger_proc_api::Actor::close). The waits of an async
    /// function end. So the time should be longer than a process waits for the answers to its own
    /// questions. Messages that come for the key meanwhile wait for the next process.
    pub fn idle_after(self, time: Duration) -> Self {
        let idle = Some(time);
        Self { idle, ..self }
    }

    /// Builds the kind. Its processes start with their first messages.
    pub fn build(self) -> Keyed<M, K> {
        Keyed::new(Inner {
            table: Table::new(),
            make: self.make,
            namer: self.namer,
            name: self.name,
            idle: self.idle,
            timers: self.scheduler.timers().clone(),
            keyed: self.scheduler.extension(|_| LiveCount::default()),
            scheduler: self.scheduler.downgrade(),
        })
    }
}

impl<M, K> fmt::Debug for NewKind<M, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NewKind").field(&self.name).finish()
    }
}

impl<M, K> fmt::Debug for KindBuilder<M, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KindBuilder")
            .field("name", &self.name)
            .field("idle", &self.idle)
            .finish_non_exhaustive()
    }
}

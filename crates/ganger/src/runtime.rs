//! A scheduler with a router around it.

use ganger_proc_api::{HostName, NameError, NodeName};
use ganger_relay::{AddError, ChannelHost, Inbox, Node, Router};
use ganger_sched::internal::HandleInternals as _;
use ganger_sched::{BuildError, Builder, Handle, Scheduler, StartError};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The host whose PIDs lead to code outside of any process; see [`Runtime::open_inbox`].
const OUTSIDE: &str = "outside";

/// A scheduler on a named node, with a router to other hosts and nodes, and inboxes for
/// code outside of any process. Needs the features `sched` and `relay`.
///
/// For most programs a [`Scheduler`] is enough: a runtime is for more than one host or node.
///
/// A runtime dereferences to the scheduler's [`Handle`]. Dropping it stops the scheduler.
///
/// ```
/// use ganger::prelude::*;
/// use ganger::{Envelope, Runtime};
///
/// struct Echo;
/// impl Process for Echo {
///     fn step(
///         &mut self,
///         ctx: &Context,
///         events: &mut Events<'_>,
///         out: &mut StepOutput,
///     ) -> StepResult {
///         for event in events {
///             match event {
///                 Event::Message(Message { source: Some(sender), payloads, .. }) => {
///                     ctx.send(sender, "echo", payloads.into_first())?;
///                 }
///                 _ => {
///                     out.done(());
///                     return Ok(());
///                 }
///             }
///         }
///         Ok(())
///     }
/// }
///
/// let runtime = Runtime::builder().node("alpha").start()?;
/// let echo = runtime.spawn(Echo)?;
/// let inbox = runtime.open_inbox();
/// runtime.send(Envelope::new(inbox.pid(), echo.pid(), "say", "hello"))?;
/// assert_eq!(inbox.recv()?.message.payloads.into_first().as_str(), Some("hello"));
/// # Ok::<(), BoxError>(())
/// ```
#[derive(Debug)]
pub struct Runtime {
    scheduler: Scheduler,
    router: Arc<Router>,
    outside: Arc<ChannelHost>,
}

/// Why a runtime can't be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The node's name is none.
    #[error("invalid node name {name:?}: {error}")]
    Node {
        /// The name.
        name: String,
        /// The reason.
        error: NameError,
    },
    /// A setting of the scheduler is wrong.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The scheduler's workers can't be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The scheduler has the name of the host for inboxes.
    #[error(
        "the scheduler can't be a host of the node: {0}; `{OUTSIDE}` is the host of \
         `open_inbox`, so give the scheduler another name"
    )]
    Host(AddError),
}

impl From<AddError> for RuntimeError {
    fn from(error: AddError) -> Self {
        Self::Host(error)
    }
}

/// Sets a [`Runtime`] up.
#[must_use = "a builder does nothing until `start` or `build` is called"]
pub struct RuntimeBuilder {
    node: String,
    scheduler: Builder,
}

impl Runtime {
    /// Returns a builder with the defaults: a node named `local`, a scheduler with a worker for
    /// each core.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder {
            node: "local".to_owned(),
            scheduler: Scheduler::builder(),
        }
    }

    /// Starts the scheduler's workers; register handlers before.
    ///
    /// # Errors
    /// As [`Scheduler::start`](ganger_sched::Scheduler::start).
    pub fn start(&self) -> Result<(), StartError> {
        self.scheduler.start()
    }

    /// Returns the scheduler.
    #[must_use]
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Returns the router, to add peers and, through its local node, hosts.
    #[must_use]
    pub fn router(&self) -> &Arc<Router> {
        &self.router
    }

    /// Opens an inbox: a PID and a channel with its messages, for code outside of any process.
    #[must_use]
    pub fn open_inbox(&self) -> Inbox {
        self.outside.open()
    }
}

impl Deref for Runtime {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.scheduler
    }
}

impl RuntimeBuilder {
    /// Sets the node's name.
    pub fn node(self, name: impl Into<String>) -> Self {
        Self {
            node: name.into(),
            ..self
        }
    }

    /// Sets the scheduler's settings. Its node and router are always the runtime's. Its host may
    /// have any name but `outside`.
    ///
    /// ```
    /// use ganger::prelude::*;
    /// use ganger::{Pinning, Runtime};
    ///
    /// let settings = Scheduler::builder().workers(2).pin_workers(Pinning::Off);
    /// let runtime = Runtime::builder().scheduler(settings).build()?;
    /// assert_eq!(runtime.stats().workers, 2);
    /// # Ok::<(), BoxError>(())
    /// ```
    pub fn scheduler(self, builder: Builder) -> Self {
        Self {
            scheduler: builder,
            ..self
        }
    }

    /// Builds the runtime and starts it.
    ///
    /// # Errors
    /// [`RuntimeError`] when a name or a setting is wrong, or the system refuses a thread.
    pub fn start(self) -> Result<Runtime, RuntimeError> {
        let runtime = self.build()?;
        runtime.start()?;
        Ok(runtime)
    }

    /// Builds the runtime, to be started later. The runtime runs nothing until [`Runtime::start`]
    /// is called.
    ///
    /// # Errors
    /// [`RuntimeError`] when a name or a setting is wrong.
    pub fn build(self) -> Result<Runtime, RuntimeError> {
        let name = NodeName::new(&self.node).map_err(|error| RuntimeError::Node {
            name: self.node.clone(),
            error,
        })?;
        let node = Arc::new(Node::new(name));
        let router = Arc::new(Router::new(Arc::clone(&node)));
        let scheduler = (self.scheduler)
            .node(self.node)
            .router(Arc::clone(&router) as _)
            .build()?;
        let outside_host = HostName::new(OUTSIDE).map_err(|error| BuildError::Name {
            what: "host",
            name: OUTSIDE.to_owned(),
            error,
        })?;
        let outside = Arc::new(ChannelHost::new(name, outside_host));
        node.add_host(outside_host, Arc::clone(&outside) as _)?;
        node.add_host(scheduler.host_name(), Arc::new(scheduler.downgrade()))?;
        // A cluster that the scheduler joins finds the router here.
        let _kept = scheduler.extension(|_| Arc::clone(&router));
        Ok(Runtime {
            scheduler,
            router,
            outside,
        })
    }
}

impl fmt::Debug for RuntimeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeBuilder")
            .field("node", &self.node)
            .field("scheduler", &self.scheduler)
            .finish()
    }
}

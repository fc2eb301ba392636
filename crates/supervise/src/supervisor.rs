//! The description of a supervisor, and its start.

use crate::child::{ChildSpec, IntoChild};
use crate::driver::{Driver, Order};
use crate::plan::{AutoShutdown, Strategy, Window};
use crate::tree::{Tree, TreeHandle};
use crate::view::{ChildFailure, OnFailure, View};
use ganger_proc_api::{
    BoxError, Context, Events, Payloads, Process, StepOutput, StepResult, SubmitError, Symbol,
};
use ganger_sched::internal::Unstarted;
use ganger_sched::{ContextExt, Handle, IntoProcess, Startable};
use ganger_sync::sync::Mutex;
use std::any::{Any, type_name};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The entry point of supervisors.
const METHOD: Symbol = Symbol::new("supervisor");

/// The supervisor of a tree, whose process has an entry point and messages of its own.
struct Root(Supervisor);

/// Marks a [`Root`].
struct OfRoot;

impl IntoProcess<OfRoot> for Root {
    type Message = Order;
    type Process = Self;

    fn into_process(self) -> Self {
        self
    }
}

impl Startable for Root {
    const METHOD: Symbol = METHOD;

    fn unstarted(self) -> Unstarted {
        let in_box: Box<dyn Process> = Box::new(self.0);
        Unstarted::movable(in_box)
    }

    fn type_name() -> &'static str {
        type_name::<Supervisor>()
    }
}

/// A process that starts other processes, its children, and restarts them when they fail.
///
/// A supervisor is a [`Process`], and so may be a child of another supervisor.
///
/// ```
/// use ganger_proc_api::{BoxError, actor_fn};
/// use ganger_sched::Scheduler;
/// use ganger_supervise::{ChildSpec, Supervisor};
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// let scheduler = Scheduler::builder().start()?;
/// let seconds = Duration::from_secs;
/// let tree = Supervisor::one_for_one()
///     .intensity(3, seconds(5))
///     .child("sum", || {
///         let mut sum = 0;
///         actor_fn(move |_, number: u64, out| {
///             sum += number;
///             if sum == 42 { { out.done(sum); Ok(()) } } else { Ok(()) }
///         })
///     })
///     .with(ChildSpec::new("web", || actor_fn(|_, (), _| Ok(()))).stop_within(seconds(2)))
///     .start(&scheduler)?;
/// tree.address::<u64>("sum")?.send(42)?;
/// println!("{tree}");
/// tree.stop();
/// # Ok::<(), BoxError>(())
/// ```
///
/// The supervisor starts its children in the order of their additions. The start is over when the
/// last `init` has returned. When an `init` fails, the supervisor stops the earlier children in the
/// reverse order, and its start fails.
pub struct Supervisor {
    label: Arc<str>,
    strategy: Strategy,
    auto: AutoShutdown,
    most: u32,
    within: Duration,
    max_children: usize,
    children: Vec<ChildSpec>,
    view: Arc<View>,
    on_failure: Option<OnFailure>,
    before_start: Option<BeforeStart>,
    /// The running supervisor, once started.
    driver: Option<Driver>,
}

type BeforeStart = Box<dyn FnOnce(&Context) + Send>;

impl Supervisor {
    fn new(strategy: Strategy) -> Self {
        let label: Arc<str> = "supervisor".into();
        Self {
            view: Arc::new(View::new(Arc::clone(&label), strategy)),
            label,
            strategy,
            auto: AutoShutdown::Never,
            most: 3,
            within: Duration::from_secs(5),
            max_children: usize::MAX,
            children: Vec::new(),
            on_failure: None,
            before_start: None,
            driver: None,
        }
    }

    /// Creates a supervisor that restarts a failed child alone.
    #[must_use]
    pub fn one_for_one() -> Self {
        Self::new(Strategy::OneForOne)
    }

    /// Creates a supervisor that stops all children when a child fails, in the reverse order of
    /// their start, and starts them again.
    #[must_use]
    pub fn one_for_all() -> Self {
        Self::new(Strategy::OneForAll)
    }

    /// Creates a supervisor that stops the children after a failed child, in the order of their
    /// start, and starts the failed child and these again.
    #[must_use]
    pub fn rest_for_one() -> Self {
        Self::new(Strategy::RestForOne)
    }

    /// Creates a supervisor of many similar children, which come and go: see [`Strategy::Dynamic`].
    /// Their names need not differ.
    #[must_use]
    pub fn dynamic() -> Self {
        Self::new(Strategy::Dynamic)
    }

    /// Sets the supervisor's name in logs and in printed trees.
    #[must_use]
    pub fn label(mut self, label: impl Into<Arc<str>>) -> Self {
        self.label = label.into();
        self.view = Arc::new(View::new(Arc::clone(&self.label), self.strategy));
        self
    }

    /// Sets the most restarts within `within`: at the next failure the supervisor stops all
    /// children and fails. By default 3 within 5 seconds. The restart of a group counts once, and
    /// so does each failed start.
    #[must_use]
    pub fn intensity(mut self, most: u32, within: Duration) -> Self {
        (self.most, self.within) = (most, within);
        self
    }

    /// Sets whether the supervisor ends by itself after its significant children.
    #[must_use]
    pub fn auto_shutdown(mut self, auto: AutoShutdown) -> Self {
        self.auto = auto;
        self
    }

    /// Sets the most children. The default is no limit.
    #[must_use]
    pub fn max_children(mut self, most: usize) -> Self {
        self.max_children = most;
        self
    }

    /// Calls `f` once for each failed process of a child, with the cause, before the restart, or
    /// before this supervisor gives up: to report failures, or to count them. `f` runs in the
    /// supervisor's step, or in the child's step for a restart in place, and should be short.
    /// Failed starts, and failures of children of supervisors below, do not call `f`.
    ///
    /// ```
    /// use ganger_supervise::Supervisor;
    ///
    /// let supervisor = Supervisor::one_for_one()
    ///     .on_failure(|failure| eprintln!("a crash: {failure}"));
    /// ```
    #[must_use]
    pub fn on_failure(mut self, f: impl Fn(&ChildFailure<'_>) + Send + Sync + 'static) -> Self {
        self.on_failure = Some(Arc::new(f));
        self
    }

    /// Adds a permanent child: see [`ChildSpec::new`].
    #[must_use]
    pub fn child<K, T: IntoChild<K>>(
        self,
        name: impl Into<Arc<str>>,
        make: impl Fn() -> T + Send + Sync + 'static,
    ) -> Self {
        self.with(ChildSpec::new(name, make))
    }

    /// Adds a child.
    #[must_use]
    pub fn with(mut self, child: ChildSpec) -> Self {
        self.children.push(child);
        self
    }

    /// Starts the supervisor and its children, from a thread outside of all processes.
    ///
    /// # Errors
    /// [`SubmitError`], with a [`SuperviseError`](crate::SuperviseError) inside when a child does
    /// not start. The earlier children are stopping then.
    pub fn start(self, scheduler: &Handle) -> Result<TreeHandle, SubmitError> {
        let view = self.view();
        let handle = scheduler.spawn(Root(self))?;
        let tree = Tree {
            view,
            address: handle.address().clone(),
            scheduler: scheduler.downgrade(),
        };
        Ok(TreeHandle { tree, handle })
    }

    /// Starts the supervisor and its children from a process. The process may monitor the
    /// supervisor by its PID.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_in(self, ctx: &Context) -> Result<Tree, SubmitError> {
        use ganger_proc_api::SubmitErrorKind;
        let Some(scheduler) = ctx.scheduler() else {
            return Err(SubmitError::new(SubmitErrorKind::Stopping));
        };
        let view = self.view();
        let address = ctx.spawn(Root(self))?;
        Ok(Tree {
            view,
            address,
            scheduler: scheduler.downgrade(),
        })
    }

    /// Has the supervisor call `f` before it starts its children.
    pub(crate) fn before_start(mut self, f: impl FnOnce(&Context) + Send + 'static) -> Self {
        self.before_start = Some(Box::new(f));
        self
    }

    pub(crate) fn view(&self) -> Arc<View> {
        Arc::clone(&self.view)
    }
}

/// Returns the view of a supervisor among processes.
fn view_of(process: &dyn Process) -> Option<Arc<View>> {
    let process: &dyn Any = process;
    process.downcast_ref().map(Supervisor::view)
}

impl Process for Supervisor {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        if self.driver.is_some() {
            return Err("a supervisor starts once: a factory makes a new one".into());
        }
        ctx.accept_only::<Order>();
        if let Some(f) = self.before_start.take() {
            f(ctx);
        }
        if let Some(f) = self.on_failure.take() {
            self.view.on_failure.get_or_init(|| f);
        }
        let window = Window::new(self.most, self.within);
        let window = Arc::new(Mutex::new(window));
        let mut driver = Driver::new(
            ctx,
            (self.view(), view_of),
            (self.strategy, self.auto),
            window,
            self.max_children,
        )
        .ok_or("a supervisor needs a scheduler")?;
        for child in self.children.drain(..) {
            driver.add(child)?;
        }
        driver.begin(ctx)?;
        self.driver = Some(driver);
        Ok(())
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        match &mut self.driver {
            Some(driver) => driver.step(ctx, events, out),
            None => Err("a supervisor steps after its `init`".into()),
        }
    }
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisor")
            .field("label", &self.label)
            .field("strategy", &self.strategy)
            .field("children", &self.children)
            .finish_non_exhaustive()
    }
}

//! A supervision tree under chaos: children that fail, panic, end, link themselves and join a
//! group, while a thread outside ends and restarts them. The tree has a scheduler of its own, and
//! an account that is exact: a supervisor starts as many processes as it likes.

use super::Job;
use crate::account::Count;
use crate::faults::ON_PURPOSE;
use fastrand::Rng;
use ganger::Scheduler;
use ganger::link::{Group, Groups, LinkContext};
use ganger::supervise::{ChildSpec, ShutdownTimeout, Supervisor, TreeHandle};
use ganger::{
    Actor, BoxError, CancelReason, Context, ContextExt, ExitReason, Handle, Lifecycle, Pid,
    StepOutput, StepResult, Symbol,
};
use std::sync::Arc;
use std::time::Duration;

/// A deadline for processes that are bound to end.
const PATIENT: Duration = Duration::from_secs(600);

/// The counts of the tree.
#[derive(Default)]
struct Counts {
    /// Children, as values, and their `init` and `close`.
    made: Count,
    dropped: Count,
    inits: Count,
    closes: Count,
    /// Of all processes, by the hooks.
    started: Count,
    ended: Count,
    /// Notes, as values; those taken by sends and by steps.
    notes: Count,
    notes_dropped: Count,
    accepted: Count,
    refused: Count,
    handled: Count,
    lost: Count,
}

/// A message that is counted as long as it lives.
struct Note {
    what: u32,
    is_handled: bool,
    /// Whether a send has taken it.
    counts: Arc<Counts>,
}

impl Note {
    fn new(what: u32, counts: &Arc<Counts>) -> Self {
        counts.notes.bump();
        Self {
            what,
            is_handled: false,
            counts: Arc::clone(counts),
        }
    }
}

impl Clone for Note {
    fn clone(&self) -> Self {
        Self::new(self.what, &self.counts)
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if !self.is_handled {
            self.counts.lost.bump();
        }
        self.counts.notes_dropped.bump();
    }
}

/// A child, which obeys notes.
struct Wild {
    counts: Arc<Counts>,
    random: Rng,
    group: Group,
}

impl Wild {
    fn new(counts: &Arc<Counts>, seed: u64, group: &Group) -> Self {
        counts.made.bump();
        Self {
            counts: Arc::clone(counts),
            random: Rng::with_seed(seed ^ counts.made.get()),
            group: group.clone(),
        }
    }
}

impl Drop for Wild {
    fn drop(&mut self) {
        self.counts.dropped.bump();
    }
}

impl Actor for Wild {
    type Message = Note;

    fn init(&mut self, ctx: &Context) -> Result<(), BoxError> {
        if self.random.u32(0..40) == 0 {
            return Err(ON_PURPOSE.into());
        }
        self.group.join(&ctx.address::<Note>()?)?;
        self.counts.inits.bump();
        Ok(())
    }

    fn receive(&mut self, ctx: &Context, mut note: Note, out: &mut StepOutput) -> StepResult {
        note.is_handled = true;
        self.counts.handled.bump();
        match note.what % 12 {
            0 => return Err(ON_PURPOSE.into()),
            1 => panic!("{ON_PURPOSE}: a child"),
            2 => out.done(()),
            3 => {
                // A link to a process that has just ended gives a signal.
                if let Some(&peer) = self.group.members().first() {
                    ctx.link(peer)?;
                }
            }
            4 => ctx
                .links()
                .into_iter()
                .try_for_each(|peer| ctx.unlink(peer))?,
            5 => ctx.trap_exits(1),
            6 => ctx.end_trap(),
            _ => {}
        }
        Ok(())
    }

    fn cancelled(&mut self, _: &Context, _: CancelReason, _: &mut StepOutput) -> StepResult {
        match self.random.u32(0..8) {
            0 => Err(ON_PURPOSE.into()),
            _ => Ok(()),
        }
    }

    fn close(&mut self) {
        self.counts.closes.bump();
    }
}

/// Counts starts and ends.
struct Hooks(Arc<Counts>);

impl Lifecycle for Hooks {
    fn on_start(&self, _: Pid, _: Symbol) -> Result<(), BoxError> {
        self.0.started.bump();
        Ok(())
    }

    fn on_complete(&self, _: Pid, _: &ExitReason) {
        self.0.ended.bump();
    }
}

fn supervisor(random: &mut Rng) -> Supervisor {
    let supervisor = match random.u32(0..3) {
        0 => Supervisor::one_for_one(),
        1 => Supervisor::one_for_all(),
        _ => Supervisor::rest_for_one(),
    };
    supervisor.intensity(random.u32(3..2_000), Duration::from_secs(1))
}

/// Builds children, and a supervisor below with children. Returns their paths as well.
fn tree(
    scheduler: &Handle,
    counts: &Arc<Counts>,
    group: &Group,
    random: &mut Rng,
    size: usize,
) -> (Option<TreeHandle>, Vec<String>) {
    let mut paths = Vec::new();
    let child = |name: &str, random: &mut Rng| {
        let (counts, group, seed) = (Arc::clone(counts), group.clone(), random.u64(..));
        let child = ChildSpec::new(name, move || Wild::new(&counts, seed, &group));
        let child = match random.u32(0..4) {
            0 => child.transient(),
            1 => child.temporary(),
            _ => child,
        };
        match random.u32(0..4) {
            0 => child.in_place(),
            1 => child.stop_within(Duration::from_micros(random.u64(0..3_000))),
            2 => child.stop(ShutdownTimeout::Unlimited),
            _ => child.back_off(Duration::from_micros(random.u64(1..500))),
        }
    };
    let mut top = supervisor(random);
    for number in 0..size {
        let name = format!("c{number}");
        top = top.with(child(&name, random));
        paths.push(name);
    }
    let (below, seed) = (Arc::clone(counts), random.u64(..));
    let theirs = group.clone();
    let top = top.child("below", move || {
        let mut random = Rng::with_seed(seed);
        let mut supervisor = supervisor(&mut random);
        for number in 0..2 {
            let (counts, group, seed) = (Arc::clone(&below), theirs.clone(), random.u64(..));
            let child = ChildSpec::new(format!("d{number}"), move || {
                Wild::new(&counts, seed, &group)
            });
            supervisor = supervisor.with(child);
        }
        supervisor
    });
    paths.extend(["below/d0".to_owned(), "below/d1".to_owned()]);
    // A child's `init` may fail.
    (top.start(scheduler).ok(), paths)
}

/// Acts once from outside.
fn act(
    scheduler: &Scheduler,
    tree: &TreeHandle,
    paths: &[String],
    group: &Group,
    random: &mut Rng,
    counts: &Arc<Counts>,
) {
    let path = &paths[random.usize(..paths.len())];
    match random.u32(0..16) {
        0 => {
            let note = Note::new(random.u32(..), counts);
            let delivered = group.broadcast(&note);
            // The first is a copy's original.
            counts
                .refused
                .add(1 + (delivered.full + delivered.gone) as u64);
            counts.accepted.add(delivered.taken as u64);
        }
        1 => {
            if let Some(pid) = tree.child(path) {
                let _ended = scheduler.terminate(pid);
            }
        }
        2 => drop(tree.restart_child(path.as_str()).begin()),
        3 => drop(tree.stop_child(path.as_str()).begin()),
        4 => {
            let pids = group.members();
            if !pids.is_empty() {
                let _ended = scheduler.cancel(pids[random.usize(..pids.len())], "chaos");
            }
        }
        _ => {
            if let Ok(address) = tree.address::<Note>(path) {
                match address.send(Note::new(random.u32(..), counts)) {
                    Ok(()) => counts.accepted.bump(),
                    Err(_) => counts.refused.bump(),
                }
            }
        }
    }
}

pub(super) fn run(mut job: Job<'_>) {
    let counts = Arc::<Counts>::default();
    let fault = |what: String| job.site.account.fault(format!("a tree: {what}"));
    let builder = Scheduler::builder().workers(job.random.usize(1..=4));
    let builder = builder.quiet_failures();
    let scheduler = match builder.lifecycle(Hooks(Arc::clone(&counts))).build() {
        Ok(scheduler) => scheduler,
        Err(error) => return fault(error.to_string()),
    };
    if let Err(error) = scheduler.start() {
        return fault(error.to_string());
    }
    let group = Groups::of(&scheduler, "soak").group("all");
    let random = &mut job.random;
    let size = job.size.min(16);
    let (tree, paths) = tree(&scheduler, &counts, &group, random, size);
    if let Some(tree) = &tree {
        for _ in 0..random.usize(1..100) * size {
            act(&scheduler, tree, &paths, &group, random, &counts);
        }
    }
    let waits = job.watch.wait("a tree waits for its stop".to_owned());
    match (tree, random.bool()) {
        (Some(tree), true) => _ = tree.stop(),
        (tree, _) => drop(tree),
    }
    let report = match scheduler.stop(PATIENT) {
        Ok(report) => report,
        Err(error) => return fault(error.to_string()),
    };
    drop(waits);
    if report.forced > 0 || !report.stuck.is_empty() {
        fault(format!("{report:?}"));
    }
    let left = group.members();
    if !left.is_empty() {
        fault(format!("members that have ended: {left:?}"));
    }
    let stats = scheduler.stats().total;
    drop(scheduler);
    let Counts {
        made,
        dropped,
        inits,
        closes,
        started,
        ended,
        notes,
        notes_dropped,
        accepted,
        refused,
        handled,
        lost,
    } = &*counts;
    let equations = [
        ("children made = dropped", made.get(), dropped.get()),
        ("inits = closes", inits.get(), closes.get()),
        ("starts = ends", started.get(), ended.get()),
        ("starts = the scheduler's", started.get(), stats.started),
        ("ends = the scheduler's", ended.get(), stats.ended()),
        ("notes made = dropped", notes.get(), notes_dropped.get()),
        (
            "notes = accepted + refused",
            notes.get(),
            accepted.get() + refused.get(),
        ),
        (
            "notes = handled + lost",
            notes.get(),
            handled.get() + lost.get(),
        ),
    ];
    for (what, left, right) in equations {
        if left != right {
            fault(format!("{what}: {left}, {right}"));
        }
    }
}

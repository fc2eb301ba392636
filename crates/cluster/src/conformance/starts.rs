//! Processes that are started elsewhere, with monitors and links.

use super::parts::Strings;
use super::{Ground, Harness, arrived};
use crate::node::{Cluster, FarSpawn};
use ganger_link::LinkContext as _;
use ganger_proc_api::{
    BoxError, CommandError, Context, Events, ExitCause, NodeName, Payloads, Pid, Process,
    StepOutput, StepResult,
};
use ganger_sched::{Handle, Spawner};

/// The kind of process that each far node of a harness offers, by [`child`].
pub const CHILD: &str = "conformance.child";

/// Lives until it is ended.
const LIVES: u64 = 0;
/// Fails in its first step.
const BRIEF: u64 = 1;
/// Is not started.
const REFUSED: u64 = 2;

struct Child(u64);

impl Process for Child {
    fn init(&mut self, _: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        if self.0 == REFUSED {
            return Err("no disk".into());
        }
        Ok(())
    }

    fn step(&mut self, _: &Context, _: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
        if self.0 == BRIEF {
            return Err("on purpose".into());
        }
        Ok(())
    }
}

/// Starts a process of the kind [`CHILD`].
///
/// # Errors
/// The number says that its `init` fails.
pub fn child(spawner: Spawner<Handle>, number: u64) -> Result<Pid, BoxError> {
    Ok(spawner.submit(Child(number), "main", ())?.pid())
}

/// Returns the near node. `None`: the harness has a single scheduler.
pub(super) fn near_node<H: Harness>(harness: &H) -> Option<&Cluster> {
    harness.clusters().map(|[near, _]| near)
}

/// Returns a start at the far node. `None` where the harness has a single scheduler.
fn start<H: Harness>(harness: &H, number: u64) -> Option<FarSpawn> {
    let far: NodeName = harness.far().node_name().expect("it is a node");
    let node: &Cluster = near_node(harness)?;
    Some(node.spawn_on(far, CHILD, number))
}

fn asked(ground: impl Ground, start: FarSpawn) -> Result<Pid, CommandError> {
    ground.ask(start.call())
}

fn started(ground: impl Ground, start: FarSpawn) -> Pid {
    asked(ground, start).expect("it is started")
}

fn ended<H: Harness>(harness: &H, pid: Pid) {
    let far = harness.far();
    let pid = far.canonical(pid);
    let ground = harness.ground();
    ground.eventually("the process ends", || far.address(pid).is_none());
}

fn traps<G: Ground>(process: &Strings<G>) {
    process.done(|ctx, _| {
        ctx.trap_exits(42);
        Ok(())
    });
}

/// Starts a process that ends in its first step: the notice comes once, with the cause.
pub fn a_process_started_elsewhere_is_monitored_from_its_first_moment<H: Harness>(
    ground: H::Ground,
) {
    let harness = H::start(ground);
    let watcher = Strings::start(harness.near());
    let address = watcher.handle.address();
    for tag in 0..100 {
        let Some(start) = start(&harness, BRIEF) else {
            return;
        };
        let pid = started(ground, start.monitored_by(address, tag));
        let cause = ExitCause::Failed("on purpose".into());
        assert_eq!(watcher.exit(), (pid, tag, cause));
    }
    assert!(watcher.is_quiet());
}

/// Starts an unknown kind, a kind whose `init` fails, and a kind over a lost connection.
pub fn a_start_elsewhere_that_fails_says_why<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let Some(refused) = start(&harness, REFUSED) else {
        return;
    };
    let watcher = Strings::start(harness.near());
    traps(&watcher);
    let address = watcher.handle.address();
    let refused = asked(ground, refused.monitored_by(address, 7).linked(address));
    let refused = refused.expect_err("it fails").to_string();
    assert!(refused.contains("no disk"), "{refused}");
    let far = harness.far().node_name().expect("it is a node");
    let node = near_node(&harness).expect("it is a node");
    let unknown = node.spawn_on(far, "conformance.nothing", 0_u64);
    let unknown = asked(ground, unknown.monitored_by(address, 7).linked(address));
    let unknown = unknown.expect_err("it is not offered").to_string();
    assert!(unknown.contains("conformance.nothing"), "{unknown}");
    // Leftovers of such a start would be told by now.
    arrived(&harness);
    if harness.cut() {
        let lost = start(&harness, LIVES).expect("it is a node");
        let lost = asked(ground, lost.monitored_by(address, 7).linked(address));
        let is_lost = matches!(lost, Err(CommandError::Ended(ExitCause::NoConnection)));
        assert!(is_lost, "{lost:?}");
    }
    assert!(watcher.is_quiet());
}

/// Links a start: the end of either ends the other. An asker that traps exits is told, also of a
/// process that ends in its first step, and not before it has the PID.
pub fn a_process_started_elsewhere_is_linked_from_its_first_moment<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let asker = Strings::start(harness.near());
    let Some(first) = start(&harness, LIVES) else {
        return;
    };
    let pid = started(ground, first.linked(asker.handle.address()));
    harness.near().terminate(asker.pid()).expect("it lives");
    drop(asker.wait());
    ended(&harness, pid);

    let asker = Strings::start(harness.near());
    let second = start(&harness, LIVES).expect("it is a node");
    let pid = started(ground, second.linked(asker.handle.address()));
    harness.near().terminate(pid).expect("it is asked");
    drop(asker.wait());

    let asker = Strings::start(harness.near());
    traps(&asker);
    for _ in 0..100 {
        let brief = start(&harness, BRIEF).expect("it is a node");
        let pid = started(ground, brief.linked(asker.handle.address()));
        let cause = ExitCause::Failed("on purpose".into());
        assert_eq!(asker.exit(), (pid, 42, cause));
    }
    assert!(asker.is_quiet());

    // A link that is taken back is over.
    let last = start(&harness, LIVES).expect("it is a node");
    let pid = started(ground, last.linked(asker.handle.address()));
    asker.done(move |ctx, _| Ok(ctx.unlink(pid)?));
    arrived(&harness);
    harness.near().terminate(pid).expect("it is asked");
    ended(&harness, pid);
    arrived(&harness);
    assert!(asker.is_quiet());
}

/// Ends an asker before the answer: the linked process ends, too.
pub fn a_linked_process_ends_with_an_asker_that_ends_early<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let mut askers = Vec::new();
    for number in 0..50 {
        let asker = Strings::start(harness.near());
        let Some(start) = start(&harness, LIVES) else {
            return;
        };
        let mut start = start.named(format!("child {number}"));
        // Each second process lives on: all of them were started.
        if number % 2 == 0 {
            start = start.linked(asker.handle.address());
        }
        asker.done(move |_, out| {
            out.ask(start.call(), 1);
            Ok(())
        });
        harness.near().terminate(asker.pid()).expect("it lives");
        askers.push(asker);
    }
    for asker in askers {
        drop(asker.wait());
    }
    arrived(&harness);
    for number in 0..50 {
        let name = format!("child {number}");
        if number % 2 == 0 {
            ground.eventually("a linked process ends", || {
                harness.far().whereis(&name).is_none()
            });
        } else {
            assert!(harness.far().whereis(&name).is_some(), "{name}");
        }
    }
}

/// Loses the connection: both ends of the link are told.
pub fn a_link_of_a_start_elsewhere_ends_with_the_connection<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let Some(first) = start(&harness, LIVES) else {
        return;
    };
    let asker = Strings::start(harness.near());
    traps(&asker);
    let pid = started(ground, first.linked(asker.handle.address()));
    if !harness.cut() {
        return;
    }
    assert_eq!(asker.exit(), (pid, 42, ExitCause::NoConnection));
    ended(&harness, pid);
    assert!(asker.is_quiet());
}

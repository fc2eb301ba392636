//! Plays the acts of the specification with supervisors in a simulation.

use super::spec::{ChildPlan, How, Tree, TreeAct, TreePlan, Verdict, WINDOW, World};
use ganger_proc_api::{Actor, BoxError, Context, ExitReason, Pid, StepOutput, StepResult};
use ganger_sim::{Rt, Sim};
use ganger_supervise::{ChildInfo, ChildSpec, Strategy, SuperviseError, Supervisor};
use ganger_sync::sync::{Mutex, lock};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

/// The notes of the children, and the children that do not start.
#[derive(Default)]
struct Notes {
    log: Vec<String>,
    broken: BTreeSet<String>,
}

type Shared = Arc<Mutex<Notes>>;

/// A child that notes its start and its end, and ends on request.
struct Leaf {
    path: String,
    notes: Shared,
}

impl Actor for Leaf {
    type Message = How;

    fn init(&mut self, _: &Context) -> Result<(), BoxError> {
        let mut notes = lock(&self.notes);
        if notes.broken.contains(&self.path) {
            return Err("broken".into());
        }
        notes.log.push(format!("+{}", self.path));
        Ok(())
    }

    fn receive(&mut self, _: &Context, how: How, out: &mut StepOutput) -> StepResult {
        match how {
            How::Fail => Err("on purpose".into()),
            // Without a report.
            How::Panic => resume_unwind(Box::new("on purpose")),
            _ => {
                out.done(());
                Ok(())
            }
        }
    }

    fn close(&mut self) {
        lock(&self.notes).log.push(format!("-{}", self.path));
    }
}

fn supervisor(plan: &TreePlan, above: &str, notes: &Shared) -> Supervisor {
    let supervisor = match plan.strategy {
        Strategy::OneForAll => Supervisor::one_for_all(),
        Strategy::RestForOne => Supervisor::rest_for_one(),
        Strategy::Dynamic => Supervisor::dynamic(),
        _ => Supervisor::one_for_one(),
    };
    let supervisor = supervisor
        .intensity(plan.most, WINDOW)
        .auto_shutdown(plan.auto);
    let children = plan.children.iter().enumerate();
    children.fold(supervisor, |it, (number, plan)| {
        it.with(child(plan, above, number, notes))
    })
}

fn child(plan: &ChildPlan, above: &str, number: usize, notes: &Shared) -> ChildSpec {
    let (path, notes) = (format!("{above}{number}"), Arc::clone(notes));
    let name = number.to_string();
    let mut child = match plan.below.clone() {
        Some(plan) => {
            let path = format!("{path}/");
            ChildSpec::new(name, move || supervisor(&plan, &path, &notes))
        }
        None => ChildSpec::new(name, move || Leaf {
            path: path.clone(),
            notes: Arc::clone(&notes),
        }),
    };
    child = child.restart(plan.restart);
    if plan.significant {
        child = child.significant();
    }
    if plan.in_place && plan.below.is_none() {
        child = child.in_place();
    }
    child
}

/// Finds the children by their paths.
fn found(above: &str, children: Vec<ChildInfo>, all: &mut BTreeMap<String, Option<Pid>>) {
    for child in children {
        let path = format!("{above}{}", child.name);
        if let (Some(_), Some(below)) = (child.pid, child.children) {
            found(&format!("{path}/"), below, all);
        }
        all.insert(path, child.pid);
    }
}

fn is_as_said(reason: &ExitReason, verdict: &Verdict) -> bool {
    match (reason, verdict) {
        (ExitReason::Cancelled(_), Verdict::Cancelled)
        | (ExitReason::Terminated, Verdict::Terminated) => true,
        (ExitReason::Failed(error), Verdict::GaveUp(name)) => {
            let error = error.downcast_ref();
            matches!(error, Some(SuperviseError::GaveUp { child, .. }) if **child == **name)
        }
        (reason, Verdict::Done) => reason.is_done(),
        _ => false,
    }
}

/// Starts a supervisor, and plays all acts with it and its children, each after the end of the act
/// before. The child with the number `broken`, if any, may not start.
///
/// # Panics
/// If a child starts or ends against the specification or in another order, or the supervisor ends
/// otherwise.
pub fn play_tree(seed: u64, plan: &TreePlan, broken: Option<usize>, acts: &[TreeAct]) {
    let sim = Sim::new(seed).workers(2).must_free();
    sim.run(|rt| play(rt, plan, broken, acts));
}

fn play(rt: &Rt<'_>, plan: &TreePlan, broken: Option<usize>, acts: &[TreeAct]) {
    let (notes, mut world) = (Shared::default(), World::default());
    let fix = |broken: Option<usize>, world: &mut World| {
        world.broken = broken
            .into_iter()
            .flat_map(|it| [it.to_string(), format!("{it}/0")])
            .collect();
        lock(&notes).broken.clone_from(&world.broken);
    };
    let compare_logs = |act: &dyn std::fmt::Debug, world: &mut World| {
        let mut seen = std::mem::take(&mut lock(&notes).log);
        let mut expected = std::mem::take(&mut world.log);
        if plan.is_unordered() {
            seen.sort();
            expected.sort();
        }
        assert_eq!(seen, expected, "{act:?}");
    };
    fix(broken, &mut world);
    world.now = rt.now();
    let started = supervisor(plan, "", &notes).start(rt);
    rt.settle();
    let spec = Tree::start(plan, String::new(), &mut world);
    compare_logs(&"the start", &mut world);
    assert_eq!(started.is_ok(), spec.is_some());
    let (Ok(tree), Some(mut spec)) = (started, spec) else {
        return;
    };
    let (mut next, mut before) = (plan.children.len(), BTreeMap::new());
    for act in acts.iter().chain([&TreeAct::StopAll]) {
        // A timer armed by an act lets time pass before the next act.
        world.now = rt.now();
        let verdict = match act {
            TreeAct::End(number, below, how) => {
                end(rt, &tree, *number, *below, *how);
                rt.settle();
                spec.end(*number, *below, *how, &mut world)
            }
            TreeAct::Break(number) => {
                fix(Some(*number), &mut world);
                None
            }
            TreeAct::Mend => {
                fix(None, &mut world);
                None
            }
            TreeAct::Wait => {
                rt.run_for(Duration::from_secs(3));
                None
            }
            TreeAct::StopAll => {
                tree.cancel("enough").unwrap();
                spec.stop(&mut world);
                Some(Verdict::Cancelled)
            }
            TreeAct::Terminate => {
                rt.terminate(tree.pid()).unwrap();
                spec.stop(&mut world);
                Some(Verdict::Terminated)
            }
            TreeAct::Add(plan) => {
                let child = child(plan, "", next, &notes);
                next += 1;
                _ = rt.answer(tree.start_child(child));
                spec.ask(act, &mut world)
            }
            TreeAct::Stop(number) => {
                _ = rt.answer(tree.stop_child(number.to_string()));
                spec.ask(act, &mut world)
            }
            TreeAct::Remove(number) => {
                _ = rt.answer(tree.remove_child(number.to_string()));
                spec.ask(act, &mut world)
            }
            TreeAct::Restart(number) => {
                _ = rt.answer(tree.restart_child(number.to_string()));
                spec.ask(act, &mut world)
            }
        };
        rt.settle();
        compare_logs(act, &mut world);
        if let Some(verdict) = verdict {
            let reason = rt.wait(tree.into_handle());
            assert!(
                is_as_said(&reason, &verdict),
                "{act:?}: {reason}, {verdict:?}"
            );
            return;
        }
        let mut all = BTreeMap::new();
        found("", tree.children(), &mut all);
        let known = spec.known();
        let runs = |(path, runs): (&String, bool)| (path.clone(), runs);
        let expected = known.iter().map(|it| runs((it.0, it.1.is_some())));
        let seen = all.iter().map(|it| runs((it.0, it.1.is_some())));
        assert!(seen.eq(expected), "{act:?}: {all:?}, {known:?}");
        // The same process has the same PID, and another process has another.
        let leaves = known.into_iter().filter(|it| it.1.is_some_and(|it| it > 0));
        let now: BTreeMap<_, _> = leaves
            .map(|(path, process)| (path.clone(), (process, all[&path])))
            .collect();
        for (path, (process, pid)) in &now {
            if let Some((process_before, pid_before)) = before.get(path) {
                assert_eq!(
                    process == process_before,
                    pid == pid_before,
                    "{act:?}: {path}"
                );
            }
        }
        before = now;
    }
}

/// Has a child end, if it runs.
fn end(rt: &Rt<'_>, tree: &ganger_supervise::Tree, number: usize, below: Option<usize>, how: How) {
    let mut path = number.to_string();
    let is_supervisor = tree.subtree(&path).is_ok();
    if let (true, Some(below)) = (is_supervisor, below) {
        path = format!("{path}/{below}");
    }
    let Some(pid) = tree.child(&path) else { return };
    let how = match is_supervisor && below.is_none() {
        true => how.of_supervisor(),
        false => how,
    };
    match how {
        How::Cancel => rt.cancel(pid, "enough").unwrap(),
        How::Terminate => rt.terminate(pid).unwrap(),
        _ => tree.address::<How>(&path).unwrap().send(how).unwrap(),
    }
}

//! The effects of supervisors, act by act, without processes: which children are started and ended,
//! in which order, and how a supervisor ends.

use ganger_supervise::{AutoShutdown, Restart, Strategy};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A failure that is older than this time does not count any more.
pub(super) const WINDOW: Duration = Duration::from_secs(5);

/// The settings of a supervisor.
#[derive(Debug, Clone)]
pub struct TreePlan {
    /// The children that are restarted with a failed child.
    pub strategy: Strategy,
    /// Whether it ends by itself.
    pub auto: AutoShutdown,
    /// How many failures there may be within 5 seconds.
    pub most: u32,
    /// Its children, named by their numbers.
    pub children: Vec<ChildPlan>,
}

/// The settings of a child.
#[derive(Debug, Clone)]
pub struct ChildPlan {
    /// When it is restarted.
    pub restart: Restart,
    /// Whether it counts for the supervisor's own end.
    pub significant: bool,
    /// Whether it is restarted in place. A supervisor is not.
    pub in_place: bool,
    /// The child is a supervisor with this plan.
    pub below: Option<TreePlan>,
}

/// How a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// By itself.
    Done,
    /// By an error.
    Fail,
    /// By a panic.
    Panic,
    /// The child was asked to finish, and has.
    Cancel,
    /// It was terminated.
    Terminate,
}

/// An operation on a supervisor and its children.
#[derive(Debug, Clone)]
pub enum TreeAct {
    /// The child ends; or, if the child is a supervisor, a child below it. A supervisor is
    /// cancelled or terminated.
    End(usize, Option<usize>, How),
    /// The supervisor stops the child.
    Stop(usize),
    /// The supervisor stops the child, and forgets it.
    Remove(usize),
    /// The supervisor starts the child, or stops and starts it.
    Restart(usize),
    /// The supervisor gets another child.
    Add(ChildPlan),
    /// From now on the child, or the first child below it, does not start.
    Break(usize),
    /// All start again.
    Mend,
    /// Three seconds go by.
    Wait,
    /// The supervisor is cancelled.
    StopAll,
    /// The supervisor is terminated.
    Terminate,
}

/// How a supervisor has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Cancelled,
    Terminated,
    Done,
    /// After a failure of this child.
    GaveUp(String),
}

/// The world around the supervisors.
#[derive(Default)]
pub(super) struct World {
    /// The time of the simulation at the begin of an act.
    pub(super) now: Duration,
    /// `+1` is a start of the child 1, and `-1` its end.
    pub(super) log: Vec<String>,
    pub(super) broken: BTreeSet<String>,
    started: u64,
}

/// A running supervisor.
pub(super) struct Tree {
    path: String,
    strategy: Strategy,
    auto: AutoShutdown,
    most: u32,
    children: Vec<Child>,
    /// The number of the next child.
    next: usize,
    failures: Vec<Duration>,
}

struct Child {
    number: usize,
    path: String,
    plan: ChildPlan,
    /// Whether the child should run.
    wanted: bool,
    /// Whether it has ended for good.
    is_settled: bool,
    life: Option<Life>,
}

enum Life {
    /// A process, by its number among all.
    Leaf(u64),
    Below(Tree),
}

impl Child {
    fn new(above: &str, number: usize, plan: ChildPlan) -> Self {
        Self {
            number,
            path: format!("{above}{number}"),
            plan,
            wanted: true,
            is_settled: false,
            life: None,
        }
    }

    fn start(&mut self, world: &mut World) -> bool {
        self.life = match &self.plan.below {
            Some(plan) => Tree::start(plan, format!("{}/", self.path), world).map(Life::Below),
            None if world.broken.contains(&self.path) => None,
            None => {
                world.log.push(format!("+{}", self.path));
                world.started += 1;
                Some(Life::Leaf(world.started))
            }
        };
        self.life.is_some()
    }

    fn stop(&mut self, world: &mut World) {
        match self.life.take() {
            Some(Life::Leaf(_)) => world.log.push(format!("-{}", self.path)),
            Some(Life::Below(mut tree)) => tree.stop(world),
            None => {}
        }
    }
}

impl Tree {
    /// Starts a supervisor and its children; none if a child does not start.
    pub(super) fn start(plan: &TreePlan, path: String, world: &mut World) -> Option<Self> {
        let children = plan.children.iter().enumerate();
        let mut tree = Self {
            strategy: plan.strategy,
            auto: plan.auto,
            most: plan.most,
            children: children
                .map(|(number, child)| Child::new(&path, number, child.clone()))
                .collect(),
            next: plan.children.len(),
            failures: Vec::new(),
            path,
        };
        if tree.children.iter_mut().all(|child| child.start(world)) {
            return Some(tree);
        }
        tree.stop(world);
        None
    }

    /// Stops all, in the reverse order of their start.
    pub(super) fn stop(&mut self, world: &mut World) {
        let children = self.children.iter_mut().rev();
        children.for_each(|child| child.stop(world));
    }

    fn find(&self, number: usize) -> Option<usize> {
        self.children.iter().position(|it| it.number == number)
    }

    /// Counts a failure. Says whether there were too many.
    fn counts(&mut self, world: &World) -> bool {
        self.failures.push(world.now);
        let recent = |it: &&Duration| world.now - **it <= WINDOW;
        self.failures.iter().filter(recent).count() > self.most as usize
    }

    /// Handles the failure of a child that should run.
    fn failed(&mut self, number: usize, world: &mut World) -> Option<Verdict> {
        let mut failed = number;
        loop {
            if self.counts(world) {
                self.stop(world);
                return Some(Verdict::GaveUp(failed.to_string()));
            }
            let at = self.find(failed)?;
            let group = match self.strategy {
                Strategy::OneForAll => 0..self.children.len(),
                Strategy::RestForOne => at..self.children.len(),
                _ => at..at + 1,
            };
            for child in self.children[group.clone()].iter_mut().rev() {
                if child.life.is_some() {
                    child.wanted = child.plan.restart != Restart::Temporary;
                    child.stop(world);
                }
            }
            let mut to_start = self.children[group].iter_mut().filter(|it| it.wanted);
            let broken = to_start.find_map(|it| (!it.start(world)).then_some(it.number));
            let is_gone = |it: &Child| !it.wanted && it.plan.restart == Restart::Temporary;
            self.children.retain(|it| !is_gone(it));
            match broken {
                Some(number) => failed = number,
                None => return None,
            }
        }
    }

    /// Notes that the child does not run, and will not be started again.
    fn settle(&mut self, number: usize, was_asked: bool, world: &mut World) -> Option<Verdict> {
        let at = self.find(number)?;
        let child = &mut self.children[at];
        let counts = child.plan.significant && !child.is_settled;
        (child.wanted, child.is_settled) = (false, true);
        if child.plan.restart == Restart::Temporary || self.strategy == Strategy::Dynamic {
            self.children.remove(at);
        }
        let is_left = |it: &Child| it.plan.significant && !it.is_settled;
        let is_over = match self.auto {
            AutoShutdown::Never => false,
            AutoShutdown::Any => true,
            AutoShutdown::All => !self.children.iter().any(is_left),
        };
        if was_asked || !counts || !is_over {
            return None;
        }
        self.stop(world);
        Some(Verdict::Done)
    }

    /// Handles the end of a child's process.
    fn ended(&mut self, number: usize, how: How, world: &mut World) -> Option<Verdict> {
        let restart = self.children[self.find(number)?].plan.restart;
        match (restart, how) {
            (Restart::Temporary, _) | (_, How::Cancel) | (Restart::Transient, How::Done) => {
                self.settle(number, false, world)
            }
            _ => self.failed(number, world),
        }
    }

    /// Has a child end, if it runs. Says how the supervisor ends, if it does.
    pub(super) fn end(
        &mut self,
        number: usize,
        below: Option<usize>,
        how: How,
        world: &mut World,
    ) -> Option<Verdict> {
        let at = self.find(number)?;
        let child = &mut self.children[at];
        match child.life.take()? {
            Life::Leaf(process) => {
                world.log.push(format!("-{}", child.path));
                let is_failure = matches!(how, How::Fail | How::Panic);
                while is_failure && self.children[at].plan.in_place && !self.counts(world) {
                    let child = &mut self.children[at];
                    if child.start(world) {
                        child.life = Some(Life::Leaf(process));
                        return None;
                    }
                }
                self.ended(number, how, world)
            }
            Life::Below(mut tree) => {
                let how = match below {
                    Some(below) => match tree.end(below, None, how, world) {
                        None => {
                            child.life = Some(Life::Below(tree));
                            return None;
                        }
                        Some(Verdict::Done) => How::Done,
                        Some(_) => How::Fail,
                    },
                    None => {
                        tree.stop(world);
                        how.of_supervisor()
                    }
                };
                self.ended(number, how, world)
            }
        }
    }

    /// Carries out a request to a supervisor.
    pub(super) fn ask(&mut self, act: &TreeAct, world: &mut World) -> Option<Verdict> {
        match act {
            TreeAct::Stop(number) | TreeAct::Remove(number) => {
                let at = self.find(*number)?;
                self.children[at].stop(world);
                self.settle(*number, true, world);
                if let (TreeAct::Remove(_), Some(at)) = (act, self.find(*number)) {
                    self.children.remove(at);
                }
                None
            }
            TreeAct::Restart(number) => {
                let at = self.find(*number)?;
                let child = &mut self.children[at];
                child.stop(world);
                (child.wanted, child.is_settled) = (true, false);
                if child.start(world) {
                    return None;
                }
                self.failed(*number, world)
            }
            TreeAct::Add(plan) => {
                let mut child = Child::new(&self.path, self.next, plan.clone());
                self.next += 1;
                if child.start(world) {
                    self.children.push(child);
                }
                None
            }
            _ => None,
        }
    }

    /// Returns the known children, by their paths, with the numbers of their processes, and 0 for a
    /// supervisor.
    pub(super) fn known(&self) -> BTreeMap<String, Option<u64>> {
        let mut known = BTreeMap::new();
        for child in &self.children {
            let process = match &child.life {
                Some(Life::Below(tree)) => {
                    known.extend(tree.known());
                    Some(0)
                }
                Some(Life::Leaf(process)) => Some(*process),
                None => None,
            };
            known.insert(child.path.clone(), process);
        }
        known
    }
}

impl How {
    /// Returns the end of a supervisor, which does not fail by itself.
    pub(super) fn of_supervisor(self) -> Self {
        match self {
            Self::Cancel => Self::Cancel,
            _ => Self::Terminate,
        }
    }
}

impl TreePlan {
    /// Returns whether the order of some ends is open.
    pub(super) fn is_unordered(&self) -> bool {
        let below = self.children.iter().filter_map(|it| it.below.as_ref());
        self.strategy == Strategy::Dynamic || below.into_iter().any(Self::is_unordered)
    }
}

//! The tree of processes: supervisors with their children, and below each process the processes
//! that it has started.

use super::Observer;
use ganger_proc_api::Pid;
use ganger_sched::{Handle, ProcessLook, ProcessState};
use ganger_supervise::{ChildInfo, SupervisorInfo, supervisors};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The most nodes in a tree.
pub(crate) const MOST: usize = 10_000;

/// The processes of a scheduler as a tree: see [`Observer::tree`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tree {
    /// The nodes, a parent before its children, at most 10,000.
    pub nodes: Vec<Node>,
    /// The live processes without a node.
    pub others: u64,
}

/// A process in the tree, or a child of a supervisor that is not running at the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// Its PID; none for a child that is not running.
    pub pid: Option<Pid>,
    /// The place of its parent in [`Tree::nodes`]: its supervisor, or the process that has started
    /// it; none at the top.
    pub parent: Option<usize>,
    /// Its name as a child of its supervisor, or the first of its names.
    pub name: Option<String>,
    /// The name of its type; of a supervisor its label and strategy; of a child without a process
    /// its state as a child.
    pub kind: String,
    /// Whether it is a supervisor.
    pub is_supervisor: bool,
    /// Where it is in its life; none where it is not running.
    pub state: Option<ProcessState>,
    /// How often its supervisor has started it again.
    pub restarts: u64,
    /// Its last end or failure, where its supervisor knows it.
    pub last_cause: Option<String>,
}

/// A process as seen by a pass.
#[derive(Debug, Clone)]
struct Seen {
    pid: Pid,
    parent: Option<Pid>,
    kind: &'static str,
    state: ProcessState,
}

impl Seen {
    fn of(process: ProcessLook<'_>) -> Self {
        Self {
            pid: process.pid(),
            parent: process.parent(),
            kind: process.type_name(),
            state: process.state(),
        }
    }
}

/// A tree, while a pass collects it.
pub(crate) struct Collected {
    live: u64,
    most: usize,
    seen: BTreeMap<Pid, Seen>,
    supervisors: Vec<SupervisorInfo>,
}

impl Collected {
    /// Collects the supervisors and their children. The pass shows all processes to
    /// [`see`](Self::see).
    pub(crate) fn new(scheduler: &Handle, most: usize) -> Self {
        let supervisors = supervisors(scheduler);
        let mut seen = BTreeMap::new();
        let children = |it: &SupervisorInfo| {
            let children: Vec<_> = it.children.iter().filter_map(|it| it.pid).collect();
            [it.pid].into_iter().chain(children)
        };
        for pid in supervisors.iter().flat_map(children).take(most) {
            if let Some(process) = scheduler.look_at(pid, Seen::of) {
                seen.insert(pid, process);
            }
        }
        Self {
            live: 0,
            most,
            seen,
            supervisors,
        }
    }

    /// Sees a process at a pass.
    pub(crate) fn see(&mut self, process: ProcessLook<'_>) {
        self.live += 1;
        if self.seen.len() < self.most {
            let seen = Seen::of(process);
            self.seen.insert(seen.pid, seen);
        }
    }

    /// Returns the tree. O(nodes × log nodes).
    pub(crate) fn finish(self, names: impl Fn(Pid) -> Option<String>) -> Tree {
        let Self {
            live,
            most,
            seen,
            supervisors,
        } = self;
        let mut draft = Draft {
            most,
            nodes: Vec::new(),
            names,
            started: HashMap::new(),
            supervisors: supervisors.iter().map(|it| (it.pid, it)).collect(),
            seen: &seen,
        };
        let children = supervisors.iter().flat_map(|it| &it.children);
        let children: HashSet<Pid> = children.filter_map(|it| it.pid).collect();
        let mut tops = Vec::new();
        for (pid, it) in &seen {
            if children.contains(pid) {
                continue;
            }
            match it.parent.filter(|it| seen.contains_key(it)) {
                Some(parent) => draft.started.entry(parent).or_default().push(*pid),
                None => tops.push(*pid),
            }
        }
        draft.add_all(tops);
        let nodes = draft.nodes;
        let shown = nodes.iter().filter(|it| it.state.is_some()).count();
        Tree {
            others: live.saturating_sub(shown as u64),
            nodes,
        }
    }
}

/// A tree whose nodes are being put in order.
struct Draft<'a, N> {
    most: usize,
    nodes: Vec<Node>,
    names: N,
    seen: &'a BTreeMap<Pid, Seen>,
    supervisors: HashMap<Pid, &'a SupervisorInfo>,
    /// The processes without a supervisor, by their parents.
    started: HashMap<Pid, Vec<Pid>>,
}

/// The next node: its parent's place, and its process or child.
enum Next<'a> {
    Process(Option<usize>, Pid),
    Child(usize, &'a ChildInfo),
}

impl<N: Fn(Pid) -> Option<String>> Draft<'_, N> {
    /// Adds the processes with all below them. A stack takes the place of a recursion: a chain of
    /// ten thousand processes would make a recursion too deep.
    fn add_all(&mut self, tops: Vec<Pid>) {
        let mut stack: Vec<_> = tops
            .iter()
            .rev()
            .map(|it| Next::Process(None, *it))
            .collect();
        while let Some(next) = stack.pop() {
            if self.nodes.len() == self.most {
                return;
            }
            let place = self.nodes.len();
            let (node, pid) = match next {
                Next::Process(parent, pid) => (self.process(parent, pid), Some(pid)),
                Next::Child(parent, child) => (self.child(parent, child), child.pid),
            };
            self.nodes.push(node);
            let Some(pid) = pid else { continue };
            let started = self.started.remove(&pid).unwrap_or_default();
            let started = started.into_iter().rev();
            stack.extend(started.map(|it| Next::Process(Some(place), it)));
            // A supervisor has its children once.
            if let Some(supervisor) = self.supervisors.remove(&pid) {
                let children = supervisor.children.iter().rev();
                stack.extend(children.map(|it| Next::Child(place, it)));
            }
        }
    }

    fn process(&self, parent: Option<usize>, pid: Pid) -> Node {
        let seen = self.seen.get(&pid);
        let supervisor = self.supervisors.get(&pid);
        let kind = match supervisor {
            Some(it) => format!("{} ({})", it.label, it.strategy),
            None => seen.map_or_else(String::new, |it| it.kind.to_owned()),
        };
        Node {
            pid: Some(pid),
            parent,
            name: (self.names)(pid),
            kind,
            is_supervisor: supervisor.is_some(),
            state: seen.map(|it| it.state),
            restarts: 0,
            last_cause: None,
        }
    }

    fn child(&self, parent: usize, child: &ChildInfo) -> Node {
        let facts = Node {
            pid: child.pid,
            parent: Some(parent),
            name: Some(child.name.to_string()),
            kind: child.state.to_string(),
            is_supervisor: false,
            state: None,
            restarts: child.restarts,
            last_cause: child.last.as_ref().map(ToString::to_string),
        };
        match child.pid {
            Some(pid) if self.seen.contains_key(&pid) => {
                let process = self.process(Some(parent), pid);
                Node {
                    kind: process.kind,
                    is_supervisor: process.is_supervisor,
                    state: process.state,
                    ..facts
                }
            }
            _ => facts,
        }
    }
}

impl Observer {
    /// Returns the supervisors of this scheduler with their children, restarts and last causes, and
    /// below each process the processes that it has started.
    ///
    /// O(processes), and memory for 10,000 nodes: supervisors and their children first. Blocks
    /// meanwhile.
    ///
    /// ```
    /// use ganger_observe::Observer;
    /// use ganger_proc_api::{BoxError, process_fn};
    /// use ganger_sched::Scheduler;
    /// use ganger_supervise::Supervisor;
    ///
    /// let scheduler = Scheduler::start_default()?;
    /// let root = Supervisor::one_for_one().label("root");
    /// let root = root.child("idle", || process_fn(|_, _, _| Ok(()))).start(&scheduler)?;
    /// let tree = Observer::of(&scheduler).tree();
    /// assert_eq!((tree.nodes[0].pid, tree.nodes[1].parent), (Some(root.pid()), Some(0)));
    /// assert_eq!(tree.nodes[1].name.as_deref(), Some("idle"));
    /// # Ok::<(), BoxError>(())
    /// ```
    #[must_use]
    pub fn tree(&self) -> Tree {
        let mut collected = Collected::new(&self.handle, MOST);
        self.each(|it| collected.see(it));
        collected.finish(|pid| first_name(&self.handle, pid))
    }
}

/// Returns the first name of a process.
pub(crate) fn first_name(scheduler: &Handle, pid: Pid) -> Option<String> {
    let mut first: Option<String> = None;
    let keep = |name: &str| {
        if first.as_deref().is_none_or(|it| name < it) {
            first = Some(name.to_owned());
        }
        false
    };
    scheduler.look_at(pid, |it| it.any_name(keep))?;
    first
}

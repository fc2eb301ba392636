//! The effects of links, monitors, names and groups, act by act, without processes: which process
//! ends, with which cause, and which notices and names are left.

use ganger_proc_api::{ExitCause, Tag};
use std::collections::{BTreeMap, BTreeSet};

/// The number of processes at first.
pub const PROCESSES: usize = 6;

/// The number of names, and of groups.
pub const NAMES: usize = 2;

/// The tag of the notices of processes that trap exits.
pub(super) const TRAPPED: Tag = Tag::MAX;

/// How a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// By itself.
    Done,
    /// By an error.
    Fails,
    /// By a panic.
    Panics,
    /// It cancels itself.
    Cancelled,
    /// It terminates itself.
    Terminated,
}

/// The way in which a process starts another process.
#[derive(Debug, Clone, Copy)]
pub struct Spawn {
    /// Whether they are linked.
    pub linked: bool,
    /// Whether the parent watches the child, and whether in the lane in order.
    pub watched: Option<bool>,
    /// The name of the child.
    pub named: Option<usize>,
    /// The child's end in its first step, if any.
    pub ends: Option<Ends>,
}

/// An act of a process. Processes are numbers, in the order of their starts; groups and names are
/// numbers, too. Numbers out of range do nothing.
#[derive(Debug, Clone, Copy)]
pub enum EndAct {
    /// Starts another process.
    Spawn(usize, Spawn),
    /// Links itself to another process.
    Link(usize, usize),
    /// Unlinks itself.
    Unlink(usize, usize),
    /// Traps exits from now on, or does not.
    Trap(usize, bool),
    /// Ends.
    End(usize, Ends),
    /// Sends another process this many numbers, and ends in the same step.
    Farewell(usize, usize, u64, Ends),
    /// Sends another process an exit signal: with true, done; otherwise a failure.
    Exit(usize, usize, bool),
    /// Watches another process, perhaps in the lane in order.
    Watch(usize, usize, bool),
    /// Ends its oldest watch, except watches of processes that it has started.
    EndWatch(usize),
    /// Takes a name.
    Name(usize, usize),
    /// Joins a group.
    Join(usize, usize),
    /// Leaves a group.
    Leave(usize, usize),
    /// Sends its number to all members of a group.
    Broadcast(usize, usize),
}

/// A message or notice to a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Told<P> {
    /// The end of a process, with the tag of the notice.
    End(P, Tag, ExitCause),
    /// A number from a process.
    Number(usize, u64),
}

struct Watch {
    watcher: usize,
    target: usize,
    tag: Tag,
    /// Whether the watcher can end the watch: not for a process that it has started.
    has_handle: bool,
}

/// All processes.
#[derive(Default)]
pub(super) struct Spec {
    /// How many have been started.
    pub(super) started: usize,
    pub(super) ended: BTreeMap<usize, ExitCause>,
    links: BTreeSet<(usize, usize)>,
    traps: BTreeSet<usize>,
    watches: Vec<Watch>,
    /// The watches, present and ended, in the lane in order.
    pub(super) in_order: BTreeSet<Tag>,
    pub(super) names: [Option<usize>; NAMES],
    /// An entry for each join, in their order.
    pub(super) groups: [Vec<usize>; NAMES],
    /// The notices of the last act, by process, in no order.
    pub(super) told: BTreeMap<usize, Vec<Told<usize>>>,
    /// To how many the last broadcast went.
    pub(super) reached: Option<usize>,
    /// The tag of the last watch.
    pub(super) last: Tag,
}

impl Ends {
    pub(super) fn cause(self) -> ExitCause {
        match self {
            Self::Done => ExitCause::Done,
            Self::Fails => ExitCause::Failed("boom".into()),
            Self::Panics => ExitCause::Panicked("boom".into()),
            Self::Cancelled => ExitCause::Cancelled("boom".into()),
            Self::Terminated => ExitCause::Terminated,
        }
    }
}

/// Returns the cause of an exit signal.
pub(super) fn signalled(is_done: bool) -> ExitCause {
    match is_done {
        true => ExitCause::Done,
        false => ExitCause::Failed("asked".into()),
    }
}

fn pair(a: usize, b: usize) -> (usize, usize) {
    (a.min(b), a.max(b))
}

impl EndAct {
    /// Returns the acting process.
    pub(super) fn by(&self) -> usize {
        match *self {
            Self::Spawn(by, _)
            | Self::Link(by, _)
            | Self::Unlink(by, _)
            | Self::Trap(by, _)
            | Self::End(by, _)
            | Self::Farewell(by, ..)
            | Self::Exit(by, ..)
            | Self::Watch(by, ..)
            | Self::EndWatch(by)
            | Self::Name(by, _)
            | Self::Join(by, _)
            | Self::Leave(by, _)
            | Self::Broadcast(by, _) => by,
        }
    }

    /// Returns the other process.
    fn other(&self) -> Option<usize> {
        match *self {
            Self::Link(_, other)
            | Self::Unlink(_, other)
            | Self::Farewell(_, other, ..)
            | Self::Exit(_, other, _)
            | Self::Watch(_, other, _) => Some(other),
            _ => None,
        }
    }
}

impl Spec {
    pub(super) fn new() -> Self {
        Self {
            started: PROCESSES,
            ..Self::default()
        }
    }

    /// Returns whether the acting process runs, and the other process has been started.
    pub(super) fn can(&self, act: &EndAct) -> bool {
        let is_known = |it: usize| it < self.started;
        let by = act.by();
        is_known(by) && !self.ended.contains_key(&by) && act.other().is_none_or(is_known)
    }

    fn runs(&self, one: usize) -> bool {
        one < self.started && !self.ended.contains_key(&one)
    }

    fn signal(&mut self, to: usize, from: usize, cause: &ExitCause) {
        if !self.runs(to) {
            return;
        }
        if self.traps.contains(&to) {
            self.tell(to, Told::End(from, TRAPPED, cause.clone()));
        } else if !cause.is_done() {
            self.end(to, cause);
        }
    }

    fn tell(&mut self, to: usize, what: Told<usize>) {
        self.told.entry(to).or_default().push(what);
    }

    fn end(&mut self, one: usize, cause: &ExitCause) {
        if !self.runs(one) {
            return;
        }
        self.ended.insert(one, cause.clone());
        for group in &mut self.groups {
            group.retain(|it| *it != one);
        }
        for name in &mut self.names {
            *name = name.filter(|it| *it != one);
        }
        let ended = |it: &mut Watch| it.watcher == one || it.target == one;
        for watch in self.watches.extract_if(.., ended).collect::<Vec<_>>() {
            if watch.target == one && watch.watcher != one {
                self.tell(watch.watcher, Told::End(one, watch.tag, cause.clone()));
            }
        }
        let tied = |it: &(usize, usize)| it.0 == one || it.1 == one;
        for (a, b) in self.links.extract_if(.., tied).collect::<Vec<_>>() {
            self.signal(if a == one { b } else { a }, one, cause);
        }
    }

    fn watch(&mut self, watcher: usize, target: usize, in_order: bool, has_handle: bool) {
        self.last += 1;
        let tag = self.last;
        if in_order {
            self.in_order.insert(tag);
        }
        if !self.runs(target) {
            self.tell(watcher, Told::End(target, tag, ExitCause::NotFound));
        } else if watcher != target {
            self.watches.push(Watch {
                watcher,
                target,
                tag,
                has_handle,
            });
        }
    }

    /// Returns whether a watch with this tag may still send a notice.
    pub(super) fn is_on(&self, tag: Tag) -> bool {
        self.watches.iter().any(|it| it.tag == tag)
    }

    pub(super) fn play(&mut self, act: &EndAct) {
        self.reached = None;
        if !self.can(act) {
            return;
        }
        match *act {
            EndAct::Spawn(by, spawn) => self.spawn(by, spawn),
            EndAct::Link(a, b) if a != b => {
                if self.runs(b) {
                    self.links.insert(pair(a, b));
                } else {
                    self.signal(a, b, &ExitCause::NotFound);
                }
            }
            EndAct::Link(..) => {}
            EndAct::Unlink(a, b) => _ = self.links.remove(&pair(a, b)),
            EndAct::Trap(a, true) => _ = self.traps.insert(a),
            EndAct::Trap(a, false) => _ = self.traps.remove(&a),
            EndAct::End(a, ends) => self.end(a, &ends.cause()),
            EndAct::Farewell(a, b, numbers, ends) => {
                if self.runs(b) {
                    (0..numbers).for_each(|it| self.tell(b, Told::Number(a, it)));
                }
                self.end(a, &ends.cause());
            }
            EndAct::Exit(a, b, is_done) => self.signal(b, a, &signalled(is_done)),
            EndAct::Watch(a, b, in_order) => self.watch(a, b, in_order, true),
            EndAct::EndWatch(a) => {
                let is_its = |it: &Watch| it.watcher == a && it.has_handle;
                if let Some(at) = self.watches.iter().position(is_its) {
                    self.watches.remove(at);
                }
            }
            EndAct::Name(a, name) => self.names[name] = self.names[name].or(Some(a)),
            EndAct::Join(a, group) => self.groups[group].push(a),
            EndAct::Leave(a, group) => {
                let group = &mut self.groups[group];
                if let Some(at) = group.iter().rposition(|it| *it == a) {
                    group.remove(at);
                }
            }
            EndAct::Broadcast(a, group) => {
                let members: BTreeSet<_> = self.groups[group].iter().copied().collect();
                self.reached = Some(members.len());
                for member in members {
                    self.tell(member, Told::Number(a, 0));
                }
            }
        }
    }

    fn spawn(&mut self, by: usize, spawn: Spawn) {
        if spawn.named.is_some_and(|it| self.names[it].is_some()) {
            // Nothing is started.
            return;
        }
        let child = self.started;
        self.started += 1;
        if let Some(name) = spawn.named {
            self.names[name] = Some(child);
        }
        if spawn.linked {
            self.links.insert(pair(by, child));
        }
        if let Some(in_order) = spawn.watched {
            self.watch(by, child, in_order, false);
        }
        if let Some(ends) = spawn.ends {
            self.end(child, &ends.cause());
        }
    }
}

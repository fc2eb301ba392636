//! Processes that are alike, and how many they are.

use super::Observer;
use ganger_proc_api::Symbol;
use ganger_sched::{ProcessLook, ProcessState};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// Processes of the same type, method, label and state, in a wait for the same kind of command. A
/// leak shows in a group that only grows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Group {
    /// The name of their type.
    pub type_name: &'static str,
    /// The method of their submits.
    pub method: Symbol,
    /// The label for their accounts.
    pub label: Option<Arc<str>>,
    /// Where they are in their lives.
    pub state: ProcessState,
    /// The name of the handler of the first command that each waits for.
    pub waits_for: Option<Symbol>,
    /// How many they are.
    pub count: u64,
    /// How much waits in their mailboxes.
    pub waiting: u64,
}

type Key = (
    &'static str,
    Symbol,
    Option<Arc<str>>,
    ProcessState,
    Option<Symbol>,
);

/// Groups, while a pass collects them.
#[derive(Default)]
pub(crate) struct Collected(HashMap<Key, (u64, u64)>);

impl Collected {
    /// Sees a process at a pass.
    pub(crate) fn see(&mut self, process: ProcessLook<'_>) {
        let mut waits_for = None;
        process.each_wait(|wait| waits_for = waits_for.or(wait.name));
        let key = (
            process.type_name(),
            process.method(),
            process.label(),
            process.state(),
            waits_for,
        );
        let (count, waiting) = self.0.entry(key).or_default();
        *count += 1;
        *waiting += process.counts().map_or(0, |counts| counts.waiting);
    }

    /// Returns the groups, the largest first.
    pub(crate) fn finish(self) -> Vec<Group> {
        let group = |((type_name, method, label, state, waits_for), (count, waiting))| Group {
            type_name,
            method,
            label,
            state,
            waits_for,
            count,
            waiting,
        };
        let mut all: Vec<_> = self.0.into_iter().map(group).collect();
        all.sort_by(|a, b| {
            let key = |it: &Group| (Reverse(it.count), it.type_name, it.method);
            key(a).cmp(&key(b)).then_with(|| a.label.cmp(&b.label))
        });
        all
    }
}

impl Observer {
    /// Returns all live processes in groups, the largest first.
    ///
    /// O(processes), and memory for the groups. Blocks meanwhile.
    #[must_use]
    pub fn groups(&self) -> Vec<Group> {
        let mut groups = Collected::default();
        self.each(|it| groups.see(it));
        groups.finish()
    }
}

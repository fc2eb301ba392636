//! The names of processes as children of their supervisors.
//!
//! **Problem.** A supervisor has a name for each child, and the scheduler knows none of them. So a
//! process does not tell it, and a map of all children for each list takes memory for processes
//! that are in no answer.
//!
//! **Protocol.** Before its pass, a list goes once through the children of all supervisors, and
//! keeps the processes whose names have the text of a term. Behind the pass it goes through them
//! again, for the names of the processes in its answer.

use crate::api::{Field, Filter, Process, Term};
use crate::endpoint::observed::Shown;
use ganger_proc_api::Pid;
use ganger_supervise::each_child;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Scheduler and PID.
type Key = (u64, Pid);

/// The children whose names have the text of a term, for each term of a filter.
#[derive(Default)]
pub(super) struct Named(Vec<HashSet<Key>>);

impl Named {
    /// Finds the children for each term about names. O(children), where a term looks at names.
    pub(super) fn new(filter: &Filter, schedulers: &[Shown]) -> Self {
        let is_of_names = |it: &Term| matches!(it.field, None | Some(Field::Name));
        let mut named = Self::default();
        if !filter.terms().iter().any(is_of_names) {
            return named;
        }
        named.0.resize_with(filter.terms().len(), HashSet::new);
        for shown in schedulers {
            each_child(&shown.handle, |pid, name| {
                for (term, found) in filter.terms().iter().zip(&mut named.0) {
                    if is_of_names(term) && contains(name, &term.text) {
                        found.insert((shown.number, pid));
                    }
                }
            });
        }
        named
    }

    /// Returns whether the process is a child whose name has the text of the term in this place.
    pub(super) fn has(&self, term: usize, scheduler: u64, pid: Pid) -> bool {
        let found = self.0.get(term);
        found.is_some_and(|it| !it.is_empty() && it.contains(&(scheduler, pid)))
    }
}

/// The names of some processes, where these are children.
pub(super) struct Names(HashMap<Key, Arc<str>>);

impl Names {
    /// Finds the names of these processes. O(children).
    pub(super) fn of(processes: &HashSet<Key>, schedulers: &[Shown]) -> Self {
        let mut names = HashMap::new();
        for shown in schedulers {
            each_child(&shown.handle, |pid, name| {
                let key = (shown.number, pid);
                if processes.contains(&key) {
                    names.insert(key, Arc::clone(name));
                }
            });
        }
        Self(names)
    }

    /// Adds the name as a child behind the others.
    pub(super) fn add_to(&self, key: Key, process: &mut Process) {
        let name = self.0.get(&key).filter(|name| {
            let mut names = process.names.iter();
            !names.any(|it| **it == ***name)
        });
        process.names.extend(name.map(|it| it.to_string()));
    }
}

/// Returns whether a text has a part, which is not empty, in any case of ASCII letters.
pub(super) fn contains(text: &str, part: &str) -> bool {
    let mut windows = text.as_bytes().windows(part.len());
    windows.any(|it| it.eq_ignore_ascii_case(part.as_bytes()))
}

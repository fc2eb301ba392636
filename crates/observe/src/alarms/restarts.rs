//! Children restarting again and again, as values of alarms.
//!
//! **Protocol.** A child is known by its supervisor and its name. A look adds the growth of the
//! child's restarts, and forgets the growth of [`WINDOW`] looks ago. Nothing is kept of a child
//! without restarts. A restarted supervisor has other children.

use ganger_proc_api::Pid;
use ganger_sched::Handle;
use ganger_supervise::{ChildInfo, supervisors};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The number of looks whose restarts count.
pub(super) const WINDOW: usize = 10;

/// The most children followed at a time.
const MOST: usize = 10_000;

/// The restarted children.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    children: HashMap<(Pid, Arc<str>), Child>,
    last: u64,
    /// Whether there was a look before.
    is_there: bool,
}

#[derive(Debug)]
struct Child {
    number: u64,
    /// At the last look.
    restarts: u64,
    /// Of each look in the window, the newest last.
    new: VecDeque<u64>,
    supervisor: Arc<str>,
    cause: Option<String>,
    is_seen: bool,
}

impl Restarts {
    /// Looks at all supervisors. Gives the restarts in the window, by the numbers of the children.
    pub(super) fn look(&mut self, scheduler: &Handle) -> HashMap<u64, u64> {
        for supervisor in supervisors(scheduler) {
            for child in supervisor.children {
                if child.restarts > 0 {
                    self.see(supervisor.pid, &supervisor.label, &child);
                }
            }
        }
        self.finish()
    }

    fn see(&mut self, supervisor: Pid, label: &Arc<str>, child: &ChildInfo) {
        let cause = || child.last.as_ref().map(ToString::to_string);
        self.add((supervisor, &child.name), label, child.restarts, cause);
    }

    fn add(
        &mut self,
        (supervisor, name): (Pid, &Arc<str>),
        label: &Arc<str>,
        restarts: u64,
        cause: impl FnOnce() -> Option<String>,
    ) {
        let key = (supervisor, Arc::clone(name));
        if self.children.len() >= MOST && !self.children.contains_key(&key) {
            return;
        }
        let (last, is_there) = (&mut self.last, self.is_there);
        let child = self.children.entry(key).or_insert_with(|| {
            *last += 1;
            Child {
                number: *last,
                // Before the first look is before the window.
                restarts: if is_there { 0 } else { restarts },
                new: VecDeque::new(),
                supervisor: Arc::clone(label),
                cause: None,
                is_seen: false,
            }
        });
        let new = restarts.saturating_sub(child.restarts);
        if new > 0 {
            child.cause = cause();
        }
        child.new.push_back(new);
        if child.new.len() > WINDOW {
            child.new.pop_front();
        }
        (child.restarts, child.is_seen) = (restarts, true);
    }

    fn finish(&mut self) -> HashMap<u64, u64> {
        self.is_there = true;
        let is_seen = |child: &mut Child| std::mem::take(&mut child.is_seen);
        self.children.retain(|_, child| is_seen(child));
        let value = |it: &Child| (it.number, it.new.iter().sum());
        self.children.values().map(value).collect()
    }

    /// Returns a sentence about the child.
    pub(super) fn text(&self, number: u64, value: u64) -> String {
        let mut all = self.children.iter();
        let Some(((_, name), child)) = all.find(|(_, it)| it.number == number) else {
            return format!("{value} restarts of a child");
        };
        let cause = child.cause.as_deref().unwrap_or("unknown");
        let supervisor = &child.supervisor;
        format!("{name} of {supervisor} has restarted {value} times, the last time after: {cause}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ganger_proc_api::HostName;
    use proptest::collection::vec;
    use proptest::prelude::*;

    // pins: V16
    #[test]
    fn the_restarts_of_a_child_are_those_of_the_last_looks() {
        let config = ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        let pid = Pid::new(HostName::new("h").unwrap(), 7);
        let names: [Arc<str>; 2] = ["a".into(), "b".into()];
        // The growths of each of two children at each look, and whether it is there.
        let look = || prop::option::weighted(0.95, 0..4_u64);
        proptest!(config, |(before in 0..9_u64, looks in vec([look(), look()], 0..40))| {
            let mut restarts = Restarts::default();
            let mut totals = [before; 2];
            let mut since = [0; 2];
            for end in 1..=looks.len() {
                for (at, name) in names.iter().enumerate() {
                    match looks[end - 1][at] {
                        Some(new) => totals[at] += new,
                        // Another supervisor begins to count.
                        None => (totals[at], since[at]) = (0, end),
                    }
                    if totals[at] > 0 {
                        let cause = || Some(format!("{at}"));
                        restarts.add((pid, name), name, totals[at], cause);
                    }
                }
                let values = restarts.finish();
                let is_counted = |at: &usize| totals[*at] > 0;
                prop_assert_eq!(values.len(), (0..2).filter(is_counted).count());
                for (at, name) in names.iter().enumerate().filter(|it| is_counted(&it.0)) {
                    let from = since[at].max(end.saturating_sub(WINDOW));
                    // The time before the first look does not count.
                    let new = looks[from..end].iter().enumerate();
                    let new = new.filter(|it| from + it.0 > 0);
                    let expected: u64 = new.map(|it| it.1[at].unwrap_or(0)).sum();
                    let number = restarts.children[&(pid, Arc::clone(name))].number;
                    prop_assert_eq!(values[&number], expected);
                }
            }
        });
    }
}

//! Monitors across sessions: each is told once, by the exit of its target or the end of its
//! session.

use ganger_cluster::Half;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
struct Monitor {
    session: Half,
    target: (usize, u64),
    is_told: bool,
}

#[derive(Debug)]
pub(super) struct Monitors {
    /// At the watchers, by number.
    watched: BTreeMap<u64, Monitor>,
    /// At the targets: node and number, with the session and the target.
    foreign: BTreeMap<(usize, u64), (usize, Half, u64)>,
    pub(super) alive: BTreeSet<(usize, u64)>,
    next: u64,
    pub(super) by_exit: u64,
    pub(super) by_end: u64,
}

impl Monitors {
    pub(super) fn new(nodes: usize) -> Self {
        let alive = (0..nodes).flat_map(|node| (0..4).map(move |it| (node, it)));
        Self {
            watched: BTreeMap::new(),
            foreign: BTreeMap::new(),
            alive: alive.collect(),
            next: 0,
            by_exit: 0,
            by_end: 0,
        }
    }

    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(super) fn count(&self) -> u64 {
        self.next
    }

    pub(super) fn sent(&mut self, number: u64, session: Half, target: (usize, u64)) {
        let monitor = Monitor {
            session,
            target,
            is_told: false,
        };
        self.watched.insert(number, monitor);
    }

    /// Takes a request that has come to `node`, in its session with `from`. True: the target is
    /// gone.
    pub(super) fn asked(
        &mut self,
        node: usize,
        from: usize,
        session: Half,
        number: u64,
        target: u64,
    ) -> bool {
        let is_alive = self.alive.contains(&(node, target));
        if is_alive {
            self.foreign.insert((node, number), (from, session, target));
        }
        !is_alive
    }

    /// Ends a target. Returns the notices: node, session and number.
    pub(super) fn exit(&mut self, node: usize, target: u64) -> Vec<(usize, Half, u64)> {
        if !self.alive.remove(&(node, target)) {
            return Vec::new();
        }
        let is_of =
            |(key, it): &(&(usize, u64), &(usize, Half, u64))| key.0 == node && it.2 == target;
        let told = self.foreign.iter().filter(is_of);
        let told: Vec<_> = told.map(|(key, it)| (it.0, it.1, key.1)).collect();
        for (_, _, number) in &told {
            self.foreign.remove(&(node, *number));
        }
        told
    }

    /// Notes that the exit of a target has come to the watcher.
    pub(super) fn told(&mut self, session: Half, number: u64) {
        let monitor = self.watched.get_mut(&number).expect("a known monitor");
        assert_eq!(monitor.session, session, "of monitor {number}");
        assert!(!monitor.is_told, "monitor {number} is told twice");
        monitor.is_told = true;
        self.by_exit += 1;
    }

    /// Notes the end of a session at `node`: its monitors fire, and the peer's monitors are
    /// forgotten.
    pub(super) fn ended(&mut self, node: usize, session: Half) {
        for monitor in self.watched.values_mut() {
            if monitor.session == session && !monitor.is_told {
                monitor.is_told = true;
                self.by_end += 1;
            }
        }
        self.foreign
            .retain(|key, it| key.0 != node || it.1 != session);
    }

    /// Notes the crash of a node, with its watchers and its targets.
    pub(super) fn crashed(&mut self, node: usize, halves: &[Half]) {
        self.watched.retain(|_, it| !halves.contains(&it.session));
        self.foreign.retain(|key, _| key.0 != node);
    }

    /// Checks of each monitor: the watcher is told if the session has ended, or the target, and not
    /// otherwise.
    pub(super) fn check(&self, has_ended: impl Fn(Half) -> bool) {
        for (number, monitor) in &self.watched {
            let must_be_told = has_ended(monitor.session) || !self.alive.contains(&monitor.target);
            assert_eq!(
                monitor.is_told, must_be_told,
                "monitor {number}: {monitor:?}"
            );
        }
    }
}

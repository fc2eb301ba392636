//! The ready processes, the begin of each wait, and the longest wait.

use super::mix::Mix;

/// A message to a process.
#[derive(Clone, Copy)]
pub(super) struct Send {
    pub(super) to: usize,
    pub(super) is_urgent: bool,
}

enum Phase {
    Waits,
    /// Since then.
    Ready(u64),
    Runs,
}

pub(super) struct Ledger {
    mix: Mix,
    pub(super) now: u64,
    pub(super) is_over: bool,
    /// Of each process, with how many steps it has taken.
    phases: Vec<(Phase, u64)>,
    longest: u64,
}

impl Ledger {
    /// Creates a ledger whose processes are all ready.
    pub(super) fn new(mix: &Mix) -> Self {
        Self {
            phases: mix.kinds.iter().map(|_| (Phase::Ready(0), 0)).collect(),
            mix: mix.clone(),
            now: 0,
            is_over: false,
            longest: 0,
        }
    }

    pub(super) fn processes(&self) -> usize {
        self.phases.len()
    }

    /// Sends something to a process. Returns whether the process waited, and is ready now.
    pub(super) fn reach(&mut self, process: usize) -> bool {
        let phase = &mut self.phases[process].0;
        let waited = matches!(phase, Phase::Waits);
        if waited {
            *phase = Phase::Ready(self.now);
        }
        waited
    }

    /// Begins a step; returns how long it lasts.
    pub(super) fn begin(&mut self, process: usize) -> u64 {
        if self.is_over {
            return 0;
        }
        self.note(process);
        self.phases[process].0 = Phase::Runs;
        self.mix.kinds[process].lasts
    }

    /// Ends a step; returns its sends, and whether its process continues.
    pub(super) fn end(&mut self, process: usize) -> Option<(Vec<Send>, bool)> {
        if self.is_over {
            return None;
        }
        let continues = self.mix.kinds[process].continues;
        let (phase, nth) = &mut self.phases[process];
        *phase = if continues {
            Phase::Ready(self.now)
        } else {
            Phase::Waits
        };
        *nth += 1;
        Some((self.mix.sends(process, *nth), continues))
    }

    /// Returns the longest wait, present waits included.
    pub(super) fn longest(&mut self) -> u64 {
        (0..self.phases.len()).for_each(|process| self.note(process));
        self.longest
    }

    fn note(&mut self, process: usize) {
        if let Phase::Ready(since) = self.phases[process].0
            && since >= self.mix.settled()
        {
            self.longest = self.longest.max(self.now - since);
        }
    }
}

//! Submits by several threads at once. The winner of a contested PID or of the last place is left
//! open, until all have reported their results.

use super::life::{Life, Phase};
use super::{Broken, Spec, Stage};
use crate::notes::{Number, Submitted};
use crate::plan::Start;
use ganger_proc_api::Pid;

/// A submit of a thread, and its result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) process: Number,
    pub(crate) start: Start,
    pub(crate) chosen: Option<Pid>,
    pub(crate) found: Submitted,
}

impl Spec {
    /// Lets several threads begin to submit these processes.
    pub(crate) fn crowd(&mut self, processes: &[Number]) -> Result<(), Broken> {
        self.end_dispatch()?;
        let submitted = |&process: &Number| (process, Stage::Submitted);
        self.processes.extend(processes.iter().map(submitted));
        Ok(())
    }

    /// Checks the results of all submitting threads, in the order of their submits. Meanwhile
    /// nothing else was submitted, and no process has ended.
    pub(crate) fn crowd_over(&mut self, submitters: &[Vec<Asked>]) -> Result<(), Broken> {
        let limit = self.limits.processes.unwrap_or(usize::MAX);
        if self.visible.len() > limit {
            return Err(format!("{} live at once (P13)", self.visible.len()));
        }
        // A submit that is refused for another reason may have had a place for a while; a thread
        // has a single such submit at a time.
        let takes_a_place_for_a_while = |all: &&Vec<Asked>| {
            let had = |asked: &Asked| {
                !matches!(asked.found, Submitted::Started | Submitted::LimitReached)
            };
            all.iter().any(had)
        };
        let had_places = submitters.iter().filter(takes_a_place_for_a_while).count();
        for submitter in submitters {
            let others = had_places - usize::from(takes_a_place_for_a_while(&submitter));
            for &asked in submitter {
                let may_have_been_full = self.visible.len() + others >= limit;
                if !self.is_right(asked, may_have_been_full, submitters) {
                    return Err(format!(
                        "of {submitters:?} this is wrong: {asked:?} (P1, P13, P14)"
                    ));
                }
            }
        }
        let refused = submitters.iter().flatten().map(|asked| asked.process);
        let refused: Vec<_> = refused
            .filter(|it| self.processes[it] == Stage::Submitted)
            .collect();
        self.processes
            .extend(refused.into_iter().map(|process| (process, Stage::Over)));
        Ok(())
    }

    fn is_right(&self, asked: Asked, may_have_been_full: bool, all: &[Vec<Asked>]) -> bool {
        let begun = self
            .lives
            .iter()
            .position(|life| life.process == asked.process);
        match (asked.found, begun) {
            (Submitted::Started, Some(nth)) => {
                let pid = self.lives[nth].pid;
                asked.start == Start::Well
                    && asked.chosen.is_none_or(|chosen| chosen == pid)
                    && self.visible.get(&pid) == Some(&nth)
            }
            // Another process has the PID, or had it and was refused in the end.
            (Submitted::AlreadyExists, None) => asked.chosen.is_some_and(|chosen| {
                let had = |life: &Life| {
                    life.pid == chosen && all.iter().flatten().any(|it| it.process == life.process)
                };
                self.visible.contains_key(&chosen) || self.lives.iter().any(had)
            }),
            (Submitted::LimitReached, None) => may_have_been_full,
            (found, Some(_)) => {
                found == Submitted::after(asked.start) && asked.start != Start::Well
            }
            (_, None) => false,
        }
    }

    /// Claims the PID of a process about to be initialised: no other process may have it (P14).
    pub(super) fn claim(&mut self, pid: Pid) -> Result<(), Broken> {
        let is_starting = |life: &Life| {
            let is_open = matches!(self.processes.get(&life.process), Some(Stage::Open(_)));
            life.pid == pid && life.phase == Phase::Starting && is_open
        };
        if self.lives.iter().any(is_starting) {
            return Err(format!("{pid} is being started already (P14)"));
        }
        match self.visible.get(&pid) {
            // The submit that was rolled back need not have returned yet.
            Some(&nth) if self.lives[nth].phase == Phase::RolledBack || self.has_failed(nth) => {
                self.visible.remove(&pid);
                Ok(())
            }
            Some(_) => Err(format!("{pid} is there already (P14)")),
            None => Ok(()),
        }
    }
}

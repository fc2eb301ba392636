//! The right results of calls.

use super::life::Life;
use super::{Broken, Spec, Stage};
use crate::notes::{End, Finished, Heir, Number, Seen, Sent, Submitted, Upgraded};
use crate::plan::Start;
use ganger_proc_api::Pid;
use std::time::Duration;

impl Spec {
    /// Submits a process, under a chosen PID if given, by the process `by` or from outside.
    pub(crate) fn submit(
        &mut self,
        process: Number,
        chosen: Option<Pid>,
        by: Option<Pid>,
        start: Start,
    ) -> Result<Submitted, Broken> {
        self.end_dispatch()?;
        // A process whose `init` has failed makes room before its submit returns.
        let counted = self.visible.len();
        let failed = self.visible.values().filter(|&&nth| self.has_failed(nth));
        let sure = counted - failed.count();
        let limit = self.limits.processes.unwrap_or(usize::MAX);
        let is_full = sure >= limit;
        if !is_full && counted >= limit {
            self.perhaps_full.insert(process);
        }
        let parent = by.and_then(|by| self.open(by)).map(|it| it.is_prepared());
        if let Some(is_left_alone) = parent.filter(|_| self.is_stopping) {
            // At the deadline it is refused as well.
            self.in_the_stop.insert(process, is_left_alone);
        }
        let refused = if self.is_stopping && parent.is_none() {
            Some(Submitted::Stopping)
        } else if is_full {
            Some(Submitted::LimitReached)
        } else {
            let is_taken = chosen.is_some_and(|pid| self.visible.contains_key(&pid));
            is_taken.then_some(Submitted::AlreadyExists)
        };
        let stage = if refused.is_some() {
            Stage::Over
        } else {
            Stage::Submitted
        };
        self.processes.insert(process, stage);
        Ok(refused.unwrap_or(Submitted::after(start)))
    }

    /// Notes the refusal of a process because of the limit, or because the stop has passed its
    /// deadline by now. Returns whether such an unexpected refusal may be right.
    pub(crate) fn was_refused(&mut self, process: Number, found: Submitted, now: Duration) -> bool {
        let may_be = match found {
            Submitted::LimitReached => self.perhaps_full.remove(&process),
            Submitted::Stopping => {
                let may_force = self.deadline.is_some_and(|deadline| deadline <= now);
                may_force && self.in_the_stop.remove(&process).is_some()
            }
            _ => false,
        };
        if may_be {
            self.processes.insert(process, Stage::Over);
        }
        may_be
    }

    /// Sends a message or a control message.
    pub(crate) fn send(&mut self, to: Pid, seen: Seen) -> Result<Sent, Broken> {
        self.end_dispatch()?;
        let limit = self.limits.mailbox;
        let nobody = if self.has_halted {
            Sent::Stopping
        } else {
            Sent::NotFound
        };
        let Ok(life) = self.find(to) else {
            return Ok(nobody);
        };
        if !life.is_open() {
            return Ok(Sent::Closed);
        }
        let places = &mut life.places[usize::from(seen.is_system())];
        if limit.is_some_and(|limit| *places >= limit) {
            return Ok(Sent::Full);
        }
        *places += 1;
        life.put(seen);
        Ok(Sent::Accepted)
    }

    /// Asks a process to finish; returns whether it is there.
    pub(crate) fn cancel(&mut self, pid: Pid, number: Number) -> Result<bool, Broken> {
        self.end_dispatch()?;
        let Some(life) = self.open(pid) else {
            return Ok(false);
        };
        life.is_cancelled = true;
        life.put(Seen::Cancel(number));
        Ok(true)
    }

    /// Terminates a process; returns whether it is there. Handlers terminate processes as well,
    /// while yields are dispatched.
    pub(crate) fn terminate(&mut self, pid: Pid) -> Result<bool, Broken> {
        let Some(life) = self.open(pid) else {
            return Ok(false);
        };
        life.is_terminating = true;
        Ok(true)
    }

    /// Lets a process monitor another or itself; returns whether the target is there. If not, a
    /// notice comes at once.
    pub(crate) fn monitor(
        &mut self,
        watcher: Pid,
        target: Pid,
        tag: Number,
    ) -> Result<bool, Broken> {
        self.end_dispatch()?;
        let &watcher = (self.visible.get(&watcher))
            .ok_or_else(|| format!("{watcher} is not there, and monitors {target}"))?;
        let Some(life) = self.open(target) else {
            self.tell_of_end(vec![(watcher, tag)], None);
            return Ok(false);
        };
        life.watchers.push((watcher, tag));
        Ok(true)
    }

    /// Takes a monitor back. Its tag is unique.
    pub(crate) fn demonitor(&mut self, target: Pid, tag: Number) -> Result<(), Broken> {
        self.end_dispatch()?;
        if let Some(life) = self.open(target) {
            life.watchers.retain(|&(_, other)| other != tag);
        }
        Ok(())
    }

    /// Notifies the watchers of an end, but for ended watchers.
    pub(super) fn tell_of_end(&mut self, watchers: Vec<(usize, Number)>, end: Option<End>) {
        for (watcher, tag) in watchers {
            let life = &mut self.lives[watcher];
            if life.is_open() {
                life.put(Seen::Exit(tag, end.map(End::as_told)));
            }
        }
    }

    /// Asks a process to become another.
    pub(crate) fn upgrade(&mut self, pid: Pid, heir: Heir) -> Result<Upgraded, Broken> {
        self.end_dispatch()?;
        let result = match (heir, self.open(pid)) {
            (Heir::UnknownFactory, _) => Upgraded::UnknownFactory,
            (_, None) => Upgraded::NotFound,
            (heir, Some(life)) => {
                life.put_upgrade(heir);
                Upgraded::Accepted
            }
        };
        let stage = match result {
            Upgraded::Accepted => Stage::Offered,
            _ => Stage::Over,
        };
        self.offer(heir, stage);
        Ok(result)
    }

    /// Notes the use or the drop of a yield's completer.
    pub(crate) fn complete(&mut self, yielded: Number, how: Finished) -> Result<(), Broken> {
        self.end_dispatch()?;
        self.finish_yield(yielded, how)
    }

    /// Stops the scheduler: every process is cancelled, and after the deadline the live processes
    /// are forced to end.
    pub(crate) fn stop(&mut self, deadline: Duration) -> Result<(), Broken> {
        self.end_dispatch()?;
        if !self.is_stopping {
            for &nth in self.visible.values() {
                let life = &mut self.lives[nth];
                life.is_counted = true;
                life.is_cancelled = true;
                life.put(Seen::Shutdown);
            }
            self.told[0] = self.visible.len() as u64;
        }
        self.is_stopping = true;
        let sooner = self.deadline.map_or(deadline, |other| other.min(deadline));
        self.deadline = Some(sooner);
        Ok(())
    }

    /// Returns whether the receivers may have ended because of a stop of the scheduler.
    pub(crate) fn may_have_halted(&self) -> bool {
        self.is_stopping
    }

    /// Checks the report of the call that stops the scheduler.
    pub(crate) fn stopped(&mut self, completed: u64, forced: u64) -> Result<(), Broken> {
        self.end_dispatch()?;
        self.has_halted = true;
        let [all, at_least, maybe] = self.told;
        if completed + forced == all && (at_least..=at_least + maybe).contains(&forced) {
            return Ok(());
        }
        Err(format!(
            "reported: {completed} completed and {forced} forced of {all}, of whom {at_least} \
             were forced, and {maybe} may have been (D3)"
        ))
    }

    /// Notes a process made by a factory.
    pub(crate) fn made(&mut self, process: Number) {
        self.processes.insert(process, Stage::Offered);
    }

    /// Notes the successor of a process.
    pub(super) fn offer(&mut self, heir: Heir, stage: Stage) {
        if let Heir::Process(process) = heir {
            self.processes.insert(process, stage);
        }
    }

    /// Returns the life of a process that still takes events.
    fn open(&mut self, pid: Pid) -> Option<&mut Life> {
        self.find(pid).ok().filter(|life| life.is_open())
    }

    /// Gives a yield its completion. Unless it is still outstanding, the completion is stale.
    pub(super) fn finish_yield(&mut self, yielded: Number, how: Finished) -> Result<(), Broken> {
        let yields = &self.yields;
        let &(nth, _) = (yields.get(&yielded)).ok_or_else(|| format!("no yield is {yielded}"))?;
        let life = &mut self.lives[nth];
        if life.is_open() {
            life.put(Seen::Completion(yielded, how));
        } else {
            self.counts.stale_completions += 1;
        }
        Ok(())
    }
}

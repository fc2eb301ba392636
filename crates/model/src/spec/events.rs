//! The events that may happen to a process, and when.

use super::life::{Life, Phase, messages_among};
use super::{Broken, Limits, Spec, Stage};
use crate::notes::{End, Finished, Heir, Number, Outcome, Seen};
use crate::plan::{Kind, Start};
use ganger_proc_api::Pid;
use std::mem;
use std::time::Duration;

impl Spec {
    /// Begins the `init` of a process that has been submitted or takes another's place.
    pub(super) fn init(&mut self, pid: Pid, process: Number, start: Start) -> Result<(), Broken> {
        let stage = self.processes.get(&process).copied();
        if start == Start::InitPanics {
            self.counts.panics += 1;
        }
        match stage {
            Some(Stage::Submitted) => {
                self.claim(pid)?;
                let nth = self.lives.len();
                let mut life = Life::new(pid, process);
                match self.in_the_stop.get(&process) {
                    Some(true) => life.is_left_alone = true,
                    Some(false) => life.may_be_told = true,
                    None => {}
                }
                self.lives.push(life);
                self.visible.insert(pid, nth);
                let fails = matches!(start, Start::InitFails | Start::InitPanics);
                let stage = if fails { Stage::Over } else { Stage::Open(nth) };
                self.processes.insert(process, stage);
                Ok(())
            }
            Some(Stage::Offered) => self.init_heir(pid, process, start),
            _ => Err(format!(
                "{process} is initialised, and should not be (P1, P11)"
            )),
        }
    }

    fn init_heir(&mut self, pid: Pid, process: Number, start: Start) -> Result<(), Broken> {
        let &nth = (self.visible.get(&pid)).ok_or_else(|| format!("{pid} is not there (P11)"))?;
        let life = &mut self.lives[nth];
        let is_meant = |heir| heir == Heir::Process(process) || heir == Heir::Made;
        match life.phase {
            Phase::Becomes(heir) if is_meant(heir) => {}
            Phase::Waits if life.next_upgrade().is_some_and(is_meant) && !life.is_terminating => {
                life.take_upgrade();
            }
            phase => return Err(format!("an upgrade of {pid}, which is at {phase:?} (P11)")),
        }
        let (phase, stage) = match start {
            Start::InitFails => (Phase::Ends(End::HeirFailed), Stage::Over),
            Start::InitPanics => (Phase::Ends(End::HeirPanicked), Stage::Over),
            _ => (Phase::Replaced(process), Stage::Open(nth)),
        };
        life.phase = phase;
        self.processes.insert(process, stage);
        Ok(())
    }

    /// Checks a call of the hook of a start.
    pub(super) fn started(&mut self, pid: Pid) -> Result<(), Broken> {
        let newest = self.lives.iter().rposition(|life| life.pid == pid);
        let nth = newest.filter(|&nth| self.lives[nth].phase == Phase::Starting);
        let nth = nth.ok_or_else(|| format!("{pid} is started without an init (P1)"))?;
        if self.visible.get(&pid) != Some(&nth) {
            return Err(format!("{pid} is started, and is not there (P1)"));
        }
        Ok(())
    }

    /// Notes the return of the hook.
    pub(crate) fn hook_returns(&mut self, pid: Pid, start: Start) -> Result<(), Broken> {
        let is_stopping = self.is_stopping;
        let life = self.find(pid)?;
        let is_counted = start == Start::Well && is_stopping;
        life.is_counted |= is_counted;
        match start {
            Start::Refused | Start::HookPanics => life.phase = Phase::Refused,
            _ => life.phase = Phase::Waits,
        }
        self.counts.panics += u64::from(start == Start::HookPanics);
        self.counts.started += u64::from(start == Start::Well);
        self.told[0] += u64::from(is_counted);
        Ok(())
    }

    /// Notes the return of a submit whose process has failed in its `init`, or was refused by the
    /// hook. The PID is gone.
    pub(crate) fn rolled_back(&mut self, process: Number) -> Result<(), Broken> {
        let nth = self.lives.iter().position(|life| life.process == process);
        let nth = nth.ok_or_else(|| format!("{process} was not initialised (P1)"))?;
        if self.has_failed(nth) {
            self.roll_back(nth);
        }
        let Life { pid, phase, .. } = self.lives[nth];
        if phase != Phase::RolledBack {
            return Err(format!(
                "{process} has been refused, and is not closed (P1)"
            ));
        }
        // Another process may have the PID already.
        if self.visible.get(&pid) == Some(&nth) {
            self.visible.remove(&pid);
        }
        Ok(())
    }

    /// Begins a step.
    pub(super) fn step(&mut self, pid: Pid, process: Number, shown: &[Seen]) -> Result<(), Broken> {
        let Limits { batch, mailbox, .. } = self.limits;
        let life = self.find(pid)?;
        let messages = messages_among(shown);
        if mailbox.is_some_and(|limit| messages > limit) {
            return Err(format!("{pid} has {messages} messages at once (P13)"));
        }
        if life.process != process {
            return Err(format!("{pid} is {}, not {process} (P11)", life.process));
        }
        if life.phase != Phase::Waits {
            return Err(format!(
                "a step of {pid}, which is at {:?} (G1)",
                life.phase
            ));
        }
        if life.is_terminating {
            return Err(format!("a step of {pid}, which has been terminated (P9)"));
        }
        life.phase = Phase::Steps;
        let stale = life.show(shown, batch);
        self.counts.stale_completions += stale.map_err(|broken| format!("{pid}: {broken}"))?;
        Ok(())
    }

    /// Ends a step.
    pub(super) fn stepped(
        &mut self,
        pid: Pid,
        yields: &[(Number, Kind)],
        outcome: Outcome,
        defers: bool,
    ) -> Result<(), Broken> {
        let limit = self.limits.mailbox;
        let life = self.find(pid)?;
        if life.phase != Phase::Steps {
            return Err(format!("{pid} ends a step that has not begun"));
        }
        life.give_places();
        life.serve(limit);
        let cancelled = life.cancel.take().filter(|_| !defers);
        life.phase = match (outcome, cancelled) {
            (Outcome::Waits | Outcome::GoesOn, Some(end)) => Phase::Ends(end),
            (Outcome::Waits, None) => Phase::Waits,
            (Outcome::GoesOn, None) => {
                life.must_step = true;
                Phase::Waits
            }
            (Outcome::Finishes(number), _) => Phase::Ends(End::Done(number)),
            (Outcome::Fails(number), _) => Phase::Ends(End::Failed(number)),
            (Outcome::Panics(number), _) => Phase::Ends(End::Panicked(number)),
            (Outcome::Becomes(heir), _) => Phase::Becomes(heir),
        };
        if let Outcome::Panics(_) = outcome {
            self.counts.panics += 1;
            return Ok(());
        }
        life.dispatching.extend(yields);
        life.outstanding
            .extend(yields.iter().map(|&(yielded, _)| yielded));
        if let Outcome::Becomes(heir) = outcome {
            self.offer(heir, Stage::Offered);
        }
        let nth = self.visible[&pid];
        self.counts.yields += yields.len() as u64;
        self.yields
            .extend(yields.iter().map(|&(yielded, kind)| (yielded, (nth, kind))));
        self.dispatching = Some(nth);
        Ok(())
    }

    /// Checks a call of the handler of a yield.
    pub(super) fn handled(&mut self, yielded: Number) -> Result<(), Broken> {
        let nth = self.dispatching.ok_or("a handler is called for nothing")?;
        self.finish_unknown(nth)?;
        let Some((next, kind)) = self.lives[nth].dispatching.pop_front() else {
            return Err(format!("the handler of {yielded} is called twice (P6)"));
        };
        if next != yielded {
            return Err(format!("{yielded} is dispatched before {next} (P3)"));
        }
        self.counts.panics += u64::from(kind == Kind::Panics);
        match Finished::by(kind) {
            Some(how) => self.finish_yield(yielded, how),
            None => Ok(()),
        }
    }

    /// Checks that all yields of a step have been dispatched before any other event.
    pub(super) fn end_dispatch(&mut self) -> Result<(), Broken> {
        let Some(nth) = self.dispatching.take() else {
            return Ok(());
        };
        self.finish_unknown(nth)?;
        match self.lives[nth].dispatching.front() {
            Some((yielded, _)) => Err(format!("{yielded} is not dispatched (P3)")),
            None => Ok(()),
        }
    }

    /// Finishes the next yields without a handler.
    fn finish_unknown(&mut self, nth: usize) -> Result<(), Broken> {
        while let Some(&(yielded, Kind::Unknown)) = self.lives[nth].dispatching.front() {
            self.lives[nth].dispatching.pop_front();
            self.finish_yield(yielded, Finished::Unknown)?;
        }
        Ok(())
    }

    /// Begins `close`.
    pub(super) fn closed(&mut self, process: Number, now: Duration) -> Result<(), Broken> {
        let Some(Stage::Open(nth)) = self.processes.insert(process, Stage::Over) else {
            return Err(format!("{process} is closed, and should not be (P2)"));
        };
        let may_force = self.deadline.is_some_and(|deadline| deadline <= now);
        let life = &mut self.lives[nth];
        if life.process != process {
            return Err(format!("{process} is closed before {} (P11)", life.process));
        }
        let failure = life.next_upgrade().and_then(Heir::failure);
        life.phase = match (life.phase, failure) {
            (Phase::Replaced(heir), _) => {
                life.process = heir;
                self.counts.stale_completions += life.become_heir();
                self.counts.upgrades += 1;
                Phase::Waits
            }
            (Phase::Becomes(heir), _) => match heir.failure() {
                Some(end) => Phase::Closes(end),
                None => {
                    return Err(format!(
                        "{process} is closed before its heir is there (P11)"
                    ));
                }
            },
            (Phase::Ends(end), _) => Phase::Closes(end),
            (Phase::Waits, _) if life.is_terminating => Phase::Closes(End::Terminated),
            (Phase::Waits, Some(end)) => Phase::Closes(end),
            (Phase::Waits, None) if may_force => Phase::Closes(End::Terminated),
            (Phase::Refused, _) => {
                self.roll_back(nth);
                return Ok(());
            }
            (phase, _) => return Err(format!("{process} is closed at {phase:?} (P2)")),
        };
        Ok(())
    }

    /// Returns whether the `init` of a submitted process has failed.
    pub(super) fn has_failed(&self, nth: usize) -> bool {
        let Life { phase, process, .. } = self.lives[nth];
        phase == Phase::Starting && self.processes.get(&process) == Some(&Stage::Over)
    }

    /// Rolls back the start of a process.
    fn roll_back(&mut self, nth: usize) {
        let life = &mut self.lives[nth];
        self.counts.undelivered += life.unseen().0;
        let watchers = mem::take(&mut life.watchers);
        life.phase = Phase::RolledBack;
        self.tell_of_end(watchers, None);
    }

    /// Checks a call of the hook of an end: the PID is free.
    pub(super) fn ended(&mut self, pid: Pid, end: End, now: Duration) -> Result<(), Broken> {
        let may_force = self.deadline.is_some_and(|deadline| deadline <= now);
        let life = self.find(pid)?;
        let Phase::Closes(expected) = life.phase else {
            return Err(format!("{pid} ends at {:?} (P2)", life.phase));
        };
        let expected = match expected {
            End::Done(_) | End::Cancelled(_) if life.is_terminating => End::Terminated,
            expected => expected,
        };
        let is_upgrade = matches!(expected, End::FactoryPanicked | End::FactoryUnknown);
        let is_forced = end == End::Terminated && is_upgrade && may_force;
        if end != expected && !is_forced {
            return Err(format!("{pid} ends with {end:?} instead of {expected:?}"));
        }
        let (is_counted, was_terminated) = (life.is_counted, life.is_terminating);
        let (messages, completions) = life.unseen();
        let watchers = mem::take(&mut life.watchers);
        self.visible.remove(&pid);
        let counts = &mut self.counts;
        counts.undelivered += messages;
        counts.stale_completions += completions;
        counts.panics += u64::from(end == End::FactoryPanicked);
        let count = match end {
            End::Done(_) => &mut counts.done,
            End::Cancelled(_) => &mut counts.cancelled,
            End::Failed(_) => &mut counts.failed,
            End::Panicked(_) => &mut counts.panicked,
            End::Terminated => &mut counts.terminated,
            _ => &mut counts.upgrades_failed,
        };
        *count += 1;
        self.tell_of_end(watchers, Some(end));
        if is_counted && end == End::Terminated {
            self.told[if was_terminated { 2 } else { 1 }] += 1;
        }
        Ok(())
    }
}

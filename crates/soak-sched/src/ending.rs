//! The end of a scheduler with live processes: its report is compared with the processes' ends.

use crate::actor::{Behaviour, Mail, Next, Turn};
use crate::commands::Ask;
use crate::plan::Ending;
use crate::sink::Sink;
use crate::site::{Site, wait};
use crate::watch::Watch;
use fastrand::Rng;
use ganger::{BoxError, ExitReason, Pid, ProcessHandle, StopReport, SubmitErrorKind};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Has a last command carried out before it finishes.
struct Asynchronous;

impl Behaviour for Asynchronous {
    fn turn(&mut self, mail: Vec<Mail>, turn: &mut Turn<'_>) -> Result<Next, BoxError> {
        for mail in mail {
            match mail {
                Mail::Cancel => {
                    turn.defers = true;
                    turn.ask(Ask::Later);
                }
                Mail::Answer => return Ok(Next::Done(0)),
                Mail::Parcel(_) | Mail::Timer(_) => {}
            }
        }
        Ok(Next::Wait)
    }
}

/// Does not finish.
struct Stubborn;

impl Behaviour for Stubborn {
    fn turn(&mut self, _: Vec<Mail>, turn: &mut Turn<'_>) -> Result<Next, BoxError> {
        turn.defers = true;
        Ok(Next::Wait)
    }
}

/// Stays in its step until the gate opens.
struct Stuck(Arc<Gate>);

impl Behaviour for Stuck {
    fn turn(&mut self, _: Vec<Mail>, turn: &mut Turn<'_>) -> Result<Next, BoxError> {
        turn.ctx.blocking(|| self.0.pass());
        Ok(Next::Done(0))
    }
}

/// Where steps are stuck.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    opens: Condvar,
    inside: AtomicU64,
}

impl Gate {
    fn pass(&self) {
        // Ordering: Release pairs with the Acquire in `inside`.
        self.inside.fetch_add(1, Ordering::Release);
        let mut is_open = self.is_open.lock().unwrap_or_else(PoisonError::into_inner);
        while !*is_open {
            is_open = self
                .opens
                .wait(is_open)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn open(&self) {
        *self.is_open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.opens.notify_all();
    }

    /// Returns how many have got there.
    fn inside(&self) -> u64 {
        // Ordering: Acquire pairs with the Release in `pass`.
        self.inside.load(Ordering::Acquire)
    }
}

/// Starts the processes, stops the scheduler, and checks the end of each process. Settles the
/// account after the stop.
pub(crate) fn run(site: &Site, watch: &Watch, plan: &Ending) -> Result<(), String> {
    let gate = Arc::<Gate>::default();
    let mut random = Rng::with_seed(plan.seed);
    let gentle = site.kit(Default::default());
    let submit_all = |random: &mut Rng, count, behaviour: &dyn Fn() -> Box<dyn Behaviour>| {
        let submit = |_| site.submit_surely(&gentle, random, behaviour);
        (0..count).map(submit).collect::<Vec<ProcessHandle>>()
    };
    let mut handles = submit_all(&mut random, plan.prompt, &|| Box::new(Sink));
    handles.extend(submit_all(&mut random, plan.asynchronous, &|| {
        Box::new(Asynchronous)
    }));
    handles.extend(submit_all(&mut random, plan.stubborn, &|| {
        Box::new(Stubborn)
    }));
    // Without a spare for a blocking step's worker, the second stuck process may never start its
    // step.
    let stuck = submit_all(&mut random, plan.stuck, &|| {
        Box::new(Stuck(Arc::clone(&gate)))
    });
    let held: BTreeSet<Pid> = stuck.iter().map(ProcessHandle::pid).collect();
    if !stuck.is_empty() {
        watch.until("a step is stuck", || gate.inside() > 0);
    }
    handles.extend(stuck);
    if plan.by_drop {
        // The caller drops the scheduler, which waits for all processes.
        return Ok(());
    }
    let alive = handles.len() as u64;
    let report = {
        let _waits = watch.wait("the round waits for `stop`".to_owned());
        let deadline = Duration::from_millis(plan.deadline_ms);
        site.runtime
            .stop(deadline)
            .map_err(|error| error.to_string())?
    };
    gate.open();
    let exits: Vec<(Pid, ExitReason)> = handles
        .into_iter()
        .map(|handle| (handle.pid(), wait(watch, handle)))
        .collect();
    check(&report, alive, &held, &exits)?;
    if plan.is_bound_to_end() && (report.forced > 0 || !report.stuck.is_empty()) {
        return Err(format!("all were bound to end: {report:?}, {exits:?}\n"));
    }
    match site.runtime.submit(gentle.actor(Sink, 0), "late", ()) {
        Err(error) if matches!(error.kind, SubmitErrorKind::Stopping) => {
            site.account.refused.bump();
        }
        other => return Err(format!("submitted after a stop: {other:?}\n")),
    }
    let again = site.runtime.stop(Duration::ZERO);
    let again = again.map_err(|error| error.to_string())?;
    if again != report {
        return Err(format!(
            "{report:?} was the report of a stop that says {again:?} now\n"
        ));
    }
    Ok(())
}

/// Compares the report with the ends of the processes.
fn check(
    report: &StopReport,
    alive: u64,
    held: &BTreeSet<Pid>,
    exits: &[(Pid, ExitReason)],
) -> Result<(), String> {
    let fault = |what: &str| {
        Err(format!(
            "{what}: {report:?}, with {alive} alive: {exits:?}\n"
        ))
    };
    let stuck = report.stuck.len() as u64;
    if report.completed + report.forced + stuck != alive {
        return fault("the report does not add up");
    }
    // A process in the middle of a step may count as stuck, and end in either way.
    let is_exact = report.closing == 0 && report.stuck.iter().all(|it| held.contains(&it.pid));
    let others = exits.iter().filter(|(pid, _)| !report.is_stuck(*pid));
    let done = others.filter(|(_, exit)| exit.is_done()).count() as u64;
    if is_exact && done != report.completed {
        return fault("others have completed than the report says");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ganger::Payload;
    use ganger::StoppedProcess;

    fn pid(id: u64) -> Pid {
        format!("{{main|{id}}}").parse().unwrap()
    }

    /// Returns two processes that finished, a forced process, and a stuck process.
    fn exits() -> Vec<(Pid, ExitReason)> {
        let done = |id| (pid(id), ExitReason::Done(Payload::UNIT));
        let ended = |id| (pid(id), ExitReason::Terminated);
        vec![done(1), done(2), ended(3), done(4)]
    }

    fn report(completed: u64, forced: u64, stuck: &[Pid]) -> StopReport {
        let mut report = StopReport::default();
        (report.completed, report.forced) = (completed, forced);
        report.stuck = stuck
            .iter()
            .map(|pid| StoppedProcess::unknown(*pid))
            .collect();
        report
    }

    #[test]
    fn a_report_that_says_what_has_happened_is_right() {
        let held = BTreeSet::from([pid(4)]);
        assert_eq!(check(&report(2, 1, &[pid(4)]), 4, &held, &exits()), Ok(()));
    }

    #[test]
    fn one_that_says_something_else_is_not() {
        let held = BTreeSet::from([pid(4)]);
        let check = |report: StopReport| check(&report, 4, &held, &exits()).unwrap_err();
        let error = check(report(2, 2, &[pid(4)]));
        assert!(error.starts_with("the report does not add up"), "{error}");
        let error = check(report(1, 2, &[pid(4)]));
        assert!(error.starts_with("others have completed"), "{error}");
    }
}

//! A process, as the API has it.

use super::children::Names;
use super::{count, nanos};
use crate::api::{Process, ProcessCounts, State, Wait};
use crate::endpoint::observed::Shown;
use crate::observer::one::{WATCHERS, add_monitors, restarts_of};
use ganger_link::links_of;
use ganger_proc_api::Pid;
use ganger_sched::{ProcessLook, ProcessState};
use std::collections::HashSet;

/// The most processes of a scheduler for a look for monitors among them: a page asks once a second,
/// and the look in a larger scheduler takes too long.
const WALKED: usize = 4_096;

/// The most watchers, and watched processes, with their PIDs in an answer.
const SHOWN: usize = 100;

/// Describes a process by all but the fields of a single process. This thread stands in for the
/// process's worker for a moment, when the process waits.
pub(super) fn process(scheduler: u64, look: ProcessLook<'_>) -> Process {
    let info = look.info();
    let mut waits = Vec::new();
    look.each_wait(|it| waits.push(wait(it)));
    Process {
        scheduler,
        pid: info.pid.to_string(),
        state: state(info.state),
        method: info.method.to_string(),
        type_name: info.type_name.to_owned(),
        names: info.names.iter().map(|it| it.to_string()).collect(),
        parent: info.parent.map(|it| it.to_string()),
        incarnation: info.incarnation,
        is_cancelled: info.is_cancelled,
        is_terminating: info.is_terminating,
        left: count(info.left),
        queued: info.queued.map(count),
        quiet_ns: info.ran_before.map(nanos),
        label: look.label().map(|it| it.to_string()),
        counts: look.counts().map(counts),
        value: None,
        waits,
        links: Vec::new(),
        monitors: None,
        monitored: Vec::new(),
        watched_by: None,
        watchers: Vec::new(),
        restarts: None,
        last_cause: None,
        bytes: None,
    }
}

/// Describes a process with all of its fields.
pub(in crate::endpoint) fn single(scheduler: &Shown, pid: Pid) -> Option<Process> {
    let handle = &scheduler.handle;
    let looked = |it: ProcessLook<'_>| {
        let watchers = it.watchers(WATCHERS);
        (process(scheduler.number, it), watchers, it.bytes())
    };
    let (mut process, watchers, bytes) = handle.look_at(pid, looked)?;
    let key = (scheduler.number, pid);
    let names = Names::of(&HashSet::from([key]), std::slice::from_ref(scheduler));
    names.add_to(key, &mut process);
    process.links = texts(links_of(handle, pid));
    process.bytes = bytes.map(count);
    if let Some(watchers) = watchers {
        process.watched_by = Some(count(watchers.processes.len() + watchers.outside));
        process.watchers = texts(watchers.processes.into_iter().take(SHOWN));
    }
    if handle.stats().live <= WALKED {
        let mut monitors = Vec::new();
        handle.each_process(|it| add_monitors(&mut monitors, pid, it));
        process.monitors = Some(count(monitors.len()));
        process.monitored = texts(monitors.into_iter().take(SHOWN));
        if let Some((restarts, last)) = restarts_of(handle, pid) {
            process.restarts = Some(restarts);
            process.last_cause = last.map(|it| it.to_string());
        }
    }
    Some(process)
}

fn texts(pids: impl IntoIterator<Item = Pid>) -> Vec<String> {
    pids.into_iter().map(|it| it.to_string()).collect()
}

fn wait(wait: ganger_sched::Wait) -> Wait {
    Wait {
        command: wait.command.map(|it| it.get()),
        name: wait.name.map(|it| it.to_string()),
        tag: wait.tag,
        since_ns: nanos(wait.since),
    }
}

fn counts(counts: ganger_sched::ProcessCounts) -> ProcessCounts {
    ProcessCounts {
        turns: counts.turns,
        steps: counts.steps,
        events: counts.events,
        waiting: counts.waiting,
        busy_ns: nanos(counts.busy),
        longest_step_ns: nanos(counts.longest),
        age_ns: nanos(counts.age),
    }
}

pub(super) fn state(state: ProcessState) -> State {
    match state {
        ProcessState::Ready => State::Ready,
        ProcessState::Running => State::Running,
        ProcessState::Blocked => State::Blocked,
        ProcessState::Idle => State::Idle,
        ProcessState::Suspended => State::Suspended,
        _ => State::Other,
    }
}

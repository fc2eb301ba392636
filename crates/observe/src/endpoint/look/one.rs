//! A process, as the API has it.

use super::{count, nanos};
use crate::api::{Process, ProcessCounts, State, Wait};
use ganger_sched::{ProcessLook, ProcessState};

/// All but the fields of a single process. This thread stands in for the process's worker for a
/// moment, when the process waits.
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
        watched_by: None,
    }
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

//! Looks at schedulers: makes the answers of the API from their handles. No worker of an observed
//! scheduler waits for a look.

use super::observed::Shown;
use crate::api::{
    By, Field, Filter, Letter, Letters, LongStep, Process, Processes, ProcessesQuery, Scheduler,
    SchedulerLetters, Snapshot, State, Term, Threads, Timers, VERSION,
};
use crate::letters;
use crate::metrics::{self, Families};
use crate::observer::Observer;
use ganger_proc_api::Pid;
use ganger_sched::{DeadReason, LongStepKind, ProcessInfo, ProcessState};
use std::cmp::Ordering;
use std::fmt::Write as _;
use std::time::Duration;

/// The processes of a scheduler at a moment.
pub(super) struct Crowd {
    scheduler: u64,
    processes: Vec<ProcessInfo>,
}

pub(super) fn crowds(schedulers: &[Shown]) -> Vec<Crowd> {
    let crowd = |shown: &Shown| Crowd {
        scheduler: shown.number,
        processes: shown.handle.processes(),
    };
    schedulers.iter().map(crowd).collect()
}

/// The processes of a query. O(processes).
pub(super) fn processes(crowds: &[Crowd], query: &ProcessesQuery) -> Processes {
    let is_asked = |crowd: &&Crowd| query.scheduler.is_none_or(|it| it == crowd.scheduler);
    let crowds = crowds.iter().filter(is_asked);
    let live = crowds.clone().map(|crowd| crowd.processes.len()).sum();
    let each = crowds.flat_map(|crowd| {
        let with = |process| (crowd.scheduler, process);
        crowd.processes.iter().map(with)
    });
    let mut found: Vec<_> = each.filter(|it| passes(&query.filter, it.1)).collect();
    let matched = found.len();
    let top = query.top as usize;
    let order = |a: &(u64, &ProcessInfo), b: &(u64, &ProcessInfo)| order(query.by, *a, *b);
    if top < found.len() {
        found.select_nth_unstable_by(top, order);
        found.truncate(top);
    }
    found.sort_unstable_by(order);
    let processes = found.into_iter().map(|(at, it)| process(at, it)).collect();
    Processes {
        version: VERSION,
        live: count(live),
        matched: count(matched),
        processes,
    }
}

fn order(by: By, one: (u64, &ProcessInfo), other: (u64, &ProcessInfo)) -> Ordering {
    let waiting = |it: &ProcessInfo| it.left + it.queued.unwrap_or(0);
    let by = match by {
        By::Mailbox => waiting(other.1).cmp(&waiting(one.1)),
        By::Quiet => other.1.ran_before.cmp(&one.1.ran_before),
        By::Pid => Ordering::Equal,
    };
    let place = |(scheduler, it): (u64, &ProcessInfo)| (scheduler, it.pid.id());
    by.then_with(|| place(one).cmp(&place(other)))
}

/// Whether the filter lets a process pass.
fn passes(filter: &Filter, process: &ProcessInfo) -> bool {
    let mut text = String::new();
    let mut holds = |term: &Term| has(process, term, &mut text) != term.is_not;
    filter.terms().iter().all(&mut holds)
}

/// Whether a field of the process has the text. `buffer` is for PIDs.
fn has(process: &ProcessInfo, term: &Term, buffer: &mut String) -> bool {
    let part = &*term.text;
    let mut pid = |pid: Pid| {
        buffer.clear();
        // A string takes all.
        let _ = write!(buffer, "{pid}");
        contains(buffer, part)
    };
    let method = || contains(process.method.as_str(), part);
    let kind = || contains(process.type_name, part);
    let name = || process.names.iter().any(|it| contains(it, part));
    match term.field {
        None => kind() || method() || name() || pid(process.pid),
        Some(Field::State) => state(process.state).name() == part,
        Some(Field::Type) => kind(),
        Some(Field::Method) => method(),
        Some(Field::Name) => name(),
        Some(Field::Pid) => pid(process.pid),
        Some(Field::Parent) => process.parent.is_some_and(pid),
    }
}

/// Whether a text has a part, which is not empty, in any case of ASCII letters.
fn contains(text: &str, part: &str) -> bool {
    let mut windows = text.as_bytes().windows(part.len());
    windows.any(|it| it.eq_ignore_ascii_case(part.as_bytes()))
}

pub(super) fn process(scheduler: u64, info: &ProcessInfo) -> Process {
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
        label: None,
        counts: None,
        value: None,
        waits: Vec::new(),
        links: Vec::new(),
        monitors: None,
        watched_by: None,
    }
}

fn state(state: ProcessState) -> State {
    match state {
        ProcessState::Ready => State::Ready,
        ProcessState::Running => State::Running,
        ProcessState::Blocked => State::Blocked,
        ProcessState::Idle => State::Idle,
        _ => State::Other,
    }
}

pub(super) fn snapshot(schedulers: &[Shown], sequence: u64) -> Snapshot {
    Snapshot {
        version: VERSION,
        sequence,
        schedulers: schedulers.iter().map(scheduler).collect(),
    }
}

fn scheduler(shown: &Shown) -> Scheduler {
    let handle = &shown.handle;
    let (stats, timers) = (handle.stats(), handle.timers().stats());
    Scheduler {
        number: shown.number,
        host: handle.host_name().to_string(),
        node: handle.node_name().map(|it| it.to_string()),
        is_started: handle.is_started(),
        is_stopping: handle.is_stopping(),
        time_to_stop_ns: handle.time_to_stop().map(nanos),
        uptime_ns: handle.now().as_nanos(),
        live: count(stats.live),
        global_queue: count(stats.global_queue),
        threads: Threads {
            workers: count(stats.workers),
            spares: count(stats.spares),
            relieved: count(stats.relieved),
            sleeping: count(stats.sleeping),
            searching: count(stats.searching),
        },
        total: stats.total.into(),
        workers: handle.worker_stats().into_iter().map(Into::into).collect(),
        timers: Timers {
            pending: count(timers.pending),
            armed: timers.armed,
            fired: timers.fired,
            cancelled: timers.cancelled,
            refused: timers.refused,
        },
        longest_step_ns: nanos(stats.longest_step),
        long_steps: handle.long_steps().into_iter().map(long_step).collect(),
        observes: format!("{:?}", handle.observes()).to_lowercase(),
        worker_times: Vec::new(),
        distributions: None,
        alarms: Vec::new(),
    }
}

/// All metrics of all schedulers. O(processes).
pub(super) fn metrics(schedulers: &[Shown]) -> String {
    let mut families = Families::new();
    for Shown { number, handle } in schedulers {
        let (host, node) = (handle.host_name(), handle.node_name());
        let is_twin = |it: &&Shown| (it.handle.host_name(), it.handle.node_name()) == (host, node);
        let name = match schedulers.iter().filter(is_twin).count() {
            1 => host.to_string(),
            // Two series with the same labels would be one.
            _ => format!("{host}#{number}"),
        };
        families.add(&Observer::of(handle).in_haste(), name);
    }
    metrics::text(&families)
}

fn long_step(step: ganger_sched::LongStep) -> LongStep {
    LongStep {
        pid: step.pid.to_string(),
        method: step.method.map(|it| it.to_string()),
        worker: count(step.worker),
        is_blocked: step.kind == LongStepKind::Blocked,
        is_announced: step.is_announced,
        is_over: step.is_over,
        lasted_ns: nanos(step.lasted),
        backtrace: step.backtrace.map(|it| it.to_string()),
    }
}

pub(super) fn letters(schedulers: &[Shown]) -> Letters {
    let of = |shown: &Shown| SchedulerLetters {
        scheduler: shown.number,
        host: shown.handle.host_name().to_string(),
        undelivered: shown.handle.stats().total.undelivered,
        refused: shown.handle.timers().stats().refused,
        last: letters::last(&shown.handle).map(|it| it.iter().map(letter).collect()),
    };
    Letters {
        version: VERSION,
        schedulers: schedulers.iter().map(of).collect(),
    }
}

fn letter(letter: &ganger_sched::DeadLetter) -> Letter {
    let reason = match letter.reason {
        DeadReason::Ended => "ended",
        DeadReason::LateEnded => "late_ended",
        DeadReason::LateFull => "late_full",
        _ => "late_refused",
    };
    Letter {
        reason: reason.to_owned(),
        source: letter.source.map(|it| it.to_string()),
        target: letter.target.to_string(),
        topic: letter.topic.to_string(),
        at_ns: letter.at.as_nanos(),
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ganger_proc_api::process_fn;
    use ganger_sched::{Scheduler, WorkerStats};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const TYPES: [&str; 3] = ["store::Shelf", "store::Door", "Worker<u64>"];

    /// The drawn parts of a process: type, state, name, left, queued, quiet.
    type Drawn = (usize, usize, bool, usize, Option<usize>, Option<u64>);

    fn drawn() -> impl Strategy<Value = Drawn> {
        let few = || prop::option::of(0_usize..4);
        let quiet = prop::option::of(0_u64..4);
        (
            0..3_usize,
            0..4_usize,
            any::<bool>(),
            0..4_usize,
            few(),
            quiet,
        )
    }

    fn queries() -> impl Strategy<Value = String> {
        let term = "-?(shelf|STORE|u64|type:store|state:idle|state:ready|name:door|pid:7|parent:5)";
        let filter = vec(term, 0..4).prop_map(|terms| terms.join("+"));
        let by = prop_oneof![Just("mailbox"), Just("quiet"), Just("pid")];
        (1..12_u32, by, filter, prop::option::of(1..4_u64)).prop_map(
            |(top, by, filter, scheduler)| {
                let scheduler = scheduler.map(|it| format!("&scheduler={it}"));
                let scheduler = scheduler.unwrap_or_default();
                format!("top={top}&by={by}&filter={filter}{scheduler}")
            },
        )
    }

    fn info(base: &ProcessInfo, id: usize, drawn: Drawn) -> ProcessInfo {
        let states = [
            ProcessState::Ready,
            ProcessState::Running,
            ProcessState::Blocked,
            ProcessState::Idle,
        ];
        let (kind, state, has_name, left, queued, quiet) = drawn;
        let mut info = base.clone();
        info.pid = Pid::new(base.pid.host(), id as u64);
        info.type_name = TYPES[kind];
        info.state = states[state];
        info.names = has_name.then(|| Box::from("Door")).into_iter().collect();
        info.parent = has_name.then(|| Pid::new(base.pid.host(), 5));
        (info.left, info.queued) = (left, queued);
        info.ran_before = quiet.map(Duration::from_secs);
        info
    }

    /// Whether a term holds, in the plainest way.
    fn holds(term: &str, info: &ProcessInfo) -> bool {
        if let Some(rest) = term.strip_prefix('-') {
            return !holds(rest, info);
        }
        let has = |text: &str, part: &str| text.to_lowercase().contains(&part.to_lowercase());
        let name = info.names.first().map_or("", |it| it);
        match term.split_once(':') {
            Some(("state", state)) => format!("{:?}", info.state).to_lowercase() == state,
            Some(("type", part)) => has(info.type_name, part),
            Some(("name", part)) => has(name, part),
            Some(("pid", part)) => has(&info.pid.to_string(), part),
            Some(("parent", part)) => info.parent.is_some_and(|it| has(&it.to_string(), part)),
            _ => {
                let pid = info.pid.to_string();
                let all = [info.type_name, info.method.as_str(), name, &pid];
                all.iter().any(|text| has(text, term))
            }
        }
    }

    // pins: V1
    #[test]
    fn a_list_is_what_a_plain_sort_of_all_gives() {
        let scheduler = Scheduler::builder().host("main").build().unwrap();
        let idle = scheduler.spawn(process_fn(|_, _, _| Ok(()))).unwrap();
        let base = scheduler.process(idle.pid()).unwrap();
        let config = ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        proptest!(config, |(sizes in vec(vec(drawn(), 0..12), 0..3), text in queries())| {
            let crowds: Vec<_> = (1..).zip(sizes).map(|(scheduler, all)| {
                let each = all.into_iter().enumerate();
                let processes = each.map(|(id, it)| info(&base, id, it)).collect();
                Crowd { scheduler, processes }
            }).collect();
            let query: ProcessesQuery = text.parse().unwrap();
            let seen = processes(&crowds, &query);

            let asked = crowds.iter().filter(|it| {
                query.scheduler.is_none_or(|number| it.scheduler == number)
            });
            let all = asked.flat_map(|it| it.processes.iter().map(|info| (it.scheduler, info)));
            let all: Vec<_> = all.collect();
            let filter = query.filter.to_string();
            let passes = |info| filter.split_whitespace().all(|term| holds(term, info));
            let found = all.iter().filter(|it| passes(it.1));
            let mut found: Vec<_> = found.collect();
            // In the order of schedulers and PIDs already.
            match query.by {
                By::Mailbox => found.sort_by_key(|(_, it)| {
                    std::cmp::Reverse(it.left + it.queued.unwrap_or(0))
                }),
                By::Quiet => found.sort_by_key(|(_, it)| std::cmp::Reverse(it.ran_before)),
                By::Pid => {}
            }
            prop_assert_eq!(seen.live, all.len() as u64);
            prop_assert_eq!(seen.matched, found.len() as u64);
            let first = found.iter().take(query.top as usize);
            let first: Vec<_> = first.map(|&&(at, info)| process(at, info)).collect();
            prop_assert_eq!(seen.processes, first);
        });
    }

    // pins: V1
    #[test]
    fn all_counts_of_a_worker_are_shown() {
        let text = format!("{:?}", WorkerStats::default());
        let words = text.split(|c: char| !(c.is_ascii_lowercase() || c == '_'));
        let counted: BTreeSet<_> = words.filter(|it| it.len() > 1).collect();
        let shown = serde_json::to_value(crate::api::Counts::default()).unwrap();
        let shown = shown.as_object().unwrap().keys();
        let shown: BTreeSet<_> = shown.map(|it| &**it).collect();
        // The rest of the type's name.
        assert_eq!(&counted - &shown, BTreeSet::from(["orker", "tats"]));
        assert_eq!(&shown - &counted, BTreeSet::new());
    }

    // pins: V1
    #[test]
    fn a_snapshot_is_read_as_it_was_written() {
        let scheduler = Scheduler::start_default().unwrap();
        let handle = scheduler.handle();
        let snapshot = snapshot(&[Shown { number: 1, handle }], 7);
        let json = serde_json::to_vec(&snapshot).unwrap();
        assert_eq!(crate::api::from_json::<Snapshot>(&json).unwrap(), snapshot);
    }
}

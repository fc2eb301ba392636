//! The processes of the shop.

use crate::text::whole;
use ganger_observe::api::{By, Process, ProcessCounts, State, Wait};

/// The id of the first process of a scheduler.
const FIRST: u64 = 1 << 32;

/// The time between two crashes of the importer, in seconds.
pub(super) const CRASH: f64 = 7.0;

/// A process, and its place in the tree.
pub(super) struct Member {
    pub(super) scheduler: u64,
    pub(super) process: Process,
    /// The strategy of a supervisor.
    pub(super) strategy: Option<&'static str>,
    pub(super) restarts: u64,
}

/// The daily work of a process.
struct Work {
    type_name: &'static str,
    state: State,
    /// The time since its last turn began, in seconds.
    quiet: f64,
    /// For each second.
    events: f64,
    turns: f64,
    steps: f64,
    /// The share of its time within steps.
    busy: f64,
    waiting: f64,
    wait: Option<(&'static str, f64)>,
}

const IDLE: Work = Work {
    type_name: "",
    state: State::Idle,
    quiet: 0.5,
    events: 1.0,
    turns: 1.0,
    steps: 1.0,
    busy: 0.001,
    waiting: 0.0,
    wait: None,
};

/// Returns all live processes, `now` seconds after the start.
pub(super) fn all(now: f64) -> Vec<Member> {
    let mut all = Vec::new();
    supervisors(&mut all, now);
    orders(&mut all, now);
    stores(&mut all, now);
    faults(&mut all, now);
    transfers(&mut all, now);
    sessions(&mut all, now);
    for place in 0..3 {
        let work = Work {
            type_name: "batch::Job",
            state: State::Running,
            quiet: 0.02,
            busy: 0.3,
            steps: 40.0,
            ..IDLE
        };
        all.push(member(2, place, "", None, work, now));
    }
    all
}

fn supervisors(all: &mut Vec<Member>, now: f64) {
    let supervisor = Work {
        type_name: "ganger_supervise::Supervisor",
        ..IDLE
    };
    for (place, name, strategy) in [(0, "shop", "one for all"), (1, "workers", "one for one")] {
        let parent = (place > 0).then_some(0);
        let mut member = member(1, place, name, parent, Work { ..supervisor }, now);
        member.strategy = Some(strategy);
        all.push(member);
    }
}

fn orders(all: &mut Vec<Member>, now: f64) {
    for place in 0..8 {
        let turn = whole(now * 3.0) + place * 5;
        let state = match turn % 4 {
            0 => State::Ready,
            1 => State::Running,
            _ => State::Idle,
        };
        let work = Work {
            type_name: "shop::Orders<shop::Basket>",
            state,
            quiet: 0.000_2 * (turn % 7) as f64,
            events: 2_000.0 / (place + 1) as f64,
            turns: 900.0 / (place + 1) as f64,
            steps: 2_000.0 / (place + 1) as f64,
            busy: 0.6 / (place + 1) as f64,
            waiting: (turn % 5) as f64,
            wait: None,
        };
        let mut member = member(1, 10 + place, "", Some(1), work, now);
        member.process.label = Some(format!("tenant-{}", place % 3));
        all.push(member);
    }
}

fn stores(all: &mut Vec<Member>, now: f64) {
    for place in 0..4 {
        let since = (now + place as f64 * 1.3) % 4.0;
        let work = Work {
            type_name: "store::Shelf",
            state: State::Blocked,
            quiet: since,
            events: 20.0,
            turns: 20.0,
            steps: 20.0,
            busy: 0.02,
            waiting: 2.0,
            wait: Some(("sql", since)),
        };
        all.push(member(1, 20 + place, "", Some(1), work, now));
    }
}

/// Adds a process for each kind of trouble.
fn faults(all: &mut Vec<Member>, now: f64) {
    let mailer = Work {
        type_name: "shop::Mailer",
        state: State::Ready,
        quiet: 0.004,
        events: 100.0,
        turns: 100.0,
        steps: 100.0,
        busy: 0.2,
        waiting: 40.0 * now,
        wait: None,
    };
    all.push(member(1, 30, "mailer", Some(1), mailer, now));
    let report = Work {
        type_name: "shop::Report",
        state: State::Running,
        quiet: now - 5.0,
        turns: 0.1,
        steps: 0.1,
        busy: 0.97,
        waiting: 12.0,
        ..IDLE
    };
    all.push(member(1, 31, "report", Some(1), report, now));
    let poller = Work {
        type_name: "shop::Poller",
        state: State::Ready,
        quiet: 0.000_3,
        events: 5.0,
        turns: 1_000.0,
        steps: 1_000.0,
        busy: 0.15,
        ..IDLE
    };
    all.push(member(1, 32, "poller", Some(1), poller, now));
    let crashes = whole((now / CRASH).floor());
    let importer = Work {
        type_name: "shop::Importer",
        ..IDLE
    };
    let since = crashes as f64 * CRASH;
    let importer = member(
        1,
        1_000 + crashes,
        "importer",
        Some(1),
        importer,
        now - since,
    );
    all.push(Member {
        restarts: crashes,
        ..importer
    });
    let clock = Work {
        type_name: "shop::clock::{{closure}}",
        state: State::Blocked,
        wait: Some(("sleep", 45.0 % now.max(1.0))),
        ..IDLE
    };
    all.push(member(1, 33, "", Some(0), clock, now));
}

/// Adds two processes that wait for each other, and a third behind them.
fn transfers(all: &mut Vec<Member>, now: f64) {
    for place in 0..3 {
        let work = Work {
            type_name: "bank::Transfer",
            state: State::Blocked,
            quiet: now - 2.0,
            events: 0.0,
            turns: 0.0,
            steps: 0.0,
            busy: 0.0,
            waiting: 1.0,
            wait: Some(("mutex", now - 2.0)),
        };
        all.push(member(1, 40 + place, "", Some(0), work, now));
    }
}

/// Adds the sessions: two begin each second, and each lasts ten seconds.
fn sessions(all: &mut Vec<Member>, now: f64) {
    let newest = whole((now * 2.0).floor());
    for number in newest.saturating_sub(19)..=newest {
        let age = now - number as f64 / 2.0;
        let work = Work {
            type_name: "web::Session",
            events: 30.0,
            turns: 30.0,
            steps: 45.0,
            busy: 0.01,
            ..IDLE
        };
        all.push(member(1, 5_000 + number, "", Some(0), work, age));
    }
}

pub(super) fn pid(scheduler: u64, place: u64) -> String {
    let host = if scheduler == 1 { "shop" } else { "batch" };
    format!("{{{host}|{}}}", FIRST + place)
}

fn member(
    scheduler: u64,
    place: u64,
    name: &str,
    parent: Option<u64>,
    work: Work,
    age: f64,
) -> Member {
    let counts = ProcessCounts {
        turns: sum(work.turns, age, place),
        steps: sum(work.steps, age, place),
        events: sum(work.events, age, place),
        waiting: whole(work.waiting),
        busy_ns: sum(work.busy * 1e9, age, place),
        longest_step_ns: whole(work.busy * 4e8),
        age_ns: nanos(age),
    };
    let wait = |(name, since): (&str, f64)| Wait {
        command: Some(256),
        name: Some(name.to_owned()),
        tag: 1,
        since_ns: nanos(since),
    };
    let process = Process {
        scheduler,
        pid: pid(scheduler, place),
        state: work.state,
        method: "run".to_owned(),
        type_name: work.type_name.to_owned(),
        names: Vec::from_iter((!name.is_empty()).then(|| name.to_owned())),
        parent: parent.map(|it| pid(scheduler, it)),
        incarnation: 0,
        is_cancelled: false,
        is_terminating: false,
        left: 0,
        queued: None,
        quiet_ns: Some(nanos(work.quiet)),
        label: None,
        counts: Some(counts),
        value: None,
        waits: work.wait.map(wait).into_iter().collect(),
        links: Vec::new(),
        monitors: None,
        monitored: Vec::new(),
        watched_by: None,
        watchers: Vec::new(),
        restarts: None,
        last_cause: None,
        bytes: None,
    };
    Member {
        scheduler,
        process,
        strategy: None,
        restarts: 0,
    }
}

/// Gives a process its links and monitors.
pub(super) fn with_links(process: Process) -> Process {
    Process {
        links: process.parent.clone().into_iter().collect(),
        monitors: Some(1),
        monitored: vec![pid(process.scheduler, 1)],
        watched_by: Some(2),
        watchers: process.parent.clone().into_iter().collect(),
        restarts: Some(3),
        last_cause: Some("failed: no stock".to_owned()),
        bytes: Some(440),
        ..process
    }
}

/// Returns the value of a process in an order.
pub(super) fn value(process: &Process, by: By) -> u64 {
    let counts = process.counts.clone().unwrap_or_default();
    match by {
        By::Quiet => process.quiet_ns.unwrap_or_default(),
        By::Events => counts.events,
        By::Busy => counts.busy_ns,
        By::Steps => counts.steps,
        By::Age => counts.age_ns,
        By::Pid => 0,
        _ => counts.waiting,
    }
}

/// Returns the sum after a time, at a rate with ups and downs of a third.
pub(super) fn sum(rate: f64, time: f64, phase: u64) -> u64 {
    let phase = phase as f64;
    let wave = 1.0 / 3.0 * ((time + phase).sin() - phase.sin());
    whole(rate * (time + wave).max(0.0))
}

pub(super) fn nanos(seconds: f64) -> u64 {
    whole(seconds * 1e9)
}

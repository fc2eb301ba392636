//! The schedulers of the shop.

use super::crowd::{self, nanos, pid, sum};
use crate::text::whole;
use ganger_observe::api::{
    Alarm, Counts, Distribution, Distributions, LongStep, OfType, Scheduler, Snapshot, Threads,
    Timers, VERSION, WorkerTimes,
};

/// The busy shares of the workers.
const BUSY: [f64; 4] = [0.97, 0.62, 0.35, 0.08];

pub(super) fn snapshot(now: f64) -> Snapshot {
    let live = |number| {
        let all = crowd::all(now);
        all.iter().filter(|it| it.scheduler == number).count() as u64
    };
    let batch = Scheduler {
        number: 2,
        host: "batch".to_owned(),
        workers: Vec::new(),
        worker_times: Vec::new(),
        distributions: None,
        alarms: Vec::new(),
        long_steps: Vec::new(),
        observes: "off".to_owned(),
        events: None,
        ..scheduler(now, live(2))
    };
    Snapshot {
        version: VERSION,
        sequence: whole(now * 10.0),
        schedulers: vec![scheduler(now, live(1)), batch],
        actions: Vec::new(),
    }
}

fn scheduler(now: f64, live: u64) -> Scheduler {
    let total = Counts {
        turns: sum(4_300.0, now, 1),
        steps: sum(8_700.0, now, 1),
        long_steps: whole(now / 9.0),
        undelivered: sum(2.0, now, 3),
        started: whole(now * 2.0),
        failed: whole((now / crowd::CRASH).floor()),
        ..Counts::default()
    };
    let times = |share: &f64| WorkerTimes {
        busy_ns: sum(share * 1e9, now, 7),
        searching_ns: nanos(now * 0.01),
        asleep_ns: nanos(now * (0.99 - share).max(0.0)),
    };
    Scheduler {
        number: 1,
        host: "shop".to_owned(),
        node: Some("berlin".to_owned()),
        is_started: true,
        is_stopping: false,
        time_to_stop_ns: None,
        uptime_ns: nanos(now),
        live,
        global_queue: whole(now * 7.0) % 5,
        ready: 2 + whole(now * 7.0) % 5,
        events: Some(sum(6_100.0, now, 4)),
        threads: Threads {
            workers: 4,
            spares: 1,
            relieved: 0,
            sleeping: 2,
            searching: 1,
        },
        total,
        workers: vec![Counts::default(); 4],
        timers: Timers {
            pending: 340,
            armed: sum(1_300.0, now, 5),
            fired: sum(1_200.0, now, 5),
            cancelled: sum(100.0, now, 5),
            refused: whole(now / 20.0),
        },
        longest_step_ns: 1_200_000_000,
        long_steps: vec![long_step(now)],
        observes: "histograms".to_owned(),
        worker_times: BUSY.iter().map(times).collect(),
        distributions: Some(distributions(now)),
        alarms: alarms(now),
    }
}

fn long_step(now: f64) -> LongStep {
    LongStep {
        pid: pid(1, 31),
        method: Some("run".to_owned()),
        worker: 0,
        is_blocked: false,
        is_announced: false,
        is_over: false,
        lasted_ns: nanos(now - 5.0),
        backtrace: Some("shop::Report::sum\nshop::Report::run".to_owned()),
    }
}

fn distributions(now: f64) -> Distributions {
    let of = |rate, median| distribution(sum(rate, now, 2), median);
    Distributions {
        ready: of(70.0, 1_200),
        step: of(140.0, 600),
        mail: of(70.0, 9_000),
        timer: of(20.0, 40_000),
        types: vec![OfType {
            type_name: "shop::Report".to_owned(),
            ready: of(1.0, 5_000),
            step: of(1.0, 900_000_000),
        }],
    }
}

/// Returns a distribution: half of the durations up to the median, and half of the rest in each
/// bucket above.
fn distribution(count: u64, median: u64) -> Distribution {
    let buckets: Vec<_> = (0..12)
        .map(|place| (median << place, count >> (place + 1)))
        .filter(|bucket| bucket.1 > 0)
        .collect();
    Distribution {
        count: buckets.iter().map(|it| it.1).sum(),
        sum_ns: buckets.iter().map(|it| it.0 * it.1).sum(),
        max_ns: buckets.last().map_or(0, |it| it.0),
        buckets,
    }
}

fn alarms(now: f64) -> Vec<Alarm> {
    let mailbox = Alarm {
        number: 1,
        kind: "mailbox".to_owned(),
        is_severe: false,
        pid: Some(pid(1, 30)),
        text: "the mailbox of mailer has more than 1000 messages".to_owned(),
        value: whole(now * 40.0),
        limit: 1_000,
        since_ns: nanos(now - 25.0),
    };
    let deadlock = Alarm {
        number: 2,
        kind: "deadlock".to_owned(),
        is_severe: true,
        pid: Some(pid(1, 40)),
        text: "two transfers wait for each other".to_owned(),
        value: 2,
        limit: 1,
        since_ns: nanos(now - 2.0),
    };
    vec![mailbox, deadlock]
}

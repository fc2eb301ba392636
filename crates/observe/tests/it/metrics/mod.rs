//! Metrics, as stores of them read them.

#[cfg(feature = "metrics")]
mod facade;
#[cfg(feature = "serve")]
mod reader;
#[cfg(feature = "serve")]
mod text;

use ganger_observe::Alarms;
use ganger_proc_api::{BoxError, Message, Process, process_fn};
use ganger_sched::{Builder, Handle, Scheduler};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// A name of a metric, with its kind and labels, as in the documentation.
pub(crate) type Documented = (String, String, BTreeSet<String>);

/// Returns the tables in `docs/METRICS.md`, which is written from the table of the exporters.
pub(crate) fn documented() -> Vec<Documented> {
    documented_of(|section| !section.starts_with("Nodes"))
}

/// Returns the metrics of the sections whose headings are wanted.
pub(crate) fn documented_of(is_of: impl Fn(&str) -> bool) -> Vec<Documented> {
    let document = include_str!("../../../../../docs/METRICS.md");
    let sections = document.split("\n## ").skip(1);
    let rows = sections
        .filter(|it| is_of(it.lines().next().unwrap_or_default()))
        .flat_map(|it| it.lines().filter_map(|line| line.strip_prefix("|`")));
    let row = |line: &str| -> Documented {
        let (name, rest) = line.split_once("`|").expect("a kind");
        let (name, labels) = name
            .trim_end_matches('}')
            .split_once('{')
            .unwrap_or((name, ""));
        let labels = labels.split(',').filter(|it| !it.is_empty());
        let kind = rest.split([',', '|']).next().expect("a kind");
        let labels = labels.map(str::to_owned).collect();
        (name.to_owned(), kind.to_owned(), labels)
    };
    let all: Vec<_> = rows.map(row).collect();
    assert!(all.len() > 5, "{document}");
    all
}

/// Takes all events, and ends after 200 events.
fn takes() -> impl Process {
    let mut left = 200;
    process_fn(move |_, events, out| {
        left -= events.count().min(left);
        if left == 0 {
            out.done(());
        }
        Ok(())
    })
}

fn fails() -> impl Process {
    process_fn(|_, _, _| Err("it fails".into()))
}

/// Returns a scheduler with all metrics that has worked and stopped: nothing changes any more.
pub(crate) fn worked(builder: Builder) -> Result<Scheduler, BoxError> {
    use ganger_sched::Observe;
    let builder = builder.workers(2).max_processes(1_000).quiet_failures();
    let scheduler = builder.observe(Observe::Histograms).start()?;
    // Its kinds are shown, also when it is gone.
    drop(Alarms::new().looker(&scheduler));
    let timers: Vec<_> = (0..10).map(|_| set_timer(&scheduler)).collect();
    for _ in 0..20 {
        let process = scheduler.spawn(takes())?;
        for _ in 0..200 {
            process.send(Message::new("n", ()))?;
        }
        process.wait();
        scheduler.spawn(fails())?.wait();
    }
    let end = Instant::now() + Duration::from_secs(60);
    while scheduler.timers().stats().fired < 10 {
        assert!(Instant::now() < end, "the timers do not fire");
        std::thread::yield_now();
    }
    drop(timers);
    scheduler.stop(Duration::from_secs(60))?;
    Ok(scheduler)
}

fn set_timer(scheduler: &Handle) -> ganger_sched::Timer {
    let nowhere = ganger_proc_api::Pid::new(scheduler.host_name(), 1 << 40);
    let envelope = ganger_proc_api::Envelope::new(None, nowhere, "late", ());
    scheduler.send_after(Duration::from_micros(10), envelope)
}

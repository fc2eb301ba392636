//! A trace for people without a browser.

use super::model::{Category, Entry, Form, Key, Name, Shows, Trace, Value};
use std::fmt;
use std::time::Duration;

/// The length of each list.
const LONGEST: usize = 10;

/// The longest turns and waits of a trace, as text by `Display`.
///
/// A turn is mostly a single step. A wait is a command underway, or a ready process without a
/// worker. The summary leaves out idle processes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Summary {
    /// The host in the PIDs of the scheduler's processes.
    pub scheduler: String,
    /// The begin of the trace, since the scheduler's start.
    pub from: Duration,
    /// The end of the trace.
    pub to: Duration,
    /// How many events the rings had overwritten.
    pub lost: u64,
    /// The ten longest turns, the longest first; of equals, the earlier first.
    pub turns: Vec<Longest>,
    /// The ten longest waits, in the same order.
    pub waits: Vec<Longest>,
}

/// A turn, or a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Longest {
    /// Type and PID of the process.
    pub process: String,
    /// Of a turn the thread, of a wait the command, or "a worker".
    pub what: String,
    /// The begin, since the scheduler's start, and at the earliest the begin of the trace.
    pub at: Duration,
    /// How long it has lasted within the trace.
    pub lasted: Duration,
    /// Whether it began before the trace.
    pub began_earlier: bool,
    /// Whether it had not ended when the trace did.
    pub goes_on: bool,
}

pub(super) fn of(trace: &Trace) -> Summary {
    let mut open: Vec<Vec<&Entry>> = vec![Vec::new(); trace.tracks.len()];
    let (mut turns, mut waits) = (Top::default(), Top::default());
    for entry in &trace.entries {
        let open = &mut open[entry.track as usize];
        match entry.form {
            Form::Begin => open.push(entry),
            Form::End => {
                let Some(begin) = open.pop() else { continue };
                let list = match begin.category {
                    Category::Turn => &mut turns,
                    Category::Ready | Category::Yield => &mut waits,
                    _ => continue,
                };
                list.offer(entry.at - begin.at, begin, entry);
            }
            Form::Instant | Form::Value(_) => {}
        }
    }
    Summary {
        scheduler: trace.scheduler.clone(),
        from: Duration::from_nanos(trace.from),
        to: Duration::from_nanos(trace.to),
        lost: trace.lost,
        turns: turns.longest(trace),
        waits: waits.longest(trace),
    }
}

/// The longest slices so far, the longest first, each with its begin and end.
#[derive(Default)]
struct Top<'a>(Vec<(u64, &'a Entry, &'a Entry)>);

impl<'a> Top<'a> {
    fn offer(&mut self, lasted: u64, begin: &'a Entry, end: &'a Entry) {
        let is_longer = |other: &(u64, &Entry, &Entry)| {
            (other.0, std::cmp::Reverse(other.1.at)) >= (lasted, std::cmp::Reverse(begin.at))
        };
        let place = self.0.partition_point(is_longer);
        if place < LONGEST {
            self.0.truncate(LONGEST - 1);
            self.0.insert(place, (lasted, begin, end));
        }
    }

    fn longest(&self, trace: &Trace) -> Vec<Longest> {
        let slices = self.0.iter();
        slices
            .map(|(lasted, begin, end)| longest(trace, *lasted, begin, end))
            .collect()
    }
}

fn longest(trace: &Trace, lasted: u64, begin: &Entry, end: &Entry) -> Longest {
    let text = |name: Name| trace.names.text(name).to_owned();
    let track = trace.tracks[begin.track as usize];
    let has = |entry, key| {
        trace
            .arguments(entry)
            .iter()
            .any(|(found, _)| *found == key)
    };
    let process = match track.shows {
        Shows::Yields(above) => text(trace.tracks[above as usize].name),
        Shows::Process | Shows::Queue => text(track.name),
        Shows::Thread => {
            let mut arguments = trace.arguments(begin).iter();
            let label = arguments.find_map(|&(key, value)| match value {
                Value::Text(label) if key == Key::Process => Some(label),
                _ => None,
            });
            text(label.unwrap_or(begin.name))
        }
    };
    let what = match begin.category {
        Category::Turn => text(track.name),
        Category::Ready => "a worker".to_owned(),
        _ => text(begin.name),
    };
    Longest {
        process,
        what,
        at: Duration::from_nanos(begin.at),
        lasted: Duration::from_nanos(lasted),
        began_earlier: has(begin, Key::BeganEarlier),
        goes_on: has(end, Key::GoesOn),
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            scheduler,
            from,
            to,
            lost,
            turns,
            waits,
        } = self;
        writeln!(
            f,
            "Trace of {scheduler}, from {from:.3?} to {to:.3?} after its start."
        )?;
        if *lost > 0 {
            writeln!(f, "{lost} events before it were overwritten.")?;
        }
        list(f, "Longest turns", "on", turns)?;
        list(f, "Longest waits", "for", waits)
    }
}

fn list(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    preposition: &str,
    list: &[Longest],
) -> fmt::Result {
    writeln!(f, "\n{title}:")?;
    if list.is_empty() {
        return writeln!(f, "  none");
    }
    for it in list {
        let mark = match (it.began_earlier, it.goes_on) {
            (false, false) => "",
            (true, false) => ", began earlier",
            (false, true) => ", goes on",
            (true, true) => ", began earlier and goes on",
        };
        let lasted = format!("{:.3?}", it.lasted);
        let (at, process, what) = (it.at, &it.process, &it.what);
        writeln!(
            f,
            "{lasted:>12}  {process} {preposition} {what}, at {at:.3?}{mark}"
        )?;
    }
    Ok(())
}

//! Traces: the drawing of events, and both formats of files.

mod checker;
mod corpus;
mod damage;
mod drawn;
mod events;
mod json;
mod random;
mod schema;
pub(crate) mod shown;
mod summary;
mod window;

use ganger_observe::trace::{Thread, Trace};
use ganger_ring::Snapshot;
use ganger_ring::event::{Event, Record};

/// Returns the texts of the tests' numbers.
pub(crate) fn text(name: u32) -> Option<String> {
    const TEXTS: [&str; 5] = ["counter", "client", "Ping", "sql", "late \"jobs\""];
    let text = TEXTS.get(name as usize - 1)?;
    Some((*text).to_owned())
}

pub(crate) const COUNTER: u32 = 1;
pub(crate) const CLIENT: u32 = 2;
pub(crate) const PING: u32 = 3;
pub(crate) const SQL: u32 = 4;
pub(crate) const JOBS: u32 = 5;

/// Returns a thread with these events, none of them lost.
pub(crate) fn thread(name: &str, events: &[(u64, Event)]) -> Thread {
    let records = events.iter().map(|(at, event)| event.record(*at)).collect();
    Thread::new(name, Snapshot { lost: 0, records })
}

/// Returns a thread that has lost events before.
pub(crate) fn lossy(name: &str, lost: u64, events: &[(u64, Event)]) -> Thread {
    let records: Vec<Record> = events.iter().map(|(at, event)| event.record(*at)).collect();
    Thread::new(name, Snapshot { lost, records })
}

pub(crate) fn trace(until: u64, threads: impl IntoIterator<Item = Thread>) -> Trace {
    Trace::new("main", 0..until, threads, text)
}

pub(crate) fn perfetto(trace: &Trace) -> Vec<u8> {
    let mut file = Vec::new();
    trace.write_perfetto(&mut file).expect("a list takes all");
    file
}

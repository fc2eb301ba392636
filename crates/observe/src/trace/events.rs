//! The events of all rings, by their time.

use ganger_ring::Snapshot;
use ganger_ring::event::{Event, WORDS};

/// The events of a thread: a worker, or another recording thread.
#[derive(Debug, Clone)]
pub struct Thread {
    pub(super) name: String,
    snapshot: Snapshot<WORDS>,
}

impl Thread {
    /// Creates a copy of the thread's ring, with a name for people.
    pub fn new(name: impl Into<String>, snapshot: Snapshot<WORDS>) -> Self {
        Self {
            name: name.into(),
            snapshot,
        }
    }
}

/// An event with its time and the place of its thread.
#[derive(Clone, Copy)]
pub(super) struct Stamped {
    pub(super) at: u64,
    pub(super) thread: u32,
    pub(super) event: Event,
}

/// All events by their time, and how many are missing.
pub(super) struct Events {
    pub(super) events: Vec<Stamped>,
    /// The begin of the window, if a ring has lost events.
    pub(super) complete_from: Option<u64>,
    pub(super) lost: u64,
    pub(super) unknown: u64,
}

impl Events {
    pub(super) fn of(threads: Vec<Thread>, until: u64) -> Self {
        let mut all = Self {
            events: Vec::new(),
            complete_from: None,
            lost: 0,
            unknown: 0,
        };
        for (thread, Thread { snapshot, .. }) in (0..).zip(threads) {
            let mut now = snapshot.records.first().map_or(until, |first| first[0]);
            all.lost = all.lost.saturating_add(snapshot.lost);
            if snapshot.lost > 0 {
                all.complete_from = all.complete_from.max(Some(now));
            }
            for record in snapshot.records {
                match Event::read(record) {
                    Ok((at, event)) => {
                        now = now.max(at);
                        let at = now;
                        all.events.push(Stamped { at, thread, event });
                    }
                    Err(_) => all.unknown += 1,
                }
            }
        }
        all.events.sort_by_key(|event| event.at);
        all
    }
}

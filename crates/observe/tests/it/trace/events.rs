//! Events of a few processes, and the file of a few threads as it is shown.

use super::shown::{Shown, Slice, shown};
use super::{SQL, perfetto, trace};
use ganger_observe::trace::Thread;
use ganger_ring::event::{After, Cause, Event, Pick};

pub(super) fn drawn(until: u64, threads: impl IntoIterator<Item = Thread>) -> Shown {
    shown(&perfetto(&trace(until, threads)))
}

pub(super) fn spawned(process: u64, name: u32) -> Event {
    Event::Spawned {
        process,
        parent: 0,
        name,
    }
}

pub(super) fn begins(process: u64) -> Event {
    Event::TurnBegins {
        process,
        name: 0,
        pick: Pick::Local,
    }
}

pub(super) fn ends(process: u64, after: After) -> Event {
    Event::TurnEnds {
        process,
        after,
        steps: 1,
    }
}

pub(super) fn woken(process: u64, by: u64) -> Event {
    Event::Woken {
        process,
        by,
        cause: Cause::Message,
    }
}

pub(super) fn argument<'a>(slice: &'a Slice, key: &str) -> &'a str {
    slice.arguments.get(key).map_or("", |value| value)
}

pub(super) fn yielded(token: u32) -> Event {
    Event::Yielded {
        process: 7,
        command: SQL,
        tag: 99,
        token,
    }
}

pub(super) fn completed(token: u32) -> Event {
    Event::Completed {
        process: 7,
        command: SQL,
        token,
    }
}

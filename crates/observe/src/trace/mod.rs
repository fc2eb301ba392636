//! Traces: the last seconds of a scheduler, event by event, for Perfetto, for Chrome, and for
//! people without a browser.
//!
//! A flight recorder has a ring for each thread ([`ganger_ring`]), with the newest events of the
//! thread. [`Trace::new`] makes one time line of copies of all rings. Workers are threads with a
//! slice for each turn and each sleep. Processes are tracks with slices for their lives, for the
//! times of being ready and of waiting, and for commands underway. Wake-ups and
//! messages are arrows, queues are counters.
//!
//! ```
//! use ganger_observe::trace::{Trace, Thread};
//! use ganger_ring::event::{After, Event, Pick, WORDS};
//!
//! let (writer, reader) = ganger_ring::ring::<WORDS>(1 << 16);
//! writer.push(Event::TurnBegins { process: 7, name: 1, pick: Pick::Local }.record(1_000));
//! writer.push(Event::TurnEnds { process: 7, after: After::Waits, steps: 1 }.record(26_000));
//!
//! let names = |name| (name == 1).then(|| "counter".to_owned());
//! let worker = Thread::new("worker 0", reader.snapshot());
//! let trace = Trace::new("main", 0..30_000, [worker], names);
//!
//! let mut file = Vec::new();
//! trace.write_perfetto(&mut file)?; // for https://ui.perfetto.dev
//! let summary = Trace::read(&file[..])?.summary();
//! assert_eq!(summary.turns[0].process, "counter {main|7}");
//! assert_eq!(summary.turns[0].lasted.as_micros(), 25);
//! println!("{summary}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The window
//!
//! A busy thread overwrites its ring sooner than an idle thread. A trace begins where all rings are
//! complete: at the latest of the first events of the rings with losses, or later if asked. From
//! there on a trace has every event, and [`Trace::left_out`] counts the events before. A turn, a
//! command or a life that was underway then begins with the trace, and is marked "began earlier". A
//! slice without an end lasts until the end of the trace, and is marked "goes on".
//!
//! # The file
//!
//! Perfetto's own protobuf, with each text once. The first event has the version of the
//! format. A trace gives the same bytes each time. [`Trace::read`] takes files of this version, and
//! names the difference in any other file.

mod build;
mod events;
mod json;
mod life;
mod line;
mod model;
mod perfetto;
mod summary;
mod texts;

pub use events::Thread;
pub use model::{FORMAT, Trace};
pub use perfetto::ReadTraceError;
pub use summary::{Longest, Summary};

use std::io::{self, Read, Write};
use std::ops::Range;
use std::time::Duration;

/// The bytes of a file that [`Trace::read`] takes, at the most: 1 GiB, the events of a recorder of
/// some 400 MiB.
pub const LONGEST_FILE: u64 = 1 << 30;

impl Trace {
    /// Makes a trace of copies of the rings of one scheduler.
    ///
    /// `scheduler` is the host in the PIDs of its processes. The trace begins with `window`, or
    /// later, where all rings are complete; `window.end` is when the rings were copied. Both are in
    /// nanoseconds since the scheduler's start, as the times of events. `names` gives the texts of
    /// the numbers in the events, and is asked once for each; a number without a text shows as
    /// `#7`.
    ///
    /// Does not block. O(n log n) in the number of events; takes some 200 bytes for each, for as
    /// long as the trace exists.
    ///
    /// # Panics
    /// If the trace has 2³² events or more.
    pub fn new(
        scheduler: &str,
        window: Range<u64>,
        threads: impl IntoIterator<Item = Thread>,
        names: impl FnMut(u32) -> Option<String>,
    ) -> Self {
        build::trace(scheduler, window, threads.into_iter().collect(), names)
    }

    /// Reads a file of [`write_perfetto`](Self::write_perfetto). Reads to the end, and blocks as
    /// `from` does, but for a file of another kind, whose first bytes are enough. O(n) in the
    /// file's size, with several times its memory; a file has [`LONGEST_FILE`] bytes at most. The
    /// reader takes memory for the read bytes alone, and not for the lengths declared in the file.
    ///
    /// # Errors
    /// [`ReadTraceError`], when `from` fails; when the file is none of Ganger's, has another
    /// version, or is too long; and with the place of a damage, in bytes.
    ///
    /// ```
    /// use ganger_observe::trace::Trace;
    /// let error = Trace::read(&b"{\"traceEvents\":[]}"[..]).unwrap_err();
    /// assert!(error.to_string().starts_with("not a Perfetto trace"));
    /// ```
    ///
    /// # Panics
    /// If the file has 2³² events or more.
    pub fn read(from: impl Read) -> Result<Self, ReadTraceError> {
        Self::read_at_most(from, LONGEST_FILE)
    }

    /// Reads as [`read`](Self::read) does, with so many bytes at most.
    fn read_at_most(mut from: impl Read, most: u64) -> Result<Self, ReadTraceError> {
        let mut bytes = Vec::new();
        let first = from.by_ref().take(perfetto::SHOWN as u64);
        let mut first = first.take(most);
        first.read_to_end(&mut bytes).map_err(ReadTraceError::Io)?;
        perfetto::check_first(&bytes)?;
        // A byte more tells a file that is too long.
        let mut rest = from.take(most.saturating_sub(bytes.len() as u64).saturating_add(1));
        rest.read_to_end(&mut bytes).map_err(ReadTraceError::Io)?;
        if bytes.len() as u64 > most {
            return Err(ReadTraceError::TooLong { most });
        }
        perfetto::read(&bytes)
    }

    /// Writes the file for <https://ui.perfetto.dev>, in writes of at most some KiB: give it a
    /// `BufWriter`. Blocks as `to` does. O(n) in the number of events, some 70 bytes for each.
    ///
    /// # Errors
    /// The errors of `to`, which then has a part of a file.
    pub fn write_perfetto(&self, to: impl Write) -> io::Result<()> {
        perfetto::write(self, to)
    }

    /// Writes JSON for `chrome://tracing` and many other tools, several times as long as the file
    /// of [`write_perfetto`](Self::write_perfetto): give it a `BufWriter`. Blocks as
    /// `to` does. O(n) in the number of events.
    ///
    /// # Errors
    /// The errors of `to`, which then has a part of a file.
    pub fn write_json(&self, to: impl Write) -> io::Result<()> {
        json::write(self, to)
    }

    /// Finds the ten longest turns, and the ten longest waits. O(n) in the number of events.
    #[must_use]
    pub fn summary(&self) -> Summary {
        summary::of(self)
    }

    /// Returns the host in the PIDs of the scheduler's processes.
    #[must_use]
    pub fn scheduler(&self) -> &str {
        &self.scheduler
    }

    /// Returns the begin of the trace, since the scheduler's start.
    #[must_use]
    pub fn from(&self) -> Duration {
        Duration::from_nanos(self.from)
    }

    /// Returns the end of the trace, since the scheduler's start.
    #[must_use]
    pub fn to(&self) -> Duration {
        Duration::from_nanos(self.to)
    }

    /// Returns the number of events that the rings had overwritten before they were copied.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the number of events of the copies that are left out, because another ring has lost
    /// its events of the same time.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the number of records of a kind unknown to this version.
    #[must_use]
    pub fn unknown(&self) -> u64 {
        self.unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::iter;

    /// Counts the read bytes.
    struct Counting<R>(R, Cell<u64>);

    impl<R: Read> Read for &mut Counting<R> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let bytes = self.0.read(buffer)?;
            self.1.set(self.1.get() + bytes as u64);
            Ok(bytes)
        }
    }

    // pins: V15
    #[test]
    fn a_file_that_is_too_long_is_refused_at_its_bound() {
        let mut file = Vec::new();
        let trace = Trace::new("main", 0..10, iter::empty(), |_| None);
        trace.write_perfetto(&mut file).unwrap();
        let length = file.len() as u64;
        assert!(Trace::read_at_most(&file[..], length).is_ok());
        let error = Trace::read_at_most(&file[..], length - 1).unwrap_err();
        let text = format!("has more than {} bytes", length - 1);
        assert!(error.to_string().contains(&text), "{error}");
        // No more is read of a file without an end.
        let mut endless = Counting(io::repeat(file[0]), Cell::new(0));
        let error = Trace::read_at_most(&mut endless, 1_000).unwrap_err();
        assert!(matches!(error, ReadTraceError::TooLong { most: 1_000 }));
        assert_eq!(endless.1.get(), 1_001);
        assert!(Trace::read_at_most(&b""[..], 0).is_err());
    }

    // pins: V15
    #[test]
    fn a_file_of_another_kind_is_refused_by_its_first_bytes() {
        let mut endless = Counting(io::repeat(b'x'), Cell::new(0));
        let error = Trace::read(&mut endless).unwrap_err();
        assert!(matches!(error, ReadTraceError::NotPerfetto(first) if first == [b'x'; 8]));
        assert_eq!(endless.1.get(), 8);
    }
}

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
    /// If there are 2³² events or more.
    pub fn new(
        scheduler: &str,
        window: Range<u64>,
        threads: impl IntoIterator<Item = Thread>,
        names: impl FnMut(u32) -> Option<String>,
    ) -> Self {
        build::trace(scheduler, window, threads.into_iter().collect(), names)
    }

    /// Reads a file of [`write_perfetto`](Self::write_perfetto). Reads to the end, and blocks as
    /// `from` does. O(n) in the file's size, with several times its memory.
    ///
    /// # Errors
    /// [`ReadTraceError`], when `from` fails; when the file is none of Ganger's, or has another
    /// version; and with the place of a damage, in bytes.
    ///
    /// ```
    /// use ganger_observe::trace::Trace;
    /// let error = Trace::read(&b"{\"traceEvents\":[]}"[..]).unwrap_err();
    /// assert!(error.to_string().starts_with("not a Perfetto trace"));
    /// ```
    ///
    /// # Panics
    /// If the file has 2³² events or more.
    pub fn read(mut from: impl Read) -> Result<Self, ReadTraceError> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).map_err(ReadTraceError::Io)?;
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

    /// The ten longest turns, and the ten longest waits. O(n) in the number of events.
    #[must_use]
    pub fn summary(&self) -> Summary {
        summary::of(self)
    }

    /// The host in the PIDs of the scheduler's processes.
    #[must_use]
    pub fn scheduler(&self) -> &str {
        &self.scheduler
    }

    /// When the trace begins, since the scheduler's start.
    #[must_use]
    pub fn from(&self) -> Duration {
        Duration::from_nanos(self.from)
    }

    /// When the trace ends, since the scheduler's start.
    #[must_use]
    pub fn to(&self) -> Duration {
        Duration::from_nanos(self.to)
    }

    /// How many events the rings had overwritten before they were copied.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// How many events of the copies are left out, because another ring has lost its events of
    /// the same time.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// How many records are of a kind unknown to this version.
    #[must_use]
    pub fn unknown(&self) -> u64 {
        self.unknown
    }
}

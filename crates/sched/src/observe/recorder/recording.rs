//! A recording, taken out of the recorder by a reader.

use super::{Flight, names};
use crate::api::handle::{Handle, here};
use crate::base::clock::nanos;
use ganger_proc_api::Pid;
use ganger_ring::event::WORDS;
use ganger_ring::{Reader, Snapshot};
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// A copy of a scheduler's recorded events: see [`Handle::recording`].
///
/// `Trace::of` of the crate `ganger-observe` makes a time line of it, and files.
pub struct Recording {
    scheduler: String,
    window: Range<u64>,
    threads: Vec<(String, Snapshot<WORDS>)>,
    names: Vec<Arc<str>>,
    commands: HashMap<u32, String>,
}

impl Recording {
    /// Returns the host in the PIDs of the scheduler's processes.
    #[must_use]
    pub fn scheduler(&self) -> &str {
        &self.scheduler
    }

    /// Returns from when to when the recording goes, since the scheduler's start. The begin is as
    /// it was asked for: the rings may not go back as far. The end is the moment of the call, for
    /// all threads.
    #[must_use]
    pub fn window(&self) -> Range<Duration> {
        Duration::from_nanos(self.window.start)..Duration::from_nanos(self.window.end)
    }

    /// Returns the number of events in the recording.
    #[must_use]
    pub fn events(&self) -> usize {
        self.threads.iter().map(|(_, it)| it.records.len()).sum()
    }

    /// Takes the rings of the threads that have recorded anything, with names, in the format of the
    /// crate `ganger-ring`; times are in nanoseconds.
    #[doc(hidden)]
    pub fn take_threads(&mut self) -> Vec<(String, Snapshot<WORDS>)> {
        std::mem::take(&mut self.threads)
    }

    /// Returns the text of a number in an event.
    #[doc(hidden)]
    #[must_use]
    pub fn name(&self, number: u32) -> Option<String> {
        let text = || {
            let place = usize::try_from(number).ok()?.checked_sub(1)?;
            Some(self.names.get(place)?.to_string())
        };
        self.commands.get(&number).cloned().or_else(text)
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording")
            .field("scheduler", &self.scheduler)
            .field("window", &self.window())
            .field("events", &self.events())
            .finish_non_exhaustive()
    }
}

impl Flight {
    /// Returns the result of `copy` for each ring, with times in nanoseconds, up to the time
    /// before.
    fn recording(
        &self,
        last: Option<Duration>,
        copy: impl Fn(&Reader<WORDS>) -> Snapshot<WORDS>,
    ) -> Recording {
        // All rings end here: see the module `recorder`.
        let (scale, end) = self.time.scale();
        let mut threads = Vec::new();
        for (place, lane) in self.lanes.iter().enumerate() {
            if let Some(lane) = lane.get() {
                let kind = if place < self.workers {
                    "worker"
                } else {
                    "spare"
                };
                threads.push((format!("{kind} {place}"), lane.reader()));
            }
        }
        let outside = ganger_sync::sync::lock(&self.outside).reader();
        threads.push(("other threads".to_owned(), outside));
        let cut = |(name, reader)| {
            let mut copied = copy(&reader);
            for record in &mut copied.records {
                record[0] = scale.nanos(record[0]);
            }
            // No reading is below its predecessor.
            let kept = copied.records.partition_point(|it| it[0] <= end);
            copied.records.truncate(kept);
            (name, copied)
        };
        Recording {
            scheduler: String::new(),
            window: end.saturating_sub(nanos(last.unwrap_or(self.at_least)))..end,
            threads: threads.into_iter().map(cut).collect(),
            names: self.names.all(),
            commands: HashMap::new(),
        }
    }
}

/// The flight recorder: see [`Builder::record`](crate::Builder::record).
impl Handle {
    /// Returns whether the scheduler records.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        self.shared.observation().flight().is_some()
    }

    /// Returns a copy of the events of the last `last`, as far as the memory goes back; `None`
    /// where the scheduler was built without a [`Recorder`](crate::Recorder).
    ///
    /// No worker waits for it. O(bytes of the recorder), in time and memory.
    #[must_use]
    pub fn recording(&self, last: Duration) -> Option<Recording> {
        self.copy_recording(Some(last))
    }

    /// Returns a copy as [`recording`](Self::recording) does, of the recorder's own length:
    /// [`Recorder::at_least`](crate::Recorder::at_least).
    #[must_use]
    pub fn whole_recording(&self) -> Option<Recording> {
        self.copy_recording(None)
    }

    fn copy_recording(&self, last: Option<Duration>) -> Option<Recording> {
        let flight = self.shared.observation().flight()?;
        let mut recording = flight.recording(last, Reader::snapshot);
        recording.scheduler = self.shared.host.to_string();
        for record in recording.threads.iter().flat_map(|(_, it)| &it.records) {
            let number = (record[1] >> 32) as u32;
            if let Some(id) = names::command(number) {
                let name = || match self.shared.commands.name(id) {
                    Some(name) => name.to_string(),
                    None => id.to_string(),
                };
                recording.commands.entry(number).or_insert_with(name);
            }
        }
        Some(recording)
    }

    /// Records a mark: a text for people, with a number. Traces show the mark on the track of this
    /// thread, and with the process whose turn runs. Does nothing where the scheduler does not
    /// record.
    ///
    /// O(length), under a lock shared with other marks. A recorder tells some 4,000 texts apart, so
    /// variable parts belong into the number; a text is cut at 200 bytes.
    pub fn mark(&self, text: &str, value: u64) {
        let observation = self.shared.observation();
        if let Some(flight) = observation.flight() {
            flight.mark(observation.own(), text, value);
        }
    }

    /// Records a mark as [`mark`](Self::mark) does, for an alarm about a process, or about none. An
    /// alarm about a process of another scheduler shows as about none.
    pub fn mark_alarm(&self, text: &str, process: Option<Pid>, value: u64) {
        let observation = self.shared.observation();
        if let Some(flight) = observation.flight() {
            let local = process.filter(|&pid| self.shared.is_local(pid));
            let process = local.map_or(0, |pid| pid.id());
            flight.alarm(observation.own(), process, text, value);
        }
    }
}

/// Records a mark in the scheduler whose worker this thread is, if it is a worker and the scheduler
/// records: see [`Handle::mark`].
///
/// ```
/// use ganger_proc_api::{BoxError, actor_fn};
/// use ganger_sched::{Recorder, Scheduler, mark};
///
/// let scheduler = Scheduler::builder().record(Recorder::new()).start()?;
/// let order = scheduler.spawn(actor_fn(|_, order: u64, out| {
///     mark("order is checked", order);
///     Ok(out.done(()))
/// }))?;
/// order.send(4711)?;
/// assert!(order.wait().is_done());
/// # Ok::<(), BoxError>(())
/// ```
pub fn mark(text: &str, value: u64) {
    if let Some(handle) = here::scheduler() {
        handle.mark(text, value);
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use crate::base::recorder::Recorder;
    use crate::config::Config;

    // pins: V15
    #[test]
    fn all_rings_end_at_one_moment_however_long_the_copies_take() {
        let flight = Flight::new(&Recorder::new().bytes(1 << 14), &Config::default(), 66);
        let threads = [Some(0), Some(1), None];
        let mark_all = |text| threads.map(|thread| flight.mark(thread, text, 0));
        mark_all("before");
        let names = |recording: &mut Recording| {
            let threads = recording.take_threads().into_iter();
            let mut marks = Vec::new();
            for record in threads.flat_map(|(_, it)| it.records) {
                let at = Duration::from_nanos(record[0]);
                assert!(at <= recording.window().end);
                marks.push(recording.name((record[1] >> 32) as u32).unwrap());
            }
            marks
        };
        // All threads continue while the rings are copied in turn.
        let copy = |reader: &Reader<WORDS>| {
            let lanes = || flight.lanes.iter().filter_map(|it| it.get());
            let before: Vec<u64> = lanes().map(|it| it.last.get()).collect();
            // Until the clock is at a later nanosecond.
            while lanes()
                .zip(&before)
                .any(|(it, then)| it.last.get() < then + 1_000)
            {
                mark_all("meanwhile");
            }
            reader.snapshot()
        };
        let mut recording = flight.recording(None, copy);
        assert_eq!(names(&mut recording), ["before"; 3]);
        let mut recording = flight.recording(None, Reader::snapshot);
        let later = names(&mut recording);
        assert!(later.iter().filter(|it| *it == "meanwhile").count() > 3);
    }
}

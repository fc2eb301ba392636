//! The recording of a scheduler, as a trace: a time line of the last seconds, for files and for a
//! summary. The scheduler records into the rings of its workers; this thread sorts the copies.

use crate::observer::Observer;
use crate::trace::{Thread, Trace};
use ganger_sched::Recording;
use std::time::Duration;

/// The scheduler does not record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the scheduler does not record: build it with `Builder::record(Recorder::new())` to have traces"
)]
pub struct NotRecording;

/// The time line of a recording.
///
/// O(n log n) in the number of events; takes some 200 bytes for each.
impl From<Recording> for Trace {
    fn from(mut recording: Recording) -> Self {
        let threads = recording.take_threads().into_iter();
        let threads = threads.map(|(name, ring)| Thread::new(name, ring));
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let window = recording.window();
        let window = nanos(window.start)..nanos(window.end);
        let name = |number| recording.name(number);
        Self::new(recording.scheduler(), window, threads, name)
    }
}

impl Observer {
    /// Returns the last seconds of the scheduler, event by event, as far as its recorder goes back.
    /// Without a length: as much as the recorder was built for.
    ///
    /// No worker waits for it. O(n log n) in the number of recorded events, on this thread.
    ///
    /// ```
    /// use ganger_observe::Observer;
    /// use ganger_proc_api::actor_fn;
    /// use ganger_sched::{Recorder, Scheduler};
    /// use std::time::Duration;
    ///
    /// let scheduler = Scheduler::builder().record(Recorder::new().bytes(1 << 20)).start()?;
    /// let double = scheduler.spawn(actor_fn(|_, number: u64, out| Ok(out.done(2 * number))))?;
    /// double.send(21)?;
    /// assert!(double.wait().is_done());
    ///
    /// let trace = Observer::of(&scheduler).trace(Duration::from_secs(1))?;
    /// println!("{}", trace.summary());
    /// let mut file = Vec::new();
    /// trace.write_perfetto(&mut file)?; // for https://ui.perfetto.dev
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`NotRecording`], where the scheduler was built without a recorder.
    pub fn trace(&self, last: impl Into<Option<Duration>>) -> Result<Trace, NotRecording> {
        let recording = match last.into() {
            Some(last) => self.handle().recording(last),
            None => self.handle().whole_recording(),
        };
        recording.map(Into::into).ok_or(NotRecording)
    }
}

//! Files of the flight recorder, written when something has happened.
//!
//! **Problem.** The recorder overwrites what went on before a fault within seconds, long before a
//! person looks. A fault that happens a thousand times must not fill the disk, and a full disk must
//! not be another fault.
//!
//! **Rejected.** A file written by the thread that has the fault: a worker would wait for a disk.
//!
//! **Protocol.** A thread looks once a period for causes (`causes`): all of them are counts that
//! only grow, or steps with places of their own, so none is told twice. The thread writes a file
//! (`files`), or counts where the file before is too young. A request wakes the thread, and waits
//! for nothing.

mod causes;
mod files;

use crate::alarms::{Alarm, AlarmChange, Board, Kind, tell};
use crate::every::Every;
use crate::observer::Observer;
use crate::recording::NotRecording;
use causes::{Before, Wanted};
use files::Files;
use ganger_sched::{Handle, Instant, WeakHandle};
use ganger_sync::sync::lock;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};
use std::{fmt, io};

/// Between two looks.
const PERIOD: Duration = Duration::from_secs(1);

/// Has the flight recorder of a scheduler written to files when something has happened, or when
/// the program asks. The defaults just work.
///
/// ```
/// use ganger_observe::Dumps;
/// use ganger_sched::{Recorder, Scheduler};
///
/// # let folder = std::env::temp_dir().join(format!("ganger-doc-dumps-{}", std::process::id()));
/// let recorder = Recorder::new().bytes(1 << 20);
/// let scheduler = Scheduler::builder().record(recorder).start()?;
/// let dumps = Dumps::new(&folder).at_failure().watch(&scheduler)?;
/// let file = dumps.now()?; // ganger-main-20250131T235959.123Z-demand.pftrace
/// println!("{}", file.display());
/// # std::fs::remove_dir_all(folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A name has the host of the scheduler, the time in UTC and the cause: `long_step`,
/// `alarm_mailbox` and so on, `failure`, `demand`, or the cause of a [request](DumpWatch::request).
/// [`Trace::read`](crate::trace::Trace::read), `ganger-top --file` and <https://ui.perfetto.dev>
/// take the files.
#[derive(Debug, Clone)]
#[must_use = "`watch` begins to look"]
pub struct Dumps {
    files: Files,
    wanted: Wanted,
    last: Option<Duration>,
    at_most_every: Duration,
    period: Duration,
}

impl Dumps {
    /// Files in the folder, at steps that keep processes waiting for a second, and at alarms.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self::on_demand(folder)
            .at_long_step(Duration::from_secs(1))
            .at_alarm()
    }

    /// Files in the folder, when the program asks and never else.
    pub fn on_demand(folder: impl Into<PathBuf>) -> Self {
        Self {
            files: Files {
                folder: folder.into(),
                kept: 10,
                is_json: false,
                newest: UNIX_EPOCH,
            },
            wanted: Wanted::default(),
            last: None,
            at_most_every: Duration::from_secs(60),
            period: PERIOD,
        }
    }

    /// Writes a file when a step that keeps processes waiting has lasted for `limit`, also while it
    /// goes on. Such steps are in [`Handle::long_steps`]; shorter ones than the limits of
    /// `Builder::step_limits` are not known, nor are all of more than 16 between two looks.
    pub fn at_long_step(mut self, limit: Duration) -> Self {
        self.wanted.long_step = Some(limit);
        self
    }

    /// Writes a file when one of the [`Alarms`](crate::Alarms) of the scheduler is raised. A
    /// scheduler without a watch for alarms raises none.
    pub fn at_alarm(mut self) -> Self {
        self.wanted.alarm = true;
        self
    }

    /// Writes a file when a process fails or panics, also if a supervisor starts it again.
    pub fn at_failure(mut self) -> Self {
        self.wanted.failure = true;
        self
    }

    /// Sets the shortest time between two files, but for those of [`DumpWatch::now`]. The causes
    /// between are counted. Default: 60 s.
    pub fn at_most_every(self, time: Duration) -> Self {
        Self {
            at_most_every: time,
            ..self
        }
    }

    /// Sets how much of the past is in a file, as far as the memory of the recorder goes back.
    /// Default: as much as the recorder was built for.
    pub fn last(self, last: Duration) -> Self {
        Self {
            last: Some(last),
            ..self
        }
    }

    /// Sets the number of files that are kept of the schedulers with this host name, those of
    /// earlier runs among them: before a new one is written, the oldest are removed. At least 1.
    /// Default: 10.
    pub fn keep(mut self, files: usize) -> Self {
        self.files.kept = files;
        self
    }

    /// Writes JSON for `chrome://tracing` rather than Perfetto's format, several times as long.
    pub fn json(mut self) -> Self {
        self.files.is_json = true;
        self
    }

    /// Sets the time between two looks for causes. Default: 1 s.
    pub fn every(self, period: Duration) -> Self {
        Self { period, ..self }
    }

    /// Makes the folder, and looks at a scheduler once a period, on a thread of its own, which ends
    /// with the scheduler. No worker waits for a file, whose making takes some 200 bytes for each
    /// event, and up to a second of a core for a full recorder of 16 MiB.
    ///
    /// # Errors
    /// [`DumpError`], when the scheduler does not record, the folder can't be made, or the system
    /// refuses a thread.
    pub fn watch(self, scheduler: &Handle) -> Result<DumpWatch, DumpError> {
        let period = self.period;
        let looker = self.looker(scheduler)?;
        let (weak, notes) = (looker.scheduler.clone(), Arc::clone(&looker.notes));
        let looker = Arc::new(Mutex::new(looker));
        let looks = Arc::clone(&looker);
        let look = move |handle: &Handle| lock(&looks).look_at(handle);
        let every = Every::start("ganger-dumps", scheduler, period, look);
        Ok(DumpWatch {
            every: every.map_err(DumpError::Thread)?,
            looker,
            notes,
            scheduler: weak,
        })
    }

    /// Creates a watch without a thread: the caller looks when it likes, as in a simulation, whose
    /// clock is then that of [`at_most_every`](Self::at_most_every).
    ///
    /// # Errors
    /// [`DumpError`], when the scheduler does not record, or the folder can't be made.
    pub fn looker(self, scheduler: &Handle) -> Result<DumpLooker, DumpError> {
        if !scheduler.is_recording() {
            return Err(NotRecording.into());
        }
        self.files.make().map_err(|source| DumpError::File {
            folder: self.files.folder.clone(),
            source,
        })?;
        Ok(DumpLooker {
            scheduler: scheduler.downgrade(),
            before: Before::now(scheduler),
            board: Board::of(scheduler),
            alarm: None,
            begun: None,
            left_out: 0,
            notes: Arc::default(),
            dumps: self,
        })
    }
}

/// The counts of the causes so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DumpCounts {
    /// Files written.
    pub written: u64,
    /// Looks that have found a cause too soon after the file before.
    pub left_out: u64,
    /// Files whose write has failed.
    pub failed: u64,
}

/// The reason of a missing file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DumpError {
    /// The scheduler does not record.
    #[error(transparent)]
    NotRecording(#[from] NotRecording),
    /// The scheduler is gone.
    #[error("the scheduler is gone, and what it has recorded with it")]
    Gone,
    /// The system refuses the thread.
    #[error("there is no thread that writes traces: {0}")]
    Thread(#[source] io::Error),
    /// The system refuses the folder or a file in it.
    #[error("no trace can be written in {}: {source}", folder.display())]
    File {
        /// The folder.
        folder: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// The words between the thread and the program.
#[derive(Default)]
struct Notes {
    counts: DumpCounts,
    request: Option<&'static str>,
}

/// A thread that writes files, until it is dropped. The drop waits for a file that it has begun.
#[must_use = "its drop ends the watch"]
pub struct DumpWatch {
    every: Every,
    looker: Arc<Mutex<DumpLooker>>,
    notes: Arc<Mutex<Notes>>,
    scheduler: WeakHandle,
}

impl DumpWatch {
    /// Writes a file on this thread, whenever the file before was written. Blocks until the file is
    /// there: call it in a step within `Context::blocking`, or use [`request`](Self::request).
    ///
    /// # Errors
    /// [`DumpError`], when the file can't be written, or the scheduler is gone.
    pub fn now(&self) -> Result<PathBuf, DumpError> {
        let handle = self.scheduler.upgrade().ok_or(DumpError::Gone)?;
        lock(&self.looker).write(&handle, "demand")
    }

    /// Has the thread write a file for the cause, unless the file before is too young; requests
    /// that come before the thread looks have one file. Does not block: from a step, or a hook for
    /// panics. A handler of a signal may not call it.
    pub fn request(&self, cause: &'static str) {
        lock(&self.notes).request.get_or_insert(cause);
        self.every.look_now();
    }

    /// Returns the counts of the causes so far.
    #[must_use]
    pub fn counts(&self) -> DumpCounts {
        lock(&self.notes).counts
    }
}

/// Looks for causes: see [`Dumps::looker`].
pub struct DumpLooker {
    scheduler: WeakHandle,
    dumps: Dumps,
    before: Before,
    board: Arc<Board>,
    /// The number of the alarm that no file can be written.
    alarm: Option<u64>,
    /// When the last file but for those on demand was begun.
    begun: Option<Instant>,
    /// Since the last file.
    left_out: u64,
    notes: Arc<Mutex<Notes>>,
}

impl DumpLooker {
    /// Looks once, and writes a file if there is a cause and the file before is old enough.
    pub fn look(&mut self) {
        if let Some(handle) = self.scheduler.upgrade() {
            self.look_at(&handle);
        }
    }

    /// Writes a file, however young the file before is.
    ///
    /// # Errors
    /// [`DumpError`], when the file can't be written, or the scheduler is gone.
    pub fn now(&mut self) -> Result<PathBuf, DumpError> {
        let handle = self.scheduler.upgrade().ok_or(DumpError::Gone)?;
        self.write(&handle, "demand")
    }

    /// Returns the counts of the causes so far.
    #[must_use]
    pub fn counts(&self) -> DumpCounts {
        lock(&self.notes).counts
    }

    fn look_at(&mut self, handle: &Handle) {
        let request = lock(&self.notes).request.take();
        let found = self.before.look(handle, self.dumps.wanted);
        let Some(cause) = request.map(str::to_owned).or(found) else {
            return;
        };
        let now = handle.now();
        let is_young = |begun| now - begun < self.dumps.at_most_every;
        if self.begun.is_some_and(is_young) {
            self.left_out += 1;
            lock(&self.notes).counts.left_out += 1;
            return;
        }
        self.begun = Some(now);
        // The log and an alarm have the error.
        let _file = self.write(handle, &cause);
    }

    fn write(&mut self, handle: &Handle, cause: &str) -> Result<PathBuf, DumpError> {
        let trace = Observer::of(handle).trace(self.dumps.last)?;
        let left_out = self.left_out;
        match self.dumps.files.write(&trace, cause) {
            Ok(file) => {
                lock(&self.notes).counts.written += 1;
                self.left_out = 0;
                let shown = file.display();
                tracing::info!(
                    target: "ganger::observe", cause, left_out,
                    "a trace is written: {shown}; {left_out} causes since the one before had none"
                );
                self.end_alarm();
                Ok(file)
            }
            Err(source) => {
                let failed = {
                    let mut notes = lock(&self.notes);
                    notes.counts.failed += 1;
                    notes.counts.failed
                };
                let folder = self.dumps.files.folder.clone();
                let error = DumpError::File { folder, source };
                tracing::error!(target: "ganger::observe", cause, failed, "{error}");
                self.raise_alarm(handle, error.to_string(), failed);
                Err(error)
            }
        }
    }

    /// Raises the alarm once, until a file can be written.
    fn raise_alarm(&mut self, handle: &Handle, text: String, value: u64) {
        if self.alarm.is_none() {
            let alarm = self.board.raise(Alarm {
                number: 0,
                kind: Kind::TraceFiles,
                is_severe: false,
                pid: None,
                text,
                value,
                limit: 1,
                since: handle.now(),
            });
            self.alarm = Some(alarm.number);
            tell(&[], &AlarmChange::Raised(alarm));
        }
    }

    fn end_alarm(&mut self) {
        let alarm = self.alarm.take().and_then(|it| self.board.end(it));
        if let Some(alarm) = alarm {
            tell(&[], &AlarmChange::Ended(alarm));
        }
    }
}

impl Drop for DumpLooker {
    /// Ends the alarm without a word.
    fn drop(&mut self) {
        let _alarm = self.alarm.take().and_then(|it| self.board.end(it));
    }
}

impl fmt::Debug for DumpWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DumpWatch")
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for DumpLooker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DumpLooker")
            .field("dumps", &self.dumps)
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ganger_sched::{Recorder, Scheduler};
    use std::thread;

    // pins: V15
    #[test]
    fn the_thread_ends_with_its_scheduler_and_with_the_watch() {
        let folder = tempfile::tempdir().unwrap();
        let recorded = || Scheduler::builder().record(Recorder::new().bytes(1 << 20));
        let scheduler = recorded().start().unwrap();
        let dumps = Dumps::new(folder.path()).every(Duration::from_millis(1));
        let watch = dumps.clone().watch(&scheduler).unwrap();
        drop(watch.now().unwrap());
        drop(scheduler);
        while !watch.every.is_over() {
            thread::yield_now();
        }
        watch.request("nothing");
        assert!(matches!(watch.now(), Err(DumpError::Gone)));
        assert_eq!(watch.counts().written, 1);

        // The drop of the other watch waits for its thread, which has nothing to wake for.
        let scheduler = recorded().start().unwrap();
        let watch = dumps.every(Duration::MAX).watch(&scheduler).unwrap();
        let looker = Arc::downgrade(&watch.looker);
        drop(watch);
        assert!(looker.upgrade().is_none());
    }
}

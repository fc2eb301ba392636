//! A run: the main thread finds the files and starts a process for each.

use super::aggregate::{Aggregator, FINISH, Summary};
use super::console::Console;
use super::file::FileCounter;
use super::gate::{Gate, Interrupted};
use super::reads::{READ, ReaderPool};
use super::walk::walk;
use ganger::{
    BoxError, ExitReason, Message, Payload, ProcessHandle, Scheduler, Stats, SubmitError,
    WorkerStats,
};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most files on their way. The number keeps readers and workers busy, and bounds the memory of
/// unread files.
pub(crate) const MAX_FILES: usize = 8192;

/// How long cancelled processes may take for their reports.
const STOP_DEADLINE: Duration = Duration::from_secs(5);

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) summary: Summary,
    pub(crate) elapsed: Duration,
    pub(crate) interrupted: bool,
    pub(crate) stats: Stats,
    pub(crate) worker_stats: Vec<WorkerStats>,
}

/// Why not every file was submitted.
enum Stop {
    Interrupted,
    Refused(SubmitError),
}

impl From<Interrupted> for Stop {
    fn from(Interrupted: Interrupted) -> Self {
        Self::Interrupted
    }
}

impl From<SubmitError> for Stop {
    fn from(error: SubmitError) -> Self {
        Self::Refused(error)
    }
}

/// Counts the words of all files at and below `paths`, until `gate` is interrupted.
pub(crate) fn run(
    paths: &[PathBuf],
    workers: usize,
    gate: &Arc<Gate>,
    console: &Arc<Console>,
) -> Result<Outcome, BoxError> {
    let started = Instant::now();
    let readers = ReaderPool::start(workers)?;
    let scheduler = Scheduler::builder()
        .workers(workers)
        .host("wordfreq")
        .build()?;
    scheduler.register(READ, "fs.read", readers.handler())?;
    scheduler.start()?;
    let aggregator = scheduler.submit(Aggregator::new(Arc::clone(console)), "add", ())?;

    let mut submitted = 0_u64;
    let (unreadable, walked) = walk(paths, console, |path, size| -> Result<(), Stop> {
        let slot = gate.enter()?;
        console.expect(size);
        let file = FileCounter::new(path, size, slot, aggregator.pid(), Arc::clone(console));
        // The file's report says how it ended.
        drop(scheduler.submit(file, "count", ())?);
        submitted += 1;
        Ok(())
    });
    let ended = walked.and_then(|()| Ok(gate.wait_until_empty()?));

    // Refused when the aggregator has ended before its time; its handle says why.
    let _ = aggregator.send(Message::new(FINISH, submitted));
    let interrupted = match ended {
        Ok(()) => false,
        Err(Stop::Interrupted) => {
            console.line(format_args!(
                "interrupted; Ctrl-C again ends the program at once"
            ));
            scheduler.stop(STOP_DEADLINE)?;
            true
        }
        Err(Stop::Refused(error)) => return Err(error.into()),
    };
    let mut summary = result(aggregator)?;
    summary.failed += unreadable;
    Ok(Outcome {
        summary,
        elapsed: started.elapsed(),
        interrupted,
        stats: scheduler.stats(),
        worker_stats: scheduler.worker_stats(),
    })
}

fn result(aggregator: ProcessHandle) -> Result<Summary, BoxError> {
    let result = aggregator.wait().into_result().map(Payload::downcast);
    match result {
        Ok(Ok(summary)) => Ok(summary),
        Ok(Err(_)) => Err("the aggregator finished with something else".into()),
        Err(reason) => Err(ended_early(&reason)),
    }
}

fn ended_early(reason: &ExitReason) -> BoxError {
    format!("the aggregator has ended early: {reason}").into()
}

#[cfg(test)]
mod tests {
    use super::super::gate::Slot;
    use super::*;
    use ganger::{Context, Events, Payloads, Pid, Process, StepOutput, StepResult};
    use std::fs;
    use std::path::Path;

    /// Panics in its first step, or in its second.
    struct Panicking {
        file: FileCounter,
        steps_left: u32,
    }

    impl Process for Panicking {
        fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
            self.file.init(ctx, "count", Payloads::new())
        }

        fn step(
            &mut self,
            ctx: &Context,
            events: &mut Events<'_>,
            out: &mut StepOutput,
        ) -> StepResult {
            assert!(self.steps_left > 0, "a panic that the test wants");
            self.steps_left -= 1;
            self.file.step(ctx, events, out)
        }

        fn close(&mut self) {
            self.file.close();
        }
    }

    fn file(path: &Path, slot: Slot, aggregator: Pid, console: &Arc<Console>) -> FileCounter {
        FileCounter::new(path.into(), 0, slot, aggregator, Arc::clone(console))
    }

    #[test]
    fn a_process_that_panics_is_a_failed_file_and_hangs_nobody() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "three good words").unwrap();
        let console = Arc::new(Console::new());
        let gate = Gate::new(3);
        let readers = ReaderPool::start(2).unwrap();
        let scheduler = Scheduler::builder().workers(2).build().unwrap();
        scheduler
            .register(READ, "fs.read", readers.handler())
            .unwrap();
        scheduler.start().unwrap();
        let aggregator = Aggregator::new(Arc::clone(&console));
        let aggregator = scheduler.submit(aggregator, "add", ()).unwrap();
        for number in 0..30 {
            let file = file(&path, gate.enter().unwrap(), aggregator.pid(), &console);
            let steps_left = match number % 3 {
                0 => u32::MAX,
                panics_after => panics_after - 1,
            };
            let process = Panicking { file, steps_left };
            drop(scheduler.submit(process, "count", ()).unwrap());
        }
        gate.wait_until_empty().unwrap();
        aggregator.send(Message::new(FINISH, 30_u64)).unwrap();
        let summary = result(aggregator).unwrap();
        assert_eq!((summary.files, summary.failed), (10, 20));
        assert_eq!(summary.table.words(), 30);
    }

    #[test]
    fn a_run_that_is_interrupted_before_it_starts_counts_nothing() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("file"), "words").unwrap();
        let gate = Gate::new(1);
        gate.interrupt();
        let paths = [directory.path().to_owned()];
        let outcome = run(&paths, 1, &gate, &Arc::new(Console::new())).unwrap();
        assert!(outcome.interrupted);
        assert_eq!(outcome.summary.files, 0);
    }
}

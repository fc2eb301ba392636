//! The process of a file.
//!
//! It yields a read, waits for its completion, and yields the next read. While the next read is
//! under way, it counts the chunk. Its only report goes to the aggregator: from the step that
//! finishes the file, or from `close`, which the scheduler calls after any end of the process.

use super::aggregate::{Outcome, REPORT, Report};
use super::chunks::{CHUNK_BYTES, Chunk};
use super::console::Console;
use super::gate::Slot;
use super::reads::{READ, ReadRequest};
use super::words::WordCounter;
use ganger::{
    BoxError, Command, Completion, Context, Event, Events, Payload, Payloads, Pid, Process,
    StepOutput, StepResult,
};
use std::path::Path;
use std::sync::Arc;

/// A file with a NUL among this number of first bytes is binary.
const BINARY_BYTES: usize = 8 * 1024;

const _: () = assert!(BINARY_BYTES <= CHUNK_BYTES);

/// Counts the words of a file.
pub(crate) struct FileCounter {
    path: Arc<Path>,
    /// The bytes of this file that the progress bar still expects.
    expected_bytes: u64,
    aggregator: Pid,
    console: Arc<Console>,
    /// For the report of `close`, which has no context.
    context: Option<Context>,
    /// Gone once the report has been sent: a file has exactly one report.
    slot: Option<Slot>,
    counter: WordCounter,
    /// A chunk to count during the next read; or the last chunk, which goes with the report.
    chunk: Option<Chunk>,
    /// Where the next read starts.
    offset: u64,
    counted_bytes: u64,
}

impl FileCounter {
    /// Makes a process that counts the file `path` of about `expected_bytes` bytes.
    pub(crate) fn new(
        path: Arc<Path>,
        expected_bytes: u64,
        slot: Slot,
        aggregator: Pid,
        console: Arc<Console>,
    ) -> Self {
        Self {
            path,
            expected_bytes,
            aggregator,
            console,
            context: None,
            slot: Some(slot),
            counter: WordCounter::default(),
            chunk: None,
            offset: 0,
            counted_bytes: 0,
        }
    }

    fn yield_read(&mut self, out: &mut StepOutput) {
        let request = ReadRequest {
            path: Arc::clone(&self.path),
            offset: self.offset,
        };
        self.offset += CHUNK_BYTES as u64;
        out.yield_command(Command::new(READ, Payload::any(request)), self.offset);
    }

    /// Takes a completed read; returns the outcome of the file, if it is settled now.
    fn take_read(
        &mut self,
        ctx: &Context,
        completion: Completion,
        out: &mut StepOutput,
    ) -> Option<Outcome> {
        let chunk = match completion.result.map(Payload::downcast::<Chunk>) {
            Ok(Ok(chunk)) => chunk,
            Ok(Err(_)) => return Some(self.failed("the reader answered with something else")),
            // Readers give the reads of cancelled processes up, perhaps before the cancel event.
            Err(_) if ctx.is_cancelled() => return Some(self.interrupted()),
            Err(error) => return Some(self.failed(error)),
        };
        let first_chunk = self.offset == CHUNK_BYTES as u64;
        if first_chunk && chunk[..chunk.len().min(BINARY_BYTES)].contains(&0) {
            return Some(Outcome::Binary);
        }
        if chunk.is_last() {
            self.count(&chunk);
            self.chunk = Some(chunk);
            return Some(self.counted());
        }
        self.chunk = Some(chunk);
        self.yield_read(out);
        out.step_again();
        None
    }

    fn count(&mut self, chunk: &[u8]) {
        self.counter.feed(chunk);
        let bytes = chunk.len() as u64;
        self.counted_bytes += bytes;
        let expected = self.expected_bytes.min(bytes);
        self.expected_bytes -= expected;
        self.console.advance(expected);
    }

    fn counted(&mut self) -> Outcome {
        Outcome::Counted {
            table: std::mem::take(&mut self.counter).finish(),
            bytes: self.counted_bytes,
        }
    }

    fn interrupted(&mut self) -> Outcome {
        if self.counted_bytes == 0 {
            return Outcome::Unread;
        }
        Outcome::Counted {
            table: std::mem::take(&mut self.counter).abandon(),
            bytes: self.counted_bytes,
        }
    }

    fn failed(&self, error: impl ToString) -> Outcome {
        Outcome::Failed {
            path: Arc::clone(&self.path),
            error: error.to_string(),
        }
    }

    /// Sends the report, unless it has been sent.
    fn report(&mut self, outcome: Outcome) {
        let (Some(slot), Some(context)) = (self.slot.take(), &self.context) else {
            return;
        };
        self.console
            .advance(std::mem::take(&mut self.expected_bytes));
        let report = Report {
            outcome,
            slot,
            chunk: self.chunk.take(),
        };
        // Refused when the aggregator is gone; the main thread learns of it from its handle.
        let _ = context.send(self.aggregator, REPORT, Payload::any(report));
    }
}

impl Process for FileCounter {
    fn init(&mut self, context: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        self.context = Some(context.clone());
        Ok(())
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if self.offset == 0 {
            self.yield_read(out);
        }
        if let Some(chunk) = self.chunk.take() {
            self.count(&chunk);
        }
        for event in events {
            let outcome = match event {
                Event::Completion(completion) => self.take_read(ctx, completion, out),
                Event::Cancel(_) => Some(self.interrupted()),
                _ => None,
            };
            if let Some(outcome) = outcome {
                self.report(outcome);
                out.done(());
                break;
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        if self.slot.is_some() {
            self.report(self.failed("counting ended before the end of the file"));
        }
        self.context = None;
    }
}

#[cfg(test)]
mod tests {
    use super::super::chunks::Buffers;
    use super::super::gate::Gate;
    use super::*;
    use ganger::ContextBackend;
    use ganger::{
        CancelReason, CommandError, Envelope, Outcome as StepOutcome, SendError, SubmitError,
        SubmitErrorKind, Symbol,
    };
    use std::collections::VecDeque;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Stands in for a scheduler, and keeps all envelopes.
    #[derive(Default)]
    struct Recorder {
        sent: Mutex<Vec<Envelope>>,
        cancelled: AtomicBool,
    }

    impl ContextBackend for Recorder {
        fn pid(&self) -> Pid {
            "{test|1}".parse().unwrap()
        }

        fn send(&self, envelope: Envelope) -> Result<(), SendError> {
            self.sent.lock().unwrap().push(envelope);
            Ok(())
        }

        fn submit(&self, _: Box<dyn Process>, _: Symbol, _: Payloads) -> Result<Pid, SubmitError> {
            Err(SubmitError::new(SubmitErrorKind::Stopping))
        }

        fn is_cancelled(&self) -> bool {
            // Ordering: the test has one thread.
            self.cancelled.load(Ordering::Relaxed)
        }
    }

    struct Bench {
        process: FileCounter,
        recorder: Arc<Recorder>,
        gate: Arc<Gate>,
        buffers: Arc<Buffers>,
        queue: VecDeque<Event>,
    }

    impl Bench {
        fn new() -> Self {
            let gate = Gate::new(1);
            let recorder = Arc::new(Recorder::default());
            let mut process = FileCounter::new(
                Path::new("file").into(),
                0,
                gate.enter().unwrap(),
                "{test|2}".parse().unwrap(),
                Arc::new(Console::new()),
            );
            let context = Context::new(Arc::clone(&recorder) as _);
            process.init(&context, "count", Payloads::new()).unwrap();
            let buffers = Buffers::new(2);
            Self {
                process,
                recorder,
                gate,
                buffers,
                queue: VecDeque::new(),
            }
        }

        fn step(&mut self, event: Option<Event>) -> StepOutput {
            self.queue.extend(event);
            let mut out = StepOutput::new();
            let mut events = Events::new(&mut self.queue);
            let context = Context::new(Arc::clone(&self.recorder) as _);
            self.process.step(&context, &mut events, &mut out).unwrap();
            out
        }

        fn read(&self, text: &[u8]) -> Option<Event> {
            let mut chunk = self.buffers.take().unwrap();
            chunk.fill(text).unwrap();
            let result = Ok(Payload::any(chunk));
            Some(Event::Completion(Completion::new(0, result)))
        }

        /// Ends the process; returns the outcome in its only report.
        fn end(mut self) -> Outcome {
            self.process.close();
            drop(self.process);
            let mut sent = std::mem::take(&mut *self.recorder.sent.lock().unwrap());
            assert_eq!(sent.len(), 1);
            let message = sent.remove(0).message;
            assert_eq!(message.topic, REPORT);
            let report = message.payloads.into_first().downcast::<Report>().unwrap();
            drop(report.slot);
            self.gate.wait_until_empty().unwrap();
            report.outcome
        }
    }

    fn counted(outcome: Outcome) -> (u64, u64) {
        match outcome {
            Outcome::Counted { table, bytes } => (table.words(), bytes),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_chunk_is_counted_while_the_next_one_is_read() {
        let mut bench = Bench::new();
        let out = bench.step(None);
        assert_eq!(out.yields().len(), 1);
        assert!(matches!(out.outcome(), StepOutcome::Wait));
        let out = bench.step(bench.read(&b"abcdefg ".repeat(CHUNK_BYTES / 8)));
        assert_eq!(out.yields().len(), 1);
        assert!(matches!(out.outcome(), StepOutcome::StepAgain));
        assert_eq!(bench.process.counted_bytes, 0);
        let out = bench.step(None);
        assert!(out.yields().is_empty());
        assert!(matches!(out.outcome(), StepOutcome::Wait));
        assert_eq!(bench.process.counted_bytes, CHUNK_BYTES as u64);
        let out = bench.step(bench.read(b"end"));
        assert!(matches!(out.outcome(), StepOutcome::Done(_)));
        let chunks_words = CHUNK_BYTES as u64 / 8;
        assert_eq!(
            counted(bench.end()),
            (chunks_words + 1, CHUNK_BYTES as u64 + 3)
        );
    }

    #[test]
    fn a_cancelled_process_reports_what_it_has_counted() {
        let mut bench = Bench::new();
        bench.step(None);
        bench.step(bench.read(&b"word".repeat(CHUNK_BYTES / 4)));
        let out = bench.step(Some(Event::Cancel(CancelReason::Shutdown)));
        assert!(matches!(out.outcome(), StepOutcome::Done(_)));
        // The whole chunk is a single word without an end.
        assert_eq!(counted(bench.end()), (0, CHUNK_BYTES as u64));

        let mut bench = Bench::new();
        bench.step(Some(Event::Cancel(CancelReason::Shutdown)));
        assert!(matches!(bench.end(), Outcome::Unread));
    }

    #[test]
    fn a_read_that_is_given_up_is_a_failure_unless_the_process_is_cancelled() {
        for cancelled in [false, true] {
            let mut bench = Bench::new();
            // Ordering: the test has one thread.
            bench.recorder.cancelled.store(cancelled, Ordering::Relaxed);
            bench.step(None);
            let result = Err(CommandError::Dropped);
            bench.step(Some(Event::Completion(Completion::new(0, result))));
            match bench.end() {
                Outcome::Failed { .. } => assert!(!cancelled),
                Outcome::Unread => assert!(cancelled),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_process_that_is_ended_by_others_reports_a_failure() {
        assert!(matches!(Bench::new().end(), Outcome::Failed { .. }));
        let mut bench = Bench::new();
        bench.step(None);
        bench.step(bench.read(&[b'x'; CHUNK_BYTES]));
        assert!(matches!(bench.end(), Outcome::Failed { .. }));
    }
}

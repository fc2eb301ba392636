//! Counts words: a main job for the scheduler.
//!
//! Counts the words in all text files at and below the paths. See `--help`.
//! `cargo run --release -p ganger-examples --features wordfreq --bin wordfreq -- PATH...`
//!
//! ```text
//!                  submits one a file            yields READ        queues
//!   main thread  ---------------------> FileCounter ------> ReadHandler ----> ReaderPool
//!   walks, waits                            |    <---------------------------- 4 threads
//!        ^                                  |           completes with a Chunk
//!        |        finishes with             | sends its Report by PID
//!        +------------------------ Aggregator
//! ```
//!
//! **Bounds.** At most [`run::MAX_FILES`] files are on their way ([`gate`]), with 1 MiB of chunks
//! for each worker ([`chunks`]). Begun files are read first ([`reads`]), so that few tables are
//! half full. A file's last chunk goes with its report, so that few tables wait to be merged. A
//! word is held in memory as a whole, a file never.
//!
//! **Nothing hangs.** A file's process reports exactly once: when it finishes, or in `close`, which
//! runs after any end. The slot for which the main thread waits travels with the report, and is
//! given back even if the report is dropped.
//!
//! **Ctrl-C.** The main thread stops walking, tells the aggregator how many reports to expect and
//! stops the scheduler. The stop cancels the files; each reports its counts so far. The aggregator
//! ignores its own cancellation, and finishes with the sum.

mod aggregate;
mod chunks;
mod cli;
mod console;
mod decode;
mod file;
mod gate;
mod output;
mod reads;
mod run;
mod table;
mod walk;
mod words;

use clap::Parser;
use cli::Options;
use console::{Console, say};
use gate::Gate;
use run::{MAX_FILES, Outcome, run};
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use std::sync::Arc;

const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let options = Options::parse();
    let console = Arc::new(Console::new());
    let gate = Gate::new(MAX_FILES);
    let result = handle_ctrl_c(&gate)
        .map_err(Into::into)
        .and_then(|()| run(&options.paths, options.workers(), &gate, &console));
    // Counting is over: from here on Ctrl-C ends the program at once.
    gate.interrupt();
    console.clear();
    let outcome = match result {
        Ok(outcome) => outcome,
        Err(error) => {
            say(format_args!("{error}"));
            return ExitCode::FAILURE;
        }
    };
    match print(&outcome, &options) {
        // The reader of the output has closed it.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(error) => {
            say(format_args!("can't write the result: {error}"));
            return ExitCode::FAILURE;
        }
        Ok(()) => {}
    }
    match outcome {
        Outcome {
            interrupted: true, ..
        } => ExitCode::from(INTERRUPTED),
        Outcome { summary, .. } if summary.failed > 0 => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

fn print(outcome: &Outcome, options: &Options) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    match options.json {
        true => output::write_json(&mut out, outcome, options.top)?,
        false => output::write_text(&mut out, outcome, options.top)?,
    }
    match (options.stats, options.json) {
        (true, true) => output::write_stats(&mut io::stderr().lock(), outcome)?,
        (true, false) => output::write_stats(&mut out, outcome)?,
        (false, _) => {}
    }
    out.flush()
}

/// Handles Ctrl-C: the first ends the run, the second ends the program.
fn handle_ctrl_c(gate: &Arc<Gate>) -> Result<(), ctrlc::Error> {
    let gate = Arc::clone(gate);
    ctrlc::set_handler(move || {
        if !gate.interrupt() {
            std::process::exit(i32::from(INTERRUPTED));
        }
    })
}

//! A run of the deques or of the mailboxes, all of them in turns. Prints a line of JSON for each
//! figure of each repetition. `--rounds` is the number of repetitions.

use clap::Parser;
use ganger_benches::mailbox::Counting;
use ganger_benches::queues::run;
use ganger_benches::whole::job::Job;
use std::io::Write;
use std::process::ExitCode;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static HEAP: Counting<mimalloc::MiMalloc> = Counting(mimalloc::MiMalloc);

#[cfg(not(feature = "mimalloc"))]
#[global_allocator]
static HEAP: Counting<std::alloc::System> = Counting(std::alloc::System);

/// Deques and mailboxes side by side
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    job: Job,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let mut out = std::io::stdout().lock();
    let mut unheard = None;
    let ran = run(&options.job, |sample| {
        unheard = writeln!(out, "{}", sample.line()).err().or(unheard.take());
    });
    match (ran, unheard) {
        (Ok(()), None) => ExitCode::SUCCESS,
        (Ok(()), Some(error)) => {
            eprintln!("can't write what was measured: {error}");
            ExitCode::FAILURE
        }
        (Err(error), _) => {
            eprintln!("{error}");
            error.exit_code()
        }
    }
}

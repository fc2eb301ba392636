//! A run of a workload by a Rust peer. See `ganger_benches::whole`. With the feature `mimalloc`,
//! all peers allocate by mimalloc.

use clap::Parser;
use ganger_benches::whole;
use ganger_benches::whole::job::Job;
use std::process::ExitCode;
use std::{panic, process};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static HEAP: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs a workload of a peer, and writes a line of JSON for each figure.
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    job: Option<Job>,

    /// Writes a line for each workload with each of its peers, and runs nothing
    #[arg(long, exclusive = true)]
    list: bool,

    /// Computes as long as this process is its parent
    #[arg(long, value_name = "PID", exclusive = true, hide = true)]
    compute_beside: Option<u32>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(parent) = options.compute_beside {
        whole::busy::compute_beside(parent);
        return ExitCode::SUCCESS;
    }
    // Only `--list` allows for no job.
    let Some(job) = options.job else {
        for (id, peer) in whole::list() {
            println!("{id} {peer}");
        }
        return ExitCode::SUCCESS;
    };
    // A process that finds an error panics. Its runtime would contain the panic, and the run would
    // wait for ever for that process.
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        report(info);
        process::exit(1);
    }));
    match whole::run(&job) {
        Ok(samples) => {
            for sample in samples {
                println!("{}", sample.line());
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{} {}: {error}", job.id, job.peer);
            error.exit_code()
        }
    }
}

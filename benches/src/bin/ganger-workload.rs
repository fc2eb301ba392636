//! A run of a workload by a Rust peer. See `ganger_benches::whole`. With the feature `mimalloc`,
//! all peers allocate by mimalloc.

use clap::Parser;
use ganger_benches::whole;
use ganger_benches::whole::busy::{PARENT, compute_beside};
use ganger_benches::whole::job::Job;
use ganger_benches::whole::sample::report;
use std::process::ExitCode;
use std::{env, panic, process};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static HEAP: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if let Some(parent) = env::var(PARENT).ok().and_then(|it| it.parse().ok()) {
        compute_beside(parent);
        return ExitCode::SUCCESS;
    }
    let job = Job::parse();
    // A process that finds an error panics. Its runtime would contain the panic, and the run would
    // wait for ever for that process.
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        usual(info);
        process::exit(1);
    }));
    report(&job, whole::run(&job))
}

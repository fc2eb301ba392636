//! A run of the deques or of the mailboxes, all of them in turns. Prints a line of JSON for each
//! figure of each repetition. `--rounds` is the number of repetitions.

use clap::Parser;
use ganger_benches::mailbox::Counting;
use ganger_benches::queues::run;
use ganger_benches::whole::job::Job;
use ganger_benches::whole::sample::report;
use std::process::ExitCode;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static HEAP: Counting<mimalloc::MiMalloc> = Counting(mimalloc::MiMalloc);

#[cfg(not(feature = "mimalloc"))]
#[global_allocator]
static HEAP: Counting<std::alloc::System> = Counting(std::alloc::System);

fn main() -> ExitCode {
    let job = Job::parse();
    report(&job, run(&job))
}

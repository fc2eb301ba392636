//! The soak of Ganger's scheduler; `--help` tells more.

use clap::Parser;
use ganger_soak_sched::{Options, Watch, quiet_panics, round, soak};
use std::process::{self, ExitCode};
use std::sync::Arc;

fn main() -> ExitCode {
    let options = Options::parse();
    let watch = Arc::new(Watch::default());
    let interrupted = Arc::clone(&watch);
    // A hanging round would keep a patient user waiting.
    let interrupt = move || {
        if interrupted.is_interrupted() {
            process::exit(130);
        }
        interrupted.interrupt();
    };
    if let Err(error) = ctrlc::set_handler(interrupt) {
        eprintln!("warning: Ctrl-C ends it at once: {error}");
    }
    quiet_panics();
    match soak(&options, &watch, round::run) {
        Ok(_) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("error: {what}");
            ExitCode::FAILURE
        }
    }
}

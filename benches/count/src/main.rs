//! Repeats an act of a scheduler with a single worker, or of a queue: `cargo xtask bench
//! --instructions` runs this program under callgrind. Threads meet only at the beginning and at the
//! end of an act, so that counts hardly differ from run to run. `--list` prints a line for each
//! act: its name, few rounds and many, its description, with tabs between them.
//!
//! The program parses its few arguments itself, because the gate builds it, optimised.

mod act;
mod actors;
mod commands;
mod one_worker;
mod oneself;
mod pair;
mod sockets;
mod spawning;
mod stream;
mod tasks;
mod timers;

use act::Act;
use ganger_proc_api::BoxError;
use one_worker::OneWorker;
use std::process::ExitCode;
use std::time::Duration;
use std::{env, fs, thread};

const USAGE: &str = "usage: ganger-count ACT ROUNDS, or ganger-count --list";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args[..] {
        ["--list"] => {
            for &act in Act::ALL {
                let [few, many] = act.rounds();
                let (name, what) = (act.name(), act.what());
                println!("{name}\t{few}\t{many}\t{what}");
            }
            Ok(())
        }
        [act, rounds] => run(act, rounds),
        _ => Err(USAGE.into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(act: &str, rounds: &str) -> Result<(), BoxError> {
    let act = Act::named(act).ok_or_else(|| format!("no act `{act}`; --list shows them"))?;
    let rounds = rounds.parse().map_err(|_| USAGE)?;
    let worker = OneWorker::of(act)?;
    worker.run(act, rounds)?;
    drop(worker);
    until_alone();
    Ok(())
}

/// Waits until the scheduler's threads are gone. A stop returns earlier, and only some runs would
/// count the memory that the threads free as they end.
fn until_alone() {
    const PAUSE: Duration = Duration::from_millis(1);
    const PAUSES: u32 = 1_000;
    // Where the system doesn't list them, nothing is counted either.
    let others = || fs::read_dir("/proc/self/task").map_or(0, |tasks| tasks.skip(1).count());
    for _ in 0..PAUSES {
        if others() == 0 {
            return;
        }
        thread::sleep(PAUSE);
    }
}

//! Programs compute during the measured program's run.
//!
//! The programs are processes, not threads: a fence for all threads of the measured program would
//! interrupt computing threads as well. Each has the priority of any program, and a processor of
//! its own. Such a program ends when it is killed, or finds its parent gone, however the parent has
//! ended.

use super::contestant::failed;
use super::job::Error;
use crate::contest::cpu;
use std::env;
use std::hint::black_box;
use std::process::{Child, Command, Stdio};

/// The variable that makes `ganger-workload` such a program: the number of its parent.
pub const PARENT: &str = "GANGER_COMPUTE_BESIDE";

/// A program on each processor, until this is dropped.
#[must_use]
#[derive(Debug)]
pub struct Busy {
    programs: Vec<Child>,
}

impl Busy {
    /// Starts the programs. Called by `ganger-workload`.
    ///
    /// # Errors
    /// If a program can't be started; then no program is left.
    pub fn start() -> Result<Self, Error> {
        let program = env::current_exe().map_err(failed)?;
        let mut busy = Self {
            programs: Vec::new(),
        };
        for nth in 0..cpu::count() {
            let mut command = Command::new(&program);
            command.env(PARENT, std::process::id().to_string());
            command.stdin(Stdio::null()).stdout(Stdio::null());
            // A child runs on the processor of the thread that starts it.
            let _pinned = cpu::pin(nth);
            busy.programs.push(command.spawn().map_err(failed)?);
        }
        Ok(busy)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for program in &mut self.programs {
            // A program that has ended by itself is waited for as well.
            let _ended = program.kill();
            let _ended = program.wait();
        }
    }
}

/// Computes while the process with this number is the parent of this process.
#[cfg(unix)]
pub fn compute_beside(parent: u32) {
    while std::os::unix::process::parent_id() == parent {
        compute();
    }
}

/// Computes until it is ended.
#[cfg(not(unix))]
pub fn compute_beside(_: u32) {
    loop {
        compute();
    }
}

/// Computes for a fraction of a millisecond, without pauses: a host may take the processor away for
/// these.
fn compute() {
    (0..100_000).for_each(|n: u64| _ = black_box(n));
}

//! Valgrind's tool that counts the instructions of a program. Only user code counts, so the same
//! program gives nearly the same count again; what differs are the few steps at which threads meet.

use crate::Failure;
use std::path::Path;
use std::process::{Command, Output};

pub(super) struct Callgrind(());

impl Callgrind {
    /// Whether it is there; the error says what is missing.
    pub(super) fn find() -> Result<Self, String> {
        let output = Command::new("valgrind").arg("--version").output();
        let output = output.map_err(|error| {
            format!(
                "can't start valgrind: {error} (its package is called valgrind in most systems)"
            )
        })?;
        match output.status.success() {
            true => Ok(Self(())),
            false => Err(format!("`valgrind --version`: {}", output.status)),
        }
    }

    /// Whether it can run a program that works without it: processors have instructions that an older
    /// valgrind does not know. The error says what it complains about.
    pub(super) fn try_out(&self, program: &Path) -> Result<(), String> {
        let output = run(program, &["--list"]).map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(()),
            false => {
                let said = String::from_utf8_lossy(&output.stderr);
                let last = said.lines().last().unwrap_or_default();
                Err(format!(
                    "valgrind can't run programs here: {}: {last}",
                    output.status
                ))
            }
        }
    }

    /// How many instructions one run takes.
    pub(super) fn count(&self, program: &Path, args: &[&str]) -> Result<u64, Failure> {
        let output = run(program, args)?;
        let said = String::from_utf8_lossy(&output.stderr);
        let args = args.join(" ");
        if !output.status.success() {
            let status = output.status;
            return Err(format!(
                "`valgrind … {} {args}`: {status}\n{said}",
                program.display()
            )
            .into());
        }
        collected(&said).ok_or_else(|| format!("valgrind does not say how many: {said}").into())
    }
}

/// Fences are full ones, whether the kernel has `membarrier` or not.
fn run(program: &Path, args: &[&str]) -> std::io::Result<Output> {
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(args)
        .env("GANGER_MEMBARRIER", "off");
    valgrind.output()
}

/// The number in `==123== Collected : 456789`.
fn collected(said: &str) -> Option<u64> {
    let line = said
        .lines()
        .find_map(|line| line.split_once("Collected : "))?;
    line.1.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found_in_what_callgrind_says() {
        let said = "==7== Callgrind, a tool\n==7== Events    : Ir\n==7== Collected : 1234567\n";
        assert_eq!(collected(said), Some(1_234_567));
        assert_eq!(collected("==7== nothing"), None);
    }
}

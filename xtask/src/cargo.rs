//! Calls of cargo, shown as they are made; and the tests of a build, run singly.

use crate::root::{IT, Tree};
use crate::totals::Totals;
use crate::{Failure, program};
use std::env;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// A call of cargo in the workspace's folder.
pub(crate) struct Cargo {
    command: Command,
    shown: String,
    target: PathBuf,
}

/// A test, and its program.
#[derive(Debug, Clone)]
pub(crate) struct Test {
    program: PathBuf,
    /// Where cargo would run it.
    folder: PathBuf,
    /// The test's name in its program.
    exact: String,
    /// The name of its file in `tests` or in `tests/it`, or `unit`, and its name there.
    pub(crate) called: String,
}

/// The result of a test.
pub(crate) struct Run {
    pub(crate) ending: Ending,
    pub(crate) time: Duration,
    /// The test's output.
    pub(crate) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Passed,
    Failed,
    /// The test was ended at its time limit.
    Hung,
    /// A signal ended it: its own, or the system's when memory is short.
    Killed,
}

impl Cargo {
    /// Calls cargo with the words of a line.
    pub(crate) fn new(line: &str) -> Self {
        let command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        Self::call(command, "cargo", line)
    }

    /// Calls the nightly toolchain's cargo, without installing a missing toolchain.
    pub(crate) fn nightly(line: &str) -> Self {
        let mut command = Command::new("rustup");
        command.args(["run", "nightly", "cargo"]);
        command.env("RUSTUP_AUTO_INSTALL", "0");
        Self::call(command, "cargo +nightly", line)
    }

    fn call(mut command: Command, shown: &str, line: &str) -> Self {
        let Tree { root, target } = Tree::own();
        command.current_dir(root);
        // This program reads cargo's messages.
        command.env("CARGO_TERM_QUIET", "false");
        command.env("CARGO_TERM_VERBOSE", "false");
        let shown = shown.to_owned();
        let cargo = Self {
            command,
            shown,
            target,
        };
        cargo.args(line)
    }

    /// Sets the copy of the workspace in which Cargo runs.
    pub(crate) fn at(mut self, tree: &Tree) -> Self {
        self.target.clone_from(&tree.target);
        self.command.current_dir(&tree.root);
        self.command.env("CARGO_TARGET_DIR", &tree.target);
        self
    }

    /// Adds the words of a line.
    pub(crate) fn args(self, line: &str) -> Self {
        line.split_whitespace().fold(self, Self::arg)
    }

    pub(crate) fn arg(mut self, arg: &str) -> Self {
        self.shown = format!("{} {arg}", self.shown);
        self.command.arg(arg);
        self
    }

    pub(crate) fn env(mut self, key: &str, value: impl Into<OsString>) -> Self {
        let value = value.into();
        self.shown = format!("{key}={value:?} {}", self.shown);
        self.command.env(key, value);
        self
    }

    /// Builds with loom in the place of `std`, in a target folder of its own: the flag changes
    /// every crate, and two sets of flags in a folder would build all crates again and again.
    pub(crate) fn under_loom(self) -> Self {
        let target = self.target.join("loom");
        let cargo = self.flags("--cfg ganger_loom");
        cargo.env("CARGO_TARGET_DIR", target)
    }

    /// Adds flags of rustc to the flags in the environment.
    pub(crate) fn flags(self, more: &str) -> Self {
        let flags = env::var("RUSTFLAGS").unwrap_or_default();
        self.env("RUSTFLAGS", format!("{flags} {more}").trim_start())
    }

    /// Runs it in the place of this program.
    pub(crate) fn become_it(self) -> ExitCode {
        println!("$ {}", self.shown);
        program::become_it(self.command)
    }

    /// Runs it with its output where this program's is.
    pub(crate) fn run(mut self) -> Result<(), Failure> {
        println!("$ {}", self.shown);
        let status = self.command.status()?;
        check(&self.shown, status)
    }

    /// Runs it, shows its standard output and counts the tests in it.
    pub(crate) fn test(mut self, totals: &mut Totals) -> Result<(), Failure> {
        println!("$ {}", self.shown);
        let mut child = self.command.stdout(Stdio::piped()).spawn()?;
        if let Some(stdout) = child.stdout.take() {
            for line in BufReader::new(stdout).split(b'\n') {
                let line = line?;
                let line = String::from_utf8_lossy(&line);
                println!("{line}");
                *totals += Totals::of_line(&line);
            }
        }
        check(&self.shown, child.wait()?)
    }

    /// Runs it and returns its standard output.
    pub(crate) fn stdout(mut self) -> Result<String, Failure> {
        println!("$ {}", self.shown);
        let output = self.command.stderr(Stdio::inherit()).output()?;
        check(&self.shown, output.status)?;
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Runs the call and returns its standard error, which is shown if the call fails.
    pub(crate) fn stderr(self) -> Result<String, Failure> {
        let shown = self.shown.clone();
        println!("$ {shown}");
        self.quietly().map_err(|stderr| {
            eprint!("{stderr}");
            format!("`{shown}` failed").into()
        })
    }

    /// Runs the call without showing it, and returns its standard error, whether it fails or not:
    /// plain text, whatever the environment says.
    pub(crate) fn quietly(mut self) -> Result<String, String> {
        self.command.env("CARGO_TERM_COLOR", "never");
        let output = self.command.output().map_err(|error| error.to_string())?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.success() {
            true => Ok(stderr),
            false => Err(stderr),
        }
    }
}

fn check(shown: &str, status: ExitStatus) -> Result<(), Failure> {
    match status.success() {
        true => Ok(()),
        false => Err(format!("`{shown}`: {status}").into()),
    }
}

impl Test {
    /// Lists the tests in the programs of `cargo test --no-run`, found in its output.
    pub(crate) fn list(stderr: &str, tree: &Tree, package: &str) -> Result<Vec<Self>, Failure> {
        let mut tests = Vec::new();
        for (program_name, path) in executables(stderr) {
            let path = tree.root.join(path);
            let mut list = Command::new(&path);
            let list = list.args(["--list", "--format", "terse"]).output()?;
            if !list.status.success() {
                return Err(format!("{} --list: {}", path.display(), list.status).into());
            }
            let list = String::from_utf8(list.stdout)?;
            for exact in list.lines().filter_map(|line| line.strip_suffix(": test")) {
                let (program, folder, exact) =
                    (path.clone(), tree.package(package), exact.to_owned());
                // The program of many files has a module for each.
                let called = match program_name {
                    IT => exact.clone(),
                    name => format!("{name}::{exact}"),
                };
                tests.push(Self {
                    program,
                    folder,
                    exact,
                    called,
                });
            }
        }
        Ok(tests)
    }

    /// Runs the test in a process of its own, which is ended at the `limit`.
    ///
    /// # Panics
    ///
    /// Panics if the program can't be started.
    pub(crate) fn run(&self, env: &[(&str, String)], limit: Duration) -> Run {
        let mut command = Command::new(&self.program);
        command.args(["--exact", &self.exact, "--nocapture"]);
        command.envs(env.iter().map(|(key, value)| (key, value)));
        command.current_dir(&self.folder);
        let start = Instant::now();
        let output = output(command, limit).expect("a program that cargo has built starts");
        let time = start.elapsed();
        let (ending, text) = match output {
            None => (Ending::Hung, String::new()),
            Some((status, text)) => {
                let ran = text.contains("test result: ok. 1 passed; 0 failed");
                let ending = match status.code() {
                    Some(0) if ran => Ending::Passed,
                    Some(_) => Ending::Failed,
                    None => Ending::Killed,
                };
                (ending, text)
            }
        };
        Run { ending, time, text }
    }
}

/// Runs a program that starts no other, and returns its output; `None` if it was ended at the
/// limit.
fn output(mut command: Command, limit: Duration) -> io::Result<Option<(ExitStatus, String)>> {
    let (mut reader, writer) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?);
    let mut child = command.stderr(writer).spawn()?;
    // This program's ends of the pipe: the reader below is at the end when the child's are gone.
    drop(command);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = reader.read_to_end(&mut bytes).map(|_| bytes);
        // The receiver is gone when the time is up.
        let _unheard = sender.send(read);
    });
    if let Ok(read) = receiver.recv_timeout(limit) {
        let text = String::from_utf8_lossy(&read?).into_owned();
        return Ok(Some((child.wait()?, text)));
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

/// Returns the names of the test programs in the output of `cargo test --no-run`, and their paths:
/// of `tests/drop.rs` or `tests/drop/main.rs` it is `drop`, of unit tests `unit`.
///
/// `  Executable tests/loom_drop.rs (target/loom/release/deps/loom_drop-0123456789abcdef)`
fn executables(stderr: &str) -> impl Iterator<Item = (&str, &str)> {
    stderr.lines().filter_map(|line| {
        let line = line.trim_start().strip_prefix("Executable ")?;
        let (source, path) = line.strip_suffix(')')?.split_once(" (")?;
        let Some((_, file)) = source.split_once("tests/") else {
            return Some(("unit", path));
        };
        let stem = Path::new(file.trim_end_matches("/main.rs")).file_stem()?;
        Some((stem.to_str()?, path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_found_and_called_after_their_sources() {
        let stderr = "   Compiling ganger-deque v0.1.0 (/crates/deque)\n  \
                      Executable unittests src/lib.rs (target/deps/ganger_deque-1)\n  \
                      Executable tests/it/main.rs (target/deps/it-2)\n";
        let found: Vec<_> = executables(stderr).collect();
        let unit = ("unit", "target/deps/ganger_deque-1");
        assert_eq!(found, [unit, ("it", "target/deps/it-2")]);
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_hangs_is_ended() {
        let run = |script: &str, millis| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            output(command, Duration::from_millis(millis)).unwrap()
        };
        assert!(run("echo begun; exec sleep 600", 50).is_none());
        let (status, text) = run("echo out; echo err >&2; exit 3", 600_000).unwrap();
        assert_eq!((status.code(), &*text), (Some(3), "out\nerr\n"));
    }
}

//! Calls of cargo, shown as they are made; and the tests of a build, run singly.

use crate::root::{IT, Tree};
use crate::totals::Totals;
use crate::{Failure, program};
use std::env;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
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
    /// The name of its file in `tests` or in `tests/it`, or `unit`.
    pub(crate) file: String,
    /// The test's name in its file.
    pub(crate) name: String,
    /// The test's name in its program.
    exact: String,
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
    /// Another process killed it, as the system does when memory is short.
    Killed,
    /// The test could not be run.
    Unknown,
}

impl Cargo {
    pub(crate) fn new<S: Into<String>>(args: impl IntoIterator<Item = S>) -> Self {
        let command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        Self::call(command, "cargo").args(args)
    }

    /// Calls the nightly toolchain's cargo, without installing a missing toolchain.
    pub(crate) fn nightly<S: Into<String>>(args: impl IntoIterator<Item = S>) -> Self {
        let mut command = Command::new("rustup");
        command.args(["run", "nightly", "cargo"]);
        command.env("RUSTUP_AUTO_INSTALL", "0");
        Self::call(command, "cargo +nightly").args(args)
    }

    fn call(mut command: Command, shown: &str) -> Self {
        let Tree { root, target } = Tree::own();
        command.current_dir(root);
        // This program reads cargo's messages.
        command.env("CARGO_TERM_QUIET", "false");
        command.env("CARGO_TERM_VERBOSE", "false");
        Self {
            command,
            shown: shown.to_owned(),
            target,
        }
    }

    /// In another copy of the workspace.
    pub(crate) fn at(mut self, tree: &Tree) -> Self {
        self.target.clone_from(&tree.target);
        self.command
            .current_dir(&tree.root)
            .env("CARGO_TARGET_DIR", &tree.target);
        self
    }

    pub(crate) fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        for arg in args {
            let arg = arg.into();
            self.shown = format!("{} {arg}", self.shown);
            self.command.arg(arg);
        }
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
        let mut flags = env::var("RUSTFLAGS").unwrap_or_default();
        flags.push_str(" --cfg ganger_loom");
        let target = self.target.join("loom");
        self.env("RUSTFLAGS", flags.trim_start())
            .env("CARGO_TARGET_DIR", target)
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
            let mut reader = BufReader::new(stdout);
            let mut out = std::io::stdout().lock();
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line)? > 0 {
                out.write_all(&line)?;
                out.flush()?;
                *totals += Totals::of_line(&String::from_utf8_lossy(&line));
                line.clear();
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
        if output.status.success() {
            Ok(stderr)
        } else {
            Err(stderr)
        }
    }
}

fn check(shown: &str, status: ExitStatus) -> Result<(), Failure> {
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{shown}`: {status}").into())
    }
}

impl Test {
    /// Lists the tests in the programs of `cargo test --no-run`, found in its output.
    pub(crate) fn list(stderr: &str, tree: &Tree, package: &str) -> Result<Vec<Self>, Failure> {
        let mut tests = Vec::new();
        for (source, program) in executables(stderr) {
            let program = tree.root.join(program);
            let list = Command::new(&program)
                .args(["--list", "--format", "terse"])
                .output()?;
            if !list.status.success() {
                return Err(format!("{} --list: {}", program.display(), list.status).into());
            }
            let list = String::from_utf8(list.stdout)?;
            let names = list.lines().filter_map(|line| line.strip_suffix(": test"));
            tests.extend(names.map(|exact| {
                let (file, name) = place(file(source), exact);
                Self {
                    program: program.clone(),
                    folder: tree.package(package),
                    file: file.to_owned(),
                    name: name.to_owned(),
                    exact: exact.to_owned(),
                }
            }));
        }
        Ok(tests)
    }

    /// Runs the test in a process of its own, which is ended at the `limit`.
    pub(crate) fn run(&self, env: &[(&str, String)], limit: Option<Duration>) -> Run {
        let mut command = Command::new(&self.program);
        command
            .args(["--exact", &self.exact, "--nocapture"])
            .envs(env.iter().map(|(key, value)| (key, value)))
            .current_dir(&self.folder);
        let start = Instant::now();
        let (ending, text) = match output(command, limit) {
            Ok(None) => (Ending::Hung, String::new()),
            Ok(Some((status, text))) => {
                let one = Totals {
                    passed: 1,
                    failed: 0,
                };
                let counted = text.lines().any(|line| Totals::of_line(line) == one);
                if status.success() && counted {
                    (Ending::Passed, text)
                } else if was_killed(status) {
                    (Ending::Killed, format!("{text}\nit was killed"))
                } else {
                    (Ending::Failed, text)
                }
            }
            Err(error) => (Ending::Unknown, format!("it can't be run: {error}")),
        };
        let time = start.elapsed();
        Run { ending, time, text }
    }
}

/// Whether another process killed it.
#[cfg(unix)]
fn was_killed(status: ExitStatus) -> bool {
    const SIGKILL: i32 = 9;
    std::os::unix::process::ExitStatusExt::signal(&status) == Some(SIGKILL)
}

#[cfg(not(unix))]
fn was_killed(_status: ExitStatus) -> bool {
    false
}

/// Runs a program that starts no other, and returns its output; `None` if it was ended at the
/// limit.
fn output(
    mut command: Command,
    limit: Option<Duration>,
) -> io::Result<Option<(ExitStatus, String)>> {
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
    match receiver.recv_timeout(limit.unwrap_or(Duration::MAX)) {
        Ok(read) => {
            let text = String::from_utf8_lossy(&read?).into_owned();
            Ok(Some((child.wait()?, text)))
        }
        Err(_) => {
            child.kill()?;
            child.wait()?;
            Ok(None)
        }
    }
}

/// Returns the source files and test programs in the output of `cargo test --no-run`.
///
/// `  Executable tests/loom_drop.rs (target/loom/release/deps/loom_drop-0123456789abcdef)`
fn executables(stderr: &str) -> impl Iterator<Item = (&str, &str)> {
    stderr.lines().filter_map(|line| {
        let line = line.trim_start().strip_prefix("Executable ")?;
        let (source, program) = line.strip_suffix(')')?.split_once(" (")?;
        Some((source.trim_start_matches("unittests ").trim(), program))
    })
}

/// Returns the name of a test program, from its source: `tests/drop.rs` or `tests/drop/main.rs`.
fn file(source: &str) -> &str {
    let Some((_, path)) = source.split_once("tests/") else {
        return "unit";
    };
    let path = path.trim_end_matches("/main.rs");
    Path::new(path)
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or(path)
}

/// Returns a test's file and name: the program [`IT`] has a module for each file.
fn place<'a>(program: &'a str, exact: &'a str) -> (&'a str, &'a str) {
    match exact.split_once("::") {
        Some((file, name)) if program == IT => (file, name),
        _ => (program, exact),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_found_and_called_after_their_sources() {
        let stderr = "   Compiling ganger-deque v0.1.0 (/crates/deque)\n  \
                      Executable unittests src/lib.rs (target/deps/ganger_deque-1)\n  \
                      Executable tests/it/main.rs (target/deps/it-2)\n";
        let found = executables(stderr).map(|(source, program)| (file(source), program));
        let expected = [
            ("unit", "target/deps/ganger_deque-1"),
            ("it", "target/deps/it-2"),
        ];
        assert!(found.eq(expected));
        assert_eq!(place("it", "a::b::c"), ("a", "b::c"));
        assert_eq!(place("unit", "a::tests::b"), ("unit", "a::tests::b"));
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_hangs_is_ended() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let limit = |millis| Some(Duration::from_millis(millis));
        let hung = output(shell("echo begun; exec sleep 600"), limit(50)).unwrap();
        assert!(hung.is_none());
        let script = "echo out; echo err >&2; exit 3";
        let (status, text) = output(shell(script), limit(600_000)).unwrap().unwrap();
        assert_eq!((status.code(), text.as_str()), (Some(3), "out\nerr\n"));
    }
}

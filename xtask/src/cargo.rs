//! Calls of cargo, shown as they are made.

use crate::Failure;
use crate::root::root;
use crate::totals::Totals;
use std::env;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

/// A call of cargo in the workspace's folder.
pub(crate) struct Cargo {
    command: Command,
    shown: String,
}

impl Cargo {
    pub(crate) fn new<S: Into<String>>(args: impl IntoIterator<Item = S>) -> Self {
        let args: Vec<String> = args.into_iter().map(Into::into).collect();
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(&args).current_dir(root());
        Self {
            command,
            shown: format!("cargo {}", args.join(" ")),
        }
    }

    pub(crate) fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        for arg in args {
            let arg = arg.into();
            self.shown = format!("{} {arg}", self.shown);
            self.command.arg(arg);
        }
        self
    }

    /// Adds paths, too many of them to show.
    pub(crate) fn paths(mut self, paths: &[PathBuf]) -> Self {
        self.shown = format!("{} ({} paths)", self.shown, paths.len());
        self.command.args(paths);
        self
    }

    pub(crate) fn env(mut self, key: &str, value: impl Into<OsString>) -> Self {
        let value = value.into();
        self.shown = format!("{key}={value:?} {}", self.shown);
        self.command.env(key, value);
        self
    }

    /// With loom in the place of `std`, built in a target folder of its own: the flag changes
    /// every crate, and two sets of flags in one folder would build everything again and again.
    pub(crate) fn under_loom(self) -> Self {
        let mut flags = env::var("RUSTFLAGS").unwrap_or_default();
        flags.push_str(" --cfg loom");
        self.env("RUSTFLAGS", flags.trim_start())
            .env("CARGO_TARGET_DIR", target().join("loom"))
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

    /// Runs it and returns its standard error, which it shows when it fails.
    pub(crate) fn stderr(mut self) -> Result<String, Failure> {
        println!("$ {}", self.shown);
        let output = self.command.stdout(Stdio::inherit()).output()?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            eprint!("{stderr}");
        }
        check(&self.shown, output.status)?;
        Ok(stderr)
    }
}

fn check(shown: &str, status: ExitStatus) -> Result<(), Failure> {
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{shown}`: {status}").into())
    }
}

/// Where cargo builds.
fn target() -> PathBuf {
    root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

//! The sanitizers: the toolchain that has them, how each is built in, and the form of its reports.

use crate::Failure;
use crate::cargo::Cargo;
use crate::root::{Tree, root};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The time of a soak, in seconds, which would end after a second otherwise.
const SOAK_SECONDS: u64 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sanitizer {
    /// Accesses outside of allocated memory, or after it was freed; leaks.
    Address,
    /// Unordered accesses of two threads.
    Thread,
}

impl Sanitizer {
    pub(super) const ALL: [Self; 2] = [Self::Address, Self::Thread];

    /// Returns the name for rustc and the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Thread => "thread",
        }
    }

    /// A part of the name of its library.
    fn runtime(self) -> &'static str {
        match self {
            Self::Address => "_rt.asan",
            Self::Thread => "_rt.tsan",
        }
    }

    /// A copy of this workspace's settings, with a target folder of the sanitizer's own: its flag
    /// changes every crate.
    pub(super) fn tree(self) -> Tree {
        let Tree { root, target } = Tree::own();
        let target = target.join(format!("sanitize-{}", self.name()));
        Tree { root, target }
    }

    /// Returns the call that builds a package's tests.
    pub(super) fn build(self, nightly: &Nightly, package: &str) -> Cargo {
        let mut flags = std::env::var("RUSTFLAGS").unwrap_or_default();
        flags.push_str(&format!(" -Zsanitizer={}", self.name()));
        if self == Self::Thread && !nightly.has_sources {
            // rustc refuses to link code with and without this sanitizer.
            flags.push_str(" -Cunsafe-allow-abi-mismatch=sanitizer");
        }
        let test = ["test", "--no-run", "--lib", "--tests", "-p", package];
        let test = Cargo::nightly(test)
            .at(&self.tree())
            .env("RUSTFLAGS", flags.trim_start())
            .args(["--target", &nightly.host]);
        if nightly.has_sources {
            test.args(["-Zbuild-std"])
        } else {
            test
        }
    }

    /// Returns the environment of the tests.
    pub(super) fn env(self, nightly: &Nightly) -> Result<Vec<(&'static str, String)>, Failure> {
        let soak = ("GANGER_SOAK_SECONDS", SOAK_SECONDS.to_string());
        let files = root().join("xtask").join("sanitize");
        match self {
            Self::Address => {
                let file = files.join("address.txt").display().to_string();
                let options = format!("suppressions={file:?} print_suppressions=1");
                Ok(vec![soak, ("LSAN_OPTIONS", options)])
            }
            Self::Thread => {
                let file = self.tree().target.join("suppressions.txt");
                let mut all = fs::read_to_string(files.join("thread.txt"))?;
                if !nightly.has_sources {
                    all.push_str(&fs::read_to_string(files.join("thread-std.txt"))?);
                }
                fs::write(&file, all)?;
                let file = file.display().to_string();
                let options = format!("suppressions={file:?} print_suppressions=1");
                // A backtrace of a panic takes the loader's lock, and so does a report: two threads
                // may wait for each other.
                let backtrace = ("RUST_BACKTRACE", "0".to_owned());
                Ok(vec![soak, backtrace, ("TSAN_OPTIONS", options)])
            }
        }
    }
}

/// A nightly toolchain.
pub(super) struct Nightly {
    /// The version that the toolchain prints.
    pub(super) version: String,
    /// The target triple of this machine.
    pub(super) host: String,
    /// Whether the standard library can be built with a sanitizer: its sources are there.
    pub(super) has_sources: bool,
    /// The folder of the libraries for this machine.
    libraries: PathBuf,
}

impl Nightly {
    /// Asks rustup. The error says what is missing and how to get it.
    pub(super) fn find() -> Result<Self, String> {
        let about = rustc(&["-vV"])?;
        let (version, host) = version_and_host(&about).ok_or("nightly's rustc has no host")?;
        let sysroot = PathBuf::from(rustc(&["--print", "sysroot"])?.trim_end());
        let rustlib = sysroot.join("lib").join("rustlib");
        let sources = rustlib.join("src").join("rust").join("library");
        Ok(Self {
            version: version.to_owned(),
            host: host.to_owned(),
            has_sources: sources.join("std").is_dir(),
            libraries: rustlib.join(host).join("lib"),
        })
    }

    /// Whether there is a library of the sanitizer for this machine.
    pub(super) fn has(&self, sanitizer: Sanitizer) -> bool {
        let files = fs::read_dir(&self.libraries).into_iter().flatten();
        let mut names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        names.any(|name| name.contains(sanitizer.runtime()))
    }
}

/// Returns the output of nightly's rustc, without installing a missing toolchain.
fn rustc(args: &[&str]) -> Result<String, String> {
    let mut rustup = Command::new("rustup");
    let output = rustup
        .args(["run", "nightly", "rustc"])
        .args(args)
        .env("RUSTUP_AUTO_INSTALL", "0")
        .output();
    match output {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(_) => Err("no nightly toolchain: `rustup toolchain install nightly`".into()),
        Err(error) => Err(format!("no rustup to ask for a nightly toolchain: {error}")),
    }
}

/// Returns the first line, and the triple, of the output of `rustc -vV`.
fn version_and_host(about: &str) -> Option<(&str, &str)> {
    let host = about.lines().find_map(|line| line.strip_prefix("host: "))?;
    Some((about.lines().next()?, host))
}

/// Returns the number of reports in the output of a test.
pub(super) fn reports(text: &str) -> usize {
    let starts = [
        "WARNING: ThreadSanitizer: ",
        "ERROR: AddressSanitizer: ",
        "ERROR: LeakSanitizer: ",
    ];
    let is_start = |line: &&str| starts.iter().any(|start| line.contains(start));
    text.lines().filter(is_start).count()
}

/// Returns the number of suppressed reports, from ThreadSanitizer's last message of a program.
///
/// `ThreadSanitizer: Matched 3 suppressions (pid=1):`
pub(super) fn suppressed(text: &str) -> usize {
    let number = |line: &str| {
        let rest = line.split_once("ThreadSanitizer: Matched ")?.1;
        rest.split_once(' ')?.0.parse::<usize>().ok()
    };
    text.lines().filter_map(number).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_counted() {
        let text = "running 1 test\n==================\n\
                    WARNING: ThreadSanitizer: data race (pid=1)\n\
                    SUMMARY: ThreadSanitizer: data race a.rs\n\
                    ThreadSanitizer: reported 1 warnings\n\
                    ==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x1\n\
                    ==7==ERROR: LeakSanitizer: detected memory leaks\n";
        assert_eq!(reports(text), 3);
        assert_eq!(reports("test result: ok. 1 passed"), 0);
        assert_eq!(
            suppressed("ThreadSanitizer: Matched 3 suppressions (pid=1):\n1 race:a\n"),
            3
        );
    }

    #[test]
    fn every_suppression_has_its_reason_above() {
        for (file, kind) in [
            ("address.txt", "leak:"),
            ("thread.txt", "race:"),
            ("thread-std.txt", "race:"),
        ] {
            let text = fs::read_to_string(root().join("xtask/sanitize").join(file)).unwrap();
            for part in text.split("\n\n").filter(|part| part.contains(kind)) {
                assert!(part.starts_with("# "), "{file}: {part}");
            }
        }
    }
}

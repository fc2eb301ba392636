//! The sanitizers: the toolchain that has them, how each is built in, and the form of its reports.

use crate::Failure;
use crate::cargo::Cargo;
use crate::root::{Tree, root};
use crate::sanitize::STACK;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The time of a soak, in seconds, which would end after a second otherwise.
const SOAK_SECONDS: &str = "5";

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

    /// Returns this workspace with a target folder of the sanitizer's own: its flag changes every
    /// crate.
    pub(super) fn tree(self) -> Tree {
        let Tree { root, target } = Tree::own();
        let target = target.join(format!("sanitize-{}", self.name()));
        Tree { root, target }
    }

    /// Returns the call to build a package's tests.
    pub(super) fn build(self, nightly: &Nightly, package: &str) -> Cargo {
        let mut flags = format!("-Zsanitizer={}", self.name());
        if self == Self::Thread && !nightly.has_sources {
            // rustc refuses to link code with and without this sanitizer.
            flags.push_str(" -Cunsafe-allow-abi-mismatch=sanitizer");
        }
        let (host, build_std) = (&nightly.host, "-Zbuild-std");
        let test = format!("test --no-run --lib --tests -p {package} --target {host}");
        let test = Cargo::nightly(&test).at(&self.tree()).flags(&flags);
        test.args(if nightly.has_sources { build_std } else { "" })
    }

    /// Returns the environment of the tests.
    pub(super) fn env(self, nightly: &Nightly) -> Result<Vec<(&'static str, String)>, Failure> {
        let files = root().join("xtask").join("sanitize");
        let options = |file: PathBuf| {
            let file = file.display().to_string();
            format!("suppressions={file:?} print_suppressions=1")
        };
        let mut env = vec![("GANGER_SOAK_SECONDS", SOAK_SECONDS.to_owned())];
        match self {
            Self::Address => {
                env.push(("LSAN_OPTIONS", options(files.join("address.txt"))));
                env.push(("ASAN_OPTIONS", STACK.to_owned()));
            }
            Self::Thread => {
                let mut all = fs::read_to_string(files.join("thread.txt"))?;
                if !nightly.has_sources {
                    all.push_str(&fs::read_to_string(files.join("thread-std.txt"))?);
                }
                let file = self.tree().target.join("suppressions.txt");
                fs::write(&file, all)?;
                env.push(("TSAN_OPTIONS", options(file)));
                // A backtrace of a panic takes the loader's lock, and so does a report: two threads
                // may wait for each other.
                env.push(("RUST_BACKTRACE", "0".to_owned()));
            }
        }
        Ok(env)
    }
}

/// A nightly toolchain.
pub(super) struct Nightly {
    /// The target triple of this machine.
    pub(super) host: String,
    /// Whether the standard library can be built with a sanitizer: its sources are there.
    pub(super) has_sources: bool,
    /// The folder of the libraries for this machine.
    libraries: PathBuf,
}

impl Nightly {
    /// Asks rustup. The error names the missing part and how to get it.
    pub(super) fn find() -> Result<Self, String> {
        let about = rustc(&["-vV"])?;
        let host = about.lines().find_map(|line| line.strip_prefix("host: "));
        let host = host.ok_or("nightly's rustc has no host")?.to_owned();
        let sysroot = rustc(&["--print", "sysroot"])?;
        let rustlib = PathBuf::from(sysroot.trim_end()).join("lib/rustlib");
        println!("{}", about.lines().next().unwrap_or_default());
        Ok(Self {
            has_sources: rustlib.join("src/rust/library/std").is_dir(),
            libraries: rustlib.join(&host).join("lib"),
            host,
        })
    }

    /// Returns whether this machine has a library of the sanitizer.
    pub(super) fn has(&self, sanitizer: Sanitizer) -> bool {
        let library = format!("_rt.{}san", &sanitizer.name()[..1]);
        let files = fs::read_dir(&self.libraries).into_iter().flatten();
        let mut names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        names.any(|name| name.contains(&library))
    }
}

/// Returns the output of nightly's rustc, without installing a missing toolchain.
fn rustc(args: &[&str]) -> Result<String, String> {
    let mut rustup = Command::new("rustup");
    rustup.args(["run", "nightly", "rustc"]).args(args);
    match rustup.env("RUSTUP_AUTO_INSTALL", "0").output() {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(_) => Err("no nightly toolchain: `rustup toolchain install nightly`".into()),
        Err(error) => Err(format!("no rustup to ask for a nightly toolchain: {error}")),
    }
}

/// Returns the number of reports in the output of a test.
pub(super) fn reports(text: &str) -> usize {
    let kinds = ["WARNING: Thread", "ERROR: Address", "ERROR: Leak"];
    let count = |kind| text.matches(&format!("{kind}Sanitizer: ")).count();
    kinds.into_iter().map(count).sum()
}

/// Returns the number of suppressed reports, from ThreadSanitizer's last message of a program.
///
/// `ThreadSanitizer: Matched 3 suppressions (pid=1):`
pub(super) fn suppressed(text: &str) -> usize {
    let rest = text.split("ThreadSanitizer: Matched ").skip(1);
    rest.filter_map(|rest| rest.split(' ').next()?.parse::<usize>().ok())
        .sum()
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
        let text = "ThreadSanitizer: Matched 3 suppressions (pid=1):\n1 race:a\n";
        assert_eq!((reports(text), suppressed(text)), (0, 3));
    }

    #[test]
    fn every_suppression_has_its_reason_above() {
        for file in ["address.txt", "thread.txt", "thread-std.txt"] {
            let text = fs::read_to_string(root().join("xtask/sanitize").join(file)).unwrap();
            for part in text.split("\n\n").filter(|part| part.contains(':')) {
                assert!(part.starts_with("# "), "{file}: {part}");
            }
        }
    }
}

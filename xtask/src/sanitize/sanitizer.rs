//! The sanitizers: how each is built in, and the form of its reports.

use super::nightly::Nightly;
use crate::Failure;
use crate::cargo::Cargo;
use crate::root::{Tree, root};
use std::fs;

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

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Address => "AddressSanitizer",
            Self::Thread => "ThreadSanitizer",
        }
    }

    /// A part of the name of its library.
    pub(super) fn runtime(self) -> &'static str {
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
    }

    #[test]
    fn suppressed_reports_are_counted() {
        let text = "ThreadSanitizer: Matched 3 suppressions (pid=1):\n1 race:a\n2 race:b\n";
        assert_eq!(suppressed(text), 3);
        assert_eq!(suppressed("ThreadSanitizer: reported 2 warnings\n"), 0);
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

    /// A pattern for a renamed item would suppress nothing.
    #[test]
    fn every_suppression_names_what_there_is() {
        let mut sources = String::new();
        let mut paths = Vec::new();
        let mut folders = vec![root().join("crates")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|it| it == "rs") {
                    // A test program, or a crate, is a module without a declaration.
                    let stem = path.file_stem().unwrap().to_string_lossy();
                    sources += &format!("mod {stem}\n");
                    sources += &fs::read_to_string(&path).unwrap();
                    paths.push(path);
                }
            }
        }
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let words: Vec<&str> = sources.split(|c| !is_part(c)).collect();
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let is_declared = |name: &str| {
            const KINDS: [&str; 5] = ["fn", "mod", "struct", "enum", "trait"];
            let pairs = words.windows(2);
            let mut found = pairs.filter(|pair| KINDS.contains(&pair[0]) && pair[1] == name);
            found.next().is_some()
        };
        for list in ["address.txt", "thread.txt", "thread-std.txt"] {
            let text = fs::read_to_string(root().join("xtask/sanitize").join(list)).unwrap();
            let patterns = text.lines().filter_map(|line| {
                let (kind, pattern) = line.split_once(':')?;
                matches!(kind, "leak" | "race").then_some(pattern)
            });
            for pattern in patterns {
                // The rest is the library's.
                let ours = pattern.split(" as core::").next().unwrap_or_default();
                let first = ours.trim_start_matches('<');
                if first.starts_with("library/") {
                    continue;
                }
                if let Some(file) = first
                    .strip_prefix("crates/")
                    .or(first.strip_prefix("tests/"))
                {
                    let has = paths.iter().any(|path| path.ends_with(file));
                    assert!(has, "{list}: {pattern}: there is no such file");
                    continue;
                }
                for name in ours.split(|c| !is_part(c)).filter(|name| !name.is_empty()) {
                    let crate_folder = name.strip_prefix("ganger_").map(|it| it.replace('_', "-"));
                    let is_crate = crate_folder
                        .is_some_and(|folder| root().join("crates").join(folder).is_dir());
                    // A program, or the number of a closure.
                    let has_none = name == "it" || name == "closure" || name.parse::<u8>().is_ok();
                    assert!(
                        is_crate || has_none || is_declared(name),
                        "{list}: {pattern}: there is no {name}"
                    );
                }
            }
        }
    }
}

//! The machine and the versions of the figures.

use std::process::Command;
use std::time::{Duration, SystemTime};
use std::{env, fs, thread};

/// The versions with which this program was built.
const LOCK: &str = include_str!("../../../Cargo.lock");

/// Returns the processor, the system, the compiler, these packages with their versions, the remark,
/// and the date, in a line.
#[must_use]
pub fn platform(packages: &[&str], remark: &str) -> String {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let packages: Vec<_> = packages
        .iter()
        .map(|name| format!("{name} {}", version(name)))
        .collect();
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    format!(
        "{}, {cpus} CPUs, {}; {}; {}; {remark}; {}",
        cpu_model().unwrap_or_else(|| env::consts::ARCH.to_owned()),
        system(),
        rustc().unwrap_or_else(|| "rustc ?".to_owned()),
        packages.join(", "),
        date(since.unwrap_or_default()),
    )
}

/// Returns the version of a package with which this program was built.
#[must_use]
pub fn version(package: &str) -> &'static str {
    locked(LOCK, package).unwrap_or("?")
}

/// The model of the processor, where the system says it.
pub(crate) fn cpu_model() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let model = info.lines().find(|line| line.starts_with("model name"))?;
    let (_, model) = model.split_once(':')?;
    Some(model.trim().to_owned())
}

/// The system and its version.
pub(crate) fn system() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease");
    match release {
        Ok(release) => format!("Linux {}", release.trim()),
        Err(_) => env::consts::OS.to_owned(),
    }
}

/// Returns the compiler that `cargo bench` finds, and so builds with.
pub(crate) fn rustc() -> Option<String> {
    let output = Command::new("rustc").arg("--version").output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?;
    let mut words = version.split_whitespace();
    Some(format!("{} {}", words.next()?, words.next()?))
}

/// The version of a package in a lock file.
fn locked<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name);
    let version = lines.nth(1)?.strip_prefix("version = \"")?;
    version.strip_suffix('"')
}

/// The day and the minute, in UTC.
pub(crate) fn now() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let since = since.unwrap_or_default();
    let minutes = since.as_secs() / 60 % (24 * 60);
    format!("{} {:02}:{:02}", date(since), minutes / 60, minutes % 60)
}

/// Returns the day, in UTC, at this time after the start of 1970.
fn date(since: Duration) -> String {
    let mut days = since.as_secs() / (24 * 60 * 60);
    let mut year = 1970;
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (364, "1970-12-31"),
            (789, "1972-02-29"),
            (11_017, "2000-03-01"),
            (20_777, "2026-11-20"),
        ] {
            let since = Duration::from_secs(days * 24 * 60 * 60 + 7);
            assert_eq!(date(since), expected);
        }
    }

    #[test]
    fn versions_are_those_of_the_lock_file() {
        let lock = "[[package]]\nname = \"a-b\"\nversion = \"2.0.0\"\n\n\
                    [[package]]\nname = \"a\"\nversion = \"1.2.3\"\nsource = \"x\"\n";
        assert_eq!(locked(lock, "a"), Some("1.2.3"));
        assert_eq!(locked(lock, "b"), None);
        let line = platform(&["ganger-deque", "st3"], "remark");
        assert!(
            line.contains(", st3 0.") && line.contains("; remark; 2"),
            "{line}"
        );
        assert!(!line.contains('?'), "{line}");
    }
}

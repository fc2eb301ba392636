//! The files of a folder, by name: host, time of the clock on the wall, and cause.
//!
//! A file gets its name when it is complete. An incomplete file has `.part` behind its name.

use crate::trace::Trace;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long a time is in a name: `20250131T235959.123Z`.
const TIME: usize = 20;

/// Where the files go, and how many of them are kept.
#[derive(Debug, Clone)]
pub(super) struct Files {
    pub(super) folder: PathBuf,
    pub(super) kept: usize,
    pub(super) is_json: bool,
    /// The time in the name of the last file.
    pub(super) newest: SystemTime,
}

impl Files {
    /// Makes the folder, unless the folder exists.
    pub(super) fn make(&self) -> io::Result<()> {
        fs::create_dir_all(&self.folder)
    }

    /// Writes a file, after it has removed the oldest files.
    pub(super) fn write(&mut self, trace: &Trace, cause: &str) -> io::Result<PathBuf> {
        self.make()?;
        let host = word(trace.scheduler());
        self.prune(&host)?;
        // Names are in the order of their files, also of two in a millisecond.
        let tick = Duration::from_millis(1);
        let mut time = SystemTime::now().max(self.newest + tick);
        let (part, path, file) = loop {
            let name = self.name(&host, time, cause);
            let path = self.folder.join(&name);
            let part = self.folder.join(format!("{name}.part"));
            match File::create_new(&part) {
                Ok(file) if !path.exists() => break (part, path, file),
                Ok(_) => fs::remove_file(part)?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            // Another file has the name.
            time += tick;
        };
        self.newest = time;
        let written = self
            .fill(trace, file)
            .and_then(|()| fs::rename(&part, &path));
        written.inspect_err(|_| drop(fs::remove_file(&part)))?;
        Ok(path)
    }

    fn fill(&self, trace: &Trace, file: File) -> io::Result<()> {
        let mut file = BufWriter::new(file);
        if self.is_json {
            trace.write_json(&mut file)?;
        } else {
            trace.write_perfetto(&mut file)?;
        }
        file.into_inner()?;
        Ok(())
    }

    fn name(&self, host: &str, time: SystemTime, cause: &str) -> String {
        let end = if self.is_json { "json" } else { "pftrace" };
        format!("ganger-{host}-{}-{}.{end}", shown(time), word(cause))
    }

    /// Makes room for another file of the host.
    fn prune(&self, host: &str) -> io::Result<()> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            names.extend(
                name.to_str()
                    .filter(|it| is_own(it, host))
                    .map(str::to_owned),
            );
        }
        // The oldest first.
        names.sort_unstable();
        let most = self.kept.max(1) - 1;
        for name in names.iter().take(names.len().saturating_sub(most)) {
            match fs::remove_file(self.folder.join(name)) {
                // Another program has removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
        Ok(())
    }
}

/// Returns whether the name is of a trace of the host.
fn is_own(name: &str, host: &str) -> bool {
    let rest = name.strip_prefix("ganger-");
    let rest = rest.and_then(|it| it.strip_prefix(host)?.strip_prefix('-'));
    let Some((time, rest)) = rest.and_then(|it| it.split_at_checked(TIME)) else {
        return false;
    };
    let mut form = time.bytes().zip(*b"00000000T000000.000Z");
    let is_time = form.all(|(byte, form)| match form {
        b'0' => byte.is_ascii_digit(),
        _ => byte == form,
    });
    let rest = rest.strip_suffix(".part").unwrap_or(rest);
    let is_trace = rest.ends_with(".pftrace") || rest.ends_with(".json");
    is_time && rest.starts_with('-') && is_trace
}

/// Returns the text as a part of a name: letters, digits, `.`, `-` and `_`, and 64 bytes at most.
fn word(text: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || ".-_".contains(it);
    let plain = text.chars().map(|it| if is_plain(it) { it } else { '_' });
    plain.take(64).collect()
}

/// Returns the time in UTC, to a millisecond: names are in the order of their times.
fn shown(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, millis) = (since.as_secs(), since.subsec_millis());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}.{millis:03}Z")
}

/// Returns the date so many days after the first of January 1970: Hinnant's `civil_from_days`.
fn date(days: u64) -> (u64, u64, u64) {
    // Eras of 400 years that begin with a March, so that the leap day is the last of its year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    // pins: V15
    #[test]
    fn names_have_the_time_in_utc() {
        let shown = |millis| shown(UNIX_EPOCH + Duration::from_millis(millis));
        for (millis, time) in [
            (0, "19700101T000000.000Z"),
            (951_782_399_999, "20000228T235959.999Z"),
            (951_782_400_000, "20000229T000000.000Z"),
            (951_868_800_000, "20000301T000000.000Z"),
            (1_735_689_599_001, "20241231T235959.001Z"),
            (4_107_542_400_000, "21000301T000000.000Z"),
        ] {
            assert_eq!(shown(millis), time);
            assert_eq!(time.len(), TIME);
        }
    }

    // pins: V15
    #[test]
    fn files_of_others_are_told_apart() {
        for own in [
            "ganger-main-20000228T235959.999Z-alarm_x.pftrace",
            "ganger-main-20000228T235959.999Z-demand.json",
            "ganger-main-20000228T235959.999Z-demand.json.part",
        ] {
            assert!(is_own(own, "main"), "{own}");
            assert!(!is_own(own, "mai") && !is_own(own, "other"), "{own}");
        }
        for other in [
            "ganger-main-a-20000228T235959.999Z-demand.json",
            "ganger-main-2000022XT235959.999Z-demand.json",
            "ganger-main-20000228T235959.999Z-demand.txt",
            "ganger-main-1.pftrace",
            "ganger-main-äääääääääää.json",
            "notes.json",
        ] {
            assert!(!is_own(other, "main"), "{other}");
        }
        assert_eq!(word("../a b/ä-1.x"), ".._a_b__-1.x");
        assert_eq!(word(&"x".repeat(100)).len(), 64);
    }
}

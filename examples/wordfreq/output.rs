//! Standard output: the words, the throughput, the statistics.

use super::run::Outcome;
use ganger::WorkerStats;
use std::fs;
use std::io::{self, Write};

/// Writes the most frequent words and the counts of the run, for people.
pub(crate) fn write_text(out: &mut impl Write, run: &Outcome, top: usize) -> io::Result<()> {
    let summary = &run.summary;
    let top = summary.table.top(top);
    let width = top.first().map_or(0, |&(_, count)| grouped(count).len());
    for (word, count) in top {
        writeln!(out, "{:>width$}  {word}", grouped(count))?;
    }
    let (words, seconds) = (summary.table.words(), run.elapsed.as_secs_f64());
    writeln!(
        out,
        "{}, {}, {} ({} distinct) in {seconds:.2} s: {:.0} MB/s, {}/s",
        plural(summary.files, "file"),
        size(summary.bytes),
        plural(words, "word"),
        grouped(summary.table.distinct() as u64),
        summary.bytes as f64 / seconds / 1e6,
        scaled(words as f64 / seconds),
    )?;
    if summary.skipped + summary.failed > 0 {
        let skipped = plural(summary.skipped, "binary file");
        writeln!(out, "{skipped} skipped, {} failed", grouped(summary.failed))?;
    }
    Ok(())
}

/// Writes the words and the counts as a JSON object, on a single line.
pub(crate) fn write_json(out: &mut impl Write, run: &Outcome, top: usize) -> io::Result<()> {
    let summary = &run.summary;
    writeln!(
        out,
        "{{\"files\":{},\"skipped\":{},\"failed\":{},\"bytes\":{},\"words\":{},\"distinct\":{},\
         \"seconds\":{},\"top\":{}}}",
        summary.files,
        summary.skipped,
        summary.failed,
        summary.bytes,
        summary.table.words(),
        summary.table.distinct(),
        serde_json::to_string(&run.elapsed.as_secs_f64())?,
        serde_json::to_string(&summary.table.top(top))?,
    )
}

/// Writes the scheduler's statistics.
pub(crate) fn write_stats(out: &mut impl Write, run: &Outcome) -> io::Result<()> {
    let total = &run.stats.total;
    writeln!(
        out,
        "{} processes on {}: {} failed, {} panicked, {} terminated",
        grouped(total.started),
        plural(run.stats.workers as u64, "worker"),
        grouped(total.failed),
        grouped(total.panicked),
        grouped(total.terminated),
    )?;
    let header = [
        "steps",
        "commands",
        "local",
        "global",
        "rotations",
        "steals",
        "stolen",
        "sleeps",
    ];
    write_row(out, "", header.map(str::to_owned))?;
    for (number, stats) in run.worker_stats.iter().enumerate() {
        write_row(out, &format!("worker {number}"), columns(stats))?;
    }
    write_row(out, "all threads", columns(total))?;
    if let Some(bytes) = peak_memory() {
        writeln!(out, "peak memory: {}", size(bytes))?;
    }
    Ok(())
}

fn columns(stats: &WorkerStats) -> [String; 8] {
    [
        stats.steps,
        stats.yields,
        stats.local_picks,
        stats.global_picks,
        stats.rotations,
        stats.steals,
        stats.stolen,
        stats.sleeps,
    ]
    .map(grouped)
}

fn write_row(out: &mut impl Write, name: &str, columns: [String; 8]) -> io::Result<()> {
    write!(out, "{name:<11}")?;
    for column in columns {
        write!(out, " {column:>10}")?;
    }
    writeln!(out)
}

/// Returns the peak memory of this program, in bytes, if the system tells.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// Formats a number: `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number of things: `1 file`, `2 files`.
fn plural(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", grouped(number))
}

/// Formats a size: `17 bytes`, `1.2 kB`, `56.7 MB`, `8.9 GB`.
fn size(bytes: u64) -> String {
    let number = bytes as f64;
    match bytes {
        0..1_000 => plural(bytes, "byte"),
        1_000..999_950 => format!("{:.1} kB", number / 1e3),
        999_950..999_950_000 => format!("{:.1} MB", number / 1e6),
        _ => format!("{:.1} GB", number / 1e9),
    }
}

/// Formats a number of words: `17 words`, `1.2 k words`, `8.9 M words`.
fn scaled(words: f64) -> String {
    match words {
        1e6.. => format!("{:.1} M words", words / 1e6),
        1e3.. => format!("{:.1} k words", words / 1e3),
        _ => format!("{words:.0} words"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_threes() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (123_456, "123,456"),
            (1_234_567, "1,234,567"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ];
        for (number, text) in cases {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn sizes_have_the_unit_that_suits_them() {
        let cases = [
            (0, "0 bytes"),
            (1, "1 byte"),
            (999, "999 bytes"),
            (1_000, "1.0 kB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (56_749_999, "56.7 MB"),
            (999_950_000, "1.0 GB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(size(bytes), text);
        }
        assert_eq!(scaled(7.2e6), "7.2 M words");
        assert_eq!(scaled(1234.0), "1.2 k words");
        assert_eq!(scaled(12.4), "12 words");
    }
}

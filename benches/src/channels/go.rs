//! Go's channels: a program of its own, which is built at the first need.

use super::work::Work;
use crate::contest::Run;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

pub(super) const NAME: &str = "Go";

/// The program; `None` without Go.
static PROGRAM: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/foreign/channels");
    let program = std::env::temp_dir().join(format!("ganger-go-channels-{}", std::process::id()));
    let built = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .current_dir(source)
        .status();
    built.is_ok_and(|it| it.success()).then_some(program)
});

pub(super) fn prepare(work: Work) -> Run {
    Box::new(move || vec![run(work).unwrap_or(f64::NAN)])
}

/// Nanoseconds for each value.
fn run(work: Work) -> Option<f64> {
    let numbers = [
        work.senders,
        work.receivers as u64,
        work.capacity as u64,
        work.values,
    ];
    let output = Command::new(PROGRAM.as_ref()?)
        .args(numbers.map(|it| it.to_string()))
        .output()
        .ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

//! Go's locks: a program of its own, which is built at the first need.

use super::work::Work;
use crate::contest::Run;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

pub(super) const NAME: &str = "Go";

/// The program; `None` without Go.
static PROGRAM: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/foreign/locks");
    let program = std::env::temp_dir().join(format!("ganger-go-locks-{}", std::process::id()));
    let built = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .current_dir(source)
        .status();
    built.is_ok_and(|it| it.success()).then_some(program)
});

pub(super) fn prepare(work: Work, metrics: usize) -> Run {
    Box::new(move || run(work).unwrap_or_else(|| vec![f64::NAN; metrics]))
}

/// Returns its output: nanoseconds, and further figures of the workload.
fn run(work: Work) -> Option<Vec<f64>> {
    let (name, numbers) = match work {
        Work::Uncontended { turns } => ("mutex", [1, 0, turns]),
        Work::Mutex {
            tasks,
            inside,
            turns,
        } => ("contended", [tasks, inside, turns]),
        Work::Semaphore {
            tasks,
            permits,
            turns,
        } => ("semaphore", [tasks, permits as u64, turns]),
        Work::Wake { waiters, closes } => ("wake", [waiters, closes.into(), 0]),
    };
    let output = Command::new(PROGRAM.as_ref()?)
        .arg(name)
        .args(numbers.map(|it| it.to_string()))
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.split_whitespace().map(|it| it.parse().ok()).collect()
}

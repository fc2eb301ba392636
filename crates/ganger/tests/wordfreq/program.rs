//! Building, starting and understanding the program.

use crate::plain::Counts;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// A command that runs the program.
pub(crate) fn wordfreq() -> Command {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    Command::new(PROGRAM.get_or_init(find_or_build))
}

/// `cargo test` builds examples, but not when it is told to build one test only.
fn find_or_build() -> PathBuf {
    let test = env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    let name = format!("wordfreq{}", env::consts::EXE_SUFFIX);
    let program = profile.join("examples").join(name);
    let modified = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified());
    match (modified(&program), modified(&test)) {
        (Ok(program_time), Ok(test_time)) if program_time >= test_time => program,
        _ => build(profile.file_name().unwrap()),
    }
}

fn build(profile: &OsStr) -> PathBuf {
    let profile = match profile.to_str().unwrap() {
        "debug" => "dev",
        other => other,
    };
    let output = Command::new(env!("CARGO"))
        .args(["build", "--example", "wordfreq", "--message-format", "json"])
        .args(["--profile", profile, "--manifest-path"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "the example does not build");
    let messages = String::from_utf8(output.stdout).unwrap();
    let mut messages = messages.lines().rev();
    let executable = messages.find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(PathBuf::from)
    });
    executable.unwrap()
}

/// How the program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Runs the program with these arguments.
pub(crate) fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ended {
    wordfreq().args(arguments).output().unwrap().into()
}

impl Ended {
    /// The JSON object that is all of the output.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// A number of the JSON object.
    pub(crate) fn number(&self, name: &str) -> u64 {
        let number = self.json()[name].as_u64();
        number.unwrap_or_else(|| panic!("{name} is no number: {self:?}"))
    }

    /// The words of the JSON object, in their order.
    pub(crate) fn top(&self) -> Vec<(String, u64)> {
        serde_json::from_value(self.json()["top"].clone()).unwrap()
    }
}

/// Checks that the program, with `workers` workers, counts what a plain counter counts.
pub(crate) fn check(paths: &[PathBuf], workers: u32) -> Ended {
    let mut expected = Counts::default();
    for path in paths {
        expected.add_path(path);
    }
    let ended: Ended = wordfreq()
        .args(["--json", "--stats", "--top", "1000000000", "--workers"])
        .arg(workers.to_string())
        .args(paths)
        .output()
        .unwrap()
        .into();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.number("files"), expected.files);
    assert_eq!(ended.number("skipped"), expected.skipped);
    assert_eq!(ended.number("failed"), 0);
    assert_eq!(ended.number("bytes"), expected.bytes);
    assert_eq!(ended.number("words"), expected.words.values().sum::<u64>());
    assert_eq!(ended.number("distinct"), expected.words.len() as u64);
    let (counted, expected) = (ended.top(), expected.ranked());
    let difference = counted.iter().zip(&expected).find(|(a, b)| a != b);
    assert_eq!(difference, None);
    assert_eq!(counted.len(), expected.len());
    ended
}

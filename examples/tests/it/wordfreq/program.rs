//! Starting and understanding the program.

use super::plain::Counts;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output};

/// Returns a command that runs the program.
pub(crate) fn wordfreq() -> Command {
    Command::new(env!("CARGO_BIN_EXE_wordfreq"))
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
    /// Parses the whole output as a JSON object.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns a number of the JSON object.
    pub(crate) fn number(&self, name: &str) -> u64 {
        let number = self.json()[name].as_u64();
        number.unwrap_or_else(|| panic!("{name} is not a number: {self:?}"))
    }

    /// Returns the words of the JSON object, in their order.
    pub(crate) fn top(&self) -> Vec<(String, u64)> {
        serde_json::from_value(self.json()["top"].clone()).unwrap()
    }
}

/// Checks the counts of the program, with `workers` workers, against a plain counter.
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

//! Finding, starting and understanding the program.

use super::plain::Counts;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::SystemTime;

/// A command that runs the program.
pub(crate) fn wordfreq() -> Command {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    Command::new(PROGRAM.get_or_init(find))
}

/// Where cargo has put it: beside the folder of this test. `cargo test` builds examples before it
/// runs tests, unless it is told which test programs to build.
fn find() -> PathBuf {
    let test = env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    let name = format!("wordfreq{}", env::consts::EXE_SUFFIX);
    let program = profile.join("examples").join(name);
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/wordfreq");
    let changed = fs::read_dir(sources).unwrap();
    let changed = changed.map(|entry| modified(&entry.unwrap().path()).unwrap());
    let is_current = modified(&program).is_ok_and(|built| changed.max() <= Some(built));
    assert!(
        is_current,
        "{} is not there, or older than its sources: run `cargo test -p ganger`, or first `cargo \
         build -p ganger --example wordfreq` with this test's profile and features",
        program.display()
    );
    program
}

fn modified(path: &Path) -> io::Result<SystemTime> {
    fs::metadata(path)?.modified()
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

//! Ctrl-C.

use super::program::{Ended, wordfreq};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The small files come first, and they are more than may be on their way at once: when the endless
/// file is submitted, this many have been counted.
const SMALL_FILES: u64 = 10_000;
const SURELY_COUNTED: u64 = SMALL_FILES + 1 - 8192;

/// Makes a file that takes hours to read and no space: words, and then a hole.
fn endless_file(path: &Path) {
    let mut file = File::create(path).unwrap();
    file.write_all(&b"gamma ".repeat(2_000)).unwrap();
    file.set_len(4 << 40).unwrap();
}

/// Starts a run, and waits until everything has been submitted: the program takes the paths in
/// order, and reports the last path as missing.
fn start_and_wait(arguments: &[&Path]) -> (Child, BufReader<ChildStderr>) {
    let missing = arguments[arguments.len() - 1].with_file_name("missing");
    let mut child = wordfreq()
        .arg("--json")
        .args(arguments)
        .arg(&missing)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(
        line.contains("can't read") && line.contains("missing"),
        "{line}"
    );
    (child, stderr)
}

fn press_ctrl_c(child: &Child) {
    let pid = child.id().to_string();
    let killed = Command::new("kill").args(["-INT", &pid]).status();
    assert!(killed.unwrap().success());
}

fn interrupt(child: Child, mut stderr: BufReader<ChildStderr>) -> Ended {
    press_ctrl_c(&child);
    let mut ended = Ended::from(child.wait_with_output().unwrap());
    stderr.read_to_string(&mut ended.stderr).unwrap();
    ended
}

#[test]
fn an_interrupted_run_prints_what_it_has_counted() {
    let directory = tempfile::tempdir().unwrap();
    let small = directory.path().join("small");
    fs::create_dir(&small).unwrap();
    for file in 0..SMALL_FILES {
        fs::write(small.join(file.to_string()), "alpha beta").unwrap();
    }
    let endless = directory.path().join("endless");
    endless_file(&endless);
    let (child, stderr) = start_and_wait(&[&small, &endless]);
    let ended = interrupt(child, stderr);
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(
        ended.stderr.starts_with("wordfreq: interrupted"),
        "{}",
        ended.stderr
    );

    let top = ended.top();
    let count = |word| {
        top.iter()
            .find(|(other, _)| other == word)
            .map_or(0, |&(_, n)| n)
    };
    let [alpha, beta, gamma] = ["alpha", "beta", "gamma"].map(count);
    assert_eq!(alpha, beta);
    assert!(
        (SURELY_COUNTED..=SMALL_FILES).contains(&alpha),
        "{alpha} files"
    );
    assert!(gamma == 0 || gamma == 2_000, "{gamma}");
    assert_eq!(ended.number("files"), alpha + gamma / 2_000);
    assert_eq!(ended.number("words"), alpha + beta + gamma);
    assert_eq!(ended.number("failed"), 1);
}

#[test]
fn a_single_endless_file_can_be_interrupted() {
    let directory = tempfile::tempdir().unwrap();
    let endless = directory.path().join("endless");
    endless_file(&endless);
    let (child, stderr) = start_and_wait(&[&endless]);
    let ended = interrupt(child, stderr);
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(
        [0, 2_000].contains(&ended.number("words")),
        "{}",
        ended.stdout
    );
}

#[test]
fn a_program_that_cannot_print_is_ended_by_the_next_ctrl_c() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    // The output is more than a pipe holds, and the test does not read it: the program gets stuck.
    let letters = || 'a'..='z';
    let pairs = letters().flat_map(|a| letters().map(move |b| [a, b]));
    let words: String = pairs
        .flat_map(|[a, b]| letters().flat_map(move |c| [a, b, c, ' ']))
        .collect();
    fs::write(&path, words).unwrap();
    let mut child = wordfreq()
        .args(["--json", "--top", "100000"])
        .arg(&path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0]).unwrap();
    press_ctrl_c(&child);
    let deadline = Instant::now() + Duration::from_secs(30);
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() > deadline => child.kill().unwrap(),
            None => thread::sleep(Duration::from_millis(10)),
        }
    };
    assert_eq!(status.code(), Some(130));
}

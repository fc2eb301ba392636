//! Options, output and exit codes.

use super::program::{run, wordfreq};
use std::fs;
use std::process::Stdio;
use tempfile::TempDir;

fn folder_with(text: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file.txt"), text).unwrap();
    directory
}

fn path(directory: &TempDir) -> &str {
    directory.path().to_str().unwrap()
}

#[test]
fn json_is_one_object_with_exactly_the_promised_keys() {
    let directory = folder_with("The cat. the dog");
    let ended = run(["--json", path(&directory)]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    assert_eq!(ended.stdout.lines().count(), 1);
    let json = ended.json();
    let mut keys: Vec<_> = json
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    let expected = [
        "bytes", "distinct", "failed", "files", "seconds", "skipped", "top", "words",
    ];
    assert_eq!(keys, expected);
    assert!(json["seconds"].as_f64().unwrap() > 0.0);
    let numbers = ["files", "skipped", "failed", "bytes", "words", "distinct"];
    assert_eq!(numbers.map(|name| ended.number(name)), [1, 0, 0, 16, 4, 3]);
    assert_eq!(
        json["top"],
        serde_json::json!([["the", 2], ["cat", 1], ["dog", 1]])
    );
}

#[test]
fn the_text_ends_with_the_throughput() {
    let directory = folder_with("b a b c a b");
    let ended = run([path(&directory)]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let lines: Vec<_> = ended.stdout.lines().collect();
    assert_eq!(lines[..3], ["3  b", "2  a", "1  c"]);
    assert!(
        lines[3].starts_with("1 file, 11 bytes, 6 words (3 distinct) in 0."),
        "{}",
        lines[3]
    );
    assert!(
        lines[3].contains(" MB/s, ") && lines[3].ends_with(" words/s"),
        "{}",
        lines[3]
    );
    assert_eq!(lines.len(), 4);
}

#[test]
fn top_limits_the_words_and_ties_are_alphabetical() {
    let words: Vec<String> = ('a'..='z').rev().map(|c| format!("w{c}")).collect();
    let directory = folder_with(&words.join(" "));
    let top = |arguments: &[&str]| -> Vec<String> {
        let arguments = [&["--json", path(&directory)], arguments].concat();
        run(arguments)
            .top()
            .into_iter()
            .map(|(word, _)| word)
            .collect()
    };
    let sorted: Vec<_> = words.iter().rev().cloned().collect();
    assert_eq!(top(&[]), sorted[..20]);
    assert_eq!(top(&["--top", "3"]), sorted[..3]);
    assert_eq!(top(&["--top", "100"]), sorted);
    assert!(top(&["--top", "0"]).is_empty());
}

#[test]
fn a_missing_path_fails_and_the_rest_is_counted() {
    let directory = folder_with("some words");
    let missing = directory.path().join("missing");
    let ended = run(["--json", missing.to_str().unwrap(), path(&directory)]);
    assert_eq!(ended.code, Some(1));
    let line = format!("wordfreq: can't read {}: ", missing.display());
    assert!(ended.stderr.starts_with(&line), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1);
    let numbers = ["files", "failed", "words"].map(|name| ended.number(name));
    assert_eq!(numbers, [1, 1, 2]);
    let ended = run([missing.to_str().unwrap(), path(&directory)]);
    assert!(
        ended
            .stdout
            .ends_with("\n0 binary files skipped, 1 failed\n"),
        "{}",
        ended.stdout
    );
}

#[test]
fn a_wrong_command_line_is_refused() {
    let directory = folder_with("word");
    let wrong: [&[&str]; 4] = [
        &[],
        &["--workers", "0"],
        &["--top", "many"],
        &["--no-such-option"],
    ];
    for arguments in wrong {
        let paths: &[&str] = if arguments.is_empty() {
            &[]
        } else {
            &[path(&directory)]
        };
        let ended = run([arguments, paths].concat());
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(2), ""),
            "{arguments:?}"
        );
        assert!(ended.stderr.starts_with("error: "), "{}", ended.stderr);
    }
    let help = run(["--help"]);
    assert_eq!(help.code, Some(0));
    for part in [
        "--top",
        "--json",
        "--workers",
        "--stats",
        "Examples:",
        "Ctrl-C",
    ] {
        assert!(help.stdout.contains(part), "{part}");
    }
}

#[test]
fn statistics_are_printed_on_demand() {
    let directory = folder_with("word");
    for file in 0..9 {
        fs::write(directory.path().join(file.to_string()), "word").unwrap();
    }
    for workers in ["1", "4"] {
        let ended = run(["--stats", "--workers", workers, path(&directory)]);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        let plural = if workers == "1" { "" } else { "s" };
        let line = format!("11 processes on {workers} worker{plural}: 0 failed, 0 panicked");
        assert!(ended.stdout.contains(&line), "{}", ended.stdout);
        assert_eq!(
            ended.stdout.matches("\nworker ").count().to_string(),
            workers
        );
    }
    let ended = run(["--stats", "--json", path(&directory)]);
    assert_eq!(ended.number("files"), 10);
    assert!(
        ended.stderr.contains("11 processes on "),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let words: Vec<String> = (0..60_000_u32)
        .map(|n| {
            n.to_string()
                .bytes()
                .map(|digit| (digit + b'A' - b'0') as char)
                .collect()
        })
        .collect();
    let directory = folder_with(&words.join(" "));
    for format in [&[][..], &["--json"]] {
        let mut command = wordfreq();
        command
            .args(["--top", "60000", path(&directory)])
            .args(format);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    }
}

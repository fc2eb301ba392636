//! Plays the fuzzer's corpus: its first inputs, and its findings.

use ganger_model::{check_pid_text, play_bytes};
use std::fs;
use std::path::Path;

/// Returns the files of a target's corpus, each with its name.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let folder = fuzz.join("corpus").join(target);
    let files = fs::read_dir(&folder).unwrap().map(Result::unwrap);
    let mut corpus: Vec<_> = files
        .map(|file| {
            let name = file.file_name().to_string_lossy().into_owned();
            (name, fs::read(file.path()).unwrap())
        })
        .collect();
    corpus.sort();
    assert!(
        corpus.len() >= 5,
        "{} files in {}",
        corpus.len(),
        folder.display()
    );
    corpus
}

#[test]
fn every_plan_has_the_one_result() {
    for (name, bytes) in corpus("scheduler") {
        println!("corpus/scheduler/{name}");
        play_bytes(&bytes);
    }
}

// pins: R1
#[test]
fn every_text_is_a_pid_or_none() {
    let corpus = corpus("pid_text");
    let are_pids = corpus.iter().filter(|(name, bytes)| {
        println!("corpus/pid_text/{name}");
        check_pid_text(bytes)
    });
    let pids = are_pids.count();
    assert!(
        0 < pids && pids < corpus.len(),
        "{pids} of {}",
        corpus.len()
    );
}

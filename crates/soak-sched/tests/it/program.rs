//! The program, from outside.

use std::process::{Command, Output};

fn soak(args: &[&str]) -> Command {
    let mut soak = Command::new(env!("CARGO_BIN_EXE_ganger-soak"));
    soak.args(args);
    soak
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_run_says_its_seed_and_its_result() {
    let output = soak(&["--seconds", "0.1", "--seed", "3"]).output().unwrap();
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert!(output.status.success(), "{output:?}");
    assert!(lines[0].ends_with(" cores, seed 3"), "{text}");
    assert!(lines[1].starts_with("soak: Passed after "), "{text}");
    // Without a terminal: no live line, and no report of panics on purpose.
    assert!(
        !text.contains('\r') && output.stderr.is_empty(),
        "{output:?}"
    );
}

#[test]
fn a_wrong_option_is_refused() {
    for args in [&["--seconds", "0"][..], &["--sedes", "1"]] {
        let output = soak(args).output().unwrap();
        assert_eq!(
            (output.status.code(), stdout(&output).as_str()),
            (Some(2), "")
        );
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_it_with_a_summary() {
    use std::io::{BufRead, BufReader, Read};
    use std::process::Stdio;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("summary.json");
    let path = path.to_str().unwrap();
    let mut child = soak(&["--minutes", "60", "--json", path])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    // The program is ready for Ctrl-C before it prints anything.
    stdout.read_line(&mut text).unwrap();
    let pid = child.id().to_string();
    let interrupted = Command::new("kill").args(["-INT", &pid]).status();
    assert!(interrupted.unwrap().success());
    stdout.read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success(), "{text}");
    assert!(text.contains("soak: Interrupted after "), "{text}");
    let summary = std::fs::read_to_string(path).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["outcome"], "interrupted");
    assert!(summary["rounds"].as_u64() >= Some(1));
}

//! `ganger-top` as a program, without a terminal.

use super::server::Server;
use ganger_top::{Demo, Source as _};
use std::fs::File;
use std::process::{Command, Output};
use std::time::Duration;

fn top(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ganger-top"));
    command.env_remove("GANGER_TOKEN").args(arguments);
    command.output().unwrap()
}

/// Returns the text of a good run.
#[track_caller]
fn printed(arguments: &[&str]) -> String {
    let output = top(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the error of a bad run.
#[track_caller]
fn failed(arguments: &[&str]) -> String {
    let output = top(arguments);
    assert!(!output.status.success() && output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn once_is_text_for_logs_and_json_for_scripts() {
    let text = printed(&["--demo", "--once", "--every", "100ms", "--top", "3"]);
    assert!(
        text.contains("scheduler shop") && text.contains("report Report"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 5 + 1 + 1 + 3, "{text}");
    let all = [
        "--demo",
        "--once",
        "--json",
        "--every",
        "100ms",
        "--filter",
        "state:blocked sh",
    ];
    let json = printed(&all);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["version"], 1);
    assert!(json["rates"][0]["rates"]["steps"].as_f64().unwrap() > 0.0);
    let processes = json["processes"]["processes"].as_array().unwrap();
    assert!(processes.iter().all(|it| it["state"] == "blocked"));
    assert!(!processes.is_empty());
}

#[test]
fn json_without_a_single_look_says_what_is_missing() {
    for arguments in [&["--json"][..], &["--demo", "--json"]] {
        assert!(
            failed(arguments).contains("--json is for a single look that is printed: add --once")
        );
    }
}

#[test]
fn a_trace_is_summed_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.pftrace");
    let mut file = File::create(&path).unwrap();
    Demo::new()
        .trace(Duration::from_secs(5), &mut file)
        .unwrap();
    let text = printed(&["--file", path.to_str().unwrap()]);
    assert!(text.starts_with("Trace of shop, from "), "{text}");
    assert!(
        text.contains("Longest turns:") && text.contains("shop::Orders {shop|10}"),
        "{text}"
    );
    assert!(text.contains("Longest waits:"), "{text}");
    std::fs::write(&path, "[]").unwrap();
    let error = failed(&["--file", path.to_str().unwrap()]);
    assert!(error.starts_with("error: not a Perfetto trace"), "{error}");
    let error = failed(&["--file", "/nowhere/at/all"]);
    assert!(error.starts_with("error: /nowhere/at/all: "), "{error}");
}

#[test]
fn a_fault_is_a_sentence_and_a_status() {
    let error = failed(&["--demo"]);
    assert!(
        error.contains("the output is not a terminal: use --once"),
        "{error}"
    );
    let error = failed(&["--once", "127.0.0.1:1"]);
    assert!(
        error.starts_with("error: no answer at 127.0.0.1:1: "),
        "{error}"
    );
    let server = Server::of("HTTP/1.1 400 No\r\n\r\n\u{1b}[31mred\u{7}");
    let error = failed(&["--once", &server.address.to_string()]);
    assert_eq!(error, "error: refused (400): \u{fffd}[31mred\u{fffd}\n");
    server.request();
}

#[test]
fn the_help_tells_all() {
    let help = printed(&["--help"]);
    for part in [
        "[ADDRESS]",
        "--token",
        "GANGER_TOKEN",
        "--every",
        "--demo",
        "--once",
        "--json",
        "--top",
        "--filter",
        "--file",
        "--version",
        "127.0.0.1:7007",
        "never yields",
    ] {
        assert!(help.contains(part), "{part}: {help}");
    }
}

//! The example of a log.

use std::process::Command;

/// Runs the program with this filter, and returns its log.
fn log(wanted: &[&str]) -> String {
    let program = env!("CARGO_BIN_EXE_trace");
    let output = Command::new(program).args(wanted).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

// pins: F2
#[test]
fn what_the_scheduler_says_is_in_the_log() {
    let all = log(&[]);
    for text in [
        "DEBUG ganger::sched: started",
        "INFO trace: of the program's own",
        "DEBUG ganger::sched: ended",
        "ERROR ganger::failure",
        "on purpose",
        "INFO ganger::sched: stopping",
        "INFO ganger::sched: stopped",
    ] {
        assert!(all.contains(text), "{text}: {all}");
    }
    let some = log(&["info,ganger::sched=warn"]);
    assert!(some.contains("of the program's own"), "{some}");
    assert!(!some.contains("ganger::sched: stopped"), "{some}");
}

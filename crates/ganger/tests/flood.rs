//! Strangers send as many PIDs as they like. A program of its own, because the table of names is
//! the program's.

use ganger::BuildError;
use ganger::Runtime;
use ganger::prelude::*;
use ganger::{HostName, NameProblem, ParsePidError, PidProblem};

/// Returns a text from a stranger.
fn text(n: usize) -> String {
    format!("{{n{n}@h{n}|1}}")
}

/// Starts a program with its default names.
fn start_with_default_names() {
    drop(Scheduler::start_default());
    Runtime::builder().build().unwrap().start().unwrap();
}

// pins: R1
#[test]
fn a_program_starts_whatever_names_strangers_have_sent() {
    for n in 0..32_767 {
        let parsed: Result<Pid, ParsePidError> = text(n).parse();
        match parsed {
            Ok(pid) => assert_eq!(pid.to_string(), text(n)),
            Err(error) => {
                assert!(n >= 16_384, "{error}");
                let (PidProblem::Node(name) | PidProblem::Host(name)) = &error.problem else {
                    panic!("{error}");
                };
                assert_eq!(name.problem, NameProblem::TooManyParsed);
                assert!(error.to_string().contains("`Pid::parse_known`"), "{error}");
                assert!(Pid::parse_known(&text(n)).is_err());
            }
        }
    }
    assert_eq!(Pid::parse_known(&text(0)), text(0).parse());
    start_with_default_names();

    let own = Scheduler::builder().host("mine").build().unwrap();
    assert_eq!(own.host_name().as_str(), "mine");
    let runtime = Runtime::builder().node("my-node").build().unwrap();
    assert_eq!(runtime.node_name().unwrap().as_str(), "my-node");

    // A program that makes all names itself is refused more, but still starts.
    let refused = (0..=65_536).find_map(|n| HostName::new(&format!("own{n}")).err());
    assert_eq!(refused.unwrap().problem, NameProblem::TableFull);
    start_with_default_names();
    let Err(BuildError::Name { error, .. }) = Scheduler::builder().host("one-more").build() else {
        panic!("the table is full");
    };
    assert!(error.to_string().contains("create fewer"), "{error}");
}

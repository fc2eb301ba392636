//! A failed run leaves a trace of its last moves in the file of the environment. The run is a
//! program of its own, with an environment of its own: this program, once more.

use ganger_observe::trace::Trace;
use ganger_proc_api::actor_fn;
use ganger_sim::Sim;
use std::process::{Command, Output};
use std::{env, fs};

/// The test for the second program.
const FAILS: &str = "a_run_that_fails";

/// Fails in the second program.
#[test]
fn a_run_that_fails() {
    if env::var_os("GANGER_SIM_TRACE").is_none() {
        return;
    }
    Sim::new(5).check_seeds(1, |rt| {
        let lost = rt.spawn(actor_fn(|_, number: u64, _| {
            assert_ne!(number, 3, "three is too many");
            Ok(())
        }));
        let lost = lost.unwrap();
        for number in 0..2 + rt.choose(20) as u64 {
            lost.send(number).unwrap();
        }
        lost.send(3).unwrap();
        let end = rt.wait(lost);
        assert!(end.is_done(), "{end:?}");
    });
}

/// Runs the second program with this file.
fn run(file: &str) -> Output {
    let mut program = Command::new(env::current_exe().unwrap());
    let program = program.args(["--exact", FAILS, "--nocapture"]);
    program.env("GANGER_SIM_TRACE", file).output().unwrap()
}

// pins: V15
#[test]
fn the_trace_of_the_run_is_in_the_file_and_the_same_each_time() {
    let folder = env::temp_dir().join(format!("ganger-sim-traced-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let [first, second] = ["first", "second"].map(|name| folder.join(name));
    for file in [&first, &second] {
        let output = run(file.to_str().unwrap());
        assert!(!output.status.success());
        let said = String::from_utf8_lossy(&output.stderr);
        let line = format!("Its trace is in {}", file.display());
        assert!(said.contains(&line), "{said}");
    }
    let files = [first, second].map(|file| fs::read(file).unwrap());
    assert!(files[0] == files[1], "the same decisions, the same bytes");
    let summary = Trace::read(&files[0][..]).unwrap().summary();
    assert!(
        summary.turns.iter().any(|it| it.process.contains("sim|")),
        "{summary}"
    );
    let lost = run(folder.join("none/such").to_str().unwrap());
    let said = String::from_utf8_lossy(&lost.stderr);
    assert!(said.contains("Its trace can't be written to"), "{said}");
    fs::remove_dir_all(folder).unwrap();
}

//! Checks of the reader with any bytes, for the tests and for the fuzz target.

use ganger_observe::trace::Trace;

fn written(trace: &Trace) -> Vec<u8> {
    let mut file = Vec::new();
    trace.write_perfetto(&mut file).expect("a list takes all");
    file
}

/// Reads bytes as a file. After success, the trace is written and read again without a change.
pub(crate) fn check(bytes: &[u8]) {
    let trace = match Trace::read(bytes) {
        Ok(trace) => trace,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let summary = trace.summary();
    assert!(summary.turns.len() <= 10 && summary.waits.len() <= 10);
    assert!(summary.turns.is_sorted_by(|a, b| a.lasted >= b.lasted));
    assert!(!summary.to_string().is_empty());
    let first = written(&trace);
    let again = Trace::read(&first[..]).expect("what was written is read");
    assert_eq!(written(&again), first);
    assert_eq!(again.summary().to_string(), summary.to_string());
    trace.write_json(std::io::sink()).expect("a sink takes all");
}

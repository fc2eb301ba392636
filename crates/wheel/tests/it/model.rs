//! Random operations on a wheel, compared with a list of its expected timers.

use super::checker::{BYTES, Checker, Op};
use proptest::prelude::*;
use std::fs;
use std::path::Path;

fn ops(most: usize) -> impl Strategy<Value = Vec<Op>> {
    let op = any::<[u8; BYTES]>().prop_map(Op::from_bytes);
    proptest::collection::vec(op, 0..most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_operations(ops in ops(300)) {
        Checker::play(ops);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn many_timers(
        before in proptest::collection::vec(any::<[u8; BYTES]>(), 600..1_200),
        ops in ops(300),
    ) {
        let insert = |[_, which, exponent, mantissa]: [u8; BYTES]| {
            Op::from_bytes([0, which, exponent, mantissa])
        };
        Checker::play(before.into_iter().map(insert).chain(ops));
    }
}

/// Plays the inputs in the fuzzer's corpus. A package without the project has no corpus.
#[test]
fn corpus() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    if !fuzz.exists() {
        return;
    }
    let folder = fuzz.join("corpus/wheel");
    let mut inputs = 0;
    for file in fs::read_dir(folder).expect("the corpus is there") {
        let path = file.expect("an entry").path();
        let bytes = fs::read(&path).expect("an input");
        println!("{}", path.display());
        Checker::play_bytes(&bytes);
        inputs += 1;
    }
    assert!(inputs > 0);
}

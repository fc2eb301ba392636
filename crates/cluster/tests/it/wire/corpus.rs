//! The inputs in the fuzzer's corpus. A package without the project has no corpus.

use super::checker;
use std::fs;
use std::path::Path;

#[test]
fn corpus() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    if !fuzz.exists() {
        return;
    }
    let folder = fuzz.join("corpus/frame");
    let mut count = 0;
    for file in fs::read_dir(folder).expect("the corpus is there") {
        let path = file.unwrap().path();
        println!("{}", path.display());
        checker::check(&fs::read(path).unwrap());
        count += 1;
    }
    assert!(count > 0);
}

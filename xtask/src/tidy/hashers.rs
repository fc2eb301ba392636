//! Maps and sets hash with a key: a stranger that knows the hash chooses keys that all meet in a
//! single place.

use super::Finding;
use super::source::Source;

const WITHOUT_A_KEY: [&str; 6] = [
    "rustc_hash",
    "fxhash",
    "FixedState",
    "foldhash::fast",
    "BuildHasherDefault",
    "with_hasher",
];

pub(super) fn check(source: &Source, findings: &mut Vec<Finding>) {
    if !source.path.starts_with("crates/") {
        return;
    }
    for (number, line) in source.numbered() {
        for hasher in WITHOUT_A_KEY.into_iter().filter(|it| line.has(it)) {
            let what = format!("{hasher} hashes without a key: take the map's default hasher");
            findings.push(Finding::new(source, number, what));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn a_hasher_without_a_key_is_found() {
        let text = "use rustc_hash::FxHashMap;\nuse std::collections::HashMap;\n\
                    // FxHashMap\ntype Counts = HashMap<u8, u8, foldhash::quality::RandomState>;\n\
                    let map = HashMap::with_hasher(state);\n";
        let places = |path| -> Vec<_> {
            let lines = found(check, path, text);
            let place = |line: &String| line.split(" hashes").next().map(str::to_owned);
            lines.iter().filter_map(place).collect()
        };
        let expected = ["1: rustc_hash", "5: with_hasher"];
        assert_eq!(places("crates/sched/src/a.rs"), expected);
        assert_eq!(places("crates/ganger/examples/a.rs"), expected);
        assert!(places("xtask/src/a.rs").is_empty());
    }
}

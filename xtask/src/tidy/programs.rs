//! The tests of a crate are a single program: every file below `tests/it` is its module, and files
//! of models are nowhere else in `tests`.
//!
//! Each program is linked with all its dependencies, which takes longer than its tests. A file
//! outside of the tree of modules is not built, so that a test in it passes for ever.

use super::Finding;
use super::source::Source;
use std::collections::BTreeSet;

const ROOT: &str = "tests/it/main.rs";

pub(super) fn check(sources: &[Source], findings: &mut Vec<Finding>) {
    let mut known = BTreeSet::new();
    for root in sources.iter().filter(|source| source.path.ends_with(ROOT)) {
        add(root, sources, &mut known);
    }
    for source in sources {
        let path = source.path.as_str();
        let what = if path.contains("/tests/it/") && !known.contains(path) {
            "it is no module of tests/it/main.rs, so nothing builds it"
        } else if path.contains("/tests/loom_") {
            "models among the tests are modules of tests/it/main.rs"
        } else {
            continue;
        };
        findings.push(Finding {
            path: path.to_owned(),
            line: None,
            what: what.to_owned(),
        });
    }
}

/// Adds a file, and the files of its modules.
fn add<'a>(source: &'a Source, sources: &'a [Source], known: &mut BTreeSet<&'a str>) {
    if !known.insert(&source.path) {
        return;
    }
    for (_, line) in source.numbered() {
        let Some((_, name)) = line.code.split_once("mod ") else {
            continue;
        };
        let Some(name) = name.trim_end().strip_suffix(';') else {
            continue;
        };
        let folder = folder(&source.path);
        let paths = [
            format!("{folder}/{name}.rs"),
            format!("{folder}/{name}/mod.rs"),
        ];
        for module in sources.iter().filter(|source| paths.contains(&source.path)) {
            add(module, sources, known);
        }
    }
}

/// Where the modules of a file are.
fn folder(path: &str) -> &str {
    let named = path
        .strip_suffix("/main.rs")
        .or(path.strip_suffix("/mod.rs"));
    named.unwrap_or(path.trim_end_matches(".rs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let sources = files.iter().map(|(path, text)| Source::parse(path, text));
        let mut findings = Vec::new();
        check(&Vec::from_iter(sources), &mut findings);
        findings.into_iter().map(|finding| finding.path).collect()
    }

    #[test]
    fn a_file_that_is_no_module_is_found() {
        let files = [
            (
                "crates/a/tests/it/main.rs",
                "mod b;\n#[cfg(unix)]\npub(crate) mod c;\n// mod d;\n",
            ),
            ("crates/a/tests/it/b.rs", "mod deep;\n"),
            ("crates/a/tests/it/b/deep.rs", ""),
            ("crates/a/tests/it/c/mod.rs", "mod e;\n"),
            ("crates/a/tests/it/c/e.rs", ""),
            ("crates/a/tests/it/d.rs", ""),
            ("crates/z/tests/it/main.rs", "mod d;\n"),
        ];
        assert_eq!(findings(&files), ["crates/a/tests/it/d.rs"]);
    }

    #[test]
    fn models_are_modules_and_programs_of_their_own_are_fine() {
        let files = [
            ("crates/a/tests/loom_b.rs", ""),
            ("crates/a/tests/memory/main.rs", ""),
            ("crates/a/src/loom_c.rs", ""),
        ];
        assert_eq!(findings(&files), ["crates/a/tests/loom_b.rs"]);
    }
}

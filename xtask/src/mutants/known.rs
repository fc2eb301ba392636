//! Tells before any run whether a list's killers are there: a renamed test is noticed by `--check`.
//!
//! The reader looks for the test's name in the files of its module, and knows no more Rust than
//! that: a macro may write the test.

use super::kind::Killer;
use super::list::Mutant;
use crate::Failure;
use crate::root::{root, walk};
use std::fs;
use std::path::Path;

/// Returns a complaint for each killer that no file of the crate in `crates/name` has.
pub(crate) fn unknown(name: &str, mutants: &[Mutant]) -> Result<Vec<String>, Failure> {
    let mut files = Vec::new();
    let folder = root().join("crates").join(name);
    for part in ["src", "tests"].map(|part| folder.join(part)) {
        if !part.is_dir() {
            continue;
        }
        for path in walk(&part)? {
            if path.extension().is_some_and(|extension| extension == "rs") {
                files.push((modules(&path), fs::read_to_string(part.join(&path))?));
            }
        }
    }
    let killers = mutants.iter().filter_map(|mutant| {
        let text = mutant.killer.as_deref()?;
        (!is_there(&files, &Killer::new(text))).then(|| {
            let name = &mutant.name;
            format!("{name}: there is no test {text}: put its new name into `killer`")
        })
    });
    Ok(killers.collect())
}

/// Returns the modules of a file, of which the last is its own.
fn modules(path: &Path) -> Vec<String> {
    let path = path.with_extension("");
    let parts = path.iter().map(|part| part.to_string_lossy().into_owned());
    parts.collect()
}

fn is_there(files: &[(Vec<String>, String)], killer: &Killer) -> bool {
    let (modules, name) = killer.modules_and_name();
    let is_in = |path: &[String]| {
        modules
            .iter()
            .any(|module| path.iter().any(|it| it == module))
    };
    let mut files = files
        .iter()
        .filter(|(path, _)| modules.is_empty() || is_in(path));
    files.any(|(_, text)| {
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        name.is_none_or(|name| words.into_iter().any(|word| word == name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killer_is_in_a_file_of_its_module() {
        let files = [
            ("it/load/stress.rs", "fn two() {}"),
            ("queue.rs", "mod tests { fn three() {} }"),
            ("memory.rs", "fn four() {}"),
        ];
        let files = files.map(|(path, text)| (modules(Path::new(path)), text.to_owned()));
        let known = [
            "stress::two",
            "load::stress::two",
            "stress::two (full fences)",
            "unit::queue::tests::three",
            "memory::four",
            "unit",
            "stress",
        ];
        for text in known {
            assert!(is_there(&files, &Killer::new(text)), "{text}");
        }
        for text in [
            "stress::tw",
            "stress::three",
            "unit::queue::tests::four",
            "strain",
        ] {
            assert!(!is_there(&files, &Killer::new(text)), "{text}");
        }
    }
}

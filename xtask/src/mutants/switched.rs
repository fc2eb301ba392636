//! Many mutants in a single build: a number in the environment chooses a mutant.
//!
//! A build for each mutant takes most of the time of a run. So each function that mutants change
//! gets a body that looks at the number, and has the bodies of the mutants and of the original. A
//! mutant that changes more than bodies of functions, or whose body does not compile among the
//! rest, is built alone.

use super::copy::Copy;
use super::kind::Kind;
use super::list::{Body, Changes};
use crate::Failure;
use crate::cargo::Test;
use crate::root::Tree;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::Path;

/// The environment variable of the number.
pub(crate) const CHOICE: &str = "GANGER_MUTANT";

/// The addition to each crate with mutants. The module asks the C library, since `std::env::var`
/// allocates, and some tests count allocations.
const CHOOSE: &str = r#"
#[doc(hidden)]
#[allow(missing_docs, dead_code, unreachable_pub, unsafe_code)]
pub(crate) mod __mutant {
    extern crate std;
    use core::ffi::{CStr, c_char};

    unsafe extern "C" {
        fn getenv(name: *const c_char) -> *const c_char;
    }

    pub(crate) fn number() -> usize {
        static NUMBER: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
        *NUMBER.get_or_init(|| {
            // SAFETY: the name ends with a zero, and no test changes the environment.
            let text = unsafe { getenv(c"GANGER_MUTANT".as_ptr()) };
            if text.is_null() {
                return usize::MAX;
            }
            // SAFETY: a text that is not null ends with a zero and stays.
            let text = unsafe { CStr::from_ptr(text) };
            text.to_str().ok().and_then(|text| text.parse().ok()).unwrap_or(usize::MAX)
        })
    }
}
"#;

/// Forbids the unsafe code of `CHOOSE`.
const FORBIDS: &str = "#![forbid(unsafe_code)]";

/// The bodies of each changed function, by file and by the bytes of the original.
type Bodies<'a> = BTreeMap<&'a str, BTreeMap<(usize, usize), Vec<(usize, &'a str)>>>;

/// The lines of a file that a mutant has added or affects.
type Lines = (String, Range<usize>, usize);

/// The tests of a package with the mutants in `numbers` built in.
pub(crate) struct Switched {
    pub(crate) built: Vec<(Kind, Test)>,
    pub(crate) numbers: BTreeSet<usize>,
}

impl Switched {
    /// Builds the tests with all `mutants` that can share a build, in a copy in `folder`.
    pub(crate) fn build(
        package: &str,
        kinds: &[Kind],
        mutants: &[(usize, &[Body])],
        folder: &Path,
    ) -> Result<Self, Failure> {
        let mut copy = Copy::new(folder)?;
        let mut mutants = mutants.to_vec();
        loop {
            let root = copy.tree.root.clone();
            copy.apply(&Changes::new())?;
            let (changes, lines) =
                merged(&mutants, |path| Ok(fs::read_to_string(root.join(path))?))?;
            copy.apply(&changes)?;
            match build_all(&copy.tree, package, kinds)? {
                Ok(built) => {
                    let numbers = mutants.iter().map(|(number, _)| *number).collect();
                    return Ok(Self { built, numbers });
                }
                Err(stderr) if mutants.is_empty() => {
                    let what = "the original does not build, so mutants tell nothing";
                    return Err(format!("{what}:\n{stderr}").into());
                }
                Err(stderr) => {
                    let blamed = blamed(&stderr, &lines);
                    if blamed.is_empty() {
                        println!("{stderr}\nno mutant can be blamed, so each is built alone");
                        mutants.clear();
                    }
                    mutants.retain(|(number, _)| !blamed.contains(number));
                }
            }
        }
    }
}

/// Builds the tests of each kind. The inner `Err` has the compiler's messages.
fn build_all(
    tree: &Tree,
    package: &str,
    kinds: &[Kind],
) -> Result<Result<Vec<(Kind, Test)>, String>, Failure> {
    let mut all = Vec::new();
    for &kind in kinds {
        match kind.build(tree, package, None)? {
            Ok(tests) => all.extend(tests.into_iter().map(|test| (kind, test))),
            Err(stderr) => return Ok(Err(stderr)),
        }
    }
    Ok(Ok(all))
}

/// Returns the files with the bodies of all `mutants` in them, and the mutants of the lines.
fn merged(
    mutants: &[(usize, &[Body])],
    read: impl Fn(&str) -> Result<String, Failure>,
) -> Result<(Changes, Vec<Lines>), Failure> {
    let mut bodies = Bodies::new();
    for (number, changed) in mutants {
        for Body { path, range, text } in *changed {
            let functions = bodies.entry(path).or_default();
            let function = functions.entry((range.start, range.end)).or_default();
            function.push((*number, text));
        }
    }
    let (mut changes, mut lines) = (Changes::new(), Vec::new());
    for (path, functions) in bodies {
        let original = read(path)?;
        let mut text = String::new();
        let mut end = 0;
        for ((from, to), mutants) in functions {
            text.push_str(&original[end..from]);
            text.push_str("{ match crate::__mutant::number() {\n");
            let row = |text: &str| 1 + text.matches('\n').count();
            for (number, body) in &mutants {
                let first = row(&text);
                text.push_str(&format!("{number} => {body}\n"));
                lines.push((path.to_owned(), first..row(&text), *number));
            }
            let first = row(&text);
            text.push_str(&format!("_ => {}\n}} }}", &original[from..to]));
            // With any mutant added, the original may not compile.
            let all = mutants.iter().map(|(number, _)| *number);
            lines.extend(all.map(|number| (path.to_owned(), first..row(&text) + 1, number)));
            end = to;
        }
        text.push_str(&original[end..]);
        changes.insert(path.to_owned(), text);
    }
    let roots: BTreeSet<_> = changes.keys().filter_map(|path| root_of(path)).collect();
    for root in roots {
        let text = changes.remove(&root).map_or_else(|| read(&root), Ok)?;
        changes.insert(root, text.replace(FORBIDS, "") + CHOOSE);
    }
    Ok((changes, lines))
}

/// Returns the root file of the crate of this file.
fn root_of(path: &str) -> Option<String> {
    let (folder, _) = path.split_once("/src/")?;
    Some(format!("{folder}/src/lib.rs"))
}

/// The mutants in whose lines the compiler has found errors.
fn blamed(stderr: &str, lines: &[Lines]) -> BTreeSet<usize> {
    let mut blamed = BTreeSet::new();
    let mut is_error = false;
    for line in stderr.lines() {
        if line.starts_with("error") || line.starts_with("warning") {
            is_error = line.starts_with("error");
        } else if is_error
            && let Some(place) = line.trim_start().strip_prefix("--> ")
            && let Some((path, place)) = place.split_once(':')
            && let Some(row) = place.split(':').next().and_then(|row| row.parse().ok())
        {
            let lines = lines.iter();
            let here = lines.filter(|(file, rows, _)| file == path && rows.contains(&row));
            blamed.extend(here.map(|(_, _, number)| *number));
        }
    }
    blamed
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "crates/k/src/a.rs";

    fn body(range: Range<usize>, text: &str) -> Body {
        Body {
            path: A.to_owned(),
            range,
            text: text.to_owned(),
        }
    }

    fn read(path: &str) -> Result<String, Failure> {
        Ok(if path == A {
            "fn f() { 1 } fn g() { 2 }"
        } else {
            "mod a;"
        }
        .to_owned())
    }

    #[test]
    fn a_number_chooses_among_the_bodies() {
        let one = [body(7..12, "{\n3 }")];
        let two = [body(7..12, "{ 4 }"), body(20..25, "{ 5 }")];
        let (changes, lines) = merged(&[(0, &one), (7, &two)], read).unwrap();
        let expected = "fn f() { match crate::__mutant::number() {\n0 => {\n3 }\n7 => { 4 }\n\
                        _ => { 1 }\n} } fn g() { match crate::__mutant::number() {\n\
                        7 => { 5 }\n_ => { 2 }\n} }";
        assert_eq!(changes[A], expected);
        assert_eq!(changes["crates/k/src/lib.rs"], format!("mod a;{CHOOSE}"));
        let rows: Vec<_> = lines
            .iter()
            .map(|(_, rows, number)| (rows.clone(), *number))
            .collect();
        let expected = [
            (2..4, 0),
            (4..5, 7),
            (5..7, 0),
            (5..7, 7),
            (7..8, 7),
            (8..10, 7),
        ];
        assert_eq!(rows, expected);
        assert!(CHOOSE.contains(CHOICE));
    }
}

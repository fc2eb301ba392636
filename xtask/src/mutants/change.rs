//! The changes of a mutant, alone or with many others in a single build, among which a number in
//! the environment chooses.
//!
//! A build for each mutant takes most of the time of a run. So each function that mutants change
//! gets a body that looks at the number, and has the bodies of the mutants and of the original. A
//! mutant that changes more than bodies of functions, or whose body does not compile among the
//! rest, is built alone.
//!
//! All edits of a mutant are places in the original, so their order is no matter, and two of them
//! must not overlap.

use super::list::{AFTER, BEFORE, Edit, Mutant};
use super::place::Sources;
use crate::Failure;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

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
    unsafe extern "C" { fn getenv(name: *const c_char) -> *const c_char; }
    pub(crate) fn number() -> usize {
        static NUMBER: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
        *NUMBER.get_or_init(|| {
            // SAFETY: the name ends with a zero, and no test changes the environment.
            let text = unsafe { getenv(c"GANGER_MUTANT".as_ptr()) };
            if text.is_null() { return usize::MAX; }
            // SAFETY: a text that is not null ends with a zero and stays.
            let text = unsafe { CStr::from_ptr(text) };
            text.to_str().ok().and_then(|text| text.parse().ok()).unwrap_or(usize::MAX)
        })
    }
}
"#;

/// Forbids the unsafe code of `CHOOSE`.
const FORBIDS: &str = "#![forbid(unsafe_code)]";

/// The files that a mutant changes, relative to the workspace, with their new text.
pub(crate) type Changes = BTreeMap<String, String>;

/// The body of a function as a mutant has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Body {
    path: String,
    /// Where the original body is in its file, in bytes, with its braces.
    range: Range<usize>,
    text: String,
}

/// A range of bytes, and the text in its place.
type Cut = (Range<usize>, String);

/// Returns the new text of the files that a mutant changes, in the crate in `crates/name` or in
/// crates that the mutant names. Returns the changed functions as well, if the mutant changes
/// bodies of functions alone.
pub(crate) fn changes(
    mutant: &Mutant,
    name: &str,
    sources: &Sources,
) -> Result<(Changes, Option<Vec<Body>>), String> {
    // The original text of each file, with the changes to it; and the changes to bodies of
    // functions, by the bytes of the bodies.
    let mut files: BTreeMap<&str, (&str, Vec<Cut>)> = BTreeMap::new();
    let mut bodies: BTreeMap<(&str, usize, usize), Vec<Cut>> = BTreeMap::new();
    let mut is_inside = true;
    for Edit { place, sign, new } in mutant.edits()? {
        let (file, mut range) = sources.find(name, &place)?;
        match sign {
            BEFORE => range.end = range.start,
            AFTER => range.start = range.end,
            _ => {}
        }
        match file.body(&range) {
            Some(body) => {
                let inner = range.start - body.start..range.end - body.start;
                let body = (&*file.path, body.start, body.end);
                bodies.entry(body).or_default().push((inner, new.clone()));
            }
            None => is_inside = false,
        }
        let (_, cuts) = files.entry(&file.path).or_insert((&file.text, Vec::new()));
        cuts.push((range, new));
    }
    let cut = |path: &str, text, cuts| {
        cut(text, cuts).ok_or_else(|| format!("two of its edits overlap in {path}"))
    };
    let bodies = bodies.into_iter().map(|((path, start, end), cuts)| {
        let text = cut(path, &files[path].0[start..end], cuts)?;
        let (path, range) = (path.to_owned(), start..end);
        Ok(Body { path, range, text })
    });
    let bodies = bodies.collect::<Result<Vec<_>, String>>()?;
    let files = files.into_iter();
    let changes = files.map(|(path, (text, cuts))| Ok((path.to_owned(), cut(path, text, cuts)?)));
    let changes = changes.collect::<Result<_, String>>()?;
    Ok((changes, is_inside.then_some(bodies)))
}

/// Returns the changed text; none if two cuts overlap. New text begins and ends with a line break,
/// so that neither a comment nor a name reaches into it.
fn cut(text: &str, mut cuts: Vec<Cut>) -> Option<String> {
    cuts.sort_by_key(|(range, _)| (range.start, range.end));
    let mut result = String::new();
    let mut end = 0;
    for (range, new) in cuts {
        result += &format!("{}\n{new}\n", text.get(end..range.start)?);
        end = range.end;
    }
    Some(result + text.get(end..)?)
}

/// The lines of a file that a mutant has added or affects.
pub(crate) type Lines = (String, Range<usize>, usize);

/// Returns the files with the bodies of all `mutants` in them, and the mutants of the lines.
pub(crate) fn merged(
    mutants: &[(usize, &[Body])],
    read: impl Fn(&str) -> Result<String, Failure>,
) -> Result<(Changes, Vec<Lines>), Failure> {
    // By file and by the bytes of the original.
    let mut bodies: BTreeMap<&str, BTreeMap<_, Vec<_>>> = BTreeMap::new();
    for (number, changed) in mutants {
        for Body { path, range, text } in *changed {
            let functions = bodies.entry(path).or_default();
            let function = functions.entry((range.start, range.end));
            function.or_default().push((*number, text));
        }
    }
    let (mut changes, mut lines) = (Changes::new(), Vec::new());
    for (path, functions) in bodies {
        let original = read(path)?;
        let mut text = String::new();
        let mut end = 0;
        let row = |text: &str| 1 + text.matches('\n').count();
        for ((from, to), mutants) in functions {
            text += &original[end..from];
            text += "{ match crate::__mutant::number() {\n";
            for (number, body) in &mutants {
                let first = row(&text);
                text += &format!("{number} => {body}\n");
                lines.push((path.to_owned(), first..row(&text), *number));
            }
            let first = row(&text);
            text += &format!("_ => {}\n}} }}", &original[from..to]);
            // With any mutant added, the original may not compile.
            for (number, _) in &mutants {
                lines.push((path.to_owned(), first..row(&text) + 1, *number));
            }
            end = to;
        }
        changes.insert(path.to_owned(), text + &original[end..]);
    }
    let root = |path: &String| Some(path.split_once("/src/")?.0.to_owned() + "/src/lib.rs");
    let roots: BTreeSet<_> = changes.keys().filter_map(root).collect();
    for root in roots {
        let text = changes.remove(&root).map_or_else(|| read(&root), Ok)?;
        changes.insert(root, text.replace(FORBIDS, "") + CHOOSE);
    }
    Ok((changes, lines))
}

/// Returns the mutants in whose lines the compiler has found errors.
pub(crate) fn blamed(stderr: &str, lines: &[Lines]) -> BTreeSet<usize> {
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
            let is_here = |it: &&Lines| it.0 == path && it.1.contains(&row);
            blamed.extend(lines.iter().filter(is_here).map(|it| it.2));
        }
    }
    blamed
}

#[cfg(test)]
mod tests {
    use super::super::list::parse;
    use super::*;

    const A: &str = "crates/x/src/a.rs";
    const TEXT: &str = "fn f() { 1 } fn g() { 2 }";

    fn changes_of(edits: &str) -> Result<(Changes, Option<Vec<Body>>), String> {
        let sync = ("fn h() {}".to_owned(), "crates/sync/src/b.rs".to_owned());
        let sources = Sources::new(vec![(TEXT.to_owned(), A.to_owned()), sync]);
        let mutants = parse(&format!("k\n  m {edits}")).unwrap();
        changes(&mutants[0], "x", &sources)
    }

    #[test]
    fn edits_reach_other_crates() {
        let (changed, bodies) = changes_of("@ f: 1 ~> 3\n      & @ sync/h <+ use i;").unwrap();
        assert_eq!(bodies, None, "an edit is outside of all functions");
        assert_eq!(changed["crates/sync/src/b.rs"], "\nuse i;\nfn h() {}");
        assert_eq!(changed[A], "fn f() { \n3\n } fn g() { 2 }");
        let error = changes_of("@ f: 1 ~>\n      & { 1 ~>").unwrap_err();
        assert_eq!(error, format!("two of its edits overlap in {A}"));
        let error = changes_of("@ i ~>").unwrap_err();
        assert!(error.starts_with("`i` has 0 such places"));
    }

    #[test]
    fn a_number_chooses_among_the_bodies() {
        let bodies = |edits| changes_of(edits).unwrap().1.unwrap();
        let one = bodies("@ f: 1 ~> 3");
        let two = bodies("@ f: 1 +> 4\n      & @ g: 2 ~> 5");
        let read = |path: &str| Ok(if path == A { TEXT } else { "mod a;" }.to_owned());
        let (changes, lines) = merged(&[(0, &one), (7, &two)], read).unwrap();
        let expected = "fn f() { match crate::__mutant::number() {\n0 => { \n3\n }\n\
                        7 => { 1\n4\n }\n_ => { 1 }\n} } fn g() { match \
                        crate::__mutant::number() {\n7 => { \n5\n }\n_ => { 2 }\n} }";
        assert_eq!(changes[A], expected);
        assert_eq!(changes["crates/x/src/lib.rs"], format!("mod a;{CHOOSE}"));
        let rows = lines.iter().map(|it| (it.1.clone(), it.2));
        let rows: Vec<_> = rows.collect();
        let [one, two] = [(2..5, 0), (5..8, 7)];
        let expected = [one, two, (8..10, 0), (8..10, 7), (10..13, 7), (13..15, 7)];
        assert_eq!(rows, expected);
        let stderr = format!("warning: a\n --> {A}:3:1\nerror: b\n --> {A}:6:1\n");
        assert_eq!(blamed(&stderr, &lines), BTreeSet::from([7]));
        assert!(CHOOSE.contains(CHOICE));
    }
}

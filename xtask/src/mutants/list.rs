//! The mutants of a list, and how an edit is applied.
//!
//! All edits of a mutant are places in the original, so their order is no matter, and two of them
//! must not overlap.

use super::place::{Place, Sources};
use crate::Failure;
use std::collections::BTreeMap;
use std::ops::Range;

/// One mutation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mutant {
    pub(crate) name: String,
    /// What it breaks, where its name does not say it.
    pub(crate) why: String,
    pub(crate) edits: Vec<Edit>,
    /// The tests that are tried first: a file in `tests`, or `file::test`.
    pub(crate) killer: Option<String>,
    pub(crate) expected: Expected,
}

/// The expected result of a mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expected {
    Killed,
    /// The mutant behaves as the original does, for this reason.
    Equivalent(String),
    /// The mutant is wrong, but for this reason no test here can show it.
    Unshown(String),
}

/// A place, and the change there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) place: Place,
    pub(crate) change: Change,
}

/// Rust text for a place, or for just before or after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Replace(String),
    Before(String),
    After(String),
}

/// The files that a mutant changes, relative to the workspace, with their new text.
pub(crate) type Changes = BTreeMap<String, String>;

/// The body of a function as a mutant has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) path: String,
    /// Where the original body is in its file, in bytes, with its braces.
    pub(crate) range: Range<usize>,
    pub(crate) text: String,
}

impl Mutant {
    /// Returns the new text of the changed files, in the crate in `crates/name` or in crates that
    /// the mutant names. Returns the changed functions as well, if the mutant changes bodies of
    /// functions alone.
    pub(crate) fn changes(
        &self,
        name: &str,
        sources: &mut Sources,
    ) -> Result<(Changes, Option<Vec<Body>>), Failure> {
        // The original text of each file, with the changes to it; and those to bodies of functions,
        // by the bytes of the bodies.
        let mut files: BTreeMap<String, (String, Vec<Cut>)> = BTreeMap::new();
        let mut bodies: BTreeMap<(String, usize, usize), Vec<Cut>> = BTreeMap::new();
        let mut is_inside = true;
        for Edit { place, change } in &self.edits {
            let code = sources.of(place.in_crate.as_deref().unwrap_or(name))?;
            let found = code.find(place);
            let (file, range) = found.map_err(|what| format!("{}: {what}", self.name))?;
            let (range, new) = match change {
                Change::Replace(new) => (range, new.clone()),
                Change::Before(new) => (range.start..range.start, new.clone()),
                Change::After(new) => (range.end..range.end, new.clone()),
            };
            match file.body(&range) {
                Some(body) => {
                    let inner = range.start - body.start..range.end - body.start;
                    let cuts = bodies
                        .entry((file.path.clone(), body.start, body.end))
                        .or_default();
                    cuts.push((inner, new.clone()));
                }
                None => is_inside = false,
            }
            let original = || (file.text.clone(), Vec::new());
            let (_, cuts) = files.entry(file.path.clone()).or_insert_with(original);
            cuts.push((range, new));
        }
        let cut = |path: &str, text: &str, cuts| {
            let overlap = || format!("{}: two of its edits overlap in {path}", self.name);
            cut(text, cuts).ok_or_else(overlap)
        };
        let bodies = bodies.into_iter().map(|((path, start, end), cuts)| {
            let text = cut(&path, &files[&path].0[start..end], cuts)?;
            let range = start..end;
            Ok(Body { path, range, text })
        });
        let bodies = bodies.collect::<Result<Vec<_>, String>>()?;
        let changes = files.into_iter().map(|(path, (text, cuts))| {
            let text = cut(&path, &text, cuts)?;
            Ok((path, text))
        });
        let changes = changes.collect::<Result<Changes, String>>()?;
        Ok((changes, is_inside.then_some(bodies)))
    }
}

/// A range of bytes, and the text that replaces it.
type Cut = (Range<usize>, String);

/// Returns the changed text; none if two cuts overlap. New text begins and ends with a line break,
/// so that neither a comment nor a name reaches into it.
fn cut(text: &str, mut cuts: Vec<Cut>) -> Option<String> {
    cuts.sort_by_key(|(range, _)| (range.start, range.end));
    let mut result = String::new();
    let mut end = 0;
    for (range, new) in cuts {
        result.push_str(text.get(end..range.start)?);
        result.push_str(&format!("\n{new}\n"));
        end = range.end;
    }
    result.push_str(text.get(end..)?);
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::super::place::Code;
    use super::super::written::parse;
    use super::*;

    #[test]
    fn edits_reach_other_crates() {
        let code = |folder: &str, text: &str| {
            Code::new(folder, [(format!("{folder}/src/a.rs"), text.to_owned())])
        };
        let mut sources = Sources::holding([
            ("x", code("crates/x", "fn f() { old() }")),
            ("sync", code("crates/sync", "fn g() {}")),
        ]);
        let mut changes = |edits: &str| {
            parse(&format!("k\n  m {edits}"))
                .unwrap()
                .remove(0)
                .changes("x", &mut sources)
        };
        let two = "@ f: old ~> new\n      & @ sync/g <+ use h;";
        let expected = [
            ("crates/sync/src/a.rs", "\nuse h;\nfn g() {}"),
            ("crates/x/src/a.rs", "fn f() { \nnew\n() }"),
        ];
        let (changed, bodies) = changes(two).unwrap();
        assert_eq!(bodies, None, "an edit is outside of all functions");
        let changed = changed.iter().map(|(path, text)| (&**path, &**text));
        assert!(changed.eq(expected));

        let (_, bodies) = changes("@ f: old ~> new").unwrap();
        let body = Body {
            path: "crates/x/src/a.rs".to_owned(),
            range: 7..16,
            text: "{ \nnew\n() }".to_owned(),
        };
        assert_eq!(bodies, Some(vec![body]));

        let twice = "@ f: old ~>\n      & old() ~>";
        let error = changes(twice).unwrap_err().to_string();
        assert_eq!(error, "m: two of its edits overlap in crates/x/src/a.rs");
        let gone = "@ h ~>";
        let error = changes(gone).unwrap_err().to_string();
        assert!(
            error.starts_with("m: crates/x has no such place in `h`"),
            "{error}"
        );
    }
}

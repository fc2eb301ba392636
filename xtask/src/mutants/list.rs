//! A crate's list of mutants, and how an edit is applied.
//!
//! All edits of a mutant are places in the original, so their order is no matter, and two of them
//! must not overlap.

use super::place::{Place, Sources};
use super::tokens::tokens;
use crate::Failure;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// One mutation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mutant {
    pub(crate) name: String,
    /// What it breaks.
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
    place: Place,
    change: Change,
}

/// Rust text for a place, or for just before or after it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    mutant: Vec<Entry>,
}

/// A mutant as written in a list: with an edit in place, or several edits in a list. The mutant's
/// `at`, `crate` and `file` are the defaults of its edits.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    why: String,
    at: Option<String>,
    #[serde(rename = "crate")]
    in_crate: Option<String>,
    file: Option<String>,
    find: Option<String>,
    nth: Option<usize>,
    replace: Option<String>,
    before: Option<String>,
    after: Option<String>,
    #[serde(default)]
    edits: Vec<Written>,
    killer: Option<String>,
    equivalent: Option<String>,
    unshown: Option<String>,
}

/// An edit as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    at: Option<String>,
    #[serde(rename = "crate")]
    in_crate: Option<String>,
    file: Option<String>,
    find: Option<String>,
    nth: Option<usize>,
    replace: Option<String>,
    before: Option<String>,
    after: Option<String>,
}

/// The mutants of a list.
pub(crate) fn parse(text: &str) -> Result<Vec<Mutant>, Failure> {
    let list: List = toml::from_str(text)?;
    let mut names = BTreeSet::new();
    let mut mutants = Vec::new();
    for entry in list.mutant {
        if !names.insert(entry.name.clone()) {
            return Err(format!("{}: there are two of this name", entry.name).into());
        }
        let name = entry.name.clone();
        mutants.push(entry.mutant().map_err(|what| format!("{name}: {what}"))?);
    }
    if mutants.is_empty() {
        return Err("there are no mutants in it".into());
    }
    Ok(mutants)
}

impl Entry {
    fn mutant(self) -> Result<Mutant, &'static str> {
        let own = Written {
            at: self.at,
            in_crate: self.in_crate,
            file: self.file,
            find: self.find,
            nth: self.nth,
            replace: self.replace,
            before: self.before,
            after: self.after,
        };
        let edits = if self.edits.is_empty() {
            vec![own.edit()?]
        } else if own.changes() {
            return Err("it has a change of its own, or `edits`, and not both");
        } else {
            let edits = self.edits.into_iter();
            edits
                .map(|edit| edit.or(&own).edit())
                .collect::<Result<_, _>>()?
        };
        let expected = match (self.equivalent, self.unshown) {
            (None, None) => Expected::Killed,
            (Some(reason), None) => Expected::Equivalent(reason),
            (None, Some(reason)) => Expected::Unshown(reason),
            (Some(_), Some(_)) => return Err("it is either `equivalent` or `unshown`"),
        };
        if self.killer.is_some() && expected != Expected::Killed {
            return Err("a mutant that survives has no `killer`");
        }
        Ok(Mutant {
            name: self.name,
            why: self.why,
            edits,
            killer: self.killer,
            expected,
        })
    }
}

impl Written {
    /// Returns whether the entry says more than the place of its edits.
    fn changes(&self) -> bool {
        self.find.is_some()
            || self.nth.is_some()
            || self.replace.is_some()
            || self.before.is_some()
            || self.after.is_some()
    }

    /// Fills in the mutant's defaults.
    fn or(self, all: &Self) -> Self {
        Self {
            at: self.at.or_else(|| all.at.clone()),
            in_crate: self.in_crate.or_else(|| all.in_crate.clone()),
            file: self.file.or_else(|| all.file.clone()),
            ..self
        }
    }

    fn edit(self) -> Result<Edit, &'static str> {
        let Some(at) = self.at else {
            return Err("it needs `at`, the item that it changes");
        };
        let change = match (self.replace, self.before, self.after) {
            (Some(text), None, None) => Change::Replace(text),
            (None, Some(text), None) => Change::Before(text),
            (None, None, Some(text)) => Change::After(text),
            _ => return Err("it needs one of `replace`, `before` and `after`"),
        };
        let find = self.find;
        if find.as_deref().is_some_and(|find| texts(find).is_empty()) {
            return Err("`find` has no tokens: leave it out to mean the whole item");
        }
        if find.is_none() && self.nth.is_some() {
            return Err("`nth` needs `find`");
        }
        let is_same = match (&change, &find) {
            (Change::Replace(text), Some(find)) => texts(text) == texts(find),
            (Change::Replace(_), None) => false,
            (Change::Before(text) | Change::After(text), _) => texts(text).is_empty(),
        };
        if is_same {
            return Err("it changes nothing");
        }
        let place = Place {
            at,
            in_crate: self.in_crate,
            file: self.file,
            find,
            nth: self.nth,
        };
        Ok(Edit { place, change })
    }
}

fn texts(text: &str) -> Vec<&str> {
    tokens(text).into_iter().map(|token| token.text).collect()
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
        // The original text of each file, and the changes to its bytes.
        let mut cuts: BTreeMap<String, (String, Vec<Cut>)> = BTreeMap::new();
        // The functions around them, and the changes to theirs.
        let mut inside = Some(CutsByStart::new());
        for Edit { place, change } in &self.edits {
            let code = sources.of(place.in_crate.as_deref().unwrap_or(name))?;
            let found = code.find(place);
            let (file, range) = found.map_err(|what| format!("{}: {what}", self.name))?;
            let cut = match change {
                Change::Replace(text) => (range, text.clone()),
                Change::Before(text) => (range.start..range.start, text.clone()),
                Change::After(text) => (range.end..range.end, text.clone()),
            };
            match (file.body(&cut.0), &mut inside) {
                (Some(body), Some(inside)) => {
                    let (start, end) = (body.start, body.end);
                    let key = (file.path.clone(), start);
                    let (_, cuts) = inside.entry(key).or_insert_with(|| (end, Vec::new()));
                    cuts.push((cut.0.start - start..cut.0.end - start, cut.1.clone()));
                }
                _ => inside = None,
            }
            let (_, cuts) = cuts
                .entry(file.path.clone())
                .or_insert_with(|| (file.text.clone(), Vec::new()));
            cuts.push(cut);
        }
        let overlap = |path: &str| format!("{}: two of its edits overlap in {path}", self.name);
        let mut bodies = inside.is_some().then(Vec::new);
        for ((path, start), (end, inner)) in inside.unwrap_or_default() {
            let range = start..end;
            let original = &cuts[&path].0[range.clone()];
            let text = cut(original, inner).ok_or_else(|| overlap(&path))?;
            bodies
                .get_or_insert_default()
                .push(Body { path, range, text });
        }
        let mut changes = Changes::new();
        for (path, (text, cuts)) in cuts {
            let text = cut(&text, cuts).ok_or_else(|| overlap(&path))?;
            changes.insert(path, text);
        }
        Ok((changes, bodies))
    }
}

/// For each function, by its file and the start of its body: the end of the body, and its changes.
type CutsByStart = BTreeMap<(String, usize), (usize, Vec<Cut>)>;

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
    use super::*;

    const FULL: &str = r#"
        [[mutant]]
        name = "one"
        why = "breaks this"
        at = "A::old"
        find = "x"
        nth = 2
        replace = ""
        killer = "loom_a::test"

        [[mutant]]
        name = "two"
        why = "breaks that"
        at = "B::f"
        edits = [
            { find = "old", replace = "new" },
            { find = "f()", after = ".g()" },
            { at = "C", crate = "sync", file = "c.rs", before = "struct D;" },
        ]
        unshown = "no test looks"
    "#;

    fn entry(rest: &str) -> Result<Vec<Mutant>, Failure> {
        let head = "[[mutant]]\nname = 'm'\nwhy = 'w'\n";
        let edit = "at = 'f'\nfind = 'a'\nreplace = 'b'\n";
        parse(&format!("{head}{}", rest.replace("EDIT", edit)))
    }

    fn place(at: &str, find: &str) -> Place {
        Place {
            at: at.to_owned(),
            find: Some(find.to_owned()),
            ..Place::default()
        }
    }

    #[test]
    fn both_ways_to_write_an_edit_are_read() {
        let [one, two] = <[Mutant; 2]>::try_from(parse(FULL).unwrap()).unwrap();
        let edit = Edit {
            place: Place {
                nth: Some(2),
                ..place("A::old", "x")
            },
            change: Change::Replace(String::new()),
        };
        assert_eq!(one.edits, [edit]);
        assert_eq!(one.killer.as_deref(), Some("loom_a::test"));
        assert_eq!(one.expected, Expected::Killed);
        let [first, second, third] = <[Edit; 3]>::try_from(two.edits).unwrap();
        assert_eq!(first.place, place("B::f", "old"));
        assert_eq!(second.change, Change::After(".g()".to_owned()));
        let elsewhere = Place {
            at: "C".to_owned(),
            in_crate: Some("sync".to_owned()),
            file: Some("c.rs".to_owned()),
            ..Place::default()
        };
        assert_eq!(
            (third.place, third.change),
            (elsewhere, Change::Before("struct D;".to_owned()))
        );
        assert_eq!(two.expected, Expected::Unshown("no test looks".to_owned()));
        let equivalent = entry("EDIT equivalent = 'no difference'")
            .unwrap()
            .remove(0);
        let reason = "no difference".to_owned();
        assert_eq!(equivalent.expected, Expected::Equivalent(reason));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (rest, what) in [
            ("find = 'a'\nreplace = 'b'", "m: it needs `at`"),
            ("at = 'f'\nfind = 'a'", "m: it needs one of"),
            ("EDIT after = 'c'", "m: it needs one of"),
            (
                "EDIT edits = [{find='a',replace='b'}]",
                "m: it has a change",
            ),
            ("edits = [{find='a',replace='b'}]", "m: it needs `at`"),
            (
                "at = 'f'\nfind = 'a .b'\nreplace = 'a.b // c'",
                "m: it changes nothing",
            ),
            ("at = 'f'\nfind = 'a'\nafter = ' '", "m: it changes nothing"),
            (
                "at = 'f'\nfind = '// a'\nreplace = ''",
                "m: `find` has no tokens",
            ),
            ("at = 'f'\nnth = 2\nreplace = ''", "m: `nth` needs `find`"),
            ("EDIT equivalent = 'x'\nunshown = 'y'", "m: it is either"),
            (
                "EDIT equivalent = 'x'\nkiller = 'k'",
                "m: a mutant that survives has no",
            ),
            (
                "EDIT [[mutant]]\nname='m'\nwhy='w'\nEDIT",
                "m: there are two",
            ),
            ("EDIT killers = 'k'", "unknown field"),
        ] {
            let error = entry(rest).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
        assert!(parse("mutant = []").is_err());
    }

    #[test]
    fn all_cuts_are_made_in_the_original() {
        let own = |range: Range<usize>, new: &str| (range, new.to_owned());
        let cuts = vec![
            own(4..5, "C"),
            own(0..1, ""),
            own(4..4, "b"),
            own(5..5, "d"),
        ];
        assert_eq!(cut("a + c;", cuts).unwrap(), "\n\n + \nb\n\nC\n\nd\n;");
        assert_eq!(cut("abc", vec![own(0..2, "x"), own(1..3, "y")]), None);
    }

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
            let text = format!("[[mutant]]\nname='m'\nwhy='w'\nedits=[{edits}]");
            parse(&text).unwrap().remove(0).changes("x", &mut sources)
        };
        let two = "{ at = 'f', find = 'old', replace = 'new' }, \
                   { at = 'g', crate = 'sync', before = 'use h;' }";
        let expected = [
            ("crates/sync/src/a.rs", "\nuse h;\nfn g() {}"),
            ("crates/x/src/a.rs", "fn f() { \nnew\n() }"),
        ];
        let (changed, bodies) = changes(two).unwrap();
        assert_eq!(bodies, None, "an edit is outside of all functions");
        let changed = changed.iter().map(|(path, text)| (&**path, &**text));
        assert!(changed.eq(expected));

        let (_, bodies) = changes("{ at = 'f', find = 'old', replace = 'new' }").unwrap();
        let body = Body {
            path: "crates/x/src/a.rs".to_owned(),
            range: 7..16,
            text: "{ \nnew\n() }".to_owned(),
        };
        assert_eq!(bodies, Some(vec![body]));

        let twice =
            "{ at = 'f', find = 'old', replace = '' }, { at = 'f', find = 'old()', replace = '' }";
        let error = changes(twice).unwrap_err().to_string();
        assert_eq!(error, "m: two of its edits overlap in crates/x/src/a.rs");
        let gone = "{ at = 'h', replace = '' }";
        let error = changes(gone).unwrap_err().to_string();
        assert!(error.starts_with("m: crates/x has no item `h`"), "{error}");
    }
}

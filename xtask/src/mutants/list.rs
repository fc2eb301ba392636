//! A crate's list of mutants, and how an edit is applied.
//!
//! An edit names the text that it replaces, which must occur exactly once: a change of the sources
//! that a list does not fit any longer shows at once, instead of leaving a mutant that changes
//! nothing, or something else.

use crate::Failure;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

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

/// What the tests should do to a mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expected {
    Killed,
    /// It behaves as the original does, for this reason.
    Equivalent(String),
    /// It is wrong, but for this reason no test here can show it.
    Unshown(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    /// Relative to the crate; or, if it starts with `crates/`, to the workspace.
    file: String,
    find: String,
    replace: String,
}

/// The files that a mutant changes, relative to the workspace, with their new text.
pub(crate) type Changes = BTreeMap<String, String>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    mutant: Vec<Entry>,
}

/// A mutant as it is written: with one edit in place, or several in a list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    why: String,
    file: Option<String>,
    find: Option<String>,
    replace: Option<String>,
    #[serde(default)]
    edits: Vec<Edit>,
    killer: Option<String>,
    equivalent: Option<String>,
    unshown: Option<String>,
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
        let edits = match (self.file, self.find, self.replace) {
            (Some(file), Some(find), Some(replace)) if self.edits.is_empty() => {
                vec![Edit {
                    file,
                    find,
                    replace,
                }]
            }
            (None, None, None) if !self.edits.is_empty() => self.edits,
            _ => return Err("it needs either `file`, `find` and `replace`, or `edits`"),
        };
        if edits.iter().any(|edit| edit.find == edit.replace) {
            return Err("`find` and `replace` are the same");
        }
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

impl Mutant {
    /// What it makes of the files of the crate in `folder`, which `read` reads.
    pub(crate) fn changes(
        &self,
        folder: &str,
        read: impl Fn(&str) -> Result<String, Failure>,
    ) -> Result<Changes, Failure> {
        let mut changes = Changes::new();
        for edit in &self.edits {
            let path = edit.path(folder);
            let text = match changes.remove(&path) {
                Some(text) => text,
                None => read(&path).map_err(|error| format!("{}: {error}", self.name))?,
            };
            let changed = edit.apply(&text).map_err(|count| {
                format!(
                    "{}: `find` must occur once in {path}, and occurs {count} times: {:?}",
                    self.name, edit.find
                )
            })?;
            changes.insert(path, changed);
        }
        Ok(changes)
    }
}

impl Edit {
    fn path(&self, folder: &str) -> String {
        if self.file.starts_with("crates/") {
            self.file.clone()
        } else {
            format!("{folder}/{}", self.file)
        }
    }

    /// The changed text; or how often `find` occurs, if not once.
    fn apply(&self, text: &str) -> Result<String, usize> {
        match text.matches(&self.find).count() {
            1 => Ok(text.replacen(&self.find, &self.replace, 1)),
            count => Err(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = r#"
        [[mutant]]
        name = "one"
        why = "breaks this"
        file = "src/a.rs"
        find = "old\n"
        replace = ""
        killer = "loom_a::test"

        [[mutant]]
        name = "two"
        why = "breaks that"
        edits = [
            { file = "src/a.rs", find = "old", replace = "new" },
            { file = "src/a.rs", find = "newer", replace = "newest" },
            { file = "crates/sync/src/b.rs", find = "b", replace = "c" },
        ]
        unshown = "nobody looks"
    "#;

    fn entry(rest: &str) -> Result<Vec<Mutant>, Failure> {
        let head = "[[mutant]]\nname = 'm'\nwhy = 'w'\n";
        let edit = "file = 'f'\nfind = 'a'\nreplace = 'b'\n";
        parse(&format!("{head}{}", rest.replace("EDIT", edit)))
    }

    fn edit(find: &str, replace: &str) -> Edit {
        Edit {
            file: "src/a.rs".to_owned(),
            find: find.to_owned(),
            replace: replace.to_owned(),
        }
    }

    #[test]
    fn both_ways_to_write_an_edit_are_read() {
        let [one, two] = <[Mutant; 2]>::try_from(parse(FULL).unwrap()).unwrap();
        assert_eq!(one.edits, [edit("old\n", "")]);
        assert_eq!(one.killer.as_deref(), Some("loom_a::test"));
        assert_eq!(one.expected, Expected::Killed);
        assert_eq!(two.edits.len(), 3);
        assert_eq!(two.expected, Expected::Unshown("nobody looks".to_owned()));
        let equivalent = entry("EDIT equivalent = 'no difference'")
            .unwrap()
            .remove(0);
        let reason = "no difference".to_owned();
        assert_eq!(equivalent.expected, Expected::Equivalent(reason));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (rest, what) in [
            ("file = 'f'\nfind = 'a'", "m: it needs either"),
            (
                "EDIT edits = [{file='f',find='a',replace='b'}]",
                "m: it needs either",
            ),
            ("", "m: it needs either"),
            (
                "file = 'f'\nfind = 'a'\nreplace = 'a'",
                "m: `find` and `replace` are the same",
            ),
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
    fn an_edit_needs_exactly_one_place() {
        let text = "let a = b;\nlet b = a;\n";
        let changed = edit("= b;\n", "= c;\n").apply(text).unwrap();
        assert_eq!(changed, "let a = c;\nlet b = a;\n");
        assert_eq!(edit("let", "").apply(text), Err(2));
        assert_eq!(edit("const", "").apply(text), Err(0));
    }

    #[test]
    fn edits_build_on_each_other_and_reach_other_crates() {
        let two = parse(FULL).unwrap().remove(1);
        let read = |path: &str| match path {
            "crates/x/src/a.rs" => Ok("older".to_owned()),
            "crates/sync/src/b.rs" => Ok("abc".to_owned()),
            _ => Err(Failure::from(path)),
        };
        let changes = two.changes("crates/x", read).unwrap();
        let expected = [
            ("crates/sync/src/b.rs", "acc"),
            ("crates/x/src/a.rs", "newest"),
        ];
        assert!(
            changes
                .iter()
                .map(|(path, text)| (&**path, &**text))
                .eq(expected)
        );

        let twice = |_: &str| Ok("old old".to_owned());
        let error = two.changes("crates/x", twice).unwrap_err().to_string();
        let what = "two: `find` must occur once in crates/x/src/a.rs, and occurs 2 times: \"old\"";
        assert_eq!(error, what);
    }
}

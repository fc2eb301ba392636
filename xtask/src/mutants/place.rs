//! Finds the place that a mutant changes: an item by its name, and in it a row of tokens.
//!
//! A name and a few tokens survive changes that a quotation of whole lines does not: a comment, the
//! layout, another line nearby, a moved file. The tokens must occur once, so a list that does not
//! fit shows at once, and the complaint names the possible places.

use crate::Failure;
use crate::root::walk;
use crate::rust::{Item, Outline, module, tokens};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// How many places a complaint names.
const SHOWN: usize = 8;

/// How a list names a place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The end of the item's path.
    pub(crate) at: String,
    /// The folder of another crate.
    pub(crate) in_crate: Option<String>,
    /// The end of the file's path.
    pub(crate) file: Option<String>,
    /// The tokens in the item; without them it is the whole item.
    pub(crate) find: Option<String>,
    /// The number of the occurrence, from 1.
    pub(crate) nth: Option<usize>,
}

/// The crates read so far.
pub(crate) struct Sources {
    root: PathBuf,
    crates: BTreeMap<String, Code>,
}

/// A crate's code in `src`, without code for tests alone.
pub(crate) struct Code {
    folder: String,
    files: Vec<File>,
}

pub(crate) struct File {
    /// Relative to the workspace.
    pub(crate) path: String,
    pub(crate) text: String,
    tokens: Vec<Range<usize>>,
    items: Vec<Item>,
}

impl Sources {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            crates: BTreeMap::new(),
        }
    }

    /// Creates sources of crates that have been read already, by name.
    #[cfg(test)]
    pub(crate) fn holding(crates: impl IntoIterator<Item = (&'static str, Code)>) -> Self {
        let crates = crates.into_iter();
        Self {
            root: PathBuf::new(),
            crates: crates.map(|(name, code)| (name.to_owned(), code)).collect(),
        }
    }

    /// The crate in `crates/name`.
    pub(crate) fn of(&mut self, name: &str) -> Result<&Code, Failure> {
        match self.crates.entry(name.to_owned()) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let folder = format!("crates/{name}");
                let mut files = Vec::new();
                let source = self.root.join(&folder).join("src");
                let found = walk(&source)
                    .map_err(|error| format!("{folder} is no crate of the workspace: {error}"))?;
                for path in found {
                    let inner = path.to_string_lossy().replace('\\', "/");
                    if inner.ends_with(".rs") {
                        let text = fs::read_to_string(source.join(&path))?;
                        files.push((format!("{folder}/src/{inner}"), text));
                    }
                }
                Ok(entry.insert(Code::new(&folder, files)))
            }
        }
    }
}

impl Code {
    pub(crate) fn new(folder: &str, files: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut tests = Vec::new();
        let mut all = Vec::new();
        for (path, text) in files {
            let tokens = tokens(&text);
            let outline = Outline::of(&tokens, &module(&path));
            tests.extend(outline.tests);
            let tokens = tokens.into_iter().map(|token| token.range).collect();
            all.push(File {
                path,
                tokens,
                items: outline.items,
                text,
            });
        }
        let is_for_tests = |file: &File| {
            let module = module(&file.path);
            tests.iter().any(|test| module.starts_with(test))
        };
        all.retain(|file| !is_for_tests(file));
        all.sort_by(|a, b| a.path.cmp(&b.path));
        Self {
            folder: folder.to_owned(),
            files: all,
        }
    }

    /// Returns the file of a place, and its bytes; or the fault of the place.
    pub(crate) fn find(&self, place: &Place) -> Result<(&File, Range<usize>), String> {
        let items = self.items(place);
        if items.is_empty() {
            return Err(self.no_item(place));
        }
        let Some(find) = &place.find else {
            let [(file, item)] = *items else {
                return Err(several_items(place, &items));
            };
            return Ok((file, file.bytes(item.tokens.clone())));
        };
        let wanted = texts(find);
        let mut all: Vec<(&File, usize)> = Vec::new();
        for &(file, item) in &items {
            for start in file.occurrences(&wanted, item.tokens.clone()) {
                if !all
                    .iter()
                    .any(|(other, at)| other.path == file.path && *at == start)
                {
                    all.push((file, start));
                }
            }
        }
        let (file, start) = match (&*all, place.nth) {
            ([], _) => return Err(self.no_find(place, &wanted, &items)),
            ([only], None) => *only,
            (_, Some(_)) if items.len() > 1 => return Err(several_items(place, &items)),
            ([_], Some(_)) => return Err("`find` occurs once there: leave `nth` out".to_owned()),
            (all, Some(nth)) => match nth.checked_sub(1).and_then(|nth| all.get(nth)) {
                Some(spot) => *spot,
                None => {
                    return Err(format!(
                        "`find` occurs {} times there: mend `nth`",
                        all.len()
                    ));
                }
            },
            (all, None) => return Err(several_occurrences(place, all)),
        };
        Ok((file, file.bytes(start..start + wanted.len())))
    }

    /// Returns the items that a place may mean.
    fn items(&self, place: &Place) -> Vec<(&File, &Item)> {
        let at: Vec<_> = place.at.split("::").map(str::trim).collect();
        self.all_items(place.file.as_deref())
            .filter(|(_, item)| {
                let rest = item.path.len().checked_sub(at.len());
                rest.is_some_and(|rest| item.path[rest..].iter().eq(at.iter()))
            })
            .collect()
    }

    fn all_items(&self, end: Option<&str>) -> impl Iterator<Item = (&File, &Item)> {
        let end = end.map(|end| format!("/{end}"));
        let files = self
            .files
            .iter()
            .filter(move |file| end.as_ref().is_none_or(|end| file.path.ends_with(end)));
        files.flat_map(|file| file.items.iter().map(move |item| (file, item)))
    }

    fn no_item(&self, place: &Place) -> String {
        let mut text = format!("{} has no item `{}`", self.folder, place.at);
        if let Some(file) = &place.file {
            text.push_str(&format!(" in a file {file}"));
        }
        text.push_str(": put its new name into `at`");
        let name = place.at.rsplit("::").next().unwrap_or(&place.at).trim();
        let named = self
            .all_items(None)
            .filter(|(_, item)| item.path.last().is_some_and(|it| it == name));
        text.push_str(&listed(
            "of this name are",
            named.map(|(file, item)| file.called(item)),
        ));
        if let Some(find) = &place.find {
            text.push_str(&self.elsewhere(&texts(find)));
        }
        text
    }

    fn no_find(&self, place: &Place, wanted: &[&str], items: &[(&File, &Item)]) -> String {
        let mut text = format!(
            "`find` is not in `{}`: mend `find`, or `at` if it has moved",
            place.at
        );
        let items = items.iter().map(|(file, item)| file.called(item));
        text.push_str(&listed("looked for in", items));
        text.push_str(&self.elsewhere(wanted));
        text
    }

    /// Returns the innermost items with these tokens.
    fn elsewhere(&self, wanted: &[&str]) -> String {
        let mut found = Vec::new();
        for file in &self.files {
            for start in file.occurrences(wanted, 0..file.tokens.len()) {
                let around = file
                    .items
                    .iter()
                    .filter(|item| item.tokens.contains(&start));
                if let Some(item) = around.min_by_key(|item| item.tokens.len()) {
                    found.push(file.called(item));
                }
            }
        }
        found.dedup();
        listed("`find` occurs in", found.into_iter())
    }
}

impl File {
    fn bytes(&self, tokens: Range<usize>) -> Range<usize> {
        let last = tokens.end.saturating_sub(1).max(tokens.start);
        self.tokens[tokens.start].start..self.tokens[last].end
    }

    /// Returns the body, with its braces, of the innermost function around these bytes, if another
    /// body can be added to the function.
    pub(crate) fn body(&self, bytes: &Range<usize>) -> Option<Range<usize>> {
        let bodies = self.items.iter().filter_map(|item| item.body.clone());
        let bodies = bodies.map(|body| self.bytes(body));
        let is_in = |body: &Range<usize>| body.start < bytes.start && bytes.end < body.end;
        bodies.filter(is_in).min_by_key(Range::len)
    }

    /// Returns the positions of these tokens within a range.
    fn occurrences(&self, wanted: &[&str], within: Range<usize>) -> Vec<usize> {
        let end = (within.end + 1).saturating_sub(wanted.len());
        let is = |start: usize| {
            let tokens = self.tokens[start..].iter().zip(wanted);
            tokens
                .into_iter()
                .all(|(range, text)| self.text[range.clone()] == **text)
        };
        (within.start..end).filter(|start| is(*start)).collect()
    }

    fn line(&self, token: usize) -> usize {
        1 + self.text[..self.tokens[token].start].matches('\n').count()
    }

    /// Returns the name of an item in a complaint, in a form for `at`.
    fn called(&self, item: &Item) -> String {
        let path = &item.path[item.path.len().saturating_sub(2)..];
        let line = self.line(item.tokens.start);
        format!("`{}` ({}:{line})", path.join("::"), self.path)
    }
}

fn texts(text: &str) -> Vec<&str> {
    tokens(text).into_iter().map(|token| token.text).collect()
}

fn several_items(place: &Place, items: &[(&File, &Item)]) -> String {
    let text = format!(
        "there are {} of `{}`: put more of the path into `at`, or add `file`",
        items.len(),
        place.at
    );
    let items = items.iter().map(|(file, item)| {
        let line = file.line(item.tokens.start);
        format!("`{}` ({}:{line})", item.path.join("::"), file.path)
    });
    text + &listed("they are", items)
}

fn several_occurrences(place: &Place, spots: &[(&File, usize)]) -> String {
    let count = spots.len();
    let text = format!(
        "`find` occurs {count} times in `{}`: add tokens to it, or `nth`",
        place.at
    );
    let lines = spots.iter().map(|(file, start)| {
        let line = file.line(*start);
        let code = file.text.lines().nth(line - 1).unwrap_or_default();
        format!("{}:{line}: {}", file.path, code.trim())
    });
    text + &listed("they are", lines)
}

/// Returns lines for a complaint; no text if `lines` is empty.
fn listed(what: &str, lines: impl Iterator<Item = String>) -> String {
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() {
        return String::new();
    }
    let mut text = format!("\n    {what}:");
    for line in lines.iter().take(SHOWN) {
        text.push_str(&format!("\n      {line}"));
    }
    if lines.len() > SHOWN {
        text.push_str(&format!("\n      and {} more", lines.len() - SHOWN));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code() -> Code {
        let files = [
            (
                "src/a.rs",
                "mod tests;\nimpl A {\n    fn one(&self) {\n        // x = 1\n        let x = \
                 1;\n        f(x, x);\n    }\n}\nimpl Drop for A { fn drop(&mut self) { g(1) } }\n",
            ),
            (
                "src/b/c.rs",
                "fn free() { let y = 2; }\nstruct B;\nimpl B { fn one() { h(); } }",
            ),
            (
                "src/b/d.rs",
                "fn free() { let z = 3; }\n#[cfg(test)]\nmod more;",
            ),
            ("src/b/d/more.rs", "fn hidden() {}"),
        ];
        let files = files.map(|(path, text)| (format!("crates/k/{path}"), text.to_owned()));
        Code::new("crates/k", files)
    }

    fn place(at: &str, find: &str) -> Place {
        Place {
            at: at.to_owned(),
            find: (!find.is_empty()).then(|| find.to_owned()),
            ..Place::default()
        }
    }

    fn found(place: &Place) -> Result<String, String> {
        let code = code();
        let (file, range) = code.find(place)?;
        Ok(file.text[range].to_owned())
    }

    #[test]
    fn tokens_are_found_in_a_named_item_whatever_their_layout() {
        assert_eq!(
            found(&place("A::one", "x=1;f(x")).unwrap(),
            "x = 1;\n        f(x"
        );
        assert_eq!(found(&place("a::A::drop", "1")).unwrap(), "1");
        assert_eq!(found(&place("impl Drop for A", "g(1)")).unwrap(), "g(1)");
        assert_eq!(found(&place("B", "")).unwrap_or_default(), "struct B;");
        assert_eq!(
            found(&place("b::c::free", "")).unwrap(),
            "fn free() { let y = 2; }"
        );
    }

    #[test]
    fn of_two_of_a_name_the_one_with_the_tokens_is_meant() {
        assert_eq!(found(&place("free", "z = 3")).unwrap(), "z = 3");
        assert_eq!(found(&place("one", "h()")).unwrap(), "h()");
        let mut either = place("free", "let");
        let error = found(&either).unwrap_err();
        assert!(
            error.starts_with("`find` occurs 2 times in `free`: add tokens"),
            "{error}"
        );
        assert!(
            error.contains("crates/k/src/b/d.rs:1: fn free()"),
            "{error}"
        );
        either.file = Some("d.rs".to_owned());
        assert_eq!(found(&either).unwrap(), "let");
        let error = found(&place("free", "")).unwrap_err();
        assert!(
            error.starts_with("there are 2 of `free`: put more of the path"),
            "{error}"
        );
        assert!(
            error.contains("`b::c::free` (crates/k/src/b/c.rs:1)"),
            "{error}"
        );
    }

    #[test]
    fn a_place_is_in_the_body_of_its_function() {
        let text = "const fn a() { x }\n#[cfg(any(b))] pub(crate) unsafe fn b(c: [u8; 2]) -> u8 \
                    { q }\nstruct C { z: u8 }\nimpl D { fn e(); fn f(g: impl Fn()) { { w } } }\n\
                    fn h() -> impl Fn() { || i }";
        let code = Code::new(
            "crates/k",
            [("crates/k/src/a.rs".to_owned(), text.to_owned())],
        );
        let body = |find: &str| {
            let at = text.find(find).unwrap();
            code.files[0].body(&(at..at + 1)).map(|range| &text[range])
        };
        assert_eq!(body("q"), Some("{ q }"));
        assert_eq!(body("w"), Some("{ { w } }"));
        for outside in ["x", "z", "c:", "e()", "D", "2]", "i }"] {
            assert_eq!(body(outside), None, "{outside}");
        }
    }

    #[test]
    fn one_of_several_occurrences_is_chosen_by_number() {
        let mut place = place("A::one", "x");
        let error = found(&place).unwrap_err();
        assert!(
            error.starts_with("`find` occurs 3 times in `A::one`: add tokens"),
            "{error}"
        );
        assert!(error.contains("crates/k/src/a.rs:6: f(x, x);"), "{error}");
        place.nth = Some(3);
        let code = code();
        let (file, range) = code.find(&place).unwrap();
        assert!(file.text[range.end..].starts_with(");"));
        for nth in [0, 4] {
            place.nth = Some(nth);
            assert_eq!(
                found(&place).unwrap_err(),
                "`find` occurs 3 times there: mend `nth`"
            );
        }
        place.find = Some("x, x".to_owned());
        assert_eq!(
            found(&place).unwrap_err(),
            "`find` occurs once there: leave `nth` out"
        );
    }

    #[test]
    fn a_complaint_names_the_places_that_could_be_meant() {
        let error = found(&place("A::two", "f(x, x)")).unwrap_err();
        let what = "crates/k has no item `A::two`: put its new name into `at`\n    `find` occurs \
                    in:\n      `A::one` (crates/k/src/a.rs:3)";
        assert_eq!(error, what);
        let error = found(&place("C::one", "q")).unwrap_err();
        assert!(
            error.contains(
                "of this name are:\n      `A::one` (crates/k/src/a.rs:3)\n      `B::one`"
            )
        );
        let error = found(&place("A::one", "g(1)")).unwrap_err();
        let what = "`find` is not in `A::one`: mend `find`, or `at` if it has moved\n    looked \
                    for in:\n      `A::one` (crates/k/src/a.rs:3)\n    `find` occurs in:\n      \
                    `A::drop` (crates/k/src/a.rs:9)";
        assert_eq!(error, what);
    }

    #[test]
    fn what_only_tests_have_is_not_looked_at() {
        assert!(found(&place("hidden", "")).unwrap_err().contains("no item"));
    }
}

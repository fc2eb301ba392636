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
        let wanted = place.find.as_deref().map(texts);
        let mut spots: Vec<(&File, Range<usize>)> = Vec::new();
        for (file, item) in self.items(place) {
            let found = match &wanted {
                None => vec![item.tokens.clone()],
                Some(wanted) => file.occurrences(wanted, item.tokens.clone()),
            };
            for spot in found {
                if !spots
                    .iter()
                    .any(|(other, it)| other.path == file.path && *it == spot)
                {
                    spots.push((file, spot));
                }
            }
        }
        let spot = match (&*spots, place.nth) {
            ([only], None) => Some(only),
            ([_, _, ..], Some(nth)) => nth.checked_sub(1).and_then(|nth| spots.get(nth)),
            _ => None,
        };
        let (file, tokens) = spot.ok_or_else(|| self.complaint(place, &spots))?;
        Ok((file, file.bytes(tokens.clone())))
    }

    /// Returns the items that a place may mean.
    fn items(&self, place: &Place) -> impl Iterator<Item = (&File, &Item)> {
        let at: Vec<_> = place.at.split("::").map(str::trim).collect();
        self.all_items(place.file.as_deref())
            .filter(move |(_, item)| {
                let rest = item.path.len().checked_sub(at.len());
                rest.is_some_and(|rest| item.path[rest..].iter().eq(at.iter()))
            })
    }

    fn all_items(&self, end: Option<&str>) -> impl Iterator<Item = (&File, &Item)> {
        let end = end.map(|end| format!("/{end}"));
        let files = self
            .files
            .iter()
            .filter(move |file| end.as_ref().is_none_or(|end| file.path.ends_with(end)));
        files.flat_map(|file| file.items.iter().map(move |item| (file, item)))
    }

    /// Says why a place does not fit, with the places that could be meant.
    fn complaint(&self, place: &Place, spots: &[(&File, Range<usize>)]) -> String {
        let at = &place.at;
        if !spots.is_empty() {
            let lines = spots.iter().map(|(file, spot)| {
                let line = file.line(spot.start);
                let code = file.text.lines().nth(line - 1).unwrap_or_default();
                format!("{}:{line}: {}", file.path, code.trim())
            });
            let count = spots.len();
            let text = format!("`{at}` has {count} such places: add tokens, a path, a file or `#`");
            return text + &listed("they are", lines);
        }
        let mut text = format!("{} has no such place in `{at}`", self.folder);
        let name = at.rsplit("::").next().unwrap_or(at).trim();
        let named = self
            .all_items(None)
            .filter(|(_, item)| item.path.last().is_some_and(|it| it == name));
        text += &listed(
            "items of this name",
            named.map(|(file, item)| file.called(item)),
        );
        let wanted = texts(place.find.as_deref().unwrap_or_default());
        let mut around = Vec::new();
        for file in self.files.iter().filter(|_| !wanted.is_empty()) {
            for spot in file.occurrences(&wanted, 0..file.tokens.len()) {
                let items = file
                    .items
                    .iter()
                    .filter(|item| item.tokens.contains(&spot.start));
                let innermost = items.min_by_key(|item| item.tokens.len());
                around.extend(innermost.map(|item| file.called(item)));
            }
        }
        around.dedup();
        text + &listed("items with these tokens", around.into_iter())
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

    /// Returns the places of these tokens within a range.
    fn occurrences(&self, wanted: &[&str], within: Range<usize>) -> Vec<Range<usize>> {
        let end = (within.end + 1).saturating_sub(wanted.len());
        let is = |start: usize| {
            let tokens = self.tokens[start..].iter().zip(wanted);
            tokens
                .into_iter()
                .all(|(range, text)| self.text[range.clone()] == **text)
        };
        let starts = (within.start..end).filter(|start| is(*start));
        starts.map(|start| start..start + wanted.len()).collect()
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
        for (at, find, text) in [
            ("A::one", "x=1;f(x", "x = 1;\n        f(x"),
            ("a::A::drop", "1", "1"),
            ("impl Drop for A", "g(1)", "g(1)"),
            ("B", "", "struct B;"),
            ("b::c::free", "", "fn free() { let y = 2; }"),
            ("free", "z = 3", "z = 3"),
        ] {
            assert_eq!(found(&place(at, find)).as_deref(), Ok(text));
        }
        let mut third = place("A::one", "x");
        third.nth = Some(3);
        let code = code();
        let (file, range) = code.find(&third).unwrap();
        assert!(file.text[range.end..].starts_with(");"));
        let mut either = place("free", "let");
        either.file = Some("d.rs".to_owned());
        assert_eq!(found(&either).as_deref(), Ok("let"));
    }

    #[test]
    fn a_complaint_names_the_places_that_could_be_meant() {
        let error = found(&place("free", "let")).unwrap_err();
        assert!(
            error.contains("crates/k/src/b/d.rs:1: fn free()"),
            "{error}"
        );
        for (at, find, part) in [
            (
                "A::two",
                "f(x, x)",
                "items with these tokens:\n      `A::one` (crates/k/src/a.rs:3)",
            ),
            (
                "C::one",
                "q",
                "items of this name:\n      `A::one` (crates/k/src/a.rs:3)\n      `B::one`",
            ),
            ("hidden", "", "crates/k has no such place in `hidden`"),
        ] {
            let error = found(&place(at, find)).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        for nth in [0, 4] {
            let mut place = place("A::one", "x");
            place.nth = Some(nth);
            assert!(
                found(&place)
                    .unwrap_err()
                    .starts_with("`A::one` has 3 such places")
            );
        }
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
        assert_eq!((body("q"), body("w")), (Some("{ q }"), Some("{ { w } }")));
        for outside in ["x", "z", "c:", "e()", "D", "2]", "i }"] {
            assert_eq!(body(outside), None, "{outside}");
        }
    }
}

//! Finds the place that a mutant changes: an item by its name, and in it a row of tokens.
//!
//! A name and a few tokens survive changes that a quotation of whole lines does not: a comment, the
//! layout, another line nearby, a moved file. The tokens must occur once, so a list that does not
//! fit shows at once, and the complaint names the possible places.

use crate::Failure;
use crate::root::{files, root};
use crate::rust::{Item, items, module, texts, tokens};
use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;

/// How many places a complaint names.
const SHOWN: usize = 8;

/// How a list names a place; a part that is not named is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The folder of another crate.
    pub(crate) in_crate: String,
    /// The end of the item's path.
    pub(crate) at: String,
    /// The end of the file's path.
    pub(crate) file: String,
    /// The tokens in the item; without them it is the whole item.
    pub(crate) find: String,
    /// The number of the occurrence, from 1.
    pub(crate) nth: Option<usize>,
}

/// The crates' code in `src`, without code for tests alone.
pub(crate) struct Sources(Vec<File>);

pub(crate) struct File {
    /// Relative to the workspace.
    pub(crate) path: String,
    pub(crate) text: String,
    tokens: Vec<Range<usize>>,
    items: Vec<Item>,
}

impl Sources {
    /// Reads all crates.
    pub(crate) fn read() -> Result<Self, Failure> {
        let mut files = files()?;
        files.retain(|path| path.starts_with("crates/") && path.contains("/src/"));
        files.retain(|path| path.ends_with(".rs"));
        let read = |path: String| Ok((fs::read_to_string(root().join(&path))?, path));
        let texts: Result<Vec<_>, std::io::Error> = files.into_iter().map(read).collect();
        Ok(Self::new(texts?))
    }

    /// Takes the files' texts and paths.
    pub(crate) fn new(texts: Vec<(String, String)>) -> Self {
        let (mut files, mut tests) = (Vec::new(), Vec::new());
        for (text, path) in texts {
            let found = tokens(&text);
            let mut items = items(&found, &module(&path));
            let folder = path.split("/src/").next().unwrap_or_default();
            let for_tests = items.iter().filter(|item| item.is_test);
            tests.extend(for_tests.map(|item| (folder.to_owned(), item.path.clone())));
            items.retain(|item| !item.is_test);
            let tokens = found.into_iter().map(|token| token.range).collect();
            files.push(File {
                path,
                text,
                tokens,
                items,
            });
        }
        files.retain(|file| {
            let rest = |test: &str| module(&file.path).strip_prefix(test).map(str::to_owned);
            !tests.iter().any(|(folder, test)| {
                let rest = file.path.strip_prefix(folder).and_then(|_| rest(test));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
            })
        });
        Self(files)
    }

    /// Returns the file of a place, by default in the crate `own`, and its bytes; or the fault of
    /// the place, with the places that could be meant.
    pub(crate) fn find(&self, own: &str, place: &Place) -> Result<(&File, Range<usize>), String> {
        let name = if place.in_crate.is_empty() {
            own
        } else {
            &place.in_crate
        };
        let (folder, end) = (format!("crates/{name}/src/"), format!("/{}", place.file));
        let of_crate = self.0.iter().filter(|file| file.path.starts_with(&folder));
        let of_crate: Vec<_> = of_crate.collect();
        let at = format!("::{}", place.at);
        let wanted = texts(&place.find);
        let mut spots = BTreeSet::new();
        for (number, file) in of_crate.iter().enumerate() {
            let is_there = place.file.is_empty() || file.path.ends_with(&end);
            let is_meant = |item: &&Item| is_there && item.path.ends_with(&at);
            for item in file.items.iter().filter(is_meant) {
                let found = file.occurrences(&wanted, item.tokens.clone());
                spots.extend(found.map(|spot| (number, spot.start, spot.end)));
            }
        }
        let number = match (spots.len(), place.nth) {
            (1, None) => Some(0),
            (2.., Some(nth)) => nth.checked_sub(1),
            _ => None,
        };
        if let Some(&(number, start, end)) = number.and_then(|number| spots.iter().nth(number)) {
            return Ok((of_crate[number], of_crate[number].bytes(&(start..end))));
        }
        let mut text = format!("`{}` has {} such places", place.at, spots.len());
        if spots.is_empty() && !wanted.is_empty() {
            for (number, file) in of_crate.iter().enumerate() {
                let found = file.occurrences(&wanted, 0..file.tokens.len());
                spots.extend(found.map(|spot| (number, spot.start, spot.end)));
            }
        }
        for &(number, start, _) in spots.iter().take(SHOWN) {
            let file = of_crate[number];
            let before = &file.text[..file.tokens[start].start];
            let line = 1 + before.matches('\n').count();
            text += &format!("\n      {}:{line}", file.path);
        }
        Err(text)
    }
}

impl File {
    fn bytes(&self, tokens: &Range<usize>) -> Range<usize> {
        self.tokens[tokens.start].start..self.tokens[tokens.end.max(tokens.start + 1) - 1].end
    }

    /// Returns the body, with its braces, of the innermost function around these bytes, if another
    /// body can be added to the function.
    pub(crate) fn body(&self, bytes: &Range<usize>) -> Option<Range<usize>> {
        let bodies = self.items.iter().filter_map(|item| item.body.as_ref());
        let bodies = bodies.map(|body| self.bytes(body));
        let is_in = |body: &Range<usize>| body.start < bytes.start && bytes.end < body.end;
        bodies.filter(is_in).min_by_key(Range::len)
    }

    /// Returns the places of these tokens within a range; without tokens, the range.
    fn occurrences(
        &self,
        wanted: &[&str],
        within: Range<usize>,
    ) -> impl Iterator<Item = Range<usize>> {
        let length = if wanted.is_empty() {
            within.len()
        } else {
            wanted.len()
        };
        let end = (within.end + 1).saturating_sub(length);
        let starts = (within.start..end).filter(move |start| {
            let mut tokens = self.tokens[*start..].iter().zip(wanted);
            tokens.all(|(range, text)| self.text[range.clone()] == **text)
        });
        starts.map(move |start| start..start + length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(at: &str, find: &str, nth: Option<usize>) -> Result<(String, Option<String>), String> {
        let a = "mod tests;\nimpl A {\n    fn one(&self) {\n        // x = 1\n        let x = \
                 1;\n        f(x, x);\n    }\n}\nimpl Drop for A { fn drop(&mut self) { g(1) } }\n";
        let c = "fn free() { let y = 2; }\nstruct B { z: u8 }\nconst fn e() { q }";
        let d = "fn free() { let z = 3; }\n#[cfg(test)]\nmod more;";
        let more = ("b/d/more.rs", "fn hidden() {}");
        let files = [("a.rs", a), ("b/c.rs", c), ("b/d.rs", d), more];
        let files = files.map(|(path, text)| (text.to_owned(), format!("crates/k/src/{path}")));
        let mut place = Place::default();
        (place.at, place.find, place.nth) = (at.to_owned(), find.to_owned(), nth);
        let sources = Sources::new(files.to_vec());
        let (file, range) = sources.find("k", &place)?;
        let body = file.body(&range).map(|body| file.text[body].to_owned());
        Ok((file.text[range].to_owned(), body))
    }

    #[test]
    fn tokens_are_found_in_a_named_item_whatever_their_layout() {
        for (at, find, text, body) in [
            ("a::A::drop", "1", "1", Some("{ g(1) }")),
            ("impl Drop for A", "g(1)", "g(1)", Some("{ g(1) }")),
            ("B", "", "struct B { z: u8 }", None),
            ("e", "q", "q", None),
            ("b::c::free", "", "fn free() { let y = 2; }", None),
            ("free", "z = 3", "z = 3", Some("{ let z = 3; }")),
        ] {
            let (found, around) = found(at, find, None).unwrap();
            assert_eq!((&*found, around.as_deref()), (text, body), "{at}");
        }
        let row = found("A::one", "x=1;f(x", None).unwrap().0;
        assert_eq!(row, "x = 1;\n        f(x");
        assert_eq!(found("A::one", "x", Some(3)).unwrap().0, "x");
    }

    #[test]
    fn a_complaint_names_the_places_that_could_be_meant() {
        for (at, find, nth, part) in [
            ("free", "let", None, "crates/k/src/b/d.rs:1"),
            ("A::two", "f(x, x)", None, "crates/k/src/a.rs:6"),
            ("hidden", "", None, "`hidden` has 0 such places"),
            ("A::one", "x", Some(4), "`A::one` has 3 such places"),
        ] {
            let error = found(at, find, nth).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}

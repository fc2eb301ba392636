//! Finds the place that a mutant changes: an item by its name, and in it a row of tokens.
//!
//! A name and a few tokens survive changes that a quotation of whole lines does not: a comment, the
//! layout, another line nearby, a moved file. The tokens must occur once, so a list that does not
//! fit shows at once, and the complaint names the possible places.

use crate::Failure;
use crate::root::{files, root};
use crate::rust::{Item, items, module, texts, tokens};
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;

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
    pub(crate) find: String,
    /// The number of the occurrence, from 1.
    pub(crate) nth: Option<usize>,
}

/// Each crate's code in `src`, without code for tests alone.
pub(crate) struct Sources(BTreeMap<String, Vec<File>>);

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
        files.retain(|path| path.starts_with("crates/") && path.ends_with(".rs"));
        let read = |path: String| Ok((fs::read_to_string(root().join(&path))?, path));
        let texts: Result<Vec<_>, std::io::Error> = files.into_iter().map(read).collect();
        Ok(Self::new(texts?))
    }

    /// Takes the files' texts and paths.
    pub(crate) fn new(texts: Vec<(String, String)>) -> Self {
        let mut crates: BTreeMap<String, Vec<File>> = BTreeMap::new();
        let mut tests = Vec::new();
        for (text, path) in texts {
            let inner = path
                .split_once('/')
                .and_then(|(_, path)| path.split_once("/src/"));
            let Some((name, _)) = inner.filter(|(name, _)| !name.contains('/')) else {
                continue;
            };
            let found = tokens(&text);
            let mut items = items(&found, &module(&path));
            let for_tests = items.iter().filter(|item| item.is_test);
            tests.extend(for_tests.map(|item| (name.to_owned(), item.path.clone())));
            items.retain(|item| !item.is_test);
            let tokens = found.into_iter().map(|token| token.range).collect();
            let files = crates.entry(name.to_owned()).or_default();
            files.push(File {
                path,
                tokens,
                items,
                text,
            });
        }
        for (name, test) in tests {
            let files = crates.get_mut(&name);
            files
                .into_iter()
                .for_each(|it| it.retain(|it| !module(&it.path).starts_with(&test)));
        }
        Self(crates)
    }

    /// Returns the file of a place, by default in the crate `own`, and its bytes; or the fault of
    /// the place.
    pub(crate) fn find(&self, own: &str, place: &Place) -> Result<(&File, Range<usize>), String> {
        let name = place.in_crate.as_deref().unwrap_or(own);
        let files = self
            .0
            .get(name)
            .ok_or_else(|| format!("there is no crate {name}"))?;
        let at: Vec<_> = place.at.split("::").map(str::trim).collect();
        let end = place
            .file
            .as_ref()
            .map(|end| format!("/{end}"))
            .unwrap_or_default();
        let wanted = texts(&place.find);
        let mut spots: Vec<(&File, Range<usize>)> = Vec::new();
        for file in files.iter().filter(|file| file.path.ends_with(&end)) {
            let is_meant = |item: &&Item| {
                let rest = item.path.len().checked_sub(at.len());
                rest.is_some_and(|rest| item.path[rest..].iter().eq(at.iter()))
            };
            for item in file.items.iter().filter(is_meant) {
                let found = match wanted.is_empty() {
                    true => vec![item.tokens.clone()],
                    false => file.occurrences(&wanted, item.tokens.clone()),
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
        }
        let spot = match (&*spots, place.nth) {
            ([only], None) => Some(only),
            ([_, _, ..], Some(nth)) => nth.checked_sub(1).and_then(|nth| spots.get(nth)),
            _ => None,
        };
        let Some((file, tokens)) = spot else {
            return Err(complaint(files, place, &wanted, &spots));
        };
        Ok((file, file.bytes(tokens)))
    }
}

/// Says why a place does not fit, with the places that could be meant.
fn complaint(
    files: &[File],
    place: &Place,
    wanted: &[&str],
    spots: &[(&File, Range<usize>)],
) -> String {
    let mut text = format!("`{}` has {} such places", place.at, spots.len());
    let mut others = Vec::new();
    if spots.is_empty() {
        text += "; here they are:";
        for file in files.iter().filter(|_| !wanted.is_empty()) {
            let found = file.occurrences(wanted, 0..file.tokens.len());
            others.extend(found.into_iter().map(|spot| (file, spot)));
        }
    } else {
        text += ": add tokens, a path, a file or `#` to tell them apart:";
    }
    for (file, spot) in spots.iter().chain(&others).take(SHOWN) {
        let line = file.text[..file.tokens[spot.start].start]
            .matches('\n')
            .count();
        let around = file
            .items
            .iter()
            .filter(|item| item.tokens.contains(&spot.start));
        let item = around.min_by_key(|item| item.tokens.len());
        let item = item.map_or(String::new(), |item| item.path.join("::"));
        let code = file.text.lines().nth(line).unwrap_or_default().trim();
        text += &format!("\n      `{item}` ({}:{}): {code}", file.path, line + 1);
    }
    text
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

    /// Returns the places of these tokens within a range.
    fn occurrences(&self, wanted: &[&str], within: Range<usize>) -> Vec<Range<usize>> {
        let end = (within.end + 1).saturating_sub(wanted.len());
        let is = |start: &usize| {
            let mut tokens = self.tokens[*start..].iter().zip(wanted);
            tokens.all(|(range, text)| self.text[range.clone()] == **text)
        };
        let starts = (within.start..end).filter(is);
        starts.map(|start| start..start + wanted.len()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(at: &str, find: &str, nth: Option<usize>) -> Result<(String, Option<String>), String> {
        let files = [
            (
                "a.rs",
                "mod tests;\nimpl A {\n    fn one(&self) {\n        // x = 1\n        let x = \
                 1;\n        f(x, x);\n    }\n}\nimpl Drop for A { fn drop(&mut self) { g(1) } }\n",
            ),
            (
                "b/c.rs",
                "fn free() { let y = 2; }\nstruct B { z: u8 }\nconst fn e() { q }",
            ),
            (
                "b/d.rs",
                "fn free() { let z = 3; }\n#[cfg(test)]\nmod more;",
            ),
            ("b/d/more.rs", "fn hidden() {}"),
        ];
        let files = files.map(|(path, text)| (text.to_owned(), format!("crates/k/src/{path}")));
        let (at, find) = (at.to_owned(), find.to_owned());
        let place = Place {
            at,
            find,
            nth,
            ..Place::default()
        };
        let sources = Sources::new(files.to_vec());
        let (file, range) = sources.find("k", &place)?;
        let body = file.body(&range).map(|body| file.text[body].to_owned());
        Ok((file.text[range].to_owned(), body))
    }

    #[test]
    fn tokens_are_found_in_a_named_item_whatever_their_layout() {
        for (at, find, text, body) in [
            ("A::one", "x=1;f(x", "x = 1;\n        f(x", None),
            ("a::A::drop", "1", "1", Some("{ g(1) }")),
            ("impl Drop for A", "g(1)", "g(1)", Some("{ g(1) }")),
            ("B", "", "struct B { z: u8 }", None),
            ("B", "z", "z", None),
            ("e", "q", "q", None),
            ("b::c::free", "", "fn free() { let y = 2; }", None),
            ("free", "z = 3", "z = 3", Some("{ let z = 3; }")),
        ] {
            let (found, around) = found(at, find, None).unwrap();
            assert_eq!(found, text);
            assert_eq!(around.as_deref().filter(|_| at != "A::one"), body, "{at}");
        }
        assert_eq!(found("A::one", "x", Some(3)).unwrap().0, "x");
    }

    #[test]
    fn a_complaint_names_the_places_that_could_be_meant() {
        for (at, find, nth, part) in [
            (
                "free",
                "let",
                None,
                "`b::d::free` (crates/k/src/b/d.rs:1): fn free()",
            ),
            (
                "A::two",
                "f(x, x)",
                None,
                "`a::A::one` (crates/k/src/a.rs:6): f(x, x);",
            ),
            ("hidden", "", None, "`hidden` has 0 such places"),
            ("A::one", "x", Some(0), "`A::one` has 3 such places"),
            ("A::one", "x", Some(4), "`A::one` has 3 such places"),
        ] {
            let error = found(at, find, nth).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}

//! Finds the named items of a file: functions, types, constants, implementations, modules.
//!
//! The reader knows tokens and no grammar: between items it knows the words that begin an item, and
//! it skips brackets with their content. Items for tests alone are left out.

use super::Token;
use std::ops::Range;

/// A named item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    /// The modules and the type around the item, and its name: `["queue", "Queue", "push"]`. The
    /// name of an implementation is its head without generics: `impl Drop for Queue`.
    pub(crate) path: Vec<String>,
    /// Its tokens, with its attributes.
    pub(crate) tokens: Range<usize>,
    /// The tokens of a function's body, with its braces, if another body can be added to the
    /// function. A constant function has no such body: the compiler runs it, too. Neither has a
    /// function that hides its type from the caller: two bodies have two types.
    pub(crate) body: Option<Range<usize>>,
}

/// The items of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outline {
    pub(crate) items: Vec<Item>,
    /// The paths of modules in files of their own that only tests have.
    pub(crate) tests: Vec<Vec<String>>,
    /// The tokens of items for tests alone.
    pub(crate) for_tests: Vec<Range<usize>>,
}

impl Outline {
    /// Reads the outline of the file of a module.
    pub(crate) fn of(tokens: &[Token<'_>], module: &[String]) -> Self {
        let mut outline = Self::default();
        Reader(tokens).read(0..tokens.len(), module, &mut outline);
        outline
    }
}

/// Returns the module path of a file: `["queue", "push"]` for `crates/mpsc/src/queue/push.rs`.
pub(crate) fn module(file: &str) -> Vec<String> {
    let inner = file.split_once("src/").map_or(file, |(_, inner)| inner);
    let parts = inner.trim_end_matches(".rs").split('/');
    let mut path: Vec<_> = parts.map(str::to_owned).collect();
    if matches!(&*path, [only] if only == "lib" || only == "main")
        || path.last().is_some_and(|last| last == "mod")
    {
        path.pop();
    }
    path
}

/// An item, or a group of items, that begins at some token.
#[derive(Debug, Default)]
struct Found {
    /// None for a macro call, or for a block of foreign functions.
    name: Option<String>,
    /// The token behind it.
    end: usize,
    /// The tokens of its items, and the name above them.
    inside: Range<usize>,
    scope: Option<String>,
}

struct Reader<'a>(&'a [Token<'a>]);

impl Reader<'_> {
    fn text(&self, at: usize) -> &str {
        self.0.get(at).map_or("", |token| token.text)
    }

    /// Adds the items in these tokens.
    fn read(&self, range: Range<usize>, path: &[String], outline: &mut Outline) {
        let inner = |name: Option<String>| path.iter().cloned().chain(name).collect::<Vec<_>>();
        let mut at = range.start;
        // Where the next item begins, with its attributes; and whether only tests have it.
        let (mut start, mut is_test) = (at, false);
        while at < range.end {
            let Some(found) = self.item(at) else {
                is_test |= self.is_for_tests(at);
                let ends = matches!(self.text(at), ";" | "," | "}");
                at = self.behind(at);
                if ends {
                    (start, is_test) = (at, false);
                }
                continue;
            };
            if !is_test {
                if let Some(name) = found.name {
                    outline.items.push(Item {
                        path: inner(Some(name)),
                        tokens: start..found.end,
                        body: self.body(start, at, found.end),
                    });
                }
                self.read(found.inside, &inner(found.scope), outline);
            } else {
                if found.inside.is_empty() && found.scope.is_some() {
                    outline.tests.push(inner(found.scope));
                }
                outline.for_tests.push(start..found.end);
            }
            at = found.end;
            (start, is_test) = (at, false);
        }
    }

    /// The body of the function whose `fn` is at `at`, between the start and the end of its item.
    fn body(&self, start: usize, at: usize, end: usize) -> Option<Range<usize>> {
        if self.text(at) != "fn" || (start..at).any(|at| self.text(at) == "const") {
            return None;
        }
        let open = self.until(at, "{");
        let mut depth = 0_usize;
        let is_opaque = (at..open).any(|at| {
            match self.text(at) {
                "(" => depth += 1,
                ")" => depth -= 1,
                _ => {}
            }
            depth == 0 && self.text(at) == "impl"
        });
        (self.text(open) == "{" && !is_opaque).then_some(open..end)
    }

    /// The item whose first word is at `at`, behind its attributes and its visibility.
    fn item(&self, at: usize) -> Option<Found> {
        let next = self.text(at + 1);
        let is_named = next.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let named = |name: &str, end| {
            let name = Some(name.to_owned());
            Some(Found {
                name,
                end,
                ..Found::default()
            })
        };
        let with_items = |name: Option<String>, scope: Option<String>| {
            let body = self.until(at, "{");
            let end = self.behind(body);
            Some(Found {
                name,
                end,
                inside: body + 1..(end - 1).max(body + 1).min(end),
                scope,
            })
        };
        match self.text(at) {
            "fn" | "struct" | "enum" if is_named => named(next, self.behind(self.until(at, "{"))),
            "union" if is_named && next != "for" => named(next, self.behind(self.until(at, "{"))),
            "const" | "static" if !matches!(next, "fn" | "unsafe" | "async" | "extern") => {
                let name = if next == "mut" {
                    self.text(at + 2)
                } else {
                    next
                };
                named(name, self.behind(self.until(at, ";")))
            }
            "type" | "use" if is_named => {
                let name = if self.text(at) == "use" { "use" } else { next };
                named(name, self.behind(self.until(at, ";")))
            }
            "mod" | "trait" if is_named => {
                let name = next.to_owned();
                with_items(Some(name.clone()), Some(name))
            }
            "impl" => {
                let (name, of) = self.implementation(at + 1..self.until(at, "{"));
                with_items(Some(name), Some(of))
            }
            "macro_rules" if next == "!" => named(self.text(at + 2), self.behind(at + 3)),
            "extern" if self.text(at + 2) == "{" => with_items(None, None),
            _ if next == "!" && self.text(at + 2) == "{" => with_items(None, None),
            _ => None,
        }
    }

    /// Returns the head of an implementation without generics, and its type.
    fn implementation(&self, head: Range<usize>) -> (String, String) {
        let (mut depth, mut of_trait, mut last) = (0_i32, None, "");
        for at in head {
            match self.text(at) {
                "<" => depth += 1,
                ">" => depth -= 1,
                _ if depth != 0 => {}
                "where" => break,
                "for" if self.text(at + 1) != "<" => of_trait = Some(std::mem::take(&mut last)),
                word if word.starts_with(|c: char| c.is_alphabetic() || c == '_') => last = word,
                _ => {}
            }
        }
        let name = match of_trait {
            Some(of_trait) => format!("impl {of_trait} for {last}"),
            None => format!("impl {last}"),
        };
        (name, last.to_owned())
    }

    /// Returns the first `{` or `;` outside of brackets, or only `;` if `what` asks for it; without
    /// any, the end of the brackets around `at`.
    fn until(&self, mut at: usize, what: &str) -> usize {
        while at < self.0.len() {
            match self.text(at) {
                ";" => break,
                text if text == what => break,
                ")" | "]" | "}" => break,
                _ => at = self.behind(at),
            }
        }
        at
    }

    /// Returns the token behind this token, or behind the brackets that open here.
    fn behind(&self, at: usize) -> usize {
        let (mut at, mut depth) = (at, 0_usize);
        loop {
            match self.text(at) {
                "" => return at,
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            at += 1;
            if depth == 0 {
                return at;
            }
        }
    }

    /// Returns whether an attribute here makes an item for tests alone.
    fn is_for_tests(&self, at: usize) -> bool {
        if [self.text(at), self.text(at + 1), self.text(at + 2)] != ["#", "[", "cfg"] {
            return false;
        }
        let attribute = at + 2..self.behind(at + 1);
        let is =
            |at: usize, words: &[&str]| (at..).zip(words).all(|(at, word)| self.text(at) == *word);
        let has = |words: &[&str]| attribute.clone().any(|at| is(at, words));
        has(&["test"]) && !has(&["any", "("]) && !has(&["not", "(", "test"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rust::tokens;

    const TEXT: &str = r#"
        //! fn not() {}
        use a::{b, c};
        const LEAST: [u8; 2] = [0; 2];
        thread_local! {
            static OWN: Cell<u8> = const { Cell::new(0) };
        }
        #[derive(Debug)]
        pub(crate) struct Queue<T>(T);
        impl<T: Fn() -> u8> Queue<T> {
            const SIZE: usize = 1;
            pub(crate) const unsafe fn push(&self, x: [u8; 2]) -> impl Fn() where T: Copy { { } }
            #[cfg(all(test, not(ganger_loom)))]
            fn shown(&self) {}
        }
        impl<'a, T> From<&'a T> for super::Queue<T> {
            fn from(_: &'a T) -> Self { todo!() }
        }
        impl<F> Run for F where F: for<'a> Fn(&'a u8) { fn run(&self) {} }
        trait Run { type Out; fn run(&self); }
        mod inner { pub(super) fn free() {} }
        macro_rules! many { () => { fn hidden() {} }; }
        #[cfg(test)]
        mod tests;
        #[cfg(all(test, not(ganger_loom)))]
        mod more { fn x() {} }
        #[cfg(any(test, ganger_loom))]
        #[inline]
        fn last() {}
    "#;

    fn outline() -> Outline {
        Outline::of(&tokens(TEXT), &["m".to_owned()])
    }

    #[test]
    fn items_are_called_after_what_they_are_in() {
        let paths: Vec<_> = outline()
            .items
            .iter()
            .map(|item| item.path.join("::"))
            .collect();
        let expected = [
            "m::use",
            "m::LEAST",
            "m::OWN",
            "m::Queue",
            "m::impl Queue",
            "m::Queue::SIZE",
            "m::Queue::push",
            "m::impl From for Queue",
            "m::Queue::from",
            "m::impl Run for F",
            "m::F::run",
            "m::Run",
            "m::Run::Out",
            "m::Run::run",
            "m::inner",
            "m::inner::free",
            "m::many",
            "m::last",
        ];
        assert_eq!(paths, expected);
    }

    #[test]
    fn what_only_tests_have_is_left_out() {
        assert_eq!(outline().tests, [["m".to_owned(), "tests".to_owned()]]);
    }

    #[test]
    fn unfinished_text_ends() {
        for text in [
            "impl", "fn", "fn a(", "mod a {", "static", "a! {", "#[cfg(", "}", "trait A",
        ] {
            let _any = Outline::of(&tokens(text), &[]);
        }
    }
}

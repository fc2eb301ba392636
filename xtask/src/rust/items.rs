//! Finds the named items of a file: functions, types, constants, implementations, modules.
//!
//! The reader knows tokens and no grammar: between items it knows the words that begin an item, and
//! it skips brackets with their content.

use super::Token;
use std::ops::Range;

/// A named item, or a block of foreign functions or a macro call, without a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    /// The modules and the type around the item, and its name: `::queue::Queue::push`. The name of
    /// an implementation is its head without generics: `impl Drop for Queue`.
    pub(crate) path: String,
    /// Its tokens, with its attributes.
    pub(crate) tokens: Range<usize>,
    /// The tokens of a function's body, with its braces, if another body can be added to the
    /// function. A constant function has no such body: the compiler runs it, too. A function with a
    /// hidden type of its result has no such body either: two bodies have two types.
    pub(crate) body: Option<Range<usize>>,
    /// Whether tests alone have it; then the items inside are left out.
    pub(crate) is_test: bool,
}

/// Returns the items in the file of a module.
pub(crate) fn items(tokens: &[Token<'_>], module: &str) -> Vec<Item> {
    let mut items = Vec::new();
    Reader(tokens).read(0..tokens.len(), module, &mut items);
    items
}

/// Returns the module path of a file: `::queue::push` for `crates/mpsc/src/queue/push.rs`.
pub(crate) fn module(file: &str) -> String {
    let inner = file.split_once("src/").map_or(file, |(_, inner)| inner);
    let inner = inner.trim_end_matches(".rs").trim_end_matches("/mod");
    match inner {
        "lib" | "main" => String::new(),
        inner => format!("::{}", inner.replace('/', "::")),
    }
}

struct Reader<'a>(&'a [Token<'a>]);

impl Reader<'_> {
    fn text(&self, at: usize) -> &str {
        self.0.get(at).map_or("", |token| token.text)
    }

    /// Adds the items in these tokens.
    fn read(&self, range: Range<usize>, path: &str, items: &mut Vec<Item>) {
        // Where the next item begins, with its attributes.
        let (mut at, mut start) = (range.start, range.start);
        while at < range.end {
            let Some((name, scope, open)) = self.item(at) else {
                let ends = matches!(self.text(at), ";" | "," | "}");
                at = self.behind(at);
                start = if ends { at } else { start };
                continue;
            };
            let head: String = (start..at).map(|at| self.text(at)).collect();
            let is_test = head.contains("#[cfg(test)]") || head.contains("#[cfg(all(test,");
            let end = self.behind(open);
            let inside = |name: &str| match name {
                "" => path.to_owned(),
                name => format!("{path}::{name}"),
            };
            let (path, tokens) = (inside(&name), start..end);
            let body = self.body(start, at, open, end);
            items.push(Item {
                path,
                tokens,
                body,
                is_test,
            });
            if let Some(scope) = scope.filter(|_| !is_test && self.text(open) == "{") {
                self.read(open + 1..end.max(open + 2) - 1, &inside(&scope), items);
            }
            (at, start) = (end, end);
        }
    }

    /// Returns the body of the function whose `fn` is at `at`, between the start and the end of its
    /// item.
    fn body(&self, start: usize, at: usize, open: usize, end: usize) -> Option<Range<usize>> {
        let is_function = self.text(at) == "fn" && self.text(open) == "{";
        let is_const = (start..at).any(|at| self.text(at) == "const");
        // An `impl` in brackets is an argument's, not the result's.
        let mut inside = at;
        while inside < open && self.text(inside) != "impl" {
            inside = self.behind(inside);
        }
        (is_function && !is_const && inside == open).then_some(open..end)
    }

    /// Returns the item whose first word is at `at`, behind its attributes and its visibility: its
    /// name, the name above the items in it, and the place of its brace or of its end.
    fn item(&self, at: usize) -> Option<(String, Option<String>, usize)> {
        let next = self.text(at + 1);
        let is_named = next.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let item = |name: &str, scope: Option<&str>, open| {
            Some((name.to_owned(), scope.map(str::to_owned), open))
        };
        match self.text(at) {
            "fn" | "struct" | "enum" | "union" if is_named && next != "for" => {
                item(next, None, self.until(at, "{"))
            }
            "const" | "static" if !matches!(next, "fn" | "unsafe" | "async" | "extern") => {
                let name = self.text(at + if next == "mut" { 2 } else { 1 });
                item(name, None, self.until(at, ";"))
            }
            "type" if is_named => item(next, None, self.until(at, ";")),
            "use" if is_named => item("use", None, self.until(at, ";")),
            "mod" | "trait" if is_named => item(next, Some(next), self.until(at, "{")),
            "impl" => {
                let open = self.until(at, "{");
                let (name, of) = self.implementation(at + 1..open);
                item(&name, Some(of), open)
            }
            "macro_rules" if next == "!" => item(self.text(at + 2), None, at + 3),
            "extern" if self.text(at + 2) == "{" => item("", Some(""), at + 2),
            _ if next == "!" && self.text(at + 2) == "{" => item("", Some(""), at + 2),
            _ => None,
        }
    }

    /// Returns the head of an implementation without generics, and its type.
    fn implementation(&self, head: Range<usize>) -> (String, &str) {
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
        let of_trait = of_trait.map_or(String::new(), |of_trait| format!("{of_trait} for "));
        (format!("impl {of_trait}{last}"), last)
    }

    /// Returns the first `{` or `;` outside of brackets, or only `;` if `what` asks for it; without
    /// any, the end of the brackets around `at`.
    fn until(&self, mut at: usize, what: &str) -> usize {
        while !matches!(self.text(at), "" | ";" | ")" | "]" | "}") && self.text(at) != what {
            at = self.behind(at);
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
            pub(crate) const unsafe fn push(&self, x: [u8; 2]) -> u8 where T: Copy { { } }
            #[cfg(all(test, not(ganger_loom)))]
            fn shown(&self) {}
        }
        impl<'a, T> From<&'a T> for super::Queue<T> {
            fn from(_: impl Fn(&'a T)) -> Self { loop {} }
        }
        impl<F> Run for F where F: for<'a> Fn(&'a u8) { fn run(&self) -> impl Fn() {} }
        trait Run { type Out; fn run(&self); }
        mod inner { pub(super) fn free() {} }
        macro_rules! many { () => { fn hidden() {} }; }
        #[cfg(test)]
        mod tests { fn x() {} }
        #[cfg(any(test, ganger_loom))]
        #[inline]
        fn last() {}
    "#;

    #[test]
    fn items_are_called_after_what_they_are_in() {
        let items = items(&tokens(TEXT), "");
        let shown = items.iter().map(|item| {
            let mark = if item.is_test { "?" } else { "" };
            let body = if item.body.is_some() { "{}" } else { "" };
            format!("{mark}{}{body}", item.path.trim_start_matches(':'))
        });
        let expected = "use LEAST OWN Queue impl_Queue Queue::SIZE Queue::push ?Queue::shown{} \
                        impl_From_for_Queue Queue::from{} impl_Run_for_F F::run Run Run::Out \
                        Run::run inner inner::free{} many ?tests last{}";
        let shown = shown.map(|name| name.replace(' ', "_"));
        let shown: Vec<_> = shown.filter(|it| !it.is_empty()).collect();
        assert_eq!(shown.join(" "), expected);
    }

    #[test]
    fn unfinished_text_ends() {
        for text in "impl|fn|fn a(|mod a {|static|a! {|#[cfg(|}|trait A".split('|') {
            let _any = items(&tokens(text), "");
        }
    }
}

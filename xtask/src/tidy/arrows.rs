//! The files of each crate, and which of them import which: what the rules of folders and circles
//! are about.
//!
//! A file imports another by a `use`, or by a path that begins with `crate`, `self` or `super`. The
//! root of a crate and its tests are left out: the root names the modules, and tests may import
//! all.

use super::source::Source;
use std::collections::{BTreeMap, BTreeSet};

/// Folders and files of tests, in any crate.
const TESTS: [&str; 2] = ["models", "tests"];

/// The roots of crates, which are no files of the graph.
const ROOTS: [&str; 2] = ["lib.rs", "main.rs"];

/// The words before the name of an item.
const ITEMS: [&str; 9] = [
    "const",
    "enum",
    "fn",
    "macro_rules",
    "mod",
    "static",
    "struct",
    "trait",
    "type",
];

/// The files of a crate.
pub(super) struct Crate<'a> {
    /// Its folder: `crates/net`, `xtask`.
    pub(super) folder: &'a str,
    /// The name of each file below `src`, without its ending: `worker`, `worker/serve`. The file
    /// `mod.rs` of a folder has the name of the folder.
    pub(super) files: Vec<File<'a>>,
    pub(super) arrows: Vec<Arrow>,
    /// Imports of names that the root of the crate exports for its files.
    pub(super) from_root: Vec<FromRoot>,
}

pub(super) struct File<'a> {
    pub(super) name: &'a str,
    pub(super) source: &'a Source,
}

/// An import; files are places in [`Crate::files`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Arrow {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The first line that imports it.
    pub(super) line: usize,
}

/// An import by way of the root of the crate.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FromRoot {
    pub(super) from: usize,
    pub(super) line: usize,
    pub(super) name: String,
}

/// Returns the crates of the project, each with its files.
pub(super) fn crates(sources: &[Source]) -> Vec<Crate<'_>> {
    let mut files: BTreeMap<&str, Vec<File<'_>>> = BTreeMap::new();
    let mut roots: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for source in sources {
        let Some((folder, path)) = split(&source.path) else {
            continue;
        };
        if ROOTS.contains(&path) {
            roots.entry(folder).or_default().extend(items(source));
        } else if let Some(name) = name(path) {
            files.entry(folder).or_default().push(File { name, source });
        }
    }
    let crates = files.into_iter();
    crates
        .map(|(folder, files)| {
            let own = roots.remove(folder).unwrap_or_default();
            Crate::of(folder, files, &own)
        })
        .collect()
}

/// Splits a path into the folder of its crate and the path below `src`.
fn split(path: &str) -> Option<(&str, &str)> {
    let (folder, file) = path.split_once("/src/")?;
    let is_crate = folder.starts_with("crates/") || ["xtask", "benches"].contains(&folder);
    is_crate.then_some((folder, file))
}

/// Returns the names of the items in a file.
fn items(source: &Source) -> Vec<String> {
    let tokens = tokens(source);
    let words = tokens.iter().map(|(_, token)| token.as_str());
    let words: Vec<_> = words.filter(|token| *token != "!").collect();
    let pairs = words.windows(2);
    let items = pairs.filter(|pair| ITEMS.contains(&pair[0]));
    items.map(|pair| pair[1].to_owned()).collect()
}

/// Returns the name of a file; none for tests.
fn name(path: &str) -> Option<&str> {
    let name = path.strip_suffix(".rs")?;
    let name = name.strip_suffix("/mod").unwrap_or(name);
    let is_test = |part: &str| TESTS.contains(&part) || part.starts_with("loom_");
    (!name.split('/').any(is_test)).then_some(name)
}

impl<'a> Crate<'a> {
    /// Finds the imports of the files; `own` are the items of the root itself.
    fn of(folder: &'a str, files: Vec<File<'a>>, own: &BTreeSet<String>) -> Self {
        let places: BTreeMap<&str, usize> =
            (0..).zip(&files).map(|(at, it)| (it.name, at)).collect();
        let mut arrows: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        let mut from_root = BTreeSet::new();
        for (from, file) in files.iter().enumerate() {
            for (line, path) in imports(file.source) {
                let Some(path) = absolute(file.name, &path) else {
                    continue;
                };
                match find(&places, &path) {
                    Some(to) if to != from => {
                        arrows.entry((from, to)).or_insert(line);
                    }
                    Some(_) => {}
                    None => {
                        let exported = path.first().filter(|name| !own.contains(*name)).cloned();
                        from_root.extend(exported.map(|name| FromRoot { from, line, name }));
                    }
                }
            }
        }
        let arrows = arrows.into_iter();
        Self {
            folder,
            files,
            arrows: arrows
                .map(|((from, to), line)| Arrow { from, to, line })
                .collect(),
            from_root: from_root.into_iter().collect(),
        }
    }

    /// Returns the crate's name in the lists of these rules: its folder without `crates`.
    pub(super) fn name(&self) -> &'a str {
        self.folder.trim_start_matches("crates/")
    }
}

/// Returns the longest prefix of a path that is a file.
fn find(places: &BTreeMap<&str, usize>, path: &[String]) -> Option<usize> {
    let lengths = (1..=path.len()).rev();
    lengths
        .into_iter()
        .find_map(|length| places.get(&*path[..length].join("/")).copied())
}

/// Returns a path from the root of the crate; none if it leaves the crate.
fn absolute(file: &str, path: &[String]) -> Option<Vec<String>> {
    let mut around: Vec<String> = file.split('/').map(str::to_owned).collect();
    let (first, mut rest) = path.split_first()?;
    match &**first {
        "crate" => around.clear(),
        "self" => {}
        _ => {
            around.pop();
            while let Some((_, after)) = rest.split_first().filter(|(it, _)| *it == "super") {
                around.pop();
                rest = after;
            }
        }
    }
    around.extend_from_slice(rest);
    Some(around)
}

/// Returns the paths of a file into its own crate, with their lines.
fn imports(source: &Source) -> Vec<(usize, Vec<String>)> {
    let tokens = tokens(source);
    let word = |at: usize| tokens.get(at).map_or("", |(_, token)| token.as_str());
    let mut paths = Vec::new();
    let mut inner = Inner::default();
    let mut at = 0;
    while at < tokens.len() {
        inner.pass(word(at), word(at + 1), word(at + 2));
        if word(at) == "use" && ["crate", "self", "super"].contains(&word(at + 1)) {
            let first = paths.len();
            tree(&tokens, at + 1, Vec::new(), &mut paths);
            let found = paths.split_off(first).into_iter();
            paths.extend(found.filter_map(|(line, path)| Some((line, inner.leave(path)?))));
        }
        let is_start = ["crate", "super"].contains(&word(at)) && word(at + 1) == "::";
        if !is_start {
            at += 1;
            continue;
        }
        let line = tokens[at].0;
        let mut path = vec![word(at).to_owned()];
        while word(at + 1) == "::" && is_name(word(at + 2)) {
            path.push(word(at + 2).to_owned());
            at += 2;
        }
        at += 1;
        let path = Some(path).filter(|path| path.len() > 1);
        paths.extend(path.and_then(|path| Some((line, inner.leave(path)?))));
    }
    paths
}

/// The modules inside a file around a place in the file.
#[derive(Default)]
struct Inner {
    depth: usize,
    /// The depths of their braces.
    modules: Vec<usize>,
}

impl Inner {
    /// Passes a token, with the next two.
    fn pass(&mut self, token: &str, name: &str, brace: &str) {
        match token {
            "mod" if is_name(name) && brace == "{" => self.modules.push(self.depth),
            "{" => self.depth += 1,
            "}" => {
                self.depth = self.depth.saturating_sub(1);
                self.modules.pop_if(|module| *module == self.depth);
            }
            _ => {}
        }
    }

    /// Returns a path as the file itself would write it; none if it stays in these modules.
    fn leave(&self, mut path: Vec<String>) -> Option<Vec<String>> {
        let depth = self.modules.len();
        if depth == 0 || path[0] == "crate" {
            return Some(path);
        }
        let supers = path.iter().take_while(|name| *name == "super").count();
        if supers < depth {
            return None;
        }
        path.drain(..depth);
        if supers == depth {
            path.insert(0, "self".to_owned());
        }
        Some(path)
    }
}

/// Adds the paths of a tree of imports, and returns the place after the tree.
fn tree(
    tokens: &[(usize, String)],
    mut at: usize,
    mut prefix: Vec<String>,
    paths: &mut Vec<(usize, Vec<String>)>,
) -> usize {
    let mut line = 0;
    while let Some((number, token)) = tokens.get(at) {
        match &**token {
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|(_, token)| token != "}") {
                    at = tree(tokens, at, prefix.clone(), paths);
                    if tokens.get(at).is_some_and(|(_, token)| token == ",") {
                        at += 1;
                    }
                }
                return at + 1;
            }
            "::" => at += 1,
            "as" => at += 2,
            "," | "}" | ";" => break,
            name => {
                line = *number;
                prefix.push(name.to_owned());
                at += 1;
            }
        }
    }
    paths.push((line, prefix));
    at
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// Returns the words and marks of the code outside of tests, with their lines.
pub(super) fn tokens(source: &Source) -> Vec<(usize, String)> {
    let mut tokens = Vec::new();
    let mut test = Test::default();
    for (number, line) in source.numbered() {
        if test.takes(&line.code) {
            continue;
        }
        let mut rest = line.code.trim_start();
        while let Some(first) = rest.chars().next() {
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            let length = if is_part(first) {
                rest.find(|c| !is_part(c)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            tokens.push((number, rest[..length].to_owned()));
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

/// Where a file is in an item for tests alone: from its attribute to its last brace or semicolon.
#[derive(Default)]
struct Test {
    is_in: bool,
    has_begun: bool,
    depth: usize,
}

impl Test {
    /// Whether the line belongs to such an item.
    fn takes(&mut self, code: &str) -> bool {
        let code = code.trim();
        let is_attribute = code.starts_with("#[");
        if !self.is_in {
            let words = code.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            let asks = code.starts_with("#[cfg(") && words.into_iter().any(|word| word == "test");
            let not = ["not(test", "not(any(test"];
            self.is_in = asks && !not.iter().any(|not| code.contains(not));
            return self.is_in;
        }
        if !self.has_begun && is_attribute {
            return true;
        }
        let opened = code.matches('{').count();
        self.has_begun |= opened > 0;
        self.depth = (self.depth + opened).saturating_sub(code.matches('}').count());
        if self.depth == 0 && (self.has_begun || code.contains(';')) {
            *self = Self::default();
        }
        true
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns made-up files of the crate `crates/x`.
    pub(in crate::tidy) fn sources(files: &[(&str, &str)]) -> Vec<Source> {
        let source =
            |(path, text): &(&str, &str)| Source::parse(&format!("crates/x/src/{path}"), text);
        files.iter().map(source).collect()
    }

    /// Returns the arrows of made-up files, as `from -> to: line`.
    fn arrows(files: &[(&str, &str)]) -> Vec<String> {
        let sources = sources(files);
        let crates = crates(&sources);
        let it = &crates[0];
        let arrow = |arrow: &Arrow| {
            let [from, to] = [arrow.from, arrow.to].map(|at| it.files[at].name);
            format!("{from} -> {to}: {}", arrow.line)
        };
        it.arrows.iter().map(arrow).collect()
    }

    #[test]
    fn an_import_is_found_however_it_is_written() {
        let text = "use crate::{\n    b::{C, d::E as F},\n};\nfn f() { super::g::h() }\n\
                    use self::i::J;\npub(crate) use super::super::k::L;\n// crate::m::N\n";
        let found = arrows(&[
            ("a/mod.rs", ""),
            ("a/i.rs", ""),
            ("a/x.rs", text),
            ("a/x/i.rs", ""),
            ("a/g.rs", ""),
            ("b.rs", ""),
            ("b/d.rs", ""),
            ("k.rs", ""),
            ("m.rs", ""),
        ]);
        let expected = [
            "a/x -> a/x/i: 5",
            "a/x -> a/g: 4",
            "a/x -> b: 2",
            "a/x -> b/d: 2",
            "a/x -> k: 6",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn tests_and_the_root_are_left_out() {
        let text = "#[cfg(test)]\nuse crate::b::B;\n#[cfg(all(test, x))]\n#[allow(y)]\nmod z {\n\
                    use crate::b::B;\n    fn f() {}\n}\nuse crate::c::C;\n#[cfg(not(test))]\n\
                    use crate::d::D;\n#[cfg(test)]\nmod tests;\n";
        let found = arrows(&[
            ("lib.rs", "use crate::b::B;\n"),
            ("a.rs", text),
            ("a/tests.rs", "use crate::b::B;\n"),
            ("b.rs", ""),
            ("c.rs", ""),
            ("d.rs", ""),
            ("loom_e.rs", "use crate::b::B;\n"),
            ("models/f.rs", "use crate::b::B;\n"),
        ]);
        assert_eq!(found, ["a -> c: 9", "a -> d: 11"]);
    }

    #[test]
    fn a_module_inside_a_file_begins_in_the_file() {
        let text = "mod z {\nuse super::b::B;\nuse super::super::d::D;\nuse self::c::C;\n\
                    }\nuse self::c::C;\n";
        let files = [("a.rs", text), ("a/b.rs", ""), ("a/c.rs", ""), ("d.rs", "")];
        assert_eq!(arrows(&files), ["a -> a/b: 2", "a -> a/c: 6", "a -> d: 3"]);
    }

    #[test]
    fn names_of_the_root_are_told_apart_from_files() {
        let sources = sources(&[
            (
                "a.rs",
                "use crate::B;\nuse crate::{E, c::D};\ncrate::f!();\n",
            ),
            ("c.rs", ""),
            (
                "lib.rs",
                "pub use b::B;\nmod c;\nstruct E;\nmacro_rules! f {}\n",
            ),
        ]);
        let crates = crates(&sources);
        let expected = FromRoot {
            from: 0,
            line: 1,
            name: "B".to_owned(),
        };
        assert_eq!(crates[0].from_root, [expected]);
        assert_eq!((crates[0].folder, crates[0].name()), ("crates/x", "x"));
    }
}

//! Folders of a crate are layers: a folder imports only folders before it in the crate's list,
//! `xtask/folders.txt`, and no files import each other in a circle.
//!
//! A file imports another by a `use`, or by a path that begins with `crate`, `self` or `super`. The
//! root of a crate and its tests are left out: the root names the modules, and tests may import
//! all.

use super::Findings;
use super::source::Source;
use crate::rust;
use std::collections::{BTreeMap, BTreeSet};

const LISTS: &str = include_str!("../../folders.txt");
const PATH: &str = "xtask/folders.txt";

/// Permitted arrows of a circle: crate, from, to. A process leads to its scheduler, which has the
/// table of its processes.
const CIRCLES: [(&str, &str, &str); 1] = [("sched", "runtime/cell", "runtime/shared")];

/// In `sched`, the folder that all folders may import: only through it are they watched.
const PROBE: &str = "probe";

/// In `sched`, the watching parts, which may import all, and the file with the choice of the parts
/// to compile.
const WATCHING: &str = "probe/active accounts check internals noop_process observe sim simulated";

/// The files of a crate below `src` by their names without ending: `worker`, `worker/serve`. The
/// file `mod.rs` of a folder has the name of the folder.
type Files<'a> = BTreeMap<&'a str, &'a Source>;

/// The imports between files, each with its first line.
type Arrows<'a> = BTreeMap<(&'a str, &'a str), usize>;

/// Checks all crates.
pub(super) fn check(sources: &[Source], findings: &mut Findings) {
    let mut crates: BTreeMap<&str, (Files<'_>, BTreeSet<String>)> = BTreeMap::new();
    for source in sources {
        let Some((folder, path)) = source.path.split_once("/src/") else {
            continue;
        };
        let own = folder.trim_start_matches("crates/");
        if own.contains('/') || own == "fuzz" || own == "examples" {
            continue;
        }
        let (files, items) = crates.entry(own).or_default();
        let name = path.trim_end_matches(".rs").trim_end_matches("/mod");
        let is_test = |part: &str| ["models", "tests"].contains(&part) || part.starts_with("loom_");
        if ["lib", "main"].contains(&name) {
            let found = rust::items(&rust::tokens(&source.text), "").into_iter();
            let named = found
                .filter(|item| !item.is_test)
                .map(|item| item.path.trim_start_matches(":").to_owned());
            items.extend(named);
        } else if !name.split('/').any(is_test) {
            files.insert(name, source);
        }
    }
    for (name, (files, items)) in &crates {
        let mut lines = LISTS.lines();
        let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        match line {
            Some(line) => check_crate(name, line, files, items, findings),
            None if files.keys().any(|file| file.contains('/')) => {
                findings.add(PATH, 0, format!("the folders of {name} have no order"));
            }
            None => {}
        }
    }
}

fn check_crate(
    name: &str,
    list: &str,
    files: &Files<'_>,
    items: &BTreeSet<String>,
    findings: &mut Findings,
) {
    let layers = list.split(" < ").enumerate();
    let places = layers.flat_map(|(place, layer)| layer.split(' ').map(move |it| (it, place)));
    let places: BTreeMap<&str, usize> = places.collect();
    let is_free = |file: &str| {
        let is_part = |part: &str| WATCHING.split(' ').any(|it| it == part);
        name == "sched" && (is_part(file) || file.split('/').any(is_part))
    };
    let mut arrows = Arrows::new();
    for (&from, source) in files {
        if !places.contains_key(top(from)) && !is_free(from) {
            let what = format!("`{}` is not in the list of {PATH}", top(from));
            findings.add(&source.path, 1, what);
        }
        for (line, path) in imports(source) {
            let Some(path) = absolute(from, &path) else {
                continue;
            };
            let lengths = (1..=path.len()).rev();
            let mut paths = lengths.map(|length| path[..length].join("/"));
            match paths.find_map(|path| files.get_key_value(&*path)) {
                Some((&to, _)) if to != from => _ = arrows.entry((from, to)).or_insert(line),
                None if !items.contains(path[0]) && !is_free(from) => {
                    let what = format!("`{}` is imported from the root: name its file", path[0]);
                    findings.add(&source.path, line, what);
                }
                _ => {}
            }
        }
    }
    for (&(from, to), &line) in &arrows {
        let (own, other) = (top(from), top(to));
        let is_probe = name == "sched" && other == PROBE;
        let is_below = match (places.get(other), places.get(own)) {
            (Some(other), Some(own)) => other < own,
            _ => false,
        };
        if !is_below && !is_free(from) && !is_probe && own != other {
            let what = format!("`{own}` must not import `{other}`, which is not below it");
            findings.add(&files[from].path, line, what);
        }
    }
    for (_, from, to) in CIRCLES.iter().filter(|(of, ..)| *of == name) {
        let all = in_circles(&arrows);
        if arrows.remove(&(*from, *to)).is_none() || all == in_circles(&arrows) {
            let what = format!("{from} -> {to} closes no circle: take it out of `CIRCLES`");
            findings.add("xtask/src/tidy/folders.rs", 0, what);
        }
    }
    let circle: Vec<_> = in_circles(&arrows).into_iter().collect();
    if let Some(&first) = circle.first() {
        let circle = circle.join(", ");
        let what = format!("these files import each other in a circle: {circle}");
        findings.add(&files[first].path, 1, what);
    }
}

/// Returns the files in circles, and the files between two circles.
fn in_circles<'a>(arrows: &Arrows<'a>) -> BTreeSet<&'a str> {
    let mut left: Vec<_> = arrows.keys().copied().collect();
    loop {
        let count = left.len();
        let froms: BTreeSet<_> = left.iter().map(|(from, _)| *from).collect();
        let tos: BTreeSet<_> = left.iter().map(|(_, to)| *to).collect();
        left.retain(|(from, to)| froms.contains(to) && tos.contains(from));
        if left.len() == count {
            return froms;
        }
    }
}

/// Returns the first part of a file's path: a folder, or the name of a file outside of all folders.
fn top(file: &str) -> &str {
    file.split_once('/').map_or(file, |(top, _)| top)
}

/// Returns a path from the root of the crate; none if it leaves the crate.
fn absolute<'a>(file: &'a str, path: &[&'a str]) -> Option<Vec<&'a str>> {
    let mut around: Vec<_> = file.split('/').collect();
    let mut rest = path;
    while let Some((first, after)) = rest.split_first() {
        match *first {
            "crate" => around.clear(),
            "self" => {}
            "super" => _ = around.pop()?,
            _ => break,
        }
        rest = after;
    }
    around.extend_from_slice(rest);
    Some(around).filter(|path| !path.is_empty())
}

/// Returns the paths of a file into its own crate, with their lines. A path from a module inside
/// the file stays in the file, unless it begins with `crate`.
fn imports(source: &Source) -> Vec<(usize, Vec<&str>)> {
    let tokens = source.tokens();
    let word = |at: usize| tokens.get(at).map_or("", |(_, token)| token);
    let mut paths = Vec::new();
    // The depths of the braces of modules inside the file.
    let (mut depth, mut modules) = (0_usize, Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        match word(at) {
            "mod" if word(at + 2) == "{" => modules.push(depth),
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                modules.pop_if(|module| *module == depth);
            }
            // Public macros of a crate have no file.
            "crate" if word(at + 3) == "!" => at += 2,
            start @ ("crate" | "super" | "self") if word(at + 1) == "::" => {
                let first = paths.len();
                at = tree(&tokens, at, Vec::new(), &mut paths);
                if start != "crate" && !modules.is_empty() {
                    paths.truncate(first);
                }
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    paths
}

/// Adds the paths of a tree of imports, and returns the place after the tree.
fn tree<'a>(
    tokens: &[(usize, &'a str)],
    mut at: usize,
    mut prefix: Vec<&'a str>,
    paths: &mut Vec<(usize, Vec<&'a str>)>,
) -> usize {
    let mut line = 0;
    while let Some(&(number, token)) = tokens.get(at) {
        if token.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
            (line, at) = (number, at + 1);
            prefix.push(token);
        }
        match tokens.get(at).map_or("", |(_, token)| token) {
            "::" => at += 1,
            "{" if tokens[at - 1].1 == "::" => {
                while tokens.get(at).is_some_and(|(_, token)| *token != "}") {
                    at = tree(tokens, at + 1, prefix.clone(), paths);
                    if tokens.get(at).is_some_and(|(_, token)| *token == "as") {
                        at += 2;
                    }
                }
                return at + 1;
            }
            _ => break,
        }
    }
    paths.push((line, prefix));
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the findings of a crate with these files, as `file:line: what`.
    fn found(name: &str, list: &str, files: &[(&str, &str)]) -> Vec<String> {
        let parse = |(path, text): &(&str, &str)| Source::parse(path, text);
        let sources: Vec<_> = files.iter().map(parse).collect();
        let files = sources.iter().map(|it| (&*it.path, it)).collect();
        let mut findings = Findings::default();
        check_crate(
            name,
            list,
            &files,
            &BTreeSet::from(["E".to_owned()]),
            &mut findings,
        );
        findings.shown()
    }

    #[test]
    fn an_arrow_that_runs_up_or_beside_is_found_however_it_is_written() {
        let text = "use crate::{\n    b::{C, d::E as F},\n    E,\n};\n\
                    fn f() { super::super::g::h() }\nuse self::i::J;\n// crate::g::N\n\
                    use super::k::L;\nmod z { use super::q; }\n";
        let g = ("g", "#[cfg(test)]\nuse crate::b::B;\n");
        let files = [
            ("a/x", text),
            ("a/x/i", ""),
            ("a/k", ""),
            ("b", ""),
            ("b/d", ""),
            g,
        ];
        let what = |to: &str| format!("`a` must not import `{to}`, which is not below it");
        let (b, g) = (what("b"), what("g"));
        let expected = [format!("a/x:2: {b}"), format!("a/x:5: {g}")];
        assert_eq!(found("x", "a g < b", &files), expected);
        assert!(found("x", "g < b < a", &files).is_empty());
        let unlisted = format!("g:1: `g` is not in the list of {PATH}");
        assert!(found("x", "b < a", &files).contains(&unlisted));
    }

    #[test]
    fn the_probe_is_for_all_and_what_watches_for_the_choice_alone() {
        let active = ("probe/active", "use crate::check::C;\n");
        let check = ("check", "use crate::a::A;\nuse crate::Root;\n");
        let files = [
            ("a", "use crate::probe::P;\n"),
            ("probe", ""),
            active,
            check,
        ];
        // The known circle of `sched` is not in these files.
        assert_eq!(found("sched", "a < probe", &files).len(), 1);
        assert_eq!(found("other", "a < probe", &files).len(), 5);
    }

    #[test]
    fn a_circle_and_a_name_of_the_root_are_found() {
        let [a, b] = ["use crate::b::B;\n", "use crate::c::C;\nuse crate::Cell;\n"];
        let files = [
            ("a", a),
            ("b", b),
            ("c", "use crate::{a::A, d::D};\n"),
            ("d", ""),
        ];
        let found = found("x", "a b c d", &files).join("\n");
        assert!(found.contains("a:1: these files import each other in a circle: a, b, c"));
        assert!(found.contains("b:2: `Cell` is imported from the root: name its file"));
    }
}

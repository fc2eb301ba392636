//! The table of the cases that tests try over each engine, in `docs/CLUSTER.md`.
//!
//! The list of cases, and of the harnesses they run over, is `xtask/conformance.txt`; tests say
//! their numbers: `// case: 7`. A case of `cases!` runs over each harness with the hooks of the
//! case's own body. A test in an engine's crate counts for the engine alone.

use crate::Failure;
use crate::root::{files, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// The document.
pub(crate) const DOCUMENT: &str = "docs/CLUSTER.md";

/// The table's place in the document.
const BEGIN: &str = "<!-- written by `cargo xtask conformance` -->\n";
const END: &str = "<!-- end -->\n";

const LIST: &str = "xtask/conformance.txt";

/// Where the cases of all engines are.
const CASES: &str = "crates/cluster/src/conformance/";

/// The texts of the list, the cases and the tests, by path.
type Texts = BTreeMap<String, String>;

/// Writes the table.
pub(crate) fn run() -> Result<(), Failure> {
    fs::write(root().join(DOCUMENT), document()?)?;
    println!("{DOCUMENT} has the table");
    Ok(())
}

/// Returns the document, as it should be.
pub(crate) fn document() -> Result<String, Failure> {
    let document = fs::read_to_string(root().join(DOCUMENT))?;
    let place = document.split_once(BEGIN);
    let place = place.and_then(|(head, rest)| Some((head, rest.split_once(END)?.1)));
    let (head, tail) = place.ok_or_else(|| format!("{DOCUMENT} has no {BEGIN}"))?;
    let mut texts = Texts::new();
    for path in files()? {
        let is_test = path.ends_with(".rs") && path.contains("/tests/");
        if is_test || path.starts_with(CASES) || path == LIST {
            let text = fs::read_to_string(root().join(&path))?;
            texts.insert(path, text);
        }
    }
    Ok(format!("{head}{BEGIN}{}{END}{tail}", table(&texts)?))
}

fn table(texts: &Texts) -> Result<String, Failure> {
    let list = texts.get(LIST).ok_or("the list of cases is not there")?;
    let lines = || list.lines().filter(|line| !line.starts_with('#'));
    let number = |line: &str| line.split(' ').next()?.parse().ok();
    let cases: BTreeSet<u32> = lines().filter_map(number).collect();
    let files = texts.iter().filter(|(path, _)| path.starts_with(CASES));
    let needs: BTreeMap<_, _> = files.flat_map(|(_, text)| needs(text)).collect();
    let mut table = "|over|cases|\n|---|---|\n".to_owned();
    for line in lines().filter_map(|line| line.strip_prefix("over ")) {
        let parts: Vec<_> = line.split('|').map(str::trim).collect();
        let &[name, file, of, own, others] = &*parts else {
            return Err(format!("{LIST}: `{line}` needs five parts").into());
        };
        let hooks = match texts.get(file) {
            Some(text) => Some(hooks_of(text, of).ok_or_else(|| format!("{of} is no harness"))?),
            None => None,
        };
        let mut tried = BTreeSet::new();
        for (path, text) in texts {
            for (numbers, test) in tests(text) {
                let is_in = |parts: &str| parts.split_whitespace().any(|part| path.contains(part));
                let is_run = if path.starts_with(CASES) {
                    let needs = needs.get(test).ok_or(format!("no case is {test}"))?;
                    hooks.as_ref().is_some_and(|hooks| needs.is_subset(hooks))
                } else {
                    is_in(own) && !is_in(others)
                };
                tried.extend(numbers.into_iter().filter(|_| is_run));
            }
        }
        if let Some(number) = tried.iter().find(|it| !cases.contains(it)) {
            return Err(format!("a test names case {number}, which {LIST} does not have").into());
        }
        table += &format!("|{name}|{}|\n", runs(&cases, &tried));
    }
    Ok(table)
}

/// Returns the numbers of a set, in runs without a gap in the list of all: `1–9, 11`.
fn runs(all: &BTreeSet<u32>, tried: &BTreeSet<u32>) -> String {
    let all: Vec<u32> = all.iter().copied().collect();
    let runs = all.split(|it| !tried.contains(it));
    let shown = runs.filter_map(|run| match run {
        [] => None,
        [only] => Some(only.to_string()),
        [first, second] => Some(format!("{first}, {second}")),
        [first, .., last] => Some(format!("{first}–{last}")),
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// Returns the tests with a list of cases; a macro that makes tests counts as a test.
fn tests(text: &str) -> Vec<(Vec<u32>, &str)> {
    let mut tests = Vec::new();
    let mut numbers = Vec::new();
    for line in text.lines().map(str::trim) {
        let by_macro = line.strip_prefix("ganger_cluster::");
        let test = line.strip_prefix("fn ").or(by_macro);
        if let Some(list) = line.strip_prefix("// case: ") {
            numbers.extend(list.split(", ").filter_map(|it| it.parse::<u32>().ok()));
        } else if let Some(name) = test.filter(|_| !numbers.is_empty()) {
            let name = name.split(['(', '<']).next().unwrap_or_default();
            tests.push((std::mem::take(&mut numbers), name));
        }
    }
    tests
}

/// Returns the hooks of a harness: the functions of its implementation.
fn hooks_of<'a>(text: &'a str, of: &str) -> Option<BTreeSet<&'a str>> {
    let (_, rest) = text.split_once(&format!(" Harness for {of} {{\n"))?;
    let body = rest.split("\n}\n").next()?;
    let names = body.lines().filter_map(|line| line.strip_prefix("    fn "));
    let mut hooks: BTreeSet<_> = names.filter_map(|it| it.split('(').next()).collect();
    // A harness of a single scheduler answers `true`, and has no other node.
    if !body.contains("fn is_one(&self) -> bool {\n        true") {
        hooks.insert("two");
    }
    if body.contains("type Ground = Threads;") {
        hooks.insert("threads");
    }
    Some(hooks)
}

/// Returns the cases of a file, each with the hooks without which the case is over at once.
fn needs(text: &str) -> Vec<(&str, BTreeSet<&'static str>)> {
    const SIGNS: [(&str, &str); 7] = [
        ("if !H::Ground::HAS_THREADS", "threads"),
        ("if harness.entries().is_none()", "entries"),
        ("if harness.is_one() {\n        return", "two"),
        ("if !harness.cut()", "cut"),
        ("if !harness.disturb()", "disturb"),
        ("if !harness.restart_far()", "restart_far"),
        ("H::start_frail(", "start_frail"),
    ];
    let cases = text.split("\npub fn ").skip(1).filter_map(|case| {
        let (name, rest) = case.split_once("<H: Harness>(")?;
        let body = rest.split("\n}\n").next()?;
        let signs = SIGNS.iter().filter(|(sign, _)| body.contains(sign));
        Some((name, signs.map(|(_, hook)| *hook).collect()))
    });
    cases.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: &str = "\
impl Harness for One {\n    fn start() -> Self {\n    }\n\n    fn is_one(&self) -> bool {\n        \
true\n    }\n}\n
impl Harness for Two {\n    fn cut() {}\n}\n
pub fn first<H: Harness>(ground) {\n    assert!(true);\n}\n
pub fn second<H: Harness>(ground) {\n    if harness.is_one() {\n        return;\n    }\n}\n
pub fn third<H: Harness>(ground) {\n    if !harness.cut() {\n        return;\n    }\n}\n
        // case: 1, 7\n        #[test]\n        fn first() {\n
        // pins: B1\n        // case: 7\n        #[test]\n        fn second() {\n
        // case: 9\n        #[test]\n        fn third() {\n";

    fn table_of(list: &str) -> Result<String, Failure> {
        let over = "over one | crates/cluster/src/conformance/mod.rs | One | |\n\
                    over two | crates/cluster/src/conformance/mod.rs | Two | |\n\
                    over tests | | | crates/a/tests/ | simulated\n";
        let simulated = "// case: 9\n#[test]\nfn own() {\n";
        let own = "// case: 7\nganger_cluster::strong_cases!(super::Named);\n";
        let texts = [
            (LIST, &*format!("# a comment\n{over}{list}")),
            ("crates/cluster/src/conformance/mod.rs", MODULE),
            ("crates/a/tests/it/simulated.rs", simulated),
            ("crates/a/tests/it/own.rs", own),
        ];
        let texts = texts.map(|(path, text)| (path.to_owned(), text.to_owned()));
        table(&Texts::from(texts))
    }

    #[test]
    fn a_case_is_tried_where_its_hooks_are() {
        let table = table_of("1 the first\n7 the second\n9 the third\n").unwrap();
        let rows: Vec<_> = table.lines().skip(2).collect();
        assert_eq!(rows, ["|one|1, 7|", "|two|1–9|", "|tests|7|"]);
        let error = table_of("1 the first\n7 the second\n").unwrap_err();
        let error = error.to_string();
        assert!(error.contains("case 9"), "{error}");
    }
}

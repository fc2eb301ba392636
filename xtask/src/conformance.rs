//! The table of the cases that tests try over each engine, in `docs/CLUSTER.md`.
//!
//! The list of cases is `xtask/conformance.txt`; tests say their numbers: `// case: 7`. A case of
//! `cases!` runs over each harness that has the hooks which the case's own body asks for. Tests of
//! an engine's own count for that engine.

use crate::Failure;
use crate::root::{files, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

/// The document.
pub(crate) const DOCUMENT: &str = "docs/CLUSTER.md";

/// The table's place in the document.
const BEGIN: &str = "<!-- written by `cargo xtask conformance` -->\n";
const END: &str = "<!-- end -->\n";

const LIST: &str = "xtask/conformance.txt";

/// Where the cases of all engines are.
const CASES: &str = "crates/cluster/src/conformance/";

/// The crates whose tests may name cases, in the workspace and beside it.
const TESTS: [&str; 5] = [
    "crates/again/tests/",
    "crates/cluster/tests/",
    "crates/cluster-direct/tests/",
    "crates/link/tests/",
    "engines/nats/tests/",
];

/// What the cases of all engines run over, or tests of its own alone: a simulation has a single
/// thread, and a case waits on its thread.
struct Harness {
    /// Its column.
    name: &'static str,
    /// The file that implements the hooks, if it runs the cases.
    file: &'static str,
    /// The type, as the implementation names it.
    of: &'static str,
    /// The tests of its own: parts of their paths, and of other paths.
    tests: &'static [&'static str],
    others: &'static [&'static str],
}

const HARNESSES: [Harness; 8] = [
    Harness {
        name: "one scheduler",
        file: "crates/cluster/src/conformance/mod.rs",
        of: "One",
        ..SIMULATED
    },
    Harness {
        name: "twin",
        file: "crates/cluster/src/conformance/twins.rs",
        of: "Twins",
        tests: &[
            "crates/cluster/tests/",
            "crates/link/tests/",
            "crates/again/tests/",
        ],
        others: &["/simulated/"],
    },
    Harness {
        name: "twin in a simulation",
        tests: &["crates/cluster/tests/it/simulated/"],
        ..SIMULATED
    },
    Harness {
        name: "direct, cookie",
        tests: &["crates/cluster-direct/tests/"],
        others: &["/tls.rs", "/simulated.rs"],
        ..DIRECT
    },
    Harness {
        name: "direct, TLS",
        tests: &["crates/cluster-direct/tests/it/tls.rs"],
        ..DIRECT
    },
    Harness {
        name: "direct, guest",
        ..DIRECT
    },
    Harness {
        name: "direct in a simulation",
        tests: &["crates/cluster-direct/tests/it/simulated.rs"],
        ..SIMULATED
    },
    Harness {
        name: "NATS",
        file: "engines/nats/tests/it/conformance.rs",
        of: "Over",
        tests: &["engines/nats/tests/"],
        ..SIMULATED
    },
];

const SIMULATED: Harness = Harness {
    name: "",
    file: "",
    of: "",
    tests: &[],
    others: &[],
};

const DIRECT: Harness = Harness {
    file: "crates/cluster-direct/tests/it/conformance.rs",
    of: "Pair<IS_SECURE, IS_GUEST>",
    ..SIMULATED
};

/// The texts of the files that count, by path.
type Texts = BTreeMap<String, String>;

/// The numbers of the cases that tests try, a set for each harness.
type Tried = [BTreeSet<u32>; HARNESSES.len()];

/// Writes the table.
pub(crate) fn run() -> Result<(), Failure> {
    let path = root().join(DOCUMENT);
    let document = fs::read_to_string(&path)?;
    fs::write(path, document_with(&document, &table(&texts()?)?)?)?;
    println!("{DOCUMENT} has the table");
    Ok(())
}

/// The document, as it should be.
pub(crate) fn document(is: &str) -> Result<String, Failure> {
    document_with(is, &table(&texts()?)?)
}

fn document_with(document: &str, table: &str) -> Result<String, Failure> {
    let place = document.split_once(BEGIN);
    let place = place.and_then(|(head, rest)| Some((head, rest.split_once(END)?.1)));
    let (head, tail) = place.ok_or_else(|| format!("{DOCUMENT} has no {BEGIN}"))?;
    Ok(format!("{head}{BEGIN}{table}{END}{tail}"))
}

fn texts() -> Result<Texts, Failure> {
    let mut texts = Texts::new();
    for path in files()? {
        let name = path.to_string_lossy().replace('\\', "/");
        let counts = name.ends_with(".rs") && TESTS.iter().any(|it| name.starts_with(it));
        if counts || name.starts_with(CASES) || name == LIST {
            texts.insert(name, fs::read_to_string(root().join(path))?);
        }
    }
    Ok(texts)
}

fn table(texts: &Texts) -> Result<String, Failure> {
    let list = texts.get(LIST).ok_or("the list of cases is not there")?;
    let cases: BTreeSet<u32> = list
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (number, _) = line.split_once(' ').ok_or(line)?;
            number.parse().map_err(|_| line)
        })
        .collect::<Result<_, &str>>()
        .map_err(|line| format!("{LIST} has no number at {line:?}"))?;
    let tried = tried(texts)?;
    if let Some(number) = tried.iter().flatten().find(|it| !cases.contains(it)) {
        return Err(format!("a test names case {number}, which {LIST} does not have").into());
    }
    let mut table = "|over|cases|\n|---|---|\n".to_owned();
    for (harness, tried) in HARNESSES.iter().zip(&tried) {
        let _ = writeln!(table, "|{}|{}|", harness.name, runs(&cases, tried));
    }
    Ok(table)
}

/// The numbers of a set, in runs without a gap in the list of all: `1–9, 11`.
fn runs(all: &BTreeSet<u32>, tried: &BTreeSet<u32>) -> String {
    let all: Vec<u32> = all.iter().copied().collect();
    let runs = all.split(|it| !tried.contains(it));
    let shown: Vec<String> = runs
        .filter_map(|run| match run {
            [] => None,
            [only] => Some(only.to_string()),
            [first, second] => Some(format!("{first}, {second}")),
            [first, .., last] => Some(format!("{first}–{last}")),
        })
        .collect();
    shown.join(", ")
}

fn tried(texts: &Texts) -> Result<Tried, Failure> {
    let mut hooks = Vec::new();
    for harness in &HARNESSES {
        if harness.file.is_empty() {
            hooks.push(None);
            continue;
        }
        let text = texts.get(harness.file).map(String::as_str);
        let found = hooks_of(text.unwrap_or_default(), harness.of);
        let found = found.ok_or_else(|| format!("{} is no harness", harness.of))?;
        hooks.push(Some(found));
    }
    let needs: BTreeMap<_, _> = (texts.iter())
        .filter(|(path, _)| path.starts_with(CASES))
        .flat_map(|(_, text)| needs(text))
        .collect();
    let mut tried = Tried::default();
    for (path, text) in texts {
        for (numbers, test) in tests(text) {
            for (column, harness) in HARNESSES.iter().enumerate() {
                let is_run = if path.starts_with(CASES) {
                    let needs = needs
                        .get(test)
                        .ok_or_else(|| format!("no case is {test}"))?;
                    hooks[column].as_ref().is_some_and(|it| needs.is_subset(it))
                } else {
                    let is_in = |parts: &[&str]| parts.iter().any(|part| path.contains(part));
                    is_in(harness.tests) && !is_in(harness.others)
                };
                if is_run {
                    tried[column].extend(&numbers);
                }
            }
        }
    }
    Ok(tried)
}

/// The name of a test; and a macro that makes tests counts as a test.
fn name_of(line: &str) -> Option<&str> {
    let makes = line.strip_prefix("ganger_cluster::");
    line.strip_prefix("fn ").or(makes)
}

/// The tests that name cases.
fn tests(text: &str) -> Vec<(Vec<u32>, &str)> {
    let mut tests = Vec::new();
    let mut numbers = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(list) = line.strip_prefix("// case: ") {
            numbers.extend(list.split(", ").filter_map(|it| it.parse::<u32>().ok()));
        } else if let Some(name) = name_of(line)
            && !numbers.is_empty()
        {
            let name = name.split(['(', '<']).next().unwrap_or_default();
            tests.push((std::mem::take(&mut numbers), name));
        }
    }
    tests
}

/// The hooks that a harness has: the functions of its implementation.
fn hooks_of<'a>(text: &'a str, of: &str) -> Option<BTreeSet<&'a str>> {
    let (_, rest) = text.split_once(&format!(" Harness for {of} {{\n"))?;
    let body = rest.split("\n}\n").next()?;
    let names = body.lines().filter_map(|line| line.strip_prefix("    fn "));
    let mut hooks: BTreeSet<_> = names.filter_map(|it| it.split('(').next()).collect();
    // A harness of a single scheduler answers `true`, and has no other node.
    if !body.contains("fn is_one(&self) -> bool {\n        true") {
        hooks.insert("two");
    }
    Some(hooks)
}

/// The cases of a file, each with the hooks without which the case is over at once.
fn needs(text: &str) -> Vec<(&str, BTreeSet<&'static str>)> {
    const SIGNS: [(&str, &str); 6] = [
        ("if harness.entries().is_none()", "entries"),
        ("if harness.is_one() {\n        return", "two"),
        ("if !harness.cut()", "cut"),
        ("if !harness.disturb()", "disturb"),
        ("if !harness.restart_far()", "restart_far"),
        ("H::start_frail(", "start_frail"),
    ];
    let cases = text.split("\npub fn ").skip(1).filter_map(|case| {
        let name = case.split("<H: Harness>()").next()?;
        let body = case.split("\n}\n").next()?;
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
pub fn first<H: Harness>() {\n    assert!(true);\n}\n
pub fn second<H: Harness>() {\n    if harness.is_one() {\n        return;\n    }\n}\n
pub fn third<H: Harness>() {\n    if !harness.cut() {\n        return;\n    }\n}\n
        // case: 1, 7\n        #[test]\n        fn first() {\n
        // pins: B1\n        // case: 7\n        #[test]\n        fn second() {\n
        // case: 9\n        #[test]\n        fn third() {\n";

    fn texts() -> Texts {
        let mut texts = Texts::new();
        let mut add = |path: &str, text: &str| texts.insert(path.to_owned(), text.to_owned());
        add(
            LIST,
            "# a comment\n1 the first\n7 the second\n9 the third\n",
        );
        add(HARNESSES[0].file, MODULE);
        let without = |of: &str| format!("impl Harness for {of} {{\n    fn start() {{}}\n}}\n");
        add(HARNESSES[1].file, &without("Twins"));
        let pair = "impl Harness for Pair<IS_SECURE, IS_GUEST> {\n    fn cut() {}\n}\n";
        add(HARNESSES[3].file, pair);
        add(HARNESSES[7].file, &without("Over"));
        add(
            "crates/cluster/tests/it/simulated/mod.rs",
            "// case: 7\n#[test]\nfn own() {\n",
        );
        add(
            "crates/cluster-direct/tests/it/tls.rs",
            "// case: 9\nganger_cluster::strong_cases!(super::Named);\n",
        );
        texts
    }

    #[test]
    fn a_case_is_tried_where_its_hooks_are() {
        let table = table(&texts()).unwrap();
        let rows: Vec<_> = table.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "|one scheduler|1, 7|",
                "|twin|1, 7|",
                "|twin in a simulation|7|",
                "|direct, cookie|1–9|",
                "|direct, TLS|1–9|",
                "|direct, guest|1–9|",
                "|direct in a simulation||",
                "|NATS|1, 7|",
            ]
        );
    }

    #[test]
    fn a_number_that_is_in_no_list_is_an_error() {
        let mut texts = texts();
        texts.insert(LIST.to_owned(), "1 the first\n7 the second\n".to_owned());
        let error = table(&texts).unwrap_err().to_string();
        assert!(error.contains("case 9"), "{error}");
    }
}

//! Crates: their layers, their files, and their features.

use super::Findings;
use super::source::Source;
use crate::rust::{items, tokens};
use toml::{Table, Value};

/// Has the layers of the published crates: the first block of text, a layer a line, the highest
/// first.
pub(super) const LAYERS: &str = "docs/ARCHITECTURE.md";

/// In `sched`, folders for a feature as a whole.
const PROBES: [&str; 4] = ["accounts/", "check/", "probe/", "sim/"];

/// Checks the manifest of a published package. Dependencies of tests alone are free.
pub(super) fn check_manifest(path: &str, manifest: &Table, layers: &str, findings: &mut Findings) {
    let Some(package) = manifest.get("package").and_then(Value::as_table) else {
        return;
    };
    if package.get("publish").and_then(Value::as_bool) == Some(false) {
        return;
    }
    let docs = package.get("metadata").and_then(|it| it.get("docs"));
    let all = docs.and_then(|docs| docs.get("rs")?.get("all-features")?.as_bool());
    if all != Some(true) {
        let what = "`[package.metadata.docs.rs]` needs `all-features = true`";
        findings.add(path, 0, what);
    }
    if !path.starts_with("crates/") {
        return;
    }
    let own = package["name"].as_str().unwrap_or_default();
    let own = own.trim_start_matches("ganger-");
    let block = layers.split("```text\n").nth(1).unwrap_or_default();
    let mut lines = block.lines().take_while(|line| *line != "```");
    let mut place = |name: &str| lines.position(|line| line.split("  ").any(|it| it == name));
    if place(own).is_none() {
        return findings.add(path, 0, format!("{own} is in no layer of {LAYERS}"));
    }
    // The remaining lines are below.
    let below: Vec<_> = lines.flat_map(|line| line.split("  ")).collect();
    let targets = manifest.get("target").and_then(Value::as_table);
    let targets = targets.into_iter().flat_map(Table::values);
    for table in targets.filter_map(Value::as_table).chain([manifest]) {
        let kinds = ["dependencies", "build-dependencies"].map(|kind| table.get(kind));
        let tables = kinds.into_iter().flatten().filter_map(Value::as_table);
        let names = tables.flat_map(Table::keys);
        for other in names.filter_map(|name| name.strip_prefix("ganger-")) {
            if !below.contains(&other) {
                let what = format!("{own} must not depend on {other}: not below it in {LAYERS}");
                findings.add(path, 0, what);
            }
        }
    }
}

/// Checks that each file is a module: a test in a file outside of all modules passes for ever.
/// Models in `tests` are modules of `tests/it`, which is built under loom.
pub(super) fn check_built(sources: &[Source], findings: &mut Findings) {
    for Source { path, .. } in sources {
        if path.contains("/tests/loom_") {
            let what = "models among the tests are modules of tests/it/main.rs";
            findings.add(path, 0, what);
        }
        let name = path.trim_end_matches(".rs").trim_end_matches("/mod");
        let is_module = path.contains("/src/") || path.contains("/tests/it/");
        let Some((folder, name)) = name.rsplit_once('/').filter(|_| is_module) else {
            continue;
        };
        if ["main", "lib"].contains(&name) || folder.ends_with("/bin") {
            continue;
        }
        let roots = [".rs", "/mod.rs", "/lib.rs", "/main.rs"].map(|it| format!("{folder}{it}"));
        let (declaration, attribute) = (format!("mod {name};"), format!("\"{name}.rs\""));
        let declares = |it: &Source| {
            let mut lines = it.lines.iter();
            lines.any(|line| line.code.ends_with(&declaration)) || it.text.contains(&attribute)
        };
        if !sources
            .iter()
            .any(|it| roots.contains(&it.path) && declares(it))
        {
            let what = format!("nothing builds this file: there is no `{declaration}`");
            findings.add(path, 0, what);
        }
    }
}

/// Checks that in `sched` no feature changes a function: the watching parts are behind the probe.
pub(super) fn check_features(source: &Source, findings: &mut Findings) {
    let path = source.path.strip_prefix("crates/sched/src/");
    if path.is_none_or(|path| PROBES.iter().any(|folder| path.starts_with(folder))) {
        return;
    }
    let tokens = tokens(&source.text);
    let bodies = items(&tokens, "").into_iter().filter(|item| !item.is_test);
    for at in bodies.filter_map(|item| item.body).flatten() {
        let mut attribute = tokens[at..].iter().take_while(|next| next.text != "]");
        let is_cfg = ["cfg", "cfg_attr"].contains(&tokens[at].text);
        if is_cfg && attribute.any(|next| next.text == "feature") {
            let line = 1 + source.text[..tokens[at].range.start].matches('\n').count();
            let what = "a feature inside a function: call a point of the probe";
            findings.add(&source.path, line, what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_uses_lower_layers() {
        let layers = "# A\n```text\nganger\ntop  net\nsync\n```\n";
        let found = |rest: &str| {
            let docs = "[package.metadata.docs.rs]\nall-features = true\n";
            let manifest = format!("[package]\nname = \"ganger-net\"\n{docs}{rest}");
            let mut findings = Findings::default();
            let manifest = manifest.parse().unwrap();
            check_manifest("crates/net/Cargo.toml", &manifest, layers, &mut findings);
            findings.0.len()
        };
        let below = "[dependencies]\nganger-sync = \"1\"\n[dev-dependencies]\nganger-top = \"1\"\n";
        assert_eq!(found(below), 0);
        let rest = "[target.x.dependencies]\nganger-top = \"1\"\nganger-new = \"1\"";
        assert_eq!(found(rest), 2);
    }

    #[test]
    fn a_file_that_is_no_module_is_found() {
        let files = "it/main.rs it/b.rs it/b/deep.rs it/c/mod.rs it/d.rs soak/main.rs loom_b.rs";
        let sources: Vec<_> = files
            .split(' ')
            .map(|path| {
                let text = match path {
                    "it/main.rs" => "mod b;\npub(crate) mod c;\n// mod d;\n",
                    _ => "mod deep;\n",
                };
                Source::parse(&format!("crates/a/tests/{path}"), text)
            })
            .collect();
        let mut findings = Findings::default();
        check_built(&sources, &mut findings);
        let paths: Vec<_> = findings.0.iter().map(|(path, ..)| &path[15..]).collect();
        assert_eq!(paths, ["it/d.rs", "loom_b.rs"]);
    }

    #[test]
    fn a_feature_is_for_items_and_not_for_what_is_inside_them() {
        let text = "#[cfg(feature = \"a\")]\nmod b;\n\
                    struct A {\n#[cfg(feature = \"a\")]\nb: fn(u8),\n}\n\
                    fn d() {\n#[cfg(feature = \"a\")]\ne();\nif cfg!(feature = \"a\") {}\n\
                    #[cfg(debug)]\ng();\n}\ntrait T { fn h();\n\
                    #[cfg(feature = \"a\")]\nfn i() {} }\n";
        let lines = |path: &str| {
            let mut findings = Findings::default();
            check_features(&Source::parse(path, text), &mut findings);
            findings.0.iter().map(|it| it.1).collect::<Vec<_>>()
        };
        assert_eq!(lines("crates/sched/src/turn/run.rs"), [8, 10]);
        assert!(lines("crates/sched/src/probe/active.rs").is_empty());
    }
}

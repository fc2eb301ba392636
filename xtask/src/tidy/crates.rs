//! Crates: their layers, and what each is built from.

use super::Finding;
use super::source::Source;
use toml::{Table, Value};

/// Has the layers of the published crates: the first block of text, a layer a line, the highest
/// first.
pub(super) const LAYERS: &str = "docs/ARCHITECTURE.md";

/// Crates that may use tokio.
const WITH_TOKIO: [&str; 2] = ["ganger", "tokio"];

/// In `sched`, folders that are for a feature as a whole.
const PROBES: [&str; 4] = ["accounts/", "check/", "probe/", "sim/"];

/// Checks the manifest of a package. Dependencies of tests alone are free.
pub(super) fn check_manifest(
    path: &str,
    manifest: &str,
    layers: &str,
    findings: &mut Vec<Finding>,
) {
    let mut find = |what: String| findings.push(Finding::at(path, None, what));
    let manifest: Table = match manifest.parse() {
        Ok(manifest) => manifest,
        Err(error) => return find(format!("not a manifest: {error}")),
    };
    let Some(package) = manifest.get("package") else {
        return;
    };
    if package.get("publish").and_then(Value::as_bool) == Some(false) {
        return;
    }
    let docs = package
        .get("metadata")
        .and_then(|it| it.get("docs")?.get("rs"));
    if docs.and_then(|docs| docs.get("all-features")?.as_bool()) != Some(true) {
        find("`[package.metadata.docs.rs]` needs `all-features = true`".to_owned());
    }
    if !path.starts_with("crates/") {
        return;
    }
    let own = package
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let own = own.strip_prefix("ganger-").unwrap_or(own);
    let block = layers.split("```text\n").nth(1).unwrap_or_default();
    let lines: Vec<_> = block.lines().take_while(|line| *line != "```").collect();
    let place = |name: &str| {
        lines
            .iter()
            .position(|line| line.split("  ").any(|it| it == name))
    };
    let Some(layer) = place(own) else {
        return find(format!("{own} is in no layer of {LAYERS}"));
    };
    for name in dependencies(&manifest) {
        if let Some(other) = name.strip_prefix("ganger-")
            && place(other).is_none_or(|other| other <= layer)
        {
            find(format!(
                "{own} must not depend on {other}, which is not below it in {LAYERS}"
            ));
        }
        let is_tokio = name == "tokio" || name.starts_with("tokio-");
        if is_tokio && !WITH_TOKIO.contains(&own) {
            find(format!("{own} must not depend on {name}"));
        }
    }
}

fn dependencies(manifest: &Table) -> Vec<&String> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let targets = targets.into_iter().flat_map(Table::values);
    let all = targets.filter_map(Value::as_table).chain([manifest]);
    let kinds = ["dependencies", "build-dependencies"];
    all.flat_map(|table| kinds.iter().filter_map(|kind| table.get(*kind)?.as_table()))
        .flat_map(Table::keys)
        .collect()
}

/// Checks that each file is a module: a test in a file that nothing builds passes for ever. Models
/// in `tests` are modules of `tests/it`, which is built under loom.
pub(super) fn check_built(sources: &[Source], findings: &mut Vec<Finding>) {
    for source in sources {
        let path = source.path.as_str();
        if path.contains("/tests/loom_") {
            let what = "models among the tests are modules of tests/it/main.rs";
            findings.push(Finding::at(path, None, what));
        }
        let name = path.trim_end_matches(".rs").trim_end_matches("/mod");
        let is_module = ["/src/", "/tests/it/"]
            .iter()
            .any(|part| path.contains(part));
        let Some((folder, name)) = name.rsplit_once('/') else {
            continue;
        };
        if !is_module || ["main", "lib"].contains(&name) || folder.ends_with("/bin") {
            continue;
        }
        let roots = [".rs", "/mod.rs", "/lib.rs", "/main.rs"].map(|it| format!("{folder}{it}"));
        let mut parents = sources.iter().filter(|it| roots.contains(&it.path));
        let (declaration, attribute) = (format!("mod {name};"), format!("\"{name}.rs\""));
        let declares = |it: &Source| {
            it.lines
                .iter()
                .any(|line| line.code.ends_with(&declaration))
        };
        if !parents.any(|it| declares(it) || it.text.contains(&attribute)) {
            let what = format!("nothing builds this file: there is no `{declaration}`");
            findings.push(Finding::at(path, None, what));
        }
    }
}

/// Checks that in `sched` no feature changes a function: the watching parts are behind the probe.
pub(super) fn check_features(source: &Source, findings: &mut Vec<Finding>) {
    let Some(path) = source.path.strip_prefix("crates/sched/src/") else {
        return;
    };
    if PROBES.iter().any(|folder| path.starts_with(folder)) {
        return;
    }
    // A function begins at its name, not at the type of a function pointer.
    let (mut depth, mut function, mut is_head) = (0, None, false);
    let tokens = source.tokens();
    for (at, &(line, token)) in tokens.iter().enumerate() {
        match token {
            "fn" => is_head = tokens.get(at + 1).is_some_and(|next| next.1 != "("),
            ";" if function.is_none() => is_head = false,
            "{" => {
                if std::mem::take(&mut is_head) && function.is_none() {
                    function = Some(depth);
                }
                depth += 1;
            }
            "}" => {
                depth -= 1;
                function = function.filter(|outside| *outside != depth);
            }
            "cfg" | "cfg_attr" if function.is_some() => {
                let mut rest = tokens[at..].iter().take_while(|next| next.1 != "]");
                if rest.any(|next| next.1 == "feature") {
                    let what = "a feature inside a function: call a point of the probe";
                    findings.push(Finding::new(source, line, what));
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_uses_lower_layers_and_no_tokio() {
        let layers = "# A\n```text\nganger\ntop  net\nsync\n```\n";
        let found = |rest: &str| {
            let docs = "[package.metadata.docs.rs]\nall-features = true\n";
            let manifest = format!("[package]\nname = \"ganger-net\"\n{docs}{rest}");
            let mut findings = Vec::new();
            check_manifest("crates/net/Cargo.toml", &manifest, layers, &mut findings);
            findings.into_iter().map(|it| it.what).collect::<Vec<_>>()
        };
        let below = "[dependencies]\nganger-sync = \"1\"\n[dev-dependencies]\ntokio = \"1\"\n";
        assert!(found(below).is_empty());
        let rest =
            "[target.x.dependencies]\nganger-top = \"1\"\ntokio-util = \"1\"\nganger-new = \"1\"";
        let whats = found(rest);
        assert_eq!(whats.len(), 3, "{whats:?}");
        assert_eq!(
            whats[1],
            format!("net must not depend on top, which is not below it in {LAYERS}")
        );
    }

    #[test]
    fn a_file_that_is_no_module_is_found() {
        let files = [
            (
                "crates/a/tests/it/main.rs",
                "mod b;\npub(crate) mod c;\n// mod d;\n",
            ),
            ("crates/a/tests/it/b.rs", "mod deep;\n"),
            ("crates/a/tests/it/b/deep.rs", ""),
            ("crates/a/tests/it/c/mod.rs", ""),
            ("crates/a/tests/it/d.rs", ""),
            ("crates/a/tests/soak/main.rs", ""),
            ("crates/a/tests/loom_b.rs", ""),
            ("crates/a/src/lib.rs", ""),
            ("crates/a/src/c.rs", ""),
        ];
        let sources = files.map(|(path, text)| Source::parse(path, text));
        let mut findings = Vec::new();
        check_built(&sources, &mut findings);
        let paths: Vec<_> = findings.iter().map(|it| it.path.as_str()).collect();
        let expected = [
            "crates/a/tests/it/d.rs",
            "crates/a/tests/loom_b.rs",
            "crates/a/src/c.rs",
        ];
        assert_eq!(paths, expected);
    }

    #[test]
    fn a_feature_is_for_items_and_not_for_what_is_inside_them() {
        let text = "#[cfg(feature = \"a\")]\nmod b;\n\
                    struct A {\n#[cfg(feature = \"a\")]\nb: fn(u8),\n}\n\
                    fn d() {\n#[cfg(feature = \"a\")]\ne();\nif cfg!(feature = \"a\") {}\n\
                    #[cfg(debug)]\ng();\n}\ntrait T { fn h();\n\
                    #[cfg(feature = \"a\")]\nfn i() {} }\n";
        let lines = |path: &str| {
            let mut findings = Vec::new();
            check_features(&Source::parse(path, text), &mut findings);
            findings.iter().filter_map(|it| it.line).collect::<Vec<_>>()
        };
        assert_eq!(lines("crates/sched/src/turn/run.rs"), [8, 10]);
        assert!(lines("crates/sched/src/probe/active.rs").is_empty());
    }
}

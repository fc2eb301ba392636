//! The packages that may come in: the offline rules of `deny.toml`, so that the gate finds the
//! errors of `cargo deny check bans licenses sources`. That file is the only list. Advisories need
//! the network and the tool. The engines are a workspace with a list of its own.
//!
//! The check covers the packages for all systems, with all features, as the tool does. A licence
//! matters where a package is built into a product: dependencies of tests alone are free.

use super::Finding;
use super::licence;
use crate::Failure;
use crate::cargo::Cargo;
use crate::root::root;
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use std::fs;

/// The list of each workspace, its manifest, and whether its lock file is used as it is. The step
/// `engines` checks the engines' lock file, which a change of any crate below them may outdate.
const LISTS: [(&str, &str, bool); 2] = [
    ("deny.toml", "Cargo.toml", true),
    ("engines/deny.toml", "engines/Cargo.toml", false),
];

/// The one registry.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[derive(Debug, Deserialize)]
struct Rules {
    licenses: Licences,
    bans: Bans,
}

#[derive(Debug, Deserialize)]
struct Licences {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

/// Further licences that a single package may have.
#[derive(Debug, Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Bans {
    #[serde(default)]
    deny: Vec<Ban>,
}

/// A package that none may depend on, but for the wrappers.
#[derive(Debug, Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    #[serde(default)]
    wrappers: Vec<String>,
}

/// The output of `cargo metadata`.
#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
    resolve: Resolve,
}

#[derive(Debug, Deserialize)]
struct Package {
    id: String,
    name: String,
    license: Option<String>,
    source: Option<String>,
    publish: Option<Vec<String>>,
    #[serde(default)]
    dependencies: Vec<Requirement>,
}

/// A line of a manifest.
#[derive(Debug, Deserialize)]
struct Requirement {
    name: String,
    req: String,
    kind: Option<String>,
    path: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Debug, Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<EdgeKind>,
}

#[derive(Debug, Deserialize)]
struct EdgeKind {
    kind: Option<String>,
}

/// Checks all packages that the project needs somewhere.
pub(super) fn check(findings: &mut Vec<Finding>) -> Result<(), Failure> {
    for (list, manifest, is_locked) in LISTS {
        let rules = fs::read_to_string(root().join(list))?;
        let metadata = ["metadata", "--all-features", "--manifest-path", manifest];
        let metadata = Cargo::new(metadata)
            .args(["--format-version", "1"])
            .args(is_locked.then_some("--locked"));
        let whats = against(&rules, &metadata.stdout()?)?;
        findings.extend(whats.into_iter().map(|what| Finding {
            path: list.to_owned(),
            line: None,
            what,
        }));
    }
    Ok(())
}

/// Returns the violations of the rules in the metadata.
fn against(rules: &str, metadata: &str) -> Result<Vec<String>, Failure> {
    let rules: Rules = toml::from_str(rules)?;
    let metadata: Metadata = serde_json::from_str(metadata)?;
    let mut whats = bans(&rules.bans, &metadata);
    whats.extend(wildcards(&metadata));
    whats.extend(licences(&rules.licenses, &metadata));
    whats.extend(sources(&metadata));
    whats.sort();
    whats.dedup();
    Ok(whats)
}

fn bans(bans: &Bans, metadata: &Metadata) -> Vec<String> {
    let bans: HashMap<_, _> = (bans.deny.iter())
        .map(|ban| (ban.name.as_str(), &ban.wrappers))
        .collect();
    let names = names(metadata);
    let edges = (metadata.resolve.nodes.iter())
        .flat_map(|node| node.deps.iter().map(move |edge| (&node.id, &edge.pkg)));
    edges
        .filter_map(|(user, used)| {
            let (user, used) = (names[user.as_str()], names[used.as_str()]);
            let wrappers = bans.get(used)?;
            let is_allowed = wrappers.iter().any(|name| name == user);
            (!is_allowed).then(|| format!("{user} depends on {used}: it is none of its wrappers"))
        })
        .collect()
}

/// Finds requirements of any version. An unpublished package may require any version of a path.
fn wildcards(metadata: &Metadata) -> Vec<String> {
    let all =
        (metadata.packages.iter()).flat_map(|it| it.dependencies.iter().map(move |d| (it, d)));
    let own: HashSet<_> = metadata.workspace_members.iter().collect();
    all.filter(|(package, needed)| {
        let is_private = package.publish.as_ref().is_some_and(Vec::is_empty);
        let is_test = needed.kind.as_deref() == Some("dev");
        let is_fine = needed.path.is_some() && (is_private || is_test);
        own.contains(&package.id) && needed.req == "*" && !is_fine
    })
    .map(|(package, needed)| format!("{} takes any version of {}", package.name, needed.name))
    .collect()
}

fn licences(licences: &Licences, metadata: &Metadata) -> Vec<String> {
    let built = built(metadata);
    let packages = (metadata.packages.iter()).filter(|it| built.contains(it.id.as_str()));
    packages
        .filter_map(|package| {
            let name = &package.name;
            let Some(expression) = &package.license else {
                return Some(format!("{name} names no licence"));
            };
            let extra = licences.exceptions.iter().filter(|it| it.name == *name);
            let extra = extra.flat_map(|it| &it.allow);
            let allowed: Vec<_> = licences.allow.iter().chain(extra).collect();
            let is_allowed = |id: &str| allowed.iter().any(|it| *it == id);
            match licence::holds(expression, is_allowed) {
                Ok(true) => None,
                Ok(false) => Some(format!("{name} has the licence {expression}")),
                Err(error) => Some(format!("{name} has the licence {expression}: {error}")),
            }
        })
        .collect()
}

/// Returns the members, and their dependencies, but for their tests'.
fn built(metadata: &Metadata) -> HashSet<&str> {
    let nodes: HashMap<_, _> = (metadata.resolve.nodes.iter())
        .map(|node| (node.id.as_str(), node))
        .collect();
    let mut built = HashSet::new();
    let mut rest: Vec<_> = (metadata.workspace_members.iter())
        .map(String::as_str)
        .collect();
    while let Some(id) = rest.pop() {
        if built.insert(id) {
            let edges = nodes.get(id).into_iter().flat_map(|node| &node.deps);
            let edges = edges.filter(|edge| {
                let mut kinds = edge.dep_kinds.iter();
                kinds.any(|it| it.kind.as_deref() != Some("dev"))
            });
            rest.extend(edges.map(|edge| edge.pkg.as_str()));
        }
    }
    built
}

fn sources(metadata: &Metadata) -> Vec<String> {
    let packages = metadata.packages.iter();
    packages
        .filter_map(|package| {
            let source = package.source.as_deref()?;
            (source != REGISTRY).then(|| format!("{} comes from {source}", package.name))
        })
        .collect()
}

fn names(metadata: &Metadata) -> HashMap<&str, &str> {
    let packages = metadata.packages.iter();
    packages
        .map(|it| (it.id.as_str(), it.name.as_str()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const RULES: &str = r#"
        [licenses]
        allow = ["MIT"]
        exceptions = [{ crate = "peer", allow = ["MPL-2.0"] }]
        [bans]
        deny = [{ crate = "runtime", wrappers = ["bridge"] }, { crate = "never" }]
    "#;

    fn package(name: &str, licence: &str) -> Value {
        json!({ "id": name, "name": name, "license": licence, "source": REGISTRY, "publish": null })
    }

    fn edge(name: &str, kind: Option<&str>) -> Value {
        json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] })
    }

    /// Returns metadata of the member `bridge`, which depends on `runtime`, and on `peer` in its
    /// tests.
    fn metadata() -> Value {
        let mut bridge = package("bridge", "MIT");
        bridge["source"] = Value::Null;
        bridge["dependencies"] = json!([{ "name": "runtime", "req": "^1", "kind": null }]);
        json!({
            "packages": [bridge, package("runtime", "MIT OR Apache-2.0"), package("peer", "MIT")],
            "workspace_members": ["bridge"],
            "resolve": { "nodes": [
                { "id": "bridge", "deps": [edge("runtime", None), edge("peer", Some("dev"))] },
                { "id": "runtime", "deps": [] },
                { "id": "peer", "deps": [] },
            ] },
        })
    }

    fn found(metadata: &Value) -> Vec<String> {
        against(RULES, &metadata.to_string()).unwrap()
    }

    #[test]
    fn what_the_list_allows_comes_in() {
        assert!(found(&metadata()).is_empty());
    }

    #[test]
    fn a_banned_package_has_its_wrappers_alone() {
        let mut with_another = metadata();
        with_another["resolve"]["nodes"][2]["deps"] = json!([edge("runtime", None)]);
        let what = "peer depends on runtime: it is none of its wrappers";
        assert_eq!(found(&with_another), [what]);

        let mut banned = metadata();
        let never = package("never", "MIT");
        banned["packages"].as_array_mut().unwrap().push(never);
        banned["resolve"]["nodes"][0]["deps"] = json!([edge("never", Some("dev"))]);
        let what = "bridge depends on never: it is none of its wrappers";
        assert_eq!(found(&banned), [what]);
    }

    #[test]
    fn a_licence_is_one_of_the_list_where_a_package_is_built_in() {
        let mut other = metadata();
        other["packages"][1]["license"] = json!("GPL-3.0");
        other["packages"][2]["license"] = json!("GPL-3.0");
        assert_eq!(found(&other), ["runtime has the licence GPL-3.0"]);
        other["packages"][1]["license"] = Value::Null;
        assert_eq!(found(&other), ["runtime names no licence"]);
    }

    #[test]
    fn an_exception_is_for_its_package() {
        let mut excepted = metadata();
        excepted["resolve"]["nodes"][0]["deps"] =
            json!([edge("runtime", None), edge("peer", None)]);
        for (index, whats) in [(2, 0), (1, 1)] {
            let mut metadata = excepted.clone();
            metadata["packages"][index]["license"] = json!("MPL-2.0");
            assert_eq!(found(&metadata).len(), whats);
        }
    }

    #[test]
    fn any_version_is_none() {
        let mut any = metadata();
        any["packages"][0]["dependencies"][0]["req"] = json!("*");
        assert_eq!(found(&any), ["bridge takes any version of runtime"]);
        any["packages"][0]["dependencies"][0]["path"] = json!("/runtime");
        assert_eq!(found(&any).len(), 1);
        any["packages"][0]["publish"] = json!([]);
        assert!(found(&any).is_empty());
    }

    #[test]
    fn packages_come_from_the_registry() {
        let mut git = metadata();
        git["packages"][2]["source"] = json!("git+https://example.org/peer");
        assert_eq!(
            found(&git),
            ["peer comes from git+https://example.org/peer"]
        );
    }
}

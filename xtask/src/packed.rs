//! The published packages as a user gets them: packed, unpacked elsewhere, and tested there
//! together, without the rest of the project.

use crate::Failure;
use crate::cargo::Cargo;
use crate::root::{Tree, crates, root};
use crate::totals::Totals;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Like the project's: without optimisation the tests of crowds take minutes.
const PROFILE: &str = "[profile.dev]\nopt-level = 1\ndebug = \"line-tables-only\"\n\n\
                       [profile.dev.package.\"*\"]\nopt-level = 0\ndebug = false\n";

pub(crate) fn run(totals: &mut Totals) -> Result<(), Failure> {
    let place = Tree::own().target.join("packed");
    let tree = Tree {
        root: place.join("sources"),
        target: place.join("target"),
    };
    for old in [&tree.root, &place.join("package")] {
        if old.exists() {
            fs::remove_dir_all(old)?;
        }
    }
    fs::create_dir_all(&tree.root)?;
    let packages = published()?;
    let target = place.display().to_string();
    let pack = Cargo::new("package --no-verify --allow-dirty --exclude-lockfile --target-dir");
    let pack = pack.arg(&target).args("-p").args(&packages.join(" -p "));
    pack.run()?;
    let mut unpacked = Vec::new();
    for entry in fs::read_dir(place.join("package"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "crate") {
            unpack(&path, &tree.root)?;
            unpacked.extend(path.file_stem().map(|it| it.to_string_lossy().into_owned()));
        }
    }
    unpacked.sort();
    if unpacked.len() != packages.len() {
        return Err(format!("packed {unpacked:?} of {packages:?}").into());
    }
    fs::write(tree.root.join("Cargo.toml"), workspace(&unpacked)?)?;
    // All dependencies have the versions of the project's own tests.
    fs::copy(root().join("Cargo.lock"), tree.root.join("Cargo.lock"))?;
    // Each for itself, as its user builds it: together the packages would share a set of features.
    for package in &packages {
        let test = Cargo::new(&format!("test -p {package}"));
        test.at(&tree).test(totals)?;
    }
    Ok(())
}

/// Returns the published packages, in order.
fn published() -> Result<Vec<String>, Failure> {
    let is_published = |manifest: &toml::Table| {
        let publish = manifest["package"].get("publish");
        publish.and_then(toml::Value::as_bool) != Some(false)
    };
    let mut published = crates()?;
    published.retain(|_, manifest| is_published(manifest));
    Ok(published.into_keys().collect())
}

fn unpack(package: &Path, to: &Path) -> Result<(), Failure> {
    // A package's files all have the same date: cargo sees a change only if `tar` sets the present
    // time.
    let mut tar = Command::new("tar");
    tar.arg("-xzmf").args([package, Path::new("-C"), to]);
    let status = tar.status()?;
    if !status.success() {
        return Err(format!("tar -xzmf {}: {status}", package.display()).into());
    }
    Ok(())
}

/// Returns the manifest of a workspace of unpacked packages, which takes each of them from its
/// folder instead of the registry.
fn workspace(folders: &[String]) -> Result<String, Failure> {
    let mut manifest = format!("[workspace]\nresolver = \"3\"\nmembers = {folders:?}\n\n{PROFILE}");
    manifest.push_str("\n[patch.crates-io]\n");
    for folder in folders {
        let (name, _version) = folder.rsplit_once('-').ok_or("a package has a version")?;
        writeln!(manifest, "{name} = {{ path = {folder:?} }}")?;
    }
    Ok(manifest)
}

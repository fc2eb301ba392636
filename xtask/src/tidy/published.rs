//! The settings for docs.rs of a published crate: it must document all features. By default docs.rs
//! leaves out the items of optional features.

use super::Finding;
use toml::Value;

/// Checks the manifest of a package.
pub(super) fn check(path: &str, manifest: &str, findings: &mut Vec<Finding>) {
    if let Some(what) = missing(manifest) {
        findings.push(Finding {
            path: path.to_owned(),
            line: None,
            what,
        });
    }
}

fn missing(manifest: &str) -> Option<String> {
    let manifest: toml::Table = match manifest.parse() {
        Ok(manifest) => manifest,
        Err(error) => return Some(format!("not a manifest: {error}")),
    };
    let package = manifest.get("package")?;
    if package.get("publish").and_then(Value::as_bool) == Some(false) {
        return None;
    }
    let docs = package
        .get("metadata")
        .and_then(|it| it.get("docs")?.get("rs"));
    let has_all = docs.and_then(|docs| docs.get("all-features")?.as_bool()) == Some(true);
    (!has_all).then(|| {
        "docs.rs would leave features out: `[package.metadata.docs.rs]` needs `all-features = true`"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_crate_is_documented_with_all_features() {
        let has_finding = |manifest: &str| {
            let mut findings = Vec::new();
            check("crates/x/Cargo.toml", manifest, &mut findings);
            findings.len() == 1
        };
        let published = "[package]\nname = \"x\"\n";
        assert!(has_finding(published));
        assert!(has_finding(&format!("{published}publish = true\n")));
        assert!(!has_finding(&format!("{published}publish = false\n")));
        let docs = format!("{published}[package.metadata.docs.rs]\nall-features =");
        assert!(!has_finding(&format!("{docs} true\n")));
        assert!(has_finding(&format!("{docs} false\n")));
        assert!(!has_finding("[workspace]\nmembers = []\n"));
        assert!(has_finding("[package"));
    }
}

//! A feature does not change a function: the watching parts are behind the scheduler's probe, and a
//! replacement is chosen where a module or an item is named.

use super::Finding;
use super::arrows::tokens;
use super::source::Source;

/// The crate, and its folders that are for a feature as a whole.
const CRATE: &str = "crates/sched/src/";
const PROBES: [&str; 4] = ["accounts/", "check/", "probe/", "sim/"];

/// Finds features inside functions, and files for the absence of a feature.
pub(super) fn check(source: &Source, findings: &mut Vec<Finding>) {
    let Some(path) = source.path.strip_prefix(CRATE) else {
        return;
    };
    if path.ends_with("/off.rs") || path.ends_with("_off.rs") {
        let what = "a file for a feature that is off: give the trait of the probe a default";
        findings.push(Finding::new(source, 1, what));
    }
    if PROBES.iter().any(|folder| path.starts_with(folder)) {
        return;
    }
    for line in inside_functions(source) {
        let what = "a feature inside a function: call a point of the probe, or ask its `Decider`";
        findings.push(Finding::new(source, line, what));
    }
}

/// Returns the lines inside functions that ask for a feature.
fn inside_functions(source: &Source) -> Vec<usize> {
    let mut lines = Vec::new();
    let (mut depth, mut function, mut is_head) = (0, None, false);
    let tokens = tokens(source);
    for (at, (line, token)) in tokens.iter().enumerate() {
        match &**token {
            // Not the type of a function pointer.
            "fn" => is_head = tokens.get(at + 1).is_some_and(|next| next.1 != "("),
            ";" if function.is_none() => is_head = false,
            "{" => {
                if is_head && function.is_none() {
                    function = Some(depth);
                }
                is_head = false;
                depth += 1;
            }
            "}" => {
                depth -= 1;
                if function == Some(depth) {
                    function = None;
                }
            }
            "cfg" | "cfg_attr" if function.is_some() => {
                let rest = tokens[at..].iter().take_while(|next| next.1 != "]");
                if rest.clone().any(|next| next.1 == "feature") {
                    lines.push(*line);
                }
            }
            _ => {}
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn a_feature_is_for_items_and_not_for_what_is_inside_them() {
        let text = r#"#[cfg(feature = "sim")]
mod sim;
struct A {
    #[cfg(feature = "check")]
    b: u8,
    c: fn(u8),
}
#[cfg_attr(feature = "sim", track_caller)]
fn d() {
    #[cfg(feature = "sim")]
    e();
    if cfg!(feature = "check") {}
    #[cfg(not(any(test, feature = "check")))]
    {}
    #[cfg(test)]
    g();
}
trait T {
    fn h(&self);
    #[cfg(feature = "sim")]
    fn i(&self) {}
}
"#;
        let lines = found(check, "crates/sched/src/turn/run.rs", text);
        let lines: Vec<_> = lines.iter().map(|f| f.split_once(':').unwrap().0).collect();
        assert_eq!(lines, ["10", "12", "13"]);
        for path in [
            "crates/sched/src/sim/mod.rs",
            "crates/sched/src/probe/active.rs",
            "crates/sched/tests/it/main.rs",
            "crates/deque/src/lib.rs",
        ] {
            assert!(found(check, path, text).is_empty(), "{path}");
        }
    }

    #[test]
    fn a_file_for_what_is_off_is_found() {
        for path in ["check/off.rs", "base/pins_off.rs"] {
            assert_eq!(
                found(check, &format!("{CRATE}{path}"), "").len(),
                1,
                "{path}"
            );
        }
        assert!(found(check, "crates/sched/src/base/backoff.rs", "").is_empty());
    }
}

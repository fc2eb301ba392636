//! The table in `benches/instructions.md`: the committed counts, beside the lower bounds that the
//! promises set, `xtask/least.txt`.

use super::committed::Committed;
use crate::Failure;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Where it is, in the project's folder.
pub(super) const DOCUMENT: &str = "benches/instructions.md";

const BEGIN: &str = "<!-- count:acts -->\n";
const END: &str = "<!-- /count:acts -->";

const LEAST: &str = include_str!("../../least.txt");

/// Replaces the table in the document by the table of the committed counts. Changes nothing if no
/// committed set is complete.
pub(super) fn update(path: &Path, committed: &Committed) -> Result<(), Failure> {
    if let Some(table) = table(committed) {
        let text = fs::read_to_string(path)?;
        let new = replace(&text, &table).ok_or_else(|| format!("{DOCUMENT} lacks {BEGIN}"))?;
        fs::write(path, new)?;
    }
    Ok(())
}

fn replace(text: &str, table: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{table}{END}{after}"))
}

/// Returns the lower bounds: act, name, read-modify-writes, allocations, reason.
fn least() -> impl Iterator<Item = [&'static str; 5]> {
    let lines = LEAST.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| Vec::from_iter(line.split(" | ")).try_into().ok())
}

fn table(committed: &Committed) -> Option<String> {
    let (machine, counts) = committed.shown()?;
    let mut table = format!("{machine}.\n\n");
    table += "| act | instructions | RMWs | allocations | why |\n|---|---|---|---|---|\n";
    for [act, what, rmws, allocations, why] in least() {
        let Some(cost) = counts.get(act) else {
            continue;
        };
        // The least is in brackets, where it is not 0.
        let beside = |count: f64, least: &str| match least.parse::<f64>() {
            Ok(least) if least > 0.0 => format!("{count:.2} ({least:.2})"),
            _ => format!("{count:.2}"),
        };
        let instructions = cost.instructions;
        let rmws = beside(cost.rmws?, rmws);
        let allocations = beside(cost.allocations, allocations);
        let _ = writeln!(
            table,
            "| {what} | {instructions:.1} | {rmws} | {allocations} | {why} |"
        );
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instructions::COMMITTED;
    use crate::root::root;

    #[test]
    fn the_document_shows_what_is_committed() {
        let committed = Committed::load(&root().join(COMMITTED)).unwrap();
        let text = fs::read_to_string(root().join(DOCUMENT)).unwrap();
        let table = table(&committed).unwrap();
        assert!(
            replace(&text, &table).unwrap() == text,
            "{DOCUMENT} is not up to date: `cargo xtask bench --instructions --accept` writes it"
        );
        assert_eq!(replace(BEGIN, "new"), None);
    }

    #[test]
    fn every_committed_act_has_a_least_and_takes_no_less() {
        let committed = Committed::load(&root().join(COMMITTED)).unwrap();
        let (_, counts) = committed.shown().unwrap();
        assert_eq!(counts.len(), least().count());
        for [act, _, rmws, allocations, _] in least() {
            let cost = counts
                .get(act)
                .unwrap_or_else(|| panic!("{act} is not counted"));
            // Both are rounded to a hundredth.
            let is_enough = |count: f64, least: &str| count > least.parse::<f64>().unwrap() - 0.02;
            assert!(is_enough(cost.rmws.unwrap(), rmws), "{act}");
            assert!(is_enough(cost.allocations, allocations), "{act}");
        }
    }
}

//! The table in `benches/instructions.md`: the committed counts, with the lower bounds from the
//! promises (`xtask/least.txt`).

use super::committed::{Committed, called};
use crate::Failure;
use crate::root::root;
use std::fs;

/// Where it is, in the project's folder.
const DOCUMENT: &str = "benches/instructions.md";

const BEGIN: &str = "<!-- count:acts -->\n";
const END: &str = "<!-- /count:acts -->";

const LEAST: &str = include_str!("../../least.txt");

/// Replaces the table in the document by the table of the committed counts. Changes nothing if no
/// committed set is complete.
pub(super) fn update(committed: &Committed) -> Result<(), Failure> {
    if let Some(table) = table(committed) {
        let path = root().join(DOCUMENT);
        let new = replace(&fs::read_to_string(&path)?, &table);
        fs::write(
            path,
            new.ok_or_else(|| format!("{DOCUMENT} lacks {BEGIN}"))?,
        )?;
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
    let mut table = format!("{}.\n\n", called(machine));
    table += "| act | instructions | RMWs | allocations | why |\n|---|---|---|---|---|\n";
    for [act, what, rmws, allocations, why] in least() {
        let Some(cost) = counts.get(act) else {
            continue;
        };
        // The least is in brackets, where it is not 0.
        let beside = |column: &str, least: &str| match least.parse::<f64>() {
            Ok(least) if least > 0.0 => format!("{:.2} ({least:.2})", cost[column]),
            _ => format!("{:.2}", cost[column]),
        };
        let (rmws, allocations) = (beside("rmws", rmws), beside("allocations", allocations));
        let instructions = cost["instructions"];
        table += &format!("| {what} | {instructions:.1} | {rmws} | {allocations} | {why} |\n");
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_shows_what_is_committed() {
        let committed = Committed::load().unwrap();
        let text = fs::read_to_string(root().join(DOCUMENT)).unwrap();
        let table = table(&committed).unwrap();
        let is_new = replace(&text, &table).unwrap() == text;
        assert!(
            is_new,
            "`cargo xtask bench --instructions --accept` writes {DOCUMENT}"
        );
        let (_, counts) = committed.shown().unwrap();
        assert_eq!(counts.len(), least().count());
        for [act, _, rmws, allocations, _] in least() {
            for (column, least) in [("rmws", rmws), ("allocations", allocations)] {
                // Both are rounded to a hundredth.
                let is_enough = counts[act][column] > least.parse::<f64>().unwrap() - 0.02;
                assert!(is_enough, "{act} takes less than the least");
            }
        }
    }
}

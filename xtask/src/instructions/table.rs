//! The table in `benches/instructions.md`: the committed counts, compared with the lower bounds
//! that the promises set.

use super::committed::Committed;
use super::cost::{Cost, Kind};
use super::least::{LEAST, Least};
use crate::Failure;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Where it is, in the project's folder.
pub(super) const DOCUMENT: &str = "benches/instructions.md";

const BEGIN: &str = "<!-- count:acts -->\n";
const END: &str = "<!-- /count:acts -->";

/// Replaces the table in the document by the table of the committed counts. Changes nothing if no
/// committed set is complete.
pub(super) fn update(path: &Path, committed: &Committed) -> Result<(), Failure> {
    let shown = path.display();
    let text = fs::read_to_string(path).map_err(|e| format!("can't read {shown}: {e}"))?;
    let Some(table) = table(committed) else {
        return Ok(());
    };
    let new = replace(&text, &table).ok_or_else(|| {
        let begin = BEGIN.trim();
        format!("{shown} lacks a line `{begin}`, or `{END}` after it")
    })?;
    fs::write(path, new).map_err(|e| format!("can't write {shown}: {e}").into())
}

fn replace(text: &str, table: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{table}{END}{after}"))
}

fn table(committed: &Committed) -> Option<String> {
    let (machine, counts) = committed.shown()?;
    let mut table = format!("{machine}.\n\n");
    table += "| act | instructions | RMWs | allocations | why |\n|---|---|---|---|---|\n";
    for least in &LEAST {
        if let Some(cost) = counts.get(least.act) {
            row(&mut table, least, cost);
        }
    }
    Some(table)
}

fn row(table: &mut String, least: &Least, cost: &Cost) {
    let shown = |kind: Kind| {
        let count = cost.get(&kind).map(|&count| kind.show(count));
        count.unwrap_or_else(|| "–".to_owned())
    };
    // The least is in brackets, where it is not 0.
    let beside = |kind: Kind, least: f64| match least > 0.0 {
        true => format!("{} ({})", shown(kind), kind.show(least)),
        false => shown(kind),
    };
    let instructions = shown(Kind::Instructions);
    let rmws = beside(Kind::Rmws, least.rmws);
    let allocations = beside(Kind::Allocations, least.allocations);
    let Least { what, why, .. } = least;
    let _ = writeln!(
        table,
        "| {what} | {instructions} | {rmws} | {allocations} | {why} |"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instructions::COMMITTED;
    use crate::root::root;

    #[test]
    fn the_table_is_replaced_and_nothing_else() {
        let text = format!("one\n{BEGIN}old\n{END}\ntwo\n");
        let replaced = replace(&text, "| new |\n").unwrap();
        assert_eq!(replaced, format!("one\n{BEGIN}| new |\n{END}\ntwo\n"));
        assert_eq!(replace(END, "new"), None);
        assert_eq!(replace(BEGIN, "new"), None);
    }

    #[test]
    fn the_document_shows_what_is_committed() {
        let committed = Committed::load(&root().join(COMMITTED)).unwrap();
        let text = fs::read_to_string(root().join(DOCUMENT)).unwrap();
        let table = table(&committed).unwrap();
        assert!(
            replace(&text, &table).unwrap() == text,
            "{DOCUMENT} is not up to date: `cargo xtask bench --instructions --accept` writes it"
        );
    }

    #[test]
    fn every_committed_act_has_a_least_and_takes_no_less() {
        let committed = Committed::load(&root().join(COMMITTED)).unwrap();
        let (_, counts) = committed.shown().unwrap();
        assert_eq!(counts.len(), LEAST.len());
        for (act, cost) in counts {
            let least = LEAST.iter().find(|least| least.act == act);
            let least = least.unwrap_or_else(|| panic!("{act} has no least"));
            // The counts are rounded to a hundredth.
            assert!(cost[&Kind::Rmws] > least.rmws - 0.01, "{act}");
            assert!(cost[&Kind::Allocations] > least.allocations - 0.01, "{act}");
        }
    }
}

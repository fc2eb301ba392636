//! `docs/METRICS.md`: the list of metrics, from the table that the exporters read.

#[path = "../../../crates/observe/src/metrics/table.rs"]
mod table;

use crate::Failure;
use crate::root::root;
use std::fmt::Write as _;
use std::fs;
use table::{ALL, Kind, Metric, Of};

/// The document.
pub(crate) const DOCUMENT: &str = "docs/METRICS.md";

/// The document before its rows.
const HEAD: &str = include_str!("head.md");

/// Writes the document.
pub(crate) fn run() -> Result<(), Failure> {
    fs::write(root().join(DOCUMENT), document())?;
    println!("{DOCUMENT} is written");
    Ok(())
}

/// Returns the document, as it should be: a table for each kind of schedulers.
pub(crate) fn document() -> String {
    let mut text = HEAD.to_owned();
    for (of, heading) in SECTIONS {
        let _ = writeln!(
            text,
            "\n## {heading}\n\n|metric|kind|meaning|\n|---|---|---|"
        );
        for metric in ALL.iter().filter(|it| it.of == of) {
            add(&mut text, metric);
        }
    }
    text
}

/// The tables, in the order of the document.
const SECTIONS: [(Of, &str); 7] = [
    (Of::All, "Each scheduler"),
    (Of::Limited, "With `Builder::max_processes`"),
    (Of::Counts, "From `Observe::Counts` on"),
    (Of::Histograms, "With `Observe::Histograms`"),
    (Of::Alarms, "With `observe::Alarms`"),
    (Of::Nodes, "Nodes of a cluster"),
    (Of::Stores, "Nodes with a store"),
];

fn add(text: &mut String, metric: &Metric) {
    let kind = match metric.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
    };
    // Other units name only the counted items, as the meaning does.
    let unit = if metric.unit == "s" { ", s" } else { "" };
    let labels = match metric.labels {
        [] => String::new(),
        labels => format!("{{{}}}", labels.join(",")),
    };
    // A string takes all.
    let _ = writeln!(
        text,
        "|`{}{labels}`|{kind}{unit}|{}|",
        metric.name, metric.help
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_in_the_form_of_opentelemetry() {
        let names: BTreeSet<_> = ALL.iter().map(|it| it.name).collect();
        assert_eq!(names.len(), ALL.len());
        for metric in ALL {
            let mut parts = metric.name.split('.');
            let is_word = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_lowercase());
            let is_name = parts.next() == Some("ganger") && parts.all(is_word);
            let is_counted = metric.unit.starts_with('{') && metric.unit.ends_with('}');
            let is_unit = ["s", "By"].contains(&metric.unit) || is_counted;
            let is_plain = !metric.labels.contains(&"pid") && metric.help.ends_with('.');
            let is_shown = SECTIONS.iter().any(|it| it.0 == metric.of);
            assert!(is_name && is_unit && is_plain && is_shown, "{metric:?}");
        }
        assert!(document().contains("|`ganger.step.duration{type}`|histogram, s|"));
    }
}

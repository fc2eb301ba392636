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

/// The document, as it should be.
pub(crate) fn document() -> String {
    let mut text = HEAD.to_owned();
    for metric in ALL {
        add(&mut text, metric);
    }
    text
}

fn add(text: &mut String, metric: &Metric) {
    let Metric {
        name, unit, help, ..
    } = metric;
    let kind = match metric.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
    };
    let of = match metric.of {
        Of::All => "all",
        Of::Limited => "limit",
        Of::Counts => "`Counts`",
        Of::Histograms => "`Histograms`",
        Of::Alarms => "alarms",
        Of::Nodes => "cluster",
        Of::Stores => "store",
    };
    let labels: Vec<_> = metric.labels.iter().map(|it| format!("`{it}`")).collect();
    let labels = labels.join(", ");
    let line = format!("| `{name}` | {kind} | `{unit}` | {labels} | {of} | {help} |");
    // A string takes all.
    let _ = writeln!(text, "{}", line.replace("|  |", "| |"));
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
            assert_eq!(parts.next(), Some("ganger"), "{metric:?}");
            let is_word = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_lowercase());
            assert!(parts.all(is_word), "{metric:?}");
            let is_things = metric.unit.starts_with('{') && metric.unit.ends_with('}');
            assert!(
                ["s", "By"].contains(&metric.unit) || is_things,
                "{metric:?}"
            );
            assert!(!metric.labels.contains(&"pid"), "{metric:?}");
            assert!(metric.help.ends_with('.'), "{metric:?}");
        }
        assert!(document().contains("| `ganger.step.duration` | histogram | `s` | `type` |"));
    }
}

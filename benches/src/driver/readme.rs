//! The generated text between markers in files that people write.
//!
//! The text between `<!-- bench:table -->` and `<!-- /bench:table -->` is replaced; the markers
//! stay.

use super::charts::{charts, write_charts};
use super::lines::Results;
use super::outputs::{root, try_write, write};
use super::report::View;
use crate::whole::catalog::{Id, Peer};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// The files, and the parts that each must have.
const DOCUMENTS: [(&str, &[&str]); 3] = [
    ("README.md", &["summary", "overview"]),
    (
        "docs/PERFORMANCE.md",
        &["platform", "summary", "charts", "table"],
    ),
    ("docs/LIMITS.md", &["queues", "absent"]),
];

/// The folder of the charts, next to PERFORMANCE.md.
const CHARTS: &str = "charts";

/// Checks that the documents can be written and have their markers.
///
/// # Errors
/// The file that can't be read, or lacks a part.
pub(super) fn check() -> Result<(), String> {
    DOCUMENTS.iter().try_for_each(|(name, parts)| {
        with(root(), name, parts, |_| String::new())?;
        try_write(&root().join(name))
    })
}

/// Replaces the text between the markers of every document, and draws the charts.
///
/// # Errors
/// A file that can't be read or written, or lacks markers; or an incomplete result.
pub(super) fn update(root: &Path, results: &Results) -> Result<(), String> {
    let machine = &results.machine;
    let lacks = if machine.quick {
        Some("is of --quick".to_owned())
    } else if machine.interrupted {
        Some("was interrupted".to_owned())
    } else if results.has_failed(Peer::Ganger) {
        Some("has workloads in which Ganger failed".to_owned())
    } else {
        let lack = |(id, peer)| format!("has nothing of {peer} in {id}, not even a reason");
        missing(results).map(lack)
    };
    if let Some(what) = lacks {
        return Err(format!(
            "README.md, PERFORMANCE.md and LIMITS.md stay as they are: this result {what}. They \
             need all workloads and peers in full, as `cargo xtask bench --readme` measures them"
        ));
    }
    let view = View::of(results);
    let mut changed = Vec::new();
    for (name, parts) in DOCUMENTS {
        let text = with(root, name, parts, |part| content(&view, part))?;
        changed.push((root.join(name), text));
    }
    // All are read before the first is written.
    write_charts(&view, &root.join("docs").join(CHARTS))?;
    for (path, text) in changed {
        write(&path, text)?;
    }
    Ok(())
}

/// Returns a workload and a peer that have neither a figure nor a reason for its absence.
fn missing(results: &Results) -> Option<(Id, Peer)> {
    let all = Id::ALL.iter().flat_map(|&id| {
        let peers = id.spec().peers.iter();
        peers.map(move |&peer| (id, peer))
    });
    let figures = results.figures.iter().map(|f| (f.workload, f.peer));
    let absences = results.absences.iter().map(|a| (a.workload, a.peer));
    let there: std::collections::HashSet<_> = figures.chain(absences).collect();
    all.into_iter().find(|pair| !there.contains(pair))
}

/// Returns the text for the markers of a part; it ends with a line.
fn content(view: &View<'_>, part: &str) -> String {
    match part {
        "platform" => view.platform() + "\n",
        "summary" => view.standing(),
        "overview" => pictures(view, "docs/", 1),
        "charts" => pictures(view, "", usize::MAX),
        "table" => view.table(false, |row| !row.id.is_queue()),
        "queues" => view.leads(|row| row.id.is_queue() && row.metric().is_some()),
        "absent" => match view.absent() {
            text if text.is_empty() => "Nothing: every peer ran everything.\n".to_owned(),
            text => text,
        },
        other => unreachable!("no document has a part `{other}`"),
    }
}

/// Returns links to the first charts, a paragraph each. `way` leads from the document to the folder
/// of PERFORMANCE.md.
fn pictures(view: &View<'_>, way: &str, most: usize) -> String {
    let mut text = String::new();
    for (title, name) in charts(view).into_iter().take(most) {
        let gap = if text.is_empty() { "" } else { "\n" };
        let _ = writeln!(text, "{gap}![{title}]({way}{CHARTS}/{name}.svg)");
    }
    text
}

/// Returns a document's text with other contents between the markers.
fn with(
    root: &Path,
    name: &str,
    parts: &[&str],
    content: impl Fn(&str) -> String,
) -> Result<String, String> {
    let text = fs::read_to_string(root.join(name)).map_err(|error| error.to_string());
    let replaced = text.and_then(|text| {
        let mut parts = parts.iter();
        parts.try_fold(text, |text, part| replace(&text, part, &content(part)))
    });
    replaced.map_err(|why| format!("{name}: {why}"))
}

/// Returns the text with other content between the markers of a part, which occur once.
fn replace(text: &str, part: &str, content: &str) -> Result<String, String> {
    let (open, close) = (
        format!("<!-- bench:{part} -->"),
        format!("<!-- /bench:{part} -->"),
    );
    let lacks = || format!("it needs `{open}` and, below it, `{close}`, once each");
    let (before, rest) = text.split_once(&open).ok_or_else(lacks)?;
    let (_, after) = rest.split_once(&close).ok_or_else(lacks)?;
    if before.contains(&close) || after.contains(&open) || after.contains(&close) {
        return Err(lacks());
    }
    Ok(format!("{before}{open}\n{content}{close}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::fixture;

    #[test]
    fn only_what_is_between_the_markers_is_replaced() {
        let text = "# Title\n<!-- bench:table -->\nold\nold\n<!-- /bench:table -->\nend\n";
        let expected = "# Title\n<!-- bench:table -->\n| new |\n<!-- /bench:table -->\nend\n";
        assert_eq!(replace(text, "table", "| new |\n").unwrap(), expected);
        for text in [
            "nothing",
            "<!-- bench:table --> open",
            "<!-- /bench:table --> <!-- bench:table -->",
            "<!-- bench:table --><!-- /bench:table --><!-- bench:table --><!-- /bench:table -->",
        ] {
            let error = replace(text, "table", "x").unwrap_err();
            assert!(error.contains("<!-- /bench:table -->"), "{text}: {error}");
        }
    }

    #[test]
    fn the_documents_get_all_that_was_measured_if_it_is_everything() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("docs")).unwrap();
        for (name, _) in DOCUMENTS {
            fs::copy(root().join(name), folder.path().join(name)).unwrap();
        }
        let mut results = fixture::results();
        let all = || {
            let read = |(name, _)| fs::read_to_string(folder.path().join(name)).unwrap();
            DOCUMENTS.map(read)
        };
        let before = all();
        let error = update(folder.path(), &results).unwrap_err();
        assert!(error.contains("was interrupted"), "{error}");
        results.machine.interrupted = false;
        let error = update(folder.path(), &results).unwrap_err();
        assert!(error.contains("has nothing of go in W2"), "{error}");
        assert_eq!(all(), before);
        let of_go = |id: &&Id| id.spec().peers.contains(&Peer::Go);
        for &workload in Id::ALL.iter().filter(of_go) {
            let mut absence = results.absences[0].clone();
            absence.workload = workload;
            results.absences.push(absence);
        }
        update(folder.path(), &results).unwrap();
        let [readme, performance, limits] = all();
        let view = View::of(&results);
        for text in [&readme, &performance] {
            assert!(text.contains(&view.standing()));
        }
        assert!(performance.contains(&view.platform()));
        assert!(performance.contains("|W1 start a process from outside, ns|"));
        assert!(limits.contains("|push+pop, depth 8, ns|11.0|0.67× crossbeam-deque|"));
        assert!(limits.contains("|go|not installed|"));
        assert!(readme.contains("](docs/charts/overview.svg)") && !readme.contains("push+pop"));
        for (_, name) in charts(&view) {
            assert!(
                performance.contains(&format!("](charts/{name}.svg)")),
                "{name}"
            );
            assert!(
                folder
                    .path()
                    .join(format!("docs/charts/{name}.svg"))
                    .is_file(),
                "{name}"
            );
        }
        update(folder.path(), &results).unwrap();
        assert_eq!(all(), [readme, performance, limits], "again: the same");
    }
}

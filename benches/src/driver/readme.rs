//! The generated text between markers in files that people write.
//!
//! The text between `<!-- bench:table -->` and `<!-- /bench:table -->` is replaced; the markers
//! stay.

use super::charts::{charts, write_charts};
use super::lines::Results;
use super::outputs::{root, try_write, write};
use super::report::{absent, leads, platform, standing, table, without};
use super::view::View;
use crate::whole::catalog::{Id, Peer};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// A file, and the parts that it must have.
struct Document {
    path: PathBuf,
    /// As people call it.
    name: &'static str,
    parts: &'static [&'static str],
}

/// The folder of the charts, next to PERFORMANCE.md.
const CHARTS: &str = "charts";

fn documents(root: &Path) -> [Document; 3] {
    let at = |name: &'static str, parts| Document {
        path: root.join(name),
        name,
        parts,
    };
    [
        at("README.md", &["summary", "overview"]),
        at(
            "docs/PERFORMANCE.md",
            &["platform", "summary", "charts", "table"],
        ),
        at("docs/LIMITS.md", &["queues", "absent"]),
    ]
}

/// Whether the documents can be written and have their markers.
///
/// # Errors
/// The file that can't be read, or lacks a part.
pub(super) fn check() -> Result<(), String> {
    check_in(root())
}

fn check_in(root: &Path) -> Result<(), String> {
    for document in documents(root) {
        document.with(|_| String::new())?;
        try_write(&document.path)?;
    }
    Ok(())
}

/// Replaces the text between the markers of every document, and draws the charts.
///
/// # Errors
/// A file that can't be read or written, or lacks markers; or an incomplete result.
pub(super) fn update(results: &Results) -> Result<(), String> {
    update_in(root(), results)
}

fn update_in(root: &Path, results: &Results) -> Result<(), String> {
    let machine = &results.machine;
    let partly = |what: &str| {
        Err(format!(
            "README.md, PERFORMANCE.md and LIMITS.md stay as they are: this result {what}. They \
             need all workloads and peers in full, as `cargo xtask bench --readme` measures them"
        ))
    };
    if machine.quick {
        return partly("is of --quick");
    }
    if machine.interrupted {
        return partly("was interrupted");
    }
    if results.has_failed(Peer::Ganger) {
        return partly("has workloads in which Ganger failed");
    }
    if let Some((id, peer)) = missing(results) {
        return partly(&format!("has nothing of {peer} in {id}, not even a reason"));
    }
    let view = View::of(results);
    let mut changed = Vec::new();
    for document in documents(root) {
        let text = document.with(|part| content(&view, part))?;
        changed.push((document.path, text));
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
        "platform" => format!("{}\n", platform(view)),
        "summary" => format!("{}\n{}", standing(view), without(view)),
        "overview" => pictures(view, "docs/", 1),
        "charts" => pictures(view, "", usize::MAX),
        "table" => table(view, false, |row| !row.id.is_queue()),
        "queues" => leads(view, |row| row.id.is_queue() && row.metric().is_some()),
        "absent" => match absent(view) {
            text if text.is_empty() => "Nothing: every peer ran everything.\n".to_owned(),
            text => text,
        },
        other => unreachable!("no document has a part `{other}`"),
    }
}

/// The first charts, a paragraph each, from a document whose way to PERFORMANCE.md's folder this
/// is.
fn pictures(view: &View<'_>, way: &str, most: usize) -> String {
    let mut text = String::new();
    for (title, name) in charts(view).into_iter().take(most) {
        let gap = if text.is_empty() { "" } else { "\n" };
        let _ = writeln!(text, "{gap}![{title}]({way}{CHARTS}/{name}.svg)");
    }
    text
}

impl Document {
    /// Its text with other contents between the markers.
    fn with(&self, content: impl Fn(&str) -> String) -> Result<String, String> {
        let failed = |why: &str| format!("{}: {why}", self.name);
        let text = fs::read_to_string(&self.path).map_err(|error| failed(&error.to_string()))?;
        self.parts.iter().try_fold(text, |text, part| {
            replace(&text, part, &content(part)).map_err(|why| failed(&why))
        })
    }
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
        let new = replace(text, "table", "| new |\n").unwrap();
        let expected = "# Title\n<!-- bench:table -->\n| new |\n<!-- /bench:table -->\nend\n";
        assert_eq!(new, expected);
        assert_eq!(
            replace(&new, "table", "| new |\n").unwrap(),
            expected,
            "again: the same"
        );
    }

    #[test]
    fn without_its_markers_a_text_is_refused() {
        for text in [
            "nothing",
            "<!-- bench:table --> open",
            "<!-- /bench:table --> <!-- bench:table -->",
            "<!-- bench:table --><!-- /bench:table --><!-- bench:table --><!-- /bench:table -->",
            "<!-- bench:other --><!-- /bench:other -->",
        ] {
            let error = replace(text, "table", "x").unwrap_err();
            assert!(error.contains("<!-- /bench:table -->"), "{text}: {error}");
        }
    }

    /// The documents as they are, in a folder of their own.
    fn copy() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("docs")).unwrap();
        for document in documents(root()) {
            fs::copy(&document.path, folder.path().join(document.name)).unwrap();
        }
        folder
    }

    fn complete() -> Results {
        let mut results = fixture::results();
        results.machine.interrupted = false;
        for id in Id::ALL
            .iter()
            .filter(|id| id.spec().peers.contains(&Peer::Go))
        {
            let mut absence = results.absences[0].clone();
            absence.workload = *id;
            results.absences.push(absence);
        }
        results
    }

    #[test]
    fn the_documents_get_all_that_was_measured() {
        let (folder, results) = (copy(), complete());
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        let all = || ["README.md", "docs/PERFORMANCE.md", "docs/LIMITS.md"].map(read);
        update_in(folder.path(), &results).unwrap();
        let [readme, performance, limits] = all();
        let view = View::of(&results);
        for text in [&readme, &performance] {
            assert!(text.contains(&standing(&view)));
            assert!(text.contains("Without go (not installed).\n"));
        }
        assert!(performance.contains(&platform(&view)));
        assert!(performance.contains("|W1 spawn_external, ns|"));
        assert!(limits.contains("|push+pop, depth 8, ns|11.0|0.67× crossbeam-deque|"));
        assert!(limits.contains("|go|not installed|"));
        assert!(readme.contains("](docs/charts/overview.svg)") && !readme.contains("push+pop"));
        for (_, name) in charts(&view) {
            assert!(
                performance.contains(&format!("](charts/{name}.svg)")),
                "{name}"
            );
            let chart = folder.path().join(format!("docs/charts/{name}.svg"));
            assert!(chart.is_file(), "{name}");
        }
        update_in(folder.path(), &results).unwrap();
        assert_eq!(all(), [readme, performance, limits], "again: the same");
    }

    #[test]
    fn what_is_not_everything_in_full_is_refused_and_changes_nothing() {
        let folder = copy();
        let refused = |change: fn(&mut Results), why: &str| {
            let mut results = complete();
            change(&mut results);
            let error = update_in(folder.path(), &results).unwrap_err();
            assert!(error.contains(why), "{error}");
        };
        refused(|results| results.machine.quick = true, "is of --quick");
        refused(
            |results| results.machine.interrupted = true,
            "was interrupted",
        );
        refused(
            |results| results.figures.retain(|f| f.workload != Id::W9),
            "nothing of ganger in W9",
        );
        refused(
            |results| results.figures.retain(|f| f.peer != Peer::Kanal),
            "nothing of kanal in mailbox",
        );
        for document in documents(root()) {
            let now = fs::read_to_string(folder.path().join(document.name)).unwrap();
            assert_eq!(now, fs::read_to_string(&document.path).unwrap());
        }
        assert!(!folder.path().join("docs").join(CHARTS).exists());
    }
}

//! The generated text between markers in files that people write.
//!
//! The text between `<!-- bench:table -->` and `<!-- /bench:table -->` is replaced; the markers
//! stay.

use super::lines::Results;
use super::outputs::{root, try_write, write};
use super::report::{Row, View, absent, charts, leads, platform, standing, table, write_charts};
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
pub fn check() -> Result<(), String> {
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
pub fn update(results: &Results) -> Result<(), String> {
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
        write(&path, |out| out.write_all(text.as_bytes()))?;
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
        "table" => table(view, |row| !row.id.is_queue()),
        "queues" => leads(view, |row| row.id.is_queue() && row.metric().is_some()),
        "absent" => match absent(view) {
            text if text.is_empty() => "Nothing: every peer ran everything.\n".to_owned(),
            text => text,
        },
        other => unreachable!("no document has a part `{other}`"),
    }
}

/// The peers without a column in any table, because they did not run.
fn without(view: &View<'_>) -> String {
    let has_column = |peer| {
        view.rows
            .iter()
            .flat_map(Row::figures)
            .any(|f| f.peer == peer)
    };
    let reasons = view.reasons().into_iter();
    let mut out: Vec<_> = reasons
        .filter(|&(peer, ..)| !has_column(peer))
        .map(|(peer, reason, ..)| format!("{peer} ({})", reason.text()))
        .collect();
    out.dedup();
    match out.is_empty() {
        true => String::new(),
        false => format!("Without {}.\n", out.join(", ")),
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

    #[test]
    fn the_documents_have_their_markers() {
        for document in documents(root()) {
            assert!(
                document.with(|_| String::new()).is_ok(),
                "{}",
                document.name
            );
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

    /// The text outside of the markers, with the opening markers, and the text between them.
    fn by_people_and_generated(text: &str) -> (Vec<&str>, Vec<&str>) {
        let mut is_generated = false;
        text.lines().partition(|line| {
            let begins = line.starts_with("<!-- bench:");
            let was_generated = is_generated;
            is_generated = begins || is_generated && !line.starts_with("<!-- /bench:");
            !was_generated
        })
    }

    #[test]
    fn the_documents_get_all_that_was_measured() {
        let (folder, results) = (copy(), complete());
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        update_in(folder.path(), &results).unwrap();
        let [readme, performance, limits] =
            ["README.md", "docs/PERFORMANCE.md", "docs/LIMITS.md"].map(read);
        let view = View::of(&results);
        let ours = root().join("README.md");
        let before = fs::read_to_string(ours).unwrap();
        let (by_people, generated) = by_people_and_generated(&readme);
        assert_eq!(by_people, by_people_and_generated(&before).0);
        assert!(performance.contains("| W1 spawn_external, ns |"));
        for text in [&readme, &performance] {
            assert!(text.contains(&standing(&view)));
            assert!(text.contains("Without go (not installed).\n"));
        }
        assert!(performance.contains(&platform(&view)));
        assert!(limits.contains("| push+pop, depth 8, ns |"));
        assert!(!limits.contains("(drain)"), "no peer has the figure");
        assert!(!limits.contains(fixture::OTHER.0), "it does not count");
        assert!(limits.contains("| go | not installed |"));
        assert!(!readme.contains("W1 spawn_external") && !readme.contains("push+pop"));
        let pictures = |lines: &[&str], folder: &Path| -> usize {
            let text = lines.join("\n");
            let links = text
                .split("](")
                .skip(1)
                .filter_map(|rest| rest.split(')').next());
            let links = links.filter(|link| link.ends_with(".svg"));
            links
                .inspect(|link| assert!(folder.join(link).is_file(), "{link}"))
                .count()
        };
        assert_eq!(pictures(&generated, folder.path()), 1);
        let (_, generated) = by_people_and_generated(&performance);
        let charts = 1 + view.curves.len();
        assert_eq!(pictures(&generated, &folder.path().join("docs")), charts);
        // The pictures of other runs are there as well.
        pictures(&by_people_and_generated(&limits).0, &root().join("docs"));
        // Again: the same.
        update_in(folder.path(), &results).unwrap();
        assert_eq!(readme, read("README.md"));
        assert_eq!(performance, read("docs/PERFORMANCE.md"));
        assert_eq!(limits, read("docs/LIMITS.md"));
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

    #[test]
    fn a_document_that_lacks_a_marker_is_named() {
        for document in documents(root()) {
            for part in document.parts {
                let folder = copy();
                assert_eq!(check_in(folder.path()), Ok(()));
                let path = folder.path().join(document.name);
                let text = fs::read_to_string(&path).unwrap();
                fs::write(&path, text.replace(&format!("/bench:{part} "), "")).unwrap();
                let error = check_in(folder.path()).unwrap_err();
                assert!(error.starts_with(document.name), "{error}");
                assert!(error.contains(&format!("<!-- bench:{part} -->")), "{error}");
            }
        }
    }
}

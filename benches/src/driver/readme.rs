//! Tables that are generated, between markers in files that people write.
//!
//! What is between `<!-- bench:table -->` and `<!-- /bench:table -->` is replaced; the markers stay.

use super::outputs::{root, try_write, write};
use super::report::{View, platform, table, write_charts};
use crate::whole::catalog::Id;
use std::fs;
use std::path::{Path, PathBuf};

/// What can be between markers.
const PARTS: [&str; 3] = ["table", "queues", "platform"];

/// A file, and which parts it must have.
struct Document {
    path: PathBuf,
    parts: &'static [&'static str],
}

fn documents() -> [Document; 2] {
    let at = |path: &str, parts| Document {
        path: root().join(path),
        parts,
    };
    [
        at("README.md", &["table"]),
        at("docs/PERFORMANCE.md", &["table", "queues", "platform"]),
    ]
}

/// Where the charts go that the documents show.
fn charts() -> PathBuf {
    root().join("docs").join("charts")
}

/// Whether the documents can be written and have their markers.
///
/// # Errors
/// Which can't, or lacks which.
pub fn check() -> Result<(), String> {
    for document in documents() {
        let text = document.read()?;
        for part in document.parts {
            replace(&text, part, "").map_err(|error| document.failed(&error))?;
        }
        try_write(&document.path)?;
    }
    Ok(())
}

/// Replaces what is between the markers of every document, and draws the charts.
///
/// # Errors
/// What can't be read or written, or has no markers; and a result that has nothing for a table.
pub fn update(view: &View<'_>) -> Result<(), String> {
    if view.machine.quick || view.machine.interrupted {
        return Err(
            "figures for a README have to be of the full size, and of all of it: this \
                    result is of --quick, or was interrupted"
                .to_owned(),
        );
    }
    let mut changed = Vec::new();
    for document in documents() {
        let mut text = document.read()?;
        for part in document.parts {
            let content = content(view, part);
            if content.is_empty() {
                return Err(format!("this result has nothing for `bench:{part}`"));
            }
            text = replace(&text, part, &content).map_err(|error| document.failed(&error))?;
        }
        changed.push((document.path, text));
    }
    // All are read before the first is written.
    for (path, text) in changed {
        write(&path, |out| out.write_all(text.as_bytes()))?;
    }
    write_charts(view, &charts())
}

/// What goes between the markers of a part.
fn content(view: &View<'_>, part: &str) -> String {
    debug_assert!(PARTS.contains(&part), "{part}");
    match part {
        "table" => table(view, |id| !id.is_queue()),
        "queues" => table(view, Id::is_queue),
        _ => format!("{}\n", platform(view)),
    }
}

impl Document {
    fn read(&self) -> Result<String, String> {
        fs::read_to_string(&self.path).map_err(|error| self.failed(&error.to_string()))
    }

    fn failed(&self, why: &str) -> String {
        let shown: &Path = self.path.strip_prefix(root()).unwrap_or(&self.path);
        format!("{}: {why}", shown.display())
    }
}

/// The text with other content between the markers of a part, of which there is one pair.
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
        assert_eq!(check(), Ok(()));
    }

    #[test]
    fn every_part_of_a_full_result_has_content() {
        let results = fixture::results();
        let view = View::of(&results);
        for part in PARTS {
            assert!(content(&view, part).ends_with('\n'), "{part}");
        }
        assert!(content(&view, "table").contains("W1 spawn_external"));
        assert!(!content(&view, "table").contains("push+pop"));
        assert!(content(&view, "queues").contains("push+pop"));
    }

    #[test]
    fn an_interrupted_result_is_no_source() {
        let results = fixture::results();
        assert!(results.machine.interrupted);
        assert!(
            update(&View::of(&results))
                .unwrap_err()
                .contains("interrupted")
        );
    }
}

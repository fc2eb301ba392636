//! Copies of the workspace in which mutants are built.
//!
//! Each copy has target folders of its own, which are kept for the next run. Cargo builds files
//! anew that are newer than its last build. So a file is written only when its text changes, and
//! then gets a new time, even if it gets its old text back.

use super::list::Changes;
use crate::Failure;
use crate::root::{Tree, files, root, walk};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A copy, used by a single thread at a time.
pub(crate) struct Copy {
    pub(crate) tree: Tree,
    /// The original texts of the files that the present mutant has changed.
    originals: BTreeMap<String, String>,
}

impl Copy {
    /// The copy in `folder`, brought up to date with the workspace.
    pub(crate) fn new(folder: &Path) -> Result<Self, Failure> {
        Self::of(root(), &files()?, folder)
    }

    fn of(source: &Path, files: &[PathBuf], folder: &Path) -> Result<Self, Failure> {
        let tree = Tree {
            root: folder.join("tree"),
            target: folder.join("target"),
        };
        fs::create_dir_all(&tree.root)?;
        for path in walk(&tree.root)? {
            if !files.contains(&path) {
                fs::remove_file(tree.root.join(path))?;
            }
        }
        for path in files {
            write(&tree.root.join(path), &fs::read(source.join(path))?)?;
        }
        Ok(Self {
            tree,
            originals: BTreeMap::new(),
        })
    }

    /// Makes these changes, and takes the changes of the last mutant back.
    pub(crate) fn apply(&mut self, changes: &Changes) -> Result<(), Failure> {
        for (path, original) in std::mem::take(&mut self.originals) {
            write(&self.tree.root.join(path), original.as_bytes())?;
        }
        for (path, text) in changes {
            let file = self.tree.root.join(path);
            self.originals
                .insert(path.clone(), fs::read_to_string(&file)?);
            write(&file, text.as_bytes())?;
        }
        Ok(())
    }
}

fn write(path: &Path, text: &[u8]) -> Result<(), Failure> {
    if fs::read(path).is_ok_and(|present| present == text) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    Ok(fs::write(path, text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace of two files, and the folder of its copy, both removed by the drop.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let name = format!("ganger-mutants-{name}-{}", std::process::id());
            let scratch = Self(std::env::temp_dir().join(name));
            write(&scratch.source().join("src/a.rs"), b"a").unwrap();
            write(&scratch.source().join("b.rs"), b"b").unwrap();
            scratch
        }

        fn source(&self) -> PathBuf {
            self.0.join("source")
        }

        fn copy(&self, files: &[&str]) -> Copy {
            let files: Vec<_> = files.iter().map(PathBuf::from).collect();
            Copy::of(&self.source(), &files, &self.0.join("copy")).unwrap()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _gone = fs::remove_dir_all(&self.0);
        }
    }

    fn text(copy: &Copy, path: &str) -> String {
        fs::read_to_string(copy.tree.root.join(path)).unwrap()
    }

    fn changes(changes: &[(&str, &str)]) -> Changes {
        let owned = |&(path, text): &(&str, &str)| (path.to_owned(), text.to_owned());
        changes.iter().map(owned).collect()
    }

    #[test]
    fn a_mutant_follows_on_the_original() {
        let scratch = Scratch::new("apply");
        let mut copy = scratch.copy(&["src/a.rs", "b.rs"]);
        copy.apply(&changes(&[("src/a.rs", "A"), ("b.rs", "B")]))
            .unwrap();
        assert_eq!(
            (text(&copy, "src/a.rs"), text(&copy, "b.rs")),
            ("A".into(), "B".into())
        );
        copy.apply(&changes(&[("b.rs", "BB")])).unwrap();
        assert_eq!(
            (text(&copy, "src/a.rs"), text(&copy, "b.rs")),
            ("a".into(), "BB".into())
        );
        copy.apply(&Changes::new()).unwrap();
        assert_eq!(text(&copy, "b.rs"), "b");
    }

    #[test]
    fn a_copy_that_was_left_behind_is_brought_up_to_date() {
        let scratch = Scratch::new("renew");
        let mut copy = scratch.copy(&["src/a.rs", "b.rs"]);
        copy.apply(&changes(&[("src/a.rs", "left over")])).unwrap();
        let old = fs::metadata(copy.tree.root.join("src/a.rs")).unwrap();
        let copy = scratch.copy(&["src/a.rs"]);
        assert_eq!(text(&copy, "src/a.rs"), "a");
        assert!(!copy.tree.root.join("b.rs").exists());
        let new = fs::metadata(copy.tree.root.join("src/a.rs")).unwrap();
        assert!(new.modified().unwrap() >= old.modified().unwrap());
        // An unchanged file keeps its time.
        let copy = scratch.copy(&["src/a.rs"]);
        let kept = fs::metadata(copy.tree.root.join("src/a.rs")).unwrap();
        assert_eq!(new.modified().unwrap(), kept.modified().unwrap());
    }
}

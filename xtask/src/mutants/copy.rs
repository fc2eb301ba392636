//! Copies of the workspace, to build mutants in.
//!
//! Each copy has target folders of its own, which are kept for the next run. Cargo builds a file
//! anew when the file is newer than its last build. So a file is written only when its text
//! changes, and then gets a new time, even if it gets its old text back.

use super::change::Changes;
use crate::Failure;
use crate::root::{Tree, files, root, walk};
use std::fs;
use std::path::Path;

/// A copy, used by a single thread at a time.
pub(crate) struct Copy {
    pub(crate) tree: Tree,
    /// The original texts of the files that the present mutant has changed.
    originals: Changes,
}

impl Copy {
    /// Creates a copy of the workspace in `folder`, or brings the copy there up to date.
    pub(crate) fn new(folder: &Path) -> Result<Self, Failure> {
        let files = files()?;
        let (root_of, target) = (folder.join("tree"), folder.join("target"));
        fs::create_dir_all(&root_of)?;
        let mut old = walk(&root_of)?;
        old.retain(|path| !files.contains(path));
        for path in old {
            fs::remove_file(root_of.join(path))?;
        }
        let tree = Tree {
            root: root_of,
            target,
        };
        for path in files {
            write(&tree.root.join(&path), &fs::read(root().join(&path))?)?;
        }
        let originals = Changes::new();
        Ok(Self { tree, originals })
    }

    /// Makes these changes, and takes the changes of the last mutant back.
    pub(crate) fn apply(&mut self, changes: &Changes) -> Result<(), Failure> {
        for (path, original) in std::mem::take(&mut self.originals) {
            write(&self.tree.root.join(path), original.as_bytes())?;
        }
        for (path, text) in changes {
            let file = self.tree.root.join(path);
            let original = fs::read_to_string(&file)?;
            self.originals.insert(path.clone(), original);
            write(&file, text.as_bytes())?;
        }
        Ok(())
    }
}

fn write(path: &Path, text: &[u8]) -> Result<(), Failure> {
    if fs::read(path).is_ok_and(|present| present == text) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    Ok(fs::write(path, text)?)
}

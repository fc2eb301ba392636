//! Where a node looks for other nodes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The most lines of a file of seeds.
const MOST_LINES: usize = 1024;

/// Finds addresses of nodes. The engine asks again and again, on a thread that may block.
///
/// Each address is `host:port` or `ip:port`. A host may have many addresses, and the engine tries
/// all of them. A node that is found twice, or is this node, does no harm. Nodes tell each other of
/// their peers, so that a part of them is enough.
///
/// ```
/// use ganger_cluster_direct::Direct;
///
/// let engine = Direct::listen("127.0.0.1:0").discovery(|| Ok(vec!["beta.internal:7447".into()]));
/// # drop(engine);
/// ```
pub trait Discovery: Send + Sync + 'static {
    /// Returns the addresses at this moment.
    ///
    /// # Errors
    ///
    /// The addresses can't be found now. The engine logs the error, and keeps what it has found.
    fn find(&self) -> io::Result<Vec<String>>;
}

impl<F: Fn() -> io::Result<Vec<String>> + Send + Sync + 'static> Discovery for F {
    fn find(&self) -> io::Result<Vec<String>> {
        self()
    }
}

/// A file with an address in each line. Empty lines, and lines that begin with `#`, are left out.
/// The engine reads it again and again, so it may change.
#[derive(Debug)]
pub struct SeedsFile(PathBuf);

impl SeedsFile {
    /// Creates a discovery by the file at this path. The file need not exist yet.
    #[must_use]
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self(path.as_ref().to_owned())
    }
}

impl Discovery for SeedsFile {
    fn find(&self) -> io::Result<Vec<String>> {
        let text = fs::read_to_string(&self.0).map_err(|error| {
            let text = format!("the file of seeds {}: {error}", self.0.display());
            io::Error::new(error.kind(), text)
        })?;
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        Ok(lines.take(MOST_LINES).map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_an_address_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seeds");
        let seeds = SeedsFile::new(&path);
        assert!(seeds.find().unwrap_err().to_string().contains("seeds"));
        fs::write(&path, "# ours\nalpha:7447\n\n  10.0.0.2:7447  \n").unwrap();
        assert_eq!(seeds.find().unwrap(), ["alpha:7447", "10.0.0.2:7447"]);
    }
}

//! A trace to a file.

use crate::fault::Fault;
use crate::source::Source;
use crate::text;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The most files of the same name in a folder.
const FILES: u32 = 10_000;

/// Saves a trace of the last time in a new file of a folder. Returns its path and size. A failed
/// trace leaves no file.
pub(crate) fn trace(
    source: &dyn Source,
    time: Duration,
    host: &str,
    folder: &Path,
) -> Result<(PathBuf, u64), Fault> {
    let (path, file) = create(host, folder).map_err(Fault::File)?;
    let mut to = BufWriter::new(file);
    let written = source.trace(time, &mut to);
    let flushed = written.and_then(|()| to.flush().map_err(Fault::File));
    let size = flushed.and_then(|()| fs::metadata(&path).map_err(Fault::File));
    match size {
        Ok(metadata) => Ok((path, metadata.len())),
        Err(fault) => {
            drop(to);
            // The first fault matters.
            let _ = fs::remove_file(&path);
            Err(fault)
        }
    }
}

/// Creates a file with a new name.
fn create(host: &str, folder: &Path) -> io::Result<(PathBuf, File)> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name: String = host.chars().filter(|it| is_plain(*it)).take(40).collect();
    for number in 1..=FILES {
        let path = folder.join(format!("ganger-{name}-{number}.pftrace"));
        match File::create_new(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(
        "the folder is full of traces: remove some",
    ))
}

/// Returns the message for a person.
pub(crate) fn sentence(saved: &Result<(PathBuf, u64), Fault>) -> String {
    match saved {
        Ok((path, size)) => {
            let (path, size) = (path.display(), text::count(*size));
            format!("saved {path} ({size} bytes): open it at ui.perfetto.dev, or by --file")
        }
        Err(fault) => format!("no trace: {fault}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Demo;
    use ganger_observe::trace::Trace;

    #[test]
    fn each_trace_has_a_file_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let save = || {
            trace(
                &Demo::new(),
                Duration::from_secs(5),
                "../a b",
                folder.path(),
            )
        };
        let (first, size) = save().unwrap();
        let (second, _) = save().unwrap();
        assert_eq!(first, folder.path().join("ganger-ab-1.pftrace"));
        assert_eq!(second, folder.path().join("ganger-ab-2.pftrace"));
        let file = File::open(&first).unwrap();
        assert_eq!(file.metadata().unwrap().len(), size);
        assert_eq!(Trace::read(file).unwrap().scheduler(), "shop");
    }

    #[test]
    fn a_trace_that_fails_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let missing = crate::Remote::new("127.0.0.1:1".parse().unwrap(), None).unwrap();
        let failed = trace(&missing, Duration::from_secs(5), "a", folder.path());
        assert!(sentence(&failed).starts_with("no trace: no answer at 127.0.0.1:1"));
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
        let nowhere = folder.path().join("nowhere");
        let failed = trace(&Demo::new(), Duration::from_secs(5), "a", &nowhere);
        assert!(sentence(&failed).contains("can't write the file"));
    }
}

//! Whole files, by threads with the right to block.
//!
//! For all other work on files, and for other blocking calls, use `Cx::blocking` of `ganger-task`,
//! or `Context::blocking` inside of a step. They use the same threads, at most
//! `Builder::max_spares`.
//!
//! ```
//! # use ganger_net::{Net, fs};
//! # use ganger_sched::Scheduler;
//! # use ganger_task::Cx;
//! # let scheduler = Scheduler::builder().driver(Net::new()?).build()?;
//! # scheduler.start()?;
//! # let task = scheduler.spawn(async |_: Cx| {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("greeting");
//! fs::write(&path, b"hello").await?;
//! assert_eq!(fs::read(&path).await?, b"hello");
//! # Ok(()) })?;
//! # task.wait().into_result()?;
//! # Ok::<(), ganger_proc_api::BoxError>(())
//! ```

use crate::sockets::blocking::blocking;
use std::fs;
use std::io;
use std::path::PathBuf;

/// Reads a file.
///
/// # Errors
/// Errors of the system; `Other` outside of a process.
pub async fn read(path: impl Into<PathBuf>) -> io::Result<Vec<u8>> {
    let path = path.into();
    blocking(None, move || fs::read(path)).await
}

/// Writes a file: makes it, or replaces its content. A wait dropped during the write does not stop
/// the write.
///
/// # Errors
/// Errors of the system; `Other` outside of a process.
pub async fn write(path: impl Into<PathBuf>, bytes: impl Into<Vec<u8>>) -> io::Result<()> {
    let (path, bytes) = (path.into(), bytes.into());
    blocking(None, move || fs::write(path, bytes)).await
}

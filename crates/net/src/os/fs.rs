//! Whole files, by the threads that may block.
//!
//! What else there is to do with files, or blocks in another way, is for `Cx::blocking` of
//! `ganger-task`, and `Context::blocking` inside of a step: it is the same threads, at most
//! `Builder::max_spares` of them.
//!
//! ```
//! # use ganger_net::{Net, fs};
//! # use ganger_sched::Scheduler;
//! # use ganger_task::{Cx, SpawnTask};
//! # let scheduler = Scheduler::builder().driver(Net::new()?).build()?;
//! # scheduler.start()?;
//! # let task = scheduler.spawn_task(async |_: Cx| {
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

/// The bytes of a file.
///
/// # Errors
/// Those of the system; `Other` outside of a process.
pub async fn read(path: impl Into<PathBuf>) -> io::Result<Vec<u8>> {
    let path = path.into();
    blocking(None, move || fs::read(path)).await
}

/// Makes a file of those bytes, or replaces what is in it. A wait that is dropped while the file is
/// being written does not stop that.
///
/// # Errors
/// Those of the system; `Other` outside of a process.
pub async fn write(path: impl Into<PathBuf>, bytes: impl Into<Vec<u8>>) -> io::Result<()> {
    let (path, bytes) = (path.into(), bytes.into());
    blocking(None, move || fs::write(path, bytes)).await
}

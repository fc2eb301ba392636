//! The programs of the servers.

use crate::measure::{Peer, What};
use crate::server::Failure;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// Go's servers: a program that is built first.
pub(crate) struct Go {
    folder: TempDir,
}

impl Go {
    /// None without Go.
    pub(crate) fn build() -> Option<Self> {
        let folder = tempfile::tempdir().ok()?;
        let go = Self { folder };
        let built = Command::new("go")
            .args(["build", "-o"])
            .arg(go.program())
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/foreign/net"))
            .status();
        built.is_ok_and(|it| it.success()).then_some(go)
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("net")
    }
}

/// Returns the command of a server.
pub(crate) fn command(
    peer: Peer,
    what: What,
    workers: usize,
    go: Option<&Go>,
) -> Result<Command, Failure> {
    let workers = workers.to_string();
    let mut command = match go {
        Some(go) if peer == Peer::Go => {
            let mut command = Command::new(go.program());
            command.args([&what.to_string(), &workers]);
            return Ok(command);
        }
        _ => Command::new(std::env::current_exe()?),
    };
    let (peer, what) = (peer.to_string(), what.to_string());
    command.args(["--serve", &peer, "--only", &what, "--workers", &workers]);
    Ok(command)
}

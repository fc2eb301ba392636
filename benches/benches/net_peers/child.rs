//! A server in a process of its own.

use crate::measure::{Failure, Peer, What};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
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

/// A server, until this is dropped.
pub(crate) struct Server {
    process: Child,
    pub(crate) port: u16,
}

impl Server {
    pub(crate) fn start(
        peer: Peer,
        what: What,
        workers: usize,
        go: Option<&Go>,
    ) -> Result<Self, Failure> {
        let workers = workers.to_string();
        let mut command = match go {
            Some(go) if peer == Peer::Go => {
                let mut command = Command::new(go.program());
                command.args([what.name(), &workers]);
                command
            }
            _ => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["--serve", peer.name(), "--only", what.name()]);
                command.args(["--workers", &workers]);
                command
            }
        };
        let process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut server = Self { process, port: 0 };
        let mut line = String::new();
        let output = server.process.stdout.take().ok_or("no output")?;
        BufReader::new(output).read_line(&mut line)?;
        let port = line.trim().parse();
        server.port = port.map_err(|_| format!("{} has not started", peer.name()))?;
        Ok(server)
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server has nothing to save.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

//! A server in a process of its own.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// A server, until this is dropped.
pub(crate) struct Server {
    pub(crate) process: Child,
    pub(crate) port: u16,
}

impl Server {
    /// Starts a server that prints its port, and ends with its standard input.
    pub(crate) fn start(command: &mut Command) -> Result<Self, Failure> {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let process = piped.spawn()?;
        let mut server = Self { process, port: 0 };
        let mut line = String::new();
        let output = server.process.stdout.take().ok_or("no output")?;
        BufReader::new(output).read_line(&mut line)?;
        let port = line.trim().parse();
        server.port = port.map_err(|_| format!("{command:?} has not started"))?;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server has nothing to save.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Until the standard input of this server ends.
pub(crate) fn until_end() -> Result<(), Failure> {
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

//! A node's program, as its controller has it.

use crate::node::{self, MARK};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A line of a node's program: the node, the number of its start, the text. `None` behind the last.
pub(crate) type Said = (usize, u64, Option<String>);

/// Where the lines go.
pub(crate) type Lines = Sender<Said>;

/// The settings of a program's start.
pub(crate) struct Start<'a> {
    pub(crate) program: &'a Path,
    pub(crate) args: &'a [String],
    pub(crate) name: &'a str,
    pub(crate) peers: String,
    pub(crate) seeds: String,
    pub(crate) own: SocketAddr,
    pub(crate) dead: Duration,
    pub(crate) extra: &'a str,
    pub(crate) random: u64,
    /// The node of the registrar, a colon, and its file.
    pub(crate) registrar: String,
}

/// A running program. Dropping it kills it.
pub(crate) struct Program {
    child: Child,
    stdin: ChildStdin,
    reader: Option<JoinHandle<()>>,
}

impl Program {
    /// Starts a program. Its lines go to `lines` with the node's number and the number of the
    /// start, and a `None` behind the last.
    pub(crate) fn start(start: &Start<'_>, at: (usize, u64), lines: Lines) -> Self {
        let mut child = Command::new(start.program)
            .args(start.args)
            .env(node::NAME, start.name)
            .env(node::PEERS, &start.peers)
            .env(node::SEEDS, &start.seeds)
            .env(node::OWN, start.own.to_string())
            .env(node::DEAD, start.dead.as_millis().to_string())
            .env(node::EXTRA, start.extra)
            .env(node::RANDOM, start.random.to_string())
            .env(node::REGISTRAR, &start.registrar)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the node's program starts");
        let stdin = child.stdin.take().expect("it is piped");
        let stdout = child.stdout.take().expect("it is piped");
        let (number, starts) = at;
        let reader = thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            let mut line = String::new();
            // A killed program leaves a part of a line, perhaps.
            while stdout.read_line(&mut line).is_ok_and(|it| it > 0) && line.ends_with('\n') {
                // The harness of a test may have begun the line.
                if let Some((_, said)) = line.trim_end().split_once(MARK) {
                    let _gone = lines.send((number, starts, Some(said.to_owned())));
                }
                line.clear();
            }
            let _gone = lines.send((number, starts, None));
        });
        Self {
            child,
            stdin,
            reader: Some(reader),
        }
    }

    /// Tells the program to do something.
    pub(crate) fn tell(&mut self, what: &str) -> std::io::Result<()> {
        writeln!(self.stdin, "{what}")
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(status.is_ok_and(|it| it.success()), "no signal {name}");
    }

    /// Kills the program, and waits for its end.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // The program may have ended.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _panicked = reader.join();
        }
    }

    /// Waits until the program has ended by itself.
    pub(crate) fn wait(mut self) {
        let _ended = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _panicked = reader.join();
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.end();
    }
}

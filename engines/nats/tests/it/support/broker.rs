//! A broker as a child process.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::{env, fs};
use tempfile::TempDir;

/// Returns the program, if a broker is installed.
pub(crate) fn found() -> Option<PathBuf> {
    if let Some(program) = env::var_os("GANGER_NATS_SERVER") {
        return Some(program.into());
    }
    let paths = env::var_os("PATH").unwrap_or_default();
    let mut places = env::split_paths(&paths).map(|folder| folder.join("nats-server"));
    places.find(|program| program.is_file())
}

/// Returns the program, unless no broker is installed. The caller then passes, and this says it,
/// past the harness: the harness hides the output of passing tests.
pub(crate) fn program() -> Option<PathBuf> {
    let found = found();
    if found.is_none() {
        let test = thread::current().name().unwrap_or_default().to_owned();
        let text = "skipped: no nats-server; install it, or name it by GANGER_NATS_SERVER";
        let line = format!("{test}: {text}\n");
        io::stderr().write_all(line.as_bytes()).unwrap();
    }
    found
}

/// A running broker on a port of the loopback. The broker ends with the value.
pub(crate) struct Broker {
    program: PathBuf,
    settings: String,
    folder: TempDir,
    child: Child,
    pub(crate) port: u16,
    /// Of the route between brokers, if the settings have it.
    pub(crate) route: Option<u16>,
}

impl Broker {
    /// Starts a broker; none if no broker is installed.
    pub(crate) fn start() -> Option<Self> {
        Self::with("")
    }

    /// Starts a broker with further settings.
    pub(crate) fn with(settings: &str) -> Option<Self> {
        let program = program()?;
        let folder = tempfile::tempdir().unwrap();
        let (child, port, route) = launch(&program, folder.path(), None, settings);
        Some(Self {
            program,
            settings: settings.to_owned(),
            folder,
            child,
            port,
            route,
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again, at the same ports.
    pub(crate) fn restart(&mut self) {
        let mut settings = self.settings.clone();
        if let Some(route) = self.route {
            settings = settings.replace("listen: \"127.0.0.1:-1\"", &listen(route));
        }
        let (child, port, _) = launch(
            &self.program,
            self.folder.path(),
            Some(self.port),
            &settings,
        );
        assert_eq!(port, self.port);
        self.child = child;
    }

    /// Stops it, or lets it go on, without its knowledge.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // The broker may have ended already.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// Returns the setting of a port; a broker takes a free one for -1.
pub(crate) fn listen(port: impl ToString) -> String {
    format!("listen: \"127.0.0.1:{}\"", port.to_string())
}

fn launch(
    program: &Path,
    folder: &Path,
    port: Option<u16>,
    settings: &str,
) -> (Child, u16, Option<u16>) {
    let port = port.map_or_else(|| "-1".to_owned(), |port| port.to_string());
    let file = folder.join("broker.conf");
    fs::write(&file, format!("{}\n{settings}\n", listen(port))).unwrap();
    let mut child = Command::new(program)
        .arg("-c")
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = BufReader::new(child.stderr.take().unwrap());
    let (sender, lines) = mpsc::channel();
    // Reads to the end, so that the broker never waits for a reader.
    thread::spawn(move || {
        for line in log.lines().map_while(Result::ok) {
            // The receiver is gone once the broker is ready.
            let _unheard = sender.send(line);
        }
    });
    let (mut log, mut ports) = (String::new(), [None; 2]);
    for line in lines {
        log.push_str(&line);
        log.push('\n');
        let marks = [
            "client connections on 127.0.0.1:",
            "route connections on 127.0.0.1:",
        ];
        for (port, mark) in ports.iter_mut().zip(marks) {
            let digits = line.split_once(mark).map(|(_, digits)| digits.trim());
            *port = digits.map(|it| it.parse::<u16>().unwrap()).or(*port);
        }
        // A broker with routes is ready before it has their port.
        let needs_route = settings.contains("cluster {") && ports[1].is_none();
        if log.contains("Server is ready") && !needs_route {
            return (child, ports[0].unwrap(), ports[1]);
        }
    }
    // Its log has ended, and with it the broker.
    child.wait().unwrap();
    panic!("the broker has ended:\n{log}");
}

//! A server in a process of its own.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use tokio::net::TcpStream;
use tokio::runtime::Builder;

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

/// Waits until the standard input of this server ends.
pub(crate) fn until_end() -> Result<(), Failure> {
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Listens at a port, and prints the port.
pub(crate) fn listen() -> io::Result<TcpListener> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Serves each connection by a task of tokio, on threads of their own.
pub(crate) fn on_tokio<F: Future<Output = Result<(), Failure>> + Send + 'static>(
    listener: TcpListener,
    workers: usize,
    has_timers: bool,
    each: impl Fn(TcpStream) -> F + Send + 'static,
) {
    thread::spawn(move || -> Result<(), Failure> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(workers).enable_io();
        if has_timers {
            builder.enable_time();
        }
        // In a task, as the connections: the thread of `block_on` is no worker.
        let accepts = async move {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            loop {
                let (stream, _) = listener.accept().await?;
                tokio::spawn(each(stream));
            }
        };
        builder
            .build()?
            .block_on(async { tokio::spawn(accepts).await? })
    });
}

/// Says why it failed, if it did. Returns the exit code of the program.
pub(crate) fn ended(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

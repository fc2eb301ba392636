//! A server with the answers of a test.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

/// A server of a single connection.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    thread: JoinHandle<String>,
}

impl Server {
    /// Takes a connection, reads the head of a request, and then leaves the connection to `say`.
    pub(crate) fn new(say: impl FnOnce(&mut TcpStream) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let body = move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
                head.push(byte[0]);
            }
            say(&mut stream);
            String::from_utf8(head).unwrap()
        };
        let thread = thread::spawn(body);
        Self { address, thread }
    }

    /// Answers with these bytes.
    pub(crate) fn of(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        // The client may have enough earlier.
        Self::new(move |stream| drop(stream.write_all(&answer)))
    }

    /// Returns the head of the request.
    pub(crate) fn request(self) -> String {
        self.thread.join().unwrap()
    }
}
